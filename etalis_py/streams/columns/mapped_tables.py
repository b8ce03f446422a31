"""Tables → the flat form by a mapping: the same events as from the row reader, a batch at a time.

Some rows still go to the row reader: the first ones, until the clock of the stream is known; rows whose time cannot be
read, or that withdraw what they state; and whole batches if the mapping gives no time, or makes other blank nodes than
one of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from etalis_py.events.clock import MAX_TIME, MIN_TIME
from etalis_py.streams.columns.fill_templates import fill
from etalis_py.streams.columns.flat_form import constant, flat_batch
from etalis_py.streams.columns.merge_in_order import Chunk, merge_chunks
from etalis_py.streams.columns.native_literals import Column
from etalis_py.streams.columns.row_nodes import by_predicate, has_row_nodes, makes_blanks, row_nodes
from etalis_py.streams.columns.times import Times, native_times, spelled_times
from etalis_py.streams.columns.wide import interleaved, wide_batch
from etalis_py.streams.csv_mapping import RowMapping, states
from etalis_py.streams.elements import Item, StreamContext, in_lists
from etalis_py.streams.templates import RowTemplate


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Some rows of a source.  ``columns`` are the cells of those columns that the mapping uses, ``native`` the original
    columns, if they have types; ``by_rows`` reads the rows at given places with the row reader, as it has to read those
    that are ``odd``.  ``surplus``: the line where the first row of CSV ends that has more cells than the header, or 0.
    """

    columns: Mapping[str, Column]
    native: Mapping[str, pa.Array]
    size: int
    by_rows: Callable[[Sequence[int]], Iterator[Item]]
    odd: Any = None
    surplus: int = 0

    def since(self, first: int) -> SourceRows:
        """The table without its first rows."""
        if not first:
            return self
        columns = {n: Column(c.index.slice(first), c.texts, c.terms) for n, c in self.columns.items()}
        native = {name: column.slice(first) for name, column in self.native.items()}
        by_rows, odd = self.by_rows, None if self.odd is None else self.odd[first:]
        return SourceRows(columns, native, self.size - first, lambda places: by_rows([first + i for i in places]), odd)


def mapped(
    table: SourceRows, mapping: RowMapping, context: StreamContext, begun: Callable[[], bool] = lambda: True
) -> Iterator[Chunk]:
    """The events of a table, in the order of its rows; the first go to the row reader, until ``begun``."""
    blanks = makes_blanks(mapping) and not has_row_nodes(mapping)
    if blanks or not mapping.times or not mapping.triples or context.close_on_message:
        yield from in_lists(table.by_rows(range(table.size)))
        return
    first = 0
    while (context.times.clock is None or not begun()) and first < table.size:
        yield from in_lists(table.by_rows([first]))
        first += 1
    table = table.since(first)
    if table.size:
        yield from given(*rows_of(table, mapping, context), table.by_rows, context)


def rows_of(table: SourceRows, mapping: RowMapping, context: StreamContext) -> tuple[MappedRows, Any]:
    """The rows of a table in columns, and which of them are sure: the others are for the row reader."""
    times = _times(table, mapping, context)
    if mapping.retract is not None:
        times = times._replace(sure=times.sure & _stated(table, mapping.retract))
    if table.odd is not None:
        times = times._replace(sure=times.sure & ~table.odd)
    return _batch(table, times, by_predicate(mapping) if makes_blanks(mapping) else mapping, context), times.sure


def given(
    rows: MappedRows, sure: Any, by_rows: Callable[[Sequence[int]], Iterator[Item]], context: StreamContext
) -> Iterator[Chunk]:
    """The rows of a table in order, counted; those that are not sure are read by the row reader.  An error is raised
    after the rows before it.
    """
    read = with_others(rows, sure, by_rows, context)
    yield from merge_chunks(read.batch, read.row, read.others)
    if read.failure is not None:
        raise read.failure


