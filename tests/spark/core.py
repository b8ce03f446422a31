"""The core of these tests over a session of its own: ``python -m tests.spark.core classic`` or ``connect``.

A process has sessions of one kind only, and of one version of PySpark, so every kind and version gets its own (``make
test-spark-versions``).  Prints a line for each check that passes; the first that does not ends the process with an
error.
"""

from __future__ import annotations

import socket
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import etalis_py as api
from etalis_py import Event
from etalis_py.spark import (
    EVENTS,
    SparkError,
    events_from_columns,
    events_from_events,
    events_from_files,
    events_from_jsonl,
    events_from_nquads,
    events_from_rows,
    events_from_source,
    iri,
    matches,
    session,
)
from etalis_py.spark.input.catalyst_filters import flat_events
from etalis_py.spark.input.schema import END_OF_STREAM
from etalis_py.spark.pipeline import plan
from etalis_py.spark.plan.cut_points import AskedOfSpark
from etalis_py.spark.versions import CONNECT_STREAMS, LIMITED_READS, VERSION
from tests.spark.programs import PROGRAMS, SECOND, embedded, expected, ids_by_program, stream, write_batches
from tests.spark.settings import SHORT

SOME = {name: PROGRAMS[name] for name in ("seq", "recent", "absence", "tagged", "counts", "total")}
STREAMED = {name: PROGRAMS[name] for name in ("seq", "total")}
JOINED = "SELECT * { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z . ?x <urn:kind> ?k }"
THE_END = [Event(60 * SECOND, 60 * SECOND, ((END_OF_STREAM,) * 3,))]


def a_batch_has_the_ids_of_the_embedded_engine(spark: SparkSession, folder: Path) -> None:
    events = stream(1)
    assert ids_by_program(matches(SOME, events_from_events(spark, events)).collect()) == expected(SOME, events)


def a_stream_that_restarts_has_them_too(spark: SparkSession, folder: Path) -> None:
    """With a background that is too large to travel with each task."""
    events = stream(2)
    background = folder / "background.nt"
    known = [f'<urn:x{n % 5}> <urn:kind> "{n:064d}" .' for n in range(0, 3)]
    known += [f'<urn:other{n}> <urn:note> "{n:064d}" .' for n in range(1500)]
    background.write_text("\n".join(known), encoding="utf-8")
    programs = STREAMED | {"background": JOINED}
    options = {"background": str(background)}
    for first, batches in ((0, [events[:30]]), (1, [events[30:], THE_END])):
        write_batches(folder / "in", batches, first)
        rows = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
        found = matches(programs, rows, shards=2, lateness=0, **options)  # type: ignore[arg-type]
        writer = found.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
        writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
    rows_out = spark.read.schema(found.schema).parquet(str(folder / "out")).collect()
    wanted = {name: embedded(text, events, **options) for name, text in programs.items()}
    assert all(wanted.values())
    assert ids_by_program(rows_out) == wanted


def every_source_gives_the_same_event(spark: SparkSession, folder: Path) -> None:
    text = '{"time": 1, "triples": "<urn:c> <urn:p> 1 ."}\n'
    files = folder / "files"
    files.mkdir()
    (files / "one.jsonl").write_text(text, encoding="utf-8")
    one = spark.range(1)
    columns = one.select(F.lit("<urn:c>").alias("s"), F.lit("<urn:p>").alias("p"), F.lit(1).alias("o"))
    statement = '<urn:c> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    sources = [
        events_from_jsonl(one.select(F.lit(text).alias("value"))),
        events_from_files(spark, str(files / "one.jsonl")),
        events_from_source(spark, str(files)),
        events_from_columns(columns, s="s", p="p", o="o", time=F.lit(1_000_000)),
        events_from_nquads(one.select(F.lit(statement).alias("value"), F.lit(1_000_000).alias("t")), time="t"),
    ]
    [wanted] = embedded("SELECT ?c { ?c <urn:p> 1 }", [Event(SECOND, SECOND, (_triple(statement),))])
    for events in sources:
        assert [row.id for row in matches("SELECT ?c { ?c <urn:p> 1 }", events).collect()] == [wanted]


