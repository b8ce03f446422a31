"""Running one case in rows and in columns: the same matches with the same ids, in the same order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

from etalis_py import Engine, Event, compile
from etalis_py.engine.executor_choice import windows_in_rows
from etalis_py.executors.columns import executor as executor_of_columns
from etalis_py.executors.columns import trial
from etalis_py.executors.columns.executor import ColumnExecutor
from etalis_py.executors.columns.kernels.goals import HIGH, LOW
from etalis_py.executors.columns.open_runs import OpenRunOperator
from etalis_py.executors.columns.runs import RunOperator
from etalis_py.executors.columns.window_executor import ColumnWindowExecutor
from etalis_py.kernel.batch import Batch
from tests.draws import is_quick
from tests.executors.columns.keyed_events import drawn

EVERYTHING = 10**9
FEW_AT_ONCE = (1, 1, 2, 1, 7, 2, 20)
"""One event after another, then a few at once, again and again: each size follows, and is followed by, another."""

Size = int | Sequence[int]
"""So many events at once, or so many, one after another, again and again."""

SIZES: tuple[Size, ...] = (FEW_AT_ONCE, EVERYTHING)
Making = Callable[[str], Engine]
"""Makes an engine of the case with the executor that is named."""


def batches(events: Iterable[Event], size: Size) -> Iterator[list[Event]]:
    """Batches of so many events; an instant may be cut."""
    sizes, left = cycle([size] if isinstance(size, int) else size), iter(events)
    while some := list(islice(left, next(sizes))):
        yield some


def in_columns(engine: Engine, events: Iterable[Event], size: Size) -> list[dict[str, Any]]:
    """The matches when batches come in columns."""
    matches = []
    for batch in batches(events, size):
        matches += [m.to_dict() for m in engine.push_all(Batch(batch, batch[-1].end).columns)]
        count_goals(engine)
    return [*matches, *(m.to_dict() for m in engine.close())]


def count_goals(engine: Engine) -> None:
    """As many goals wait as stand in the buckets."""
    for executor in rule_executors(engine):
        for node, side, waiting in executor._columns.stores() if executor._columns is not None else ():
            buckets = waiting.store.buckets
            assert waiting.store.live() == (buckets[:, HIGH] - buckets[:, LOW]).sum(), (node, side)


def in_turn(making: Making, events: Iterable[Event], size: Size) -> list[dict[str, Any]]:
    """The matches when batches come in columns and as events by turns, with a snapshot between engines each time."""
    engine = making("auto")
    matches = []
    for number, batch in enumerate(batches(events, size)):
        given = Batch(batch, batch[-1].end).columns if number % 3 else batch
        matches += [m.to_dict() for m in engine.push_all(given)]
        snapshot = engine.snapshot()
        engine = making(("columns", "rows", "auto")[number % 3])
        engine.restore(snapshot)
    return [*matches, *(m.to_dict() for m in engine.close())]


@contextmanager
def changing_early() -> Iterator[None]:
    """An executor that chooses the form by itself goes over to columns at once, and measures a few rows of a batch."""
    with (
        patch.object(executor_of_columns, "ENOUGH", 1),
        patch.object(executor_of_columns, "MEASURED", 16),
        patch.object(trial, "MEASURED", 16),
        patch.object(executor_of_columns, "ready", lambda: True),
    ):
        yield


def _table(engine: Engine, events: Any) -> list[dict[str, Any]]:
    """The matches of a SELECT that is alone, as a table of Arrow."""
    matches = engine.push_all(events)
    if [output.form for output in engine.outputs] != ["select"]:
        return []
    rows: list[dict[str, Any]] = matches.to_arrow().to_pylist()
    return rows


def reason_for_rows(engine: Engine) -> str | None:
    """Why some rules of an engine have no columnar form."""
    reasons = (reason for executor in rule_executors(engine) for reason in executor.division.reasons.values())
    return next((reason for reason in reasons if reason is not None), None)


def rule_executors(engine: Engine) -> list[ColumnExecutor]:
    """The executors of an engine's rules."""
    executors = [executor for _, executor in engine._rule_stages]
    assert all(isinstance(executor, ColumnExecutor) for executor in executors)
    return executors  # type: ignore[return-value]


def agree(making: Making, events: list[Event] | tuple[Event, ...], sizes: Sequence[Size] = SIZES) -> str | None:
    """Rows and columns report the same, however the input is cut; the reason where nothing has a columnar form."""
    reason = next((executor.reason for executor in rule_executors(making("columns"))), None)
    if reason is not None:
        return reason
    rows = making("rows")
    tables = _table(rows, events), _table(making("columns"), Batch(events, events[-1].end if events else 0).columns)
    assert repr(tables[0]) == repr(tables[1]), "as tables"  # where NaN is itself
    same_reports(making, events, sizes)
    return None


