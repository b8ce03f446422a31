"""Routed rows, in the forms that a shard takes from Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from etalis_py.events.clock import MAX_TIME, MIN_TIME
from etalis_py.kernel.batch import Columns
from etalis_py.spark.errors import SparkError
from etalis_py.spark.input.packed_rows import differing
from etalis_py.spark.input.schema import (
    BETWEEN,
    CHANGE,
    COLUMNS,
    DERIVED,
    END,
    EVENT,
    ITEM,
    PASSED,
    RETRACT,
    TAKEN_BACK,
)
from etalis_py.spark.output.answers import Row
from etalis_py.spark.shard.shard import Plain

Rows: TypeAlias = pa.RecordBatch | pa.Table
_STATED = (EVENT, ITEM, RETRACT)
"""The marks of rows whose times somebody gave."""
_RUNS = 1_000
"""If rows form more runs than this, they are sorted one by one instead of being moved as whole runs."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """Routed rows by kind; ``in_order`` has events, changes and derived events together, in order of arrival.

    ``withdrawn`` is what the input withdraws, ``taken_back`` what an earlier level derived and takes back.
    """

    in_order: list[Plain]
    derived: list[Plain]
    ended: bool
    passed: list[Row]
    withdrawn: Sequence[Plain] = ()
    taken_back: Sequence[Plain] = ()


def sorted_out(rows: Rows, *, apart: bool, numbered: bool = False) -> Sorted:
    """Divide routed rows by kind.

    ``apart``: derived events are not put into ``in_order``.  ``numbered``: events keep their arrival numbers; they
    always do if some are withdrawn.
    """
    marks = rows.column("mark").to_numpy()
    check_times(rows, marks)
    if not (numbered or (marks == RETRACT).any()) and "arrived" in rows.schema.names:
        rows = rows.drop_columns(["arrived"])
    if (marks == EVENT).all():
        return Sorted(events_of(rows), [], False, [])
    passed = _passed(rows, marks)
    events = (marks == EVENT) | (marks == CHANGE)
    if not apart:
        events |= marks == DERIVED
    in_order = events_of(_of(rows, events)) + items_of(_of(rows, marks == ITEM))
    derived = events_of(_of(rows, marks == DERIVED)) if apart else []
    gone = _of(rows, marks == RETRACT)
    whole = gone.column("passed").is_valid().to_numpy(zero_copy_only=False) if len(gone) else np.zeros(0, bool)
    withdrawn = [*events_of(_of(gone, ~whole)), *items_of(_of(gone, whole))]
    taken_back = events_of(_of(rows, marks == TAKEN_BACK))
    return Sorted(in_order, derived, bool((marks == END).any()), passed, withdrawn, taken_back)


def events_out(rows: Rows) -> tuple[Rows, list[Row]] | None:
    """The rows that are each an event of one triple, and the rows that pass through; None if there are other kinds."""
    if "arrived" in rows.schema.names:
        rows = rows.drop_columns(["arrived"])
    marks = rows.column("mark").to_numpy()
    if not np.isin(marks, (EVENT, DERIVED, PASSED, END)).all():
        return None
    check_times(rows, marks)
    events = (marks == EVENT) | (marks == DERIVED)
    if events.all():
        return rows, []
    return _of(rows, events), _passed(rows, marks)


def check_times(rows: Rows, marks: np.ndarray[Any, Any] | None = None) -> None:
    """Refuse times that no event may have, as ``run`` does; without ``marks`` all rows are events."""
    names = [name for name in ("end", "start") if name in rows.schema.names]
    stated = True if marks is None else np.isin(marks, _STATED)
    for name in names:
        times = rows.column(name).to_numpy()
        wrong = ((times < MIN_TIME) | (times > MAX_TIME)) & stated
        if wrong.any():
            raise SparkError(
                f"the time {name!r} is {times[wrong][0]}, which is not a whole number of microseconds in range; "
                "correct it, or leave the row out"
            )
    end, start = (rows.column(names[n]).to_numpy() for n in (0, -1))
    wrong = (start > end) & stated
    if wrong.any():
        raise SparkError(f"an event starts at {start[wrong][0]} and ends before, at {end[wrong][0]}: swap the two")


def before(rows: Rows, first: int, last: int) -> tuple[Rows, Rows, Rows]:
    """The rows that end before the first of two times, those that end before the second, and all others."""
    end = rows.column("end").to_numpy()
    early, late = end < first, end >= last
    return _of(rows, early), _of(rows, ~early & ~late), _of(rows, late & ~early)


def in_order(rows: pa.Table) -> pa.Table:
    """Order rows by time.  Rows that are in order stay as they are; rows that form a few ordered runs move as runs."""
    ends = rows.column("end").to_numpy()
    begins = np.flatnonzero(ends[1:] < ends[:-1]) + 1
    if not len(begins):
        return rows
    firsts, lasts = np.append(0, begins), np.append(begins, len(ends)) - 1
    order = np.lexsort((ends[lasts], ends[firsts]))
    if len(order) <= _RUNS and (ends[firsts[order[1:]]] >= ends[lasts[order[:-1]]]).all():
        return pa.concat_tables([rows.slice(firsts[n], lasts[n] + 1 - firsts[n]) for n in order])
    return rows.take(pa.array(np.argsort(ends, kind="stable")))


def preceded(events: Sequence[Plain], rows: pa.Table, *, whole: bool) -> pa.Table:
    """Events, each of one triple or ``whole``, followed by such rows."""
    if not events:
        return rows
    starts, ends, triples, streams, graphs = zip(*(event[:5] for event in events), strict=True)
    columns: dict[str, Sequence[Any]] = {"start": starts, "end": ends, "stream": streams}
    if whole:
        terms = (chain.from_iterable(some) for some in triples)
        columns["passed"] = [BETWEEN.join((graph, *some)) for graph, some in zip(graphs, terms, strict=True)]
    else:
        columns |= zip("spo", zip(*chain.from_iterable(triples), strict=True), strict=True)
    schema = pa.schema([rows.schema.field(name) for name in columns])
    return pa.concat_tables([pa.table(columns).cast(schema), rows.select(list(columns))])


def columns_of(rows: Rows) -> Columns:
    """Events of one triple each, as the engine takes them; without a stream column if no row names one."""
    taken = {name: _whole(rows.column(name)) for name in ("s", "p", "o")}
    end = rows.column("end").to_numpy()
    start = rows.column("start").to_numpy() if "start" in rows.schema.names else end
    stream = _streams(_whole(rows.column("stream"))) if "stream" in rows.schema.names else None
    return Columns(end, start, taken["s"], taken["p"], taken["o"], stream)


def _streams(column: pa.Array) -> pa.Array | None:
    """The streams or graphs of rows; None if no row names one."""
    names = column.dictionary if isinstance(column, pa.DictionaryArray) else column
    if not pc.max(pc.binary_length(names)).as_py():
        return None
    return column.cast(pa.string()).fill_null("") if column.null_count else column


def with_predicates(rows: pa.RecordBatch, predicates: Sequence[str]) -> pa.RecordBatch:
    """The rows with predicates in place of their codes; without ``predicates`` there are no codes."""
    if not predicates:
        return rows
    if "p" in rows.schema.names:
        place = rows.schema.get_field_index("p")
        codes = rows.column(place)
    else:
        place, codes = len(rows.schema), pa.array(np.zeros(len(rows), np.int8))
    named = pa.DictionaryArray.from_arrays(codes.cast(pa.int32()), pa.array(predicates, pa.string()))
    if place == len(rows.schema):
        return rows.append_column("p", named)
    return rows.set_column(place, "p", named)


def without_letters(rows: pa.RecordBatch, letters: list[Row]) -> pa.RecordBatch:
    """The rows of a shard that reads the source itself, without its dead letters, which are added to ``letters``."""
    if "passed" not in rows.schema.names:
        return rows
    passed = rows.column("passed")
    if passed.null_count < len(rows):
        letters += [passed_row(text) for text in passed.drop_null().to_pylist()]
        rows = rows.filter(passed.is_null())
    return rows.drop_columns(["passed"])


def ends_in(rows: Rows) -> bool:
    """Whether one of the rows is the end of the stream."""
    return bool((rows.column("mark").to_numpy() == END).any())


def _passed(rows: Rows, marks: np.ndarray[Any, Any]) -> list[Row]:
    return [passed_row(text) for text in _of(rows, marks == PASSED).column("passed").to_pylist()]


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _of(rows: Rows, chosen: np.ndarray[Any, Any]) -> Rows:
    return rows.filter(pa.array(chosen))


def events_of(rows: Rows) -> list[Plain]:
    """The events of rows of one triple each."""
    if not len(rows):
        return []
    starts, ends = (rows.column(name).to_numpy().tolist() for name in ("start", "end"))
    streams, *terms = (_terms(rows, name) for name in ("stream", "s", "p", "o"))
    # A derived triple names the match that it comes from: it stands as long as one of its matches does.
    named = rows.column("passed").null_count < len(rows)
    graphs = [name or "" for name in rows.column("passed").to_pylist()] if named else repeat("")
    # zip makes the tuples without a Python loop: of three terms, of one triple, of five fields.
    return list(zip(starts, ends, zip(zip(*terms, strict=True)), streams, graphs, *_numbers(rows), strict=False))


def _numbers(rows: Rows) -> list[list[int | None]]:
    """The arrival numbers of events: one column, or none."""
    return [rows.column("arrived").to_pylist()] if "arrived" in rows.schema.names else []


def _terms(rows: Rows, name: str) -> list[str]:
    """A column of text, in which equal values are the same string: it is made, and its hash is computed, once."""
    column = _whole(rows.column(name))
    if not isinstance(column, pa.DictionaryArray):
        if differing(column):
            terms: list[str] = column.to_numpy(zero_copy_only=False).tolist()
            return terms
        column = column.dictionary_encode()
    distinct = column.dictionary.to_numpy(zero_copy_only=False)
    places = column.indices
    if places.null_count:  # nulls: triples derived by an earlier level may have no stream
        distinct, places = np.append(distinct, ""), places.fill_null(len(distinct))
    again: list[str] = distinct[places.to_numpy()].tolist()
    return again


def items_of(rows: Rows) -> list[Plain]:
    """Whole events, in the order of the rows."""
    starts, ends, streams, texts = (rows.column(c).to_pylist() for c in ("start", "end", "stream", "passed"))
    items: list[Plain] = []
    for start, end, stream, text, *number in zip(starts, ends, streams, texts, *_numbers(rows), strict=True):
        graph, *terms = text.split(BETWEEN)
        triples = tuple(zip(terms[::3], terms[1::3], terms[2::3], strict=True))
        items.append((start, end, triples, stream or "", graph, *number))
    return items


def whole_events_out(rows: Rows) -> tuple[Rows, list[Row]] | None:
    """The rows that are each a whole event, and the rows that pass through; None if there are other kinds."""
    if "arrived" in rows.schema.names:
        rows = rows.drop_columns(["arrived"])
    marks = rows.column("mark").to_numpy()
    if not np.isin(marks, (ITEM, PASSED, END)).all():
        return None
    check_times(rows, marks)
    return _of(rows, marks == ITEM), _passed(rows, marks)


def taken_apart(rows: Rows) -> Columns:
    """Whole events in the flat form."""
    lists = _whole(pc.split_pattern(rows.column("passed"), BETWEEN))
    offsets, values = lists.offsets.to_numpy(), lists.values
    triples = (np.diff(offsets) - 1) // 3
    event = np.repeat(np.arange(len(rows)), triples)
    places = np.delete(np.arange(offsets[0], offsets[-1]), offsets[:-1] - offsets[0])
    s, p, o = (values.take(pa.array(places[n::3])).dictionary_encode() for n in range(3))
    end, start = (rows.column(name).to_numpy()[event] for name in ("end", "start"))
    named = _streams(_whole(rows.column("stream"))), _streams(values.take(pa.array(offsets[:-1])))
    stream, graph = (None if column is None else column.take(pa.array(event)) for column in named)
    return Columns(end, start, s, p, o, stream, event, graph)


def passed_row(text: str) -> Row:
    """A row of an earlier level, which arrived as JSON."""
    row: dict[str, Any] = msgspec.json.decode(text)
    triples = row.get("triples")
    if triples is not None:
        # JSON leaves out nulls, which dead letters may have.
        row["triples"] = tuple((t.get("s"), t.get("p"), t.get("o")) for t in triples)
    return tuple(row.get(column) for column in COLUMNS)