def with_others(
    rows: MappedRows, sure: Any, by_rows: Callable[[Sequence[int]], Iterator[Item]], context: StreamContext
) -> ReadRows:
    """The rows of a table, counted, and what the row reader makes of those that are not sure."""
    at, counters = 0, context.counters
    failure: BaseException | None = None
    others: list[tuple[int, list[Item]]] = []
    try:
        for first, size, events, triples, missing, repeated, earliest, latest in _runs(rows, sure):
            at = first + size
            if not sure[first]:
                items: list[Item] = []
                others.append((first, items))
                items.extend(by_rows([first]))
                continue
            counters.messages += size
            counters.empty += size - events
            counters.events += events
            counters.triples += triples
            counters.missing += missing
            counters.duplicates += repeated
            context.earliest, context.latest = min(context.earliest, earliest), max(context.latest, latest)
    except (Exception, KeyboardInterrupt) as error:
        failure = error
    cut = int(np.searchsorted(rows.row, at))
    return ReadRows(rows.batch.slice(0, cut), rows.row[:cut], others, failure)


def _stated(table: SourceRows, retract: RowTemplate) -> Any:
    """Which rows withdraw nothing."""
    texts = fill(retract, table.columns, table.size)
    distinct = np.array([*map(states, texts.dictionary.to_pylist()), True])
    return distinct[np.asarray(pc.fill_null(texts.indices, len(distinct) - 1))]


def _times(table: SourceRows, mapping: RowMapping, context: StreamContext) -> Times:
    bounds = [_bound(template, table, mapping, context) for template in mapping.times]
    if len(bounds) == 1:
        return bounds[0]
    start, end = bounds
    # A bound that is an interval itself counts by its outer end; the row reader refuses rows that end before they
    # start.
    return Times(start.start, end.end, start.sure & end.sure & (start.start <= end.end))


def _bound(template: RowTemplate, table: SourceRows, mapping: RowMapping, context: StreamContext) -> Times:
    if template.is_hole and not mapping.time_format:
        native = table.native.get(template.holes[0])
        if native is not None and (times := native_times(native, context)) is not None:
            return times
    texts = fill(template, table.columns, table.size)
    distinct = spelled_times(texts.dictionary, mapping, context)
    index = np.asarray(pc.fill_null(texts.indices, -1))
    if len(distinct.sure) == table.size and bool((index == np.arange(table.size)).all()):
        return distinct  # each row has a text of its own
    if not len(distinct.sure):
        nothing = np.zeros(table.size, np.int64)
        return Times(nothing, nothing, np.zeros(table.size, bool))
    return Times(distinct.start[index], distinct.end[index], distinct.sure[index] & (index >= 0))


@dataclass(slots=True)
class MappedRows:
    """A batch in the flat form, with the row of the table that each triple comes from; and how many triples of each row
    of the table were left out, because a cell is missing or the row has them already.

    A batch of records has a row for each event; then ``sizes`` has the number of its triples.
    """

    batch: pa.RecordBatch
    row: Any
    missing: Any
    repeated: Any
    sizes: Any = None

    @property
    def end(self) -> Any:
        """The ends of the triples."""
        return np.asarray(self.batch.column("end"))


@dataclass(frozen=True, slots=True)
class ReadRows:
    """The rows of a table up to one that cannot be read: those in columns, each with its place in the table, and the
    items of the others, with their places.  ``failure`` is the error in the row after them.
    """

    batch: pa.RecordBatch
    row: Any
    others: Sequence[tuple[int, Sequence[Item]]]
    failure: BaseException | None = None


