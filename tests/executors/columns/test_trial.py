"""Rules that columns evaluate row by row: the faster form is measured on the first batches, and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest

from etalis_py import Engine, Event, Program, compile
from etalis_py.executors.columns import trial as trials
from etalis_py.executors.columns.trial import Trial
from etalis_py.kernel.batch import Batch, InColumns, Records
from tests.executors.columns.judge import changing_early, rule_executors

XSD = "http://www.w3.org/2001/XMLSchema#"
CONCATENATED = "SELECT ?c (GROUP_CONCAT(DISTINCT ?x) AS ?y) WHERE { ?c <urn:p> ?x } WITHIN PT20S GROUP BY ?c"
RECORDS = "SELECT ?c ?x ?h { EVENT { ?c <urn:p> ?x ; <urn:q> ?y } BIND (HOURS(getENDTIME()) + ?y AS ?h) }"
Given = Callable[[list[Event]], list[Event] | InColumns]
"""A form in which events are given to an engine."""


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


def events(number: int, predicates: Sequence[str] = ("<urn:p>",)) -> list[Event]:
    """Two events an instant, with a triple of each predicate."""
    return [
        Event(t, t, tuple((f"<urn:c{n % 3}>", p, f'"{(n + i) % 7}"^^<{XSD}integer>') for i, p in enumerate(predicates)))
        for n in range(number)
        for t in [n // 2 * 1_000_000]
    ]


def in_flat_form(events: list[Event]) -> InColumns:
    return Batch(events, events[-1].end).columns


def as_records(events: list[Event]) -> InColumns:
    end = np.array([event.end for event in events])
    subjects, *objects = zip(*((e.triples[0][0], *(o for _, _, o in e.triples)) for e in events), strict=True)
    predicates = [p for _, p, _ in events[0].triples]
    columns = {p: pa.array(values) for p, values in zip(predicates, objects, strict=True)}
    return Records(end, end, pa.array(subjects), columns)


def as_they_are(events: list[Event]) -> list[Event]:
    return events


def portions(items: list[Event], size: int) -> Iterator[list[Event]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]


@pytest.fixture
def early() -> Iterator[None]:
    with changing_early():
        yield


@pytest.mark.parametrize("size", [10, 64, 1000])
@pytest.mark.parametrize("faster", [True, False])
@pytest.mark.parametrize(
    ("query", "form"), [(CONCATENATED, in_flat_form), (RECORDS, in_flat_form), (RECORDS, as_records)]
)
def test_the_answers_are_the_same_whichever_form_wins(
    early: None, monkeypatch: pytest.MonkeyPatch, clock: Clock, query: str, form: Given, faster: bool, size: int
) -> None:
    """An event may be one row or several, as its batch came."""
    program, items = (
        compile(query),
        events(300, ("<urn:p>", "<urn:q>", "<urn:r>") if query == RECORDS else ("<urn:p>",)),
    )
    engine = Engine(program, executor="auto")
    (executor,) = rule_executors(engine)
    take = executor._take

    def timed(batch: Batch) -> None:
        take(batch)
        clock.now += len(batch) * (2 if executor.in_columns != faster else 1)

    monkeypatch.setattr(executor, "_take", timed)
    found = [m.id for part in portions(items, size) for m in engine.push_all(form(part))]
    assert executor._trial is not None
    assert executor._trial.decided == executor.in_columns == faster
    assert [*found, *(m.id for m in engine.close())] == ids_in_rows(program, items)


@pytest.mark.parametrize("size", [10, 64, 1000])
def test_events_of_several_triples_all_count(early: None, size: int) -> None:
    program, items = compile(RECORDS), events(300, ("<urn:p>", "<urn:q>", "<urn:r>"))
    engine = Engine(program, executor="auto")
    found = [m.id for part in portions(items, size) for m in engine.push_all(part)]
    assert [*found, *(m.id for m in engine.close())] == ids_in_rows(program, items)


@pytest.mark.parametrize("least", [1, 15, 16, 299, 300, 900])
@pytest.mark.parametrize("form", [in_flat_form, as_records, as_they_are])
def test_a_divided_batch_is_whole(form: Given, least: int) -> None:
    """Its two parts are the instants of the batch, in order, and the second reaches as far as the batch."""
    items = events(300, ("<urn:p>", "<urn:q>", "<urn:r>"))
    given = form(items)
    batch = Batch(given, 10**9) if isinstance(given, list) else Batch(None, 10**9, given)
    some, others = batch.divided(least)
    assert len(some) >= min(least, len(batch))
    assert [*some.instants(), *others.instants()] == list(batch.instants())
    assert others.through == 10**9


def ids_in_rows(program: Program, items: list[Event]) -> list[str]:
    rows = Engine(program, executor="rows")
    return [m.id for m in [*rows.push_all(items), *rows.close()]]


def test_rules_that_kernels_run_are_not_tried(early: None) -> None:
    engine = Engine("SELECT ?x { ?c <urn:p> ?x FILTER (?x > 3) }", executor="auto")
    for part in portions(events(40), 10):
        engine.push_all(in_flat_form(part))
    (executor,) = rule_executors(engine)
    assert executor._trial is None
    assert executor.in_columns
