"""DataFrames of events: from files, text columns and from ``Event`` objects.

Text is parsed by the readers of ``etalis_py.streams``, in Python workers (``mapInPandas``).  Only what stands in one
row is looked at: N-Quads where the time of a graph stands in other lines need a reader that sees the whole file
(``events_from_files``).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from etalis_py.events import Event
from etalis_py.spark.schema import END_OF_STREAM
from etalis_py.spark.spec import SparkError
from etalis_py.streams import Idle, Punctuation, StreamError, read_stream

NQUADS_TERM = r'(<[^>]*>|_:\S+|"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9-]+|\^\^<[^>]*>)?)'
_TIME = "timestamp_micros(`end`)"


def events_from_events(spark: SparkSession, events: Iterable[Event]) -> DataFrame:
    """A batch DataFrame of ``Event`` objects, for small streams and for tests."""
    rows = [
        (start, end, stream, graph, [{"s": s, "p": p, "o": o} for s, p, o in triples])
        for start, end, triples, stream, graph in events
    ]
    schema = "start long, end long, stream string, graph string, triples array<struct<s: string, p: string, o: string>>"
    return _ordered_columns(spark.createDataFrame(rows, schema))


def events_from_jsonl(lines: DataFrame, *, column: str = "value", stream: str = "", time_unit: str = "s") -> DataFrame:
    """JSON lines, one message a row, as ``etalis run`` reads them; ``lines`` may be a stream (files, Kafka, socket)."""
    return _parsed(lines, column, _reader("jsonl", stream, {"time_unit": time_unit}))


def events_from_messages(
    messages: DataFrame, *, column: str = "value", format: str = "trig", stream: str = "", **options: Any
) -> DataFrame:
    """One whole document a row (TriG, N-Quads, Turtle, JSON lines) with its times; options of ``read_stream``."""
    return _parsed(messages, column, _reader(format, stream, options))


def events_from_files(
    spark: SparkSession, path: str, *, format: str = "nq", stream: str = "", **options: Any
) -> DataFrame:
    """Whole files, each read by one worker; options of ``read_stream``."""
    files = spark.read.format("binaryFile").load(path).select(F.col("content").alias("value"))
    return _parsed(files, "value", _reader(format, stream, options))


def events_from_nquads(lines: DataFrame, *, time: Any, column: str = "value", stream: str = "") -> DataFrame:
    """N-Quads or N-Triples, one statement a row, in the JVM; ``time`` is a column of microseconds.

    Lines are taken as canonical N-Triples spellings; blank lines and comments are left out, others that are no
    statement stop the job and are named.
    """
    text = F.trim(F.col(column))
    pattern = rf"^{NQUADS_TERM}\s+(<[^>]*>)\s+{NQUADS_TERM}(?:\s+(<[^>]*>|_:\S+))?\s*\.\s*$"
    kept = lines.where((text != "") & ~text.startswith("#"))
    parts = [F.regexp_extract(text, pattern, i) for i in range(1, 5)]
    bad = F.raise_error(F.concat(F.lit("this line is no N-Quads statement, correct it or leave it out: "), text))
    subject = F.when(text.rlike(pattern), parts[0]).otherwise(bad)
    at = (F.col(time) if isinstance(time, str) else time).cast("long")
    one = F.struct(subject.alias("s"), parts[1].alias("p"), parts[2].alias("o"))
    return _ordered_columns(
        kept.select(
            at.alias("start"),
            at.alias("end"),
            F.lit(stream).alias("stream"),
            parts[3].alias("graph"),
            F.array(one).alias("triples"),
        )
    )


def end_of_stream(spark: SparkSession, time: int) -> DataFrame:
    """The row that ends a finite streaming run: write it to the source after the last event.

    Every shard then closes all instants and reports what is only known at the end.
    """
    return events_from_events(spark, [Event(time, time, ((END_OF_STREAM, END_OF_STREAM, END_OF_STREAM),))])


def _ordered_columns(events: DataFrame) -> DataFrame:
    """The columns of EVENTS, in their order."""
    return events.select("start", "end", F.expr(_TIME).alias("time"), "stream", "graph", "triples")


def _reader(format: str, stream: str, options: dict[str, Any]) -> Callable[[bytes], list[Event]]:
    if format not in ("nq", "nt", "trig", "ttl", "jsonl"):
        raise SparkError(f"rows of format {format!r} cannot be read: choose nq, nt, trig, ttl or jsonl")

    def read(data: bytes) -> list[Event]:
        with read_stream(io.BytesIO(data), format=format, name=stream, **options) as items:
            return [item for item in items if not isinstance(item, (Idle, Punctuation))]

    return read


def _parsed(rows: DataFrame, column: str, read: Callable[[bytes], list[Event]]) -> DataFrame:
    schema = "start long, end long, stream string, graph string, triples array<struct<s: string, p: string, o: string>>"

    def parse(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            found: list[Event] = []
            for value in frame["value"]:
                data = value.encode() if isinstance(value, str) else bytes(value)
                try:
                    found += read(data)
                except StreamError as error:
                    raise SparkError(f"{error}\n  in the row {data[:200]!r}") from None
            yield pd.DataFrame(
                {
                    "start": pd.Series([e.start for e in found], dtype="int64"),
                    "end": pd.Series([e.end for e in found], dtype="int64"),
                    "stream": pd.Series([e.stream for e in found], dtype="object"),
                    "graph": pd.Series([e.graph for e in found], dtype="object"),
                    "triples": pd.Series(
                        [[{"s": s, "p": p, "o": o} for s, p, o in e.triples] for e in found], dtype="object"
                    ),
                }
            )

    return _ordered_columns(rows.select(F.col(column).alias("value")).mapInPandas(parse, schema))
