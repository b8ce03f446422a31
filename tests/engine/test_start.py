"""``{ START }``: a point that precedes every event, also those of its own time."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from etalis_py import Engine, QueryError, compile, event
from etalis_py.events import Retraction
from etalis_py.kernel.batch import Batch
from tests.engine.judge import in_rows_and_columns, matches_whatever_snapshot
from tests.oracle.traces import at, run

ABSENT = "SELECT ?y WHERE { { START } SEQ NOT { ?c :p ?x } WITHIN 2 s BIND (1 AS ?y) }"
FIRST = "SELECT ?x WHERE { { START } NEXT { ?c :p ?x } }"
EXECUTORS = pytest.mark.parametrize("executor", ["rows", "columns"])


def times(matches: Any) -> list[tuple[float, float]]:
    return [(m.start, m.end) for m in matches]


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("{ START } NEXT { ?c :p ?x }", [("x=1", 2, 2)]),
        ("{ START } SEQ { ?c :p ?x }", [("x=1", 2, 2), ("x=2", 2, 4)]),
        ("{ { START } SEQ { ?c :p ?x } } WITHIN 2 s", [("x=1", 2, 2), ("x=2", 2, 4)]),
        ("{ { START } SEQ { ?c :p ?x } } WITHIN 1 s", [("x=1", 2, 2)]),
        ("{ START } SEQ NOT { ?c :p ?y } SEQ { ?c :p ?x }", [("x=1", 2, 2)]),
        ("{ { START } SEQ NOT { ?c :r ?y } SEQ { ?c :q ?x } } WITHIN 3 s", [("x=7", 2, 5)]),
        ("{ { START } SEQ NOT { ?c :r ?y } SEQ { ?c :q ?x } } WITHIN 2999999 us", []),
        ("{ START } SEQ NOT { ?c :q ?y } WITHIN 2 s BIND (0 AS ?x)", [("x=0", 2, 4)]),
        ("{ START } SEQ NOT { ?c :q ?y } WITHIN 3 s BIND (0 AS ?x)", []),
        ("{ START } SEQ NOT { ?c :p ?y } WITHIN 3 s BIND (0 AS ?x)", []),
        ("{ START } SEQ { ?c :p ?y } NEXT { ?c :q ?x }", [("x=7", 2, 5), ("x=7", 2, 5)]),
        ("{ START } SEQ OPTIONAL { ?c :p 2 } SEQ { ?c :p ?x }", [("x=1", 2, 2), ("x=2", 2, 4)]),
        ("{ START } SEQ OPTIONAL { ?c :p ?x } WITHIN 1 s", [("x=1", 2, 2)]),
        ("{ START } SEQ OPTIONAL { ?c :q ?x } WITHIN 3 s", [("x=7", 2, 5)]),
        ("{ START } SEQ OPTIONAL { ?c :q ?x } WITHIN 1 s", [("", 2, 3)]),
    ],
)
def test_it_precedes_every_event(where: str, rows: list[Any]) -> None:
    query = f"SELECT ?x {{ {where} }}"
    events = at(2, "a p 1"), at(4, "a p 2"), at(5, "a q 7")
    assert run(query, *events) == rows
    assert in_rows_and_columns(query, *events) == [rows, rows]


SINCE = at(1, "a p 1"), at(2, "a r 0"), at(3, "a p 2"), at(4, "a p 3")


@pytest.mark.parametrize(
    ("sequence", "rows"),
    [
        ("NEXT { ?c :p ?x }", [("x=1", 1, 1), ("n=0 x=2", 2, 3)]),
        ("SEQ { ?c :p ?x FILTER (?x > 2) }", [("x=3", 1, 4), ("n=0 x=3", 2, 4)]),
        ("SEQ NOT { ?c :p 2 } SEQ { ?c :p ?x }", [("x=1", 1, 1), ("n=0 x=2", 2, 3), ("x=2", 1, 3)]),
        ("SEQ NOT { ?c :p ?x } WITHIN 0.5 s", [("n=0", 2, 2.5)]),
        (
            "SEQ OPTIONAL { ?c :p 3 } SEQ { ?c :p ?x FILTER (?x < 3) }",
            [("x=1", 1, 1), ("n=0 x=2", 2, 3), ("x=2", 1, 3)],
        ),
    ],
)
@pytest.mark.parametrize("left", ["{ START } UNION { ?d :r ?n }", "{ { ?d :r ?n } } UNION { { START } }"])
def test_since_the_start_or_another_event(sequence: str, rows: list[Any], left: str) -> None:
    query = f"SELECT ?n ?x {{ {{ {left} }} {sequence} }}"
    both = f"SELECT ?n ?x {{ {{ {{ START }} {sequence} }} UNION {{ {{ ?d :r ?n }} {sequence} }} }}"
    expected = sorted(rows)
    assert sorted(run(query, *SINCE)) == sorted(run(both, *SINCE)) == expected
    assert [sorted(found) for found in in_rows_and_columns(query, *SINCE)] == [expected] * 2


@pytest.mark.parametrize(("policy", "rows"), [("recent", 2), ("chronological", 2), ("unrestricted", 3)])
def test_each_branch_consumes_by_itself(policy: str, rows: int) -> None:
    query = "SELECT ?n ?x { { { START } UNION { ?d :r ?n } } SEQ { ?c :p ?x FILTER (?x != 3) } }"
    assert len(run(query, *SINCE, policy=policy)) == rows
    assert [len(found) for found in in_rows_and_columns(query, *SINCE, policy=policy)] == [rows] * 2


@pytest.mark.parametrize("policy", ["recent", "chronological", "unrestricted"])
@pytest.mark.parametrize(
    "where",
    [
        'FILTER (getDURATION() <= "PT1S"^^xsd:dayTimeDuration) { START } SEQ { ?c :p ?x }',
        "{ { START } SEQ NOT { ?c :q ?y } SEQ { { START } SEQ { ?c :p ?x } } } WITHIN 1 s",
        "{ { { START } UNION { ?d :r ?n } } NEXT { ?c :p ?x } } WITHIN 1 s",
    ],
)
def test_a_bound_on_the_whole_does_not_exclude_the_start(where: str, policy: str) -> None:
    """It is placed at the sides of a sequence too, under a consuming policy, and START is a point."""
    query = f"SELECT ?x {{ {where} }}"
    events = at(1, "a p 1"), at(9, "a p 2")
    assert run(query, *events, policy=policy) == [("x=1", 1, 1)]
    assert in_rows_and_columns(query, *events, policy=policy) == [[("x=1", 1, 1)]] * 2


def test_events_that_no_query_asks_for_start_the_stream_too() -> None:
    events = at(1, "b other 1"), at(4, "a p 1")
    assert run(ABSENT, *events) == [("y=1", 1, 3)]
    assert in_rows_and_columns(ABSENT, *events) == [[("y=1", 1, 3)]] * 2


def test_the_least_start_of_the_first_instant_counts_and_what_was_under_way_does_not_follow() -> None:
    events = at((1, 3), "b other 1"), at((2, 3), "a p 1"), at((0, 5), "a p 2"), at(6, "a p 3")
    query = "SELECT ?x { { START } SEQ { ?c :p ?x } }"
    assert run(query, *events) == [("x=1", 1, 3), ("x=3", 1, 6)]
    assert in_rows_and_columns(query, *events) == [[("x=1", 1, 3), ("x=3", 1, 6)]] * 2


@EXECUTORS
def test_the_time_that_is_given_is_the_start(executor: Any) -> None:
    engine = Engine(compile(ABSENT), start=1_000_000, executor=executor)
    assert times([*engine.push_all([event(":a :p 1", 3.5)]), *engine.close()]) == [(1, 3)]
    silent = Engine(compile(ABSENT), start=1_000_000, executor=executor)
    assert times(silent.advance(2_999_999)) == []
    assert silent.next_due() == 3_000_000
    assert times(silent.advance(3_000_000)) == [(1, 3)]
    assert times(Engine(compile(ABSENT), start=1_000_000, executor=executor).close()) == [(1, 3)]


def test_without_events_and_without_a_time_there_is_no_start() -> None:
    assert run(ABSENT) == []
    assert not Engine(compile(ABSENT)).close()


@EXECUTORS
@pytest.mark.parametrize("start", [None, 1_000_000])
def test_a_snapshot_goes_on_where_it_was_taken(executor: Any, start: int | None) -> None:
    program = compile([ABSENT, FIRST])
    events = [event(":b :other 1", 1), event(":a :p 1", 5), event(":a :p 2", 6)]
    found = matches_whatever_snapshot(program, events, executor=executor, start=start)
    assert [(m.query, m.start, m.end) for m in found] == [("q1", 1, 3), ("q2", 1, 5)]


def test_a_journal_goes_on_where_it_was_taken() -> None:
    program = compile([ABSENT, FIRST])
    events = [event(":b :other 1", 1), event(":a :p 1", 5), event(":a :p 2", 6)]
    for cut in range(4):
        first, second = Engine(program, journal=True), Engine(program)
        second.restore(first.snapshot())
        found = [*first.push_all(events[:cut])]
        second.apply_journal(first.take_journal())
        found += [*second.push_all(events[cut:]), *second.close()]
        assert [(m.query, m.start, m.end) for m in found] == [("q1", 1, 3), ("q2", 1, 5)]


@EXECUTORS
def test_a_correction_moves_the_start(executor: Any) -> None:
    engine = Engine(compile(ABSENT), revise=60_000_000, executor=executor)
    gone = event(":b :other 1", 2)
    engine.push_all([gone, event(":b :other 2", 3), event(":a :p 1", 9)])
    earlier = engine.push_all([event(":b :other 0", 1)])
    assert {(m.retracted, m.start, m.end) for m in earlier} == {(True, 2, 4), (False, 1, 3)}
    gone = event(":b :other 0", 1)
    later = engine.push_all([Retraction(gone.start, gone.end, gone.triples, "")])
    assert {(m.retracted, m.start, m.end) for m in later} == {(True, 1, 3), (False, 2, 4)}


@EXECUTORS
@pytest.mark.parametrize("size", [1, 2, 5])
def test_however_the_input_is_cut(executor: Any, size: int) -> None:
    events = [event(f":c{n % 3} :p {n}", n // 2) for n in range(20)]
    engine = Engine(compile(FIRST), executor=executor)
    found = []
    for i in range(0, 20, size):
        found += engine.push_all(
            Batch(events[i : i + size], 0).columns if executor == "columns" else events[i : i + size]
        )
    assert times([*found, *engine.close()]) == [(0, 0), (0, 0)]


def test_a_program_that_is_added_later_has_missed_it() -> None:
    engine = Engine(compile("SELECT ?x { ?c :q ?x }"))
    engine.push_all([event(":a :q 1", 1), event(":a :q 2", 2)])
    with pytest.warns(UserWarning, match="later: the stream began before this was added"):
        engine.add(f"REGISTER QUERY later AS {FIRST}")
    assert [m.query for m in [*engine.push_all([event(":a :p 1", 3)]), *engine.close()]] == ["q1"]


@EXECUTORS
@pytest.mark.parametrize("program", [(), ("SELECT ?x { ?c :q ?x }",)])
@pytest.mark.parametrize("opened", [False, True])
def test_time_that_passes_before_the_first_event_is_no_start(executor: Any, program: Any, opened: bool) -> None:
    """A program that is added before the first instant is over has missed nothing, also if a silent stream moved on."""
    engine = Engine(*program, executor=executor)
    engine.advance(1_000_000)
    events = [event(":a :p 1", 2), event(":a :p 2", 4)]
    if opened:
        engine.push(events.pop(0))
    engine.add(f"REGISTER QUERY later AS {FIRST}")
    assert times([*engine.push_all(events), *engine.close()]) == [(2, 2)]


def test_rules_windows_and_other_queries_run_beside_it() -> None:
    rule = "CONSTRUCT { :run :first ?x } WHERE { { START } NEXT { ?c :p ?x } } "
    window = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT2S TUMBLING] { WINDOW :w { ?c :p ?x } } "
    text = rule + window + "SELECT ?x { ?r :first ?x }"
    engine = Engine(compile(text), stream="<http://example.org/s>")
    found = [*engine.push_all([event(":a :p 1", 1), event(":a :p 2", 2), event(":a :p 3", 9)]), *engine.close()]
    assert {m.query for m in found} == {"q1", "q2", "q3"}
    assert [m.triples for m in found if m.query == "q1"] == [
        (("<http://example.org/run>", "<http://example.org/first>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'),)
    ]


def test_many_queries_that_differ_in_constants_answer_as_each_alone() -> None:
    texts = [f"SELECT ?x {{ {{ START }} NEXT {{ ?c :p ?x FILTER (?x > {n}) }} }}" for n in range(6)]
    events = [event(f":a :p {t % 7}", t) for t in range(20)]
    together = Engine(compile(texts))
    found = {(m.query, m.end) for m in [*together.push_all(events), *together.close()]}
    assert found == {(f"q{n + 1}", n + 1) for n in range(6)}


@pytest.mark.parametrize("query", [ABSENT, FIRST, FIRST.replace("NEXT", "SEQ")])
def test_one_start_is_no_unbounded_state(query: str) -> None:
    assert not [warning for warning in compile(query).check() if warning.code == "unbounded"]


def test_what_it_excludes_is_unbounded_state() -> None:
    [warning] = compile("SELECT ?x { { START } SEQ NOT { ?c :p ?y } SEQ { ?c :q ?x } }").check()
    assert warning.code == "unbounded"


def test_explain_and_why_say_it() -> None:
    program = compile(FIRST)
    assert "g1()[T1,T2] ← start(T1), T2 is T1 − 1 µs." in str(program.explain())
    assert "one shard, because START is the same for all keys" in str(program.explain())
    engine = Engine(program, explain=True)
    [match] = [*engine.push_all([event(":a :p 1", 1), event(":a :p 2", 2)]), *engine.close()]
    assert "├─ START: the stream begins" in str(match.why())
    alone = compile("SELECT ?x { { START } BIND (1 AS ?x) }")
    assert "START by itself, the time at which the stream starts" in str(alone.explain())
    engine = Engine(alone, explain=True)
    [match] = [*engine.push_all([event(":a :p 1", 1)]), *engine.close()]
    assert "START by itself: the stream starts at this time" in str(match.why())


@pytest.mark.parametrize(
    "where",
    [
        "{ ?c :p ?x } SEQ { START }",
        "{ START } EQUALS { ?c :p ?x }",
        "{ START } NOT { ?c :p ?x }",
        "{ { START } UNION { ?c :p ?x } } EQUALS { ?c :q ?y }",
        "{ { START } UNION { ?c :p ?x } FILTER (?x > 1) } SEQ { ?c :q ?y }",
        "{ { START } MINUS { ?c :p ?x } } SEQ { ?c :q ?y }",
        "{ ?c :p ?x } OPTIONAL { { START } }",
        "{ { START } } REPEAT 2",
        "{ { START } MINUS { ?c :p ?x } }",
        "{ { START } BIND (1 AS ?x) FILTER EXISTS { ?c :p ?x } }",
        "{ { { START } BIND (1 AS ?x) } DISJOINT }",
        "{ { START } } OPTIONAL { ?c :p ?x }",
        "{ ?c :p ?x FILTER EXISTS { { START } EQUALS { ?c :q ?y } } }",
        "{ EVENT { { START } ?c :p ?x } }",
        "{ { SELECT ?x { { START } BIND (1 AS ?x) } } SEQ { ?c :p ?y } }",
        "{ { ?c :p ?x } SEQ NOT { { START } } WITHIN 1 s }",
    ],
)
def test_it_has_no_other_place_in_time(where: str) -> None:
    with pytest.raises(QueryError, match="has no other place in time"):
        compile(f"SELECT * {{ {where} }}")


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("{ START }", [("", 2, 2)]),
        ("{ { START } BIND (7 AS ?x) }", [("x=7", 2, 2)]),
        ("{ { START } BIND (7 AS ?x) FILTER (?x < 7) }", []),
        ("{ { START } BIND (7 AS ?x) } WITHIN 0 s", [("x=7", 2, 2)]),
        ("{ { START } UNION { ?c :p ?x } }", [("", 2, 2), ("x=1", 2, 3), ("x=2", 4, 4)]),
        ("{ { START } . ?c :p ?x }", [("x=1", 2, 3), ("x=2", 2, 4)]),
        ("{ ?c :p ?x MINUS { { START } BIND (1 AS ?x) } }", [("x=2", 4, 4)]),
        ("{ ?c :p ?x MINUS { { START } BIND (1 AS ?z) } }", [("x=1", 2, 3), ("x=2", 4, 4)]),
        ("{ ?c :p ?x MINUS { { START } NEXT { ?c :p ?x } } }", [("x=2", 4, 4)]),
        ("{ ?c :p ?x FILTER EXISTS { { START } } }", [("x=1", 2, 3), ("x=2", 4, 4)]),
        ("{ ?c :p ?x FILTER EXISTS { { START } BIND (1 AS ?x) } }", [("x=1", 2, 3)]),
        ("{ ?c :p ?x FILTER NOT EXISTS { { START } BIND (1 AS ?x) } }", [("x=2", 4, 4)]),
        ("{ ?c :p ?x FILTER NOT EXISTS { { START } FILTER (?x < 2) } }", [("x=2", 4, 4)]),
        ("{ ?c :p ?x FILTER EXISTS { { START } NEXT { ?d :p ?y } } }", [("x=1", 2, 3), ("x=2", 4, 4)]),
        ("{ ?c :p ?x FILTER NOT EXISTS { { START } SEQ NOT { ?d :p 2 } WITHIN 2 s } }", [("x=1", 2, 3), ("x=2", 4, 4)]),
        ("{ { ?c :p ?x FILTER NOT EXISTS { { START } BIND (2 AS ?x) } } SEQ { ?c :p ?y } }", [("x=1", 2, 4)]),
        ("{ { SELECT ?x { { START } BIND (3 AS ?x) } } }", [("x=3", 2, 2)]),
    ],
)
def test_by_itself_it_is_the_time_at_which_the_stream_starts(where: str, rows: list[Any]) -> None:
    query = f"SELECT ?x {{ {where} }}"
    events = at((2, 3), "a p 1"), at(4, "a p 2")
    assert run(query, *events) == rows
    assert in_rows_and_columns(query, *events) == [rows, rows]


def test_rules_read_what_is_derived_at_the_start_while_the_first_event_lasts() -> None:
    text = (
        "CONSTRUCT { :run :is :on } WHERE { START } "
        "CONSTRUCT { :run :has ?x } WHERE { :run :is ?x } "
        "SELECT ?x { ?r :has ?x }"
    )
    events = at((2, 3), "a p 1"), at(4, "a p 2")
    assert run(text, *events) == [("x=on", 2, 2)]
    assert in_rows_and_columns(text, *events) == [[("x=on", 2, 2)]] * 2


def test_it_seeds_a_rule() -> None:
    text = (
        "CONSTRUCT { :run :sum 0 } WHERE { START } "
        "CONSTRUCT { :run :sum ?n } WHERE { { { :run :sum ?m } NEXT { ?c :p ?x } } BIND (?m + ?x AS ?n) } "
        "SELECT ?n { :run :sum ?n }"
    )
    engine = Engine(compile(text), start=1_000_000)
    found = [*engine.push_all([event(":a :p 5", 2), event(":a :p 7", 3)]), *engine.close()]
    assert [(m.start, m.end, m["n"]) for m in found if m.query == "q3"] == [(1, 1, 0), (1, 2, 5), (1, 3, 12)]


@EXECUTORS
@pytest.mark.parametrize("start", [None, 1_000_000])
def test_by_itself_it_goes_on_where_a_snapshot_was_taken(executor: Any, start: int | None) -> None:
    program = compile("SELECT ?x { { START } UNION { ?c :p ?x } }")
    events = [event(":b :other 1", 1), event(":a :p 1", 5)]
    found = matches_whatever_snapshot(program, events, executor=executor, start=start)
    assert [(m.start, m.end) for m in found] == [(1, 1), (5, 5)]


@EXECUTORS
def test_a_correction_moves_it_by_itself(executor: Any) -> None:
    engine = Engine(compile("ASK { START }"), revise=60_000_000, executor=executor)
    engine.push_all([event(":b :other 1", 2), event(":b :other 2", 3)])
    earlier = engine.push_all([event(":b :other 0", 1)])
    assert {(m.retracted, m.start, m.end) for m in earlier} == {(True, 2, 2), (False, 1, 1)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * { { START } SEQ NOT { ?c :p ?x } WITHIN P1M }", "write days"),
        ("SELECT * { { START } SEQ OPTIONAL { ?c :p ?x } WITHIN P1M }", "write days"),
        ("SELECT * { { { ?c :p ?x } UNION { START } } SEQ NOT { ?c :q ?y } WITHIN P1M }", "write days"),
        ("SELECT * { EVENT { ?c :p ?x MINUS { { START } BIND (1 AS ?x) } } }", "START stands inside EVENT"),
        ("SELECT * { EVENT { ?c :p ?x FILTER EXISTS { { START } } } }", "START stands inside EVENT"),
        (
            "SELECT * { ?c :p ?x FILTER EXISTS { ?c :p ?y FILTER EXISTS { { START } BIND (?x AS ?y) } } }",
            "START stands in a pattern that is looked for backwards",
        ),
        ("SELECT * FROM STREAM <urn:s> [RANGE PT5S] { { START } SEQ { ?c :p ?x } }", "a window has no START"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError) as refused:
        compile(text)
    assert message in str(refused.value)


def test_why_not_refuses_it() -> None:
    with pytest.raises(ValueError, match="why-not does not follow"):
        compile(FIRST).why_not([event(":a :p 1", 1)])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?x { { START } NEXT { ?c :p ?x } }",
        "SELECT ?x { { { START } UNION { ?c :q ?y } } NEXT { ?c :p ?x } }",
        "ASK { { START } SEQ NOT { ?c :q ?y } WITHIN 1 s }",
    ],
)
def test_a_program_that_has_missed_the_start_is_told(text: str) -> None:
    """It never matches, and nothing else would say so."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine = Engine("REGISTER QUERY :first AS SELECT ?x { ?c :p ?x }")
        engine.remove(engine.add(text))
        engine.push_all([event(":c :p 1", 1), event(":c :p 2", 2)])
        engine.add("REGISTER QUERY :other AS SELECT ?x { ?c :p ?x }")
    with pytest.warns(
        UserWarning, match="q1: the stream began before this was added, so what follows START never matches"
    ):
        engine.add(text)


def test_of_many_alike_that_have_missed_the_start_each_is_told() -> None:
    text = "REGISTER QUERY :q{} AS SELECT ?x {{ {{ START }} NEXT {{ :c{} :p ?x }} }}"
    engine = Engine([text.format(number, number) for number in range(5)])
    engine.push_all([event(":c :p 1", 1), event(":c :p 2", 2)])
    with pytest.warns(UserWarning, match="q7>: the stream began before"):
        engine.add(text.format(7, 7))
