"""An engine in which a step was interrupted says so, and never answers anything else than without the interrupt."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from etalis_py import BrokenEngine, Engine, EngineInUse, Event, LimitExceeded, Limits, QueryError, event
from etalis_py.events import UnexpectedRetraction
from etalis_py.kernel.stored import SnapshotError
from etalis_py.knowledge import KnowledgeError
from tests.draws import seeds
from tests.kernel.interrupting import KINDS, SECOND, draw_one, thing

PAIR = "SELECT ?x ?y { ?c :p ?x } SEQ { ?c :q ?y }"
CROSS = "SELECT ?x { ?a :p ?x . ?b :p ?y }"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", seeds(6))
def test_an_interrupt_between_any_two_instructions_changes_no_answer(kind: str, seed: int) -> None:
    """Either the step was not taken, or the engine says that it is broken; from then on the answers are the same."""
    wanted, found, done = draw_one(seed, kind)
    assert found == wanted, done


# --- a broken engine --------------------------------------------------------------------------------------------------


def many_at_once(size: int, time: int = 1) -> list[Event]:
    return [event(f":c{n} :p {n}", time) for n in range(size)]


def stopped_by_a_limit(**options: Any) -> Engine:
    engine = Engine(CROSS, limits=Limits(derivations=100), **options)
    with pytest.raises(LimitExceeded):
        engine.push_all([*many_at_once(20), event(":c :p 1", 2)])
    return engine


STEPS: dict[str, Callable[[Engine], object]] = {
    "push": lambda engine: engine.push(event(":c :p 1", 3)),
    "push_all": lambda engine: engine.push_all([event(":c :p 1", 3)]),
    "advance": lambda engine: engine.advance(5 * SECOND),
    "close": lambda engine: engine.close(),
    "update": lambda engine: engine.update("", [thing("a")]),
    "snapshot": lambda engine: engine.snapshot(),
    "take_journal": lambda engine: engine.take_journal(),
    "add": lambda engine: engine.add("SELECT ?a { ?a :r ?b }"),
    "remove": lambda engine: engine.remove("program1"),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("revise", [0, 60 * SECOND])
def test_no_step_is_taken_after_a_limit(step: str, revise: int) -> None:
    engine = stopped_by_a_limit(background=[], journal=True, revise=revise)
    for _ in range(2):
        with pytest.raises(BrokenEngine, match=r"push_all was interrupted by LimitExceeded: more than 100 solutions"):
            STEPS[step](engine)


def test_the_error_says_what_to_do() -> None:
    engine = stopped_by_a_limit()
    assert str(engine.broken).endswith(
        ": restore its last snapshot (restore) and give it the input since then again, or begin again with a new engine"
    )


def test_a_restored_engine_goes_on() -> None:
    engine = Engine([PAIR, CROSS], limits=Limits(derivations=100))
    engine.push(event(":c :p 1", 1))
    kept = engine.snapshot()
    with pytest.raises(LimitExceeded):
        engine.push_all([*many_at_once(20, 2), event(":c :q 2", 3)])
    engine.restore(kept)
    assert engine.broken is None
    assert [str(m) for m in engine.push(event(":c :q 2", 3)) + engine.close()] == [
        f"<q2 [1, 1] ?x={INTEGER.format(1)}>",
        f"<q1 [1, 3] ?x={INTEGER.format(1)}, ?y={INTEGER.format(2)}>",
    ]


INTEGER = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def test_a_snapshot_of_other_programs_leaves_it_broken() -> None:
    engine = stopped_by_a_limit()
    with pytest.raises(ValueError, match="no snapshot"):
        engine.restore(b"nothing")
    with pytest.raises(BrokenEngine, match="LimitExceeded"):
        engine.close()


def test_an_error_of_a_users_function_breaks_it() -> None:
    def listen(answer: object) -> None:
        raise ZeroDivisionError("in listen")

    query = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT5S] { WINDOW :w { ?x :p ?y } }"
    engine = Engine(query, listen=listen)
    engine.push(event(":a :p 1", 1))
    with pytest.raises(ZeroDivisionError):
        engine.push(event(":a :p 1", 11))
    with pytest.raises(BrokenEngine, match="push was interrupted by ZeroDivisionError: in listen"):
        engine.close()


def test_an_interrupted_change_of_the_background_needs_a_new_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(PAIR, background=[])
    kept = engine.snapshot()
    monkeypatch.setattr(type(engine), "renew", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.update("", [thing("a")])
    monkeypatch.undo()
    for step in (engine.close, lambda: engine.restore(kept)):
        with pytest.raises(BrokenEngine, match=r"update was interrupted by KeyboardInterrupt: make a new engine with"):
            step()


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


# --- what is refused breaks nothing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (lambda engine: engine.add("SELECT ?a { ?a"), QueryError),
        (lambda engine: engine.add(PAIR, name="program1"), ValueError),
        (lambda engine: engine.add(PAIR), ValueError),
        (lambda engine: engine.remove("program7"), KeyError),
        (lambda engine: engine.update("no graph", [thing("a")]), KnowledgeError),
        (lambda engine: engine.update("", [("a", "b", "c")]), KnowledgeError),
        (lambda engine: engine.update("", [thing("a")], at=1), ValueError),
        (lambda engine: engine.take_journal(), ValueError),
        (lambda engine: engine.restore(b"nothing"), ValueError),
        (lambda engine: engine.push(None), TypeError),
        (lambda engine: engine.push(event(":c :p 1", 2, retract=True)), UnexpectedRetraction),
        (lambda engine: engine.push(Event(3 * SECOND, 2 * SECOND, ())), ValueError),
    ],
)
def test_a_refused_step_changes_nothing(step: Callable[[Engine], object], error: type[Exception]) -> None:
    engine = Engine(PAIR, background=[])
    engine.push(event(":c :p 1", 1))
    before = engine.snapshot()
    with pytest.raises(error):
        step(engine)
    assert engine.broken is None
    assert engine.snapshot() == before


@pytest.mark.parametrize(
    "options", [{}, {"lateness": SECOND}, {"revise": 60 * SECOND}, {"executor": "columns"}, {"eager": True}]
)
def test_what_came_before_an_error_of_the_iterable_is_taken(options: dict[str, Any]) -> None:
    def events() -> Iterator[Event]:
        yield event(":c :p 1", 1)
        yield event(":c :q 2", 2)
        yield event(":c :q 3", 3)
        raise OSError("the source is gone")

    engine = Engine(PAIR, **options)
    with pytest.raises(OSError, match="the source is gone"):
        engine.push_all(events())
    assert [m["y"] for m in engine.push(event(":c :q 4", 4)) + engine.close()] == [2, 3, 4]


@pytest.mark.parametrize(
    "options", [{}, {"lateness": SECOND}, {"revise": 60 * SECOND}, {"executor": "columns"}, {"eager": True}]
)
def test_the_others_are_taken_with_an_invalid_event(options: dict[str, Any]) -> None:
    invalid = event(":c :q 9", 3)._replace(start=5 * SECOND)
    engine = Engine(PAIR, **options)
    with pytest.raises(ValueError, match="starts at 5000000 and ends before"):
        engine.push_all([event(":c :p 1", 1), invalid, event(":c :q 2", 4)])
    assert [m["y"] for m in engine.push(event(":c :q 4", 5)) + engine.close()] == [2, 4]


# --- one step at a time -----------------------------------------------------------------------------------------------


def test_a_step_from_a_second_thread_is_refused_while_one_is_under_way() -> None:
    inside, over = threading.Event(), threading.Event()

    def events() -> Iterator[Event]:
        yield event(":c :p 1", 1)
        inside.set()
        over.wait()
        yield event(":c :q 2", 2)

    engine = Engine(PAIR)
    thread = threading.Thread(target=lambda: engine.push_all(events()))
    thread.start()
    inside.wait()
    for step in (engine.snapshot, engine.close, lambda: engine.push(event(":c :q 2", 2))):
        with pytest.raises(EngineInUse, match="one step at a time"):
            step()
    over.set()
    thread.join()
    assert len(engine.close()) == 1


def test_a_function_that_a_step_calls_cannot_ask_for_another() -> None:
    refused: list[EngineInUse] = []

    def listen(answer: object) -> None:
        try:
            engine.snapshot()
        except EngineInUse as error:
            refused.append(error)

    query = "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT5S] { WINDOW :w { ?x :p ?y } }"
    engine = Engine(query, listen=listen)
    engine.push(event(":a :p 1", 1))
    assert len(engine.push(event(":a :p 1", 11))) == 1
    assert len(refused) == 1
    assert engine.broken is None


@pytest.fixture
def threads_that_alternate() -> Iterator[None]:
    """A thread that runs gives way after ten microseconds, not five milliseconds, in which the other finds its turn."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("threads_that_alternate")
