"""How a workload is measured: on one core, against a hand-written loop, and with every answer checked.

What is timed
- The events are made, the query compiled and its code generated before the clock starts.
- The engine is given all events by one ``push_all`` and is closed; its matches are made into a list of ``Match``
  objects.  The hand-written loop is given the same events and makes a list of tuples.
- Engine and loop run in turn, five times each by default, each time from scratch; the median counts.
- The figures are processor time: nothing here waits, so on an idle machine it equals wall-clock time, and on a busy one
  it excludes other programs.  The wall-clock time is recorded beside it.
- The process keeps to one core.  The garbage collector is on and examines everything, as it does for a user; it has
  just run when a measurement begins.

What is checked: in every run the engine's matches are the same multiset of ``(start, end, row)`` as the loop's.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.workloads.definition import Answer, Unit, Workload
from etalis_py import Engine, Match, compile
from etalis_py.events import Event


@dataclass(frozen=True, slots=True)
class Timing:
    """The seconds of the runs, in order: processor time, and wall-clock time."""

    processor: tuple[float, ...]
    passed: tuple[float, ...]

    @property
    def seconds(self) -> float:
        return statistics.median(self.processor)

    @property
    def spread(self) -> float:
        """(slowest − fastest) / median: how reliable the figure is."""
        return (max(self.processor) - min(self.processor)) / self.seconds

    @property
    def waiting(self) -> float:
        """Wall-clock time over processor time: 1 on an idle machine."""
        return sum(self.passed) / sum(self.processor)


@dataclass(frozen=True, slots=True)
class InColumns:
    """The same workload from Arrow to Arrow (``benchmarks.columnar``), beside a loop over numbers as the limit.

    ``few`` is the time with the smaller number of idle goals.
    """

    events: int
    matches: int
    engine: Timing
    limit: Timing | None
    few: Timing | None
    differences: tuple[str, ...]

    def figure(self, unit: Unit, runs: Timing) -> float:
        """The figure of these runs in a unit."""
        match unit:
            case "events/s":
                return self.events / runs.seconds
            case "seconds":
                return runs.seconds
        return runs.seconds / (self.few or runs).seconds

    @property
    def ratio(self) -> float | None:
        """The engine's time over the limit's."""
        return None if self.limit is None else self.engine.seconds / self.limit.seconds


@dataclass(frozen=True, slots=True)
class Result:
    """The measurements of a workload; ``differences`` says how the engine's answers differ from the loop's."""

    workload: Workload
    events: int
    matches: int
    engine: Timing
    loop: Timing
    differences: tuple[str, ...]
    few: Timing | None = None
    columns: InColumns | None = None

    @property
    def figure(self) -> float:
        """In the unit of the bar."""
        match self.workload.bar.unit:
            case "events/s":
                return self.events / self.engine.seconds
            case "seconds":
                return self.engine.seconds
            case "× loop":
                return self.ratio
        return self.engine.seconds / (self.few or self.engine).seconds

    @property
    def ratio(self) -> float:
        """The engine's time over the hand-written loop's."""
        return self.engine.seconds / self.loop.seconds

    @property
    def met(self) -> bool | None:
        """Whether the bar is met; None if the bar was meant for another number of events."""
        return self.workload.bar.met(self.figure) if self.events == self.workload.size else None


def keep_to_one_core() -> int | None:
    """Bind the process to the last core it may use; None if the system has no such call."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def answers_of(workload: Workload, matches: Iterable[Match]) -> list[Answer]:
    """The engine's matches as the loops give theirs."""
    return [(m.start_us, m.end_us, m.triples if workload.triples else m.row) for m in matches]


def differences(answers: Sequence[Answer], expected: Sequence[Answer], shown: int = 3) -> tuple[str, ...]:
    """How two multisets of answers differ; empty if they do not."""
    if answers == expected or sorted(answers) == sorted(expected):
        return ()
    a, b = Counter(answers), Counter(expected)
    extra, missing = list((a - b).elements()), list((b - a).elements())
    return (
        f"{len(answers):,} matches, expected {len(expected):,}: {len(extra):,} too many, {len(missing):,} missing",
        *(f"too many: {answer}" for answer in extra[:shown]),
        *(f"missing: {answer}" for answer in missing[:shown]),
    )


def measure(workload: Workload, size: int | None = None, repeat: int = 5) -> Result:
    """Measure one workload with ``size`` events (its own number if not given)."""
    events = workload.events(size or workload.size)
    goals = [0] if workload.idle is None else sorted(set(workload.live))
    engine: dict[int, list[tuple[float, float]]] = {n: [] for n in goals}
    loop: dict[int, list[tuple[float, float]]] = {n: [] for n in goals}
    wrong: tuple[str, ...] = ()
    count = 0
    for _ in range(repeat):
        for live in goals:
            taken, expected = _run_loop(workload, events, live)
            loop[live].append(taken)
            taken, answers = _run_engine(workload, events, live)
            engine[live].append(taken)
            wrong = wrong or differences(answers, expected)
            count = len(answers)
    few = timing(engine[goals[0]]) if len(goals) > 1 else None
    return Result(workload, len(events), count, timing(engine[goals[-1]]), timing(loop[goals[-1]]), wrong, few)


def _run_loop(workload: Workload, events: list[Event], live: int) -> tuple[tuple[float, float], list[Answer]]:
    feed = workload.loop()
    gc.collect()
    if workload.idle is not None:
        feed(workload.idle(live))
    processor, passed = time.process_time(), time.perf_counter()
    answers = feed(events)
    answers += feed(())
    taken = time.process_time() - processor, time.perf_counter() - passed
    return taken, answers


def _run_engine(workload: Workload, events: list[Event], live: int) -> tuple[tuple[float, float], list[Answer]]:
    engine = Engine(compile(workload.query), policy=workload.policy, background=workload.knowledge())
    gc.collect()
    if workload.idle is not None:
        engine.push_all(workload.idle(live))
    processor, passed = time.process_time(), time.perf_counter()
    matches = list(engine.push_all(events))
    matches += engine.close()
    taken = time.process_time() - processor, time.perf_counter() - passed
    return taken, answers_of(workload, matches)


def timing(runs: list[tuple[float, float]]) -> Timing:
    return Timing(tuple(processor for processor, _ in runs), tuple(passed for _, passed in runs))
