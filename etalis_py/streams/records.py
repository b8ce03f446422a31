"""Records of Python → events: dicts and whatever else has keys, one event each.

By a mapping, the values are the literals that a frame of them would have (``columns.native_literals``); None and NaN
are missing values.  The rows of a ``csv.DictReader`` are untyped texts, as in a CSV file.  Without a mapping a record
has the keys of a JSON line: ``{"time": 5, "triples": ":a :price 3"}``.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import date
from decimal import Decimal
from itertools import islice
from typing import Any

from etalis_rules.messages import closest
from etalis_rules.terms import literal

from etalis_py.events import Event
from etalis_py.events.clock import Clock, nearest, render_datetime
from etalis_py.events.errors import StreamError, warn_caller
from etalis_py.events.times import micros_of
from etalis_py.streams.csv_mapping import RowMapping
from etalis_py.streams.draft import ROW, draft
from etalis_py.streams.elements import Item, StreamContext
from etalis_py.streams.jsonl import JsonOptions, cell_of, record_items
from etalis_py.streams.record_keys import RETRACT_KEYS, named_values
from etalis_py.streams.samples import record_samples
from etalis_py.streams.templates import HOLE, Typed
from etalis_py.values import encode
from etalis_py.values.canonical import double_as_string

_TIMES = ("time", "start", "end", "punctuate")
_SAMPLES = 20
_UNITS, _FINE = ("datetime64", "timedelta64"), ("[s]", "[ms]", "[us]", "[ns]")


class Untyped(Iterator[Any]):
    """Rows whose values are untyped texts, as those of a ``csv.DictReader``."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = iter(rows)

    def __next__(self) -> Any:
        return next(self._rows)


def is_record(given: object) -> bool:
    """Whether it has values by name: a dict, a row of sqlite3 or of a frame, a named tuple, a dataclass, a model, …"""
    if isinstance(given, Mapping):
        return True
    kind = type(given)
    if isinstance(given, Event) or hasattr(kind, "__arrow_c_stream__"):
        return False
    by_key = hasattr(kind, "keys") and hasattr(kind, "__getitem__")
    by_name = hasattr(kind, "_asdict") or hasattr(kind, "model_dump")  # the latter is pydantic's
    return by_key or by_name or (is_dataclass(kind) and given is not kind)


def as_dict(record: Any) -> dict[Any, Any]:
    """The values of a record by their names, with lists for tuples and arrays."""
    if hasattr(record, "keys"):
        values = {key: record[key] for key in record.keys()}  # noqa: SIM118 (it may be no mapping)
    elif is_dataclass(record):
        values = {field.name: getattr(record, field.name) for field in fields(record)}
    elif hasattr(record, "model_dump"):
        values = record.model_dump()
    else:
        values = dict(record._asdict())
    for key, value in values.items():
        if isinstance(value, tuple) or getattr(value, "ndim", 0) > 0:
            values[key] = list(value)
    return values


def record_events(records: Iterable[Any], context: StreamContext, reading: JsonOptions) -> Iterator[Item]:
    """The events of records; a key of the mapping that none of a list of records has is an error."""
    if reading.mapping is not None and isinstance(records, Collection):
        _check_keys(reading.mapping, records)
    reading = replace(reading, cell=untyped_cell if isinstance(records, (csv.DictReader, Untyped)) else native_cell)
    for number, given in enumerate(records, 1):
        if not is_record(given):
            hint = how_to_name(given)
            if isinstance(given, os.PathLike):
                hint = "for several files give a pattern, such as 'data/*.csv', or merge([read_stream(…), …])"
            raise StreamError(f"{given!r} ({type(given).__name__}) has no values by name", line=number, hint=hint)
        record = as_dict(given)
        if reading.mapping is None:
            _refuse_unmapped(record, records)
        try:
            yield from record_event_items(record, number, context, reading)
        except StreamError as error:
            raise error.at("", number, repr(given)) from None
    if context.warning:
        warn_caller(context.warning)


def how_to_name(row: Any) -> str:
    """How the values of something that has none by name get names."""
    if isinstance(row, (tuple, list)):
        named = "for a plain row: dict(zip(names, row))"
    elif hasattr(row, "__dict__") and not isinstance(row, type):
        named = "for objects: [vars(row) for row in rows]"
    else:
        return "a mapping is for rows with names, such as dicts"
    return f"a mapping is for rows with names, such as dicts; {named}"


def record_event_items(
    record: dict[Any, Any], number: int, context: StreamContext, reading: JsonOptions
) -> Iterator[Item]:
    """The events of one record."""
    for key in RETRACT_KEYS:
        if key in record and _is_missing(record[key]):
            record = {**record, key: None}
    return record_items(_with_times(record, reading, context), "", number, context, reading)


def _check_keys(mapping: RowMapping, records: Collection[Any]) -> None:
    absent = {name.partition("[]")[0] for name in mapping.used}  # of items[].sku a record has the list
    for record in filter(is_record, records):
        keys = as_dict(record)
        absent -= keys.keys() | dict(named_values(keys)).keys()
        if not absent:
            return
    if absent and (first := next(filter(is_record, records), None)) is not None:
        names = list(as_dict(first))
        near = closest(min(absent), names)
        raise StreamError(
            f"the mapping uses {min(absent)!r}, which no record has",
            hint=f"did you mean {near}?" if near else f"the keys of the first record are {', '.join(map(str, names))}",
        )


