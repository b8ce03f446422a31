"""DataFrames of events: from files, Kafka, sockets, text columns, ``Event`` objects, or generated at a rate.

Text is parsed by the readers of ``etalis_py.streams``, in Python workers (``mapInArrow``).  If Spark has the source,
Spark reads the bytes, so that its checkpoint knows what was read; sources that Spark does not have are in
``datasource``.  A message without a time gets its time of arrival: the time that Kafka or the socket gave it, otherwise
the wall clock of the worker, which is different when a batch is repeated.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from time import time_ns
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyspark
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from etalis_py.durable.identity import file_digest
from etalis_py.events import Event, Retraction
from etalis_py.garbage import few_collections
from etalis_py.spark.errors import SparkError, check_frame
from etalis_py.spark.input.change_feeds import feed_of, withdrawals
from etalis_py.spark.input.column_terms import ColumnTerm, as_text, spelled, term
from etalis_py.spark.input.columns import time_of, typed
from etalis_py.spark.input.datasource import EventSource, refuse_remote
from etalis_py.spark.input.event_objects import event_objects
from etalis_py.spark.input.reading import (
    OPTIONS,
    STATEMENTS,
    SourceOptions,
    described,
    messages_of,
    reading,
    record_batches,
    statement_batches,
    term_of_stream,
)
from etalis_py.spark.input.schema import ARROW_EVENTS, END_OF_STREAM, EVENTS, NO_TERM, READING
from etalis_py.spark.sessions import use_this_python
from etalis_py.streams.kafka import RETRACT, said

_TIME = "timestamp_micros(`end`)"
MANY = 1 << 20  # most messages in a Kafka partition per millisecond


def events_from_events(spark: SparkSession, events: Iterable[Event]) -> DataFrame:
    """A batch DataFrame of ``Event`` objects, for small streams and for tests.

    They count as arriving later than the events of every DataFrame that this function made before.
    """
    rows = [
        (
            e.start,
            e.end,
            e.stream,
            e.graph,
            [{"s": s, "p": p, "o": o} for s, p, o in e.triples],
            isinstance(e, Retraction),
            n,
        )
        # Making an event takes over 1 ns, so calls never share numbers.
        for n, e in enumerate(event_objects(events, "events_from_events"), time_ns())
    ]
    use_this_python(spark)
    return _ordered_columns(spark.createDataFrame(rows, _WITHOUT_TIME))


def events_from_jsonl(
    lines: DataFrame,
    *,
    column: str = "value",
    arrival: str | Column | None = None,
    stream: str = "",
    time_unit: str = "s",
) -> DataFrame:
    """JSON lines, one message per row, as ``etalis run`` reads them; ``lines`` may be a stream.

    ``arrival``: a timestamp column, the time of messages that have none.
    """
    check_frame("lines", lines, "events_from_jsonl", "spark.read.text(path) one of a file", table=False)
    return _parsed(lines, _text(lines, column), reading("jsonl", stream, {"time_unit": time_unit}), arrival)


def events_from_messages(
    messages: DataFrame,
    *,
    column: str = "value",
    arrival: str | Column | None = None,
    format: str = "trig",
    stream: str = "",
    **options: Any,
) -> DataFrame:
    """One whole document per row (TriG, N-Quads, Turtle, JSON lines, CSV with its header, Jelly) with its times.

    ``options``: those of ``read_stream`` (time_predicate, time_unit, mapping, …).  ``arrival``: as for
    ``events_from_jsonl``.
    """
    check_frame("messages", messages, "events_from_messages", "events_from_files reads whole files", table=False)
    return _parsed(messages, _text(messages, column), reading(format, stream, options), arrival)


def events_from_files(
    spark: SparkSession,
    path: str,
    *,
    format: str = "",
    stream: str = "",
    streaming: bool = False,
    max_files: int | None = None,
    **options: Any,
) -> DataFrame:
    """Whole files of any format, also compressed with gzip, each read and held by one worker.

    ``path``: a file, a folder or a pattern, on any file system that Spark knows.  ``streaming``: new files are read
    as they appear (``max_files`` at a time), each once.  ``options``: those of ``read_stream``.
    """
    how = reading(format, stream, options)
    if not streaming:
        files = _loaded(spark.read.format("binaryFile"), path)
    else:
        reader = spark.readStream.format("binaryFile").schema(_BINARY_FILE)
        files = _loaded(reader if max_files is None else reader.option("maxFilesPerTrigger", max_files), path)
    return _parsed(files, F.col("content"), how, None, name=F.col("path"))


def events_from_kafka(
    spark: SparkSession,
    servers: str,
    topic: str,
    *,
    format: str = "jsonl",
    stream: str = "",
    streaming: bool = True,
    starting: str = "earliest",
    kafka: Mapping[str, str] | None = None,
    **options: Any,
) -> DataFrame:
    """The messages of a topic (or of several, separated by commas); each value is a JSON line or a whole document.

    ``servers``: host:port, separated by commas.  ``starting``: earliest, latest, or Spark's JSON of offsets; a
    checkpoint takes precedence.  ``kafka``: further options of Spark's connector, which must be among the jars
    (``spark.jars.packages``).  A message without a time has the time that Kafka gave it.  The header ``retract`` marks
    withdrawals, as in ``streams.kafka``; other tombstones are left out.
    """
    how = reading(format, stream, options)
    reader: Any = (spark.readStream if streaming else spark.read).format("kafka")
    for name, value in {
        "kafka.bootstrap.servers": servers,
        "subscribe": topic,
        "startingOffsets": starting,
        "includeHeaders": "true",
        **(kafka or {}),
    }.items():
        reader = reader.option(name, value)
    return events_from_messages_of_kafka(_loaded(reader), how)


def events_from_messages_of_kafka(rows: DataFrame, how: SourceOptions) -> DataFrame:
    """The events of rows in the form of Spark's connector, with their headers."""
    given = F.transform(
        F.filter("headers", lambda header: header["key"] == RETRACT),
        lambda header: F.coalesce(header["value"], F.lit(b"")),
    )
    headers = F.coalesce(given, F.array().cast("array<binary>"))
    kept = rows.where(F.col("value").isNotNull() | (F.size(headers) > 0))
    # Ordered by time and, within a millisecond, by the place in the partition.
    arrived = F.unix_millis("timestamp") * MANY + F.col("offset") % MANY
    return _parsed(kept, F.col("value"), how, "timestamp", headers=headers, arrived=arrived)