def _batch(table: SourceRows, times: Times, mapping: RowMapping, context: StreamContext) -> MappedRows:
    size, width = table.size, len(mapping.triples)
    filled = _subjects(table, times, mapping, context)
    if context.as_records and (predicates := _columns_of(mapping)) is not None:
        return _records(table, times, mapping, context, predicates, filled)

    def column(place: int) -> pa.Array:
        """The terms in one position, with the triples of a row next to each other."""
        arrays = []
        for triple in mapping.triples:
            template = triple[place]
            if id(template) not in filled:
                filled[id(template)] = fill(template, table.columns, size)
            arrays.append(filled[id(template)])
        return interleaved(arrays)

    terms = [column(place) for place in range(3)]
    there = [np.asarray(array.is_valid()) if array.null_count else None for array in terms]
    present = np.ones(size * width, bool)
    for mask in there:
        if mask is not None:
            present &= mask
    absent = ~present
    absent.reshape(size, width)[:, ~np.array(mapping.counted)] = False
    repeated = _repeated(terms, present.reshape(size, width), _comparable(mapping))
    kept = present & ~repeated & _each(times.sure, width)
    row = _each(np.arange(size), width)
    more: dict[str, pa.Array | None] = {"event": pa.array(row) if width > 1 else None}
    more |= {name: interleaved([column] * width) for name, column in _names(table, mapping, context).items()}
    batch = flat_batch(_each(times.end, width), _each(times.start, width), terms, **more)
    if not kept.all():
        batch, row = batch.filter(pa.array(kept)), row[kept]
    return MappedRows(batch, row, _by_row(absent, size, width), _by_row(repeated & present, size, width))


def _each(values: Any, width: int) -> Any:
    """Each value as many times as a row has triples."""
    return values if width == 1 else np.repeat(values, width)


def _by_row(marked: Any, size: int, width: int) -> Any:
    """How many triples of each row are marked."""
    return marked.reshape(size, width).sum(axis=1) if marked.any() else np.zeros(size, np.int64)


def _names(table: SourceRows, mapping: RowMapping, context: StreamContext) -> dict[str, pa.Array]:
    """The stream and the graph of each row, if there are any."""
    named, size, stream = {}, table.size, context.stream
    if mapping.stream is not None:
        named["stream"] = _or_else(fill(mapping.stream, table.columns, size), stream)
    elif stream:
        named["stream"] = constant(stream, size)
    if mapping.graph is not None:
        named["graph"] = _or_else(fill(mapping.graph, table.columns, size), "")
    return named


def _columns_of(mapping: RowMapping) -> list[str] | None:
    """The predicates of a mapping that makes a record of each row: one subject, and predicates that all differ."""
    first = mapping.triples[0][0]
    predicates = [p.fill({}) for s, p, _ in mapping.triples if s == first and not p.holes]
    return predicates if len(set(predicates)) == len(mapping.triples) else None


def _subjects(table: SourceRows, times: Times, mapping: RowMapping, context: StreamContext) -> dict[int, pa.Array]:
    """The blank node of each row by the templates of the subjects, if the mapping makes one."""
    if not makes_blanks(mapping):
        return {}
    objects = [fill(o, table.columns, table.size) for _, _, o in mapping.triples]
    there = pc.is_valid(fill(mapping.triples[0][0], table.columns, table.size))
    index = pc.if_else(there, pa.array(np.arange(table.size, dtype=np.int32)), pa.scalar(None, pa.int32()))
    nodes = pa.array(row_nodes(mapping, objects, times, context.stream), pa.string())
    subjects = pa.DictionaryArray.from_arrays(index, nodes)
    return {id(s): subjects for s, _, _ in mapping.triples}


def _records(
    table: SourceRows,
    times: Times,
    mapping: RowMapping,
    context: StreamContext,
    predicates: list[str],
    subjects: Mapping[int, pa.Array],
) -> MappedRows:
    """The rows as records; ``subjects``: those that no template fills."""
    size, template = table.size, mapping.triples[0][0]
    subject = interleaved([subjects[id(template)] if subjects else fill(template, table.columns, size)])
    objects = [interleaved([fill(o, table.columns, size)]) for _, _, o in mapping.triples]
    sizes, missing = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for column, counted in zip(objects, mapping.counted, strict=True):
        there = np.asarray(column.is_valid())
        sizes += there
        if counted:
            missing += ~there
    if subject.null_count:
        nothing = ~np.asarray(subject.is_valid())
        sizes[nothing], missing[nothing] = 0, sum(mapping.counted)
    kept = (sizes > 0) & times.sure
    columns = dict(zip(predicates, objects, strict=True))
    batch = wide_batch(times.end, times.start, subject, columns, **_names(table, mapping, context))
    row = np.arange(size)
    if not kept.all():
        batch, row = batch.filter(pa.array(kept)), row[kept]
    return MappedRows(batch, row, missing, np.zeros(size, np.int64), sizes[row])


