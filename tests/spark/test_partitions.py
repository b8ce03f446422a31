"""A session of the user's own: 200 partitions for whatever shuffles, and workers of any Python that is found."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from etalis_py import Event
from etalis_py.spark import (
    SparkError,
    events_from_columns,
    events_from_events,
    events_from_nquads,
    events_from_rate,
    matches,
    session,
    term,
)
from etalis_py.spark.session_kinds import cores_of
from etalis_py.spark.sessions import PARTITIONS, PROVIDER, ROCKSDB, SHARDS

SEQUENCE = "SELECT ?c WHERE { ?c <urn:p> ?x } SEQ { ?c <urn:q> ?y }"
EVENTS = [
    Event(at, at, ((f"<urn:{company}>", f"<urn:{name}>", '"1"'),))
    for at, company, name in ((1, "a", "p"), (2, "b", "p"), (3, "b", "q"))
]


@pytest.fixture
def untouched(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with Spark's own number of partitions."""
    before = spark.conf.get(PARTITIONS)
    spark.conf.set(PARTITIONS, "200")
    yield spark
    spark.conf.set(PARTITIONS, before)


def test_a_batch_has_as_many_partitions_as_are_of_use(untouched: SparkSession) -> None:
    found = matches(SEQUENCE, events_from_events(untouched, EVENTS))
    assert found.rdd.getNumPartitions() == 2 * untouched.sparkContext.defaultParallelism == 4
    assert [(row.bindings, row.start, row.end) for row in found.collect()] == [({"c": "<urn:b>"}, 2, 3)]
    assert matches(SEQUENCE, events_from_events(untouched, EVENTS), shards=7).rdd.getNumPartitions() == 7


def test_a_stream_with_very_many_partitions_is_refused_with_the_line_to_write(untouched: SparkSession) -> None:
    events = events_from_rate(untouched, 10)
    with pytest.raises(SparkError, match=r'200 shuffle partitions.*: set spark\.conf\.set\("spark.*", "4"\) before'):
        matches(SEQUENCE, events, lateness=0)
    with pytest.raises(SparkError, match="for 6 that are of use"):
        matches(SEQUENCE, events, lateness=0, shards=6)
    assert matches(SEQUENCE, events, lateness=0, shards=200).isStreaming


def test_the_shards_of_the_session_are_taken_at_their_word(spark: SparkSession) -> None:
    """Four are the most by default on these two cores."""
    before = spark.conf.get(PARTITIONS), spark.conf.get(SHARDS)
    try:
        session(shards=16)
        assert matches(SEQUENCE, events_from_events(spark, EVENTS)).rdd.getNumPartitions() == 16
        assert matches(SEQUENCE, events_from_rate(spark, 10), lateness=0).isStreaming
    finally:
        for name, value in zip((PARTITIONS, SHARDS), before, strict=True):
            spark.conf.set(name, value)


@pytest.mark.parametrize(
    ("settings", "cores"),
    [
        ({"spark.master": "local"}, 1),
        ({"spark.master": "local[3,4]"}, 3),
        ({"spark.master": "yarn", "spark.executor.instances": "5", "spark.executor.cores": "4"}, 20),
        (
            {
                "spark.master": "yarn",
                "spark.dynamicAllocation.enabled": "true",
                "spark.dynamicAllocation.maxExecutors": "10",
                "spark.executor.instances": "0",
                "spark.executor.cores": "4",
            },
            40,
        ),
        ({"spark.master": "yarn", "spark.dynamicAllocation.enabled": "true"}, None),
        ({"spark.master": "spark://one:7077", "spark.cores.max": "8"}, 8),
        ({}, None),
    ],
)
def test_the_cores_are_those_that_a_session_may_come_to_have(settings: dict[str, str], cores: int | None) -> None:
    class Told:
        class conf:
            get = staticmethod(settings.get)

    assert cores_of(Told()) == cores  # type: ignore[arg-type]


def test_a_stream_without_rocksdb_is_refused_with_the_line_to_write(spark: SparkSession) -> None:
    events = events_from_rate(spark, 10)
    spark.conf.unset(PROVIDER)
    try:
        with pytest.raises(SparkError, match=r"HDFSBacked.* need RocksDB: set spark") as refused:
            matches(SEQUENCE, events, lateness=0)
        exec(str(refused.value).split(": set ")[1].removesuffix(" before"), {"spark": spark})
        assert matches(SEQUENCE, events, lateness=0).isStreaming
    finally:
        spark.conf.set(PROVIDER, ROCKSDB)


@pytest.fixture
def unchosen(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """The session as PySpark makes it where nobody says which Python the workers are."""
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "python3")
    return spark


@pytest.mark.parametrize("source", ["events", "columns", "nquads"])
def test_workers_are_the_python_that_runs_now(unchosen: SparkSession, source: str) -> None:
    if source == "events":
        found = matches(SEQUENCE, events_from_events(unchosen, EVENTS))
    elif source == "columns":
        rows = unchosen.range(2).select(
            F.lit("<urn:b>").alias("s"), F.lit("<urn:p>").alias("p"), F.lit(1.5).alias("o"), "id"
        )
        found = events_from_columns(rows, s="s", p="p", o=term("o"), time="id")
    else:
        lines = unchosen.range(1).select(F.lit("<urn:b> <urn:p> <urn:x> .").alias("value"), F.col("id").alias("time"))
        found = events_from_nquads(lines, time="time")
    assert unchosen.sparkContext.pythonExec == sys.executable
    assert len(found.collect()) == {"events": 1, "columns": 2, "nquads": 1}[source]


def test_a_python_that_was_chosen_stays(spark: SparkSession) -> None:
    before = spark.sparkContext.pythonExec
    matches(SEQUENCE, events_from_events(spark, EVENTS))
    assert spark.sparkContext.pythonExec == before != sys.executable


def test_workers_begin_with_the_engine_loaded(spark: SparkSession) -> None:
    """They are forks of a process that has loaded it; what is asked of them does not load it."""
    scope = {"__name__": "sent by value"}
    exec(
        "def modules(batches):\n"
        "    import sys, pyarrow\n"
        "    for batch in batches:\n"
        "        yield pyarrow.record_batch({'loaded': ['etalis_py.engine.engine' in sys.modules]})\n",
        scope,
    )
    frame = spark.range(1).mapInArrow(scope["modules"], "loaded boolean")  # type: ignore[arg-type]
    assert [row.loaded for row in frame.collect()] == [True]
