"""Frames → the flat form: whatever has ``__arrow_c_stream__`` (pyarrow, pandas, polars, duckdb, …), by a mapping, or as
it is if it has the columns of the flat form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from etalis_py.events.clock import Clock
from etalis_py.events.errors import StreamError
from etalis_py.streams.columns.canonical import canonical
from etalis_py.streams.columns.checked_tables import checked, checked_names
from etalis_py.streams.columns.flat_form import NAMES, TERMS, event_count, events_of, flat_batch
from etalis_py.streams.columns.mapped_tables import SourceRows, mapped
from etalis_py.streams.columns.merge_in_order import Chunk
from etalis_py.streams.columns.native_literals import NotNative, has_literals, plain, spelled
from etalis_py.streams.columns.sample_rows import frame_samples
from etalis_py.streams.columns.times import native_times
from etalis_py.streams.csv_mapping import RowMapping, row_events
from etalis_py.streams.csv_rows import check_columns
from etalis_py.streams.draft import draft, toml
from etalis_py.streams.elements import Item, StreamContext, withdrawn

ROWS = 1 << 16
FLAT = ("end", *TERMS)
_RETRACT = ("retract", "retracted")
_FLAT_COLUMNS = frozenset((*NAMES, *_RETRACT))


def open_frame(frame: Any) -> pa.RecordBatchReader:
    """The batches of a frame."""
    if isinstance(frame, pa.RecordBatchReader):
        return frame
    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        return pa.RecordBatchReader.from_batches(
            frame.schema, frame.to_batches() if isinstance(frame, pa.Table) else [frame]
        )
    try:
        reader = pa.RecordBatchReader.from_stream(frame)
    except OverflowError:  # of which Arrow does not say the column
        raise StreamError(
            "one of its columns has an integer that does not fit into 64 bits",
            source="the table",
            hint="make decimals of it, as frame['v'] = frame['v'].map(decimal.Decimal) does",
        ) from None
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise StreamError(
            f"its columns cannot be taken: {'; '.join(map(str, error.args))}",
            source="the table",
            hint="give each a name of its own and values of one type, as frame['v'] = frame['v'].astype(str) does",
        ) from None
    _refuse_days_of_datetimes(frame, reader.schema)
    return reader


def _refuse_days_of_datetimes(frame: Any, schema: pa.Schema) -> None:
    """Where a column of objects begins with a date of Python, Arrow makes dates of the datetimes behind it, too."""
    kinds: Any = getattr(frame, "dtypes", None)
    for name in schema.names if hasattr(kinds, "get") else ():
        if not pa.types.is_date(schema.field(name).type) or str(kinds.get(name)) != "object":
            continue
        # NaT is a datetime, too, but equals nothing
        if any(isinstance(value, datetime) and value == value for value in frame[name]):
            raise StreamError(
                f"the column {name!r} has dates and datetimes, which would lose their time of day",
                source="the table",
                hint=f"make datetimes of all: frame[{name!r}] = pandas.to_datetime(frame[{name!r}])",
            )


def frame_chunks(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    mapping: RowMapping | None,
    context: StreamContext,
    file: str = "",
) -> Iterator[Chunk]:
    """The events of the batches of a frame, in the order of its rows; ``file`` is the one they are read from."""
    names = checked_names(schema)
    is_flat = set(FLAT) <= set(names)
    if mapping is not None and is_flat and not mapping.used <= set(names):
        mapping = None  # the mapping is for another source
    if mapping is not None:
        mapping = mapping.with_columns(_taken(schema, names, mapping, context))
        check_columns(names, mapping, 0)
    # A table that cannot be read is shown as a whole, with a mapping that could.
    used = mapping.used if mapping is not None else _FLAT_COLUMNS if is_flat else frozenset(names)
    first = 1
    for batch in pieces(checked(batches, used)):
        if mapping is None:
            _check_flat(schema, batch, file)
            yield from _flat(batch, first, context)
        else:
            yield from mapped(_table(batch, first, mapping, context), mapping, context)
        first += len(batch)
    if mapping is None and first == 1:
        _check_flat(schema, pa.RecordBatch.from_pylist([], schema), file)


def _taken(schema: pa.Schema, names: Sequence[str], mapping: RowMapping, context: StreamContext) -> list[str]:
    """The columns that may be properties by their names; a column without literals is told."""
    without = (
        {}
        if mapping.rest is None
        else {
            name: str(kind)
            for name, kind in zip(names, schema.types, strict=True)
            if name not in mapping.used and not has_literals(kind)
        }
    )
    context.without_literals.update(without)
    return [name for name in names if name not in without]


def pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows in batches of a limited size; empty ones are left out."""
    for batch in batches:
        for offset in range(0, len(batch), ROWS):
            yield batch if len(batch) <= ROWS else batch.slice(offset, ROWS)


