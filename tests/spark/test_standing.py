"""Queries that come, change and go while a job runs: each answers what it answers in the engine from its time on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession

from etalis_py import Engine, Event, event
from etalis_py.spark import EVENTS, SparkError, events_from_events, matches
from etalis_py.spark.input.query_changes import NAME, StandingEngine, StandingShard
from etalis_py.spark.input.schema import STANDING
from etalis_py.spark.output.answers import single
from etalis_py.spark.plan.parts import ShardPart
from etalis_py.spark.plan.spec import ProgramSpec
from tests.draws import examples
from tests.spark.programs import SECOND, write_batches

Change = tuple[str, str | None, int]
SPEC = ProgramSpec(NAME, (), "unrestricted")
PART = ShardPart(0, 0, 1, (), (), standing=True)
QUERIES = "name string, text string, end long"
SHAPES = (
    "SELECT ?x {{ :c{0} :p ?x FILTER (?x > {1}) }}",
    "SELECT ?x ?y {{ {{ :c{0} :p ?x }} SEQ {{ :c{1} :p ?y }} }} WITHIN 4 s",
    "SELECT ?x {{ {{ :c{0} :p ?x }} SEQ NOT {{ :c{1} :q ?y }} WITHIN 2 s }}",
    "ASK {{ :c{0} :q ?x }}",
)
EVENTS_HERE = [event(f":c{n * 7 % 3} :{'ppq'[n % 3]} {n % 4}", 1 + n // 2) for n in range(60)]
CHANGES: list[Change] = [
    ("goes", SHAPES[0].format(1, 0), 1),
    ("b", SHAPES[0].format(2, 1), 6),
    ("pair", SHAPES[1].format(1, 0), 3),
    ("pairs", SHAPES[1].format(0, 2), 12),
    ("goes", None, 14),
    ("b", SHAPES[0].format(0, 2), 20),
    ("open", SHAPES[2].format(0, 1), 9),
]
WRONG: list[Change] = [
    ("bad", "SELECT ?x {", 2),
    ("gone", None, 3),
    ("named", "REGISTER QUERY other AS SELECT ?x { :c0 :p ?x }", 4),
    ("made", "CONSTRUCT { :a :b ?x } { :c0 :p ?x }", 5),
    ("whole", "SELECT ?x { EVENT { :c0 :p ?x } }", 6),
    ("windows", "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT5S] { WINDOW :w { ?y :p ?x } }", 6),
    ("", "SELECT ?x { :c0 :p ?x }", 7),  # null in the table
]


def alone(changes: Sequence[Change], events: Sequence[Event]) -> list[tuple[str, str]]:
    """What an engine finds that has each text from its time on, by query."""
    found: list[tuple[str, str]] = []
    for name in {name for name, _, _ in changes}:
        engine, runs = Engine(), False
        pending = sorted((c for c in changes if c[0] == name), key=lambda c: (c[2], c[1] is not None))
        matches = []
        for one in events:
            while pending and pending[0][2] * SECOND <= one.end:
                _, text, time = pending.pop(0)
                if time * SECOND - 1 > engine.closed_at:
                    matches += engine.advance(time * SECOND - 1)
                if runs:
                    engine.remove(name)
                if runs := text is not None:
                    engine.add(f"REGISTER QUERY {name} AS {text}", name=name)
            matches += engine.push(one)
        found += [(m.query, m.id) for m in [*matches, *engine.close()]]
    return sorted(found)


def row(change: Change) -> tuple[int, int, tuple[tuple[str, str, str], ...], str, str]:
    name, text, time = change
    return (time * SECOND, time * SECOND, ((name, STANDING, text or ""),), "", "")


def found_in(rows: Sequence[object]) -> list[tuple[str, str]]:
    return [(r[2], r[3]) for r in single(rows) if r[0] == "match"]  # type: ignore[arg-type]


@st.composite
def histories(draw: st.DrawFn) -> list[Change]:
    one = st.tuples(
        st.sampled_from(("n1", "n2", "n3", "n4")), st.sampled_from(SHAPES), st.integers(0, 2), st.integers(0, 2)
    )
    rows, times = [], {}
    for name, shape, first, second in draw(st.lists(one, min_size=1, max_size=10)):
        time = times[name] = times.get(name, 0) + draw(st.integers(1, 12))
        rows.append((name, shape.format(first, second), time))
        if draw(st.integers(0, 3)) == 0:
            times[name] = time + 3
            rows.append((name, None, time + 3))
    return rows


@settings(max_examples=examples(1 / 4))
@given(histories(), st.lists(st.integers(0, 60), max_size=3).map(sorted), st.booleans())
def test_a_shard_in_steps_answers_what_each_query_answers_alone(
    changes: list[Change], cuts: list[int], stored: bool
) -> None:
    shard = StandingShard(SPEC, PART, 0, journal=True)
    shard.wait([row(change) for change in changes])
    rows = []
    before = 0
    for cut in [*cuts, 60]:
        shard.wait(EVENTS_HERE[before:cut])
        rows += shard.close_before(EVENTS_HERE[cut - 1].end if cut else 0)
        before = cut
        again = StandingShard(SPEC, PART, 0, journal=True)
        again.waiting = shard.waiting
        if stored:
            again.engine.restore(shard.engine.snapshot())
        else:
            data = shard.engine.take_journal()
            journal = [*getattr(shard, "journals", []), data]
            for entry in journal:
                again.engine.apply_journal(entry)
            again.journals = journal  # type: ignore[attr-defined]
        shard = again
    assert sorted([*found_in(rows), *found_in(shard.finish())]) == alone(changes, EVENTS_HERE)


def test_a_wrong_text_is_a_dead_letter_and_changes_nothing() -> None:
    shard = StandingShard(SPEC, PART, 0, journal=True)
    shard.wait([row(change) for change in (*CHANGES, *WRONG)])
    shard.wait(EVENTS_HERE)
    rows = single(shard.close_before(100 * SECOND))
    dead = {r[2]: r[12] for r in rows if r[0] == "dead_letter"}
    assert list(dead) == ["bad", "gone", "named", "made", "whole", "windows", ""]
    assert "expected" in dead["bad"]
    assert dead["gone"] == "there is no query named gone to be removed"
    assert "it has other" in dead["named"]
    assert "is a CONSTRUCT" in dead["made"]
    assert "has EVENT, which needs whole events" in dead["whole"]
    assert dead[""] == "this row of the queries has no name: 'SELECT ?x { :c0 :p ?x }'"
    assert sorted([*found_in(rows), *found_in(shard.finish())]) == alone(CHANGES, EVENTS_HERE)


def test_a_journal_goes_on_after_a_wrong_text() -> None:
    shard, again = (StandingShard(SPEC, PART, 0, journal=True) for _ in range(2))
    shard.wait([row(change) for change in (("a", SHAPES[1].format(1, 0), 1), ("bad", "SELECT ?x {", 6))])
    shard.wait(EVENTS_HERE[:12])
    shard.close_before(EVENTS_HERE[12].end)
    again.engine.apply_journal(shard.engine.take_journal())
    assert again.engine.counters.events == shard.engine.counters.events > 0
    assert again.engine.counters.kept() == shard.engine.counters.kept()
    rest = EVENTS_HERE[12:]
    assert found_in(again.push(rest)) == found_in(shard.push(rest)) != []


def test_a_row_whose_time_is_over_holds_from_what_is_not() -> None:
    shard = StandingShard(SPEC, PART, 0, journal=True)
    shard.wait(EVENTS_HERE)
    shard.close_before(10 * SECOND)
    shard.wait([row(("late", SHAPES[0].format(1, 0), 2))], 10 * SECOND)
    found = [*found_in(shard.close_before(99 * SECOND)), *found_in(shard.finish())]
    assert sorted(found) == alone([("late", SHAPES[0].format(1, 0), 10)], EVENTS_HERE)


def test_texts_of_one_shape_are_one_rule() -> None:
    engine = StandingEngine(SPEC, journal=False)
    for n in range(20):
        engine.take_change(f"n{n}", SHAPES[0].format(n, n + 1))
    few = len(engine.rules.nodes)
    engine.take_change("one more", SHAPES[0].format(77, 8))
    assert len(engine.rules.nodes) == few < 5


def frames(spark: SparkSession, changes: Sequence[Change]) -> object:
    return spark.createDataFrame([(name or None, text, time * SECOND) for name, text, time in changes], QUERIES)


def test_a_batch_with_a_table_of_queries(spark: SparkSession) -> None:
    program = {"fixed": "SELECT ?x ?y { ?c :p ?x } SEQ { ?c :q ?y }"}
    empty: Change = ("b", "", 25)  # no query: only a null removes the one that is there
    table = frames(spark, [*CHANGES, *WRONG, empty])
    rows = matches(program, events_from_events(spark, EVENTS_HERE), queries=table, shards=3)
    found = rows.collect()
    own = [r for r in found if r["program"] == NAME]
    assert sorted((r["query"], r["id"]) for r in own if r["kind"] == "match") == alone(CHANGES, EVENTS_HERE)
    assert {r["query"] for r in own if r["kind"] == "dead_letter"} == {name for name, _, _ in (*WRONG, empty)}
    engine = Engine(program["fixed"])
    fixed = sorted(m.id for m in [*engine.push_all(EVENTS_HERE), *engine.close()])
    assert sorted(r["id"] for r in found if r["program"] == "fixed") == fixed


def test_a_stream_with_a_stream_of_queries_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    def run() -> list[Row]:
        events = spark.readStream.schema(EVENTS).parquet(str(tmp_path / "events"))
        queries = spark.readStream.schema(QUERIES).json(str(tmp_path / "queries"))
        found = matches({}, events, queries=queries, shards=2)
        writer = found.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.option("path", str(tmp_path / "out")).trigger(availableNow=True).start().awaitTermination()
        return spark.read.schema(found.schema).parquet(str(tmp_path / "out")).collect()

    def put(changes: Sequence[Change], name: str) -> None:
        frames(spark, changes).coalesce(1).write.json(str(tmp_path / name))  # type: ignore[attr-defined]
        (tmp_path / "queries").mkdir(exist_ok=True)
        next((tmp_path / name).glob("*.json")).rename(tmp_path / "queries" / f"{name}.json")

    half, last = 30, event(":c9 :q 0", 99)
    put(CHANGES[:4], "first")
    write_batches(tmp_path / "events", [EVENTS_HERE[:half]])
    run()
    later = [*CHANGES[4:], ("late", SHAPES[0].format(1, 1), 2)]
    put(later, "second")
    write_batches(tmp_path / "events", [[*EVENTS_HERE[half:], last]], first=1)
    found = [r for r in run() if r["kind"] == "match"]
    still_open = EVENTS_HERE[half - 1].end // SECOND
    held = [(name, text, max(time, still_open)) for name, text, time in later]
    wanted = alone([*CHANGES[:4], *held], [*EVENTS_HERE, last])
    assert sorted((r["query"], r["id"]) for r in found) == wanted


def test_what_is_no_table_of_queries_is_refused(spark: SparkSession) -> None:
    events = events_from_events(spark, EVENTS_HERE[:2])
    with pytest.raises(SparkError, match="wanted is: name string, text string"):
        matches({}, events, queries=spark.createDataFrame([("a", 1)], "name string, text long"))
    with pytest.raises(SparkError, match="must both be streams, or neither"):
        matches({}, events, queries=spark.readStream.format("rate").load().selectExpr("'a' name", "'b' text"))
    with pytest.raises(SparkError, match="there is no program to run"):
        matches({}, events)
    with pytest.raises(SparkError, match="a program is named queries"):
        matches({NAME: "ASK { ?x :p ?y }"}, events, queries=frames(spark, CHANGES))
