"""Shards of a batch that read the source themselves find what one engine finds, and do so only where it is cheap."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

import etalis_py.spark.input.shards_that_scan
from etalis_py import Event
from etalis_py.spark import events_from_events, matches
from etalis_py.spark.input.shards_that_scan import prunes
from tests.spark import windowed
from tests.spark.programs import GLOBAL, SECOND, SHARDED, embedded, expected, ids_by_program, stream

SCHEMA = pa.schema([(name, pa.int64()) for name in ("start", "end")] + [(n, pa.string()) for n in ("stream", *"spo")])
DERIVING = {name for name, text in (SHARDED | GLOBAL).items() if "CONSTRUCT" in text}


def written(folder: Path, events: Sequence[Event], rows: int = 7) -> str:
    """Events in three files in any order, a triple a row, in small row groups."""
    flat = [(e.start, e.end, e.stream, *triple) for e in events for triple in e.triples]
    random.Random(len(flat)).shuffle(flat)
    for n in range(3):
        table = pa.table(dict(zip(SCHEMA.names, zip(*flat[n::3], strict=True), strict=True)), schema=SCHEMA)
        pq.write_table(table, folder / f"{n}.parquet", row_group_size=rows)
    return str(folder)


Opens = Callable[[Path | str], DataFrame]


@pytest.fixture(params=["by Arrow", "by Spark"])
def opened(request: pytest.FixtureRequest, spark: SparkSession) -> Opens:
    """Parquet files that shards decode themselves, or, because there is a filter before, that Spark reads for each."""
    if request.param == "by Arrow":
        return lambda path: spark.read.parquet(str(path))
    return lambda path: spark.read.parquet(str(path)).where("length(p) > 0")


def shuffled(frame: DataFrame) -> bool:
    return "Exchange" in frame._jdf.queryExecution().executedPlan().toString()


@pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")
def test_shards_with_a_key_and_those_without_find_what_one_engine_finds(
    opened: Opens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etalis_py.spark.input.shards_that_scan, "MOST_TIMES", 100)
    monkeypatch.setattr(etalis_py.spark.input.shards_that_scan, "MOST_TIMES_OF_FILES", 100)
    events = stream(5, 200)
    file = opened(written(tmp_path, events, 30))
    texts = {name: text for name, text in (SHARDED | GLOBAL).items() if name not in DERIVING}
    found = matches(texts, file, shards=2)
    assert not shuffled(found)
    assert ids_by_program(found.collect()) == expected(texts, events)


@pytest.mark.parametrize("asked", ["*", "id", "kind = 'match'"])
def test_each_shard_is_a_task_of_its_own_whatever_is_asked_of_the_matches(
    opened: Opens, tmp_path: Path, asked: str
) -> None:
    """Spark may put single partitions together, and leaves out branches of a plan that a filter makes empty."""
    found = matches(SHARDED["seq"], opened(written(tmp_path, stream(5, 60))), shards=3)
    chosen = found.where(asked) if "=" in asked else found.select(asked)
    assert chosen._jdf.queryExecution().toRdd().getNumPartitions() == 3


def test_the_plan_of_a_shard_names_its_own_queries(spark: SparkSession, tmp_path: Path) -> None:
    """Of all queries it grew with their square: 25 programs gave ten megabytes of generated code."""
    names = ("seq", "absence")
    file = spark.read.parquet(written(tmp_path, stream(5, 60))).where("length(p) > 0")
    found = matches({name: SHARDED[name] for name in names}, file, shards=2)
    plan = found._jdf.queryExecution().optimizedPlan().toString()
    assert sum(plan.count(f"THEN {name} ") for name in names) == plan.count("MapInArrow") > 3


@pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")
def test_rules_are_read_by_their_shards_where_they_take_one_level(opened: Opens, tmp_path: Path) -> None:
    events = stream(6, 200)
    file = opened(written(tmp_path, events))
    frames = {name: matches({name: (SHARDED | GLOBAL)[name]}, file, shards=2) for name in sorted(DERIVING)}
    levels = {name for name, frame in frames.items() if shuffled(frame)}
    assert levels
    assert levels < DERIVING
    rows = [row for frame in frames.values() for row in frame.collect()]
    assert ids_by_program(rows) == expected({name: (SHARDED | GLOBAL)[name] for name in DERIVING}, events)


def test_windows_with_a_key(opened: Opens, tmp_path: Path) -> None:
    events = windowed.stream(3)
    file = opened(written(tmp_path, events))
    names = sorted(windowed.KEYED)[:4]
    frames = [matches({name: windowed.PROGRAMS[name]}, file, shards=2, slices=1) for name in names]
    assert not any(map(shuffled, frames))
    rows = [row for frame in frames for row in frame.collect()]
    wanted = {name: windowed.embedded(windowed.PROGRAMS[name], events) for name in names}
    assert ids_by_program(rows) == {name: ids for name, ids in wanted.items() if ids}


TEXT = SHARDED["seq"]
OTHERWISE: Mapping[str, tuple[dict[str, int], Callable[[DataFrame], DataFrame]]] = {
    "too many shards": ({"shards": 9}, lambda file: file),
    "too many shards for Spark to read": ({"shards": 5}, lambda file: file.where("length(p) > 0")),
    "a join": ({"shards": 2}, lambda file: file.join(F.broadcast(file.select("p").distinct()), "p")),
    "Python": ({"shards": 2}, lambda file: file.withColumn("o", F.udf(lambda o: o, "string")("o"))),
    "withdrawals": ({"shards": 2}, lambda file: file.withColumn("retract", F.lit(False))),
}


@pytest.mark.parametrize("why", OTHERWISE)
def test_a_source_that_costs_too_much_to_read_again_is_shuffled(spark: SparkSession, tmp_path: Path, why: str) -> None:
    events = stream(7, 100)
    options, change = OTHERWISE[why]
    found = matches(TEXT, change(spark.read.parquet(written(tmp_path, events))), shards=options["shards"])
    assert shuffled(found)
    assert ids_by_program(found.collect()) == {"": embedded(TEXT, events)}


AGAIN: Mapping[str, tuple[bool, Callable[[DataFrame], DataFrame]]] = {
    "its file": (True, lambda file: file),
    "a union": (True, lambda file: file.union(file.where("p = '<urn:p>'"))),
    "a join": (True, lambda file: file.join(F.broadcast(file.select(F.col("o").alias("s"))), "s", "left_anti")),
    "any three": (False, lambda file: file.union(file.limit(3))),
    "after any three": (False, lambda file: file.union(file.offset(3))),
    "one of each": (False, lambda file: file.union(file.dropDuplicates(["s"]))),
    "numbered": (False, lambda file: file.withColumn("n", F.row_number().over(Window.partitionBy("end").orderBy("s")))),
    "half of them": (False, lambda file: file.union(file.where(F.rand() < 0.5))),
}


@pytest.mark.parametrize("what", AGAIN)
def test_slices_read_only_what_is_the_same_whenever_it_is_read(spark: SparkSession, tmp_path: Path, what: str) -> None:
    again, change = AGAIN[what]
    assert prunes(change(spark.read.parquet(written(tmp_path, stream(7, 20))))) is again


def test_large_files_are_shuffled(opened: Opens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are in no order; see ``test_files_in_order_of_time_may_be_large`` for others."""
    file = opened(written(tmp_path, stream(7, 100)))
    assert not shuffled(matches(TEXT, file, shards=2))
    monkeypatch.setattr(etalis_py.spark.input.shards_that_scan, "MOST_BYTES", 100)
    assert shuffled(matches(TEXT, file, shards=2))