# --- the flat form ---


def _check_flat(schema: pa.Schema, batch: pa.RecordBatch, file: str) -> None:
    missing = [name for name in FLAT if name not in schema.names]
    if not missing:
        return
    names = [name for name in schema.names if not name.startswith("__")]
    if not names:
        raise StreamError(
            "this table has no columns", hint=f"triples have the columns {', '.join(FLAT)}; others need a mapping"
        )
    if len(missing) == 1:
        hint = f"add it; the columns of triples are {', '.join(FLAT)}, and start, stream and graph where there are any"
    elif file:
        hint = f"a mapping is needed: --mapping FILE, or mapping= in Python; etalis map {file} drafts one"
    else:
        hint = "give a mapping, for example mapping=" + repr(frame_draft(batch)) + "\nas a file for --mapping:\n"
        hint += toml(frame_draft(batch)).rstrip("\n")
    raise StreamError(
        f"this table has the columns {', '.join(names)}; it has no "
        f"{', no '.join(missing)}, so its rows are not triples, and no mapping says what they mean",
        hint=hint,
    )


def frame_draft(batch: pa.RecordBatch) -> dict[str, Any]:
    """A mapping for a table by its types and first rows."""
    samples = frame_samples(batch)
    return draft(samples.cells, samples.moments)


def _flat(batch: pa.RecordBatch, first: int, context: StreamContext) -> Iterator[Chunk]:
    names = batch.schema.names
    ends = _flat_times(batch.column("end"), "end", first, context)
    starts = _flat_times(batch.column("start"), "start", first, context) if "start" in names else ends
    wrong = np.flatnonzero(starts > ends)
    if len(wrong):
        raise StreamError("the event ends before it starts", line=first + int(wrong[0]), hint="swap 'start' and 'end'")
    terms = [canonical(batch.column(name), name, first) for name in TERMS]
    more: dict[str, Any] = {n: canonical(batch.column(n), n, first) for n in ("stream", "graph") if n in names}
    if "stream" not in more and context.stream:
        more["stream"] = pa.array([context.stream] * len(batch), pa.string()).dictionary_encode()
    if "event" in names:
        more["event"] = _event_numbers(batch.column("event"), first)
    counters = context.counters
    flat = flat_batch(ends, starts, terms, **more)
    counters.events += event_count(flat)
    counters.triples += len(batch)
    context.latest = max(context.latest, int(ends.max()))
    retracts = _retracts(batch, first)
    cuts = [0, *(np.flatnonzero(np.diff(retracts)) + 1).tolist(), len(batch)] if retracts.any() else [0, len(batch)]
    for begin, end in pairwise(cuts):
        part = flat.slice(begin, end - begin)
        yield list(withdrawn(events_of(part))) if retracts[begin] else part


