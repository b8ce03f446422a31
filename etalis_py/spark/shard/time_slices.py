"""Slices of time: a batch whose matches reach back at most d is cut by time instead of by key.

Slice [a, b) reads the events that end in [a − d, b) and reports what becomes known in [a, b): until a its engine only
fills up.  The first slice has no beginning and the last one no end, so together they report what one engine reports,
each match once.  ``etalis_compiler.reach`` says which programs allow this, and what d is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

import numpy as np

from etalis_py.kernel.batch import Columns
from etalis_py.kernel.position import NEVER
from etalis_py.spark.input.schema import LAST
from etalis_py.spark.output.answers import Answer, Row
from etalis_py.spark.plan.parts import RoutedPart, ShardPart
from etalis_py.spark.plan.spec import ProgramSpec
from etalis_py.spark.shard.shard import Plain, Shard

AT_ONCE = 1 << 17  # rows that the engine takes at once
_by_end = itemgetter(1)


class SlicedShard(Shard):
    """A shard that is a slice of time: it takes all its events, in order, before it finishes.

    Nothing is reported for those before its beginning.
    """

    def __init__(self, spec: ProgramSpec, part: ShardPart, number: int) -> None:
        super().__init__(spec, part, number, corrected=True)
        self.begin, following = part.span(number)
        self.until = None if following is None else following - 1
        self.read_again = 0
        self._filling = self.begin is not None

    def push(self, events: Sequence[Plain]) -> list[Answer]:
        """Take events in order."""
        if self._filling and self.begin is not None:
            own = bisect_left(events, self.begin, key=_by_end)
            self.read_again += own
            if own:
                self.engine.take_plain(self._items(events[:own]))
            events = events[own:]
            if not events:
                return []
            self._begin_own(self.begin)
        return super().push(events)

    def take(self, columns: Columns) -> list[Answer]:
        """Take columns in order."""
        if self._filling and self.begin is not None:
            own = int(np.searchsorted(columns.end, self.begin))
            self.read_again += own
            if own:
                self.engine.push_all(columns.rows(0, own))
            columns = columns.rows(own, len(columns))
            if not len(columns):
                return []
            self._begin_own(self.begin)
        return super().take(columns)

    def close_before(self, over: int) -> list[Answer]:
        """Events that wait for withdrawals wait until the end of the slice."""
        return []

    def finish(self) -> list[Answer]:
        ready, self.waiting = sorted(self.waiting, key=_by_end), []
        rows = self._take(ready, LAST)
        if self._filling and self.begin is not None:
            self._begin_own(self.begin)
        rows += super().finish()
        # The slice before reports which of its events could not be taken.
        return [row for row in rows if not isinstance(row, tuple) or row[0] != "dead_letter" or self._is_of_slice(row)]

    def metric(self, **more: int | str) -> Row:
        return super().metric(**more, read_again=self.read_again)

    def _begin_own(self, begin: int) -> None:
        """Drop what becomes known before the slice: the slice before reports it."""
        if self.engine.closed_at != NEVER:
            self.engine.advance(begin - 1)
        self._filling = False

    def _is_of_slice(self, row: Row) -> bool:
        return self.begin is None or row[8] >= self.begin


def in_slices(routed: RoutedPart, begins: Sequence[int]) -> RoutedPart:
    """The part in slices of time with these beginnings, whatever it was divided by before.

    Timeless matches are reported by the first slice.
    """
    part = routed.part
    routes = tuple((leaf, "") for leaf in dict.fromkeys(leaf for leaf, _ in routed.routes))
    shards, overlap = len(begins) + 1, routed.reach.back
    sliced = replace(part, shards=shards, begins=tuple(begins), overlap=overlap, keys=(), once=part.queries)
    return replace(routed, part=sliced, routes=routes)
