"""Events from one topic of a real broker, matches to another, and the same ids after failures (``make test-kafka``)."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from benchmarks.workloads import w1_pairs
from etalis_py import Engine, Event
from etalis_py.spark import events_from_kafka, matches, to_kafka
from etalis_py.spark.input.schema import END_OF_STREAM
from tests.kafka.broker import PARTITIONS, Broker, broker
from tests.spark.programs import SECOND, embedded, stream
from tests.spark.test_page import snippet

__all__ = ["broker"]
TEXT = (
    "CONSTRUCT { ?x <urn:pq> ?z } { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } "
    "SELECT ?x ?y { ?x <urn:pq> ?y } SEQ { ?x <urn:r> ?z }"
)
LATE = Event(SECOND, SECOND, (("<urn:late>", "<urn:p>", "<urn:late>"),))
LATENESS = 2 * SECOND


def line(event: Event) -> str:
    times = [event.start // SECOND, event.end // SECOND]
    return json.dumps({"time": times, "triples": [" ".join(triple) for triple in event.triples]})


def send(spark: SparkSession, broker: Broker, topic: str, values: Iterable[str]) -> None:
    """By Spark's own sink: the partitions take turns."""
    texts = pa.array(list(values), pa.string())
    turns = pa.array([n % PARTITIONS for n in range(len(texts))], pa.int32())
    frame = spark.createDataFrame(pa.table({"value": texts, "partition": turns})).coalesce(1)
    frame.write.format("kafka").option("kafka.bootstrap.servers", broker.servers).option("topic", topic).save()


def received(spark: SparkSession, broker: Broker, topic: str) -> list[tuple[str, dict[str, object]]]:
    """All keys and values of a topic."""
    frame = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.servers).option("subscribe", topic)
    rows = frame.load().selectExpr("string(key)", "string(value)").collect()
    return sorted(((row[0], json.loads(row[1])) for row in rows), key=str)


def run(spark: SparkSession, broker: Broker, folder: Path) -> None:
    """One run of the job over what is new."""
    events = events_from_kafka(spark, broker.servers, "events")
    found = to_kafka(matches(TEXT, events, shards=2, lateness=LATENESS), topic="found", dead_letters="late")
    query = (
        found.writeStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.servers)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


@pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")
def test_from_topic_to_topic_through_a_restart(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    events = [event._replace(start=event.start + 60 * SECOND, end=event.end + 60 * SECOND) for event in stream(7, 120)]
    middle = len(events) // 2
    end = Event(300 * SECOND, 300 * SECOND, ((END_OF_STREAM,) * 3,))
    wanted = set(embedded(TEXT, events))
    assert len(wanted) > 20
    send(spark, broker, "events", map(line, events[:middle]))
    run(spark, broker, tmp_path)
    before = {key for key, _ in received(spark, broker, "found")}
    assert set() < before < wanted, "what the watermark has not passed yet is not reported"
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "saved")
    # The late one is later than the lateness: it goes to the second topic.
    send(spark, broker, "events", map(line, [*events[middle:], LATE]))
    run(spark, broker, tmp_path)
    send(spark, broker, "events", [line(end)])
    run(spark, broker, tmp_path)
    found = received(spark, broker, "found")
    assert {key for key, _ in found} == wanted
    assert len(found) == len(wanted), "nothing failed, so nothing was written twice"
    assert all(value["id"] == key for key, value in found)
    assert len({value["query"] for _, value in found}) == 2
    late = received(spark, broker, "late")
    assert [value["triples"] for _, value in late] == [["<urn:late> <urn:p> <urn:late> ."]]

    # As if the driver had died before it could note what it did: the older checkpoint goes on, and writes again.
    shutil.rmtree(tmp_path / "checkpoint")
    (tmp_path / "saved").rename(tmp_path / "checkpoint")
    run(spark, broker, tmp_path)
    again = received(spark, broker, "found")
    assert len(again) > len(found)
    assert {key for key, _ in again} == wanted
    assert {json.dumps(value) for _, value in again} == {json.dumps(value) for _, value in found}
    assert {key for key, _ in received(spark, broker, "late")} == {key for key, _ in late}


