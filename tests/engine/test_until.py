"""REPEAT … UNTIL {B}: the longest run that is open when a B comes, with the variables of B."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from etalis_compiler.parser import parse
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, QueryError, compile, event
from etalis_py import run as play
from etalis_py.events import Event, Retraction
from etalis_py.executors.rows.run import runs
from tests.draws import examples
from tests.engine.judge import in_rows_and_columns
from tests.oracle.traces import at, run

BATCHES = "SELECT ?n ?w {{ {{ ?x :p ?v }} REPEAT {} BY ?x {} UNTIL {{ ?x :q ?w }} AS (COUNT(*) AS ?n) }}"
ANY = BATCHES.format("1 OR MORE", "")


def in_all(query: str, *events: Event, policy: str = "unrestricted") -> list[Any]:
    """The answer of the oracle, which that of each executor must be."""
    expected: list[Any] = run(query, *events, policy=policy)
    rows, columns = in_rows_and_columns(query, *events, policy=policy)
    assert sorted(rows) == sorted(columns) == sorted(expected)
    return rows  # type: ignore[no-any-return]


def test_an_event_ends_the_run_and_is_part_of_the_match() -> None:
    events = at(1, "a p 1"), at(2, "a p 2"), at(3, "a q 7"), at(5, "a p 3"), at(6, "a q 8")
    assert in_all(ANY, *events) == [("n=2 w=7", 1, 3), ("n=1 w=8", 5, 6)]


def test_it_ends_the_runs_of_its_own_key() -> None:
    events = at(1, "a p 1"), at(2, "b p 2"), at(3, "b q 7"), at(4, "a p 3"), at(5, "a q 8")
    assert in_all(ANY, *events) == [("n=1 w=7", 2, 3), ("n=2 w=8", 1, 5)]


def test_a_window_around_it_does_not_make_runs_shorter() -> None:
    """The longest run is chosen first; one that does not fit leaves no shorter one in its place."""
    query = "SELECT ?n { { { ?x :p ?v } REPEAT 1 OR MORE BY ?x UNTIL { ?x :q ?w } AS (COUNT(*) AS ?n) } WITHIN 3 s }"
    events = at(1, "a p 1"), at(5, "a p 2"), at(6, "a q 7"), at(8, "a p 3"), at(9, "a p 4"), at(11, "a q 8")
    assert in_all(query, *events) == [("n=2", 8, 11)]


def test_only_the_first_b_after_the_run_ends_it() -> None:
    assert in_all(ANY, at(1, "a p 1"), at(2, "a q 7"), at(3, "a q 8")) == [("n=1 w=7", 1, 2)]


def test_several_b_at_one_time_are_all_first() -> None:
    found = in_all(ANY, at(1, "a p 1"), at(2, "a q 7 ; a q 8"), at(3, "a q 9"))
    assert found == [("n=1 w=7", 1, 2), ("n=1 w=8", 1, 2)]


def test_a_b_at_the_instant_of_an_element_does_not_end_the_run() -> None:
    events = at(1, "a p 1"), at(2, "a p 2 ; a q 7"), at(3, "a p 3"), at(4, "a q 8")
    assert in_all(ANY, *events) == [("n=3 w=8", 1, 4)]


def test_a_b_before_any_element_ends_nothing() -> None:
    assert in_all(ANY, at(1, "a q 7"), at(2, "a p 1")) == []


def test_an_upper_bound_keeps_the_last_elements() -> None:
    events = [at(t, f"a p {t}") for t in (1, 2, 3, 4)]
    assert in_all(BATCHES.format("1 TO 2", ""), *events, at(5, "a q 7")) == [("n=2 w=7", 3, 5)]


def test_a_run_that_is_too_short_is_ended_all_the_same() -> None:
    events = at(1, "a p 1"), at(2, "a q 7"), at(3, "a p 2"), at(4, "a q 8")
    assert in_all(BATCHES.format("2 OR MORE", ""), *events) == []


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("WHERE (?v > PREVIOUS(?v))", [("n=2 w=7", 3, 6)]),
        ("WHERE (?v != FIRST(?v))", [("n=3 w=7", 2, 6)]),
        ("GAP 1 s", [("n=1 w=7", 5, 6)]),
        ("NOT { ?x :r ?z }", [("n=2 w=7", 3, 6)]),
    ],
)
def test_the_other_clauses_hold(clause: str, expected: list[Any]) -> None:
    events = at(1, "a p 2"), at(2, "a p 3"), at(2.5, "a r 0"), at(3, "a p 2"), at(5, "a p 5"), at(6, "a q 7")
    assert in_all(BATCHES.format("1 OR MORE", clause), *events) == expected


def test_an_element_that_began_before_b_ended_goes_on_with_the_run() -> None:
    """B at 3 ends [1, 1]; [2, 5] began before that, so no B lies between the two."""
    events = at(1, "a p 1"), at(3, "a q 7"), at((2, 5), "a p 2"), at(6, "a q 8")
    assert in_all(ANY, *events) == [("n=1 w=7", 1, 3), ("n=2 w=8", 1, 6)]


def test_the_variables_of_b_join_what_stands_around_it() -> None:
    query = "SELECT ?n ?w ?z { { ?x :p ?v } REPEAT 1 OR MORE BY ?x UNTIL { ?x :q ?w } AS (COUNT(*) AS ?n) "
    events = at(1, "a p 1"), at(2, "a q b"), at(3, "b r 5"), at(3, "c r 6")
    assert in_all(query + "SEQ { ?w :r ?z } }", *events) == [("n=1 w=b z=5", 1, 3)]


def test_a_variable_of_the_elements_is_another_one_in_b() -> None:
    """?v is not in BY, so B's ?v need not be that of an element."""
    query = "SELECT ?v ?l { { ?x :p ?v } REPEAT 1 OR MORE BY ?x UNTIL { ?x :q ?v } AS (LAST(?v) AS ?l) }"
    assert in_all(query, at(1, "a p 1"), at(2, "a q 2")) == [("l=1 v=2", 1, 2)]


