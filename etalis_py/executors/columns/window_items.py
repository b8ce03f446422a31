"""The items of a window as arrays, one row per triple, in order of their ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from etalis_py.events import Event
from etalis_py.executors.columns.growable_array import GrowableArray
from etalis_py.executors.columns.kernels.ordering import distinct_numbers, mark_ties, rises
from etalis_py.executors.columns.tables import SolutionTable, firsts
from etalis_py.executors.columns.terms import Terms
from etalis_py.kernel.batch import Columns

Fields = dict[str, np.ndarray]

_FIELDS = {
    "end": np.int64,
    "start": np.int64,
    "s": np.int32,
    "p": np.int32,
    "o": np.int32,
    "graph": np.int32,
    "last": np.bool_,
}
TERMS = ("s", "p", "o", "graph")
_MIXING = (("s", 0x9E3779B97F4A7C15), ("p", 0xC2B2AE3D27D4EB4F), ("o", 0x165667B19E3779F9))
"""Odd factors by which the sum over an event's triples is as good as never that of another event."""


class Items:
    """The rows of a window: rows before ``first`` have left it, rows from ``entered`` on still wait to enter.

    An item is one or more rows, a triple each; the field ``last`` marks the last row of each item.
    """

    def __init__(self, more: Mapping[str, type]) -> None:
        """``more``: the names and kinds of further fields."""
        kinds = {**_FIELDS, **more}
        self._arrays: Fields = {name: np.empty(16, kind) for name, kind in kinds.items()}
        self.first = self.entered = self.count = 0

    def __len__(self) -> int:
        return self.count - self.first

    @property
    def number(self) -> int:
        """How many items there are."""
        return self.number_of(self.first, self.count)

    @property
    def bytes(self) -> int:
        """The size of these rows."""
        return len(self) * sum(array.itemsize for array in self._arrays.values())

    def number_of(self, first: int, last: int) -> int:
        """How many items these rows form."""
        return int(np.count_nonzero(self.of("last")[first:last]))

    def of(self, name: str) -> np.ndarray:
        """One field of all rows, including those that have left."""
        return self._arrays[name][: self.count]

    def live(self) -> Fields:
        """A copy of the rows that have not left."""
        return {name: array[self.first : self.count].copy() for name, array in self._arrays.items()}

    def append(self, fields: Fields) -> None:
        """Append rows."""
        new = len(fields["end"])
        if self.count + new > len(self._arrays["end"]):
            room = 2 * (len(self) + new)
            for name, array in self._arrays.items():
                moved = np.empty(room, array.dtype)
                moved[: len(self)] = array[self.first : self.count]
                self._arrays[name] = moved
            self.first, self.entered, self.count = 0, self.entered - self.first, len(self)
        for name, array in self._arrays.items():
            array[self.count : self.count + new] = fields[name]
        self.count += new

    def events(self, terms: Terms, stream: str, first: int, count: int, *, single: bool = False) -> list[Event]:
        """The items that these rows form; ``single``: each row is an item."""
        rows = slice(first, count)
        columns = [self.of(name)[rows] for name in ("start", "end", *TERMS)]
        start, end = (column.tolist() for column in columns[:2])
        s, p, o, graph = (terms.spellings(column) for column in columns[2:])
        triples = list(zip(s, p, o, strict=True))
        lasts = np.arange(count - first) if single else np.flatnonzero(self.of("last")[rows])
        begins = np.append(0, lasts + 1)[:-1]
        bounds = zip(begins.tolist(), (lasts + 1).tolist(), strict=True)
        return [Event._make((start[a], end[a], tuple(triples[a:b]), stream, graph[a])) for a, b in bounds]


class GrowableRows:
    """A matrix of numbers that grows by rows; each new row is a copy of ``row``."""

    def __init__(self, row: Sequence[int], room: int = 16) -> None:
        self._row = row
        self._numbers = GrowableArray(room, np.int64, len(row))
        self.count = 0

    @property
    def rows(self) -> np.ndarray:
        """The rows in use."""
        return self._numbers.array[: self.count]

    def reach(self, count: int) -> np.ndarray:
        """Make at least ``count`` rows available."""
        if count > len(self._numbers.array):
            self._numbers.grow(2 * count)
        if count > self.count:
            for place, value in enumerate(self._row):
                self._numbers.array[self.count : count, place] = value
            self.count = count
        return self.rows


