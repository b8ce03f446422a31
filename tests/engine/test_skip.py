"""SKIP, DISJOINT and THROTTLE: matches one after the other (docs/semantics.md, Absence, NEXT, REPEAT)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etalis_py import Engine, Match, Program, QueryError, compile, event
from etalis_py.events import Event, Retraction
from tests.engine.judge import in_rows_and_columns, matches_whatever_snapshot
from tests.oracle.traces import at, run

CHAIN = at(1, "a p 1"), at(2, "a p 2"), at(2.5, "b p 7"), at(3, "a p 3"), at(4, "a p 4"), at(4.5, "b p 8")
PAIRS = "{ { ?c :p ?x } SEQ { ?c :p ?y } }"


def run_all(program: Program, events: list[Event], query: str = "q1") -> list[Match]:
    engine = Engine(program)
    return [m for m in [*engine.push_all(events), *engine.close()] if m.query == query]


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        (f"{{ {PAIRS} DISJOINT }}", [("x=1 y=2", 1, 2), ("x=3 y=4", 3, 4)]),
        (f"{{ {PAIRS} SKIP PAST (getENDTIME()) }}", [("x=1 y=2", 1, 2), ("x=3 y=4", 3, 4)]),
        (f"{{ {PAIRS} DISJOINT BY ?c }}", [("x=1 y=2", 1, 2), ("x=3 y=4", 3, 4), ("x=7 y=8", 2.5, 4.5)]),
        (
            f"{{ {PAIRS} SKIP TO (getENDTIME()) BY ?c }}",
            [("x=1 y=2", 1, 2), ("x=2 y=3", 2, 3), ("x=3 y=4", 3, 4), ("x=7 y=8", 2.5, 4.5)],
        ),
        (  # each begins after the last began, as SQL's SKIP TO NEXT ROW
            f"{{ {PAIRS} SKIP PAST (getSTARTTIME()) BY ?c }}",
            [("x=1 y=2", 1, 2), ("x=2 y=3", 2, 3), ("x=3 y=4", 3, 4), ("x=7 y=8", 2.5, 4.5)],
        ),
        (  # SKIP TO the second element: its time is bound inside
            "{ { { ?c :p ?x } SEQ { ?c :p ?z BIND (getSTARTTIME() AS ?t) } SEQ { ?c :p ?y } } SKIP PAST (?t) BY ?c }",
            [("x=1 y=3", 1, 3), ("x=3 y=4", 3, 4)][:1],
        ),
        ("{ { ?c :p ?x } THROTTLE 2 s BY ?c } BIND (?x AS ?y)", [("x=1 y=1", 1, 1), ("x=7 y=7", 2.5, 2.5),
         ("x=3 y=3", 3, 3), ("x=8 y=8", 4.5, 4.5)]),
    ],
)  # fmt: skip
def test_one_is_kept_if_it_comes_after_the_last_one_kept(where: str, rows: list) -> None:
    query = f"SELECT ?x ?y {{ {where} }}"
    assert run(query, *CHAIN) == rows
    assert in_rows_and_columns(query, *CHAIN) == [rows, rows]


def test_it_goes_by_the_ends_as_a_stream_must() -> None:
    """Of [1, 10] and [2, 3] the second is kept."""
    query = "SELECT ?x { { ?c :p ?x } DISJOINT }"
    events = at((2, 3), "a p 1"), at((1, 10), "a p 2")
    assert run(query, *events) == [("x=1", 2, 3)]
    assert in_rows_and_columns(query, *events) == [[("x=1", 2, 3)]] * 2


def test_of_simultaneous_ones_the_first_in_the_order_of_the_variables_is_kept() -> None:
    query = "SELECT ?x ?y { { { ?y :p ?x } UNION { ?y :q ?x } } DISJOINT }"
    events = at(1, "a p 9 ; b q 1"), at(2, "b p 5 ; a p 5")
    rows = [("x=1 y=b", 1, 1), ("x=5 y=a", 2, 2)]
    assert run(query, *events) == rows
    assert in_rows_and_columns(query, *events) == [rows, rows]


def test_what_is_no_time_lets_nothing_follow() -> None:
    query = "SELECT ?x { { ?c :p ?x } SKIP PAST (?x) }"
    assert run(query, *CHAIN) == [("x=1", 1, 1)]
    assert in_rows_and_columns(query, *CHAIN) == [[("x=1", 1, 1)]] * 2
    [warning] = compile("SELECT ?x { { ?c :p ?x } SKIP PAST (5) }").warnings
    assert "5 is a number and no time, so only the first match is kept" in str(warning)


TIMES = st.lists(st.integers(0, 30), max_size=15).map(sorted)


@given(TIMES, st.integers(1, 6))
def test_throttle_is_a_plain_loop(times: list[int], length: int) -> None:
    kept: list[int] = []
    for t in dict.fromkeys(times):
        if not kept or t >= kept[-1] + length:
            kept.append(t)
    engine = Engine(compile(f"SELECT ?c {{ {{ ?c :p ?x }} THROTTLE {length} s BY ?c }}"))
    matches = [*engine.push_all([event(":a :p 1", t) for t in times]), *engine.close()]
    assert [m.start for m in matches] == kept


PAIRED = (
    "CONSTRUCT { :a :pair ?y } AT END WHERE { { START } NEXT { :a :p ?x } NEXT { :a :p ?y } } "
    "CONSTRUCT { :a :pair ?y } AT END WHERE { { :a :pair ?z } NEXT { :a :p ?x } NEXT { :a :p ?y } } "
)


@given(st.lists(st.integers(0, 30), max_size=12, unique=True).map(sorted), st.sampled_from(["SEQ", "NEXT"]))
def test_disjoint_is_two_rules_where_no_two_events_are_simultaneous(times: list[int], operator: str) -> None:
    """The first pair since the start, and the first since the end of the last one."""
    events = [event(f":a :p {n}", t) for n, t in enumerate(times)]
    pairs = f"SELECT ?y {{ {{ {{ :a :p ?x }} {operator} {{ :a :p ?y }} }} DISJOINT }}"
    kept = [(m["y"], m.end) for m in run_all(compile(pairs), events)]
    assert kept == [(m["y"], m.end) for m in run_all(compile(PAIRED + "SELECT ?y { :a :pair ?y }"), events, "q3")]
    assert len(kept) == len(times) // 2


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 6), st.sampled_from("ab")), max_size=10))
def test_disjoint_is_a_plain_loop_over_the_matches(spans: list[tuple[int, int, str]]) -> None:
    events = [at((t, t + length), f"{key} p {n}") for n, (t, length, key) in enumerate(spans)]
    events.sort(key=lambda e: e.end)
    last: dict[str, float] = {}
    kept = []
    for row, start, end in sorted(run("SELECT ?c ?x { ?c :p ?x }", *events), key=lambda m: (m[2], m[1], m[0])):
        if start > last.get(key := row.split()[0], -1):
            last[key] = end
            kept.append((row, start, end))
    query = "SELECT ?c ?x { { ?c :p ?x } DISJOINT BY ?c }"
    assert [sorted(found) for found in in_rows_and_columns(query, *events)] == [sorted(kept)] * 2


def test_a_snapshot_goes_on_where_it_was_taken_and_each_query_has_its_own() -> None:
    text = "SELECT ?x { { ?c :p ?x } THROTTLE 10 s BY ?c }"
    events = [event(f":a :p {t}", t) for t in (1, 5, 12, 13, 30)]
    assert [m.start for m in matches_whatever_snapshot(compile(text), events)] == [1, 12, 30]
    both = Engine(compile([text, text.replace("10 s", "3 s")]))
    matches = [*both.push_all(events), *both.close()]
    assert [m.start for m in matches if m.query == "q1"] == [1, 12, 30]
    assert [m.start for m in matches if m.query == "q2"] == [1, 5, 12, 30]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_correction_lets_another_one_be_kept(executor: str) -> None:
    engine = Engine(compile("SELECT ?x { { ?c :p ?x } THROTTLE 10 s BY ?c }"), revise=60_000_000, executor=executor)  # type: ignore[arg-type]
    gone = event(":a :p 1", 1)
    engine.push_all([gone, event(":a :p 5", 5), event(":a :p 12", 12), event(":a :p 13", 13)])
    matches = [*engine.push_all([Retraction(gone.start, gone.end, gone.triples, "")]), *engine.close()]
    assert {(m.retracted, m.start) for m in matches} >= {(True, 1), (False, 5), (True, 12)}


def test_many_queries_that_differ_in_constants_answer_as_each_alone() -> None:
    texts = [f"SELECT ?x {{ {{ ?c :p ?x FILTER (?x > {n}) }} THROTTLE {3 + n} s BY ?c }}" for n in range(6)]
    events: list[Event] = [event(f":a :p {t % 7}", t) for t in range(20)]
    together = Engine(compile(texts))
    found = {(m.query, m.start) for m in [*together.push_all(events), *together.close()]}
    alone = set()
    for number, text in enumerate(texts, 1):
        engine = Engine(compile(text))
        alone |= {(f"q{number}", m.start) for m in [*engine.push_all(events), *engine.close()]}
    assert found == alone


def test_explain_says_what_is_kept_and_shards_go_by_its_keys() -> None:
    program = compile("SELECT ?c ?x { { ?c :p ?x } THROTTLE 1 HOUR BY ?c }")
    text = str(program.explain())
    assert "from([X0], T0), T2 ≥ T0, retract(from([X0], T0)), assert(from([X0], T2 + PT1H))" in text
    assert "g1 keeps the time of the last one kept for every X0:" in text
    assert "row by row in SKIP or THROTTLE" in text
    assert "q1: one shard" not in text
    assert "THROTTLE goes by the last one kept of all its solutions" in str(
        compile("SELECT ?c ?x { { ?c :p ?x } THROTTLE 1 HOUR }").explain()
    )


def test_why_and_why_not() -> None:
    program = compile("SELECT ?c { { ?c :p ?x } THROTTLE 1 min BY ?c }")
    events = [event(":a :p 1", 1), event(":a :p 2", 2)]
    assert "THROTTLE 1 min BY ?c" in str(program.why_not(events, where="?x = 2"))
    engine = Engine(program, explain=True)
    [match] = [*engine.push_all(events), *engine.close()]
    assert "THROTTLE: none that was kept ended shortly before" in str(match.why())


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("{ ?c :p ?x OPTIONAL { ?c :q ?t } } SKIP PAST (?t)", "?t may be unbound"),
        ("{ ?c :p ?x BIND (?x + 1 AS ?t) } SKIP PAST (?t)", "?t may be unbound"),
        ("{ ?c :p ?x } DISJOINT BY ?z", "?z is not bound by the group before DISJOINT"),
        ("{ ?c :p ?x } THROTTLE 5", "a length of time needs a unit"),
        ("{ ?c :p ?x } THROTTLE 5 EVENTS", "THROTTLE counts time, not events"),
        ("{ ?c :p ?x } SKIP PAST (RAND())", "a drawn value"),
        ("{ VALUES ?x { 1 } } DISJOINT", "a side of SKIP may come from the background alone"),
        ("{ ?c :p ?x FILTER EXISTS { { ?c :q ?y } DISJOINT FILTER (?y > ?x) } }", "looked for backwards"),
    ],
)
def test_what_is_refused(where: str, message: str) -> None:
    with pytest.raises(QueryError) as refused:
        compile(f"SELECT ?x {{ {where} }}")
    assert message in str(refused.value)


def test_a_rule_may_not_skip_what_it_derives_in_the_same_instant() -> None:
    with pytest.raises(QueryError, match="depend on themselves within one instant through SKIP"):
        Engine(compile("CONSTRUCT { ?c :p ?x } WHERE { { ?c :p ?x } DISJOINT }"))


@pytest.mark.parametrize(
    ("clause", "word", "why"),
    [
        ("DISJOINT", "DISJOINT BY ?c", "DISJOINT: it overlaps none that was kept before"),
        ("SKIP PAST (getENDTIME())", "DISJOINT BY ?c", "DISJOINT: it overlaps none that was kept before"),
        ("SKIP TO (getENDTIME())", "SKIP TO (getENDTIME()) BY ?c", "SKIP: it begins no earlier than the last one kept"),
    ],
)
def test_it_is_named_as_it_is_written_and_the_first_one_needs_no_other(clause: str, word: str, why: str) -> None:
    """`DISJOINT` is short for the other spelling, so both have its name."""
    program = compile(f"SELECT ?c {{ {{ {{ ?c :p ?x }} SEQ {{ ?c :p ?y }} }} {clause} BY ?c }}")
    events = [event(":a :p 1", 1), event(":a :p 2", 2), event(":a :p 3", 3)]
    assert f"{word.split()[0]}, T1" in str(program.explain())
    assert word in str(program.why_not(events, where="?x = 1 && ?y = 3"))
    first = Engine(program, explain=True).push_all(events)[0]
    assert why in str(first.why())