def test_without_by_the_whole_stream_is_one_run() -> None:
    query = "SELECT ?n ?y { { ?x :p ?v } REPEAT 1 OR MORE UNTIL { ?y :q ?w } AS (COUNT(*) AS ?n) }"
    assert in_all(query, at(1, "a p 1"), at(2, "b p 2"), at(3, "c q 7")) == [("n=2 y=c", 1, 3)]


@pytest.mark.parametrize("policy", ["recent", "chronological"])
def test_a_policy_applies_to_what_stands_in_b(policy: str) -> None:
    ender = "{ { ?x :q ?w } SEQ { ?x :r ?z } }"
    query = f"SELECT ?n ?w {{ {{ ?x :p ?v }} REPEAT 1 OR MORE BY ?x UNTIL {ender} AS (COUNT(*) AS ?n) }}"
    events = at(1, "a p 1"), at(2, "a q 7"), at(3, "a q 8"), at(4, "a r 0")
    chosen = {"recent": "8", "chronological": "7"}[policy]
    assert in_all(query, *events, policy=policy) == [(f"n=1 w={chosen}", 1, 4)]


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(("p 1", "p 2", "q 7", "q 8"))), max_size=12))
@settings(max_examples=examples(1))
def test_as_two_operators_where_no_two_events_are_simultaneous(steps: list[tuple[int, str]]) -> None:
    """The longest run so far, and then the first of A and B, if it is a B."""
    time, events = 0, []
    for wait, content in steps:
        time += 1 + wait
        events.append(event(f":a :{content}", time))
    two = (
        "SELECT ?n ?w { { { ?x :p ?v } REPEAT 1 OR MORE BY ?x NOT { ?x :q ?u } LONGEST AS (COUNT(*) AS ?n) } "
        "SEQ NOT { { ?x :p ?v } UNION { ?x :q ?v } } SEQ { ?x :q ?w } }"
    )
    assert _answers(ANY, events) == _answers(two, events)


def _answers(text: str, events: list[Event], **options: Any) -> set[Any]:
    engine = Engine(compile(text), **options)
    return {(m["n"], m["w"], m.start_us, m.end_us) for m in [*engine.push_all(events), *engine.close()]}


# --- state, corrections, many queries ---


@pytest.mark.parametrize("text", [ANY, BATCHES.format("1 TO 2", ""), BATCHES.format("1 OR MORE", "NOT { ?x :r ?z }")])
@pytest.mark.parametrize("cut", range(9))
def test_a_snapshot_or_a_journal_anywhere_changes_nothing(text: str, cut: int) -> None:
    contents = "p 1", "p 2", "q 7", "q 8", "r 0", "p 3", "p 4", "q 9"
    events = [event(f":a :{content}", t) for t, content in enumerate(contents)]
    whole = _answers(text, events)
    assert whole
    leader, follower, copy = (Engine(compile(text), journal=True) for _ in range(3))
    follower.restore(leader.snapshot())
    first = {(m["n"], m["w"], m.start_us, m.end_us) for m in leader.push_all(events[:cut])}
    copy.restore(leader.snapshot())
    follower.apply_journal(leader.take_journal())
    for engine in (follower, copy):
        rest = {(m["n"], m["w"], m.start_us, m.end_us) for m in [*engine.push_all(events[cut:]), *engine.close()]}
        late = {(m["n"], m["w"], m.start_us, m.end_us) for m in leader.push_all([])}
        assert first | rest | late == whole


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_correction_that_takes_out_what_ended_a_run(executor: str) -> None:
    gone = event(":a :q 7", 3)
    engine = Engine(compile(ANY), revise=60_000_000, executor=executor)  # type: ignore[arg-type]
    engine.push_all([event(":a :p 1", 1), gone, event(":a :p 2", 5), event(":a :q 8", 6)])
    matches = [*engine.push_all([Retraction(gone.start, gone.end, gone.triples, "")]), *engine.close()]
    shown = {(m.retracted, m.start, m.end) for m in matches}
    assert {(True, 1, 3), (False, 1, 6)} <= shown