def the_own_source_streams(spark: SparkSession, folder: Path) -> None:
    files = folder / "files"
    files.mkdir()
    lines = ["<urn:c> <urn:p> 1 .", "<urn:c> <urn:q> 1 .", " ".join([*[END_OF_STREAM] * 3, "."])]
    for number, line in enumerate(lines, 1):
        (files / f"{number}.jsonl").write_text(f'{{"time": {number}, "triples": "{line}"}}\n', encoding="utf-8")
    text = "SELECT ?c { ?c <urn:p> 1 } SEQ { ?c <urn:q> 1 }"
    events = events_from_source(spark, str(files), streaming=True, **({"max_files": 1} if LIMITED_READS else {}))
    writer = matches(text, events, shards=2, lateness=0).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    writer.start(str(folder / "out")).awaitTermination()
    rows = spark.read.parquet(str(folder / "out")).collect()
    one = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    stated = [Event(at * SECOND, at * SECOND, (("<urn:c>", f"<urn:{p}>", one),)) for at, p in ((1, "p"), (2, "q"))]
    assert [row.id for row in rows if row.kind == "match"] == embedded(text, stated)


def typed_columns_are_literals_if_the_version_can_make_them(spark: SparkSession, folder: Path) -> None:
    rows = spark.range(1).select(F.lit("urn:c").alias("c"), F.lit(1.5).alias("v"), F.lit(SECOND).alias("t"))
    asked: dict[str, Any] = {"s": iri("c"), "p": F.lit("<urn:p>"), "o": "v", "time": "t"}
    if VERSION < (4, 1):
        with pytest.raises(SparkError, match=r"PySpark 4\.1 and newer can"):
            events_from_columns(rows, **asked)
        return
    [found] = matches("SELECT ?v { ?c <urn:p> ?v }", events_from_columns(rows, **asked), typed=True).collect()
    assert (found.kind, found.v) == ("match", "1.5E0")


def a_query_is_told_what_the_columns_cannot_give(spark: SparkSession, folder: Path) -> None:
    """The names travel as metadata of a column; a row without a time is a dead letter, and a name may have a dot."""
    table = spark.createDataFrame([(1, "m1", 70.5), (None, "m2", 80.5)], "at long, machine string, `temp.in` double")
    events = events_from_rows(table, time="at", subject="machine")
    with pytest.warns(UserWarning, match="no column gives the predicate :tmep_in; did you mean :temp_in"):
        matches("SELECT ?m { ?m :tmep_in ?t }", events)
    with warnings.catch_warnings(action="error"):
        matches("SELECT ?m { ?m :tmep_in ?t }", events.union(events))
        found = matches("SELECT ?m { ?m :temp_in ?t }", events, typed=True).orderBy("kind").collect()
    assert [(row.kind, row.m) for row in found] == [("dead_letter", None), ("match", "http://example.org/m1")]


def workers_are_forked_with_the_engine_loaded(spark: SparkSession, folder: Path) -> None:
    def loaded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"loaded": ["etalis_py.engine.engine" in sys.modules]})

    assert spark.range(1).mapInArrow(loaded, "loaded boolean").collect() == [(True,)]


def a_hot_key_is_counted(spark: SparkSession, folder: Path) -> None:
    """Six of ten events have one key; the objects are even."""
    rows = spark.range(40_000).selectExpr(
        "id * 1000000 AS end",
        "CASE WHEN id % 10 < 6 THEN '<urn:hot>' ELSE concat('<urn:x', id, '>') END AS s",
        "CASE WHEN id % 2 = 1 THEN '<urn:p>' ELSE '<urn:q>' END AS p",
        "concat('<urn:o', id % 7, '>') AS o",
    )
    hot = []
    for text in ("{ { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } }", "{ { ?y <urn:p> ?x } SEQ { ?z <urn:q> ?x } }"):
        parts = plan(f"SELECT * {text} WITHIN PT5S", 3, None, "rdfs", None)[1]
        hot.append(AskedOfSpark(flat_events(rows), parts, 3, parts).hot(3))
    assert hot == [{0}, set()]