def test_a_row_with_a_null_becomes_one_dead_letter_whatever_the_shards(opened: Opens, tmp_path: Path) -> None:
    """Also where its key is what is missing; a row that no pattern asks for is left out."""
    events = stream(8, 100)
    written(tmp_path, events)
    rows = [
        {"start": 1, "end": 1, "stream": "", "s": None, "p": "<urn:p>", "o": "<urn:o>"},
        {"start": 2, "end": 2, "stream": "", "s": "<urn:x1>", "p": "<urn:q>", "o": None},
        {"start": None, "end": 3, "stream": "", "s": "<urn:x1>", "p": "<urn:q>", "o": "<urn:o>"},
        {"start": 4, "end": 4, "stream": "", "s": None, "p": "<urn:else>", "o": "<urn:o>"},
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), tmp_path / "nulls.parquet")
    for files, ids in ("", embedded(TEXT, events)), ("nulls.parquet", []):
        found = matches(TEXT, opened(tmp_path / files), shards=2).collect()
        letters = sorted(
            (row["end"], row["detail"].partition(" is null: ")[2]) for row in found if row["kind"] != "match"
        )
        assert letters == [(1, "s"), (2, "o"), (3, "start")]
        assert sorted(row["id"] for row in found if row["kind"] == "match") == ids


NAMES = ("it's", 'a "b" \\ c', "größe", "${x}", "a`b", "")
ODD = (
    '"it\'s"', '"a\\\\b"', '"\\"q\\""', '"größe"@de', '"${spark.app.name}"', '"%_"', '"a`b; -- c"', '"{}[]|~^"',
)  # fmt: skip


@pytest.mark.parametrize("source", ["file", "filtered", "memory"])
def test_names_and_constants_mean_themselves_in_spark_s_expressions(
    spark: SparkSession, tmp_path: Path, source: str
) -> None:
    events = [Event(n * SECOND, n * SECOND, (("<urn:x>", "<urn:p>", term),)) for n, term in enumerate(ODD)]
    every = [Event(e.end + SECOND // 2, e.end + SECOND // 2, (("<urn:y>", "<urn:p>", '"other"'),)) for e in events]
    events = sorted([*events, *every])
    file = spark.read.parquet(written(tmp_path, events))
    frames = {"file": file, "filtered": file.where("length(p) > 0"), "memory": events_from_events(spark, events)}
    frame = frames[source]
    asked = " UNION ".join(f"{{ ?x <urn:p> {term} . ?x ?p ?o }}" for term in ODD)
    programs = dict.fromkeys(NAMES if source == "memory" else NAMES[:2], f"SELECT * {{ {asked} }}")
    found = matches(programs, frame, shards=2).collect()
    wanted = embedded(programs[NAMES[0]], events)
    assert wanted
    assert ids_by_program(found) == dict.fromkeys(programs, wanted)
    assert {row["bindings"]["o"] for row in found} == set(ODD)
