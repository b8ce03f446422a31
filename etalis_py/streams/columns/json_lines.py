"""JSON lines → the flat form: whole blocks are decoded at once; a compiled loop reads their triples, or a mapping their
keys in columns.

A usual line has a time and usual triples (``turtle``) or, with a mapping, only values that are texts, numbers and
booleans.  Every other line goes through the row reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, UnsetType

from etalis_py.events.errors import StreamError
from etalis_py.garbage import no_collections
from etalis_py.streams.columns.fill_templates import PLAIN_IRI, guessed
from etalis_py.streams.columns.flat_form import constant, flat_batch
from etalis_py.streams.columns.json_keys import Keys, keys_of
from etalis_py.streams.columns.mapped_tables import MappedRows, SourceRows, given, mapped
from etalis_py.streams.columns.merge_in_order import Chunk
from etalis_py.streams.columns.native_literals import Column, patched, spelled, untyped
from etalis_py.streams.columns.shared_blocks import events_of
from etalis_py.streams.columns.times import Times, native_times, spelled_times
from etalis_py.streams.columns.turtle import Forms, forms_of, triples_of
from etalis_py.streams.csv_mapping import RowMapping, read_mapping
from etalis_py.streams.elements import Item, StreamContext, in_lists
from etalis_py.streams.jsonl import NO_JSON, JsonOptions, Number, cell_of, is_turtle, joined, line_events, term_of
from etalis_py.streams.line_blocks import Block, line_blocks
from etalis_py.streams.record_keys import TIME_KEYS
from etalis_py.streams.sources import OpenedInput, decoded
from etalis_py.streams.templates import text_template

BLOCK = 1 << 22
_SPECIAL = {"punctuate", "retract", "retracted", "triples", "time", "start", "end"}
_BOUNDARY = re.compile(rb"\}[ \t\r]*+\n[ \t\r]*+(?=\{)")
_TIME = text_template("{time}")
# The mapping for the times of plain lines: no format, no zone.
_PLAIN = read_mapping({"subject": ":s", "predicate": ":p", "object": ":o", "time": "{time}"})


class _Line(msgspec.Struct, gc=False):
    """A line of the usual shape."""

    triples: Any
    time: Any = UNSET
    start: Any = None
    end: Any = None
    graph: Any = None
    stream: Any = None
    punctuate: Any = UNSET
    retract: Any = None
    retracted: Any = None


def json_chunks(source: OpenedInput, context: StreamContext, reading: JsonOptions) -> Iterator[Chunk]:
    """The events of JSON lines, in order."""
    in_lists = reading.mapping is not None and any("[]" in name for name in reading.mapping.used)
    forms = forms_of(reading.names, is_turtle(reading.prefixes))

    def events(block: Block) -> Iterator[Chunk]:
        lines = Lines(*block.lines, context, reading)
        records, odd = lines.records()
        if in_lists:
            odd[:] = True  # a record for each element of a list: the row reader makes them
        if lines.mapping is None:
            yield from _triples(records, odd, lines, context, forms)
        else:
            yield from _objects(records, odd, lines.mapping, lines, context)

    apart, numbered = context.blocks is not None, not context.reads_ahead
    for block in line_blocks(source, BLOCK, apart=apart, among=context.among, numbered=numbered):
        yield from events_of(block, partial(events, block), context) or ()


def _is_line_by_line(whole: bytes) -> bool:
    """Whether every line begins and ends with a brace, so that none has less than an object: the decoder of a block
    does not look at lines.
    """
    if whole.lstrip(b" \t\r")[:1] != b"{" or whole.rstrip()[-1:] != b"}":
        return False
    data = np.frombuffer(whole, np.uint8)
    ends = np.flatnonzero(data[:-1] == ord("\n"))
    usual = (data[ends - 1] == ord("}")).all() and (data[ends + 1] == ord("{")).all()
    return bool(usual) or len(_BOUNDARY.findall(whole)) == len(ends)


class Lines:
    """The lines of a block: their records and, for the row reader, the lines themselves."""

    def __init__(self, whole: bytes, number: int, context: StreamContext, reading: JsonOptions) -> None:
        self._whole, self._number, self._context, self._reading = whole, number, context, reading
        self._lines: list[bytes] = []
        self._places: list[int] | None = None  # of the lines that are not blank, if some are

    @property
    def mapping(self) -> RowMapping | None:
        """The mapping, with whatever the records so far have if it takes the rest."""
        growing = self._reading.growing
        return self._reading.mapping if growing is None else growing.now

    @no_collections()
    def records(self) -> tuple[Sequence[Any], Any]:
        """The records, one for each line that is not blank, and which of them only the row reader understands."""
        if _is_line_by_line(self._whole):
            records = self._decoded()
            if records is None and self._has_grown():
                records = self._decoded()
            if records is not None and len(records) == self._whole.count(b"\n") + (not self._whole.endswith(b"\n")):
                return records, np.zeros(len(records), np.bool_)
        decoder = decoder_of(self.mapping)
        lines = self._split()
        self._places = [place for place, line in enumerate(lines) if line and not line.isspace()]
        records, nothing = [], decoder.decode(nothing_of(self.mapping))
        odd = np.zeros(len(self._places), np.bool_)
        for n, place in enumerate(self._places):
            try:
                lines[place].decode()
                records.append(decoder.decode(lines[place]))
            except (UnicodeDecodeError, *NO_JSON):
                records.append(nothing)
                odd[n] = True
        return records, odd

    def is_apart(self, name: str, value: Any) -> bool:
        """Whether a list or an object under a name is no value of its own: without ``rest`` it always is."""
        growing = self._reading.growing
        return growing is not None and growing.is_apart(name, value, self._context)

    def _decoded(self) -> list[Any] | None:
        try:
            self._whole.decode()
            records: list[Any] = decoder_of(self.mapping).decode_lines(self._whole)
        except (UnicodeDecodeError, *NO_JSON):
            return None
        return records

    def _has_grown(self) -> bool:
        """Let the mapping grow by the keys of these lines, if it takes the rest."""
        growing, before = self._reading.growing, self.mapping
        if growing is None:
            return False
        try:
            for record in msgspec.json.Decoder(float_hook=Number).decode_lines(self._whole):
                growing.take(record)
        except (*NO_JSON, AttributeError, StreamError):
            pass
        return self.mapping is not before

    def _split(self) -> list[bytes]:
        if not self._lines:
            self._lines = self._whole.split(b"\n")
        return self._lines

    def __call__(self, records: Sequence[int]) -> Iterator[Item]:
        """What the row reader makes of some records."""
        lines, places, context = self._split(), self._places, self._context
        for record in records:
            place = record if places is None else places[record]
            number = self._number + place
            for line, _ in decoded(lines[place], number, context.report):
                if line and not line.isspace():
                    yield from line_events(line, number, context, self._reading)


def nothing_of(mapping: RowMapping | None) -> bytes:
    """A line that can be decoded and says nothing."""
    return b'{"triples":""}' if mapping is None else b"{}"


def decoder_of(mapping: RowMapping | None) -> Any:
    """The decoder of a line; a line with a key that a mapping with ``rest`` does not know yet cannot be decoded."""
    return _decoder(_Line if mapping is None else _keys(mapping).struct)


@lru_cache(maxsize=64)
def _decoder(struct: type[msgspec.Struct]) -> Any:
    return msgspec.json.Decoder(struct, float_hook=Number)


def _keys(mapping: RowMapping) -> Keys:
    """The keys of an object that matter."""
    unset = frozenset({"punctuate", *({"triples"} - mapping.used)})
    special = _SPECIAL.difference(TIME_KEYS) if mapping.times else _SPECIAL
    return keys_of(mapping.used | special, unset, closed=mapping.rest is not None)


def _of_kind(values: Sequence[Any]) -> set[type]:
    return set(map(type, values))


def _mark(values: Sequence[Any], nothing: Any, odd: Any) -> None:
    """Mark the records that have a value."""
    if _of_kind(values) != {type(nothing)}:
        odd |= np.fromiter((value is not nothing for value in values), bool, len(values))


# --- triples ---


def _triples(records: Sequence[Any], odd: Any, lines: Lines, context: StreamContext, forms: Forms) -> Iterator[Chunk]:
    """Lines with triples."""
    first = 0
    while context.times.clock is None and first < len(records):
        yield from in_lists(lines([first]))
        first += 1
    if first < len(records):
        rows, sure = triple_rows(records[first:], odd[first:].copy(), context, forms)
        yield from given(rows, sure, lambda places: lines([first + place for place in places]), context)


def triple_rows(records: Sequence[Any], odd: Any, context: StreamContext, forms: Forms) -> tuple[MappedRows, Any]:
    """Lines with triples in columns, and which of them are sure; ``odd`` is changed."""
    size = len(records)
    for name in ("retract", "retracted"):
        _mark(list(map(attrgetter(name), records)), None, odd)
    _mark(list(map(attrgetter("punctuate"), records)), UNSET, odd)
    times = _read_times(_times_of(records), context)
    texts = list(map(attrgetter("triples"), records))
    if _of_kind(texts) != {str}:
        texts = _texts(texts, odd)
    defaults = {"graph": "", "stream": context.stream}
    names = {name: _names(list(map(attrgetter(name), records)), name, odd, defaults[name]) for name in defaults}
    triples = triples_of(texts, odd, forms)
    sure = times.sure & triples.usual
    kept = sure[triples.record]
    record, terms = triples.record, triples.terms
    if not kept.all():
        record, terms = record[kept], [term.filter(pa.array(kept)) for term in terms]
    count = len(record)
    more = {name: None if column is None else column.take(pa.array(record)) for name, column in names.items()}
    if context.stream and more["stream"] is None:
        more["stream"] = constant(context.stream, count)
    several = count > 1 and bool((record[1:] == record[:-1]).any())
    more["event"] = pa.array(record) if several else None
    batch = flat_batch(times.end[record], times.start[record], terms, **more)
    return MappedRows(batch, record, np.zeros(size, np.int64), triples.repeated), sure


def _texts(values: Sequence[Any], odd: Any) -> list[str]:
    """The texts of ``triples``; a record in which it has another shape is odd."""
    texts = []
    for record, triples in enumerate(values):
        if type(triples) is list and len(triples) == 1:
            (triples,) = triples
            if type(triples) is str and not triples.rstrip().endswith("."):
                triples += " ."
        elif type(triples) is list and _of_kind(triples) <= {str}:
            triples = joined(triples)
        if type(triples) is not str:
            odd[record] = True
            triples = ""
        texts.append(triples)
    return texts


def _names(values: Sequence[Any], key: str, odd: Any, default: str) -> pa.DictionaryArray | None:
    """A column of names of graphs or streams, with the default where a line has none; None if no line has one.

    Values that are no names, and blank nodes, are odd.
    """
    kinds = _of_kind(values)
    if kinds == {type(None)}:
        return None
    if not kinds <= {str, type(None)}:
        odd |= np.fromiter((not isinstance(value, str | None) for value in values), bool, len(values))
        values = [value if isinstance(value, str) else None for value in values]
    column = pa.array(values, pa.string()).dictionary_encode()
    names = column.dictionary
    index = column.indices.fill_null(len(names))
    blank = pc.starts_with(names, "_:")
    if pc.any(blank).as_py():
        odd |= np.append(np.asarray(blank), False)[np.asarray(index)]
    bulk = pc.binary_join_element_wise("<", names, ">", "")
    terms = patched(bulk, pc.match_substring_regex(names, PLAIN_IRI), names, lambda name: term_of(name, key))
    return pa.DictionaryArray.from_arrays(index, pa.concat_arrays([terms, pa.array([default], pa.string())]))


def _times_of(records: Sequence[Any]) -> list[Any]:
    """The times of lines as JSON has them: ``time``, otherwise a list of ``start`` and ``end``; None without one."""
    times = [record.time for record in records]
    if UnsetType in _of_kind(times):
        bounds = zip(map(attrgetter("start"), records), map(attrgetter("end"), records), strict=True)
        pairs = [None if start is None or end is None else [start, end] for start, end in bounds]
        times = [pair if time is UNSET else time for time, pair in zip(times, pairs, strict=True)]
    return times


def _read_times(values: Sequence[Any], context: StreamContext) -> Times:
    """The times of lines: numbers, spellings, or lists of two; anything else is left to the row reader."""
    size = len(values)
    kinds = _of_kind(values)
    if kinds == {int}:
        try:
            times = native_times(pa.array(values, pa.int64()), context)
        except (OverflowError, pa.ArrowInvalid):
            times = None
        if times is not None:
            return times
    if kinds == {str}:
        encoded = pa.array(values, pa.string())
        return spelled_times(encoded, _PLAIN, context)
    if kinds == {Number}:
        times = spelled_times(pa.array(values, pa.string()), _PLAIN, context)
        clock = context.times.clock
        return times if clock is not None and clock.kind == "integer" else _unknown(size)
    if kinds == {list} and all(len(value) == 2 for value in values):
        start, end = (_read_times([value[place] for value in values], context) for place in (0, 1))
        return Times(start.start, end.end, start.sure & end.sure & (start.start <= end.end))
    times = _unknown(size)
    if len(kinds) > 1:
        for kind in kinds & {int, str, Number, list}:
            places = [place for place, value in enumerate(values) if type(value) is kind]
            some = _read_times([values[place] for place in places], context)
            for column, part in zip(times, some, strict=True):
                column[places] = part
    return times


def _unknown(size: int) -> Times:
    return Times(np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, bool))


# --- plain objects ---


def _objects(
    records: Sequence[Any], odd: Any, mapping: RowMapping, lines: Lines, context: StreamContext
) -> Iterator[Chunk]:
    """Plain objects by a mapping."""
    table, mapping = object_table(records, odd.copy(), mapping, lines)

    def begun() -> bool:
        """Whether there is an event, or the row reader has said why there is none."""
        return bool(context.counters.events or context.unmade)

    yield from mapped(table, mapping, context, begun)


def object_table(records: Sequence[Any], odd: Any, mapping: RowMapping, lines: Lines) -> tuple[SourceRows, RowMapping]:
    """Plain objects as a table, with the mapping for it, which has times; ``odd`` is changed."""
    keys = _keys(mapping)
    if mapping.rest is not None:
        keys.strange(records, odd)
    for name in {"retract", "retracted"} - mapping.used:
        _mark(keys.values(records, name), None, odd)
    for name in {"punctuate", *({"triples"} - mapping.used)}:
        _mark(keys.values(records, name), UNSET, odd)
    if not mapping.times:
        for name in ("start", "end"):
            _mark(keys.values(records, name), None, odd)
        mapping = replace(mapping, times=(_TIME,), used=mapping.used | {"time"})
    values = {name: keys.values(records, name) for name in mapping.used}
    needed = [values[name] for name in mapping.columns_of_terms]
    if needed and all(None in column or "" in column for column in needed):
        odd |= np.fromiter((not any(map(_is_there, row)) for row in zip(*needed, strict=True)), bool, len(records))
    for template in mapping.times:
        if not template.is_hole:  # the row reader asks for all of its keys
            for hole in template.holes:
                if None in values[hole] or "" in values[hole]:
                    odd |= np.fromiter((not _is_there(value) for value in values[hole]), bool, len(records))
    whole = {name: _integers(column) for name, column in values.items()}
    columns = {
        name: _column(column, name, odd, lines.is_apart, typed=name in mapping.columns_of_terms)
        if (numbers := whole[name]) is None
        else _of_integers(numbers)
        for name, column in values.items()
    }
    native = {
        hole: numbers
        for template in mapping.times
        for hole in template.holes
        if (numbers := whole[hole]) is not None and not numbers.null_count
    }
    return SourceRows(columns, native, len(records), lines, odd), mapping


def _is_there(value: Any) -> bool:
    return value is not None and value != ""


def _integers(values: Sequence[Any]) -> pa.Int64Array | None:
    """The values of a key if they are integers, as a column; None if some are not, or are too large for one."""
    kinds = _of_kind(values)
    if int not in kinds or not kinds <= {int, type(None)}:
        return None
    try:
        return pa.array(values, pa.int64())
    except (OverflowError, pa.ArrowInvalid):
        return None


def _of_integers(values: pa.Int64Array) -> Column:
    encoded = values.dictionary_encode()
    texts = encoded.dictionary.cast(pa.string())
    return Column(encoded.indices, texts, guessed(texts))


def _column(values: Sequence[Any], name: str, odd: Any, is_apart: Callable[[str, Any], bool], *, typed: bool) -> Column:
    """The values of a key; records in which one cannot be a cell are odd, unless it is read under other names.

    Terms are made of them if ``typed``.
    """
    kinds = _of_kind(values) - {type(None)}
    if kinds == {str} and not typed:
        return untyped(pa.array(values, pa.string()))
    if kinds == {str} or kinds == {bool}:
        return spelled(pa.array(values, pa.string() if kinds == {str} else pa.bool_()))
    if kinds and kinds <= {int, Number}:
        texts = values if kinds == {Number} else [None if value is None else str(value) for value in values]
        encoded = pa.array(texts, pa.string()).dictionary_encode()
        return Column(encoded.indices, encoded.dictionary, guessed(encoded.dictionary))
    distinct: dict[tuple[type, Any], int] = {}
    cells: dict[tuple[str, str], int] = {}
    index: list[int | None] = []
    for n, value in enumerate(values):
        if value is None or isinstance(value, list | dict | UnsetType):
            odd[n] |= value is not None and not is_apart(name, value)
            index.append(None)
            continue
        place = distinct.get((type(value), value))
        if place is None:
            cell = cell_of(value, name)
            place = cells.setdefault((cell, cell.term), len(cells))  # type: ignore[attr-defined]
            distinct[type(value), value] = place
        index.append(place)
    texts, terms = zip(*cells, strict=True) if cells else ((), ())
    return Column(pa.array(index, pa.int32()), pa.array(texts, pa.string()), pa.array(terms, pa.string()))
