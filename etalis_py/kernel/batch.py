"""The input and the output of an executor: batches of complete instants, and reports.

Both exist as rows and as columns.  A batch converts itself to the other form on demand, once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

from etalis_py.events import Event

Row = tuple[Any, ...]
"""A solution as it is reported: end, start, then its terms as N-Triples spellings, ``""`` where unbound."""

Report = tuple[int, int, list[Row]]
"""The solutions of one instant: the number of the output, the instant, the rows in the output's order."""

_FEW = 256
"""A column of fewer terms than this is left plain: making an Arrow dictionary would take longer than it saves."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Events in the flat form, one triple a row, ordered by ``end``.

    ``end`` and ``start`` are int64 (microseconds); ``s``, ``p``, ``o``, ``stream`` and ``graph`` are Arrow arrays of
    N-Triples spellings, dictionary-encoded or not; ``stream`` and ``graph`` may be None if no event names one.
    Neighbouring rows with the same number in ``event`` are one event; if it is None, each row is one.
    """

    end: Any
    start: Any
    s: Any
    p: Any
    o: Any
    stream: Any = None
    event: Any = None
    graph: Any = None

    def __len__(self) -> int:
        return len(self.end)

    @property
    def triples(self) -> int:
        """The number of triples."""
        return len(self.end)

    @property
    def predicates(self) -> set[str]:
        """Those that occur."""
        return set(self.p.unique().to_pylist())

    @property
    def flat(self) -> Columns:
        """These columns themselves; ``Records`` has a property of the same name."""
        return self

    def rows(self, first: int, last: int) -> Columns:
        """Some of the rows, without a copy."""
        return Columns(
            self.end[first:last],
            self.start[first:last],
            self.s[first:last],
            self.p[first:last],
            self.o[first:last],
            None if self.stream is None else self.stream[first:last],
            None if self.event is None else self.event[first:last],
            None if self.graph is None else self.graph[first:last],
        )


@dataclass(frozen=True, slots=True)
class Records:
    """Events as the rows of a table, ordered by ``end``: all triples of an event have one subject.

    Times, ``stream`` and ``graph`` are as in ``Columns``.  ``s`` has the subject of each row; ``objects`` has a column
    of objects for each predicate, null if the row has none.  Every row has at least one object.
    """

    end: Any
    start: Any
    s: Any
    objects: Mapping[str, Any]
    stream: Any = None
    graph: Any = None

    def __len__(self) -> int:
        return len(self.end)

    @property
    def triples(self) -> int:
        """The number of triples."""
        return sum(len(column) - column.null_count for column in self.objects.values())

    @property
    def predicates(self) -> set[str]:
        """Those that occur."""
        return {p for p, objects in self.objects.items() if objects.null_count < len(objects)}

    @property
    def flat(self) -> Columns:
        """These events in the flat form, with one triple per row."""
        from etalis_py.streams.columns.wide import flat_form  # loads Arrow, which is loaded

        batch, _ = flat_form(self.end, self.start, self.s, self.objects, stream=self.stream, graph=self.graph)
        times = (batch.column(name).to_numpy() for name in ("end", "start"))
        more = (batch.column(name) if name in batch.schema.names else None for name in ("stream", "event", "graph"))
        return Columns(*times, *(batch.column(name) for name in "spo"), *more)

    def rows(self, first: int, last: int) -> Records:
        """Some of the events, without a copy."""
        return Records(
            self.end[first:last],
            self.start[first:last],
            self.s[first:last],
            {name: column[first:last] for name, column in self.objects.items()},
            None if self.stream is None else self.stream[first:last],
            None if self.graph is None else self.graph[first:last],
        )


InColumns = Columns | Records


class ColumnReport(Protocol):
    """The solutions of many instants for one output, in columns.  They become rows only on demand.

    ``outputs`` are the numbers of the queries that have solutions here: one, except for a family.  ``end``, ``start``
    and ``instants`` are int64, one for each solution, ordered by instant and within an instant in the output's order;
    ``terms`` are Arrow arrays of spellings, in the order of the output's columns.
    """

    output: int
    instants: Any
    end: Any
    start: Any
    terms: Sequence[Any]

    def __len__(self) -> int: ...
    @property
    def outputs(self) -> set[int]: ...

    def reports(self) -> list[Report]:
        """The solutions as tuples, in one report for each instant."""


def are_rows(reports: Sequence[Any]) -> bool:
    """Whether no report is in columns.

    There may be a report for each of a million instants, so this compares their types all at once; often there is only
    one, which is tested directly.
    """
    return type(reports[0]) is tuple if len(reports) == 1 else set(map(type, reports)) <= {tuple}


def as_reported(reports: Sequence[Any], *, one_by_one: bool) -> list[Any]:
    """Reports in order of time and output; if all are in columns they stay as they are.

    ``one_by_one``: all reports become rows, with a report for each instant.
    """
    if are_rows(reports):
        return list(reports)
    wide = [report for report in reports if not isinstance(report, tuple)]
    if len(wide) == len(reports) and not one_by_one:
        return wide
    rows = [part for r in reports for part in ((r,) if isinstance(r, tuple) else r.reports())]
    return sorted(rows, key=lambda report: (report[1], report[0]))


