"""Answer-set programs with a key, on Spark: each key in the shard of its value, with the ids of the embedded engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from etalis_py import Engine, Event, compile, event
from etalis_py.knowledge import Knowledge, load
from etalis_py.spark import events_from_events, matches
from etalis_py.spark.pipeline import plan
from etalis_py.spark.shard.shard import Shard
from tests.draws import examples
from tests.spark.by_hand import run_by_hand
from tests.spark.programs import ids_by_program, write_batches
from tests.spark.test_streaming import THE_END, run

pytestmark = pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")

ALARMS = """\
%! reads next(R, S) from R <urn:nextTo> S
%! event alarm(A, R) from A <urn:alarmIn> R within PT10S over slot(A), room(R)
%! event closed(R) from R <urn:is> <urn:closed> until R <urn:is> <urn:open> over room(R)
%! key R
%! slots 4
%! offers risk(R) as R <urn:at> <urn:risk>
%! offers warned(R, S) as S <urn:hears> R
room(R) :- next(R,_).
double(R) :- alarm(A,R), alarm(B,R), A < B.
risk(R) :- double(R).
warned(R, S) :- alarm(_,R), next(R,S).
:- closed(R), double(R).
"""
ROOMS = [(f"<urn:r{n}>", "<urn:nextTo>", f"<urn:r{n % 6 + 1}>") for n in range(1, 7)]
QUERIES = {
    "told": "SELECT ?w ?r { ?w <urn:watches> ?r } SEQ { ?r <urn:at> <urn:risk> }",
    "stuck": "SELECT ?p ?r { ?p <urn:etalis:inconsistentFor> ?r }",
    "left": "CONSTRUCT { ?r <urn:left> ?w } { ?r <urn:at> <urn:risk> } SEQ { ?w <urn:leaves> ?r }",
    "away": "SELECT ?r ?w ?when { ?r <urn:left> ?w } SEQ { ?r <urn:noted> ?when }",
    "twice": "SELECT ?a ?r ?s { ?a <urn:alarmIn> ?r } SEQ { ?a <urn:alarmIn> ?s }",
    "heard": "SELECT ?r ?s { ?r <urn:at> <urn:risk> } EQUALS { ?s <urn:hears> ?r }",
    "hears": "SELECT ?r ?s ?w { ?w <urn:watches> ?s } SEQ { ?s <urn:hears> ?r }",
    "moved": "CONSTRUCT { ?p <urn:alarmIn> ?b } { ?p <urn:in> ?a } SEQ { ?p <urn:out> ?b }",
    "near": "SELECT ?r ?p ?s { ?p <urn:alarmIn> ?r } SEQ { ?s <urn:hears> ?r }",
}


def program_of(names: tuple[str, ...]) -> str:
    """The queries of these names, each with its name."""
    return "\n".join(f"REGISTER QUERY {name} AS {QUERIES[name]}" for name in QUERIES if name in names)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Knowledge:
    file = tmp_path_factory.mktemp("programs") / "alarms.lp"
    file.write_text(ALARMS)
    return load([ROOMS, file])


def local(names: tuple[str, ...], events: list[Event], known: Knowledge) -> list[str]:
    engine = Engine(compile(program_of(names)), background=known)
    return sorted(m.id for m in [*engine.push_all(events), *engine.close()])


def test_each_key_is_in_its_shard_with_what_sees_its_offers_by_the_key(known: Knowledge) -> None:
    [spec], parts = plan(program_of(tuple(QUERIES)), 4, known, "rdfs", None)
    by_query = {query: routed for routed in parts for query in routed.part.reports}
    where = {query: (routed.part.shards, routed.part.live) for query, routed in by_query.items()}
    assert {q: where[q] for q in ("told", "stuck", "left", "away", "heard")} == dict.fromkeys(
        ("told", "stuck", "left", "away", "heard"), (4, True)
    )
    # ?s, by which it is joined, is not the key of what it hears.
    assert where["hears"] == (1, True)
    reason = "it uses what the answer-set program alarms.lp offers, and its key is not that of the program"
    assert reason in by_query["hears"].part.reason
    routes = {(leaf.predicate.term, position) for leaf, position in by_query["told"].routes}
    assert {("<urn:alarmIn>", "object"), ("<urn:is>", "subject"), ("<urn:watches>", "object")} <= routes
    assert "draws on all the past" in by_query["told"].uncut
    assert Shard(spec, by_query["told"].part, 2).engine.knowledge.programs[0].share == (2, 4)


def test_no_program_takes_a_derived_triple_for_its_event(known: Knowledge) -> None:
    names = ("moved", "near")
    _, parts = plan(program_of(names), 4, known, "rdfs", None)
    assert {(routed.part.reports, routed.part.shards) for routed in parts} == {(("moved",), 4), (("near",), 1)}
    stream = [(":p <urn:in> <urn:r1>", 1), (":p <urn:out> <urn:r2>", 2), (":q <urn:in> <urn:r1>", 3)]
    events = [event(triple, second) for triple, second in [*stream, (":q <urn:out> <urn:r2>", 4)]]
    assert run_by_hand(program_of(names), events, 4, background=known) == local(names, events, known)


TRIPLES = [
    *(f"<urn:s{n}> <urn:alarmIn> <urn:r{r}>" for n in (1, 2, 3) for r in (1, 2, 3, 4, 9)),
    *(f"<urn:r{r}> <urn:is> <urn:{state}>" for r in (1, 2, 3) for state in ("closed", "open", "new")),
    *(f"<urn:ann> <urn:{verb}> <urn:r{r}>" for r in (1, 2, 3) for verb in ("watches", "leaves")),
    *(f"<urn:r{r}> <urn:noted> {r}" for r in (1, 2)),
    *(f"<urn:s{n}> <urn:{verb}> <urn:r{r}>" for n in (1, 2) for r in (1, 2) for verb in ("in", "out")),
]


@settings(max_examples=examples(2 / 5))
@given(
    names=st.sets(st.sampled_from(sorted(QUERIES)), min_size=1).map(lambda names: tuple(sorted(names))),
    stream=st.lists(
        st.tuples(st.integers(0, 3), st.lists(st.sampled_from(TRIPLES), min_size=1, max_size=3)), max_size=12
    ),
    shards=st.integers(1, 4),
)
def test_shards_find_what_one_engine_finds(
    known: Knowledge, names: tuple[str, ...], stream: list[tuple[int, list[str]]], shards: int
) -> None:
    events, second = [], 1
    for pause, triples in stream:
        second += pause
        events += [event(triple, second) for triple in triples]
    assert run_by_hand(program_of(names), events, shards, background=known) == local(names, events, known)


EVENTS = [
    event(text, second)
    for second, text in [
        (1, "<urn:ann> <urn:watches> <urn:r1> . <urn:ann> <urn:watches> <urn:r2> . <urn:ann> <urn:watches> <urn:r3>"),
        (2, "<urn:s1> <urn:alarmIn> <urn:r1> . <urn:s1> <urn:alarmIn> <urn:r2>"),
        (5, "<urn:s2> <urn:alarmIn> <urn:r1>"),
        (6, "<urn:ann> <urn:leaves> <urn:r1> . <urn:r2> <urn:is> <urn:closed>"),
        (7, "<urn:r1> <urn:noted> 7 . <urn:s2> <urn:alarmIn> <urn:r2>"),
        (8, "<urn:s3> <urn:alarmIn> <urn:r3> . <urn:s4> <urn:alarmIn> <urn:r4>"),
        (9, "<urn:s1> <urn:alarmIn> <urn:r3> . <urn:r2> <urn:is> <urn:open>"),
        (14, "<urn:s2> <urn:alarmIn> <urn:r1> . <urn:s5> <urn:alarmIn> <urn:r2>"),
    ]
]
SHARDED = ("told", "stuck", "left", "away", "twice", "heard")


def test_shards_solve_their_keys_in_batch_and_in_a_stream_that_is_interrupted(
    spark: SparkSession, tmp_path: Path, known: Knowledge
) -> None:
    wanted = local(SHARDED, EVENTS, known)
    text = program_of(SHARDED)
    rows = matches(text, events_from_events(spark, EVENTS), shards=3, background=known).collect()
    assert ids_by_program(rows) == {"": wanted}
    assert {row["query"] for row in rows} == set(SHARDED)
    assert len({row["shard"] for row in rows if row["query"] == "told"}) > 1
    # The atoms that are true are in the checkpoint of each shard: alarms of before count after it.
    write_batches(tmp_path / "in", [EVENTS[:4]])
    run(spark, tmp_path, {"": text}, background=known)
    write_batches(tmp_path / "in", [EVENTS[4:] + THE_END], first=1)
    assert ids_by_program(run(spark, tmp_path, {"": text}, background=known)) == {"": wanted}
