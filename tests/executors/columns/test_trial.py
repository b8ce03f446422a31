"""Rules that columns evaluate row by row: the faster form is measured on the first batches, and kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from etalis_py import Engine, Event, compile
from etalis_py.executors.columns import executor as executor_of_columns
from etalis_py.executors.columns import trial as trials
from etalis_py.executors.columns.trial import Trial
from etalis_py.kernel.batch import Batch, Columns
from tests.executors.columns.judge import rule_executors

XSD = "http://www.w3.org/2001/XMLSchema#"
CONCATENATED = "SELECT ?c (GROUP_CONCAT(DISTINCT ?x) AS ?y) WHERE { ?c <urn:p> ?x } WITHIN PT20S GROUP BY ?c"


class Clock:
    """Processor time that passes only when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def process_time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(trials, "time", clock)
    return clock


def taken(trial: Trial, clock: Clock, rows: int, seconds: float) -> None:
    columns = trial.in_columns
    trial.begin()
    clock.now += seconds
    trial.end(rows, columns=columns)


@pytest.mark.parametrize(("seconds", "decided"), [(1.0, True), (3.0, False)])
def test_the_form_that_took_less_time_is_kept(clock: Clock, seconds: float, decided: bool) -> None:
    trial = Trial()
    taken(trial, clock, trials.MEASURED, 2.0)
    assert trial.in_columns
    taken(trial, clock, trials.MEASURED, 100.0)  # loads kernels, and is not counted
    assert trial.decided is None
    taken(trial, clock, trials.MEASURED, seconds)
    assert (trial.decided, trial.in_columns) == (decided, decided)
    taken(trial, clock, trials.MEASURED, 1000.0)
    assert trial.decided == decided


def events(number: int) -> list[Event]:
    """Two events an instant."""
    return [
        Event(t, t, ((f"<urn:c{n % 3}>", "<urn:p>", f'"{n % 7}"^^<{XSD}integer>'),))
        for n in range(number)
        for t in [n // 2 * 1_000_000]
    ]


def portions(items: list[Event], size: int) -> Iterator[Columns]:
    for first in range(0, len(items), size):
        yield Batch(items[first : first + size], items[first].end).columns


@pytest.mark.parametrize("size", [10, 64, 1000])
@pytest.mark.parametrize("faster", [True, False])
def test_the_answers_are_the_same_whichever_form_wins(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, faster: bool, size: int
) -> None:
    monkeypatch.setattr(executor_of_columns, "ENOUGH", 1)
    monkeypatch.setattr(executor_of_columns, "MEASURED", 16)
    monkeypatch.setattr(trials, "MEASURED", 16)
    monkeypatch.setattr(executor_of_columns, "ready", lambda: True)
    program, items = compile(CONCATENATED), events(300)
    rows = Engine(program, executor="rows")
    expected = [m.id for m in [*rows.push_all(items), *rows.close()]]
    engine = Engine(program, executor="auto")
    (executor,) = rule_executors(engine)
    take = executor._take

    def timed(batch: Batch) -> None:
        take(batch)
        clock.now += len(batch) * (2 if executor.in_columns != faster else 1)

    monkeypatch.setattr(executor, "_take", timed)
    found = [m.id for part in portions(items, size) for m in engine.push_all(part)]
    assert executor._trial is not None
    assert executor._trial.decided == executor.in_columns == faster
    assert [*found, *(m.id for m in engine.close())] == expected


def test_rules_that_kernels_run_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor_of_columns, "ENOUGH", 1)
    monkeypatch.setattr(executor_of_columns, "ready", lambda: True)
    engine = Engine("SELECT ?x { ?c <urn:p> ?x FILTER (?x > 3) }", executor="auto")
    for part in portions(events(40), 10):
        engine.push_all(part)
    (executor,) = rule_executors(engine)
    assert executor._trial is None
    assert executor.in_columns
