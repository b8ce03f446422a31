"""A program of the server: what falls due while its stream is silent."""

from __future__ import annotations

import time

from etalis_py import Event, compile, event
from etalis_py.cli.runner import EngineRunner

SECOND = 1_000_000
ABSENT = "SELECT ?o WHERE { { ?o :placed ?x } SEQ NOT { ?o :shipped ?y } WITHIN 1 SECOND }"


def placed(end: int) -> Event:
    return Event(end, end, event(":a :placed 1", 0).triples)


def test_an_absence_is_reported_when_it_said_it_would_be() -> None:
    runner = EngineRunner(compile(ABSENT), None, "/orders/")
    assert runner.waits() is None
    now = time.time_ns() // 1000
    runner.push(placed(now))
    assert runner.idle() == []
    waits = runner.waits()
    assert waits is not None
    assert 0.9 < waits <= 1.1  # the deadline, and a twentieth of a second for what takes longer to be stored
    time.sleep(waits)
    (match,) = runner.idle()
    assert match.end_us == now + SECOND
    assert runner.waits() is None


def test_a_recorded_stream_only_moves_with_its_events() -> None:
    runner = EngineRunner(compile(ABSENT), None, "/orders/")
    runner.push(placed(100 * SECOND))
    assert runner.idle() == []
    assert runner.waits() is None
    assert [m.end_us for m in runner.push(placed(200 * SECOND))] == [101 * SECOND]
