"""REPEAT … MAXIMAL: runs that can grow at neither end, each reported once, when that is certain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from etalis_compiler.parser import parse
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, Match, QueryError, compile, event
from etalis_py.events import Event, Retraction
from tests.draws import examples
from tests.engine.judge import engine_for, in_rows_and_columns
from tests.oracle import strategies
from tests.oracle.strategies import Case
from tests.oracle.traces import at, run

SESSIONS = "SELECT ?x ?n {{ {{ ?x :p ?v }} REPEAT 1 OR MORE BY ?x GAP {} MAXIMAL AS (COUNT(*) AS ?n) }}"
RUNS = "{ ?x :p ?v } REPEAT 1 OR MORE BY ?x WHERE (?v > PREVIOUS(?v)) MAXIMAL AS (COUNT(*) AS ?n)"
RISES = f"SELECT ?x ?n {{ {RUNS} }}"
CLICKS = at(1, "a p 1"), at(2, "b p 1"), at(3, "a p 2"), at(6, "a p 3"), at(7, "a p 4")


def in_all(query: str, *events: Event, policy: str = "unrestricted") -> list[Any]:
    """The answer of the oracle, which that of each executor must be."""
    expected: list[Any] = run(query, *events, policy=policy)
    rows, columns = in_rows_and_columns(query, *events, policy=policy)
    assert sorted(rows) == sorted(columns) == sorted(expected)
    return rows  # type: ignore[no-any-return]


def series(*values: int, predicate: str = "p") -> list[Event]:
    """The values of ``a`` at 1, 2, 3, …"""
    return [at(t, f"a {predicate} {v}") for t, v in enumerate(values, 1)]


# --- when a run is over ---


def test_a_session_ends_when_the_silence_is_over() -> None:
    assert in_all(SESSIONS.format("2 s"), *CLICKS) == [("n=1 x=b", 2, 4), ("n=2 x=a", 1, 5), ("n=2 x=a", 6, 9)]


def test_an_n_that_ends_no_run_leaves_the_silence_to_do_so() -> None:
    query = "SELECT ?n { { ?x :p ?v } REPEAT 1 OR MORE BY ?x NOT { ?x :q ?w } GAP 3 s MAXIMAL AS (COUNT(*) AS ?n) }"
    events = at(1, "a p 1"), at(2, "a p 2 ; a q 0"), at(9, "b p 1")
    assert in_all(query, *events) == [("n=2", 1, 5), ("n=1", 9, 12)]


def test_a_session_goes_on_alone_after_simultaneous_elements() -> None:
    """The two elements at 2 and an event of another predicate when the silence of ``b`` is over change nothing."""
    events = at(1, "a p 1"), at(2, "b p 0"), at(3, "a p 2 ; a p 3"), at(5, "a p 4"), at(5, "c q 0"), at(7, "a p 5")
    assert in_all(SESSIONS.format("3 s"), *events, at(8, "c q 0"), at(10, "c q 0")) == [
        ("n=1 x=b", 2, 5),
        ("n=4 x=a", 1, 10),
        ("n=4 x=a", 1, 10),
    ]


def test_an_element_at_the_end_of_the_gap_still_belongs_to_the_run() -> None:
    assert in_all(SESSIONS.format("2 s"), at(1, "a p 1"), at(3, "a p 2"), at(8, "b p 1")) == [
        ("n=2 x=a", 1, 5),
        ("n=1 x=b", 8, 10),
    ]


def test_runs_that_share_their_last_element_all_go_on() -> None:
    """Two elements at one time begin two runs, which the next elements continue alike."""
    query = "SELECT ?n { { ?x :p ?v } REPEAT 1 OR MORE BY ?x MAXIMAL AS (GROUP_CONCAT(?v) AS ?n) }"
    found = in_all(query, at(1, "a p 1"), at(1, "a p 2"), at(2, "a p 3"), at(3, "a p 4"))
    assert found == [("n=1 3 4", 1, 3), ("n=2 3 4", 1, 3)]


def test_a_gap_of_nothing_ends_each_run_at_once() -> None:
    assert in_all(SESSIONS.format("0 s"), *series(1, 2)) == [("n=1 x=a", 1, 1), ("n=1 x=a", 2, 2)]


def test_a_run_ends_at_the_next_element_that_does_not_fit_or_with_the_stream() -> None:
    """The last one has its own hull, as only the end of the stream ends it."""
    found = in_all(RISES, *series(1, 2, 3, 1, 5))
    assert found == [("n=3 x=a", 1, 4), ("n=2 x=a", 4, 5)]


def test_a_run_ends_at_an_n() -> None:
    query = "SELECT ?n { { ?x :p ?v } REPEAT 2 OR MORE BY ?x NOT { ?x :q ?w } MAXIMAL AS (COUNT(*) AS ?n) }"
    events = at(1, "a p 1"), at(2, "a p 2"), at(3, "b q 0"), at(4, "a q 0"), at(6, "a p 3"), at(7, "a p 4")
    assert in_all(query, *events) == [("n=2", 1, 4), ("n=2", 6, 7)]


def test_an_element_at_the_time_of_an_n_still_belongs_to_the_run() -> None:
    query = "SELECT ?n { { ?x :p ?v } REPEAT 1 OR MORE BY ?x NOT { ?x :q ?w } MAXIMAL AS (COUNT(*) AS ?n) }"
    events = at(1, "a p 1"), at(3, "a p 2 ; a q 0"), at(5, "a p 3")
    assert in_all(query, *events) == [("n=3", 1, 5)]


def test_with_an_upper_bound_all_runs_of_that_length_are_maximal() -> None:
    query = "SELECT ?n { { ?x :p ?v } REPEAT 1 TO 3 BY ?x MAXIMAL AS (COUNT(*) AS ?n) }"
    assert in_all(query, *series(1, 2, 3, 4)) == [("n=3", 1, 3), ("n=3", 2, 4)]
    assert in_all(query, *series(1, 2)) == [("n=2", 1, 2)]


def test_runs_with_a_condition_on_the_first_may_overlap() -> None:
    query = (
        "SELECT ?f ?l { { ?x :p ?v } REPEAT 1 OR MORE BY ?x WHERE (?v < FIRST(?v) + 3) MAXIMAL "
        "AS (FIRST(?v) AS ?f, LAST(?v) AS ?l) }"
    )
    assert in_all(query, *series(1, 2, 3, 4)) == [("f=1 l=3", 1, 4), ("f=2 l=4", 2, 4)]


def test_shorter_runs_are_not_reported() -> None:
    query = RISES.replace("REPEAT 1 OR MORE", "REPEAT 3 OR MORE")
    assert in_all(query, *series(1, 2, 1, 2, 3, 0)) == [("n=3 x=a", 3, 6)]


def test_elements_with_duration_end_at_the_next_one() -> None:
    """[0, 2] and [3, 5] are a run; [6, 8] is no rise."""
    events = at((0, 2), "a p 1"), at((3, 5), "a p 2"), at((6, 8), "a p 0")
    assert in_all(RISES, *events) == [("n=2 x=a", 0, 8), ("n=1 x=a", 6, 8)]


def test_with_gap_the_elements_are_points() -> None:
    events = at(1, "a p 1"), at((1.5, 2), "a p 2"), at(3, "a p 3")
    assert in_all(SESSIONS.format("2 s"), *events) == [("n=2 x=a", 1, 5)]


def test_simultaneous_elements_make_several_runs() -> None:
    query = RISES
    events = at(1, "a p 1"), at(2, "a p 2 ; a p 0"), at(3, "a p 1")
    assert in_all(query, *events) == [("n=2 x=a", 1, 3), ("n=2 x=a", 2, 3)]


# --- beside other operators ---


def test_what_only_the_end_of_the_stream_ends_joins_nothing() -> None:
    """The first rise ends at 3; the second one when the stream has ended, so what follows it was not known to."""
    query = f"SELECT ?n ?w {{ {RUNS} SEQ {{ ?x :q ?w }} }}"
    events = [*series(1, 2, 1, 2), at(5, "a q 0"), at(6, "a q 1")]
    assert in_all(query, *events) == [("n=2 w=0", 1, 5), ("n=2 w=1", 1, 6)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT (COUNT(*) AS ?k) { RUNS }", [("k=1", 1, 3), ("k=2", 1, 4)]),
        ("SELECT DISTINCT ?x { RUNS }", [("x=a", 1, 3), ("x=a", 3, 4)]),
        ("SELECT ?n ?m { RUNS BIND (?n + 1 AS ?m) FILTER (?m > 2) }", [("m=3 n=2", 1, 3), ("m=3 n=2", 3, 4)]),
        ("SELECT ?n ?w { RUNS OPTIONAL { ?x :q ?w } }", [("n=2", 1, 3), ("n=2", 3, 4)]),
        ("SELECT ?n { { RUNS } NOT { ?x :q ?w } }", [("n=2", 1, 3), ("n=2", 3, 4)]),
        ("SELECT ?n { { RUNS } DISJOINT BY ?x }", [("n=2", 1, 3)]),
        ("SELECT ?n { RUNS } LIMIT 1", [("n=2", 1, 3)]),
    ],
)
def test_single_solutions_and_counts_see_it(query: str, expected: list[Any]) -> None:
    assert in_all(query.replace("RUNS", RUNS), *series(1, 2, 1, 2)) == expected


def test_it_derives_an_event_when_it_is_over_but_not_after_the_stream() -> None:
    rule = f"REGISTER STREAM <urn:s> AS CONSTRUCT {{ ?x :rise ?n }} WHERE {{ {RUNS} }} ; "
    assert in_all(rule + "SELECT ?n { ?x :rise ?n }", *series(1, 2, 1, 2)) == [("n=2", 1, 3)]


def test_a_deadline_after_the_end_still_feeds_a_run() -> None:
    """The rule derives [1, 4], [3, 6] and, after the end of the stream, [8, 11], which is the next of both."""
    rule = "CONSTRUCT { ?x :late ?v } WHERE { { ?x :p ?v } SEQ NOT { ?x :q ?w } WITHIN 3 s }"
    query = f"{rule} ; SELECT ?n {{ {{ ?x :late ?v }} REPEAT 1 OR MORE BY ?x MAXIMAL AS (COUNT(*) AS ?n) }}"
    assert in_all(query, at(1, "a p 1"), at(3, "a p 2"), at(8, "a p 3")) == [("n=2", 1, 11), ("n=2", 3, 11)]


def test_a_window_is_applied_to_the_maximal_run() -> None:
    query = "SELECT ?n { { { ?x :p ?v } REPEAT 1 OR MORE BY ?x GAP 2 s MAXIMAL AS (COUNT(*) AS ?n) } WITHIN 3 s }"
    assert in_all(query, at(1, "a p 1"), at(2, "a p 2"), at(3, "a p 3"), at(9, "a p 4")) == [("n=1", 9, 11)]


@pytest.mark.parametrize("policy", ["recent", "chronological"])
def test_a_policy_changes_nothing_for_single_events(policy: str) -> None:
    assert in_all(SESSIONS.format("2 s"), *CLICKS, policy=policy) == in_all(SESSIONS.format("2 s"), *CLICKS)


# --- as the form of two rules ---


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=12), st.sampled_from(("", "GAP 1 s")))
def test_as_the_last_of_the_longest_runs_with_one_beginning(steps: list[tuple[int, int]], gap: str) -> None:
    """Where the condition asks for PREVIOUS alone: of the longest runs with one beginning, the one with the most."""
    text = "SELECT ?x ?f ?n { { ?x :p ?v } REPEAT 1 OR MORE BY ?x WHERE (?v >= PREVIOUS(?v)) %s %s AS (COUNT(*) AS ?n, "
    text += "FIRST(?v) AS ?f) }"
    time, events = 0, []
    for wait, value in steps:
        time += 1 + wait
        events.append(event(f":a :p {value}", time))
    longest: dict[int, int] = {}
    for match in _matches(text % (gap, "LONGEST"), events):
        longest[match.start_us] = max(longest.get(match.start_us, 0), match["n"])
    found = {m.start_us: m["n"] for m in _matches(text % (gap, "MAXIMAL"), events)}
    assert found == longest


def _matches(text: str, events: Sequence[Event], **options: Any) -> list[Match]:
    engine = Engine(compile(text), **options)
    return [*engine.push_all(list(events)), *engine.close()]


# --- time, state, corrections ---


def test_the_clock_ends_a_session() -> None:
    engine = Engine(compile(SESSIONS.format("2 s")))
    assert not engine.push(event(":a :p 1", 1))
    assert engine.next_due() is not None
    assert not engine.advance(2_000_000)
    [match] = engine.advance(4_000_000)
    assert (match.start, match.end) == (1, 3)
    assert engine.counters.goals == 0
    assert not engine.close()


@given(strategies.ended_runs(), st.integers(0, 12))
@settings(max_examples=examples(0.5))
def test_a_snapshot_anywhere_changes_nothing(case: Case, cut: int) -> None:
    first = engine_for(case)
    found = list(first.push_all(case.events[:cut]))
    second = engine_for(case)
    second.restore(first.snapshot())
    found += [*second.push_all(case.events[cut:]), *second.close()]
    whole = engine_for(case)
    assert sorted(m.id for m in found) == sorted(m.id for m in [*whole.push_all(case.events), *whole.close()])


@given(strategies.ended_runs(), st.integers(0, 12))
@settings(max_examples=examples(0.5))
def test_a_journal_anywhere_changes_nothing(case: Case, cut: int) -> None:
    leader, follower = engine_for(case, journal=True), engine_for(case, journal=True)
    follower.restore(leader.snapshot())
    found = list(leader.push_all(case.events[:cut]))
    follower.apply_journal(leader.take_journal())
    found += [*follower.push_all(case.events[cut:]), *follower.close()]
    whole = engine_for(case)
    assert sorted(m.id for m in found) == sorted(m.id for m in [*whole.push_all(case.events), *whole.close()])


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_correction_that_parts_a_session(executor: str) -> None:
    gone = event(":a :p 1", 3)
    engine = Engine(compile(SESSIONS.format("2 s")), revise=60_000_000, executor=executor)  # type: ignore[arg-type]
    engine.push_all([event(":a :p 1", 1), gone, event(":a :p 1", 5), event(":b :p 1", 20)])
    matches = [*engine.push_all([Retraction(gone.start, gone.end, gone.triples, "")]), *engine.close()]
    shown = {(m.retracted, m.start, m.end) for m in matches}
    assert {(True, 1, 7), (False, 1, 3), (False, 5, 7)} <= shown


def test_queries_that_differ_in_constants_answer_as_each_alone() -> None:
    texts = [
        f"SELECT ?x ?n {{ {{ ?x :p ?v FILTER (?v > {k}) }} REPEAT 1 OR MORE BY ?x {gap} MAXIMAL AS (COUNT(*) AS ?n) }}"
        for gap in ("GAP 2 s", "")
        for k in range(5)
    ]
    events = [event(f":a :p {t * 7 % 6}", t) for t in range(1, 30)]
    engine = Engine(compile(texts))
    found = {(m.query, m.start, m.end) for m in [*engine.push_all(events), *engine.close()]}
    alone = {(f"q{i}", m.start, m.end) for i, text in enumerate(texts, 1) for m in _matches(text, events)}
    assert found == alone


# --- words ---


def test_explain_why_and_why_not() -> None:
    program = compile(SESSIONS.format("2 s"))
    text = str(program.explain())
    assert "gap ≤ PT2S, maximal" in text
    assert "time(T2 + PT2S) ← maximal(" in text
    assert "g2 ends runs after a silence of PT2S" in text
    assert "q1 runs in columns, as long as elements of the REPEAT" in text
    [match] = _matches(SESSIONS.format("2 s"), [event(":a :p 1", 1), event(":a :p 2", 2)], explain=True)
    assert "REPEAT … MAXIMAL" in str(match.why())
    assert "end of the stream ← maximal(" in str(compile(RISES).explain())
    longer = compile("SELECT ?n { { ?x :p ?v } REPEAT 1 OR MORE BY ?x MAXIMAL AS (COUNT(*) AS ?n) }")
    assert "MAXIMAL" in str(longer.why_not([event(":a :p 1", 1), event(":a :p 1", 9)], where="?n = 1"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ ?x :p ?v } REPEAT 2 BY ?x LONGEST MAXIMAL", "LONGEST and MAXIMAL exclude each other"),
        ("{ ?x :p ?v } REPEAT 2 BY ?x MAXIMAL MAXIMAL", "REPEAT has MAXIMAL twice"),
        ("{ { ?x :p ?v } SEQ { ?x :q ?w } } REPEAT 2 BY ?x GAP 2 s MAXIMAL", "takes elements that are points"),
        ("{ { ?x :p ?v } NEXT { ?x :q ?w } } REPEAT 2 NOT { ?x :r ?z } MAXIMAL", "takes elements that are points"),
        ("{ { ?x :p ?v } SEQ NOT { ?x :n ?u } SEQ { ?x :q ?w } } REPEAT 2 GAP 2 s MAXIMAL", "elements that are points"),
        ("{ { ?x :p ?v } SEQ NOT { ?x :n ?u } WITHIN 1 s } REPEAT 2 GAP 2 s MAXIMAL", "elements that are points"),
        ("{ ?x :p ?v FILTER EXISTS { { ?x :q ?w } REPEAT 2 MAXIMAL FILTER (?v > 1) } }", "looked for backwards"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        compile(f"SELECT * {{ {text} }}")


SHORT = 'FILTER (getDURATION() <= "PT2S"^^xsd:dayTimeDuration)'


@pytest.mark.parametrize(
    ("beside", "answer"),
    [
        ("NOT { ?x :q ?z }", []),
        ("MINUS { ?x :q ?z }", []),
        ("FILTER NOT EXISTS { ?x :q ?z }", []),
        ("FILTER NOT EXISTS { ?x :q ?z FILTER (?z > ?n) }", []),
        ("OPTIONAL { ?x :q ?z }", [("n=2 x=a z=7", 1.0, 3.0)]),
        (f"OPTIONAL {{ ?x :q ?z {SHORT} }}", [("n=2 x=a z=7", 1.0, 3.0)]),
    ],
)
@pytest.mark.parametrize("bound", ["", "} WITHIN 5 s"])
def test_what_lies_inside_a_run_that_only_the_end_ends_is_remembered(
    beside: str, answer: list[Any], bound: str
) -> None:
    later = [at(t, "b q 1") for t in range(10, 40)]
    whole = f"{{ {{ ?x :p ?v }} REPEAT 1 OR MORE BY ?x MAXIMAL AS (COUNT(*) AS ?n) }} {beside}"
    query = f"SELECT ?x ?n ?z {{ {'{' if bound else ''} {whole} {bound} }}"
    events = [at(1, "a p 1"), at(2, "a q 7"), at(3, "a p 2"), *later]
    assert in_all(query, *events) == answer
    engine = Engine(f"PREFIX : <urn:> {query}", sweep_every=1)
    assert len([*engine.push_all(events), *engine.close()]) == len(answer)


@pytest.mark.parametrize("word", ["MINUS", "NOT", "FILTER NOT EXISTS"])
@pytest.mark.parametrize("other", ["{ ?x :q ?z }", "{ { ?x :q ?z } SEQ { ?x :q ?w } }"])
def test_what_comes_after_a_run_that_only_the_end_ends_is_not_absent_from_it(word: str, other: str) -> None:
    whole = f"{{ {{ ?x :p ?v }} REPEAT 1 OR MORE BY ?x MAXIMAL AS (COUNT(*) AS ?n) }} {word} {other}"
    events = [at(1, "a p 1"), at(3, "a p 2"), at(7, "a q 4"), at(8, "a q 1")]
    assert in_all(f"SELECT ?x ?n {{ {whole} }}", *events) == [("n=2 x=a", 1.0, 3.0)]


def test_a_run_may_not_feed_itself_within_an_instant() -> None:
    with pytest.raises(QueryError, match="within one instant through MAXIMAL"):
        Engine(compile("CONSTRUCT { ?x :p 1 } WHERE { { ?x :p ?v } REPEAT 2 OR MORE BY ?x MAXIMAL }"))


def test_maximal_is_a_name_where_only_a_name_fits() -> None:
    parse("SELECT * { ?x maximal ?y }")


def test_a_run_that_only_the_end_ends_may_change_no_row() -> None:
    """COUNT(?x), which REPEAT hides, stays 0, and so does the interval of both runs."""
    text = "SELECT (COUNT(?x) AS ?n) { { ?x :p ?y } REPEAT 1 OR MORE WHERE (?x != PREVIOUS(?x)) MAXIMAL }"
    events = (at(0, "a p 1"), at(1, "a p 1"))
    assert [run(text, *events)] * 2 == in_rows_and_columns(text, *events) == [[("n=0", 0, 1)]] * 2