def rows_of(terms: Terms, columns: Columns, *, as_set: bool = True) -> tuple[Fields, np.ndarray]:
    """The fields and the streams of the rows of a batch.

    ``as_set``: without items that repeat one of the same instant.
    """
    end, start = (np.asarray(column, np.int64) for column in (columns.end, columns.start))
    nothing = np.zeros(len(end), np.int32)
    texts = {name: getattr(columns, name) for name in (*TERMS, "stream")}
    fields: Fields = {"end": end, "start": start}
    fields |= {name: nothing if text is None else terms.intern(text) for name, text in texts.items()}
    last: np.ndarray = np.ones(len(end), np.bool_)
    if columns.event is not None:
        last[:-1] = np.diff(np.asarray(columns.event)) != 0
    repeated = _repeats(fields, last) if as_set else None
    fields["last"] = last
    if repeated is not None:
        fields = {name: column[~repeated] for name, column in fields.items()}
    return fields, fields.pop("stream")


def _repeats(fields: Fields, last: np.ndarray) -> np.ndarray | None:
    """A mask of the rows of items that repeat an earlier one of their instant; None if there are none."""
    lasts = np.flatnonzero(last)
    ends = fields["end"][lasts]
    if rises(ends):
        return None
    tied = np.zeros(len(lasts), np.bool_)
    mark_ties(ends, tied)
    sizes = np.diff(lasts, prepend=-1)
    rows = np.flatnonzero(np.repeat(tied, sizes))
    end, start, *terms = (fields[name][rows] for name in ("end", "start", *TERMS, "stream"))
    first = firsts(SolutionTable(end, end, start, tuple(terms)), (start,))
    if first is None:
        return None
    repeated = np.zeros(len(last), np.bool_)
    if len(lasts) == len(last):
        repeated[rows] = ~first
        return repeated
    new = np.ones(len(last), np.bool_)
    new[rows] = first
    begins = lasts - sizes + 1
    # An item can only be a repetition if each of its rows came before in the instant, perhaps in different items.
    suspected = ~np.logical_or.reduceat(new, begins)
    matrix = np.column_stack([fields[name] for name in ("end", "start", *TERMS, "stream")])
    seen = set()
    for item in np.flatnonzero(np.isin(ends, ends[suspected])).tolist():
        own = slice(int(begins[item]), int(lasts[item]) + 1)
        stated = matrix[own].tobytes()
        repeated[own] = stated in seen
        seen.add(stated)
    return repeated


def number_events(fields: Fields, first: int) -> np.ndarray:
    """The number of each row's event, from ``first`` on; events that are equal as sets of triples have one number."""
    last = fields["last"]
    numbers = first + np.cumsum(last) - last
    lasts = np.flatnonzero(last)
    if len(lasts) == len(last) or rises(fields["end"][lasts]):
        return numbers
    begins = np.append(0, lasts[:-1] + 1)
    mixed = sum(fields[name].astype(np.uint64) * np.uint64(odd) for name, odd in _MIXING)
    keys = (np.add.reduceat(mixed, begins), *(fields[name][lasts] for name in ("graph", "start", "end")))
    order = np.lexsort(keys)
    alike = np.ones(len(order) - 1, np.bool_)
    for key in keys:
        alike &= np.diff(key[order]) == 0
    suspected = distinct_numbers(order[np.flatnonzero(alike)[:, None] + (0, 1)])
    known: dict[object, int] = {}
    for event in suspected.tolist():
        own = slice(int(begins[event]), int(lasts[event]) + 1)
        triples = frozenset(zip(*(fields[name][own].tolist() for name in ("s", "p", "o")), strict=True))
        identity = triples, *(int(fields[name][own.start]) for name in ("graph", "start", "end"))
        numbers[own] = known.setdefault(identity, int(numbers[own.start]))
    return numbers