def events_from_socket(
    spark: SparkSession, host: str, port: int, *, stream: str = "", time_unit: str = "s"
) -> DataFrame:
    """JSON lines from a socket: for experiments only, because Spark cannot read lost lines again after a failure."""
    lines = spark.readStream.format("socket").option("host", host).option("port", port)
    received = lines.option("includeTimestamp", True).load()
    return events_from_jsonl(received, arrival="timestamp", stream=stream, time_unit=time_unit)


def events_from_rate(
    spark: SparkSession,
    rate: int,
    *,
    batch: int | None = None,
    keys: int = 1000,
    predicates: str | Sequence[str] = ("<urn:etalis:p>", "<urn:etalis:q>"),
    partitions: int | None = None,
) -> DataFrame:
    """Generated events for load tests: ``rate`` per second.

    With ``batch``, each batch has that many, as fast as they are read, with ``rate`` per second of event time.

    Event n is one triple: the subject is key n mod ``keys`` (``<urn:etalis:key:…>``), the object the integer n, and the
    predicate moves on in ``predicates`` with each round of the keys.  So every key has p, q, p, q, … in turn.
    """
    if rate < 1 or keys < 1 or not predicates or (batch is not None and batch < 1):
        raise SparkError("rate, keys and batch are 1 or more, and there is at least one predicate")
    if batch is None:
        source = spark.readStream.format("rate").option("rowsPerSecond", rate)
    else:
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", batch)
        source = source.option("advanceMillisPerBatch", max(1, batch * 1000 // rate))
    rows = (source if partitions is None else source.option("numPartitions", partitions)).load()
    subject = F.concat(F.lit("<urn:etalis:key:"), (F.col("value") % keys).cast("string"), F.lit(">"))
    predicates = (predicates,) if isinstance(predicates, str) else predicates
    round_of = F.floor(F.col("value") / keys) % len(predicates)
    predicate = F.element_at(F.array(*map(F.lit, predicates)), (round_of + 1).cast("int"))
    integer = F.lit('"^^<http://www.w3.org/2001/XMLSchema#integer>')
    object = F.concat(F.lit('"'), F.col("value").cast("string"), integer)
    return events_from_columns(rows, s=subject, p=predicate, o=term(object), time=F.unix_micros("timestamp"))


def events_from_columns(
    rows: DataFrame,
    *,
    s: str | Column | ColumnTerm,
    p: str | Column | ColumnTerm,
    o: str | Column | ColumnTerm,
    time: str | Column,
    start: str | Column | None = None,
    stream: str = "",
    time_unit: str = "us",
    changes: str = "",
) -> DataFrame:
    """Any DataFrame, each row one triple, of columns that hold values.

    ``s``, ``p``, ``o``: ``iri("machine", base)``, ``literal("status", lang="en")`` or ``term("o")``.  A plain column is
    a literal where an object stands, and holds the spellings of IRIs otherwise.  A row with a value that is no such
    term becomes a dead letter that shows it.

    ``time``: timestamps, dates, or numbers that count ``time_unit`` since the epoch.  ``start``: for intervals;
    ``time`` is then their end.  For the conversion of types see ``spark.columns``.  ``changes``: as for
    ``events_from_rows``, the column that says what became of a row in the change feed of a table.
    """
    check_frame("rows", rows, "events_from_columns")
    end = time_of(rows, time, "time", time_unit)
    withdrawn = withdrawals(feed_of(rows, changes))
    options = {"stream": stream, "time_unit": time_unit, "changes": changes}
    columns = {"s": s, "p": p, "o": o, "time": time, "start": start}
    by = {name: text for name, text in options.items() if text} | as_text(columns)
    terms = {place: spelled(rows, given, place) for place, given in (("s", s), ("p", p), ("o", o))}
    events = rows.select(
        (end if start is None else time_of(rows, start, "start", time_unit)).alias("start"),
        end.alias("end"),
        F.lit(term_of_stream(stream)).alias("stream", metadata={READING: by}),
        F.lit("").alias("graph"),
        *(made.alias(place) for place, (made, _) in terms.items()),
        F.coalesce(*(wrong for _, wrong in terms.values())).alias(NO_TERM),
        *(column.alias(name) for name, column in withdrawn.items()),
    )
    return _flat(events, NO_TERM, *withdrawn)


def events_from_source(spark: SparkSession, source: str, *, streaming: bool = False, **options: Any) -> DataFrame:
    """A source of ``format("etalis")`` (see ``datasource``): files that may grow, or a stream container ``http(s)://``.

    ``options``: those of ``read_stream`` (a mapping is the name of a file), and ``max_files``.
    """
    refuse_remote(source)
    spark.dataSource.register(EventSource)
    reader = (spark.readStream if streaming else spark.read).format("etalis")
    # Spark's helper processes run in the folder in which Spark was started, which need not be the current one.
    if "mapping" in options:
        options["mapping"] = os.path.abspath(options["mapping"])
    for name, value in options.items():
        reader = reader.option(name, ",".join(value) if isinstance(value, (list, tuple)) else value)
    events = reader.load(source if "://" in source else os.path.abspath(source))
    by = {"time_unit": "s"} | {
        name: str(value) for name, value in options.items() if name in OPTIONS and name != "format"
    }
    if "mapping" in options:
        by["mapping"] = file_digest(options["mapping"])
    return events.withMetadata("stream", {READING: by})


def events_from_nquads(lines: DataFrame, *, time: Any, column: str = "value", stream: str = "") -> DataFrame:
    """N-Quads or N-Triples, one statement per row; ``time`` is a column of timestamps, or microseconds.

    Terms get their canonical spellings, and blank nodes keep their labels.  Blank lines and comments are left out; any
    other line that is not a statement stops the job with an error that shows it.
    """
    check_frame("lines", lines, "events_from_nquads", "spark.read.text(path) one of a file", table=False)
    chosen = lines.select(
        _text(lines, column).cast("string").alias("value"), time_of(lines, time, "time").alias("time")
    )

    def parse(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with few_collections():
            yield from statement_batches(batches)

    use_this_python(lines.sparkSession)
    rows = chosen.mapInArrow(parse, STATEMENTS)
    return _flat(rows.withColumns({"start": F.col("end"), "stream": F.lit(term_of_stream(stream))}))


def end_of_stream(spark: SparkSession, time: int) -> DataFrame:
    """The row that ends a finite streaming run: write it to the source after the last event.

    Every shard then closes all instants and reports what is only known at the end.
    """
    return events_from_events(spark, [Event(time, time, ((END_OF_STREAM, END_OF_STREAM, END_OF_STREAM),))])


_LACKING = {
    "source: kafka": f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}",
    "s3a.S3AFileSystem not found": "org.apache.hadoop:hadoop-aws:… with the version of Spark's hadoop-client-api",
}
"""How Spark says that it lacks a connector, and the package that has it."""


def _loaded(reader: Any, *path: str) -> DataFrame:
    """What Spark reads; if it lacks the connector, an error that names the package."""
    try:
        rows: DataFrame = reader.load(*path)
    except Exception as error:
        for sign, package in _LACKING.items():
            if sign in str(error):
                raise SparkError(
                    f"Spark has no connector for this source: add {package} to spark.jars.packages, as in "
                    'session(config={"spark.jars.packages": "…"}), before the session starts'
                ) from error
        raise
    return rows


def _ordered_columns(events: DataFrame) -> DataFrame:
    """The columns of EVENTS, in their order."""
    time = F.expr(_TIME).alias("time")
    return events.select("start", "end", time, "stream", "graph", "triples", "retract", "arrived")


def _flat(events: DataFrame, *more: str) -> DataFrame:
    """Events of one triple each, with the triple in three columns."""
    return events.select("start", "end", F.expr(_TIME).alias("time"), "stream", "graph", "s", "p", "o", *more)


_BINARY_FILE = "path string, modificationTime timestamp, length long, content binary"
_WITHOUT_TIME = ", ".join(EVENTS.split(", time timestamp, "))
_PARSED = pa.schema([field for field in ARROW_EVENTS if field.name != "time"])


def _text(rows: DataFrame, name: str) -> Column:
    """The column that holds lines or documents."""
    column, kind = typed(rows, name, "column")
    if not isinstance(kind, T.StringType | T.BinaryType):
        raise SparkError(
            f"the column {name} is of type {kind.simpleString()}, and lines and documents are strings or binary: name "
            "their column with column="
        )
    return column


def _parsed(
    rows: DataFrame,
    value: Column,
    how: SourceOptions,
    arrival: str | Column | None,
    name: Column | None = None,
    headers: Column | None = None,
    arrived: Column | None = None,
) -> DataFrame:
    """The events of rows; errors name the row.  ``headers``: the values of the headers that withdraw the message."""
    unknown = F.lit(None).cast("long")
    chosen = rows.select(
        value.cast("binary").alias("value"),
        (unknown if arrival is None else time_of(rows, arrival, "arrival")).alias("arrival"),
        (F.lit("") if name is None else name).alias("name"),
        (F.array().cast("array<binary>") if headers is None else headers).alias("headers"),
        (unknown if arrived is None else arrived).alias("arrived"),
    )

    def parse(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with few_collections():
            yield from record_batches(_events(how, batches), _PARSED)

    use_this_python(rows.sparkSession)
    events = _ordered_columns(chosen.mapInArrow(parse, _WITHOUT_TIME))
    return events.withMetadata("stream", {READING: described(how)})


def _events(how: SourceOptions, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Event, int | None]]:
    messages = messages_of(how)
    for batch in batches:
        for given, arrival, path, headers, number in zip(*(c.to_pylist() for c in batch.columns), strict=True):
            value, retracts = said(given, ((RETRACT, header) for header in headers))
            if value is None:
                raise SparkError("a row has no text: leave out rows whose column is null")
            # A path is a URI; its last part is the document's name, as for ``read_stream``.
            name = unquote(PurePosixPath(urlsplit(path).path).name)
            place = path or f"the row {value[:200]!r}"
            for event in messages.events(value, place=place, name=name, arrival=arrival, retract=retracts):
                yield event, number