@pytest.mark.parametrize("size", [20_000, pytest.param(1_000_000, marks=pytest.mark.nightly)])
def test_many_events_have_the_local_ids_downstream(
    spark: SparkSession, broker: Broker, tmp_path: Path, size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """In many batches, and half of them twice: once their ids are looked at, each match is there once."""
    times = ((60 + n) * SECOND for n in range(size))
    events = [e._replace(start=t, end=t) for t, e in zip(times, w1_pairs.events(size), strict=True)]
    engine = Engine(w1_pairs.QUERY, policy="recent")
    wanted = {match.id for match in [*engine.push_all(events), *engine.close()]}
    assert len(wanted) == size // 2
    names = f"in-{size}", f"out-{size}"

    def run_over(lines: Iterable[str]) -> float:
        """Seconds that the job takes for these, which are sent before it starts."""
        send(spark, broker, names[0], lines)
        options = {"maxOffsetsPerTrigger": str(size // 4)}
        rows = events_from_kafka(spark, broker.servers, names[0], kafka=options)
        # The partitions have the same number of events, so in each batch they are hardly apart.
        found = matches(w1_pairs.QUERY, rows, shards=2, policy="recent", lateness=1_000 * SECOND)
        writer = to_kafka(found, topic=names[1]).writeStream.format("kafka").trigger(availableNow=True)
        writer = writer.option("kafka.bootstrap.servers", broker.servers)
        began = time.perf_counter()
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
        return time.perf_counter() - began

    half = size // 2
    run_over(map(line, events[:half]))
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "saved")
    took = run_over(map(line, events[half:]))
    shutil.rmtree(tmp_path / "checkpoint")
    (tmp_path / "saved").rename(tmp_path / "checkpoint")
    last = Event(2 * size * SECOND, 2 * size * SECOND, ((END_OF_STREAM,) * 3,))
    run_over([])
    run_over([line(last)])  # when all partitions have been read to their ends
    out = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.servers).option("subscribe", names[1])
    keys = [row["key"] for row in out.load().selectExpr("string(key) AS key").collect()]
    assert set(keys) == wanted
    assert len(keys) > len(wanted), "what was written before the failure was written again"
    with capsys.disabled():
        print(f"\n{half:,} events from topic to topic in {took:.1f} s: {half / took:,.0f} a second")


def test_a_message_without_a_time_has_that_of_kafka(spark: SparkSession, broker: Broker) -> None:
    """Each time it is read; and what a topic of documents holds is read document by document."""
    send(spark, broker, "untimed", ['{"triples": "<urn:a> <urn:p> <urn:b> ."}'] * (2 * PARTITIONS))
    frame = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.servers).option("subscribe", "untimed")
    stamps = sorted(row[0] for row in frame.load().selectExpr("unix_micros(timestamp)").collect())
    for _ in range(2):
        events = events_from_kafka(spark, broker.servers, "untimed", streaming=False, stream="urn:s")
        assert sorted(row["end"] for row in events.collect()) == stamps
    send(
        spark,
        broker,
        "documents",
        ['<urn:g> <http://www.w3.org/ns/prov#generatedAtTime> "5" . <urn:g> { <urn:a> a <urn:C> }'],
    )
    [document] = events_from_kafka(spark, broker.servers, "documents", streaming=False, format="trig").collect()
    assert (document["end"], document["graph"], len(document["triples"])) == (5 * SECOND, "<urn:g>", 1)


def test_the_documented_job_runs(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(snippet("kafka.py"), names)
    events = [Event(n * SECOND, n * SECOND, (("<urn:c>", p, '"1"'),)) for n, p in ((60, "<urn:p>"), (61, "<urn:q>"))]
    send(spark, broker, "ticks", map(line, events))
    query = names["start"](spark, broker.servers, str(tmp_path / "checkpoint"))
    try:
        query.processAllAvailable()
        later = events[0]._replace(start=90 * SECOND, end=90 * SECOND)
        send(spark, broker, "ticks", [line(later)])
        query.processAllAvailable()
    finally:
        query.stop()
    assert [key for key, _ in received(spark, broker, "matches")] == embedded(names["QUERY"], events)
