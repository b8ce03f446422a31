"""Ties (docs/semantics.md, Ties): events of one time have the order of their source, and lengths go by the times.

The traces are judged by the definitions as well; ``test_ties_drawn`` draws programs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from etalis_py import Engine, Event, LimitExceeded, compile, event, run
from etalis_py.engine.executor_choice import choose
from etalis_py.events import Retraction
from etalis_py.kernel.options import Options
from etalis_py.kernel.stored import SnapshotError
from tests.engine.judge import run as run_case
from tests.oracle import evaluation
from tests.oracle.strategies import Case
from tests.oracle.traces import at, in_short, queries

NEXT = "SELECT ?x ?y { { ?c :price ?x } NEXT { ?c :price ?y } }"
COARSE = [event(f":acme :price {n}", n // 3) for n in range(9)]


def judged(text: str, *events: Event) -> Any:
    """The answer by the definitions, which the engine gives as well."""
    case = Case(queries(text), events)
    [expected] = evaluation(case.program, events, ties="source").answers.values()
    [actual] = run_case(case, ties="source").values()
    assert in_short(actual) == in_short(expected)
    return in_short(actual)


def test_the_next_one_may_have_the_same_time() -> None:
    text = "SELECT ?x ?y { { ?c :p ?x } NEXT { ?c :p ?y } }"
    events = [at(1, "c p 1"), at(1, "c p 2"), at(2, "c p 3"), at(2, "c p 4")]
    assert judged(text, *events) == [("x=1 y=2", 1, 1), ("x=2 y=3", 1, 2), ("x=3 y=4", 2, 2)]


def test_the_order_is_that_of_the_source() -> None:
    text = "SELECT ?x ?y { { ?c :a ?x } SEQ { ?c :b ?y } }"
    assert judged(text, at(1, "c a 1"), at(1, "c b 2")) == [("x=1 y=2", 1, 1)]
    assert judged(text, at(1, "c b 2"), at(1, "c a 1")) == []


def test_an_event_is_simultaneous_only_with_itself() -> None:
    text = "SELECT ?x ?y { { ?c :a ?x } EQUALS { ?c :b ?y } }"
    assert judged(text, at(1, "c a 1 ; c b 2")) == [("x=1 y=2", 1, 1)]
    assert judged(text, at(1, "c a 1"), at(1, "c b 2")) == []


def test_equal_items_at_two_places_are_two() -> None:
    twice = [at(1, "c p 1"), at(1, "c p 1")]
    assert judged("SELECT ?x { ?c :p ?x }", *twice) == [("x=1", 1, 1), ("x=1", 1, 1)]
    matches = list(run_all("SELECT ?x { ?c :price ?x }", [event(":c :price 1", 1)] * 2))
    assert len({match.id for match in matches}) == 2


@pytest.mark.parametrize(("length", "matches"), [("0 s", 2), ("0.5 s", 2), ("1 s", 6), ("2 s", 6)])
def test_lengths_go_by_the_times(length: str, matches: int) -> None:
    text = f"SELECT ?x ?y {{ {{ {{ ?c :p ?x }} SEQ {{ ?c :p ?y }} }} WITHIN {length} }}"
    assert len(judged(text, *(at(n // 2, f"c p {n}") for n in range(4)))) == matches


def test_a_deadline_hears_all_events_of_its_time() -> None:
    text = "SELECT ?x { { ?c :a ?x } SEQ NOT { ?c :b ?y } WITHIN 1 s }"
    assert judged(text, at(1, "c a 1"), at(1, "c a 2"), at(2, "c a 3"), at(2, "c b 4")) == []
    # What came before it, at its own time, does not count; its deadline is a time of the source.
    assert judged(text, at(1, "c b 1"), at(1, "c a 2"), at(3, "c b 3")) == [("x=2", 1, 2)]


def test_windows_open_and_close_at_times() -> None:
    text = "SELECT (COUNT(*) AS ?n) { ?c :p ?x } WITHIN 1 s"
    events = [at(1, "c p 1"), at(1, "c p 2"), at(2, "c p 3")]
    assert judged(text, *events) == [("n=1", 1, 1), ("n=2", 1, 1), ("n=1", 2, 2)]


def test_expressions_see_the_times_of_the_source() -> None:
    text = """SELECT ?s ?e ?d { { ?c :p ?x } SEQ { ?c :p ?y }
              BIND (getSTARTTIME() AS ?s) BIND (getENDTIME() AS ?e) BIND (getDURATION() AS ?d) }"""
    [(found, _, _)] = judged(text, at(1, "c p 1"), at(1, "c p 2"))
    assert found == "d=PT0S e=1970-01-01T00:00:01Z s=1970-01-01T00:00:01Z"


def test_runs_gaps_and_throttles() -> None:
    events = [at(n // 2, f"c p {n}") for n in range(4)]
    assert judged("SELECT ?n { { ?c :p ?x } REPEAT 2 BY ?c AS (COUNT(*) AS ?n) }", *events) == [
        ("n=2", 0, 0),
        ("n=2", 0, 1),
        ("n=2", 1, 1),
    ]
    assert judged("SELECT ?n { { ?c :p ?x } REPEAT 1 OR MORE BY ?c GAP 0 s MAXIMAL AS (COUNT(*) AS ?n) }", *events) == [
        ("n=2", 0, 0),
        ("n=2", 1, 1),
    ]
    assert judged("SELECT ?x { { ?c :p ?x } THROTTLE 1 s }", *events) == [("x=0", 0, 0), ("x=2", 1, 1)]
    assert judged("SELECT ?x ?y { { { ?c :p ?x } SEQ { ?c :p ?y } } DISJOINT }", *events) == [
        ("x=0 y=1", 0, 0),
        ("x=2 y=3", 1, 1),
    ]


def test_what_lasts_starts_after_the_events_of_its_time() -> None:
    text = "SELECT ?x ?y { { ?c :a ?x } SEQ { ?c :b ?y } }"
    assert judged(text, at(1, "c a 1"), at((1, 2), "c b 2")) == [("x=1 y=2", 1, 2)]


def test_start_precedes_the_events_of_its_time() -> None:
    text = "SELECT ?x { { START } NEXT { ?c :p ?x } }"
    assert judged(text, at(1, "c p 1"), at(1, "c p 2")) == [("x=1", 1, 1)]


def test_derived_events_have_the_place_of_what_ends_them() -> None:
    rule = "CONSTRUCT { ?c :d ?x } WHERE { ?c :p ?x } "
    text = rule + "SELECT ?x ?y { { ?c :d ?x } NEXT { ?c :d ?y } }"
    case = Case(queries(text), tuple(at(1, f"c p {n}") for n in range(3)))
    expected = evaluation(case.program, case.events, ties="source").answers
    actual = run_case(case, ties="source")
    assert in_short(actual["q2"]) == in_short(expected["q2"]) == [("x=0 y=1", 1, 1), ("x=1 y=2", 1, 1)]


def test_blank_nodes_of_two_places_are_two() -> None:
    text = "CONSTRUCT { [] :d ?x } WHERE { ?c :price ?x }"
    matches = run_all(text, [event(":c :price 1", 1), event(":c :price 1", 1)])
    assert len({s for match in matches for s, _, _ in match.triples}) == 2


# --- the run ---


def run_all(text: str, events: Any, **options: Any) -> list[Any]:
    return list(run(text, events, ties="source", **options))


def seen(matches: Any) -> list[tuple[Any, ...]]:
    return [(*match.values(), match.start, match.end, match.id) for match in matches]


def test_distinct_times_give_what_they_give_without() -> None:
    fine = [event(f":acme :price {n}", n) for n in range(9)]
    assert seen(run_all(NEXT, fine)) == seen(run(NEXT, fine))


def test_one_by_one_all_together_and_as_a_table_are_the_same() -> None:
    together = seen(run_all(NEXT, COARSE))
    assert len(together) == 8
    engine = Engine(NEXT, ties="source")
    assert seen([m for e in COARSE for m in engine.push(e)] + [*engine.close()]) == together
    rows = [{"time": n // 3, "subject": "acme", "price": n} for n in range(9)]
    assert [row[:4] for row in seen(run_all(NEXT, rows, time="time", subject="subject"))] == [r[:4] for r in together]


def test_several_streams_have_the_order_in_which_they_are_merged() -> None:
    text = "SELECT ?x ?y { STREAM :one { ?c :price ?x } SEQ STREAM :two { ?c :price ?y } }"
    one = pa.table({"time": [1], "c": ["c"], "price": [1]})
    two = pa.table({"time": [1], "c": ["c"], "price": [2]})
    assert [m["y"] for m in run_all(text, {"one": one, "two": two}, time="time", subject="c")] == [2]
    assert run_all(text, {"two": two, "one": one}, time="time", subject="c") == []


def test_records_are_ordered_as_wholes() -> None:
    text = "SELECT ?x ?y { EVENT { ?c :p ?x ; :q 1 } NEXT EVENT { ?c :p ?y } }"
    assert judged(text, at(1, "c p 1 ; c q 1"), at(1, "c p 2 ; c q 1"), at(1, "c p 3")) == [
        ("x=1 y=2", 1, 1),
        ("x=2 y=3", 1, 1),
    ]


def test_with_a_lateness_the_place_is_that_of_arrival() -> None:
    late = [event(":c :price 1", 2), event(":c :price 2", 1), event(":c :price 3", 1), event(":c :price 4", 9)]
    found = run_all(NEXT, late, lateness="3 seconds")
    assert [(m["x"], m["y"]) for m in found] == [(2, 3), (3, 1), (1, 4)]


def test_a_correction_comes_last_of_its_time() -> None:
    engine = Engine(NEXT, ties="source", revise="10 seconds")
    given = [event(":c :price 1", 1), event(":c :price 2", 1), event(":c :price 4", 3)]
    matches = [m for e in given for m in engine.push(e)]
    changed = engine.push(event(":c :price 3", 1))
    assert [(m.retracted, m["x"], m["y"]) for m in [*matches, *changed]] == [(False, 1, 2), (False, 2, 3)]
    gone = engine.push(Retraction._make(given[1]))
    assert [(m.retracted, m["x"], m["y"]) for m in gone] == [(True, 1, 2), (True, 2, 3), (False, 1, 3)]


@pytest.mark.parametrize("place", range(1, 9))
def test_a_snapshot_goes_on_within_a_time(place: int) -> None:
    program = compile(NEXT)
    one, other = Engine(program, ties="source"), Engine(program, ties="source")
    matches = [*one.push_all(COARSE[:place])]
    other.restore(one.snapshot())
    matches += [*other.push_all(COARSE[place:]), *other.close()]
    assert seen(matches) == seen(run_all(NEXT, COARSE))


@pytest.mark.parametrize("place", range(2, 9))
def test_a_journal_goes_on_within_a_time(place: int) -> None:
    program = compile(NEXT)
    one, other = (Engine(program, ties="source", journal=True) for _ in range(2))
    one.push_all(COARSE[:1])
    one.take_journal()
    other.restore(one.snapshot())
    one.push_all(COARSE[1:place])
    other.apply_journal(one.take_journal())
    rest = COARSE[place:]
    assert seen([*other.push_all(rest), *other.close()]) == seen([*one.push_all(rest), *one.close()])


def test_many_queries_that_differ_in_a_length_run_as_one_by_one() -> None:
    text = "REGISTER QUERY q{0} AS SELECT ?x ?y {{ {{ {{ ?c :price ?x }} SEQ {{ ?c :price ?y }} }} WITHIN {0} s }}"
    texts = [text.format(n) for n in range(12)]
    engine = Engine(ties="source")
    for one in texts:
        engine.add(one)
    found = [*engine.push_all(COARSE), *engine.close()]
    assert sorted(m.id for m in found) == sorted(m.id for one in texts for m in run_all(one, COARSE))


def test_what_the_background_says_of_predicates_holds_at_each_place() -> None:
    text = "SELECT ?x ?y { { ?c :cost ?x } NEXT { ?c :cost ?y } }"
    schema = ":price <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> :cost ."
    engine = Engine(text, ties="source", background=[], changes=True)
    engine.update(add=schema)
    assert len([*engine.push_all(COARSE), *engine.close()]) == 8


def test_a_snapshot_of_the_other_order_is_refused() -> None:
    with_ties, without = Engine(NEXT, ties="source"), Engine(NEXT)
    with pytest.raises(SnapshotError, match="ties='source'"):
        without.restore(with_ties.snapshot())
    with pytest.raises(SnapshotError, match="ties=None"):
        with_ties.restore(without.snapshot())


def test_all_rules_run_in_rows_and_explain_says_why() -> None:
    choice = choose((), compile(NEXT).rules(), Options(ties="source"))
    assert choice.rules is not None
    assert set(choice.rules.reasons.values()) == {"events of one time have an order"}


def test_nothing_is_said_of_events_that_share_their_times() -> None:
    many = [event(f":acme :price {n}", n // 2) for n in range(40)]
    matches = run(NEXT, many, ties="source")
    assert (len(list(matches)), matches.warnings) == (39, ())


# --- what is refused ---


@pytest.mark.parametrize("options", [{"eager": True}, {"explain": True}, {"executor": "columns"}])
def test_options_without_a_place_beside_ties(options: Any) -> None:
    [name] = options
    with pytest.raises(ValueError, match=f"{name} has no place beside ties"):
        Engine(NEXT, ties="source", **options)


@pytest.mark.parametrize("ties", ["", 3, True])
def test_another_order_is_refused(ties: Any) -> None:
    with pytest.raises(ValueError, match="is no order of events"):
        Engine(NEXT, ties=ties)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT5S] { WINDOW :w { ?x :p ?y } }", "q1 reads windows"),
        ("SELECT ?x { { ?c :p ?x BIND (getENDTIME() AS ?t) } SKIP PAST (?t) }", "SKIP goes by the place"),
        ("SELECT ?x { { START } UNION { ?c :p ?x } }", "START by itself has no place"),
    ],
)
def test_queries_that_ties_say_nothing_of(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Engine(text, ties="source")


def test_answer_set_programs_that_read_events(tmp_path: Path) -> None:
    program = tmp_path / "seen.lp"
    program.write_text(
        "%! prefix : <http://example.org/>\n%! event seen(X) from X :price Y\n"
        "%! offers seen(X) as X a :Seen\n%! slots 1\n"
    )
    with pytest.raises(ValueError, match="answer-set programs that read events"):
        Engine("SELECT ?c { ?c a :Seen }", ties="source", background=[program])


def test_too_many_events_of_one_time() -> None:
    many = [event(f":c :price {n}", 1) for n in range(4095)]
    assert len(run_all("SELECT ?x { ?c :price ?x }", many[:-1])) == 4094
    with pytest.raises(LimitExceeded, match="more than 4,094 events have the time 1"):
        run_all(NEXT, many)


@pytest.mark.parametrize("first", [-9, 1])
def test_a_limit_leaves_the_matches_of_the_events_before(first: int) -> None:
    engine = Engine("SELECT ?x { ?c :price ?x }", ties="source")
    engine.push_all([event(":c :price 1", first), event(":c :price 2", first + 1)])
    with pytest.raises(LimitExceeded) as raised:
        engine.push_all([*[event(":c :price 3", first + 2)] * 4095, event(":c :price 4", first + 3)])
    assert [(m["x"], m.end) for m in raised.value.matches] == [(2, first + 1)]


@pytest.mark.parametrize("time", ["2041-06-01T00:00:00Z", "1890-01-01T00:00:00Z"])
def test_times_that_are_too_far_away(time: str) -> None:
    with pytest.raises(LimitExceeded, match="between 1899 and 2041"):
        run_all(NEXT, [event(":c :price 1", time)])


def test_times_of_a_century() -> None:
    times = ["1900-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "2026-02-28T00:00:00Z", "2041-01-01T00:00:00Z"]
    found = run_all(NEXT, [event(f":c :price {n}", time) for time in times for n in range(2)])
    assert len(found) == 7
    assert [m.start_us for m in found] == [
        m.start_us
        for m in run(
            "SELECT ?x { ?c :price ?x }", [event(f":c :price {n}", time) for time in times for n in range(2)][:-1]
        )
    ]