def _or_else(named: pa.DictionaryArray, default: str) -> pa.DictionaryArray:
    """The names, with the default where there is none."""
    named = interleaved([named])
    names = pa.concat_arrays([named.dictionary, pa.array([default], pa.string())])
    return pa.DictionaryArray.from_arrays(pc.fill_null(named.indices, len(names) - 1), names)


def _comparable(mapping: RowMapping) -> list[tuple[int, int]]:
    """The triples of a row that may equal an earlier one, each with that one: their predicates are not two constants
    that differ.  In a wide table hardly any are, where all pairs would be more than its cells.
    """
    predicates = [None if p.holes else p.fill({}) for _, p, _ in mapping.triples]
    places: dict[str | None, list[int]] = {}
    pairs = []
    for later, predicate in enumerate(predicates):
        others = range(later) if predicate is None else places.get(predicate, []) + places.get(None, [])
        pairs += [(later, earlier) for earlier in others]
        places.setdefault(predicate, []).append(later)
    return pairs


def _repeated(terms: list[pa.DictionaryArray], there: Any, pairs: list[tuple[int, int]]) -> Any:
    """Which triples equal an earlier one of the same row: an event is a set."""
    same = {(later, earlier): there[:, later] & there[:, earlier] for later, earlier in pairs}
    for place in (1, 0, 2):  # the predicates of a row mostly differ
        if not same:
            break
        # Two templates may spell the same term, so the dictionary is reduced to distinct terms.
        array = terms[place]
        distinct = np.append(np.asarray(array.dictionary.dictionary_encode().indices), 0)
        code = distinct[np.asarray(pc.fill_null(array.indices, len(distinct) - 1))].reshape(there.shape)
        same = {pair: alike & (code[:, pair[0]] == code[:, pair[1]]) for pair, alike in same.items()}
        same = {pair: alike for pair, alike in same.items() if alike.any()}
    repeated = np.zeros(there.shape, bool)
    for (later, _), alike in same.items():
        repeated[:, later] |= alike
    return repeated.ravel()


def _runs(rows: MappedRows, sure: Any) -> Iterator[tuple[int, ...]]:
    """The rows of a table in runs: each row that is not sure by itself, and what is between them.

    Of each run: its first row, how many rows, events and triples it has, how many triples are missing and repeated, and
    its earliest and its latest time.
    """
    size, odd = len(sure), np.flatnonzero(~sure)
    first = np.unique(np.concatenate(([0], odd, odd + 1)))
    first = first[: np.searchsorted(first, size)]
    is_event, earliest, latest = np.zeros(size, bool), np.full(size, MAX_TIME), np.full(size, MIN_TIME)
    is_event[rows.row], earliest[rows.row], latest[rows.row] = True, rows.end, rows.end
    if rows.sizes is None:
        triples = np.diff(np.searchsorted(rows.row, np.append(first, size)))
    else:
        sizes = np.zeros(size, np.int64)
        sizes[rows.row] = rows.sizes
        triples = np.add.reduceat(sizes, first)
    sums = (np.add.reduceat(each, first, dtype=np.int64) for each in (is_event, rows.missing, rows.repeated))
    events, missing, repeated = sums
    times = np.minimum.reduceat(earliest, first), np.maximum.reduceat(latest, first)
    columns = first, np.diff(first, append=size), events, triples, missing, repeated, *times
    return zip(*(column.tolist() for column in columns), strict=True)