def extent(columns: InColumns) -> tuple[int, int, bool]:
    """The first and the last end, and whether all ends rise and no event starts after its end."""
    import numpy as np  # takes a while to import

    end, start = np.asarray(columns.end), np.asarray(columns.start)
    if not len(end):
        return 0, 0, False
    in_order = not (end[1:] < end[:-1]).any() and not (start > end).any()
    return int(end[0]), int(end[-1]), bool(in_order)


def cut_last_instant(columns: InColumns) -> tuple[InColumns, InColumns]:
    """All instants but the last, and the last, which may not be complete yet."""
    import numpy as np  # takes a while to import

    end = np.asarray(columns.end)
    cut = int(np.searchsorted(end, end[-1], "left"))
    return columns.rows(0, cut), columns.rows(cut, len(end))


def on_stream(columns: InColumns, name: str) -> InColumns:
    """The events, with those that name no stream assigned to this one."""
    import pyarrow as pa  # takes a while to import
    import pyarrow.compute as pc

    if columns.stream is None:
        only = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), len(columns)), pa.array([name]))
        return replace(columns, stream=only)
    named = pa.array(columns.stream).cast(pa.large_string()).fill_null("")
    if "" not in named.unique().to_pylist():
        return columns
    return replace(columns, stream=pc.if_else(pc.equal(named, ""), name, named).dictionary_encode())


def count_events(columns: InColumns) -> int:
    """How many events there are."""
    return len(columns) if isinstance(columns, Records) or columns.event is None else _count_runs(columns.event)


def _count_runs(column: Any) -> int:
    """How often the value changes from row to row, plus one for the first row."""
    import numpy as np  # takes a while to import

    values = np.asarray(column)
    return int((values[1:] != values[:-1]).sum()) + 1 if len(values) else 0


def concat_columns(one: Columns, other: Columns) -> Columns:
    """The rows of one, followed by the rows of the other."""
    import numpy as np  # takes a while to import
    import pyarrow as pa

    def joined(first: Any, second: Any) -> Any:
        chunks = [pa.array(part).cast(pa.large_string()) for part in (first, second)]
        return pa.concat_arrays(chunks)

    end, start = (
        np.concatenate([np.asarray(a), np.asarray(b)]) for a, b in ((one.end, other.end), (one.start, other.start))
    )

    def joined_names(first: Any, second: Any) -> Any:
        if first is None and second is None:
            return None
        return joined([""] * len(one) if first is None else first, [""] * len(other) if second is None else second)

    event = None
    if one.event is not None or other.event is not None:
        event = np.concatenate([_event_numbers(one), _event_numbers(other) + len(one)])
    s, p, o = (joined(getattr(one, name), getattr(other, name)) for name in "spo")
    stream, graph = joined_names(one.stream, other.stream), joined_names(one.graph, other.graph)
    return Columns(end, start, s, p, o, stream, event, graph)


def first_rows(columns: InColumns) -> Any:
    """The first row of each event."""
    import numpy as np  # takes a while to import

    if isinstance(columns, Records) or columns.event is None:
        return np.arange(len(columns))
    return np.flatnonzero(np.diff(_event_numbers(columns), prepend=-1))


def taken(columns: InColumns, places: Any) -> InColumns:
    """The rows at these places, in this order; the rows of an event stay beside each other."""
    import numpy as np  # takes a while to import
    import pyarrow as pa

    index = pa.array(places, pa.int64())

    def of(column: Any) -> Any:
        return None if column is None else column.take(index)

    end, start = (np.asarray(column)[places] for column in (columns.end, columns.start))
    names = {"s": of(columns.s), "stream": of(columns.stream), "graph": of(columns.graph)}
    if isinstance(columns, Records):
        objects = {predicate: of(column) for predicate, column in columns.objects.items()}
        return Records(end, start, objects=objects, **names)
    event = None if columns.event is None else _event_numbers(columns)[places]
    return Columns(end, start, p=of(columns.p), o=of(columns.o), event=event, **names)


def _event_numbers(columns: Columns) -> Any:
    """The number of each row's event, from 0."""
    import numpy as np  # takes a while to import

    if columns.event is None:
        return np.arange(len(columns))
    numbers = np.asarray(columns.event)
    return np.cumsum(np.diff(numbers, prepend=numbers[:1]) != 0)


