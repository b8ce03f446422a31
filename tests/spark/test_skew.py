"""A hot key of a stream: what a shard counts, and what is said of it."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from etalis_py import Event
from etalis_py.spark import EVENTS, matches, run_on_spark
from etalis_py.spark.errors import SkewWarning
from etalis_py.spark.plan.hot_keys_stream import count_keys
from tests.spark.programs import SECOND, write_batches
from tests.spark.test_streaming import THE_END

HOUR = 3_600_000  # milliseconds
SEQUENCE = "SELECT * { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z }"


@given(st.lists(st.sampled_from(["a", "b", "c", "d", "e", None]), max_size=60), st.booleans(), st.integers(1, 3))
def test_a_shard_counts_its_most_frequent_key(terms: list[str | None], coded: bool, shards: int) -> None:
    column = pa.array(terms, pa.string())
    table = pa.table({"s": column.dictionary_encode() if coded else column})
    for shard in range(shards):
        counted = count_keys([table], ("s",), shard, shards)
        own = Counter(t for t in terms if t is not None and crc32(t.encode()) % shards == shard)
        assert counted.rows == len(terms)
        assert counted.times == max(own.values(), default=0) == own[counted.key]


def test_a_key_is_counted_over_tables_and_columns() -> None:
    one = pa.table({"s": ["a", "b", "b"], "o": ["b", "b", "c"]})
    two = pa.table({"s": ["b", "a", "b"], "o": ["x", "y", "z"]})
    counted = count_keys([one, two], ("o", "s"), 0, 1)
    assert (counted.rows, counted.key, counted.times) == (6, "b", 4)
    assert count_keys([], ("s",), 0, 1).numbers() == {"batch": 0, "hot_key": "", "hot_events": 0}


def events(first: int, hot: int) -> list[Event]:
    """A thousand of which so many in ten have one key."""
    found = []
    for n in range(1_000):
        name = "<urn:hot>" if n % 10 < hot else f"<urn:x{n}>"
        at = (first + n // 10) * SECOND
        found.append(Event(at, at, ((name, f"<urn:{'pq'[n % 2]}>", "<urn:y>"),)))
    return found


def found(spark: SparkSession, folder: Path, **options: bool) -> DataFrame:
    read = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    return matches(SEQUENCE, read, shards=2, **options)  # type: ignore[arg-type]


def start(rows: DataFrame, folder: Path) -> StreamingQuery:
    writer = rows.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    return writer.option("path", str(folder / "out")).trigger(availableNow=True).start()


@contextmanager
def recorded(spark: SparkSession) -> Iterator[list[warnings.WarningMessage]]:
    """The warnings of hot keys that are given until Spark has told its listeners all that has happened."""
    told: list[warnings.WarningMessage] = []
    with warnings.catch_warnings(record=True) as every:
        warnings.simplefilter("always", SkewWarning)
        yield told
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(HOUR)  # it tells them on another thread
    told += [one for one in every if one.category is SkewWarning]


def run(spark: SparkSession, folder: Path, **options: bool) -> list[warnings.WarningMessage]:
    with recorded(spark) as told:
        start(found(spark, folder, **options), folder).awaitTermination()
    return told


def test_a_hot_key_of_a_stream_is_named_once_with_its_share(spark: SparkSession, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", [events(1, 3), events(200, 7), events(400, 8), THE_END])
    [told] = run(spark, tmp_path)
    assert str(told.message).startswith(
        "q1: 70% of the events of a batch have the key <urn:hot>, and the 2 shards wait"
    )
    assert {row["kind"] for row in spark.read.parquet(str(tmp_path / "out")).select("kind").distinct().collect()} == {
        "match"
    }


def test_each_run_of_a_stream_names_its_hot_key(spark: SparkSession, tmp_path: Path) -> None:
    """One DataFrame is started twice at the same time, and then once more."""
    write_batches(tmp_path / "in", [events(1, 7), events(200, 8), THE_END])
    rows = found(spark, tmp_path)
    with recorded(spark) as told:
        for query in [start(rows, tmp_path / "first"), start(rows, tmp_path / "second")]:
            query.awaitTermination()
    assert len(told) == 2
    with recorded(spark) as told:
        start(rows, tmp_path / "third").awaitTermination()
    assert len(told) == 1


def test_a_session_has_one_listener_whatever_number_of_streams_it_plans(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    found(spark, tmp_path)
    listeners = len(spark.streams._jsqm.listListeners())
    for _ in range(3):
        found(spark, tmp_path)
    assert len(spark.streams._jsqm.listListeners()) == listeners


def test_the_metrics_of_a_shard_have_its_hot_key(spark: SparkSession, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", [events(1, 3), THE_END])
    assert run(spark, tmp_path, metrics=True) == []
    rows = spark.read.parquet(str(tmp_path / "out")).where("kind = 'metric'").collect()
    counted = [json.loads(row["detail"]) for row in rows]
    assert sum(one.get("batch", 0) for one in counted) >= 1_000
    [hot] = [one for one in counted if one.get("hot_key") == "<urn:hot>"]
    assert hot["hot_events"] == 300


def test_a_run_that_goes_on_tells_it_before_its_session_ends(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.warns(SkewWarning, match="q1: 70% of the events of a batch have the key <urn:hot>") as told:
        run_on_spark(SEQUENCE, events(1, 7), spark=spark, shards=2, checkpoint=tmp_path / "run", lateness=0)
    assert len([one for one in told if one.category is SkewWarning]) == 1


@pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")
def test_what_runs_in_one_shard_is_not_measured(spark: SparkSession, tmp_path: Path) -> None:
    read = spark.readStream.schema(EVENTS).parquet(str(tmp_path))
    one = matches("ASK { ?x <urn:p> ?y }", read, shards=2)
    assert "skew_" not in one._jdf.queryExecution().logical().toString()
    assert "skew_" in matches(SEQUENCE, read, shards=2)._jdf.queryExecution().logical().toString()
