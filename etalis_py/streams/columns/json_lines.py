"""JSON lines → the flat form: whole blocks are decoded at once; the N-Quads scanner cuts their triples, or a mapping
reads their keys in columns.

A usual line has ``time`` and ``triples`` in canonical N-Triples without blank nodes or, with a mapping, only values
that are texts, numbers and booleans.  Every other line goes through the row reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import UNSET

from etalis_py.streams.columns import scanning
from etalis_py.streams.columns.filling import guessed
from etalis_py.streams.columns.flat import constant, flat_batch
from etalis_py.streams.columns.mapped import Chunk, Rows, Table, given, mapped
from etalis_py.streams.columns.native import Column, spelled
from etalis_py.streams.columns.nquads import SHORTEST, gathered
from etalis_py.streams.columns.times import Times, native_times, spelled_times
from etalis_py.streams.csv_mapping import RowMapping, read_mapping
from etalis_py.streams.elements import Context, Item, in_lists
from etalis_py.streams.errors import StreamError
from etalis_py.streams.jsonl import Number, Reading, cell_of, jsonl_events, line_events
from etalis_py.streams.sources import Source, byte_blocks, decoded, whole_lines
from etalis_py.streams.templates import text_template

BLOCK = 1 << 22
_OTHER = ("start", "end", "graph", "stream", "punctuate", "retract", "retracted")
_SPECIAL = {"punctuate", "retract", "retracted", "triples", "time", "start", "end"}
_BOUNDARY = re.compile(rb"\}[ \t\r]*+\n[ \t\r]*+(?=\{)")
_PRESENT = {"punctuate", "triples"}  # these keys count even if their value is null
_TIME = text_template("{time}")
# The mapping for the times of plain lines: no format, no zone.
_PLAIN = read_mapping({"subject": ":s", "predicate": ":p", "object": ":o", "time": "{time}"})


class _Line(msgspec.Struct):
    """A line of the usual shape."""

    triples: str
    time: Any = None
    start: Any = None
    end: Any = None
    graph: Any = None
    stream: Any = None
    punctuate: Any = UNSET
    retract: Any = None
    retracted: Any = None


def json_chunks(source: Source, context: Context, reading: Reading) -> Iterator[Chunk]:
    """The events of JSON lines, in order."""
    decoder = _decoder(reading)
    for block in whole_lines(source, byte_blocks(source, BLOCK)):
        assert block is not None
        whole, number = block
        records = None
        if decoder is not None and _is_line_by_line(whole):
            try:
                whole.decode()
                records = decoder.decode_lines(whole)
            except (UnicodeDecodeError, msgspec.DecodeError):
                pass  # the row reader says what is wrong, and reads the rest
        if records is None or len(records) != whole.count(b"\n") + (not whole.endswith(b"\n")):
            yield from in_lists(jsonl_events(decoded(whole, number, context.report), context, reading))
            continue
        lines = _Lines(whole, number, context, reading)
        if reading.mapping is None:
            yield from _triples(records, lines, context)
        else:
            yield from _objects(records, reading.mapping, lines, context)


def _is_line_by_line(whole: bytes) -> bool:
    """Whether every line begins and ends with a brace, so that none has less than an object: the decoder of a block
    does not look at lines.
    """
    if whole[:1] != b"{" or whole.rstrip()[-1:] != b"}":
        return False
    data = np.frombuffer(whole, np.uint8)
    ends = np.flatnonzero(data[:-1] == ord("\n"))
    usual = (data[ends - 1] == ord("}")).all() and (data[ends + 1] == ord("{")).all()
    return bool(usual) or len(_BOUNDARY.findall(whole)) == len(ends)


class _Lines:
    """Lines of a block for the row reader."""

    def __init__(self, whole: bytes, number: int, context: Context, reading: Reading) -> None:
        self._whole, self._number, self._context, self._reading = whole, number, context, reading
        self._lines: list[bytes] = []

    def __call__(self, places: Sequence[int]) -> Iterator[Item]:
        if not self._lines:
            self._lines = self._whole.split(b"\n")
        for place in places:
            line = self._lines[place].decode()
            if line and not line.isspace():
                yield from line_events(line, self._number + place, self._context, self._reading)


def _decoder(reading: Reading) -> Any:
    """The decoder of a line; None if a mapping reaches into nested objects."""
    mapping = reading.mapping
    if mapping is None:
        return msgspec.json.Decoder(_Line, float_hook=Number)
    names = sorted(mapping.used | _SPECIAL)
    if any("." in name or "[]" in name for name in names):
        return None
    absent = dict.fromkeys(_PRESENT - mapping.used, UNSET)
    fields = [(f"f{i}", Any, msgspec.field(default=absent.get(name), name=name)) for i, name in enumerate(names)]
    return msgspec.json.Decoder(msgspec.defstruct("Plain", fields), float_hook=Number)


def _of_kind(values: Sequence[Any]) -> set[type]:
    return set(map(type, values))


# --- triples ---


def _triples(records: Sequence[Any], lines: _Lines, context: Context) -> Iterator[Chunk]:
    """Lines with triples."""
    size = len(records)
    times = [record.time for record in records]
    odd = np.zeros(size, bool)
    for name in _OTHER:
        absent = UNSET if name in _PRESENT else None
        values = list(map(attrgetter(name), records))
        if _of_kind(values) != {type(absent)}:
            odd |= np.fromiter((value is not absent for value in values), bool, size)
    first = 0
    while context.times.clock is None and first < size:
        yield from in_lists(lines([first]))
        first += 1
    if first == size:
        return
    read = _read_times(times, context)
    rows, usual = _scanned([record.triples for record in records], odd)
    sure = read.sure & usual
    skipped = np.arange(size) < first
    kept = sure[rows[0][:, 8]] & ~skipped[rows[0][:, 8]]
    batch = _flat(rows[0][kept], rows[1], read, context)
    nothing = np.zeros(size, np.int64)
    after = Rows(batch, rows[0][kept][:, 8] - first, nothing, rows[2][first:])
    yield from given(after, sure[first:], lambda places: lines([first + place for place in places]), context)


def _read_times(values: Sequence[Any], context: Context) -> Times:
    """The times of lines: whole numbers or spellings, otherwise left to the row reader."""
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
        return spelled_times(pa.array(values, pa.string()), _PLAIN, context)
    nothing = np.zeros(size, np.int64)
    return Times(nothing, nothing, np.zeros(size, bool))


def _scanned(texts: Sequence[str], odd: Any) -> tuple[tuple[Any, Any, Any], Any]:
    """The triples of the records (places of terms, the bytes, how many are repeated), and which records are usual."""
    size = len(texts)
    whole = "\n".join(texts).encode()
    data = np.frombuffer(whole + b"\n\0\0\0\0", np.uint8)
    counts = np.fromiter(map(str.count, texts, repeat("\n")), np.int64, size) + 1
    record = np.repeat(np.arange(size), counts)
    begins = np.flatnonzero(data[:-4] == 10) + 1
    rows = np.empty((len(whole) // SHORTEST + 1, 9), np.int64)
    repeated, places = np.zeros(size, np.int64), np.empty(8, np.int64)
    usual = ~odd
    count = place = line = 0
    while True:
        count, stop = scanning.scan_triples(
            data,
            place,
            line,
            scanning.CLASSES,
            scanning.STRING,
            scanning.LANG_STRING,
            scanning.DIR_LANG_STRING,
            record,
            places,
            rows,
            count,
            repeated,
        )
        if stop < 0:
            break
        at = int(record[stop])
        usual[at] = False
        line = int(counts[: at + 1].sum())
        if line >= len(record):
            break
        place = int(begins[line - 1])
    scanned = rows[:count]
    return (scanned, data, repeated), usual


def _flat(rows: Any, data: Any, times: Times, context: Context) -> pa.RecordBatch:
    record = rows[:, 8]
    count = len(rows)
    several = bool(len(np.unique(record)) < count)
    return flat_batch(
        times.end[record],
        times.start[record],
        [gathered(data, rows, place) for place in (0, 2, 4)],
        stream=constant(context.stream, count) if context.stream else None,
        event=pa.array(record) if several else None,
    )


# --- plain objects ---


def _objects(records: Sequence[Any], mapping: RowMapping, lines: _Lines, context: Context) -> Iterator[Chunk]:
    """Plain objects by a mapping."""
    names = sorted(mapping.used | _SPECIAL)
    values = {name: list(map(attrgetter(f"f{i}"), records)) for i, name in enumerate(names)}
    absent = {type(None)}
    odd = any(_of_kind(values[name]) != absent for name in {"retract", "retracted"} - mapping.used)
    odd |= any(_of_kind(values[name]) != {type(UNSET)} for name in _PRESENT - mapping.used)
    if not mapping.times:
        odd |= any(_of_kind(values[name]) != absent for name in ("start", "end"))
        mapping = replace(mapping, times=(_TIME,), used=mapping.used | {"time"})
    needed = [values[name] for name in mapping.columns_of_terms]
    if needed and all(None in column or "" in column for column in needed):
        odd |= any(all(value is None or value == "" for value in row) for row in zip(*needed, strict=True))
    joined = {hole for template in mapping.times if not template.is_hole for hole in template.holes}
    odd |= any(None in values[hole] or "" in values[hole] for hole in joined)  # the row reader asks for all of them
    try:
        columns = {} if odd else {name: _column(values[name], name) for name in mapping.used}
    except StreamError:
        odd = True
    if odd:
        yield from in_lists(lines(range(len(records))))
        return
    native = {
        hole: pa.array(values[hole], pa.int64())
        for template in mapping.times
        for hole in template.holes
        if _of_kind(values[hole]) == {int} and all(-(2**63) <= value < 2**63 for value in values[hole])
    }

    def begun() -> bool:
        """Whether there is an event, or the row reader has said why there is none."""
        return bool(context.counters.events or context.unmade)

    yield from mapped(Table(columns, native, len(records), lines), mapping, context, begun)


def _column(values: Sequence[Any], name: str) -> Column:
    """The values of a key; raises StreamError if one cannot be a cell."""
    kinds = _of_kind(values) - {type(None)}
    if kinds == {str} or kinds == {bool}:
        return spelled(pa.array(values, pa.string() if kinds == {str} else pa.bool_()))
    if kinds and kinds <= {int, Number}:
        texts = values if kinds == {Number} else [None if value is None else str(value) for value in values]
        encoded = pa.array(texts, pa.string()).dictionary_encode()
        return Column(encoded.indices, encoded.dictionary, guessed(encoded.dictionary))
    cells = [None if value is None else cell_of(value, name) for value in values]
    distinct: dict[tuple[str, str], int] = {}
    index = [None if c is None else distinct.setdefault((c, c.term), len(distinct)) for c in cells]  # type: ignore[attr-defined]
    texts, terms = zip(*distinct, strict=True) if distinct else ((), ())
    return Column(pa.array(index, pa.int32()), pa.array(texts, pa.string()), pa.array(terms, pa.string()))
