"""What stops a job is said in one sentence, to those who wait for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from etalis_py import Limits, event
from etalis_py.spark import (
    EVENTS,
    SparkError,
    events_from_columns,
    events_from_events,
    events_from_rows,
    matches,
    run_on_spark,
    short_errors,
)
from etalis_py.spark.plan.options import JobSettings, Matching
from tests.spark.programs import write_batches

ONE = "SELECT ?x { ?x :v ?y }"
FLAT = "start long, end long, s string, p string, o string"


def run_to_the_end(found: DataFrame, folder: Path) -> None:
    writer = found.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def sentence_of(found: DataFrame) -> str:
    with pytest.raises(SparkError) as raised, short_errors():
        found.collect()
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__
    return str(raised.value)


def test_a_stream_with_the_checkpoint_of_another_program(spark: SparkSession, tmp_path: Path) -> None:
    for number, second in enumerate(("q", "r")):
        write_batches(tmp_path / "in", [[event(":a :p 1", number)]], first=number)
        events = spark.readStream.schema(EVENTS).parquet(str(tmp_path / "in"))
        found = matches(f"SELECT ?x {{ ?x :p ?y }} SEQ {{ ?x :{second} ?z }}", events, shards=1)
        if not number:
            run_to_the_end(found, tmp_path)
    told = r"^the checkpoint does not belong to this program: q1 has become another query: .*\Z"
    with pytest.raises(SparkError, match=told), short_errors():
        run_to_the_end(found, tmp_path)


PAIRS = "SELECT ?x { ?a :p ?x . ?b :p ?y }"
WINDOWED = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT1M] { WINDOW :w { ?a :p ?x . ?b :p ?y } }"
AT_ONCE = [event(f":a{n} :p {n}", 1, stream="http://example.org/s") for n in range(40)]


@pytest.mark.parametrize(
    ("query", "limits", "told"),
    [(PAIRS, Limits(derivations=100), "more than 100 solutions of query"), (WINDOWED, Limits(steps=100), "100")],
)
def test_the_limits_of_a_shard(spark: SparkSession, query: str, limits: Limits, told: str) -> None:
    with pytest.raises(SparkError, match=told):
        run_on_spark(query, AT_ONCE, spark=spark, shards=1, limits=limits)
    assert run_on_spark(query, AT_ONCE, spark=spark, shards=1).matches


def test_the_limits_of_a_stream_and_of_the_queries_that_come_while_it_runs(spark: SparkSession, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", [AT_ONCE, [event(":b :p 1", 9)], [event(":b :p 1", 10)]])
    events = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    limits = Limits(derivations=100)
    with pytest.raises(SparkError, match="more than 100 solutions of query"), short_errors():
        run_to_the_end(matches(PAIRS, events, shards=1, limits=limits), tmp_path)
    queries = spark.createDataFrame([("pairs", PAIRS)], "name string, text string")
    standing = matches({}, spark.read.parquet(str(tmp_path / "in")), queries=queries, shards=1, limits=limits)
    assert "more than 100 solutions of query" in sentence_of(standing)


def test_limits_that_are_none() -> None:
    for settings in (Matching, JobSettings):
        with pytest.raises(SparkError, match=r"^limits=100: give Limits\(…\), of etalis_py"):
            settings(limits=100)  # type: ignore[arg-type]


def test_a_row_that_cannot_be_read(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("2026-03-02T08:00:05Z", "a", 1), ("x", "b", 2)], "at string, m string, v int")
    told = sentence_of(matches(ONE, events_from_rows(rows, time="at", subject="m")))
    assert told.startswith("the table:1: the time cannot be read: expected an xsd:dateTime such as")


def test_a_value_that_an_expression_of_the_plan_refuses(spark: SparkSession, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", [[event(":a :v 1.75", 1)], [event(":a :v 2", 2)]])
    told = r"^\?y is \"1\.75\"\^\^<\S+>, which is not of type decimal\(5,1\): choose another in typed=$"
    events = spark.readStream.schema(EVENTS).parquet(str(tmp_path / "in"))
    with pytest.raises(SparkError, match=told), short_errors():
        run_to_the_end(matches("SELECT ?y { ?x :v ?y }", events, shards=1, typed={"y": "decimal(5,1)"}), tmp_path)


@pytest.mark.parametrize("text", [ONE, "SELECT ?x { EVENT { ?x :v ?y } }"])
def test_an_event_that_ends_before_it_starts(spark: SparkSession, tmp_path: Path, text: str) -> None:
    rows = [(5, 1, "<urn:a>", "<http://example.org/v>", '"1"')]
    spark.createDataFrame(rows, FLAT).write.parquet(str(tmp_path / "in"))
    told = "an event starts at 5 and ends before, at 1: swap the two"
    assert sentence_of(matches(text, spark.read.parquet(str(tmp_path / "in")))) == told
    with pytest.raises(SparkError, match=f"^{told}$"), short_errors():
        run_to_the_end(matches(text, spark.readStream.schema(FLAT).parquet(str(tmp_path / "in")), shards=1), tmp_path)


def test_other_errors_stay_as_they_are(spark: SparkSession) -> None:
    broken = F.udf(lambda value: {}[value], "long")
    rows = spark.range(1).select(F.lit("<urn:a>").alias("s"), F.lit("<urn:p>").alias("p"), broken("id").alias("o"))
    found = matches("SELECT ?x { ?x <urn:p> ?y }", events_from_columns(rows, s="s", p="p", o="o", time=F.lit(1)))
    with pytest.raises(Exception, match="KeyError: 0") as raised, short_errors():
        found.collect()
    assert type(raised.value).__module__.startswith("pyspark.")
    with pytest.raises(KeyError), short_errors():
        raise KeyError(1)
    with short_errors():
        assert matches(ONE, events_from_events(spark, [event(":a :v 1", 1)])).count() == 1