def same_reports(making: Making, events: list[Event] | tuple[Event, ...], sizes: Sequence[Size] = SIZES) -> None:
    """The same, but not as tables; a quick look takes the last two sizes."""
    rows = making("rows")
    expected = [m.to_dict() for m in [*rows.push_all(events), *rows.close()]]
    for size in sizes[-2:] if is_quick() else sizes:
        actual = in_columns(making("columns"), events, size)
        assert actual == expected, f"in batches of {size}: {actual} instead of {expected}"
    assert in_turn(making, events, FEW_AT_ONCE) == expected, "when rows and columns take turns"
    with changing_early():
        assert in_columns(making("auto"), events, EVERYTHING) == expected, "when the executor chooses the form"
        auto = making("auto")
        assert [m.to_dict() for m in [*auto.push_all(events), *auto.close()]] == expected, "when it is given events"


def all_in_columns(text: str, streams: Iterable[Iterable[Event]]) -> None:
    """Columns run all of a query and report what rows report, also where the two take turns."""
    program = compile(text)
    assert reason_for_rows(Engine(program, executor="columns")) is None
    for events in streams:
        same_reports(lambda name: Engine(program, executor=name), list(events))


def run_operator(engine: Engine) -> OpenRunOperator | RunOperator:
    """The operator of an engine's REPEAT."""
    (executor,) = rule_executors(engine)
    assert executor._columns is not None
    operators = executor._columns._operators.values()
    (operator,) = (o for o in operators if isinstance(o, OpenRunOperator | RunOperator))
    return operator


def in_columns_after_each_part(text: str, other: str) -> list[bool]:
    """Whether columns run a REPEAT after each third of a stream; in the second, elements overlap.

    There an element has the value ``other``, too.  Matches are always those of rows.
    """
    program = compile(text)
    engine, rows = Engine(program, executor="columns"), Engine(program, executor="rows")
    events = list(drawn(2, 180, "apart"))
    at = next(i for i in range(90, 120) if events[i].triples[0][1] == "<urn:x:p>")
    events.insert(at, events[at]._replace(triples=((*events[at].triples[0][:2], other),)))
    fast = []
    for part in (events[:60], events[60:120], events[120:]):
        expected = [m.to_dict() for m in rows.push_all(part)]
        assert [m.to_dict() for m in engine.push_all(Batch(part, part[-1].end).columns)] == expected
        fast.append(run_operator(engine).fast)
    return fast


def windows_of(engine: Engine) -> ColumnWindowExecutor:
    """The executor of an engine's windows."""
    (executor,) = engine._windows
    assert isinstance(executor, ColumnWindowExecutor)
    return executor


def windows_agree(text: str, events: list[Event]) -> None:
    """Columns answer windows as rows do, are due at the same time, and count the same."""
    asked = compile(text)
    assert agree(lambda executor: Engine(asked, executor=executor), events) is None
    rows, columns = Engine(asked, executor="rows"), Engine(asked, executor="columns")
    rows.push_all(events)
    columns.push_all(Batch(events, 0).columns)
    assert columns.next_due() == rows.next_due()
    assert columns.counters.kept().items == rows.counters.kept().items
    rows.close()
    columns.close()
    for name in ("events", "triples", "evaluations", "unrouted", "outside", "matches"):
        assert getattr(columns.counters, name) == getattr(rows.counters, name), name
    assert list(columns.warnings) == list(rows.warnings)


def reason_of(engine: Engine) -> str | None:
    """Why an engine's windows are in rows."""
    (executor,) = engine._windows
    chosen = windows_in_rows(executor.plans, engine.options)
    assert isinstance(executor, ColumnWindowExecutor) == (chosen is None)
    return windows_of(engine).reason if chosen is None else chosen


def most_run_in_columns(
    cases: SearchStrategy[Any], count: int, floor: float, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of so many drawn windowed programs, the same in each run, at least this share is answered in columns to the end.

    Prints the share, and why the others are not.
    """
    reasons: Counter[str | None] = Counter()

    @settings(max_examples=count, phases=[Phase.generate], derandomize=True, suppress_health_check=list(HealthCheck))
    @given(cases)
    def draw(case: Any) -> None:
        engine = Engine(compile(case.text), executor="columns")
        engine.push_all(Batch(case.events, 0).columns)
        reasons[reason_of(engine)] += 1

    draw()
    share = reasons[None] / reasons.total()
    with capsys.disabled():
        print(f"\n{reasons[None]} of {reasons.total()} drawn {what} run in columns ({share:.0%})")
        print(*(f"  {count:3} {reason}" for reason, count in reasons.most_common() if reason), sep="\n")
    assert share >= floor, reasons.most_common()
