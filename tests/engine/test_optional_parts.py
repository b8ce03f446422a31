"""SEQ OPTIONAL: with a part where it comes, and without it where nothing of it fits into the gap."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from etalis_compiler import ast
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, QueryError, compile, event
from etalis_py.events import Event, Retraction
from tests.draws import examples
from tests.engine.judge import in_rows_and_columns
from tests.oracle.traces import at, run

BETWEEN = "SELECT * { { ?x :p ?a } SEQ OPTIONAL { ?x :q ?b } SEQ { ?x :r ?c } }"
TWO = "SELECT * { { ?x :p ?a } SEQ OPTIONAL { ?x :q ?b } SEQ OPTIONAL { ?x :s ?d } SEQ { ?x :r ?c } }"
IN_TIME = "SELECT * { { ?x :p ?a } SEQ OPTIONAL { ?x :q ?b } WITHIN 3 s }"


def in_all(query: str, *events: Event, policy: str = "unrestricted") -> list[Any]:
    """The answer of the oracle, which that of each executor must be."""
    expected: list[Any] = run(query, *events, policy=policy)
    rows, columns = in_rows_and_columns(query, *events, policy=policy)
    assert sorted(rows) == sorted(columns) == sorted(expected)
    return rows  # type: ignore[no-any-return]


def test_rules_read_what_is_decided_after_the_last_event() -> None:
    rules = "CONSTRUCT { ?x :late ?x } WHERE { { ?x :p ?a } SEQ OPTIONAL { ?x :q ?b } WITHIN 1 s } "
    rules += "CONSTRUCT { ?x :later ?y } WHERE { ?x :late ?z . ?z :late ?y } "
    assert in_all(rules + "SELECT ?x { ?x :later ?y }", at(0, "a p a")) == [("x=a", 0, 1)]


# --- between two parts ---


def test_with_the_part_where_it_comes_and_without_it_where_it_does_not() -> None:
    events = at(1, "a p 1"), at(2, "a q 2"), at(3, "a r 3"), at(4, "b p 1"), at(5, "b r 2")
    assert in_all(BETWEEN, *events) == [("a=1 b=2 c=3 x=a", 1, 3), ("a=1 c=2 x=b", 4, 5)]


def test_every_part_that_fits_is_a_match() -> None:
    events = at(1, "a p 1"), at(2, "a q 2"), at(3, "a q 4"), at(5, "a r 3")
    assert in_all(BETWEEN, *events) == [("a=1 b=2 c=3 x=a", 1, 5), ("a=1 b=4 c=3 x=a", 1, 5)]


@pytest.mark.parametrize("part", [(1, 2), (2, 5), (1, 5), (1, 1), (5, 5)])
def test_the_gap_is_open_at_both_ends(part: tuple[int, int]) -> None:
    """Nothing that begins by the end of the first part, or ends at the start of the last one, lies between them."""
    events = sorted([at(1, "a p 1"), at(part, "a q 2"), at(5, "a r 3")], key=lambda e: e.end)
    assert in_all(BETWEEN, *events) == [("a=1 c=3 x=a", 1, 5)]


def test_a_part_of_another_key_is_none() -> None:
    assert in_all(BETWEEN, at(1, "a p 1"), at(2, "b q 2"), at(3, "a r 3")) == [("a=1 c=3 x=a", 1, 3)]


def test_a_variable_that_the_part_shares_with_what_follows() -> None:
    query = "SELECT * { { ?x :p ?a } SEQ OPTIONAL { ?x :q ?b } SEQ { ?x :r ?b } }"
    events = at(1, "a p 1"), at(2, "a q 2"), at(3, "a r 2"), at(4, "a r 3")
    assert in_all(query, *events) == [("a=1 b=2 x=a", 1, 3), ("a=1 b=3 x=a", 1, 4)]


def test_a_match_that_looks_the_same_with_the_part_and_without_it_is_one_match() -> None:
    """The part binds nothing new, and either it lies in the gap or it does not."""
    query = "SELECT * { { ?x :p ?a } SEQ OPTIONAL { ?x :q ?a } SEQ { ?x :r ?c } }"
    assert in_all(query, at(1, "a p 1"), at(2, "a q 1"), at(3, "a r 3")) == [("a=1 c=3 x=a", 1, 3)]
    assert in_all(query, at(1, "a p 1"), at(2, "a q 2"), at(3, "a r 3")) == [("a=1 c=3 x=a", 1, 3)]


def test_a_filter_of_the_part_sees_what_stands_to_its_left() -> None:
    query = "SELECT * { { ?x :p ?a } SEQ OPTIONAL { ?x :q ?b FILTER (?b > ?a) } SEQ { ?x :r ?c } }"
    events = at(1, "a p 2"), at(2, "a q 1"), at(3, "a r 3"), at(4, "a q 4"), at(5, "a r 5")
    assert in_all(query, *events) == [("a=2 c=3 x=a", 1, 3), ("a=2 b=4 c=5 x=a", 1, 5)]


def test_a_filter_of_the_part_does_not_see_what_follows() -> None:
    query = "SELECT * { { ?x :p ?a } SEQ OPTIONAL { ?x :q ?b FILTER (?b > ?c) } SEQ { ?x :r ?c } }"
    assert in_all(query, at(1, "a p 2"), at(2, "a q 4"), at(3, "a r 3")) == [("a=2 c=3 x=a", 1, 3)]


def test_a_time_in_its_filter_is_that_of_the_part() -> None:
    query = (
        "SELECT ?a ?b ?c { { ?x :p ?a BIND (getENDTIME() AS ?t) } "
        "SEQ OPTIONAL { ?x :q ?b FILTER (getENDTIME() <= ?t + 'PT2S'^^xsd:dayTimeDuration) } SEQ { ?x :r ?c } }"
    )
    events = at(1, "a p 1"), at(3, "a q 2"), at(4, "a q 3"), at(6, "a r 3"), at(7, "b p 1"), at(10, "b q 2")
    assert in_all(query, *events, at(11, "b r 4")) == [("a=1 b=2 c=3", 1, 6), ("a=1 c=4", 7, 11)]


def test_the_part_is_unbound_for_what_stands_outside() -> None:
    query = BETWEEN.replace("SELECT *", "SELECT ?c ?n").replace(" } }", " } BIND (COALESCE(?b, 0) AS ?n) }")
    events = at(1, "a p 1"), at(2, "a q 2"), at(3, "a r 3"), at(4, "b p 1"), at(5, "b r 2")
    assert in_all(query, *events) == [("c=3 n=2", 1, 3), ("c=2 n=0", 4, 5)]


def test_a_window_bounds_the_whole() -> None:
    events = at(1, "a p 1"), at(2, "a q 2"), at(3, "a r 3"), at(9, "a r 4")
    assert in_all(BETWEEN + " WITHIN 2 s", *events) == [("a=1 b=2 c=3 x=a", 1, 3)]


def test_records_as_parts() -> None:
    """A filter of EVENT reads the part to its left; the optional record is one event."""
    query = (
        "SELECT ?a ?b ?c { EVENT { ?x :p ?a ; :k 1 } SEQ OPTIONAL EVENT { ?x :q ?b ; :k 1 FILTER (?b > ?a) } "
        "SEQ EVENT { ?x :r ?c ; :k 1 } }"
    )
    events = at(1, "a p 5 ; a k 1"), at(2, "a q 9"), at(3, "a q 2 ; a k 1"), at(4, "a r 3 ; a k 1")
    assert in_all(query, *events) == [("a=5 c=3", 1, 4)]
    assert in_all(query, *events, at(5, "a q 6 ; a k 1"), at(6, "a r 4 ; a k 1"))[1:] == [("a=5 b=6 c=4", 1, 6)]


# --- several in a row ---


def test_two_parts_in_a_row() -> None:
    a, b, d, c = at(1, "a p 1"), at(2, "a q 2"), at(3, "a s 3"), at(4, "a r 4")
    assert in_all(TWO, a, b, d, c) == [("a=1 b=2 c=4 d=3 x=a", 1, 4)]
    assert in_all(TWO, a, b, c) == [("a=1 b=2 c=4 x=a", 1, 4)]
    assert in_all(TWO, a, d, c) == [("a=1 c=4 d=3 x=a", 1, 4)]
    assert in_all(TWO, a, c) == [("a=1 c=4 x=a", 1, 4)]


def test_each_gap_is_that_of_its_own_neighbours() -> None:
    """In the other order neither fits beside the other: b is not between a and d, d not between b and c."""
    events = at(1, "a p 1"), at(2, "a s 3"), at(3, "a q 2"), at(4, "a r 4")
    assert in_all(TWO, *events) == [("a=1 c=4 d=3 x=a", 1, 4), ("a=1 b=2 c=4 x=a", 1, 4)]


def test_a_part_must_be_compatible_with_the_whole() -> None:
    """?k of the first part is bound by the last one alone: what has another ?k rules nothing out."""
    query = "SELECT * { { ?x :p ?a } SEQ OPTIONAL { ?x :q ?k } SEQ OPTIONAL { ?x :s ?d } SEQ { ?x :r ?k } }"
    events = at(1, "a p 1"), at(2, "a q 7"), at(3, "a s 3"), at(4, "a r 7"), at(5, "a r 8")
    assert in_all(query, *events) == [("a=1 d=3 k=7 x=a", 1, 4), ("a=1 d=3 k=8 x=a", 1, 5)]


def test_conditions_of_parts_that_are_absent_from_one_gap() -> None:
    query = (
        "SELECT * { { ?x :p ?a } SEQ OPTIONAL { ?x :q ?b FILTER (?b > ?a) } "
        "SEQ OPTIONAL { ?x :s ?d FILTER (?d < ?a) } SEQ { ?x :r ?c } }"
    )
    for b, d in itertools.product((1, 9), (1, 9)):
        events = at(1, "a p 5"), at(2, f"a q {b}"), at(3, f"a s {d}"), at(4, "a r 0")
        words = [f"b={b}"] * (b > 5), ["c=0"], [f"d={d}"] * (d < 5)
        assert in_all(query, *events) == [(" ".join(["a=5", *itertools.chain(*words), "x=a"]), 1, 4)]


def test_a_filter_reads_a_part_that_may_be_missing() -> None:
    query = TWO.replace("?x :s ?d }", "?x :s ?d FILTER (?d > ?b) }")
    a, b, c = at(1, "a p 1"), at(2, "a q 2"), at(5, "a r 4")
    assert in_all(query, a, b, at(3, "a s 3"), c) == [("a=1 b=2 c=4 d=3 x=a", 1, 5)]
    assert in_all(query, a, b, at(3, "a s 1"), c) == [("a=1 b=2 c=4 x=a", 1, 5)]
    assert in_all(query, a, at(3, "a s 3"), c) == [("a=1 c=4 x=a", 1, 5)]


# --- as the last part ---


def test_with_each_that_comes_in_time_or_alone_when_the_time_is_over() -> None:
    events = at(1, "a p 1"), at(2, "a q 2"), at(4, "a q 3"), at(4.5, "a q 4"), at(5, "b p 1"), at(9, "b q 2")
    assert in_all(IN_TIME, *events) == [("a=1 b=2 x=a", 1, 2), ("a=1 b=3 x=a", 1, 4), ("a=1 x=b", 5, 8)]


def test_the_time_runs_from_the_end_of_the_first_part_to_the_end_of_the_second() -> None:
    events = at((1, 4), "a p 1"), at((5, 7), "a q 2"), at((6, 8), "a q 3")
    assert in_all(IN_TIME, *events) == [("a=1 b=2 x=a", 1, 7)]
    assert in_all(IN_TIME, at((1, 4), "a p 1"), at((6, 8), "a q 3")) == [("a=1 x=a", 1, 7)]


def test_it_is_decided_when_the_time_is_over() -> None:
    engine = Engine(compile(IN_TIME))
    assert not engine.push(event(":a :p 1", 1))
    assert not engine.advance(3_999_999)
    [match] = engine.advance(4_000_000)
    assert ("b" in match.bindings, match.start, match.end) == (False, 1, 4)


def test_a_month_is_counted_by_the_calendar() -> None:
    day = 86_400
    query = IN_TIME.replace("3 s", "P1M")
    jan_31, feb_28, mar_1 = 30 * day, 58 * day, 59 * day
    assert in_all(query, at(jan_31, "a p 1"), at(feb_28, "a q 2")) == [("a=1 b=2 x=a", jan_31, feb_28)]
    assert in_all(query, at(jan_31, "a p 1"), at(mar_1, "a q 2")) == [("a=1 x=a", jan_31, feb_28)]


def test_what_a_deadline_decides_goes_on() -> None:
    query = "SELECT * { { ?x :p ?a } SEQ OPTIONAL { ?x :q ?b } WITHIN 3 s SEQ { ?x :r ?c } }"
    events = at(1, "a p 1"), at(3, "a r 1"), at(5, "a r 2")
    assert in_all(query, *events) == [("a=1 c=2 x=a", 1, 5)]
    assert in_all(query, at(1, "a p 1"), at(2, "a q 5"), at(3, "a r 1")) == [("a=1 b=5 c=1 x=a", 1, 3)]


def test_a_filter_of_what_comes_in_time() -> None:
    query = IN_TIME.replace("?x :q ?b }", "?x :q ?b FILTER (?b > ?a) }")
    events = at(1, "a p 5"), at(2, "a q 3"), at(5, "b p 5"), at(6, "b q 7")
    assert in_all(query, *events) == [("a=5 x=a", 1, 4), ("a=5 b=7 x=b", 5, 6)]


# --- policies ---


@pytest.mark.parametrize(("policy", "first"), [("chronological", 1), ("recent", 2)])
def test_a_policy_consumes_in_each_alternative(policy: str, first: int) -> None:
    events = at(1, "a p 1"), at(2, "a p 2"), at(3, "a r 3")
    assert in_all(BETWEEN, *events, policy=policy) == [(f"a={first} c=3 x=a", first, 3)]
    events = at(1, "a p 1"), at(2, "a p 2"), at(3, "a q 4"), at(4, "a r 5")
    assert in_all(BETWEEN, *events, policy=policy) == [(f"a={first} b=4 c=5 x=a", first, 4)]


def test_a_policy_and_a_deadline() -> None:
    engine = Engine(compile(IN_TIME), policy="recent")
    matches = [*engine.push_all([event(":a :p 1", 1), event(":a :p 2", 2), event(":a :q 3", 3)]), *engine.close()]
    assert [(m["a"], m["b"], m.start, m.end) for m in matches] == [(2, 3, 2, 3)]


CONTENTS = "p 1", "s 1", "r 8", "p 2", "q 7", "s 1", "r 0", "p 3", "q 4", "s 5", "r 9", "p 1"

# --- as unions ---

STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([":a", ":b"]), st.sampled_from("pqrs"), st.integers(1, 3)), max_size=14
)
COMPARED = "{ ?x :q ?b FILTER (?b >= ?a) }"
UNIONS = {
    f"{{ ?x :p ?a }} SEQ OPTIONAL {COMPARED} SEQ {{ ?x :r ?c }}": (
        "{ ?x :p ?a } SEQ { ?x :q ?b } SEQ { ?x :r ?c } FILTER (?b >= ?a)",
        f"{{ ?x :p ?a }} SEQ NOT {COMPARED} SEQ {{ ?x :r ?c }}",
    ),
    "{ ?x :p ?a } SEQ OPTIONAL { ?x :q ?b } SEQ OPTIONAL { ?x :s ?d } SEQ { ?x :r ?c }": (
        "{ ?x :p ?a } SEQ { ?x :q ?b } SEQ { ?x :s ?d } SEQ { ?x :r ?c }",
        "{ { ?x :p ?a } SEQ { ?x :q ?b } } SEQ NOT { ?x :s ?e } SEQ { ?x :r ?c }",
        "{ ?x :p ?a } SEQ NOT { ?x :q ?e } SEQ { ?x :s ?d } SEQ { ?x :r ?c }",
        "{ ?x :p ?a } SEQ NOT { { ?x :q ?e } UNION { ?x :s ?e } } SEQ { ?x :r ?c }",
    ),
    f"{{ ?x :p ?a }} SEQ OPTIONAL {COMPARED} WITHIN 2 s": (
        "{ { ?x :p ?a } SEQ { ?x :q ?b } } WITHIN 2 s FILTER (?b >= ?a)",
        f"{{ ?x :p ?a }} SEQ NOT {COMPARED} WITHIN 2 s",
    ),
}


@pytest.mark.parametrize("text", UNIONS)
@given(STEPS)
@settings(max_examples=examples(1 / 3))
def test_it_is_the_union_of_its_sequences(text: str, steps: list[tuple[int, str, str, int]]) -> None:
    time, events = 0, []
    for wait, who, what, value in steps:
        time += wait
        events.append(event(f"{who} :{what} {value}", time))
    branches = " UNION ".join(f"{{ {branch} }}" for branch in UNIONS[text])
    assert _rows(f"SELECT * {{ {text} }}", events) == _rows(f"SELECT * {{ {branches} }}", events)


def _rows(text: str, events: list[Event], **options: Any) -> list[Any]:
    engine = Engine(compile(text), **options)
    return _seen([*engine.push_all(events), *engine.close()])


def _seen(matches: Any) -> list[Any]:
    return sorted((m.start_us, m.end_us, sorted(m.bindings.items())) for m in matches)


@pytest.mark.parametrize("text", [BETWEEN, TWO, IN_TIME, IN_TIME.replace("WITHIN 3 s", "WITHIN 3 s SEQ { ?x :r ?c }")])
@pytest.mark.parametrize("order", ["right", "cost"])
def test_the_order_of_coupling_changes_nothing(text: str, order: str) -> None:
    events = [event(f":a :{content}", t) for t, content in enumerate(CONTENTS)]
    rates = {f"http://example.org/{name}": rate for rate, name in enumerate("prqs", 1)} if order == "cost" else None
    engine = Engine(compile(text, order=order, rates=rates))
    assert _seen([*engine.push_all(events), *engine.close()]) == _rows(text, events)


# --- state, corrections, many queries ---


@pytest.mark.parametrize("text", [BETWEEN, TWO, IN_TIME, BETWEEN + " WITHIN 3 s"])
@pytest.mark.parametrize("cut", range(0, 12, 2))
def test_a_snapshot_or_a_journal_anywhere_changes_nothing(text: str, cut: int) -> None:
    events = [event(f":a :{content}", t) for t, content in enumerate(CONTENTS)]
    whole = _rows(text, events)
    assert any("b" not in dict(row[2]) for row in whole)
    leader, follower, copy = (Engine(compile(text), journal=True) for _ in range(3))
    follower.restore(leader.snapshot())
    first = leader.push_all(events[:cut])
    copy.restore(leader.snapshot())
    follower.apply_journal(leader.take_journal())
    for engine in (follower, copy):
        assert _seen([*first, *engine.push_all(events[cut:]), *engine.close()]) == whole


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("text", [BETWEEN, IN_TIME])
def test_a_correction_that_takes_the_part_out_or_puts_it_in(text: str, executor: str) -> None:
    part = event(":a :q 7", 3)
    engine = Engine(compile(text), revise=60_000_000, executor=executor)  # type: ignore[arg-type]
    others = [event(":a :p 1", 1), event(":a :r 2", 5), event(":b :r 2", 9)]
    first = engine.push_all([others[0], part, *others[1:]])
    assert [(m["b"], m.retracted) for m in first] == [(7, False)]
    gone = engine.push_all([Retraction(part.start, part.end, part.triples, "")])
    assert sorted((m.retracted, m.bindings.get("b") is None) for m in gone) == [(False, True), (True, False)]
    again = engine.push_all([part])
    assert sorted((m.retracted, m.bindings.get("b") is None) for m in again) == [(False, False), (True, True)]


@pytest.mark.parametrize(
    "parts",
    [
        "{{ ?x :p ?a FILTER (?a > {0}) }} SEQ OPTIONAL {{ ?x :q ?b FILTER (?b > ?a) }} SEQ {{ ?x :r ?c }}",
        "{{ ?x :p ?a }} SEQ OPTIONAL {{ ?x :q ?b FILTER (?b > {0}) }} SEQ {{ ?x :r ?c FILTER (?c < {0}) }}",
        "{{ ?x :p ?a FILTER (?a > {0}) }} SEQ OPTIONAL {{ ?x :q ?b FILTER (?b > ?a) }} WITHIN 3 s",
        "{{ ?x :p ?a }} SEQ OPTIONAL {{ ?x :q ?b FILTER (?b > {0}) }} WITHIN 3 s",
        "{{ ?x :p ?a }} SEQ OPTIONAL {{ ?x :q ?b }} WITHIN {0}.5 s",
    ],
)
def test_queries_that_differ_in_constants_answer_as_each_alone(parts: str) -> None:
    texts = [f"SELECT * {{ {parts.format(k)} }}" for k in range(6)]
    events = [event(f":a :{'pqqr'[t % 4]} {t * 7 % 6}", t) for t in range(1, 40)]
    engine = Engine(compile(texts))
    found: dict[str, list[Any]] = {f"q{i}": [] for i in range(1, 7)}
    for match in [*engine.push_all(events), *engine.close()]:
        found[match.query].append(match)
    assert {name: _seen(matches) for name, matches in found.items()} == {
        f"q{i}": _rows(text, events) for i, text in enumerate(texts, 1)
    }


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_what_waits_is_forgotten_when_its_time_is_over(executor: str) -> None:
    engine = Engine(compile(IN_TIME), executor=executor, sweep_every=16)  # type: ignore[arg-type]
    sizes = []
    for t in range(200):
        engine.push(event(f":x{t} :p 1", t))
        sizes.append(engine.counters.kept().goals)
    assert max(sizes) < 50


# --- words ---


def test_explain_why_and_why_not() -> None:
    program = compile(BETWEEN)
    text = str(program.explain())
    assert "SEQ OPTIONAL … SEQ, nothing of the optional part, on ?x" in text
    assert "q1: by ?x" in text
    assert "run in columns" in text
    engine = Engine(program, explain=True)
    [match] = [*engine.push_all([event(":a :p 1", 1), event(":a :r 1", 2)]), *engine.close()]
    assert "SEQ OPTIONAL: nothing of the optional part lies between them" in str(match.why())
    last = compile(IN_TIME)
    assert "ends ≤ PT3S after its left side" in str(last.explain())
    assert "kept for ever" not in str(last.explain())
    engine = Engine(last, explain=True)
    events = [event(":a :p 1", 1), event(":a :q 1", 2), event(":b :p 1", 3)]
    one, other = [*engine.push_all(events), *engine.close()]
    assert "SEQ OPTIONAL: the optional part came in time" in str(one.why())
    assert "SEQ OPTIONAL … WITHIN: nothing of the optional part came in time" in str(other.why())
    report = compile(IN_TIME.replace("WITHIN 3 s }", "WITHIN 3 s FILTER (BOUND(?b)) }"))
    late = str(report.why_not([event(":a :p 1", 1), event(":a :q 1", 9)]))
    assert "SEQ OPTIONAL { ?x :q ?b } WITHIN 3 s" in late
    assert "it ends 8 s later, 5 s too late" in late
    alone = compile(BETWEEN.replace("SEQ { ?x :r ?c }", "SEQ { ?x :r ?c } FILTER (!BOUND(?b))"))
    blocked = str(alone.why_not([event(":a :p 1", 1), event(":a :q 1", 2), event(":a :r 1", 3)]))
    assert "SEQ OPTIONAL { ?x :q ?b } SEQ" in blocked
    assert "blocked by :a :q 1 [2]" in blocked


def test_check_warns_once_of_what_is_kept_and_of_a_cross_product() -> None:
    def codes(text: str) -> list[str]:
        return [warning.code for warning in compile(text).check()]

    assert codes(TWO) == ["unbounded"]
    assert codes(TWO + " WITHIN 1 MINUTE") == []
    assert codes(IN_TIME) == []
    assert codes(BETWEEN.replace("?x :r", "?y :r") + " WITHIN 1 MINUTE") == ["cross-product"]


def test_where_an_optional_part_is_looked_for_backwards() -> None:
    with pytest.raises(QueryError, match="SEQ OPTIONAL"):
        Engine(
            compile(
                "SELECT * { ?x :p ?a FILTER EXISTS { { ?x :q ?b FILTER (?b > ?a) } "
                "SEQ OPTIONAL { ?x :r ?c } WITHIN 3 s } }"
            )
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ ?x :p ?a } SEQ OPTIONAL { ?x :q ?b }", "expected SEQ or WITHIN"),
        ("{ ?x :p ?a } SEQ OPTIONAL { ?x :q ?b } WITHIN 0 s", "nothing can come in no time at all"),
        ("{ ?x :p ?a } SEQ OPTIONAL { ?x :q ?b } WITHIN 3 EVENTS", "cannot bound a group"),
        (
            "{ ?x :p ?a } SEQ OPTIONAL { ?x :q ?b } SEQ OPTIONAL { ?x :s ?d } WITHIN 3 s",
            "open from which of them its time runs",
        ),
        ("{ ?x :p ?a } " + "SEQ OPTIONAL { ?x :q ?b } " * 7 + "SEQ { ?x :r ?c }", "7 optional parts; 6 are possible"),
        (
            "{ ?x :p ?a } SEQ OPTIONAL { VALUES ?b { 1 } } SEQ { ?x :r ?c }",
            "a side of SEQ OPTIONAL may come",
        ),
        (
            "{ ?x :p ?a } SEQ OPTIONAL { ?x :q ?k } SEQ OPTIONAL { ?x :s ?d FILTER (?d > ?a) } SEQ { ?x :r ?k }",
            "shares a variable with a later part",
        ),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as raised:
        Engine(compile(f"SELECT * {{ {text} }}"))
    assert raised.value.diagnostics[0].hint


def test_it_is_one_node_of_the_syntax() -> None:
    [query] = [q.syntax for q in compile(TWO).compilation.queries]
    assert query.where is not None
    [sequence] = query.where.elements
    assert isinstance(sequence, ast.SeqOptional)
    assert len(sequence.optionals) == 2
