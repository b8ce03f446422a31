"""Slices of time: a batch in which matches reach back d at most is cut by time instead of by key.

Slice [a, b) reads the events that end in [a − d, b) and reports what is known in [a, b): until a its engine only fills.
The first slice has no beginning and the last one no end, so together they report what one engine reports, each match
once.  Which programs allow it, and what d is, tells ``etalis_compiler.reach``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

from etalis_py.kernel.position import NEVER
from etalis_py.spark.answers import Row, Table
from etalis_py.spark.parts import Part, RoutedPart
from etalis_py.spark.schema import LAST
from etalis_py.spark.shard import Plain, Shard
from etalis_py.spark.spec import ProgramSpec

_by_end = itemgetter(1)


class SlicedShard(Shard):
    """A shard that is a slice of time: it takes its events in order, all before it finishes."""

    def __init__(self, spec: ProgramSpec, part: Part, number: int) -> None:
        super().__init__(spec, part, number, corrected=True)
        self.begin, following = part.span(number)
        self.until = None if following is None else following - 1
        self.read_again = 0
        self._filling = self.begin is not None

    def push(self, events: Sequence[Plain]) -> list[Row | Table]:
        """Events in order; those before the slice are taken without a word."""
        if self._filling and self.begin is not None:
            own = bisect_left(events, self.begin, key=_by_end)
            self.read_again += own
            if own:
                self.engine.push_all(self._items(events[:own]))
            events = events[own:]
            if not events:
                return []
            self._begin_own(self.begin)
        return super().push(events)

    def close_before(self, over: int) -> list[Row | Table]:
        """What waits for a withdrawal waits for the end of the slice."""
        return []

    def finish(self) -> list[Row | Table]:
        ready, self.waiting = sorted(self.waiting, key=_by_end), []
        rows = self._take(ready, LAST)
        if self._filling and self.begin is not None:
            self._begin_own(self.begin)
        rows += super().finish()
        # The slice before says which of its events could not be taken.
        return [row for row in rows if isinstance(row, Table) or row[0] != "dead_letter" or self._is_of_slice(row)]

    def metric(self, **more: int) -> Row:
        return super().metric(**more, read_again=self.read_again)

    def _begin_own(self, begin: int) -> None:
        """What is known before the slice is what the slice before reports."""
        if self.engine.closed_at != NEVER:
            self.engine.advance(begin - 1)
        self._filling = False

    def _is_of_slice(self, row: Row) -> bool:
        return self.begin is None or row[8] >= self.begin


def in_slices(routed: RoutedPart, begins: Sequence[int]) -> RoutedPart:
    """The part in slices of time that begin there, whatever it was divided by before.

    What has no time is for the first slice to report.
    """
    part = routed.part
    routes = tuple((leaf, "") for leaf in dict.fromkeys(leaf for leaf, _ in routed.routes))
    shards, overlap = len(begins) + 1, routed.reach.back
    sliced = replace(part, shards=shards, begins=tuple(begins), overlap=overlap, keys=(), once=part.queries)
    return replace(routed, part=sliced, routes=routes)
