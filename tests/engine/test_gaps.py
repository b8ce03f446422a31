"""REPEAT … GAP d: neighbours lie at most d apart, and a longer silence begins a new run."""

from __future__ import annotations

import pytest
from etalis_compiler.parser import parse

from etalis_py import Engine, QueryError, compile, event
from etalis_py.events import Retraction
from tests.engine.judge import in_rows_and_columns
from tests.oracle.traces import at, run

VISIT = "SELECT ?x ?n {{ {{ ?x :p ?v }} REPEAT 1 OR MORE BY ?x GAP {} {} AS (COUNT(*) AS ?n) }}"
CLICKS = at(1, "a p 1"), at(2, "b p 1"), at(3, "a p 2"), at(6, "a p 3"), at(7, "a p 4")


def in_all(query: str, *events: object, policy: str = "unrestricted") -> list:
    """The answer of the oracle, which that of each executor must be."""
    expected = run(query, *events, policy=policy)  # type: ignore[arg-type]
    assert in_rows_and_columns(query, *events, policy=policy) == [expected, expected]  # type: ignore[arg-type]
    return expected


@pytest.mark.parametrize("also", ["", "WHERE (?v > PREVIOUS(?v))"])
def test_a_longer_silence_begins_a_new_run(also: str) -> None:
    query = VISIT.format("2 s", f"LONGEST {also}")
    assert in_all(query, *CLICKS) == [
        ("n=1 x=a", 1, 1),
        ("n=1 x=b", 2, 2),
        ("n=2 x=a", 1, 3),
        ("n=1 x=a", 6, 6),
        ("n=2 x=a", 6, 7),
    ]


def test_without_longest_every_run_that_no_silence_parts_is_one() -> None:
    query = "SELECT ?n { { ?x :p ?v } REPEAT 2 OR MORE BY ?x GAP 2 s AS (COUNT(*) AS ?n) }"
    events = at(1, "a p 1"), at(2, "a p 2"), at(4, "a p 3"), at(7, "a p 4")
    assert in_all(query, *events) == [("n=2", 1, 2), ("n=3", 1, 4), ("n=2", 2, 4)]


def test_the_gap_is_from_the_end_of_one_to_the_start_of_the_next() -> None:
    """[1, 3] and [5, 9] are two seconds apart; [13, 14] is four after."""
    events = at((1, 3), "a p 1"), at((5, 9), "a p 2"), at((13, 14), "a p 3")
    assert in_all(VISIT.format("2 s", "LONGEST"), *events)[1:] == [("n=2 x=a", 1, 9), ("n=1 x=a", 13, 14)]


def test_it_does_not_change_what_is_next() -> None:
    """The next of [0, 1] is [3, 4], which is too far; [2, 6] is near enough and ends later, so it is not next."""
    events = at((0, 1), "a p 1"), at((3, 4), "a p 2"), at((2, 6), "a p 3")
    query = "SELECT ?n { { ?x :p ?v } REPEAT 2 OR MORE BY ?x GAP 1 s AS (COUNT(*) AS ?n) }"
    assert in_all(query, *events) == []


@pytest.mark.parametrize("longest", ["", "LONGEST"])
def test_a_month_is_as_long_as_in_the_calendar(longest: str) -> None:
    query = compile(f"SELECT ?x {{ {{ ?x :p ?v }} REPEAT 2 BY ?x GAP P1M {longest} }}")
    engine = Engine(query)
    days = ("2023-01-31", "2023-02-28", "2023-03-29")
    matches = [*engine.push_all([event(":a :p 1", f"{day}T00:00:00Z") for day in days]), *engine.close()]
    assert [str(m.start)[:10] for m in matches] == ["2023-01-31"]


def test_as_where_over_bound_times() -> None:
    """GAP d is the condition that the element starts at most d after the time to which the last one bound its end."""
    bound = "{ { ?x :p ?v } BIND (getSTARTTIME() AS ?s) BIND (getENDTIME() AS ?e) }"
    where = "WHERE (?s - PREVIOUS(?e) <= 'PT2S'^^xsd:dayTimeDuration)"
    query = "SELECT ?x ?n {{ {} REPEAT 1 OR MORE BY ?x {} AS (COUNT(*) AS ?n) }}"
    assert in_all(query.format(bound, where), *CLICKS) == in_all(query.format("{ ?x :p ?v }", "GAP 2 s"), *CLICKS)


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_correction_that_makes_a_silence_too_long(executor: str) -> None:
    query = "SELECT ?x { { ?x :p ?v } REPEAT 3 BY ?x GAP 2 s LONGEST }"
    engine = Engine(compile(query), revise=60_000_000, executor=executor)  # type: ignore[arg-type]
    engine.push_all([event(":a :p 1", time) for time in (1, 3, 5, 6, 8)])
    gone = event(":a :p 1", 3)
    matches = [*engine.push_all([Retraction(gone.start, gone.end, gone.triples, "")]), *engine.close()]
    shown = sorted((m.retracted, m.start, m.end) for m in matches)
    assert (True, 1, 5) in shown
    assert (False, 5, 8) in shown


def test_queries_that_differ_in_it_have_runs_of_their_own() -> None:
    texts = [f"SELECT ?x {{ {{ ?x :p ?v }} REPEAT 2 BY ?x GAP {n} s }}" for n in range(1, 6)]
    engine = Engine(compile(texts))
    found = [*engine.push_all([event(":a :p 1", time) for time in (1, 4, 9)]), *engine.close()]
    assert [m.query for m in found if m.end == 4] == ["q3", "q4", "q5"]
    assert [m.query for m in found if m.end == 9] == ["q5"]


def test_explain_and_why_not_say_it() -> None:
    program = compile("SELECT ?x { { ?x :p ?v } REPEAT 2 BY ?x GAP 2 s }")
    text = str(program.explain())
    assert "gap ≤ PT2S" in text
    assert "T3 − T2 ≤ PT2S" in text
    assert "agree on its BY variables come one after another" in text
    assert "GAP 2 s in REPEAT 2 BY ?x" in str(program.why_not([event(":a :p 1", 1), event(":a :p 1", 9)]))


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("GAP 5 EVENTS", "GAP counts time, not events"),
        ("GAP 5", "a length of time needs a unit|say which: GAP 5 SECONDS"),
        ("GAP 2 s GAP 3 s", "REPEAT has GAP twice"),
    ],
)
def test_what_is_no_gap_is_refused(clause: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        compile(f"SELECT * {{ {{ ?x :p ?v }} REPEAT 2 BY ?x {clause} }}")


def test_gap_is_a_name_where_only_a_name_fits() -> None:
    parse("SELECT * { ?x gap ?y }")
