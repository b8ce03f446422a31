"""Tables of which each row is one event: read as ``run`` reads the same frame, by a mapping or by two named columns.

Spark hands over the columns that the mapping uses, and they stay columns: each distinct value becomes a term once.
Nothing is unpivoted or grouped, because a row of the table is a row of the events.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from etalis_py.events import Event, Retraction
from etalis_py.garbage import few_collections
from etalis_py.numba_cache import ready
from etalis_py.spark.errors import SparkError, check_frame
from etalis_py.spark.input.change_feeds import AFTER, BEFORE, OF_FEEDS, feed_of, unknown_kind
from etalis_py.spark.input.columns import LITERALS, no_literal
from etalis_py.spark.input.reading import SourceOptions, described, reading, record_batches
from etalis_py.spark.input.schema import ARROW_EVENTS, ARROW_TRIPLE, COLUMNS_OF, EVENTS, GIVEN, READING
from etalis_py.spark.sessions import use_this_python
from etalis_py.streams import StreamError, read_stream
from etalis_py.streams.columns.fill_templates import present
from etalis_py.streams.columns.native_literals import spelled
from etalis_py.streams.csv_mapping import RowMapping, read_mapping
from etalis_py.streams.draft import Samples
from etalis_py.streams.drafting import names_with_braces, naming_of
from etalis_py.streams.templates import RowTemplate

_MOMENTS = (T.StringType, T.NumericType, T.TimestampType, T.TimestampNTZType, T.DateType, T.NullType)
_NOTHING = RowTemplate("iri", ("urn:etalis:nothing",))
"""Stands for the subject of a row without one, until its events have nulls there."""


def events_from_rows(
    rows: DataFrame,
    *,
    time: str = "",
    subject: str | None = "",
    mapping: str | Path | Mapping[str, Any] | None = None,
    stream: str = "",
    time_unit: str = "s",
    changes: str = "",
) -> DataFrame:
    """Any DataFrame, each row one event, with the events and ids of ``run(query, frame, …)`` over the same table.

    ``time`` and ``subject``: the columns with the time and with what a row is about (None: each row is a node of its
    own); every other column is a property of its name, ``:price``, with ``http://example.org/`` for the prefix.  Or a
    ``mapping``, as for ``run``: a dictionary or a TOML file, which may have other prefixes.  ``time_unit``: that of
    times which are numbers.  ``changes``: the column that says what became of a row in the change feed of a table,
    ``_change_type`` of Delta and Iceberg; what was deleted or updated withdraws the event that it had stated, in the
    order of ``_commit_version`` or ``_change_ordinal``.
    """
    check_frame("rows", rows, "events_from_rows")
    fed = feed_of(rows, changes)
    try:
        naming_of(time, subject, mapping)
        drafted = None
        if mapping is None:
            drafted = _drafted(rows.drop(changes, *OF_FEEDS) if changes else rows, time, subject)
        how = reading("csv", stream, {"mapping": drafted or mapping, "time_unit": time_unit})
        used = read_mapping(how.options["mapping"]).with_columns(rows.columns)
    except StreamError as error:
        raise SparkError(f"the rows cannot be read so: {error}") from None
    fields = {n: field for n, field in enumerate(rows.schema) if field.name in used.used or field.name in fed}
    _check(rows.schema.fields, used)
    if mapping is None or used.rest is not None:
        _tell_of_names(rows.columns, used)
    names = [field.name for field in fields.values()]

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with few_collections():
            for batch in batches:
                named = batch.rename_columns(names)
                yield from _changed(how, used, named, fed) if fed else _events(how, used, named)

    use_this_python(rows.sparkSession)
    # PySpark takes a column a.b for a field of a.
    numbered = rows.toDF(*(f"c{n}" for n in range(len(rows.columns)))).select(*(f"c{n}" for n in fields))
    schema = cast("T.StructType", T.StructType.fromDDL(EVENTS))
    schema["triples"].metadata = _given(used, list(fields.values()), how.stream)
    by = described(how) if drafted is None else _named(how, time, subject)
    schema["stream"].metadata = {READING: by | ({"changes": changes} if changes else {})}
    schema["end"].metadata = {COLUMNS_OF: _made_of(used)}
    return numbered.mapInArrow(read, schema)


def _check(fields: Sequence[T.StructField], mapping: RowMapping) -> None:
    """Refuse columns that are missing, that are there twice, or whose values are no literals or times."""
    names = [field.name for field in fields]
    absent = sorted(mapping.used - set(names))
    if absent:
        raise SparkError(f"there is no column {absent[0]!r} among {', '.join(names)}; correct the mapping")
    moments = {one.holes[0] for one in mapping.times if one.is_hole}
    for field in (field for field in fields if field.name in mapping.used):
        if names.count(field.name) > 1:
            raise SparkError(f"two columns are called {field.name!r}: rename one of them, or leave it out")
        if field.name in mapping.columns_of_terms and not isinstance(field.dataType, LITERALS):
            error = no_literal(field.name, field.dataType)
            raise SparkError(f"{error}; or leave the column out, with drop({field.name!r})")
        if field.name in moments and not isinstance(field.dataType, _MOMENTS):
            raise SparkError(
                f"the time {field.name} is a column of type {field.dataType.simpleString()}, but times are timestamps, "
                "dates, numbers or strings; convert it, such as with to_timestamp"
            )


def _tell_of_names(names: Sequence[str], mapping: RowMapping) -> None:
    """Warn of columns that are left out because no property can have their name, though all columns are wanted."""
    left_out = [(place, name) for place, name in enumerate(names, 1) if name not in mapping.used]
    unnamed = (place for place, name in left_out if not name.strip())
    told = [f"column {place} has no name and is left out: give it one, with toDF" for place in unnamed]
    for text in (*told, *names_with_braces(name for _, name in left_out)):
        warnings.warn(text, stacklevel=3)


def _given(mapping: RowMapping, fields: Iterable[T.StructField], stream: str) -> dict[str, Any]:
    """What the events can have, as metadata, so that ``matches`` can warn of a query that asks for anything else."""
    if (properties := mapping.properties) is None:
        return {}  # rows name the predicates
    bare = properties.keys() - {p.fill({}) for _, p, o in mapping.triples if o.kind != "bare" or not o.is_hole}
    types = {field.name: field.dataType for field in fields}

    def all_of(kind: type[T.DataType]) -> list[str]:
        return [p for p in sorted(bare) if all(isinstance(types[name], kind) for name in properties[p])]

    given = {"predicates": [*properties], "subjects": sorted(mapping.subjects)}
    given["times"] = sorted(mapping.times_of_rows)
    given |= {"texts": all_of(T.StringType), "numbers": all_of(T.NumericType)}
    return {GIVEN: given | ({"streams": [stream]} if mapping.stream is None else {})}


def _made_of(mapping: RowMapping) -> dict[str, str]:
    """The columns that start, end and subject of an event are made of, so that its dead letter can name them."""
    times = [one.holes for one in mapping.times]
    subjects = {s for s, _, _ in mapping.triples}
    of = {"s": subjects.pop().holes if len(subjects) == 1 else (), "start": (), "end": ()}
    of |= {"start": times[0], "end": times[-1]} if times else {}
    return {place: ", ".join(holes) for place, holes in of.items()}


def _drafted(rows: DataFrame, time: str, subject: str | None) -> dict[str, Any]:
    """The mapping by two columns; nothing is guessed from values, which another run might guess differently."""
    if not time or subject == "":
        raise SparkError(
            "name the columns with the time and with what a row is about, time=… and subject=… (None: each row is a "
            "node of its own), or give a mapping, which etalis map drafts from a sample"
        )
    return naming_of(time, subject).drafted(Samples({name: [] for name in rows.columns}))


def _named(how: SourceOptions, time: str, subject: str | None) -> dict[str, str]:
    """How rows are read by two columns, without the others, because a table may get further ones."""
    without = replace(how, options={name: value for name, value in how.options.items() if name != "mapping"})
    return described(without) | {"time": time, "subject": str(subject)}


def _changed(
    how: SourceOptions, mapping: RowMapping, batch: pa.RecordBatch, fed: list[str]
) -> Iterator[pa.RecordBatch]:
    """The events of rows of a change feed.  ``fed``: the columns with the kind of a change and perhaps its number."""
    became = pc.utf8_lower(batch.column(fed[0]))
    if unknown := sorted(map(str, {*became.to_pylist()} - {*BEFORE, *AFTER})):
        raise SparkError(unknown[0].join(unknown_kind(fed[0])))
    versions = [None] if len(fed) == 1 else pc.unique(batch.column(fed[1])).to_pylist()
    for version in versions:
        for gone, kinds in ((True, BEFORE), (False, AFTER)):
            chosen = pc.is_in(became, value_set=pa.array(kinds))
            chosen = chosen if version is None else pc.and_(chosen, pc.equal(batch.column(fed[1]), version))
            number = None if version is None else 2 * version + (not gone)
            for events in _events(how, mapping, batch.drop_columns(fed).filter(chosen)):
                same = {"retract": pa.scalar(gone), "arrived": pa.scalar(number, pa.int64())}
                columns = [
                    pa.repeat(same[name], len(events)) if name in same else events.column(name)
                    for name in events.schema.names
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=ARROW_EVENTS)


def _events(how: SourceOptions, mapping: RowMapping, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The events of a batch of rows.

    A row without a time or without a subject is an event that has nulls there, which makes a dead letter of it.
    """
    timeless = _empty(batch, mapping.times)
    subjects = {s for s, _, _ in mapping.triples}
    nameless = _empty(batch, subjects if len(subjects) == 1 else ())
    if not (timeless.any() or nameless.any()):
        yield from _whole(how, batch)
        return
    yield from _whole(how, batch.filter(pa.array(~timeless & ~nameless)))
    for no_time, no_subject in ((True, False), (False, True), (True, True)):
        rows = batch.filter(pa.array((timeless == no_time) & (nameless == no_subject)))
        triples = [(_NOTHING, p, o) for _, p, o in mapping.triples] if no_subject else mapping.triples
        other = replace(mapping, triples=tuple(triples), times=() if no_time else mapping.times)
        without = replace(how, options={**how.options, "mapping": other})
        lacking = {*(("start", "end", "time") if no_time else ()), *(("triples",) if no_subject else ())}
        for events in _whole(without, rows):
            columns = [
                _nulls(c) if f.name in lacking else c for f, c in zip(events.schema, events.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=ARROW_EVENTS)


def _empty(batch: pa.RecordBatch, templates: Iterable[RowTemplate]) -> np.ndarray[Any, Any]:
    """Which rows have nothing in a column of one of these templates: null, blanks or what is said to be missing."""
    empty = np.zeros(len(batch), bool)
    for name, nothing in {(name, one.missing | {""}) for one in templates for name in one.holes}:
        column = batch.column(name)
        if column.null_count:
            empty |= np.asarray(column.is_null())
        if len(nothing) > 1 or pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            cells = spelled(column)
            empty |= np.asarray(present(cells.texts, nothing).take(cells.index).is_null())
    return empty


def _nulls(column: pa.Array) -> pa.Array:
    """Nulls of the same type, or the triples with nulls for subjects."""
    if not pa.types.is_list(column.type):
        return pa.nulls(len(column), column.type)
    terms = column.values
    fields = [pa.nulls(len(terms), pa.string()), terms.field("p"), terms.field("o")]
    return pa.ListArray.from_arrays(column.offsets, pa.StructArray.from_arrays(fields, fields=list(ARROW_TRIPLE)))


def _whole(how: SourceOptions, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The events of a batch of rows with a time and a subject each.

    A time beyond the year 9999 that another unit would bring near stops the job: the driver hears of no warning from
    here, and Python cannot take such a timestamp from Spark.
    """
    if not len(batch):
        return
    table = pa.Table.from_batches([batch])
    with read_stream(table, name=how.stream, **how.options) as events:
        for chunk in events.chunks(large=ready()):
            if events.doubts:
                raise SparkError(events.doubts[0])
            if isinstance(chunk, pa.RecordBatch):
                yield _in_lists(chunk)
            else:
                stated = (item for item in chunk if isinstance(item, Event | Retraction))
                yield from record_batches(zip(stated, repeat(None), strict=False))


def _in_lists(flat: pa.RecordBatch) -> pa.RecordBatch:
    """Events in the flat form with one row for each, and their triples in lists."""
    size, names = len(flat), flat.schema.names
    firsts = np.arange(size)
    if "event" in names:
        firsts = np.flatnonzero(np.diff(np.asarray(flat.column("event")), prepend=-1))
    terms = [flat.column(name).cast(pa.string()) for name in "spo"]
    triples = pa.StructArray.from_arrays(terms, fields=list(ARROW_TRIPLE))
    end, start = (flat.column(name).take(pa.array(firsts)) for name in ("end", "start"))
    empty = pa.repeat(pa.scalar(""), len(firsts))
    more = {n: flat.column(n).take(pa.array(firsts)).cast(pa.string()) for n in ("stream", "graph") if n in names}
    columns = {
        "start": start,
        "end": end,
        "time": end.cast(pa.timestamp("us", tz="UTC")),
        "stream": empty,
        "graph": empty,
        **more,
        "triples": pa.ListArray.from_arrays(pa.array(np.append(firsts, size).astype(np.int32)), triples),
        "retract": pa.repeat(pa.scalar(False), len(firsts)),
        "arrived": pa.nulls(len(firsts), pa.int64()),
    }
    return pa.RecordBatch.from_arrays([columns[field.name] for field in ARROW_EVENTS], schema=ARROW_EVENTS)


__all__ = ["events_from_rows"]
