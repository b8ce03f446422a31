"""Journals that columns write: whoever catches up by them goes on with the same matches, in columns or in rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import pyarrow as pa
import pytest
from etalis_compiler.diagnostics import QueryError
from hypothesis import given, settings

from etalis_py import Engine, Event, compile
from etalis_py.engine import inputs
from etalis_py.executors.columns import executor
from etalis_py.kernel.batch import Batch
from tests.draws import examples
from tests.engine.judge import engine_for
from tests.executors.columns.judge import EVERYTHING, batches, rule_executors
from tests.oracle import strategies
from tests.oracle.strategies import Case

Making = Callable[[str], Engine]
SECOND = 1_000_000


@pytest.fixture(autouse=True)
def _eager(forgetful: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few goals are read back into columns."""
    monkeypatch.setattr(executor, "ENOUGH", 1)
    monkeypatch.setattr(executor, "ready", lambda: True)


def ids_by_turns(making: Making, events: Iterable[Event], size: int) -> list[str]:
    """One engine takes a batch and two others, in columns and in rows, catch up; then another one is the first.

    Every fourth time a new engine begins from a snapshot, with the journal after it.
    """
    engines = [making("columns"), making("columns"), making("rows")]
    ids: list[str] = []
    for number, batch in enumerate(batches(events, size)):
        leader, *others = engines
        if number % 4 == 3:
            leader.forget_journal()
            others[0] = making("columns")
            others[0].restore(leader.snapshot())
        given = batch if number % 5 == 4 else Batch(batch, batch[-1].end).columns
        ids += [match.id for match in leader.push_all(given)]
        journal = leader.take_journal()
        for other in others:
            other.apply_journal(journal)
        engines = [*others, leader]
    return ids + [match.id for match in engines[0].close()]


@pytest.mark.parametrize("group", sorted(strategies.ALL))
def test_whoever_catches_up_goes_on_with_the_same_matches(group: str) -> None:
    @settings(max_examples=examples(2 / 15))
    @given(strategies.ALL[group]())
    def test(case: Case) -> None:
        try:
            rows = engine_for(case, executor="rows")
        except QueryError:
            return
        expected = [match.id for match in [*rows.push_all(case.events), *rows.close()]]
        for size in (1, 2, 7, EVERYTHING):
            found = ids_by_turns(lambda name: engine_for(case, executor=name, journal=True), case.events, size)
            assert found == expected, f"in batches of {size}"

    test()


RISING = "SELECT ?x ?y WHERE { { ?c <urn:p> ?x } SEQ { ?c <urn:p> ?y } FILTER (?x < ?y) }"


def prices(*numbers: int) -> list[Event]:
    xsd = "http://www.w3.org/2001/XMLSchema#integer"
    return [Event(n * SECOND, n * SECOND, (("<urn:c>", "<urn:p>", f'"{p}"^^<{xsd}>'),)) for n, p in enumerate(numbers)]


def columns_of(events: list[Event]) -> object:
    return Batch(events, events[-1].end).columns


def journaling() -> Engine:
    return Engine(compile(RISING, policy="recent"), policy="recent", executor="columns", journal=True)


def test_what_comes_and_goes_between_two_journals_is_not_written() -> None:
    """A hundred pairs of prices, each lower than the one before: the first of a pair is used up by the second.

    The very last price is in the open instant.
    """
    engine = journaling()
    falling = [price for n in range(100, 0, -1) for price in (2 * n - 1, 2 * n)]
    engine.push_all(columns_of(prices(*falling)))
    [told] = [rule_executors(engine)[0].journal()[0]]
    assert [(kind, len(goals)) for kind, _, _, goals in told] == [("+=", 100)]
    assert rule_executors(engine)[0].journal()[0] == []


def test_goals_from_before_are_told_to_be_gone_and_small_batches_cost_little() -> None:
    engine = journaling()
    events = prices(*range(5000, 0, -1), 4998, 3, 0, 0)
    engine.push_all(columns_of(events[:5000]))
    whole = len(engine.take_journal())
    engine.push_all(columns_of(events[5000:]))
    told = rule_executors(engine)[0].journal()[0]
    assert [(kind, len(goals)) for kind, _, _, goals in told] == [("-=", 1), ("+=", 3)]
    assert len(engine.take_journal()) < whole / 20
    assert rule_executors(engine)[0].form == "columns"


def test_goals_go_from_columns_to_columns_without_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, other = journaling(), journaling()
    engine.push_all(columns_of(prices(*range(5000, 0, -1))))
    monkeypatch.setattr(executor.ColumnExecutor, "_fill", lambda self, columns: None)
    other.restore(engine.snapshot())
    another = Engine(compile(RISING, policy="recent"), policy="recent", journal=True)
    another.apply_journal(engine.take_journal())
    for one in (engine, other, another):
        assert rule_executors(one)[0].form == "columns"
        assert one.counters.goals == 4999


def test_goals_are_restored_into_rows_where_a_small_batch_comes_next(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = journaling()
    engine.push_all(columns_of(prices(*range(5000, 0, -1))))
    data = engine.snapshot()
    other = Engine(compile(RISING, policy="recent"), policy="recent", journal=True)
    with other.into_rows():
        other.restore(data)
    assert rule_executors(other)[0].form == "rows"
    assert other.counters.goals == engine.counters.goals == 4999
    last = [Event(6000 * SECOND, 6000 * SECOND, triples) for _, _, triples, *_ in prices(6000)]
    ids = [[m.id for m in [*each.push_all(last), *each.close()]] for each in (engine, other)]
    assert ids[0] == ids[1] != []
    again = Engine(compile(RISING, policy="recent"), policy="recent", journal=True)
    again.restore(data)
    assert rule_executors(again)[0].form == "columns"


@pytest.mark.parametrize("policy", ["recent", "chronological"])
def test_an_engine_that_took_goals_itself_is_told_that_they_are_gone(policy: str) -> None:
    """What is only shown has a number of its own wherever it comes, so goals are found by its spelling."""
    draw = random.Random(4)
    kinds = [f"<urn:{n}>" for n in range(9)]
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    stream = [
        Event(n * SECOND, n * SECOND, ((draw.choice(kinds), "<urn:p>", number.format(draw.randrange(99))),))
        for n in range(600)
    ]
    program = compile(RISING, policy=policy)
    rows = Engine(program, policy=policy, executor="rows")
    expected = [match.id for match in [*rows.push_all(stream), *rows.close()]]
    engines = [Engine(program, policy=policy, executor="columns", journal=True) for _ in range(3)]
    ids: list[str] = []
    for first in range(0, len(stream), 100):
        leader, *others = engines
        some = stream[first : first + 100]
        times = pa.array([event.end for event in some], pa.int64())
        terms = [pa.array(column) for column in zip(*(event.triples[0] for event in some), strict=True)]
        given = inputs.columns_of(pa.record_batch([times, times, *terms], ["end", "start", "s", "p", "o"]))
        ids += [match.id for match in leader.push_all(given)]
        journal = leader.take_journal()
        for other in others:
            other.apply_journal(journal)
        engines = [*others, leader]
    ids += [match.id for match in engines[0].close()]
    assert ids == expected
