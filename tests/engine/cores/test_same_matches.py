"""A run whose matching several processes share gives the matches of one engine, in the same order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from etalis_compiler.diagnostics import QueryError
from etalis_compiler.reach import furthest, reaches
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, Event, compile, event
from etalis_py.engine.cores import takers
from etalis_py.engine.cores.choosing import Sharing, engine_on_cores, in_kernels, sharing
from etalis_py.engine.cores.driver import SharedDriver
from etalis_py.engine.cores.ways import ByKey, ByTime, Way, way_of
from etalis_py.engine.driver import Driver
from etalis_py.kernel.position import Counters
from tests.draws import examples
from tests.engine.judge import engine_for, event_order, program_of
from tests.oracle import strategies
from tests.oracle.strategies import Case

DRAWN = st.one_of(
    strategies.core(),
    strategies.negation(),
    strategies.policies(),
    strategies.timed_policies(),
    strategies.aggregates(),
    strategies.relations(),
    strategies.timed(),
    strategies.recursion(),
    strategies.several_streams(),
    strategies.background(),
)


def told(driver: Driver) -> tuple[list[tuple[str, Any]], list[tuple[Any, ...]]]:
    """The ids of the matches of each step, and the late events."""
    matches, late = [], []
    for step in driver.steps():
        matches += [(match.id, match.end_us) for match in step.matches]
        late += [tuple(one) for one in step.late]
    return matches, late


def on_cores(engine: Engine, way: Way, program: Any, count: int, events: Sequence[Event], batch: int = 3) -> Any:
    """The same as ``told``, with so many processes."""
    shared = engine_on_cores(engine, Sharing(way=way), count, program)
    return told(SharedDriver(shared, events, batch=batch)), shared.counters


def counted(counters: Counters) -> tuple[int, ...]:
    return counters.events, counters.triples, counters.instants, counters.matches, counters.late


def shared_out(case: Case) -> tuple[Engine, Way] | None:
    """An engine and its way to share events out; none for a program that is refused, or that says why it has no way."""
    try:
        engine = engine_for(case)
    except QueryError:
        return None
    way = way_of(engine)
    if isinstance(way, str):
        assert way
        return None
    return engine, way


# Of the drawn programs half can be shared out, and a fifth by time: these tests draw so many more.
@given(DRAWN, st.integers(2, 3), st.integers(1, 5))
@settings(max_examples=examples(0.6))
def test_drawn_programs_that_can_be_shared_out(case: Case, count: int, batch: int) -> None:
    if (sharing_out := shared_out(case)) is None:
        return
    engine, way = sharing_out
    events = event_order(case.events)
    one = engine_for(case)
    expected = told(Driver(one, events, batch=batch))
    found, counters = on_cores(engine, way, program_of(case.program), count, events, batch)
    assert found == expected
    assert counted(counters) == counted(one.counters)


@given(DRAWN, st.integers(1, 3))
@settings(max_examples=examples(1.5))
def test_drawn_programs_in_turns(case: Case, group: int) -> None:
    """By time, also where a key could be found."""
    if (sharing_out := shared_out(case)) is None:
        return
    engine, _ = sharing_out
    reach = furthest(reaches(engine.rules), [output.query for output in engine.rules.outputs])
    if not reach.bounded:
        return
    events = event_order(case.events)
    one = engine_for(case)
    expected = told(Driver(one, events, batch=2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(takers, "GROUP", group)
        found, counters = on_cores(engine, ByTime(reach.back), program_of(case.program), 2, events, 2)
    assert found == expected
    assert counted(counters) == counted(one.counters)


SEQUENCE = "SELECT ?c ?x ?y { { ?c :p ?x } SEQ { ?c :q ?y } }"
NEAR = "SELECT ?a ?b { { { ?a :p ?x } SEQ { ?b :q ?y } } WITHIN 5 SECONDS }"


def some(count: int) -> list[Event]:
    return [event(f":c{n * 7 % 5} :{'pq'[n % 2]} {n}", n // 2) for n in range(count)]


@pytest.mark.parametrize("text", [SEQUENCE, NEAR])
@pytest.mark.parametrize("size", [0, 1, 60])
@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_batches_in_columns(text: str, size: int, executor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(takers, "GROUP", 20)
    program = compile(text)
    events = some(size)
    batches = [columns_of(events[first : first + 9]) for first in range(0, size, 9)]
    options = {"executor": executor}
    expected = [match.id for match in through(Engine(program, **options), batches)]
    engine = Engine(program, **options)
    way = way_of(engine)
    assert isinstance(way, Way)
    shared = engine_on_cores(engine, Sharing(way=way), 2, program)
    driver = SharedDriver(shared, batches)
    assert [match.id for step in driver.steps() for match in step.matches] == expected
    assert bool(expected) == (size == 60)


def columns_of(events: Sequence[Event]) -> Any:
    import pyarrow as pa

    from etalis_py.streams.columns.flat_form import batch_of

    return pa.record_batch(batch_of(events))


def through(engine: Engine, batches: Sequence[Any]) -> Iterator[Any]:
    for step in Driver(engine, batches).steps():
        yield from step.matches


def test_late_and_invalid_events_are_those_of_one_engine() -> None:
    program = compile(SEQUENCE)
    events = [*some(10), event(":c1 :p 1", 2), event(":c2 :p 1", 1), *some(20)[12:]]
    expected = told(Driver(Engine(program), events, batch=4))
    engine = Engine(program)
    found, counters = on_cores(engine, ByKey(("?c",)), program, 2, events, 4)
    assert found == expected
    assert len(found[1]) == counters.late == 2
    wrong = [*events, Event(9_000_000, 8_000_000, (("<urn:c>", "<urn:p>", '"1"'),))]
    with pytest.raises(ValueError, match="starts at 9000000 and ends before"):
        on_cores(Engine(program), ByKey(("?c",)), program, 3, wrong, 4)


def test_an_events_triples_go_to_the_shares_of_their_keys() -> None:
    """Positions differ by predicate: what is the object here is the subject there."""
    program = compile("SELECT ?c ?x ?y { { ?x :of ?c } SEQ { ?c :q ?y } }")
    way = way_of(Engine(program))
    assert isinstance(way, ByKey)
    assert sorted(way.positions.values()) == ["object", "subject"]
    events = [event(f":a :of :c{n % 4} . :c{n * 3 % 4} :q {n}", n) for n in range(40)]
    expected = told(Driver(Engine(program), events))
    assert expected[0]
    assert on_cores(Engine(program), way, program, 2, events)[0] == expected
    batches = [columns_of(events)]
    shared = engine_on_cores(Engine(program), Sharing(way=way), 2, program)
    found = [(m.id, m.end_us) for step in SharedDriver(shared, batches).steps() for m in step.matches]
    assert found == expected[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT5S] { WINDOW :w { ?x :p ?y } }", "windowed queries"),
        ("SELECT (COUNT(*) AS ?n) { ?a :p ?x }", "an aggregate without GROUP BY"),
        ("SELECT ?a ?b { { ?a :p ?x } SEQ { ?b :q ?y } }", "no variable is shared"),
        ("CONSTRUCT { ?x :r ?c } { { ?c :p ?x } SEQ { ?c :q ?y } } \n SELECT ?x { { ?x :r ?c } SEQ { ?x :s ?z } }", ""),
    ],
)
def test_a_program_that_cannot_be_shared_out_says_why(text: str, reason: str) -> None:
    way = way_of(Engine(text))
    assert isinstance(way, str)
    assert reason in way


def test_what_keeps_matching_on_one_core() -> None:
    engine = Engine(SEQUENCE, executor="rows")
    assert not in_kernels(engine)
    assert sharing(engine, [], 2).way == ByKey(("?c",))
    assert "which each process could read" in sharing(engine, iter([]), 2).matching
    assert "late events" in sharing(Engine(SEQUENCE, lateness=5), [], 2).matching
    assert "handing out" in sharing(Engine(SEQUENCE), [], 2).matching
    assert str(sharing(engine, [], 2, kept=True)) == "this run uses one core: the run is kept in a folder"
