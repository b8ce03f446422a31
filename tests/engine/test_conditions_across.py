"""Filters in the right group of NEXT, NOT and SEQ NOT that read variables of the left."""

from __future__ import annotations

import pytest

from etalis_py import Engine, QueryError, compile, event
from etalis_py.events import Retraction
from tests.engine.judge import in_rows_and_columns
from tests.oracle.traces import at, run

PRICES = at(1, "a p 5"), at(2, "a p 3"), at(3, "a p 6"), at(4, "a p 9"), at(9, "b p 1")
RISES = [("x=5 y=6", 1, 3), ("x=3 y=6", 2, 3), ("x=6 y=9", 3, 4)]


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("{ ?c :p ?x } NEXT { ?c :p ?y FILTER (?y > ?x) }", RISES),
        ("EVENT { ?c :p ?x } NEXT EVENT { ?c :p ?y FILTER (?y > ?x) }", RISES),
        ("{ ?c :p ?x } NEXT { { ?c :p ?y } FILTER (?y > ?x && ?y < 9) }", RISES[:2]),
        # ?x < 6 is about the left side alone: nothing is next of a price of 6.
        ("{ ?c :p ?x } NEXT { ?c :p ?y FILTER (?x < 6) }", [("x=5 y=3", 1, 2), ("x=3 y=6", 2, 3)]),
        ("{ ?c :p ?x } SEQ NOT { ?c :p ?y FILTER (?y > ?x) } WITHIN 2 s", [("x=9", 4, 6), ("x=1", 9, 11)]),
        (
            "{ ?c :p ?x } SEQ NOT { ?c :p ?n FILTER (?n > ?x) } SEQ { ?c :p ?y }",
            [("x=5 y=3", 1, 2), *RISES],
        ),
        (
            "{ { ?c :p ?x } SEQ { ?c :p ?y } } NOT { ?c :p ?n FILTER (?n > ?x && ?n < ?y) }",
            [("x=5 y=3", 1, 2), *RISES],
        ),
    ],
)
def test_the_condition_sees_the_left_side(where: str, rows: list) -> None:
    """What does not satisfy it is not next, and keeps nothing away."""
    query = f"SELECT ?x ?y {{ {where} }}"
    assert run(query, *PRICES) == rows
    assert in_rows_and_columns(query, *PRICES) == [rows, rows]


def test_in_a_gap_it_sees_what_stands_to_the_left_and_not_what_follows() -> None:
    query = "SELECT ?x ?z { { ?c :p ?x } SEQ NOT { ?c :p ?y FILTER (?y > ?z) } SEQ { ?c :q ?z } }"
    events = at(1, "a p 5"), at(2, "a p 9"), at(3, "a q 1")
    expected = [("x=5 z=1", 1, 3), ("x=9 z=1", 2, 3)]  # ?z is unbound in the filter, so nothing is kept away
    assert run(query, *events) == expected
    assert in_rows_and_columns(query, *events) == [expected, expected]


def test_the_time_is_that_of_the_right_side() -> None:
    query = "SELECT ?y { { ?c :p ?x } NEXT { ?c :q ?y FILTER (?y > ?x || getDURATION() > 'PT2S'^^xsd:duration) } }"
    events = at(1, "a p 5"), at((3, 4), "a q 3"), at((4, 9), "a q 2"), at((10, 11), "a q 8")
    assert run(query, *events) == [("y=2", 1, 9)]
    assert in_rows_and_columns(query, *events) == [[("y=2", 1, 9)]] * 2