class Batch:
    """Complete instants in order: ``rows`` are events ordered by end, ``columns`` the same in the flat form.

    ``through`` is the time that the batch reaches: every instant up to and including it is over.  ``records`` are the
    events of a batch that is a table of them, else None.
    """

    __slots__ = ("_columns", "_rows", "records", "through")

    def __init__(self, rows: Sequence[Event] | None, through: int, columns: InColumns | None = None) -> None:
        self._rows = rows
        self.records = columns if isinstance(columns, Records) else None
        self._columns = None if isinstance(columns, Records) else columns
        self.through = through

    @property
    def came_in_columns(self) -> bool:
        """Whether it was made from columns."""
        return self._rows is None

    @property
    def rows(self) -> Sequence[Event]:
        """The events."""
        if self._rows is None:
            self._rows = list(_events(self.columns))
        return self._rows

    @property
    def columns(self) -> Columns:
        """The triples, one a row."""
        if self._columns is None:
            self._columns = _columns(self._rows or ()) if self.records is None else self.records.flat
        return self._columns

    def instants(self) -> Iterator[tuple[int, list[Event]]]:
        """The events of each instant."""
        for end, events in groupby(self.rows, key=itemgetter(1)):
            yield end, list(events)

    def count(self) -> tuple[int, int]:
        """The number of instants that have a triple, and the number of triples."""
        if self._rows is None:
            columns = self._columns if self.records is None else self.records
            return (0, 0) if columns is None else (_count_runs(columns.end), columns.triples)
        return len({end for _, end, triples, _, _ in self._rows if triples}), sum(len(e[2]) for e in self._rows)

    def first_start(self) -> int | None:
        """The least start among the events of the first instant that has a triple; None if there is none."""
        if self._rows is None:
            given = self._columns if self.records is None else self.records
            if given is None or not len(given):
                return None
            import numpy as np  # takes a while to import

            end = np.asarray(given.end)
            return int(np.asarray(given.start)[: int(np.searchsorted(end, end[0], "right"))].min())
        there = [event for event in self._rows if event[2]]
        return min((event[0] for event in there if event[1] == there[0][1]), default=None)

    def divided(self, least: int) -> tuple[Batch, Batch]:
        """The first instants, with ``least`` rows of what the batch was made of or a few more, and the others."""
        if least >= len(self):
            return self, Batch((), self.through)
        if self._rows is not None:
            last = self._rows[least - 1][1]
            first = bisect_right(self._rows, last, key=itemgetter(1))
            return Batch(self._rows[:first], last), Batch(self._rows[first:], self.through)
        import numpy as np  # takes a while to import

        columns = self.columns if self.records is None else self.records
        end = np.asarray(columns.end)
        last = int(end[least - 1])
        first = int(np.searchsorted(end, last, "right"))
        rest = columns.rows(first, len(end))
        return Batch(None, last, columns.rows(0, first)), Batch(None, self.through, rest)

    def with_derived(self, derived: Iterable[Event]) -> Batch:
        """The batch with events that earlier stages derived, each after the other events of its instant."""
        more = list(derived)
        if not more:
            return self
        return Batch(sorted([*self.rows, *more], key=itemgetter(1)), self.through)

    def __len__(self) -> int:
        if self.records is not None:
            return len(self.records)
        return len(self._columns) if self._rows is None and self._columns is not None else len(self._rows or ())


def _events(columns: Columns) -> Iterator[Event]:
    start, end, *spo = (_list(column) for column in (columns.start, columns.end, columns.s, columns.p, columns.o))
    nameless = [""] * len(columns)
    streams, graphs = (
        nameless if names is None else [name or "" for name in _list(names)]
        for names in (columns.stream, columns.graph)
    )
    triples = zip(*spo, strict=True)
    if columns.event is None:
        # zip makes the tuples without a Python loop.
        yield from map(Event._make, zip(start, end, zip(triples), streams, graphs, strict=True))
        return
    rows = zip(_list(columns.event), start, end, streams, graphs, triples, strict=True)
    for _, same in groupby(rows, key=itemgetter(0)):
        (_, begun, ended, stream, graph, triple), *others = same
        yield Event._make((begun, ended, (triple, *(other[5] for other in others)), stream, graph))


def _list(column: Any) -> list[Any]:
    """The values of a NumPy or Arrow array; Arrow itself is slow to list those of a dictionary-encoded one."""
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    values: list[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column.tolist()
    return values


def _columns(events: Sequence[Event]) -> Columns:
    import numpy as np  # takes a while to import
    import pyarrow as pa

    rows = [(end, start, s, p, o, stream, g) for start, end, triples, stream, g in events for s, p, o in triples]
    ends, starts, *terms = zip(*rows, strict=True) if rows else ((),) * 7
    end, start = np.array(ends, np.int64), np.array(starts, np.int64)

    def texts(column: Sequence[str]) -> Any:
        """A column of texts as Arrow; for a few terms, a dictionary would cost more than it saves."""
        plain = pa.array(column, pa.large_string())
        return plain.dictionary_encode() if len(column) > _FEW else plain

    s, p, o = map(texts, terms[:3])
    stream, graph = (texts(column) if any(column) else None for column in terms[3:])
    numbers = None
    if any(len(event[2]) > 1 for event in events):
        numbers = np.array([number for number, event in enumerate(events) for _ in event[2]], np.int64)
    return Columns(end, start, s, p, o, stream, numbers, graph)
