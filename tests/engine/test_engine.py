"""How an engine is driven: limits, programs that come and go, time, late events, timeless answers, forms, state."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from etalis_py import Engine, Event, LimitExceeded, Limits, Match, QueryError, compile, event
from etalis_py.knowledge import load

SECOND = 1_000_000
PAIR = "SELECT ?x ?y { ?c :a ?x } SEQ { ?c :b ?y }"


def run(source: Any, *events: Event, **options: Any) -> list[Match]:
    engine = Engine(compile(source), **options)
    return [*engine.push_all(events), *engine.close()]


def intervals(found: Iterable[Match]) -> list[tuple[object, object]]:
    return [(m.start, m.end) for m in found]


# --- limits: each fails loudly, and says what to do ----------------------------------------------------------------


def many(n: int, predicate: str = "a") -> list[Event]:
    return [event(f":c{t} :{predicate} {t}", t) for t in range(n)]


def test_limit_of_open_goals() -> None:
    engine = Engine(compile(PAIR), limits=Limits(goals=100), sweep_every=50)
    with pytest.raises(LimitExceeded, match=r"limit is 100.*WITHIN.*Limits\(goals=") as caught:
        engine.push_all(many(1_000))
    assert "goals are open" in str(caught.value)


def test_limit_of_derivations_of_a_join() -> None:
    query = "SELECT ?x ?y { ?c :a ?x . ?d :b ?y }"
    at_once = event(" . ".join(f":c{i} :a {i} . :c{i} :b {i}" for i in range(50)), 1)
    with pytest.raises(
        LimitExceeded, match=r"more than 1000 solutions of query q1 in one instant.*Limits\(derivations="
    ):
        run(query, at_once, limits=Limits(derivations=1_000))


ENDLESS = "CONSTRUCT { ?c :n ?m } { ?c :n ?n BIND(?n + 1 AS ?m) }"


def test_limit_of_rounds_stops_a_rule_that_feeds_itself() -> None:
    with pytest.raises(LimitExceeded, match=r"did not end within 100 rounds of one instant.*Limits\(rounds="):
        run(ENDLESS, event(":c :n 1", 1), limits=Limits(rounds=100))


def test_limit_of_derivations_stops_a_rule_that_grows() -> None:
    """Every triple makes two: the rounds would never be reached."""
    growing = "CONSTRUCT { ?s :n ?m ; :o ?m } { ?s ?p ?n BIND(?n + 1 AS ?m) }"
    with pytest.raises(LimitExceeded, match=r"more than 1000 solutions"):
        run(growing, event(":c :n 1", 1), limits=Limits(derivations=1_000))


def test_limit_of_matches_in_one_instant() -> None:
    at_once = event(" . ".join(f":c{i} :a {i}" for i in range(50)), 1)
    with pytest.raises(LimitExceeded, match=r"matches.*Limits\(matches="):
        run("SELECT ?x { ?c :a ?x }", at_once, limits=Limits(matches=20))


def test_matches_of_many_instants_are_within_the_limit_of_one() -> None:
    assert len(run("SELECT ?x { ?c :a ?x }", *many(50), limits=Limits(matches=20))) == 50


def test_what_ends_is_not_stopped() -> None:
    counted = "CONSTRUCT { ?c :n ?m } { ?c :n ?n BIND(?n + 1 AS ?m) FILTER(?n < 50) }"
    assert len(run(counted, event(":c :n 1", 1), limits=Limits(rounds=100))) == 49


# --- programs that come and go -----------------------------------------------------------------------------------


def test_goals_of_a_removed_program_go_and_shared_ones_stay() -> None:
    engine = Engine()
    engine.add(compile(PAIR), name="one")
    engine.push_all([event(":c :a 1", 1)])
    engine.add(compile(["REGISTER QUERY second AS " + PAIR]), name="two")
    engine.add(compile("REGISTER QUERY third AS SELECT ?x { ?c :d ?x } SEQ { ?c :e ?y }"), name="three")
    engine.push_all([event(":c :d 1", 2)])
    engine.advance(2 * SECOND)
    assert engine.count().goals == 2  # one for both of the same plan, one for the third
    engine.remove("three")
    assert engine.count().goals == 1
    engine.remove("two")
    assert engine.count().goals == 1
    found = engine.push_all([event(":c :b 2", 3)]) + engine.close()
    assert [(m.query, m.start, m.end) for m in found] == [("q1", 1, 3)]


def test_the_last_program_takes_all_goals_with_it() -> None:
    engine = Engine(compile(PAIR))
    engine.push_all([event(":c :a 1", 1)])
    engine.advance(SECOND)
    assert engine.count().goals == 1
    engine.remove("program1")
    assert engine.count().goals == 0
    assert engine.push_all([event(":c :b 2", 3)]) + engine.close() == []


def test_a_program_that_comes_later_sees_what_comes_later() -> None:
    engine = Engine()
    engine.push_all([event(":c :a 1", 1)])
    engine.advance(SECOND)
    engine.add(compile(PAIR))
    found = engine.push_all([event(":c :a 2", 2), event(":c :b 3", 3)]) + engine.close()
    assert [m["x"] for m in found] == [2]


def test_consumption_belongs_to_one_query() -> None:
    """Two queries over one plan, both consuming: each has its own partners."""
    engine = Engine(policy="recent")
    engine.add(compile("REGISTER QUERY one AS " + PAIR))
    engine.add(compile("REGISTER QUERY two AS " + PAIR))
    found = engine.push_all([event(":c :a 1", 1), event(":c :b 1", 2), event(":c :b 2", 3)]) + engine.close()
    assert sorted((m.query, m.end) for m in found) == [("one", 2), ("two", 2)]


def test_a_program_that_cannot_run_leaves_the_others_alone() -> None:
    engine = Engine(compile(PAIR), policy="recent")
    engine.push_all([event(":c :a 1", 1)])
    engine.advance(SECOND)
    unstratified = "REGISTER QUERY bad AS CONSTRUCT { ?c :n ?x } { ?c :a ?x FILTER NOT EXISTS { ?c :n ?x } }"
    with pytest.raises(QueryError):
        engine.add(compile(unstratified))
    found = engine.push_all([event(":c :b 2", 3)]) + engine.close()
    assert intervals(found) == [(1, 3)]


@pytest.mark.parametrize("how", ["program", "engine", "query"])
def test_the_policy_of_the_engine_the_program_or_the_query_holds(how: str) -> None:
    events = [event(":c :a 1", 1), event(":c :b 1", 2), event(":c :b 2", 3)]
    text = PAIR + " USING POLICY recent" if how == "query" else PAIR
    program = compile(text, policy="recent") if how == "program" else compile(text)
    engine = Engine(program, policy="recent") if how == "engine" else Engine(program)
    assert intervals(engine.push_all(events) + engine.close()) == [(1, 2)]


def test_names_that_are_taken_or_unknown_are_told() -> None:
    engine = Engine(compile(PAIR))
    with pytest.raises(ValueError, match="q1 are running already"):
        engine.add(compile(PAIR))
    with pytest.raises(KeyError, match="running: program1"):
        engine.remove("other")


# --- time ----------------------------------------------------------------------------------------------------------


def test_an_instant_closes_when_time_moves_on() -> None:
    engine = Engine(compile("SELECT ?x { ?c :a ?x }"))
    assert engine.push(event(":c :a 1", 1)) == []
    assert engine.push(event(":d :a 2", 1)) == []
    assert [m["x"] for m in engine.push(event(":c :a 3", 2))] == [1, 2]
    assert [m["x"] for m in engine.close()] == [3]


def test_advance_closes_what_is_over() -> None:
    engine = Engine(compile("SELECT ?x { ?c :a ?x }"))
    engine.push(event(":c :a 1", 5))
    assert engine.advance(4 * SECOND) == []
    assert [m["x"] for m in engine.advance(5 * SECOND)] == [1]
    assert engine.push(event(":c :a 2", 5)) == []
    assert engine.counters.late == 1


def test_advance_beyond_the_stream_makes_earlier_events_late() -> None:
    engine = Engine(compile("SELECT ?x { ?c :a ?x }"))
    engine.advance(10 * SECOND)
    engine.push_all([event(":c :a 1", 9), event(":c :a 2", 11)])
    assert [m["x"] for m in engine.close()] == [2]
    assert engine.dead_letters == [event(":c :a 1", 9)]


def test_an_eager_engine_closes_after_every_push() -> None:
    engine = Engine(compile(PAIR), eager=True)
    assert engine.push(event(":c :a 1", 1)) == []
    assert intervals(engine.push(event(":c :b 2", 2))) == [(1, 2)]


def test_a_closed_engine_says_so() -> None:
    engine = Engine(compile(PAIR))
    engine.close()
    with pytest.raises(ValueError, match="closed; make a new one"):
        engine.push(event(":c :a 1", 1))


def test_matches_of_an_instant_are_in_canonical_order() -> None:
    """By end, start, then terms, whatever the order of arrival."""
    events = [event(":c :a 2", (0, 5)), event(":c :a 1", (3, 5)), event(":c :a 3", (0, 5))]
    assert [m["x"] for m in run("SELECT ?x { ?c :a ?x }", *events)] == [2, 3, 1]


def test_counters_count() -> None:
    engine = Engine(compile("SELECT ?x ?y { { { ?c :a ?x } SEQ { ?c :b ?y } } WITHIN PT5S }"), sweep_every=4)
    engine.push_all([*many(20), event(":c19 :b 1", 22), event(":late :a 0", 1)])
    engine.close()
    counted = engine.count()
    assert (counted.events, counted.late, counted.matches, counted.instants) == (21, 1, 1, 21)
    assert counted.pruned >= 10
    assert counted.goals == sum(counted.per_rule.values()) <= 10


# --- timeless answers and query forms ---------------------------------------------------------------------------


def facts(turtle: str) -> list[list[tuple[str, str, str]]]:
    return [list(event(turtle, 0).triples)]


def test_what_the_background_alone_answers_comes_at_the_start() -> None:
    engine = Engine(compile("SELECT ?x { GRAPH ?g { ?c :k ?x } }"), background=[])
    engine.update("<urn:g>", add=event(":c :k 1", 0).triples)
    found = engine.push(event(":c :a 1", 1))
    assert [(m["x"], m.start, m.end, m.is_timeless) for m in found] == [(1, None, None, True)]
    assert engine.close() == []


def test_beside_a_stream_timeless_answers_come_at_the_end() -> None:
    engine = Engine(compile("SELECT ?x { ?c :a ?x }"), background=facts(":k :a 7"))
    engine.push(event(":c :a 1", 1))
    assert [(m["x"], m.end) for m in engine.close()] == [(1, 1), (7, None)]


def test_background_joins_the_stream_without_a_time_of_its_own() -> None:
    found = run("SELECT ?x ?n { ?c :a ?x ; :name ?n }", event(":c :a 1", 3), background=facts(':c :name "C"'))
    assert [(m["x"], m["n"], m.start, m.end) for m in found] == [(1, "C", 3, 3)]


def test_a_table_gives_its_value_to_what_was_unbound() -> None:
    """?z is bound by the second branch of the union, and by VALUES after the first."""
    query = "SELECT ?y ?z { { { ?c :a ?y } UNION { ?c :a ?y ; :b ?z } } VALUES ?z { 1 } FILTER(!(?y != ?z)) }"
    found = run(query, event(":c :a 1 ; :b 1", 1))
    assert [(m["y"], m["z"]) for m in found] == [(1, 1), (1, 1)]


GRAPHS = {"urn:g1": list(event(":c :k 1 . :c :k 2", 0).triples), "urn:g2": list(event(":d :k 3", 0).triples)}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?c :k ?x FILTER(?x != 3) } }", [("g1", 2), ("g2", 0)]),
        ("GRAPH ?g { ?c :k ?n MINUS { ?d :k ?m FILTER(?m > 1) } }", [("g1", 1), ("g1", 2), ("g2", 3)]),
        ("GRAPH ?g { ?c :k ?n MINUS { ?c :k 2 } }", [("g2", 3)]),
        ("GRAPH ?g { VALUES ?n { 7 } }", [("g1", 7), ("g2", 7)]),
        ("GRAPH ?g { ?c :k ?n FILTER NOT EXISTS { ?c :k ?m FILTER(?m > ?n) } }", [("g1", 2), ("g2", 3)]),
        ("GRAPH ?g { { ?c :k 3 } UNION { BIND(0 AS ?z) } BIND(9 AS ?n) }", [("g1", 9), ("g2", 9), ("g2", 9)]),
        ("?c :at ?g GRAPH ?g { SELECT (MAX(?x) AS ?n) { ?y :k ?x } }", [("g2", 3)]),
        (
            "?s :at ?h FILTER NOT EXISTS { GRAPH ?h { SELECT ?y { ?y :k 1 } } } BIND(?h AS ?g) BIND(1 AS ?n)",
            [("g2", 1)],
        ),
    ],
)
def test_graph_evaluates_its_group_once_for_every_graph(pattern: str, expected: list[tuple[str, int]]) -> None:
    known = load([], named=GRAPHS, entailment="rdf", cache=False)
    found = run(f"SELECT ?g ?n {{ {pattern} }}", event(":c :at <urn:g2>", 1), background=known)
    assert sorted((m["g"].removeprefix("urn:"), m["n"]) for m in found) == expected


def test_the_duration_of_a_timeless_solution_is_an_error() -> None:
    query = "SELECT ?x (COALESCE(getDURATION(), 'none') AS ?d) { ?c :k ?x }"
    assert [m["d"] for m in run(query, background=facts(":c :k 1"))] == ["none"]


def test_timeless_derived_triples_become_background() -> None:
    rules = ["CONSTRUCT { ?c :kind :big } { ?c :size ?s FILTER(?s > 10) }", "SELECT ?c { ?c :a ?x ; :kind :big }"]
    background = facts(":c :size 20 . :d :size 5")
    found = run(rules, event(":c :a 1", 1), event(":d :a 1", 2), background=background)
    assert intervals(m for m in found if m.query == "q2") == [(1, 1)]


def test_timeless_rules_read_each_other_whatever_their_order() -> None:
    rules = [
        "CONSTRUCT { ?c :k2 ?x } { ?c :k1 ?x }",
        "CONSTRUCT { ?c :k1 ?x } { ?c :k0 ?x }",
        "SELECT ?x { ?c :k2 ?x }",
    ]
    assert [m["x"] for m in run(rules, background=facts(":c :k0 5")) if m.query == "q3"] == [5]


def test_a_rule_that_does_not_end_over_the_background_is_stopped() -> None:
    with pytest.raises(LimitExceeded, match=r"query q1 derived .* from the background"):
        run(
            "CONSTRUCT { ?s :k ?m } { ?s :k ?n BIND(?n + 1 AS ?m) }",
            background=facts(":c :k 1"),
            limits=Limits(rounds=50),
        )


def test_new_nodes_do_not_lead_to_newer_ones() -> None:
    """Neither in an instant nor over the background; at a later instant a node is like any other."""
    rule = "CONSTRUCT { [] :s ?s } { ?s ?p ?o }"
    assert len(run(rule, event(":c :k 1 . :d :k 1", 1))) == 2
    (of_the_background,) = run(rule, background=facts(":c :k 1"))
    ((_, _, about),) = of_the_background.triples or ()
    assert about == "<http://example.org/c>"
    rules = "CONSTRUCT { [] :of ?x } { ?x :p ?y } SEQ { ?z :of ?x } ; CONSTRUCT { ?n :p 1 } { ?n :of ?m }"
    events = [event(text, t) for t, text in enumerate((":a :p :b", ":b :of :a", ":c :of :b", ":d :of :c"), 1)]
    later = run(rules, *events)
    assert [m.query for m in later].count("q1") == 3
    assert [m.query for m in later].count("q2") == 6


def test_a_count_of_nothing_is_reported_at_the_end() -> None:
    assert [(m["n"], m.end) for m in run("SELECT (COUNT(*) AS ?n) { ?c :a ?x }", event(":c :b 1", 1))] == [(0, None)]
    assert run("SELECT ?c (COUNT(*) AS ?n) { ?c :a ?x } GROUP BY ?c", event(":c :b 1", 1)) == []


def test_ask_answers_once_when_it_first_holds() -> None:
    engine = Engine(compile("ASK { ?c :a ?x FILTER(?x > 1) }"))
    found = engine.push_all([event(":c :a 1", 1), event(":c :a 2", 2), event(":c :a 3", 3)])
    assert [(m.boolean, m.end) for m in found] == [(True, 2)]
    assert engine.close() == []


def test_ask_is_false_at_the_end() -> None:
    assert [(m.boolean, m.end) for m in run("ASK { ?c :a ?x }", event(":c :b 1", 1))] == [(False, None)]


def test_describe_follows_blank_nodes_in_stream_and_background() -> None:
    events = [event(":c :part [ :size 3 ]", 1), event(":c :a 1", 2), event(":d :size 9", 2)]
    (found,) = run("DESCRIBE ?c { ?c :a ?x }", *events, background=facts(':c :name "C"'))
    assert found.triples is not None
    assert sorted(p.rsplit("/", 1)[1][:-1] for _, p, _ in found.triples) == ["a", "name", "part", "size"]


def test_describe_a_constant() -> None:
    found = run("DESCRIBE :c", background=facts(":c :k 1 . :d :k 2"))
    assert [len(m.triples or ()) for m in found] == [1]


# --- state ---------------------------------------------------------------------------------------------------------


def test_a_snapshot_goes_on_where_it_was_taken() -> None:
    program = compile([PAIR, "SELECT (SUM(?x) AS ?sum) { ?c :a ?x }"])
    first = Engine(program)
    first.push_all([event(":c :a 1", 1), event(":c :a 2", 2)])
    data = first.snapshot()
    assert isinstance(data, bytes)
    second = Engine(program)
    second.restore(data)
    rest = [event(":c :a 3", 3), event(":c :b 0", 4)]
    assert [*second.push_all(rest), *second.close()] == [*first.push_all(rest), *first.close()]


# --- explanations -------------------------------------------------------------------------------------------------

NESTED = [
    "CONSTRUCT { ?c :fell ?y } { ?c :price ?x } SEQ { ?c :price ?y } FILTER(?y < ?x)",
    "SELECT ?c ?n { { ?c :fell ?y ; :name ?n } SEQ { { ?c :sold ?s } UNION { ?c :bought ?s } } }",
]


def nested() -> Match:
    events = [event(":c :price 10", 1), event(":c :price 6", 3), event(":c :sold 5", 4)]
    (found,) = (m for m in run(NESTED, *events, explain=True, background=facts(':c :name "C"')) if m.query == "q2")
    return found


def test_why_prints_the_tree_down_to_events_and_background() -> None:
    text = str(nested().why())
    lines = [line.lstrip("│├└─ ") for line in text.splitlines()]
    assert lines[0] == "q2 [1, 4]"
    assert "SEQ: left ends before right starts" in lines
    assert "derived by q1" in lines
    assert [line for line in lines if line.startswith("event")] == [
        "event :c :price 10 [1, 1]",
        "event :c :price 6 [3, 3]",
        "event :c :sold 5 [4, 4]",
    ]
    assert 'background :c :name "C"' in lines


def test_why_shows_what_one_event_says_on_one_line_by_the_prefixes_of_the_query() -> None:
    engine = Engine("PREFIX v: <urn:v:> SELECT * { EVENT { ?c v:price ?x ; v:volume ?y } }", explain=True)
    [match] = [*engine.push(event(":c <urn:v:price> 10 ; <urn:v:volume> 5 ; :city :x", 1)), *engine.close()]
    assert str(match.why()) == "q1 [1, 1]\n└─ event :c v:price 10 ; v:volume 5 [1, 1]"
    assert len(list(match.why().events())) == 2


def test_why_as_json() -> None:
    tree = nested().why().to_dict()
    assert json.loads(json.dumps(tree)) == tree
    assert (tree["rule"], tree["start"], tree["end"]) == ("q2", 1, 4)
    leaves = [part for part in parts(tree) if part["rule"] == "event"]
    assert [(e["triple"][1], e["start"], e["end"]) for e in leaves] == [
        ("<http://example.org/price>", 1, 1),
        ("<http://example.org/price>", 3, 3),
        ("<http://example.org/sold>", 4, 4),
    ]
    assert all("because" not in e for e in leaves)


def parts(tree: dict[str, Any]) -> Iterable[dict[str, Any]]:
    yield tree
    for part in tree.get("because", ()):
        yield from parts(part)


def test_why_of_an_aggregate_names_what_it_counts() -> None:
    query = "SELECT (SUM(?x) AS ?s) { ?c :a ?x } WITHIN PT9S"
    found = run(query, event(":c :a 1", 1), event(":c :a 2", 2), explain=True)
    assert [len(list(m.why().events())) for m in found] == [1, 2]


def test_why_of_an_aggregate_without_a_window_says_that_its_solutions_are_not_kept() -> None:
    (found,) = run("SELECT (SUM(?x) AS ?s) { ?c :a ?x }", event(":c :a 1", 1), explain=True)
    assert "not kept" in str(found.why())


def test_why_without_explanations_says_how_to_get_them() -> None:
    (found,) = run("SELECT ?x { ?c :a ?x }", event(":c :a 1", 1))
    with pytest.raises(ValueError, match="explain=True"):
        found.why()


def test_integers_leave_a_window_one_by_one_after_a_decimal_came() -> None:
    prices = [event(f":c :a {x}", t) for t, x in enumerate(("1", "2", "3", "0.5", "4", "5", "6", "7"), 1)]
    found = run("SELECT (SUM(?x) AS ?s) { ?c :a ?x } WITHIN 4 EVENTS", *prices)
    assert [str(m["s"]) for m in found] == ["1", "3", "6", "6.5", "9.5", "12.5", "15.5", "22"]


def test_the_order_in_an_instant_is_that_of_the_program_and_of_the_terms() -> None:
    """Whatever the strata and the rounds of a recursion in which matches are found."""
    rules = [
        "SELECT ?x ?y { ?x :r ?y }",
        "CONSTRUCT { ?x :r ?z } { ?x :r ?y . ?y :r ?z }",
        "CONSTRUCT { ?x :r ?z } { ?x :e ?z }",
    ]
    found = run(rules, event(":d :e :a . :b :e :c . :a :e :b . :c :e :d", 1))
    assert [m.query for m in found] == sorted(m.query for m in found)
    for query in ("q1", "q2", "q3"):
        rows = [(m.end_us, m.start_us, *(m.triples or (m.row,))) for m in found if m.query == query]
        assert rows == sorted(rows)
        assert len({m.id for m in found if m.query == query}) == len(rows)


@pytest.mark.parametrize("bound", ["", "WITHIN 0 SECONDS"])
def test_filters_of_an_optional_group_see_the_whole_solution_whatever_bounds_the_group(bound: str) -> None:
    optional = f'{{ ?x :p ?y FILTER (getDURATION() <= "PT1S"^^xsd:dayTimeDuration) }} {bound}'
    found = run(f"SELECT * {{ {optional} OPTIONALSEQ {{ ?x :q ?z }} }}", event(":a :p 1", 0), event(":a :q 1", 2))
    assert intervals(found) == [(2, 2)]  # with the first it would last two seconds


@pytest.mark.parametrize("policy", ["unrestricted", "chronological"])
def test_a_variable_may_begin_with_an_underscore(policy: str) -> None:
    engine = Engine("SELECT * { { ?_1 :a ?_x } NOT { ?_1 :n ?_2 } }", policy=policy)
    matches = [*engine.push(event(":c :a :d", 1)), *engine.close()]
    assert [m.bindings for m in matches] == [{"_1": "<http://example.org/c>", "_x": "<http://example.org/d>"}]


def test_ids_count_a_query_by_its_name_else_by_its_text(tmp_path: Path) -> None:
    """Not by the name of a file or the place in the program; white space does not count."""
    [once], [again] = ids_of("SELECT ?x { ?a ?p ?x }"), ids_of("SELECT ?x\n  { ?a ?p ?x }\n")
    assert once == again
    (tmp_path / "file.rq").write_text("SELECT ?x { ?a ?p ?x }\n")
    assert ids_of(tmp_path / "file.rq") == [once]
    assert once not in ids_of("SELECT ?x { ?a ?p ?x FILTER (?x > 0) }")
    named = "REGISTER QUERY ones AS SELECT ?x { ?a ?p ?x }"
    [other] = ids_of(named)
    assert other != once
    assert ids_of(named.replace("?a", "?b")) == [other]
    assert ids_of(f"{named} ; SELECT ?x {{ ?a ?p ?x }}") == [other, once], "a query of several has its own text"


def test_ids_of_queries_with_the_same_text_differ() -> None:
    """The first has the ids that it has alone."""
    text = "SELECT ?x { ?a ?p ?x }"
    for count in (2, 5):  # five are compiled together
        ids = ids_of(*[text] * count)
        assert len(set(ids)) == count
        assert ids[:1] == ids_of(text)


def test_engines_with_the_same_rules_share_no_ids() -> None:
    """Chains of three parts are made once for all engines with the same rules."""
    chain = "SELECT ?x { { ?x :p 1 } SEQ { ?x :p 2 } SEQ { ?x :p 3 } }"
    events = [event(f":a :p {n}", n) for n in (1, 2, 3)]
    [plain], [noted] = ([match.id for match in run(text, *events)] for text in (chain, f"# a note\n{chain}"))
    assert plain != noted


def ids_of(*texts: str | Path) -> list[str]:
    return [match.id for match in run(texts, event("<urn:a> <urn:p> 1", 1))]