def _is_missing(value: Any) -> bool:
    """Whether pandas and NumPy have this where there is no value."""
    return not isinstance(value, (str, list, dict)) and native_cell(value, "retract") == ""


def _with_times(record: dict[str, Any], reading: JsonOptions, context: StreamContext) -> dict[str, Any]:
    """The record with its own times, which no mapping reads, as JSON has them."""
    if reading.mapping is not None and reading.mapping.times:
        return record
    return record | {key: _time(record[key], context.times.unit) for key in _TIMES if key in record}


def _time(value: Any, unit: str) -> Any:
    if isinstance(value, (list, tuple)):
        return [_time(one, unit) for one in value]
    if isinstance(value, float) and value - value == 0:
        return str(Clock("integer", unit).render(nearest(Decimal(str(value)), unit)))
    if isinstance(value, date) or hasattr(value, "dtype"):
        time, dated = micros_of(value)
        return render_datetime(time) if dated else value.item()
    return value


def native_cell(value: Any, name: str) -> str:
    """A value of Python as a cell, with the literal that a frame would give it."""
    kind = type(value)
    if value is None:
        return ""
    if kind is str:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise StreamError(
                f"{name!r} is {value!a}, which holds half of a surrogate pair",
                hint="that is no character: leave it out",
            ) from None
        return Typed(value, literal(value))
    if kind is float:
        term = encode(value)
        finite = value - value == 0
        return "" if value != value else Typed(double_as_string(value) if finite else _text(term), term)
    if kind is Decimal and not value.is_finite():
        if value.is_nan():
            return ""
        raise StreamError(f"{name!r} is {value!r}, which no xsd:decimal is", hint="give it as a double: float(value)")
    if kind in (int, bool, Decimal):
        term = encode(value)
        return Typed(_text(term), term)
    if isinstance(value, (dict, list, tuple)):
        return cell_of(list(value) if kind is tuple else value, name)
    return _arrow_cell(value, name)


def _text(term: str) -> str:
    return term[1 : term.rindex('"')]


def _arrow_cell(value: Any, name: str) -> str:
    """Dates, values of NumPy and pandas, and so on, as Arrow takes them."""
    import pyarrow as pa  # takes a while to import

    from etalis_py.streams.columns.native_literals import literal_of

    if type(value).__name__ in _UNITS and str(value) == "NaT":  # of which Arrow wants the unit
        return ""
    try:
        if type(value).__name__ in _UNITS and not str(value.dtype).endswith(_FINE):  # units that Arrow has not
            value = value.astype(f"{type(value).__name__}[s]")
        scalar = pa.scalar(value, _finer(value), from_pandas=True)
        if isinstance(scalar, pa.TimestampScalar) and scalar.type.tz is not None:
            scalar = scalar.cast(pa.timestamp(scalar.type.unit, "UTC"))
        missing = not scalar.is_valid or (pa.types.is_floating(scalar.type) and scalar.as_py() != scalar.as_py())
        return "" if missing else literal_of(scalar)
    except (pa.ArrowException, TypeError):
        raise StreamError(
            f"{name!r} is {value!r} ({type(value).__name__}), which has no literal", hint="give it as text: str(value)"
        ) from None


def _finer(value: Any) -> Any:
    """The Arrow type of a time of pandas that has nanoseconds, which Arrow would cut; None leaves the type to Arrow."""
    import pyarrow as pa  # takes a while to import

    if getattr(value, "nanosecond", 0):
        return pa.timestamp("ns", None if value.tzinfo is None else "UTC")
    return pa.duration("ns") if getattr(value, "nanoseconds", 0) else None


def untyped_cell(value: Any, name: str) -> str:
    """A cell of CSV: its text."""
    return value if isinstance(value, str) else cell_of(value, name)


def _refuse_unmapped(record: Mapping[str, Any], records: Iterable[Any]) -> None:
    if "triples" in record or "punctuate" in record:
        return
    some = [record, *islice(records, 1, _SAMPLES)] if isinstance(records, Collection) else [record]
    raise StreamError(
        f"this record has the keys {', '.join(map(str, record)) or 'none'}, and no mapping says what they mean",
        hint=f"give {how_to_read([as_dict(one) for one in some if is_record(one)])}",
    )


def how_to_read(records: Iterable[Mapping[str, Any]]) -> str:
    """What a caller may give beside such records: the names of two columns, or where these do not do a mapping."""
    mapping = record_draft(records)
    time, subject = mapping.get("time", ""), mapping["triple"][0]["subject"] if mapping["triple"] else ""
    if isinstance(time, str) and len(HOLE.findall(time)) == 1:
        about = "None" if subject == ROW else repr(subject[2:-1])
        return f"the names of their columns, as time={time[1:-1]!r}, subject={about}, or mapping=…"
    return f"a mapping, for example mapping={mapping!r}"


def record_draft(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A mapping for records, by the first of them."""
    samples = record_samples(records)
    return draft(samples.cells, samples.moments)
