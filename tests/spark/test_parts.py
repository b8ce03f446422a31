"""From stages to parts, and that parts, levels and shards together find what one engine finds (without Spark)."""

from __future__ import annotations

import pytest
from etalis_compiler.diagnostics import QueryError
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from etalis_py import Event, compile
from etalis_py.spark.pipeline import plan
from etalis_py.spark.plan.parts import ShardPart
from etalis_py.spark.plan.slots import murmur3, slots_of
from tests.draws import examples
from tests.engine.judge import engine_for
from tests.oracle import past_strategies, printing, start_strategies, strategies
from tests.oracle.strategies import Case
from tests.spark.by_hand import run_by_hand
from tests.spark.programs import PROGRAMS, SECOND, SHARDED, embedded, stream


def parts(text: str, shards: int = 2) -> list[ShardPart]:
    return [routed.part for routed in plan(text, shards, None, "rdfs", None)[1]]


def test_a_query_with_a_key_is_sharded_and_one_without_is_not() -> None:
    assert [p.shards for p in parts(SHARDED["seq"], 4)] == [4]
    assert [(p.shards, p.reason) for p in parts("ASK { ?x <urn:p> ?y }", 4)] == [
        (1, "one shard: ASK answers once for all shards")
    ]


def test_with_one_shard_there_is_one_part() -> None:
    assert [(p.queries, p.level) for p in parts(PROGRAMS["two levels"], 1)] == [(("q1", "q2"), 1)]


def test_derived_events_go_to_a_further_level() -> None:
    first, second = parts(PROGRAMS["two levels"])
    assert (first.level, first.feeds, first.takes) == (1, ("q1",), ())
    assert (second.level, second.feeds, second.takes) == (2, (), ("q1",))


def test_a_global_query_computes_the_rules_it_depends_on() -> None:
    rule = "CONSTRUCT { ?x <urn:d> ?z } { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } "
    sharded, one = parts(rule + "SELECT (COUNT(*) AS ?n) { ?x <urn:d> ?y } SEQ { ?x <urn:q> ?z }")
    assert (sharded.queries, sharded.reports, sharded.level) == (("q1",), ("q1",), 1)
    assert (one.queries, one.reports, one.shards, one.level) == (("q1", "q2"), ("q2",), 1, 1)


def test_no_shard_computes_what_nobody_takes() -> None:
    """Only a query of one shard reads the rule, and computes it itself."""
    rule = "CONSTRUCT { ?y <urn:d> ?z } { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } "
    assert [(p.shards, p.queries) for p in parts(rule + "ASK { ?x <urn:d> ?y }")] == [(1, ("q1", "q2"))]
    for text in PROGRAMS.values():
        made = parts(text)
        assert all(p.reports or any(set(p.feeds) & set(q.takes) for q in made) for p in made)


STARTS = "{ START } SEQ NOT { ?x <urn:p> <urn:x1> } WITHIN 2 SECONDS"


def test_what_asks_for_the_start_reads_every_event() -> None:
    text = f"SELECT * {{ {STARTS} BIND (1 AS ?n) }} SELECT * {{ ?x <urn:p> ?y }} SEQ {{ ?x <urn:q> ?z }}"
    sharded, one = plan(text, 2, None, "rdfs", None)[1]
    assert (sharded.part.queries, sharded.everything) == (("q2",), False)
    assert (one.part.queries, one.part.shards, one.everything) == (("q1",), 1, True)
    assert one.part.reason == "one shard: START is the same for all keys (g1)"
    first = Event(SECOND, SECOND, (("<urn:b>", "<urn:other>", "<urn:c>"),))
    [later] = [Event(4 * SECOND, 4 * SECOND, (("<urn:b>", "<urn:p>", "<urn:x1>"),))]
    assert run_by_hand(text, [first, later], 2) == embedded(text, [first, later]) != []
    assert run_by_hand(text, [later], 2) == embedded(text, [later]) == []


def test_families_that_ask_for_the_start_run_one_by_one() -> None:
    texts = [f"SELECT * {{ {STARTS.replace('x1', f'x{n}')} BIND (1 AS ?n) }}" for n in range(4)]
    [routed] = plan(compile(texts), 2, None, "rdfs", None)[1]
    assert (routed.part.shards, routed.everything, routed.lookups) == (1, True, ())


@pytest.mark.parametrize(("partitions", "shards"), [(2, 2), (4, 4), (8, 8), (3, 6)])
def test_the_shards_go_round_the_partitions(partitions: int, shards: int) -> None:
    slots = slots_of(ShardPart(3, 0, shards, (), ()), partitions)
    assert len(set(slots)) == shards
    counts = [sum(murmur3(slot) % partitions == n for slot in slots) for n in range(partitions)]
    assert set(counts) == {shards // partitions}


def test_shard_0_has_the_same_slot_whatever_the_number_of_shards() -> None:
    assert {slots_of(ShardPart(3, 0, shards, (), ()), 4)[0] for shards in (1, 2, 5)} == {3072}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("shards", [1, 3, 8])
def test_a_fixed_program(name: str, shards: int) -> None:
    events = stream(shards)
    assert run_by_hand(PROGRAMS[name], events, shards) == embedded(PROGRAMS[name], events)


ANY = st.one_of(
    strategies.core(),
    strategies.negation(),
    strategies.policies(),
    strategies.aggregates(),
    strategies.recursion(),
    strategies.stratified(),
    strategies.paths(),
    strategies.several_streams(),
    strategies.ended_runs(),
    strategies.optional_parts(),
    strategies.after_the_start(),
    start_strategies.start_by_itself(),
    *(make() for make in past_strategies.ALL.values()),
)


@settings(max_examples=examples(1))
@given(ANY, st.integers(1, 8))
def test_any_program(case: Case, shards: int) -> None:
    try:
        engine_for(case)
    except QueryError:
        assume(False)
    program = compile(printing.program(case.program) + "\n", policy=case.policy)
    assert run_by_hand(program, case.events, shards) == embedded(
        printing.program(case.program), case.events, policy=case.policy
    )
