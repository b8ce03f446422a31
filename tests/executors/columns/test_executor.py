"""How an engine chooses between rows and columns, and what it keeps."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa
import pytest

from etalis_py import Engine, Event, LimitExceeded, Limits, compile, event, run
from etalis_py.engine.inputs import columns_of
from etalis_py.executors.columns import executor as executor_of_columns
from etalis_py.executors.columns import frames, piece_limits, rules
from etalis_py.kernel.batch import Batch, Columns
from etalis_py.streams.columns.flat_form import batch_of
from tests.executors.columns.judge import batches, rule_executors

SECOND = 1_000_000
RISING = "SELECT ?c ?x ?y WHERE { { ?c <urn:p> ?x } SEQ { ?c <urn:p> ?y } FILTER (?x < ?y) }"


def prices(count: int) -> list[Event]:
    return [
        Event(n, n, ((f"<urn:c{n % 7}>", "<urn:p>", f'"{n * 37 % 101}"^^<http://www.w3.org/2001/XMLSchema#integer>'),))
        for n in range(count)
    ]


def columns(events: list[Event]) -> Columns:
    return Batch(events, events[-1].end).columns


def ids(engine: Engine, *parts: Any) -> list[str]:
    return [m.id for part in parts for m in engine.push_all(part)] + [m.id for m in engine.close()]


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few dozen rows are large."""
    monkeypatch.setattr(executor_of_columns, "ENOUGH", 64)
    monkeypatch.setattr(executor_of_columns, "ready", lambda: True)


def test_rows_that_are_ordered_are_reported_by_instant_and_then_by_query() -> None:
    program = [f"REGISTER QUERY q{k} AS SELECT ?x {{ ?c <urn:p> ?x }} ORDER BY ?x" for k in range(2)]
    engine = Engine(program, executor="columns")
    matches = engine.push_all(columns(prices(4)))
    assert [(m.end_us, m.query) for m in matches] == [(t, f"q{k}") for t in range(3) for k in range(2)]


def test_what_is_said_at_the_end_comes_last() -> None:
    program = ["SELECT (COUNT(*) AS ?n) { ?c <urn:q> ?x }", "SELECT ?x { ?c <urn:p> ?x }"]
    engine = Engine(program, executor="columns")
    assert not engine.push_all(columns(prices(1)))
    assert [m.query for m in engine.close()] == ["q2", "q1"]


