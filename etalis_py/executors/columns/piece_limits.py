"""How many occurrences are evaluated at a time, and the limits on what arises from them.

A batch is cut into pieces, between which goals are compared with the limits.  The solutions of all nodes stay until
their piece is over, so a piece is as large as its solutions allow, judging by the piece before; solutions that are too
large all the same stop the run in the middle of it.

Cost: one addition for each node and piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from etalis_py.executors.columns.tables import SolutionTable, row_bytes
from etalis_py.executors.rows.run.housekeeping import Housekeeping
from etalis_py.values.errors import LimitExceeded

AT_ONCE = 1 << 16
"""How many occurrences are evaluated at a time at most, so that the intermediate results fit into a cache."""
_FIRST = 1 << 12
"""How many are evaluated at first: how large their intermediate results are is not known before."""
_PER_OCCURRENCE = 1 << 10
"""The bytes that the intermediate results of an occurrence may take at first, if the limit is small."""
_SHARE = 16
"""The intermediate results of a piece should take at most this part of the limit."""


class PieceLimits:
    """What the solutions of a piece and the goals before it take; ``at_once`` is the size of the next piece."""

    def __init__(self, house: Housekeeping) -> None:
        self._house = house
        limits = house.limits
        self._most = min(AT_ONCE, limits.goals + 1)
        self.at_once = max(1, min(_FIRST, limits.bytes // (_SHARE * _PER_OCCURRENCE), self._most))
        self._held = self._made = 0

    def portion(self, most: int, columns: int) -> int:
        """How many rows of so many columns, at most ``most``, may be made before they are compared with the limit."""
        return max(_PER_OCCURRENCE, min(most, self._house.limits.bytes // (_SHARE * row_bytes(columns))))

    def add(self, solutions: SolutionTable) -> None:
        """A node has these solutions."""
        self._made += solutions.bytes
        self._compare(self._held + self._made)

    def foresee(self, parts: Iterable[SolutionTable]) -> None:
        """A node has at least these solutions, and may have more."""
        self._compare(self._held + self._made + sum(part.bytes for part in parts))

    def _compare(self, size: int) -> None:
        limit = self._house.limits.bytes
        if size > limit:
            raise LimitExceeded(
                f"goals and new solutions take about {size} bytes, the limit is {limit}; bound the patterns with "
                "WITHIN, use a consuming policy, or raise Limits(bytes=…)"
            )

    def is_near(self, goals: int, size: int) -> bool:
        """Whether so many goals, expired ones among them, may be beyond the limits."""
        self._held = size
        return goals > self._house.limits.goals or size > self._house.limits.bytes

    def compare(self, goals: int, size: int, by_node: Callable[[], Mapping[str, int]]) -> None:
        """Fail if these goals are beyond the limits."""
        self._held = size
        self._house.compare(goals, size, by_node)

    def resize(self, rows: int) -> None:
        """A piece of so many rows is over: choose the size of the next."""
        if rows:  # one without rows says nothing about those that have some
            fitting = self._house.limits.bytes // _SHARE * rows // max(1, self._made)
            self.at_once = max(1, min(self._most, 4 * self.at_once, fitting))
        self._made = 0
