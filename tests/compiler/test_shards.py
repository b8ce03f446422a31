"""Shard analysis: keys, stages, reasons; and that the shards together find what one engine finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from zlib import crc32

import pytest
from etalis_compiler.diagnostics import QueryError, Source
from etalis_compiler.parser import parse
from etalis_compiler.pipeline import Compilation, compile_documents, compile_sources, rules_of
from etalis_compiler.shards import QueryShards, ShardPlan, Stage, shard_plan
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from etalis_py import Engine, Event, Match
from tests.draws import examples
from tests.engine.judge import knowledge_of
from tests.oracle import strategies
from tests.oracle.strategies import NO_BACKGROUND, Background, Case

WITHIN = "?y > ?x && getDURATION() < 'P30D'^^xsd:duration"


def plan(text: str, policy: str = "unrestricted") -> ShardPlan:
    return shard_plan(rules_of(compile_sources([Source(text)]), policy=policy))


def only(text: str, policy: str = "unrestricted") -> QueryShards:
    return plan(text, policy).queries[-1]


def routes(text: str) -> list[str]:
    """The positions by which the first stage routes its leaves."""
    return [position for _, position in plan(text).stages[0].routes]


# --- keys ------------------------------------------------------------------------------------------------------


def test_a_common_join_variable_is_the_key() -> None:
    text = f"SELECT ?c WHERE {{ ?c :p ?x }} SEQ {{ ?c :p ?y }} FILTER ({WITHIN})"
    assert only(text) == QueryShards("q1", "?c", 1, 1)
    assert routes(text) == ["subject"]


def test_without_a_shared_variable_there_is_no_key_and_the_reason_is_given() -> None:
    shards = only(f"SELECT ?c WHERE {{ ?c :p ?x }} SEQ {{ ?d :p ?y }} FILTER ({WITHIN})")
    assert shards.key == ""
    assert "no variable is shared" in shards.reason


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("SELECT * { ?c :p ?x } SEQ { ?d :q ?x }", "?x"),
        ("SELECT * { ?c :p ?x } SEQ { ?x :q ?y }", "?x"),
        ("SELECT * { ?c :p ?x } SEQ { ?c :q ?y } SEQ { ?c :r ?z }", "?c"),
        ("SELECT * { ?c :p ?x } OPTIONALSEQ { ?c :q ?y }", "?c"),
        ("SELECT * { ?c :p ?x MINUS { ?c :q ?y } }", "?c"),
        ("SELECT * { ?c :p ?x FILTER NOT EXISTS { ?c :q ?y } }", "?c"),
        ("SELECT * { { ?c :p ?x } UNION { ?c :q ?x } } SEQ { ?c :r ?y }", "?c"),
        ("SELECT ?c (COUNT(*) AS ?n) { ?c :p ?x . ?c :q ?y } GROUP BY ?c", "?c"),
        ("SELECT DISTINCT ?c { ?c :p ?x } SEQ { ?c :q ?y }", "?c"),
        ("SELECT * { ?x ?p 1 } SEQ { ?y ?p 2 }", "?p"),
        ("SELECT ?s { ?s :p ?o }", "?s"),
    ],
)
def test_keys(text: str, key: str) -> None:
    assert only(text).key == key
    assert only(text).reported == only(text).stage


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT * { ?c :p ?x } SEQ { ?c :q ?y } SEQ { ?d :r ?y }", "have no variable in common with its own, X2"),
        ("SELECT * { ?x :p ?y } SEQ { ?y :p ?z }", "needs one triple pattern routed by two different positions"),
        ("SELECT * { ?x :p+ ?y }", "a path may lead from any node to any other"),
        ("SELECT * { { ?c :p ?x } UNION { ?d :q ?x } } SEQ { ?c :r ?y }", "the shared variable X"),
        ("SELECT * { :a :p 1 } SEQ { :a :p 2 }", "all three terms of the triple pattern are constants"),
        (
            "SELECT ?c (COUNT(*) AS ?n) { ?c :p ?x } GROUP BY ?c HAVING (EXISTS { ?c :q ?y })",
            "its EXISTS looks back at all occurrences",
        ),
        ("DESCRIBE ?x { ?x :p ?y }", "DESCRIBE collects"),
        ("ASK { ?x :p ?y }", "ASK answers once"),
        ("SELECT ?x { ?x :p ?y } LIMIT 1", "LIMIT and OFFSET count the matches of all shards"),
    ],
)
def test_reasons_for_one_shard(text: str, reason: str) -> None:
    assert only(text).key == ""
    assert reason in only(text).reason


def test_a_stage_has_the_leaves_that_having_looks_back_at() -> None:
    rules = rules_of(
        compile_sources([Source("SELECT ?c (COUNT(*) AS ?n) { ?c :p ?x } GROUP BY ?c HAVING (EXISTS { ?c :q ?y })")])
    )
    (stage,) = shard_plan(rules).stages
    assert set(stage.nodes) == {name for name, _ in rules.nodes}
    assert len([name for name, node in rules.nodes if isinstance(node, ir.Leaf)]) == 2


@pytest.mark.parametrize("policy", ["recent", "chronological"])
def test_a_consuming_policy_keeps_the_key(policy: str) -> None:
    assert only("SELECT ?c { ?c :p ?x } SEQ { ?c :q ?y }", policy).key == "?c"


# --- stages ----------------------------------------------------------------------------------------------------

MADE = "CONSTRUCT {{ {} }} {{ ?c :p ?x }} SEQ {{ ?c :q ?y }} "


def test_rules_that_feed_each_other_on_matching_keys_share_a_stage() -> None:
    made = plan(MADE.format("?c :high ?x") + "SELECT ?c { ?c :high ?x } SEQ { ?c :r ?y }")
    assert [s.queries for s in made.stages] == [("q1", "q2")]


def test_otherwise_derived_events_go_to_a_further_stage() -> None:
    made = plan(MADE.format("?x :high ?c") + "SELECT ?c { ?c :high ?x } SEQ { ?c :r ?y }")
    assert [(s.queries, s.after) for s in made.stages] == [(("q1",), ()), (("q2",), (1,))]


def test_what_reads_events_that_a_rule_derives_late_runs_beside_it() -> None:
    counted = "CONSTRUCT { ?c :n ?n } { SELECT ?c (COUNT(*) AS ?n) { ?c :p ?x } WITHIN 2 s GROUP BY ?c }"
    made = plan(f"{counted} ; SELECT ?c {{ ?c :n ?n }} ; SELECT ?c {{ {{ ?c :n ?n }} NEXT {{ ?c :n ?m }} }}")
    assert [(s.queries, s.sharded) for s in made.stages] == [(("q1", "q2"), False), (("q3",), True)]
    assert made.of("q2").reason == "a rule of one shard derives what it reads, some of it after its end"


def test_recursion_with_a_common_key_is_sharded_and_without_it_runs_in_one_shard() -> None:
    growing = "CONSTRUCT { ?c :n ?x } { ?c :p ?x } CONSTRUCT { ?c :n ?y } { ?c :n ?x } SEQ { ?c :p ?y }"
    assert [s.sharded for s in plan(growing).stages] == [True]
    closure = "CONSTRUCT { ?x :r ?z } { ?x :r ?y . ?y :r ?z }"
    assert [s.sharded for s in plan(closure).stages] == [False]
    swapped = "CONSTRUCT { ?x :r ?c } { ?c :r ?x . ?c :p ?y }"
    assert "do not carry a common shard key" in only(swapped).reason


def test_what_is_global_runs_in_one_shard() -> None:
    [stage] = plan("SELECT (COUNT(*) AS ?n) { ?c :p ?x } SEQ { ?c :q ?y }").stages
    assert (stage.sharded, stage.queries, stage.reports, stage.after) == (False, ("q1",), ("q1",), ())
    assert "an aggregate without GROUP BY counts all solutions" in stage.reason


def test_a_rule_without_a_visible_key_derives_in_shards_what_others_read() -> None:
    """Its triples are a set, so it does not matter in how many shards one is found; but its own matches are counted."""
    rule = "CONSTRUCT { ?x :d ?y } { ?c :p ?x } SEQ { ?c :q ?y }"
    assert [s.sharded for s in plan(rule).stages] == [False]
    made = plan(rule + " SELECT * { ?x :d ?y } SEQ { ?x :r ?z }")
    assert [(s.sharded, s.queries, s.reports) for s in made.stages] == [
        (True, ("q1",), ()),
        (False, ("q1",), ("q1",)),
        (True, ("q2",), ("q2",)),
    ]
    assert made.stages[2].after == (1,)


def test_a_rule_that_counts_its_matches_derives_in_one_shard() -> None:
    rule = "CONSTRUCT { ?c :d ?y } { ?c :p ?x } SEQ { ?c :q ?y } LIMIT 3"
    made = plan(rule + " SELECT * { ?c :d ?y } SEQ { ?c :r ?z }")
    assert [(s.sharded, s.queries, s.after) for s in made.stages] == [(False, ("q1",), ()), (True, ("q2",), (1,))]


def test_groups_in_a_window_of_time_are_reported_when_any_group_grows() -> None:
    """So they cannot be told apart by shards: what leaves the group of a shows when b comes."""
    text = "SELECT ?c (COUNT(*) AS ?n) { ?c :p ?x } WITHIN PT5S GROUP BY ?c"
    events = [(1, "<urn:a>"), (4, "<urn:a>"), (8, "<urn:b>")]
    found = run(
        compile_sources([Source(text)]),
        [Event(t, t, ((s, "<http://example.org/p>", f'"{t}"'),)) for t, s in ((t * 1_000_000, s) for t, s in events)],
        "unrestricted",
        NO_BACKGROUND,
    )
    assert [(m.bindings["c"], m.bindings["n"][1], m.end_us) for m in found] == [
        ("<urn:a>", "1", 1_000_000),
        ("<urn:a>", "2", 4_000_000),
        ("<urn:a>", "1", 4_000_000),  # reported at 8 s, when an event of b came
        ("<urn:b>", "1", 8_000_000),
    ]
    assert "any group" in only(text).reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT ?x { ?c :p ?x } SEQ { ?c :q ?y }", "no shard key is selected"),
        ("SELECT DISTINCT ?x { ?c :p ?x } SEQ { ?c :q ?y }", "DISTINCT compares matches of several shards"),
        ("SELECT ?c { ?c :p ?x } SEQ { ?c :q ?y } ORDER BY ?c", "ORDER BY"),
        ("ASK { ?c :p ?x } SEQ { ?c :q ?y }", "ASK answers once"),
        (
            "SELECT ?c (SUM(?x) AS ?s) { ?c :p ?x . ?c :q ?y } WITHIN PT1H GROUP BY ?c",
            "reported when a solution enters any group",
        ),
    ],
)
def test_what_shards_find_together_runs_in_one(text: str, reason: str) -> None:
    made = plan(text)
    assert [s.sharded for s in made.stages] == [False]
    assert reason in made.queries[0].reason


def test_queries_that_route_a_leaf_differently_have_stages_of_their_own() -> None:
    made = plan("SELECT * { ?c :p ?x } SEQ { ?c :q ?y } SELECT * { ?c :p ?x } SEQ { ?d :q ?x }")
    assert [s.queries for s in made.stages] == [("q2",), ("q1",)]
    assert all(s.after == () for s in made.stages)


def test_one_stage_may_route_two_leaves_of_a_triple_to_two_shards() -> None:
    made = plan("SELECT * { ?x :p ?y } SEQ { ?y :p 1 }")
    assert [(s.sharded, s.tagged) for s in made.stages] == [(True, True)]
    assert not plan("SELECT * { ?x :p ?y } SEQ { ?y :q 1 }").stages[0].tagged


def test_what_feeds_a_stage_stands_in_the_stage_or_before_it() -> None:
    counted = "CONSTRUCT { :all :n ?n } { SELECT (COUNT(*) AS ?n) { ?c :p ?x } SEQ { ?c :q ?y } } "
    made = plan(counted + "SELECT ?n { ?c :n ?n } SEQ { ?d :r ?n }")
    assert made.of("q2").stage > made.of("q1").reported
    assert made.stages[made.of("q2").stage - 1].after == (made.of("q1").reported,)


# --- the shards together find what one engine finds -------------------------------------------------------------

SHARDS = 3


def shard_of(term: str) -> int:
    return crc32(term.encode()) % SHARDS


def matches(position: ir.Position, term: str) -> bool:
    match position:
        case alg.Const(value):
            return value == term
        case ir.OneOf(terms):
            return term in terms
        case ir.NoneOf(terms):
            return term not in terms
    return True


def routed(events: Iterable[Event], stage: Stage, rules: ir.Rules) -> list[list[Event]]:
    """What each shard gets: every triple goes where a leaf that sees it wants it."""
    shards: list[list[Event]] = [[] for _ in range(SHARDS)]
    for event in events:
        for triple in event.triples:
            wanted = set()
            for name, position in stage.routes:
                leaf = rules.node(name)
                assert isinstance(leaf, ir.Leaf)
                places = dict(zip(("subject", "predicate", "object"), triple, strict=True))
                if all(matches(getattr(leaf, p), term) for p, term in places.items()):
                    wanted.add(shard_of(places[position]))
            for number in wanted:
                shards[number].append(Event(event.start, event.end, (triple,), event.stream))
    return shards


def run(queries: Compilation, events: Iterable[Event], policy: str, background: Background) -> list[Match]:
    engine = Engine(queries, policy=policy, background=knowledge_of(background))
    ordered = sorted(events, key=lambda e: e.end)
    return [m for m in (*engine.push_all(ordered), *engine.close()) if not m.is_timeless]


def derived(found: Iterable[Match], output: ir.Output) -> Iterable[Event]:
    for m in found:
        if m.query == output.query and m.triples:
            assert m.start_us is not None
            assert m.end_us is not None
            yield Event(m.start_us, m.end_us, tuple(m.triples), output.stream)


def row(m: Match) -> tuple[object, ...]:
    return m.query, tuple(sorted(m.bindings.items())), m.triples, m.start_us, m.end_us


def sharded_agrees(
    compiled: Compilation, events: tuple[Event, ...], policy: str, background: Background = NO_BACKGROUND
) -> int:
    """Run every stage, shard by shard, and compare; returns the number of queries that were compared in shards."""
    rules = Engine(compiled, policy=policy, background=knowledge_of(background)).rules
    made = shard_plan(rules)
    whole = run(compiled, events, policy, background)
    compared = 0
    for stage in made.stages:
        # Derived triples are those of the unsharded run: each stage is judged on its own.
        before = [o for o in rules.outputs if o.form == "construct" and o.query not in stage.queries]
        extra = [e for o in before for e in derived(whole, o)]
        if not stage.sharded:
            continue
        mine = Compilation(tuple(q for q in compiled.queries if q.name in stage.queries))
        found = [
            (number, m)
            for number, part in enumerate(routed((*events, *extra), stage, rules))
            for m in run(mine, part, policy, background)
        ]
        for query in stage.queries:
            shards = made.of(query)
            key = shards.key.removeprefix("?")
            visible = shards.key.startswith("?")
            here = [(number, m) for number, m in found if m.query == query]
            if stage.tagged:
                # The engine feeds a copy to every leaf; what belongs to another shard is told by its key.
                if not visible or any(key not in m.bindings for _, m in here):
                    continue
                here = [(number, m) for number, m in here if shard_of(m.bindings[key]) == number]
            expected = [m for m in whole if m.query == query]
            if shards.reported == stage.number:
                assert Counter(m.id for _, m in here) == Counter(m.id for m in expected), (query, shards)
            elif "equal matches of several shards" in shards.reason:
                assert Counter(row(m) for _, m in here) == Counter(map(row, expected)), (query, shards)
            else:
                continue
            compared += 1
    return compared


PROGRAMS = [
    "SELECT * { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z }",
    "SELECT * { ?x <urn:p> ?y } SEQ { ?y <urn:q> ?z }",
    "SELECT * { ?x ?p ?y } SEQ { ?z ?p ?y } FILTER (?x != ?z)",
    "SELECT * { ?x <urn:p> ?y . ?x <urn:q> ?z } EQUALS { ?x <urn:r> ?w }",
    "SELECT * { ?x <urn:p> ?y } OPTIONALSEQ { ?x <urn:q> ?z }",
    "SELECT * { ?x <urn:p> ?y OPTIONAL { ?x <urn:q> ?z FILTER (?z > ?y) } }",
    "SELECT * { ?x <urn:p> ?y MINUS { ?x <urn:q> ?y } }",
    "SELECT * { ?x <urn:p> ?y FILTER NOT EXISTS { ?x <urn:q> ?z } }",
    "SELECT DISTINCT ?x { { ?x <urn:p> ?y } UNION { ?x <urn:q> ?y } } SEQ { ?x ?p ?z }",
    "SELECT ?x (COUNT(*) AS ?n) { ?x <urn:p> ?y } GROUP BY ?x",
    "SELECT ?x (SUM(?y) AS ?n) { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } WITHIN 2 EVENTS GROUP BY ?x HAVING (?n > 1)",
    "CONSTRUCT { ?x <urn:d> ?z } { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } "
    "SELECT * { ?x <urn:d> ?y } SEQ { ?x <urn:p> ?z }",
    "CONSTRUCT { ?z <urn:d> ?x } { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } "
    "SELECT * { ?x <urn:d> ?y } OPTIONALSEQ { ?x <urn:p> ?z }",
    "CONSTRUCT { ?y <urn:d> ?z } { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } "
    "SELECT * { ?x <urn:d> ?y } SEQ { ?x <urn:q> ?z }",
    "CONSTRUCT { ?x <urn:d> ?y } { ?x <urn:p> ?y } CONSTRUCT { ?x <urn:d> ?z } { ?x <urn:d> ?y } SEQ { ?x <urn:q> ?z } "
    "SELECT * { ?x <urn:d> ?y MINUS { ?x <urn:r> ?y } }",
]


@pytest.mark.parametrize("text", PROGRAMS)
def test_a_fixed_program(text: str) -> None:
    compiled = compile_documents([(parse(text), Source(text))])

    @settings(max_examples=examples(4 / 15))
    @given(strategies.streams(8, 14), st.sampled_from(("unrestricted", "recent", "chronological")))
    def agrees(events: tuple[Event, ...], policy: str) -> None:
        assert sharded_agrees(compiled, events, policy) > 0

    agrees()


@settings(max_examples=examples(4 / 5))
@given(
    st.one_of(
        strategies.core(),
        strategies.negation(),
        strategies.policies(),
        strategies.aggregates(),
        strategies.recursion(),
        strategies.stratified(),
        strategies.several_streams(),
        strategies.background(),
    )
)
def test_any_program(case: Case) -> None:
    compiled = compile_documents([(case.program, Source("", "<case>"))])
    try:
        assume(any(s.sharded for s in shard_plan(rules_of(compiled, policy=case.policy)).stages))
        sharded_agrees(compiled, case.events, case.policy, case.background)
    except QueryError:  # the oracle's tests see to it that the right programs are refused
        return
