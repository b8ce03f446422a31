"""When a deadline reports: an event, ``advance``, and the end of the stream; and what follows from what it reports."""

from __future__ import annotations

from typing import Literal

import pytest

from etalis_py import Engine, Event, LimitExceeded, Limits, compile, event

SECOND = 1_000_000
Executor = Literal["rows", "columns"]
EXECUTORS: tuple[Executor, ...] = ("rows", "columns")
LATE = "SELECT ?o { ?o :placed ?x } SEQ NOT { ?o :shipped ?y } WITHIN 5 SECONDS"
ORDERS = [
    event(":a :placed 1", 1),
    event(":b :placed 1", 2),
    event(":a :shipped 1", 3),
    event(":c :placed 1", 9),
]


def shown(matches: object) -> list[tuple[str, object, object]]:
    return [(m["o"].rsplit("/", 1)[-1], m.start, m.end) for m in matches]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "options",
    [{}, {"eager": True}, {"lateness": SECOND}, {"explain": True}, {"journal": True}, {"executor": "columns"}],
)
def test_one_event_at_a_time_is_as_good_as_all(options: dict) -> None:
    engine = Engine(compile(LATE), **options)
    pushed = [m for e in ORDERS for m in engine.push(e)]
    assert shown([*pushed, *engine.close()]) == [("b", 2, 7), ("c", 9, 14)]
    whole = Engine(compile(LATE), **options)
    assert shown([*whole.push_all(ORDERS), *whole.close()]) == [("b", 2, 7), ("c", 9, 14)]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_it_reports_when_time_has_reached_it_without_an_event(executor: Executor) -> None:
    engine = Engine(compile(LATE), executor=executor)
    engine.push_all(ORDERS[:2])
    assert engine.advance(2 * SECOND) == []
    assert engine.next_due() == 6 * SECOND
    assert shown(engine.advance(6 * SECOND - 1)) == []
    assert shown(engine.advance(6 * SECOND)) == [("a", 1, 6)]
    assert engine.next_due() == 7 * SECOND
    assert shown(engine.advance(60 * SECOND)) == [("b", 2, 7)]
    assert engine.next_due() is None


@pytest.mark.parametrize("executor", EXECUTORS)
def test_what_comes_at_the_very_instant_is_in_time(executor: Executor) -> None:
    engine = Engine(compile(LATE), executor=executor)
    engine.push_all([event(":a :placed 1", 1), event(":b :placed 1", 1), event(":a :shipped 1", 6)])
    assert shown(engine.close()) == [("b", 1, 6)]


def test_snapshots_and_journals_at_every_event() -> None:
    first = Engine(compile(LATE), journal=True)
    start = first.snapshot()
    follower = Engine(compile(LATE), journal=True)
    follower.restore(start)
    found: list[object] = []
    for e in ORDERS:
        found += first.push(e)
        follower.apply_journal(first.take_journal())
        again = Engine(compile(LATE), journal=True)
        again.restore(first.snapshot())
        assert shown(again.close()) == shown(_copy(follower).close())
    assert shown([*found, *follower.close()]) == [("b", 2, 7), ("c", 9, 14)]


def _copy(engine: Engine) -> Engine:
    other = Engine(compile(LATE), journal=True)
    other.restore(engine.snapshot())
    return other


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_deadline_feeds_rules_windows_and_other_deadlines(executor: Executor) -> None:
    program = """
    CONSTRUCT { ?o :late 1 } WHERE { ?o :placed ?x } SEQ NOT { ?o :shipped ?y } WITHIN 5 SECONDS ;
    SELECT ?o { { ?o :late ?x } SEQ NOT { ?o :excused ?z } WITHIN 3 SECONDS }
    """
    events = [event(":a :placed 1", 1), event(":b :placed 1", 2), event(":b :excused 1", 9)]
    engine = Engine(compile(program), executor=executor)
    rows = [m for m in [*engine.push_all(events), *engine.close()] if m.triples is None]
    assert shown(rows) == [("a", 1, 9)]


def test_a_chain_without_end_is_stopped_at_the_end_of_the_stream() -> None:
    beat = "CONSTRUCT { ?o :beats 1 } WHERE { ?o :beats ?x } SEQ NOT { ?o :stops ?y } WITHIN 1 SECOND"
    engine = Engine(compile(beat), limits=Limits(rounds=20))
    engine.push(event(":a :beats 1", 1))
    assert len(engine.advance(4 * SECOND)) == 3
    with pytest.raises(LimitExceeded, match="end that chain"):
        engine.close()


def test_many_deadlines_that_outlast_the_stream_are_no_chain() -> None:
    engine = Engine(compile(LATE), limits=Limits(rounds=1))
    engine.push_all([event(f":o{n} :placed 1", n) for n in range(5)])
    assert shown(engine.close()) == [(f"o{n}", n, n + 5) for n in range(5)]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_months_are_counted_in_the_calendar(executor: Executor) -> None:
    day = 86_400 * SECOND
    query = compile("SELECT ?o { ?o :placed ?x } SEQ NOT { ?o :shipped ?y } WITHIN 1 MONTH")
    engine = Engine(query, executor=executor)
    triples = event(":a :placed 1", 0).triples
    engine.push(Event(30 * day, 30 * day, triples))  # 31 January 1970
    (match,) = engine.close()
    assert (match.start_us, match.end_us) == (30 * day, 58 * day)  # 28 February


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_engine_restored_within_the_instant_of_a_deadline_reports_it_there(executor: Executor) -> None:
    """What is derived at that instant meets the events of the same instant."""
    rule = "CONSTRUCT { ?o :late ?x } WHERE { { ?o :placed ?x } SEQ NOT { ?o :shipped ?y } WITHIN 2 SECONDS }"
    program = compile([rule, "SELECT ?o WHERE { { ?o :late ?x } EQUALS { ?o :checked ?y } }"])
    engine = Engine(program, executor=executor)
    pushed = [*engine.push(event(":a :placed 1", 1)), *engine.push(event(":a :checked 1", (1, 3)))]
    restored = Engine(program, executor=executor)
    restored.restore(engine.snapshot())
    assert [(m.query, m.start, m.end) for m in [*pushed, *restored.close()]] == [("q1", 1, 3), ("q2", 1, 3)]
