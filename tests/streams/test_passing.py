"""Time that passes without events: event time against the wall clock, and the end of a replay."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etalis_py import Engine, compile, event, run
from etalis_py.engine.driver import fall_due
from etalis_py.streams import Idle, PassingTime, Patience, Punctuation, read_stream, up_to
from etalis_py.streams.sources import with_ticks
from tests.processes import PATIENCE

SECOND = 1_000_000
ABSENT = "SELECT ?o { ?o :placed ?x } SEQ NOT { ?o :shipped ?y } WITHIN 5 SECONDS"
WINDOW = (
    "SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT5S STEP PT5S] WHERE { WINDOW :w { ?o :placed ?x } }"
)
ORDERS = [event(":a :placed 1", 1), event(":b :placed 1", 2), event(":a :shipped 1", 3), event(":c :placed 1", 9)]


class Clock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_after_a_silence_event_time_goes_on_from_the_newest_event() -> None:
    clock = Clock()
    passing = PassingTime(idle=1, clock=clock)
    assert passing.reached() is None
    passing.arrived(50 * SECOND)
    clock.now += 0.99
    assert passing.reached() is None
    clock.now += 0.01
    assert passing.reached() == 51 * SECOND
    clock.now += 9
    assert passing.reached() == 60 * SECOND


def test_the_lateness_is_taken_off() -> None:
    clock = Clock()
    passing = PassingTime(idle=1, lateness=4 * SECOND, clock=clock)
    passing.arrived(50 * SECOND)
    clock.now += 10
    assert passing.reached() == 56 * SECOND


def test_an_older_event_ends_the_silence_and_moves_no_time() -> None:
    clock = Clock()
    passing = PassingTime(idle=1, clock=clock)
    passing.arrived(50 * SECOND)
    clock.now += 2
    passing.arrived(49 * SECOND)
    assert passing.reached() is None
    clock.now += 1
    assert passing.reached() == 53 * SECOND


def test_it_wakes_when_something_is_due_but_not_before_the_silence() -> None:
    clock = Clock()
    passing = PassingTime(idle=1, lateness=2 * SECOND, clock=clock)
    assert passing.wake_at(5 * SECOND) is None
    passing.arrived(50 * SECOND)
    assert passing.wake_at(None) is None
    assert passing.wake_at(50 * SECOND) == pytest.approx(1002)
    assert passing.wake_at(45 * SECOND) == pytest.approx(1001)
    assert passing.wake_at(60 * SECOND) == pytest.approx(1012)


@given(st.integers(0, 10**15), st.integers(0, 10**9), st.floats(0, 10**6), st.integers(0, 10**8))
def test_who_wakes_then_is_not_too_early(newest: int, ahead: int, now: float, lateness: int) -> None:
    clock = Clock()
    clock.now = now
    passing = PassingTime(idle=0.5, lateness=lateness, clock=clock)
    passing.arrived(newest)
    wake = passing.wake_at(newest + ahead)
    assert wake is not None
    clock.now = wake
    reached = passing.reached()
    assert reached is not None
    assert reached >= newest + ahead


def test_deadlines_and_windows_fall_due_one_after_the_other() -> None:
    clock = Clock()
    for query, at in ((ABSENT, [6, 7]), (WINDOW, [5])):
        engine, passing = Engine(compile(query)), PassingTime(idle=1, clock=clock)
        for e in ORDERS[:2]:
            engine.push(e._replace(stream="<http://example.org/s>"))
            passing.arrived(e.end)
        clock.now += 60
        assert [m.end for matches in fall_due(engine, passing) for m in matches][: len(at)] == at


def test_the_engine_is_never_ahead_of_what_was_due() -> None:
    """After a long silence an event that is slower than the one before, but in order, is still in time."""
    clock = Clock()
    engine, passing = Engine(compile(ABSENT)), PassingTime(idle=1, clock=clock)
    engine.push(ORDERS[0])
    passing.arrived(SECOND)
    clock.now += 60
    assert [m.end for matches in fall_due(engine, passing) for m in matches] == [6]
    engine.push(event(":b :placed 1", 7))  # 54 seconds behind what the clock would say
    assert engine.dead_letters == []


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3_999_999)), max_size=12))
def test_an_event_within_the_lateness_is_never_late(arrivals: list[tuple[int, int]]) -> None:
    """Each event is delayed by less than the lateness; between two arrivals the clock may report what is due."""
    clock, base = Clock(), Clock().now
    engine, passing = (
        Engine(compile(ABSENT), lateness=4 * SECOND),
        PassingTime(idle=0.1, lateness=4 * SECOND, clock=clock),
    )
    late = 0
    for at, delay in sorted(arrivals, key=lambda pair: pair[0] * SECOND + pair[1]):
        clock.now = base + at + delay / SECOND
        for _ in fall_due(engine, passing):
            pass
        engine.push(event(":a :placed 1", at))
        passing.arrived(at * SECOND)
        late += len(engine.dead_letters)
    assert late == 0


def test_a_source_wakes_at_the_time_it_was_told() -> None:
    patience = Patience(30.0)
    stop = threading.Event()

    def nothing() -> Iterator[int]:
        stop.wait(2 * PATIENCE)
        yield 1

    began = time.monotonic()
    patience.wake = began + 0.2
    ticks = with_ticks(nothing(), patience)
    assert next(ticks) is None
    assert 0.2 <= time.monotonic() - began < PATIENCE
    stop.set()
    patience.wake = None
    assert next(ticks) == 1


def test_a_run_over_a_silent_stream_reports_what_falls_due() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb", buffering=0) as source, os.fdopen(writer, "wb", buffering=0) as sink:
        stream = read_stream(source, format="jsonl", idle=0.1)
        found = run(ABSENT.replace("5 SECONDS", "1 SECOND"), stream)
        sink.write(b'{"time": 7, "triples": ":a :placed 1 ."}\n')
        began = time.monotonic()
        match = next(found)
        assert time.monotonic() - began > 0.9
        assert (match.start, match.end) == (7, 8)


# --- the end ---


def test_up_to_a_time_what_falls_due_is_reported_and_nothing_later() -> None:
    assert [m.end for m in run(ABSENT, ORDERS)] == [7, 14]
    for until, ends in ((6, []), (7, [7]), (13, [7]), (14, [7, 14])):
        assert [m.end for m in run(ABSENT, ORDERS, until=until * SECOND)] == ends


def test_windows_up_to_a_time() -> None:
    events = [e._replace(stream="<http://example.org/s>") for e in ORDERS]
    ends = [m.end for m in run(WINDOW, events)]
    for until in range(20):
        assert [m.end for m in run(WINDOW, events, until=until * SECOND)] == [t for t in ends if t <= until]


@pytest.mark.parametrize("options", [{}, {"lateness": 10 * SECOND}, {"revise": 10 * SECOND}])
def test_events_after_the_end_are_as_if_they_were_not_there(options: dict) -> None:
    events = [ORDERS[1], ORDERS[3], ORDERS[0], ORDERS[2]] if options else ORDERS
    for until in range(12):
        before = [e for e in events if e.end <= until * SECOND]
        ids = [m.id for m in run(ABSENT, events, until=until * SECOND, **options)]
        assert ids == [m.id for m in run(ABSENT, before, until=until * SECOND, **options)]


def test_reading_ends_where_nothing_more_can_be_taken() -> None:
    items = iter([ORDERS[0], ORDERS[3], ORDERS[2], event(":d :p 1", 20), ORDERS[1]])
    assert list(up_to(items, 3 * SECOND, 7 * SECOND)) == [ORDERS[0], ORDERS[2]]
    assert list(items) == [ORDERS[1]]
    assert list(up_to([Idle(0), Punctuation(2), Punctuation(3), ORDERS[2]], 3)) == [Idle(0), Punctuation(2)]
