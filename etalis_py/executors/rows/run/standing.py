"""The solutions that an aggregation has of the background alone: they never leave a window, and follow updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from etalis_rules import algebra as alg

from etalis_py.executors.rows.run.goals import Solution
from etalis_py.sparql import BackgroundSource, prepare
from etalis_py.sparql.prepared import Prepared
from etalis_py.values.time import TIMELESS_END, TIMELESS_START


class StandingSolutions:
    """What the background answers to a pattern, as solutions of the aggregation's child."""

    def __init__(
        self,
        pattern: alg.Pattern,
        columns: Sequence[str],
        background: Callable[[], BackgroundSource],
        rebuild: Callable[[Solution], Solution],
    ) -> None:
        """``rebuild`` adds the decoded values that a solution carries."""
        self._pattern = pattern
        self._columns = columns
        self._background = background
        self._rebuild = rebuild
        self._seen: tuple[BackgroundSource, object] | None = None

    @cached_property
    def _prepared(self) -> Prepared:
        return prepare(self._pattern)

    def forget(self) -> None:
        """Take what comes next for new."""
        self._seen = None

    def has_changed(self) -> bool:
        """Whether the background is another one than at the last call."""
        source = self._background()
        now, before = (source, source.version), self._seen
        self._seen = now
        return before is None or before[0] is not source or before[1] != now[1]

    def solutions(self) -> list[Solution]:
        found = self._prepared.solve({}, self._background())
        rows = [(TIMELESS_END, TIMELESS_START, *(mu.get(name, "") for name in self._columns)) for mu, _, _ in found]
        return list(map(self._rebuild, rows))
