"""MIN, MAX and SAMPLE over a multiset that may shrink.

A heap of the distinct terms; removed terms stay in it until they come to the top or make up half of it.  Adding,
removing and reading cost O(log n) amortised.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from heapq import heapify, heappop, heappush
from typing import Any

from etalis_py.values.codec import decode
from etalis_py.values.errors import SparqlError
from etalis_py.values.functions.accumulators import Failing, State, not_added
from etalis_py.values.ordering import OrderKey, order_key_of
from etalis_py.values.types import NUMERIC

_SLACK = 64


class _Descending:
    """A key in the opposite order."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and bool(self.key == other.key)

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.key < self.key)


def _opposite(part: Any) -> Any:
    c = part.__class__
    if c is Decimal:
        return part.copy_negate()
    return -part if c in NUMERIC else _Descending(part)


def descending_key_of(value: Any, term: str) -> OrderKey:
    """``order_key_of`` reversed, except for the last tie, which the smaller spelling wins here too."""
    kind, rank, part, _ = order_key_of(value, term)
    return -kind, -rank, _opposite(part), term


class Min(Failing):
    """MIN: the first term in the order of ORDER BY ASC; an error for no arguments, or with an error among them."""

    __slots__ = ("_counts", "_heap")

    name = "MIN"

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._heap: list[OrderKey] = []
        self._failures = 0

    _key = staticmethod(order_key_of)

    def add(self, value: Any, term: str) -> None:
        count = self._counts.get(term, 0)
        self._counts[term] = count + 1
        if not count:
            heappush(self._heap, self._key(value, term))

    def remove(self, value: Any, term: str) -> None:
        count = self._counts.get(term, 0)
        if not count:
            raise not_added(term)
        if count > 1:
            self._counts[term] = count - 1
            return
        del self._counts[term]
        if len(self._heap) > 2 * len(self._counts) + _SLACK:
            self._rebuild(key for key in self._heap if key[-1] in self._counts)

    def _rebuild(self, keys: Iterable[OrderKey]) -> None:
        self._heap = list({key[-1]: key for key in keys}.values())
        heapify(self._heap)

    def result(self) -> str:
        if self._failures:
            raise SparqlError(f"{self.name} over {self._failures} argument(s) that are an error")
        return self._first()

    def _first(self) -> str:
        heap = self._heap
        while heap and heap[0][-1] not in self._counts:
            heappop(heap)
        if not heap:
            raise SparqlError(f"{self.name} of nothing")
        return heap[0][-1]  # type: ignore[no-any-return]

    def best(self) -> str:
        """The term that counts, errors aside; empty if there is none."""
        return self._first() if self._counts else ""

    def state(self) -> State:
        return [self.name, self._failures, [[term, count] for term, count in self._counts.items()]]

    def load(self, state: State) -> None:
        _, self._failures, counts = state
        self._counts = dict(counts)
        self._rebuild(self._key(decode(term), term) for term in self._counts)


class Max(Min):
    """MAX: the last value in the order of ORDER BY ASC (of equal values, the smaller spelling)."""

    __slots__ = ()

    name = "MAX"
    _key = staticmethod(descending_key_of)


class SampleAggregate(Min):
    """SAMPLE: the first term in the order of ORDER BY ASC, so that the answer never depends on arrival.

    Errors are skipped; if there is nothing else, it is an error.
    """

    __slots__ = ()

    name = "SAMPLE"

    def result(self) -> str:
        return self._first()