def test_queries_that_differ_in_constants_answer_as_each_alone() -> None:
    texts = [
        f"SELECT ?n ?w {{ {{ ?x :p ?v FILTER (?v > {k}) }} REPEAT 1 OR MORE BY ?x UNTIL {{ ?x :q ?w }} "
        "AS (COUNT(*) AS ?n) }"
        for k in range(6)
    ]
    events = [event(f":a :{'q' if t % 5 == 0 else 'p'} {t * 7 % 6}", t) for t in range(1, 40)]
    engine = Engine(compile(texts))
    found = {(m.query, m["n"], m["w"], m.end_us) for m in [*engine.push_all(events), *engine.close()]}
    alone = {(f"q{i}", n, w, end) for i, text in enumerate(texts, 1) for n, w, _, end in _answers(text, events)}
    assert found == alone


# --- words ---


def test_explain_why_and_why_not() -> None:
    program = compile(ANY.replace("SELECT", "SELECT ?x"))
    text = str(program.explain())
    assert "REPEAT 1 or more, by ?x, until" in text
    assert "[T5,T6] ← longest(goal(" in text
    assert "g1 keeps a run for every X0" in text
    assert "q1 runs in columns, as long as elements of the REPEAT" in text
    assert "q1: by ?x" in text
    engine = Engine(program, explain=True)
    [match] = [*engine.push_all([event(":a :p 1", 1), event(":a :q 7", 2)]), *engine.close()]
    assert "REPEAT … UNTIL: each is the next of the one before, and then came what ends the run" in str(match.why())
    assert "UNTIL { ?x :q ?w } in REPEAT 1 OR MORE BY ?x" in str(program.why_not([event(":a :p 1", 1)]))


STATES = ("on", "on", "done", "on", "done")
MARKED = """SELECT ?n { { EVENT { ?x :state ?s ; :v ?v } FILTER (?s IN (%s)) }
            REPEAT 1 OR MORE BY ?x UNTIL { EVENT { ?x :state 'done' } } AS (COUNT(*) AS ?n) }"""


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize(("elements", "found"), [("'on', 'done'", []), ("'on'", [2, 1])])
def test_it_is_told_if_all_that_could_end_a_run_are_elements(
    executor: Literal["rows", "columns"], elements: str, found: list[int]
) -> None:
    rows = [{"at": t, "key": "a", "v": t, "state": state} for t, state in enumerate(STATES, 1)]
    running = play(MARKED % elements, rows, time="at", subject="key", executor=executor)
    assert [match["n"] for match in running] == found
    told = ["UNTIL has ended no run: each of the 2 times"] * (not found)
    assert [text.partition(" that ")[0] for text in running.warnings] == told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ ?x :p ?v } REPEAT 2 BY ?x LONGEST UNTIL { ?x :q ?w }", "LONGEST and UNTIL exclude each other"),
        ("{ ?x :p ?v } REPEAT 2 BY ?x MAXIMAL UNTIL { ?x :q ?w }", "MAXIMAL and UNTIL exclude each other"),
        ("{ ?x :p ?v } REPEAT 2 UNTIL { ?x :q ?w } UNTIL { ?x :r ?w }", "REPEAT has UNTIL twice"),
        ("{ ?x :p ?v } REPEAT 2 UNTIL { ?x :q ?w } AS (COUNT(*) AS ?w)", "w has a value already"),
        (
            "{ ?x :p ?v } REPEAT 2 UNTIL { VALUES ?w { 1 } }",
            "a side of the UNTIL of REPEAT may come from the background",
        ),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        compile(f"SELECT * {{ {text} }}")


def test_a_rule_may_not_end_its_own_run_within_an_instant() -> None:
    rule = "CONSTRUCT { ?x :q 1 } WHERE { { ?x :p ?v } REPEAT 2 OR MORE BY ?x UNTIL { ?x :q ?w } }"
    with pytest.raises(QueryError, match="within one instant through UNTIL"):
        Engine(compile(rule))


def test_until_is_a_name_where_only_a_name_fits() -> None:
    parse("SELECT * { ?x until ?y }")


def test_what_ends_a_run_looks_at_the_runs_of_its_key_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Any] = []
    values_of = runs._values

    def comparing(key: Any, size: int) -> Any:
        compared.append(key)
        return values_of(key, size)

    monkeypatch.setattr(runs, "_values", comparing)
    text = "SELECT ?n {{ ?x :p ?v } REPEAT 1 OR MORE BY ?x UNTIL { ?x :q ?w } AS (SUM(?v) AS ?n)}"
    engine, found = Engine(compile(text), executor="rows"), list[Any]()
    for c in range(9):
        found += engine.push_all([event(f":c{c} :p {c}", 2 * c), event(f":c{c} :q 0", 2 * c + 1)])
    assert [m["n"] for m in (*found, *engine.close())] == [*range(9)]
    assert not compared