def test_snapshots_beside_pushes_are_whole_or_refused() -> None:
    """Each snapshot that a second thread gets continues as the engine did."""
    events = [event(f":c{n % 7} :{'pq'[n % 2]} {n}", n) for n in range(1, 300)]
    whole = {m.id for m in Engine(PAIR, executor="rows").push_all(events)}
    engine, kept, done = Engine(PAIR, executor="rows"), [], threading.Event()

    def snapshots() -> None:
        while not done.is_set():
            try:
                kept.append(engine.snapshot())
            except EngineInUse:
                continue

    thread = threading.Thread(target=snapshots)
    thread.start()
    found = set()
    for e in events:
        while True:
            try:
                found |= {m.id for m in engine.push(e)}
                break
            except EngineInUse:
                continue
    done.set()
    thread.join()
    assert found == whole
    assert kept
    later = Engine(PAIR, executor="rows")
    for state in kept[:: max(1, len(kept) // 5)]:
        later.restore(state)
        assert {m.id for m in later.push_all([e for e in events if e.end > later.closed_at + 1])} <= whole


def test_state_of_another_engine_is_refused_and_the_engine_goes_on() -> None:
    known = Engine(PAIR, background=[], journal=True)
    known.update("", [thing("a")])
    journal, state = known.take_journal(), known.snapshot()
    engine = Engine(PAIR, journal=True)
    engine.push(event(":c :p 1", 1))
    for step in (lambda: engine.apply_journal(journal), lambda: engine.restore(state)):
        with pytest.raises(SnapshotError, match="belongs to an engine with background knowledge"):
            step()
    assert len(engine.push(event(":c :q 2", 2)) + engine.close()) == 1