def a_stream_of_rows_gives_typed_matches(spark: SparkSession, folder: Path) -> None:
    """A table with one event per row, asked by EVENT; the last row only lets time pass."""
    schema = "at long, machine string, temp double, hum int"
    cells = [(60 + n, f"m{n % 3}", n / 2, n if n % 4 else None) for n in range(30)]
    for number, rows in enumerate((cells[:15], cells[15:], [(200, "m0", 0.0, None)], [(201, "m0", 0.0, None)])):
        spark.createDataFrame(rows, schema).coalesce(1).write.mode("append").parquet(str(folder / f"in/n={number}"))
    table = pa.Table.from_pylist([dict(zip(("at", "machine", "temp", "hum"), row, strict=True)) for row in cells])
    text = "SELECT ?m ?t ?u { EVENT { ?m :temp ?t ; :hum ?h } NEXT EVENT { ?m :temp ?u ; :hum ?h2 } }"
    rows = spark.readStream.schema(f"{schema}, n int").option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    events = events_from_rows(rows.drop("n"), time="at", subject="machine")
    found = matches(text, events, shards=2, lateness="30 seconds", typed={"t": "double", "u": "double"})
    writer = found.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
    written = spark.read.schema(found.schema).parquet(str(folder / "out")).orderBy("id").collect()
    wanted = sorted(api.run(text, table, time="at", subject="machine"), key=lambda match: match.id)
    assert [(row.kind, row.id, row.t, row.u) for row in written] == [("match", m.id, m["t"], m["u"]) for m in wanted]
    assert wanted


def streams_are_refused(spark: SparkSession, folder: Path) -> None:
    rows = spark.readStream.schema(EVENTS).parquet(str(folder))
    with pytest.raises(SparkError, match=r"since PySpark 4\.1: take that, or a session without Connect"):
        matches(SOME, rows, shards=2, lateness=0)


def _triple(statement: str) -> tuple[str, str, str]:
    s, p, o, _ = statement.split(" ")
    return s, p, o


Check = Callable[[SparkSession, Path], None]
BATCHES: tuple[Check, ...] = (
    workers_are_forked_with_the_engine_loaded,
    a_batch_has_the_ids_of_the_embedded_engine,
    every_source_gives_the_same_event,
    typed_columns_are_literals_if_the_version_can_make_them,
    a_hot_key_is_counted,
    a_query_is_told_what_the_columns_cannot_give,
)
STREAMS: tuple[Check, ...] = (
    a_stream_that_restarts_has_them_too,
    the_own_source_streams,
    a_stream_of_rows_gives_typed_matches,
)
CHECKS = (*BATCHES, *STREAMS)


def a_free_port() -> dict[str, str]:
    """The setting that puts a server of Spark Connect on a free port, where its clients in this process look for it.

    All servers have the same port otherwise, so the tests of a second checkout would meet the server of the first.
    """
    from pyspark.sql.connect.client import DefaultChannelBuilder

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    DefaultChannelBuilder.default_port = staticmethod(lambda: port)  # type: ignore[method-assign]
    return {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port)}


@contextmanager
def session_of(kind: str) -> Iterator[SparkSession]:
    """Failed tasks are tried again: local mode does not do so unless told."""
    where = {"remote" if kind == "connect" else "master": "local[2,4]"}
    warnings.simplefilter("ignore")
    config = SHORT | (a_free_port() if kind == "connect" else {})
    spark = session(**where, shards=2, config=config)  # type: ignore[arg-type]
    assert ("connect" in type(spark).__module__) == (kind == "connect")
    try:
        yield spark
    finally:
        spark.stop()


def main(kind: str) -> None:
    with session_of(kind) as spark:
        streamed = STREAMS if CONNECT_STREAMS or kind == "classic" else (streams_are_refused,)
        for check in (*BATCHES, *streamed):
            with TemporaryDirectory() as folder:
                check(spark, Path(folder))
            print(check.__name__, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
