"""Tables of which each row is one event: read as ``run`` reads the same frame, by a mapping or by two named columns.

Spark hands over the columns that the mapping uses, and they stay columns: each distinct value becomes a term once.
Nothing is unpivoted or grouped, because a row of the table is a row of the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from etalis_py.events import Event, Retraction
from etalis_py.garbage import few_collections
from etalis_py.numba_cache import ready
from etalis_py.spark.errors import SparkError
from etalis_py.spark.input.change_feeds import AFTER, BEFORE, OF_FEEDS, feed_of, unknown_kind
from etalis_py.spark.input.reading import SourceOptions, reading, record_batches
from etalis_py.spark.input.schema import ARROW_EVENTS, ARROW_TRIPLE, EVENTS, GIVEN
from etalis_py.spark.sessions import use_this_python
from etalis_py.streams import StreamError, read_stream
from etalis_py.streams.csv_mapping import RowMapping, read_mapping
from etalis_py.streams.draft import Samples
from etalis_py.streams.drafting import naming_of


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
    own); every other column is a property of its name, ``:price``.  Or a ``mapping``, as for ``run``: a dictionary or a
    TOML file.  ``time_unit``: that of times which are numbers.  ``changes``: the column that says what became of a
    row in the change feed of a table, ``_change_type`` of Delta and Iceberg; what was deleted or updated withdraws the
    event that it had stated, in the order of ``_commit_version`` or ``_change_ordinal``.
    """
    fed = feed_of(rows, changes)
    try:
        naming_of(time, subject, mapping)
        if mapping is None:
            mapping = _drafted(rows.drop(changes, *OF_FEEDS) if changes else rows, time, subject)
        how = reading("csv", stream, {"mapping": mapping, "time_unit": time_unit})
        used = read_mapping(how.options["mapping"]).with_columns(rows.columns)
    except StreamError as error:
        raise SparkError(f"the rows cannot be read so: {error}") from None
    absent = sorted(used.used - set(rows.columns))
    if absent:
        raise SparkError(f"there is no column {absent[0]!r} among {', '.join(rows.columns)}; correct the mapping")

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with few_collections():
            for batch in batches:
                yield from _changed(how, batch, fed) if fed else _events(how, batch)

    use_this_python(rows.sparkSession)
    chosen = rows.select(*(F.col(f"`{name}`") for name in rows.columns if name in used.used or name in fed))
    schema = cast("StructType", StructType.fromDDL(EVENTS))
    schema["triples"].metadata = _given(used, how.stream)
    return chosen.mapInArrow(read, schema)


def _given(mapping: RowMapping, stream: str) -> dict[str, Any]:
    """What the events can have, as metadata, so that ``matches`` can warn of a query that asks for anything else."""
    if mapping.properties is None:
        return {}  # rows name the predicates
    given = {"predicates": [*mapping.properties], "subjects": sorted(mapping.subjects)}
    return {GIVEN: given | ({"streams": [stream]} if mapping.stream is None else {})}


def _drafted(rows: DataFrame, time: str, subject: str | None) -> dict[str, Any]:
    """The mapping by two columns; nothing is guessed from values, which another run might guess differently."""
    if not time or subject == "":
        raise SparkError(
            "name the columns with the time and with what a row is about, time=… and subject=… (None: each row is a "
            "node of its own), or give a mapping, which etalis map drafts from a sample"
        )
    return naming_of(time, subject).drafted(Samples({name: [] for name in rows.columns}))


def _changed(how: SourceOptions, batch: pa.RecordBatch, fed: list[str]) -> Iterator[pa.RecordBatch]:
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
            for events in _events(how, batch.drop_columns(fed).filter(chosen)):
                same = {"retract": pa.scalar(gone), "arrived": pa.scalar(number, pa.int64())}
                columns = [
                    pa.repeat(same[name], len(events)) if name in same else events.column(name)
                    for name in events.schema.names
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=ARROW_EVENTS)


def _events(how: SourceOptions, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The events of a batch of rows."""
    if not len(batch):
        return
    table = pa.Table.from_batches([batch])
    with read_stream(table, name=how.stream, **how.options) as events:
        for chunk in events.chunks(large=ready()):
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