def _event_numbers(column: pa.Array, first: int) -> pa.Array:
    """The column that tells which rows belong to one event."""
    column = plain(column)
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowException:
        raise StreamError(
            f"the column 'event' is of type {column.type}, and numbers events",
            line=first,
            hint="give the rows of an event one whole number",
        ) from None
    if numbers.null_count:
        line = first + int(np.flatnonzero(~np.asarray(numbers.is_valid()))[0])
        raise StreamError("the row has no number in the column 'event'", line=line, hint="number every row's event")
    return numbers


def _retracts(batch: pa.RecordBatch, first: int) -> Any:
    """Which rows withdraw what they state; ``retracted``, as in a table of matches, means the same as ``retract``."""
    retracts = np.zeros(len(batch), bool)
    for name in _RETRACT:
        if name in batch.schema.names:
            column = plain(batch.column(name))
            if not pa.types.is_boolean(column.type) and not pa.types.is_null(column.type):
                raise StreamError(
                    f"the column {name!r} is of type {column.type}, and says true or false",
                    line=first,
                    hint="convert it",
                )
            retracts |= np.asarray(column.cast(pa.bool_()).fill_null(False))
    return retracts


def _flat_times(column: pa.Array, name: str, first: int, context: StreamContext) -> Any:
    """A column of times: timestamps, or integers, which are microseconds."""
    column = plain(column)
    kind = column.type
    dates = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    if not dates and not pa.types.is_integer(kind):
        raise StreamError(
            f"the column {name!r} is of type {kind}, but times are timestamps, or integers in microseconds",
            hint="convert it, or give a mapping, which reads spellings of times",
        )
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp("us"))
    times = context.times
    if times.clock is None:
        times.clock = Clock("datetime") if dates else Clock("integer", "us")
    if (times.clock.kind == "datetime") != dates:
        raise StreamError(f"the column {name!r} has {'dates' if dates else 'numbers'}, the other times have not")
    native = native_times(column, replace_unit(context, "us"))
    if native is None or not native.sure.all():
        row = 0 if native is None else int(np.flatnonzero(~native.sure)[0])
        value = column[row]
        reason = (
            "is null" if not value.is_valid else f"is {value}, which is not a whole number of microseconds in range"
        )
        raise StreamError(f"the time {name!r} {reason}", line=first + row, hint="correct it, or leave the row out")
    return native.end


def replace_unit(context: StreamContext, unit: str) -> StreamContext:
    """The context with this unit for numbers."""
    clock = context.times.clock
    if clock is None or clock.kind == "datetime" or clock.unit == unit:
        return context
    times = type(context.times)(unit, Clock("integer", unit))
    return replace(context, times=times)


# --- by a mapping ---


def _table(batch: pa.RecordBatch, first: int, mapping: RowMapping, context: StreamContext) -> SourceRows:
    native = {name: plain(batch.column(name)) for name in mapping.in_order}
    texts = mapping.columns_of_texts.union(*(one.holes for one in mapping.times if not one.is_hole))
    columns = {}
    for name, column in native.items():
        if name not in texts and native_times(column, context) is not None and not mapping.time_format:
            continue  # read as it is
        try:
            columns[name] = spelled(column)
        except NotNative as error:
            raise StreamError(
                f"the column {name!r} cannot be used: {error}", hint="make columns of values of it, or leave it out"
            ) from None
    return SourceRows(columns, native, len(batch), _Rows(native, first, mapping, context))


class _Rows:
    """Rows of a frame for the row reader."""

    def __init__(self, native: Mapping[str, pa.Array], first: int, mapping: RowMapping, context: StreamContext) -> None:
        self._native, self._first, self._mapping, self._context = native, first, mapping, context

    def __call__(self, places: Sequence[int]) -> Iterator[Item]:
        at = pa.array(places, pa.int64())
        cells = {name: spelled(column.take(at)).cells() for name, column in self._native.items()}
        for i, place in enumerate(places):
            row = {name: "" if (cell := column[i]) is None else cell for name, column in cells.items()}
            yield from row_events(row, self._mapping, self._context, self._first + place, ",".join(row.values()))
