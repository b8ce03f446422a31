"""Matches and dead letters out: files, memory, ``foreachBatch`` with a failure, and rows for Kafka."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter

from etalis_py import Event
from etalis_py.spark import EVENTS, SparkError, events_from_events, events_from_messages, matches, to_kafka
from etalis_py.streams import Clock
from tests.spark.programs import SECOND, embedded, write_batches
from tests.spark.test_page import snippet

TEXT = "SELECT ?c ?x { ?c <urn:p> ?x } SEQ { ?c <urn:q> ?y }"
BATCHES = [
    [
        Event(SECOND, SECOND, (("<urn:a>", "<urn:p>", '"1"'),)),
        Event(3 * SECOND, 3 * SECOND, (("<urn:a>", "<urn:q>", '"2"'),)),
        Event(9 * SECOND, 9 * SECOND, (("<urn:b>", "<urn:p>", '"3"'),)),
    ],
    [
        Event(2 * SECOND, 2 * SECOND, (("<urn:late>", "<urn:p>", '"0"'),)),
        Event(10 * SECOND, 10 * SECOND, (("<urn:b>", "<urn:q>", '"4"'),)),
    ],
    [Event(20 * SECOND, 20 * SECOND, (("<urn:z>", "<urn:p>", '"5"'),))],
]
IDS = embedded(TEXT, [event for batch in BATCHES for event in batch if event.triples[0][0] != "<urn:late>"])
assert len(IDS) == 2


def started(spark: SparkSession, folder: Path, then: Callable[[DataFrame], DataStreamWriter]) -> None:
    """Run the job of these tests to the end of its input."""
    if not (folder / "in").exists():
        write_batches(folder / "in", BATCHES)
    events = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    writer = then(matches(TEXT, events, shards=2))
    writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()


def test_one_query_writes_matches_and_dead_letters_to_two_folders(spark: SparkSession, tmp_path: Path) -> None:
    """A file sink that is partitioned by kind: one operator, two outputs, each exactly once."""
    out = str(tmp_path / "out")
    started(spark, tmp_path, lambda found: found.writeStream.partitionBy("kind").format("parquet").option("path", out))
    assert sorted(r["id"] for r in spark.read.parquet(f"{out}/kind=match").collect()) == IDS
    [late] = spark.read.parquet(f"{out}/kind=dead_letter").collect()
    assert (late["end"], late["detail"]) == (2 * SECOND, "came after its instant was over")


def test_memory(spark: SparkSession, tmp_path: Path) -> None:
    started(spark, tmp_path, lambda found: found.writeStream.format("memory").queryName("matches_seen"))
    assert sorted(r["id"] for r in spark.table("matches_seen").where("kind = 'match'").collect()) == IDS


def test_a_batch_that_is_given_again_writes_nothing_twice(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documented example; the sink fails after it wrote, once, so that Spark repeats the batch."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Callable[[DataFrame, int], None]] = {}
    exec(snippet("idempotent.py"), names)
    seen: list[int] = []

    def take(batch: DataFrame, number: int) -> None:
        names["save"](batch, number)
        with sqlite3.connect("matches.db") as database:
            [[count]] = database.execute("SELECT count(*) FROM matches")
        seen.append(number)
        if count and len(set(seen)) == len(seen):
            raise RuntimeError("power cut")

    with pytest.raises(Exception, match="power cut"):
        started(spark, tmp_path, lambda found: found.writeStream.foreachBatch(take))
    repeated = seen[-1]
    started(spark, tmp_path, lambda found: found.writeStream.foreachBatch(take))
    assert seen.count(repeated) == 2
    with sqlite3.connect("matches.db") as database:
        assert [row[0] for row in database.execute("SELECT id FROM matches ORDER BY id")] == IDS
        assert database.execute("SELECT count(*) FROM dead_letters").fetchone() == (1,)


EVERY = [event for batch in BATCHES[:1] for event in batch]


def test_rows_for_kafka(spark: SparkSession) -> None:
    """The key is the match's id, the value what ``etalis run`` prints."""
    found = matches(TEXT, events_from_events(spark, EVERY), shards=2)
    [row] = to_kafka(found).collect()
    assert row.asDict().keys() == {"key", "value"}
    assert row["key"] == embedded(TEXT, EVERY)[0]
    assert json.loads(row["value"]) == {
        "query": "q1",
        "id": row["key"],
        "bindings": {"c": {"type": "uri", "value": "urn:a"}, "x": {"type": "literal", "value": "1"}},
        "start": 1,
        "end": 3,
    }
    [dated] = to_kafka(found, topic="t", clock=Clock("datetime")).collect()
    assert dated["topic"] == "t"
    assert json.loads(dated["value"])["end"] == "1970-01-01T00:00:03Z"
    with pytest.raises(SparkError, match="name the first one too"):
        to_kafka(found, dead_letters="late")


def test_what_was_constructed_and_what_was_late_can_be_read_again(spark: SparkSession) -> None:
    text = "CONSTRUCT { ?c <urn:r> ?x } { ?c <urn:p> ?x } SEQ { ?c <urn:q> ?y }"
    rows = matches({"one": text}, events_from_events(spark, EVERY), shards=2)
    late = spark.createDataFrame(
        [
            (
                "dead_letter",
                None,
                None,
                None,
                None,
                [("<urn:l>", "<urn:p>", '"1"')],
                None,
                5,
                6,
                "<urn:s>",
                False,
                0,
                "late",
            )
        ],
        rows.schema,
    )
    nothing = late.withColumn("start", F.lit(None).cast("long")).withColumn("detail", F.lit("start is missing"))
    [shown] = to_kafka(nothing, topic="found", dead_letters="late").collect()
    assert json.loads(shown["value"])["triples"] == [["<urn:l>", "<urn:p>", '"1"']]
    assert json.loads(shown["value"])["reason"] == "start is missing"
    written = to_kafka(rows.union(late).union(late), topic="found", dead_letters="late")
    by_topic = {row["topic"]: row for row in written.collect()}
    assert by_topic["found"]["key"].startswith("one/")
    assert len({row["key"] for row in written.where("topic = 'late'").collect()}) == 1
    again = {
        name: events_from_messages(written.where(f"topic = '{name}'").limit(1), format="jsonl").collect()[0]
        for name in by_topic
    }
    assert (again["found"]["start"], again["found"]["end"]) == (SECOND, 3 * SECOND)
    assert [tuple(t) for t in again["found"]["triples"]] == [("<urn:a>", "<urn:r>", '"1"')]
    assert (again["late"]["start"], again["late"]["end"], again["late"]["stream"]) == (5, 6, "<urn:s>")