@pytest.mark.parametrize("many", [1, 50, 1 << 20])
def test_queries_of_a_family_find_their_events_a_column_at_a_time(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    """Those that a number concerns by its size; however many solutions are looked at together."""
    monkeypatch.setattr(frames, "MANY_AT_ONCE", many)
    limits = [*range(0, 100, 3), 50, 50]
    program = compile([f"SELECT ?c ?x {{ ?c <urn:p> ?x FILTER (?x >= {limit}) }}" for limit in limits])
    engine, events = Engine(program, executor="columns"), prices(200)
    found = [*engine.push_all(columns(events)), *engine.close()]
    assert rule_executors(engine)[0].families is not None
    assert rule_executors(engine)[0].reason is None
    values = {event.end: int(event.triples[0][2].split('"')[1]) for event in events}
    expected = [(t, f"q{k + 1}") for t, x in values.items() for k, limit in enumerate(limits) if x >= limit]
    assert [(m.end_us, m.query) for m in found] == expected


def test_queries_of_a_family_keep_finding_events_when_terms_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_TERMS", 64)
    program = [
        f"SELECT ?x ?y {{ {{ {{ <urn:c{k % 7}> <urn:p> ?x }} SEQ {{ <urn:c{k % 3}> <urn:p> ?y }} }} WITHIN {k % 5} s }}"
        for k in range(40)
    ]
    expected = ids(Engine(compile(program), executor="rows"), prices(300))
    engine = Engine(compile(program), executor="columns")
    parts = [columns(prices(300)[first : first + 20]) for first in range(0, 300, 20)]
    assert ids(engine, *parts) == expected
    assert rule_executors(engine)[0].families is not None


@pytest.mark.parametrize("policy", ["recent", "chronological", "unrestricted"])
def test_goals_go_over_from_rows_to_columns_and_back(policy: str) -> None:
    program = compile(RISING)
    events = prices(400)
    expected = ids(Engine(program, policy=policy, executor="rows"), events)
    engine = Engine(program, policy=policy)
    assert ids(engine, events[:100], columns(events[100:300]), events[300:]) == expected


@pytest.mark.parametrize("compiled", [True, False])
def test_a_run_changes_to_columns_when_it_has_shown_to_be_large(
    monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    asked = []
    monkeypatch.setattr(executor_of_columns, "ENOUGH", 250)
    monkeypatch.setattr(executor_of_columns, "ready", lambda: asked.append(1) or compiled)
    events = prices(400)
    engine = Engine(compile(RISING))
    (executor,) = rule_executors(engine)
    forms = []
    matches = []
    for first in range(0, 400, 100):
        matches += [m.id for m in engine.push_all(columns(events[first : first + 100]))]
        forms.append(executor.form)
    assert forms == ["rows", "rows", *(["columns"] * 2 if compiled else ["rows"] * 2)]
    assert bool(asked), "nobody asks before"
    assert matches + [m.id for m in engine.close()] == ids(Engine(compile(RISING), executor="rows"), events)


def test_terms_that_no_goal_has_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_TERMS", 50)
    monkeypatch.setattr(piece_limits, "AT_ONCE", 20)
    program = compile(RISING)
    events = prices(2000)
    engine = Engine(program, policy="recent", executor="columns")
    expected = ids(Engine(program, policy="recent", executor="rows"), events)
    found = [m.id for m in engine.push_all(columns(events))]
    (executor,) = rule_executors(engine)
    assert executor._columns is not None
    assert executor._columns.terms.count < 600
    assert found + [m.id for m in engine.close()] == expected


def test_late_events_in_columns_are_put_aside_as_those_in_rows() -> None:
    program = compile(RISING)
    events = prices(20)
    engine = Engine(program, executor="columns", stream="<urn:s>")
    engine.push_all(columns(events[10:]))
    engine.push_all(columns(events[:10]))
    assert engine.counters.late == 10
    assert engine.dead_letters == events[:10]


def readings(count: int) -> list[Event]:
    """Events of one to three triples, two to an instant; now and then one comes twice."""
    events = []
    for n in range(count):
        triples = [(f"<urn:c{n % 7}>", f"<urn:p{k}>", f'"{n}"') for k in range(1 + n % 3)]
        events += [Event(n // 2, n // 2, tuple(triples))] * (1 + (n % 11 == 0))
    return events


@pytest.mark.parametrize("size", [1, 7, 100, 1000])
@pytest.mark.parametrize("executor", ["auto", "columns"])
def test_the_counters_are_those_of_rows(executor: Literal["auto", "columns"], size: int) -> None:
    program = compile("SELECT ?c ?x WHERE { { ?c <urn:p0> ?x } SEQ { ?c <urn:p1> ?y } }")
    events = readings(300)
    rows = Engine(program, executor="rows")
    expected = len(rows.push_all(events)) + len(rows.close())
    engine = Engine(program, executor=executor)
    count = 0
    for number, batch in enumerate(batches(events, size)):
        count += len(engine.push_all(columns(batch) if number % 3 else batch))
    assert count + len(engine.close()) == expected
    assert engine.counters == rows.counters
    assert engine.counters.events == len(events)


def test_rows_of_one_event_are_counted_as_one() -> None:
    events = readings(20)
    assert Batch(None, 9, columns(events)).rows == events
    table = batch_of(events)
    engine = Engine(RISING, executor="columns")
    engine.push_all(columns_of(table))
    assert engine.counters.events == len(events) < len(table)


def test_what_has_no_columnar_form_runs_in_rows_beside_the_rest_and_says_why() -> None:
    recursive = "CONSTRUCT { ?x <urn:d> ?z } WHERE { ?x <urn:d> ?y . ?y <urn:p> ?z FILTER (?x != ?z) }"
    engine = Engine(compile([RISING, recursive]), executor="columns")
    (executor,) = rule_executors(engine)
    assert executor.division.reasons == {"q1": None, "q2": "the rules q2 are recursive"}
    assert executor.reason is None
    events = prices(50)
    assert ids(engine, columns(events)) == ids(Engine(compile([RISING, recursive]), executor="rows"), events)


def test_an_executor_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match='choose "auto", "rows" or "columns"'):
        Engine(RISING, executor="rowz")  # type: ignore[typeddict-item]


PAIRS = "SELECT ?x ?y WHERE { { ?a <urn:p> ?x } AND { ?b <urn:q> ?y } }"
OPTIONS = "SELECT ?x ?y WHERE { { ?a <urn:p> ?x } OPTIONAL { ?b <urn:q> ?y } }"


def grid(instants: int, side: int) -> list[Event]:
    """In each instant as many triples of <urn:p> as of <urn:q>."""
    return [
        Event(t, t, tuple((f"<urn:{n}>", f"<urn:{p}>", f'"{n}"') for p in "pq" for n in range(side)))
        for t in range(instants)
    ]


@pytest.mark.parametrize("query", [PAIRS, OPTIONS])
def test_an_instant_with_too_many_solutions_is_refused_as_in_rows(query: str) -> None:
    messages = []
    executors: tuple[Literal["rows", "columns"], ...] = ("rows", "columns")
    for executor in executors:
        engine = Engine(query, executor=executor, limits=Limits(derivations=8))
        with pytest.raises(LimitExceeded) as refused:
            engine.push_all(columns(grid(3, 3)))
        messages.append(str(refused.value))
    assert messages[0] == messages[1]
    assert messages[0].startswith("more than 8 solutions of query q1 in one instant")


def test_the_limit_is_that_of_an_instant_not_of_a_batch() -> None:
    within = "SELECT ?x ?y WHERE { { ?a <urn:p> ?x } EQUALS { ?b <urn:q> ?y } }"
    engine = Engine(within, executor="columns", limits=Limits(derivations=9))
    assert len(engine.push_all(columns(grid(100, 3)))) + len(engine.close()) == 900


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # ?y is shown on the right and never bound there, so it does not tell the sides apart: ?x alone does
        ("SELECT ?x { ?x :p ?y MINUS { ?x :q ?z { SELECT ?y { ?k :q ?v } } } }", ["b"]),
        # ?y is all that both sides name, and it is bound on one only, so nothing is removed
        ("SELECT ?x { ?x :p ?y MINUS { { SELECT ?y { ?k :q ?v } } } }", ["a", "b"]),
    ],
)
def test_minus_with_a_variable_that_a_sub_select_never_binds(
    query: str, expected: list[str], executor: Literal["rows", "columns"]
) -> None:
    engine = Engine(compile(query), executor=executor)
    stream = [event(":a :q 1", 1), event(":a :p 1", 2), event(":b :p 2", 3)]
    matches = [*engine.push_all(stream), *engine.close()]
    assert [m["x"].rsplit("/", 1)[-1] for m in matches] == expected


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_derived_triple_enters_its_stream_though_another_stream_had_it(executor: Literal["rows", "columns"]) -> None:
    program = compile(
        [
            "REGISTER STREAM <urn:b> AS CONSTRUCT { ?x <urn:q> ?y } WHERE { ?x <urn:p> ?y }",
            "SELECT ?x WHERE { STREAM <urn:b> { ?x <urn:q> ?y } }",
            "SELECT ?x WHERE { ?x <urn:q> ?y }",
        ]
    )
    engine = Engine(program, executor=executor)
    stream = [
        Event(t, t, (("<urn:x>", f"<urn:{p}>", "<urn:y>"),), "<urn:a>") for t, p in ((1, "p"), (1, "q"), (2, "p"))
    ]
    matches = [*engine.push_all(columns(stream)), *engine.close()]
    assert [(m.query, m.start_us) for m in matches if m.query != "<urn:b>"] == [
        ("q2", 1),
        ("q3", 1),
        ("q2", 2),
        ("q3", 2),
    ]


@pytest.mark.parametrize("drawn", ["RAND()", "STRUUID()", "BNODE()", 'BNODE("a")', "IF(RAND() < 0.5, 1, 2)"])
def test_what_is_drawn_differs_from_solution_to_solution(drawn: str) -> None:
    """Equal terms at another time are another solution."""
    query = f"SELECT ?x ?r WHERE {{ ?c <urn:p> ?x BIND ({drawn} AS ?r) }}"
    stream = [Event(t // 2, t, (("<urn:a>", "<urn:p>", '"1"'),)) for t in range(20)]
    rows, wide = Engine(query, executor="rows"), Engine(query, executor="columns")
    assert rule_executors(wide)[0].reason is None
    drawn_in = [[m.bindings["r"] for m in [*e.push_all(columns(stream)), *e.close()]] for e in (rows, wide)]
    assert drawn_in[0] == drawn_in[1]
    assert len(set(drawn_in[0])) == (2 if "IF" in drawn else 20)


def test_windows_see_the_graphs_of_events_in_columns() -> None:
    query = """SELECT ?g ?o FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT2S STEP PT2S]
        WHERE { WINDOW <urn:w> { GRAPH ?g { ?x <urn:p> ?o } } }"""
    events = [
        Event(n * SECOND, n * SECOND, (("<urn:x>", "<urn:p>", f'"{n}"'),), "<urn:s>", f"<urn:g{n}>") for n in (1, 2)
    ]
    assert columns(events).rows(1, 2).graph.to_pylist() == ["<urn:g2>"]
    expected = [m.row for m in run(query, events)]
    assert expected == [("<urn:g1>", '"1"'), ("<urn:g2>", '"2"')]
    assert [m.row for m in run(query, pa.Table.from_batches([batch_of(events)]))] == expected
