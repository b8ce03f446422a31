"""Compares the items that windows keep with the limits on goals and on bytes.

Counting takes time proportional to the number of queries, so items are counted after as many events as fit below the
limits, judging by the last count and by how fast items came before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from etalis_py.events import Event
from etalis_py.values.errors import LimitExceeded
from etalis_py.values.limits import Limits

_FIRST, _MOST = 256, 8_192
"""After so many events items are counted first, and after so many at least, unless a limit is near."""
_ITEM, _TRIPLE = 300, 300
"""The bytes of an item and of its triples, with their places in the indexes of a window, without the terms' texts."""
_SAMPLE = 16


class Kept(NamedTuple):
    """The items that the windows of a query keep: how many, and about how many bytes they take."""

    query: str
    items: int
    bytes: int

    @classmethod
    def of(cls, query: str, items: Iterable[Event], count: int) -> Kept:
        """So many items of a query, with a size that is estimated from the first of them, or without one as short."""
        sample = [_ITEM + sum(_TRIPLE + sum(map(len, triple)) for triple in x.triples) for x in islice(items, _SAMPLE)]
        sample = sample or [_ITEM + _TRIPLE]
        return cls(query, count, sum(sample) * count // len(sample))


class ItemLimits:
    """The limits on the items of all windows; ``left``: after how many more events to call ``compare``."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.left = self._step = min(_FIRST, limits.goals + 1)
        self._items = self._bytes = 0

    def compare(self, kept: Iterable[Kept]) -> None:
        """Fail if these items are beyond a limit, and plan when to count again."""
        every, limits = list(kept), self._limits
        items, size = sum(each.items for each in every), sum(each.bytes for each in every)
        whose = f", and query {max(every, key=lambda each: each.bytes).query} has the most" if len(every) > 1 else ""
        instead = "make the windows shorter, filter the events before they come, or raise Limits"
        if items > limits.goals:
            raise LimitExceeded(f"windows keep {items} items, the limit is {limits.goals}{whose}; {instead}(goals=…)")
        if size > limits.bytes:
            raise LimitExceeded(
                f"the {items} items in windows take about {size} bytes, the limit is {limits.bytes}{whose}; "
                f"{instead}(bytes=…)"
            )
        rates = max(1, (items - self._items) // self._step), max(_ITEM, (size - self._bytes) // self._step)
        self._items, self._bytes = items, size
        room = min((limits.goals - items) // rates[0], (limits.bytes - size) // rates[1])
        self.left = self._step = min(room + 1, max(_MOST, items // 2), 4 * self._step)
