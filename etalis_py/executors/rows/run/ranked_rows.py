"""The rows of a grouped result, kept in order while groups change.

Cost of a changed row: two binary searches and a move in a list; of reading the first k rows: k.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Generic, TypeVar

from etalis_py.values.ordering import OrderKey

Key = TypeVar("Key")
Row = tuple[Any, ...]


class RankedRows(Generic[Key]):
    """At most one row for each key, in the order of ORDER BY and, among equals, in canonical order.

    >>> from etalis_py.values.ordering import rank_key
    >>> rows = RankedRows([2], [True])
    >>> for key, text, rank in (("a", '"x"', "2"), ("b", '"y"', "10"), ("c", '"z"', "2")):
    ...     rows.put(key, (0, 0, text), [rank_key(f'"{rank}"^^<http://www.w3.org/2001/XMLSchema#integer>')])
    >>> rows.put("a", None)
    >>> [key for _, key in rows.between(0, None)], [key for _, key in rows.between(1, 2)]
    (['b', 'c'], ['c'])
    """

    def __init__(self, shown: Sequence[int], descending: Sequence[bool]) -> None:
        """``shown``: the columns that decide among equals, after end and start; ``descending``: for each rank."""
        self._shown = tuple(shown)
        self._descending = tuple(descending)
        self._entries: dict[Key, tuple[Any, ...]] = {}
        self._ranked: list[tuple[Any, ...]] = []

    def put(self, key: Key, row: Row | None, ranks: Sequence[OrderKey] = ()) -> None:
        """Give a key this row, or none."""
        before = self._entries.pop(key, None)
        if before is not None:
            del self._ranked[bisect_left(self._ranked, before)]
        if row is not None:
            ordered = (reverse(rank) if down else rank for rank, down in zip(ranks, self._descending, strict=True))
            entry = (*ordered, row[0], row[1], *(row[i] for i in self._shown), key, row)
            self._entries[key] = entry
            insort(self._ranked, entry)

    def between(self, start: int, stop: int | None) -> list[tuple[Row, Key]]:
        """The rows at these places, and their keys."""
        return [(entry[-1], entry[-2]) for entry in self._ranked[start:stop]]

    def clear(self) -> None:
        """Forget all rows."""
        self._entries.clear()
        self._ranked.clear()


class _Reversed:
    """A value that sorts the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and bool(self.value == other.value)

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)

    __hash__ = None  # type: ignore[assignment]


def reverse(rank: OrderKey) -> OrderKey:
    """The key that sorts terms in the order of DESC; ``rank`` is that of ASC."""
    if len(rank) == 1:
        return (-rank[0],)
    kind, place, part = rank
    if isinstance(part, Decimal):
        return -kind, -place, part.copy_negate()
    if isinstance(part, (int, float)):
        return -kind, -place, -part
    return -kind, -place, _Reversed(part)
