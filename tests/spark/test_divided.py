"""Families of queries on Spark: their queries are divided among the shards, and answer what they answer together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import etalis_py.engine.query_families as families
from etalis_py import Engine, Event, Program, compile, event
from etalis_py.spark import EVENTS, events_from_events, matches, run_on_spark
from etalis_py.spark.output.answers import single
from etalis_py.spark.pipeline import plan
from etalis_py.spark.plan.parts import RoutedPart
from etalis_py.spark.shard.shard import Shard
from tests.draws import examples
from tests.engine.test_families import POLICY, streams, texts
from tests.spark.programs import write_batches

pytestmark = pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")

ALERTS = [f"SELECT ?x {{ :c{n} :p ?x FILTER (?x > {n % 4}) }}" for n in range(12)]
PAIRS = [f"SELECT ?x ?y {{ {{ :c{n} :p ?x }} SEQ {{ :c{n % 5} :p ?y }} }} WITHIN 3 s" for n in range(6, 12)]
OPEN = [f"SELECT ?c ?x {{ ?c :p ?x FILTER (?x > {n}) }}" for n in range(4)]
RULES = [f"CONSTRUCT {{ :c{n} :alarm ?x }} {{ :c{n} :p ?x }}" for n in range(4)]
ALONE = ["REGISTER QUERY pairs AS SELECT ?c ?x ?y { { ?c :p ?x } SEQ { ?c :q ?y } }"]
TEXTS = [*ALERTS, *ALONE, *PAIRS, *OPEN, *RULES]
EVENTS_HERE = [event(f":c{n * 7 % 12} :{'pppq'[n % 4]} {n % 6}", n // 2) for n in range(60)]


@pytest.fixture(autouse=True)
def from_two_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "FEWEST", 2)


def ids(program: Program, events: Sequence[Event]) -> list[str]:
    engine = Engine(program)
    return sorted(m.id for m in [*engine.push_all(events), *engine.close()])


def targets(routed: RoutedPart, triple: tuple[str, str, str]) -> Iterator[int]:
    """The shards of a part of families that a triple goes to, as its routing says."""
    for leaf, position in routed.routes:
        if not _sees(leaf, triple):
            continue
        if not position:
            yield from range(routed.part.shards)
        for lookup in routed.lookups:
            if lookup.position == position:
                yield from lookup.shards.get(triple[["subject", "predicate", "object"].index(position)], ())


def _sees(leaf: ir.Leaf, triple: tuple[str, str, str]) -> bool:
    places = zip((leaf.subject, leaf.predicate, leaf.object), triple, strict=True)
    return all(not isinstance(held, alg.Const) or held.term == term for held, term in places)


@settings(max_examples=examples(1 / 4))
@given(texts(), streams(), POLICY, st.integers(1, 4))
def test_the_shards_together_answer_what_the_engine_answers(
    queries: list[str], events: list[Event], policy: str, shards: int
) -> None:
    program = compile(queries, policy=policy)
    specs, parts = plan(program, shards, None, "rdfs", None)
    if not parts[-1].part.homes:  # they read what others derive, so they run one by one
        return
    *_, divided = parts
    found = []
    for number in range(shards):
        shard = Shard(specs[0], divided.part, number)
        own = []
        for start, end, triples, stream, graph in events:
            here = tuple(triple for triple in triples if number in set(targets(divided, triple)))
            own += [(start, end, here, stream, graph)] if here else []
        found += [row[3] for row in single([*shard.push(own), *shard.finish()])]
    named = {row[0] for group in program.compilation.groups for row in group.members}
    engine = Engine(program)
    wanted = [m.id for m in [*engine.push_all(events), *engine.close()] if m.query in named]
    assert sorted(found) == sorted(wanted)


def test_a_triple_goes_only_where_a_query_has_its_constant() -> None:
    _, parts = plan(compile([*ALERTS, *RULES]), 4, None, "rdfs", None)
    (divided,) = parts
    assert len(set(targets(divided, ("<http://example.org/c3>", "<http://example.org/p>", '"1"')))) == 1
    assert not set(targets(divided, ("<http://example.org/c99>", "<http://example.org/p>", '"1"')))


def test_families_that_feed_one_another_run_one_by_one() -> None:
    readers = [f"SELECT ?x {{ :c{n} :alarm ?x }}" for n in range(4)]
    _, parts = plan(compile([*RULES, *readers]), 2, None, "rdfs", None)
    assert not any(routed.part.homes for routed in parts)


def test_a_batch_answers_what_the_engine_answers_in_its_order(spark: SparkSession) -> None:
    program = compile(TEXTS)
    found = matches(program, events_from_events(spark, EVENTS_HERE), shards=2)
    rows = [row for row in found.collect() if row["kind"] == "match"]
    assert sorted(row["id"] for row in rows) == ids(program, EVENTS_HERE)
    engine = Engine(program)
    wanted = [*engine.push_all(EVENTS_HERE), *engine.close()]
    assert [m.id for m in run_on_spark(program, EVENTS_HERE, spark=spark).matches] == [m.id for m in wanted]


def test_what_has_a_null_is_a_dead_letter_once(spark: SparkSession) -> None:
    rows = [(1, None, "<http://example.org/p>", '"1"'), (2, None, "<http://example.org/other>", '"1"')]
    events = spark.createDataFrame(rows, "end long, s string, p string, o string")
    found = matches(compile(ALERTS), events, shards=2).collect()
    assert [(row["kind"], row["end"]) for row in found] == [("dead_letter", 1)]


def test_a_stream_goes_on_and_refuses_a_query_that_has_become_another(spark: SparkSession, tmp_path: Path) -> None:
    def run(queries: list[str]) -> list[str]:
        events = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
        found = matches(compile(queries), events, shards=2).where(F.col("kind") == "match")
        writer = found.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.option("path", str(tmp_path / "out")).trigger(availableNow=True).start().awaitTermination()
        return sorted(row["id"] for row in spark.read.schema(found.schema).parquet(str(tmp_path / "out")).collect())

    before, after, last = EVENTS_HERE[:30], EVENTS_HERE[30:], event(":c0 :q 0", 90)
    write_batches(tmp_path / "in", [before])
    run(TEXTS)
    write_batches(tmp_path / "in", [[*after, last]], first=1)
    assert run(TEXTS) == ids(compile(TEXTS), EVENTS_HERE)
    write_batches(tmp_path / "in", [[event(":c0 :q 0", 91)]], first=2)
    with pytest.raises(Exception, match="q1 has become another query"):
        run([TEXTS[0].replace("> 0", "> 1"), *TEXTS[1:]])
