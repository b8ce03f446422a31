"""The core of these tests over a session of its own: ``python -m tests.spark.core classic`` or ``connect``.

A process has sessions of one kind only, and of one version of PySpark, so every kind and version gets its own.  Prints
a line for each check that passes; the first that does not ends the process with an error.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import etalis_py as api
from etalis_py import Event
from etalis_py.spark import (
    EVENTS,
    events_from_columns,
    events_from_events,
    events_from_files,
    events_from_jsonl,
    events_from_nquads,
    events_from_rows,
    events_from_source,
    matches,
    session,
)
from etalis_py.spark.input.schema import END_OF_STREAM
from tests.spark.programs import PROGRAMS, SECOND, embedded, expected, ids_by_program, stream, write_batches

CONFIG = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
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


def _triple(statement: str) -> tuple[str, str, str]:
    s, p, o, _ = statement.split(" ")
    return s, p, o


CHECKS: tuple[Callable[[SparkSession, Path], None], ...] = (
    a_batch_has_the_ids_of_the_embedded_engine,
    a_stream_that_restarts_has_them_too,
    every_source_gives_the_same_event,
    a_stream_of_rows_gives_typed_matches,
)


def main(kind: str) -> None:
    where = {"remote": "local[2]"} if kind == "connect" else {"master": "local[2]"}
    warnings.simplefilter("ignore")
    spark = session(**where, shards=2, config=CONFIG)  # type: ignore[arg-type]
    assert ("connect" in type(spark).__module__) == (kind == "connect")
    try:
        for check in CHECKS:
            with TemporaryDirectory() as folder:
                check(spark, Path(folder))
            print(check.__name__, flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