@pytest.mark.parametrize(
    ("gap", "rows"),
    [
        ("SEQ NOT { ?x :p ?v FILTER (?v != ?y) } SEQ { ?x :p ?v }", [("v=1 x=a y=2", 0, 2), ("v=1 x=a y=1", 2, 3)]),
        (
            "SEQ OPTIONAL { ?x :p ?v FILTER (?v != ?y) } SEQ { ?x :p ?v }",
            [("v=1 x=a y=2", 0, 2), ("v=1 x=a y=2", 0, 3), ("v=1 x=a y=1", 2, 3)],
        ),
    ],
)
def test_what_must_not_come_binds_a_variable_that_only_what_follows_binds_too(gap: str, rows: list) -> None:
    query = f"SELECT * {{ {{ {{ ?x :p ?y }} UNION {{ ?x :o ?y . ?x :o ?v }} }} {gap} }}"
    events = at(0, "a p 2"), at(2, "a p 1"), at(3, "a p 1")
    assert run(query, *events) == rows
    assert in_rows_and_columns(query, *events) == [rows, rows]


def test_a_variable_that_the_right_side_may_leave_unbound_has_the_value_of_the_left() -> None:
    query = "SELECT ?y { { ?x :p ?v } NEXT { { { ?y :q ?v } UNION { ?y :q ?w } } FILTER (?v > 3) } }"
    events = at(1, "a p 5"), at(2, "b q 1")
    assert run(query, *events) == [("y=b", 1, 2)]
    assert in_rows_and_columns(query, *events) == [[("y=b", 1, 2)]] * 2


@pytest.mark.parametrize("policy", ["chronological", "recent"])
def test_it_is_part_of_what_makes_a_candidate(policy: str) -> None:
    query = "SELECT ?x ?y { { ?c :p ?x } NEXT { ?c :q ?y FILTER (?y > ?x) } }"
    events = at(1, "a p 5"), at(2, "a p 2"), at(3, "a q 3"), at(4, "a q 7"), at(5, "a q 9")
    expected = run(query, *events, policy=policy)
    assert expected == [("x=2 y=3", 2, 3), ("x=5 y=7", 1, 4)]
    assert in_rows_and_columns(query, *events, policy=policy) == [expected, expected]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_correction_of_the_one_that_was_next(executor: str) -> None:
    query = "SELECT ?x ?y { { ?c :p ?x } NEXT { ?c :p ?y FILTER (?y > ?x) } }"
    engine = Engine(compile(query), revise=60_000_000, executor=executor)  # type: ignore[arg-type]
    engine.push_all([event(":a :p 5", 1), event(":a :p 6", 2), event(":a :p 7", 3)])
    gone = event(":a :p 6", 2)
    matches = [*engine.push_all([Retraction(gone.start, gone.end, gone.triples, "")]), *engine.close()]
    shown = sorted((m.retracted, m.start, m.end) for m in matches)
    assert (True, 1, 2) in shown
    assert (False, 1, 3) in shown


def test_queries_that_differ_in_a_constant_of_it_are_one_plan() -> None:
    text = "SELECT ?x ?y {{ {{ ?c :p ?x }} NEXT {{ ?c :p ?y FILTER (?y > ?x + {}) }} }}"
    events = [event(f":a :p {price}", i) for i, price in enumerate((5, 6, 8, 5, 11))]
    texts = [text.format(n) for n in range(6)]
    together = Engine(compile(texts))
    ids = {(m.query, m.start, m.end) for m in [*together.push_all(events), *together.close()]}
    alone = set()
    for number, one in enumerate(texts, 1):
        engine = Engine(compile(one))
        alone |= {(f"q{number}", m.start, m.end) for m in [*engine.push_all(events), *engine.close()]}
    assert ids == alone


def test_explain_says_what_is_kept() -> None:
    text = str(compile("SELECT ?x { { ?c :p ?x } NEXT { ?c :p ?y FILTER (?y > ?x) } }").explain())
    assert "T2 < T3, X2 > X1, retract(" in text
    assert "keeps every solution of e1 that has not found its next one" in text
    assert "row by row" not in text


@pytest.mark.parametrize(
    "where",
    [
        "{ ?c :p ?x } NEXT { ?c :p ?y FILTER (?y > ?x) }",
        "{ ?c :p ?x } NEXT { { ?c :p ?y FILTER (?y > 1) } WITHIN 2 s }",
        "{ { ?c :p ?x } NEXT { ?c :p ?y FILTER (?y > ?x) } } WITHIN 2 s",
        "{ ?c :p ?x } SEQ NOT { ?c :p ?y FILTER (?y > ?x) } WITHIN 2 s",
        "EVENT { ?c :p ?x } NEXT STREAM <s> { EVENT { ?c :p ?y FILTER (?y > ?x) } }",
    ],
)
def test_nothing_is_said_to_be_out_of_scope(where: str) -> None:
    assert compile(f"SELECT ?x {{ {where} }}").warnings == ()


def test_what_is_below_the_top_level_is_out_of_scope_and_said_to_be() -> None:
    [warning] = compile("SELECT ?x { { ?c :p ?x } NEXT { { ?c :p ?y FILTER (?y > ?x) } } }").warnings
    assert "?x is not in scope here" in str(warning)


WANTED = "?c :q ?n FILTER EXISTS { ?k :wants ?x }"


@pytest.mark.parametrize(
    ("where", "events", "rows"),
    [
        (
            "{ ?c :q ?x } NEXT { " + WANTED + " }",
            ["a q 5", "a q 3", "k wants 5", "a q 9", "k wants 9", "k wants 3", "a q 1"],
            [("n=9 x=5", 1, 4), ("n=1 x=3", 2, 7), ("n=1 x=9", 4, 7)],
        ),
        (
            "{ ?c :p ?x } SEQ NOT { " + WANTED + " } SEQ { ?c :r ?y }",
            ["a p 5", "a q 1", "k wants 5", "a r 2", "a q 3", "a r 4"],
            [("x=5 y=2", 1, 4)],
        ),
        (
            "{ ?c :p ?x } SEQ NOT { " + WANTED + " } WITHIN 3 s",
            ["a p 5", "a q 1", "k wants 5", "a p 6", "k wants 6", "a q 2"],
            [("x=5", 1, 4)],
        ),
        (
            "{ { ?c :p ?x } SEQ { ?c :r ?y } } NOT { " + WANTED + " }",
            ["a p 5", "a q 1", "k wants 5", "a r 2", "a q 3", "a r 4"],
            [("x=5 y=2", 1, 4)],
        ),
    ],
)
def test_an_exists_sees_the_left_side_and_what_ended_by_the_end_of_the_right(
    where: str, events: list[str], rows: list
) -> None:
    trace = [at(i, triple) for i, triple in enumerate(events, 1)]
    query = f"SELECT ?x ?y ?n {{ {where} }}"
    assert run(query, *trace) == rows
    assert in_rows_and_columns(query, *trace) == [rows, rows]


def test_a_rule_may_ask_what_it_derived_before_the_gap_ended() -> None:
    """N is over when the gap ends, and so is what an EXISTS sees at its end; a deadline may end with N."""
    gap = "{ ?c :p ?x } SEQ NOT { ?c :q ?n FILTER EXISTS { ?k :d ?x } }"
    rule = f"CONSTRUCT {{ ?c :d ?x }} {{ {gap} SEQ {{ ?c :r ?y }} }}"
    trace = [at(i, triple) for i, triple in enumerate(["a p 5", "a q 1", "a r 2", "a q 1", "a r 3"], 1)]
    expected = run(rule + " SELECT ?x { ?c :d ?x }", *trace)
    assert expected == [("x=5", 1, 3)]
    assert in_rows_and_columns(rule + " SELECT ?x { ?c :d ?x }", *trace) == [expected, expected]
    with pytest.raises(QueryError, match="depend on themselves within one instant through EXISTS"):
        compile(f"CONSTRUCT {{ ?c :d ?x }} {{ {gap} WITHIN 1 s }}")


def test_an_exists_in_an_event_that_reads_the_left_side_is_refused() -> None:
    with pytest.raises(QueryError, match="has a variable that the group to its left binds, too"):
        compile("SELECT ?x { { ?c :p ?x } NEXT EVENT { ?c :p ?y FILTER EXISTS { ?x :r ?y } } }")
