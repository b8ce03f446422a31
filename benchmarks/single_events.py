"""One event at a time: the latency of its matches, in rows, in columns and in a hopping window.

    python -m benchmarks.single_events [--only W1,W2] [--events 20000]

Columns are made for large batches; this shows what they cost if every event is a batch of its own.  Each event is
given to the engine alone, as an object in rows and as a batch of one row in columns, and its matches are fetched before
the next one.  The window (RSP-QL) has the averages of ten sensors, and is evaluated with every twentieth event.  The
answers are checked against the plain loop.  Times are processor time: other programs do not count.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks.columnar import ROWS, arrow_columns
from benchmarks.engine import chosen, positive
from benchmarks.harness import answers_of, differences, keep_to_one_core
from benchmarks.windows import MS, SLIDE, are_averages, average_query, averages, readings
from benchmarks.workloads.definition import Workload
from etalis_py import Engine, Match, compile
from etalis_py.events import Event

NAMES = "W1,W2,W4,W5"
MIDDLE, MOST = {"rows": 5.0}, {"columns": 1_000.0, "window": 100.0}
"""The bars in microseconds, for half of the events and for 99 of 100."""
FORMS = ("rows", "columns")
OVERLAP, SENSORS, APART = 10, 10, SLIDE * MS // 20
_WARM = 200


def measure(workload: Workload, form: str, events: Sequence[Event]) -> tuple[list[float], tuple[str, ...]]:
    """The microseconds of each event, and how the answers differ from the expected ones."""
    engine = Engine(compile(workload.query), policy=workload.policy, executor=form)
    taken, matches = _one_by_one(engine, *_given(engine, form, events))
    feed = workload.loop()
    return taken, differences(answers_of(workload, matches), feed(events) + feed(()))


def measure_window(size: int) -> tuple[list[float], tuple[str, ...]]:
    """The same for the hopping window."""
    events = readings(size, APART, SENSORS)
    engine = Engine(compile(average_query(OVERLAP)), executor="rows")
    taken, matches = _one_by_one(engine, engine.push, events)
    return taken, () if are_averages(matches, averages(events, OVERLAP)) else ("the averages are wrong",)


def _one_by_one(
    engine: Engine, push: Callable[[Any], Iterable[Match]], items: Iterable[Any]
) -> tuple[list[float], list[Match]]:
    """The microseconds of each item, but for the first ones, and all matches."""
    matches: list[Match] = []
    taken = []
    gc.collect()
    for item in items:
        before = time.thread_time_ns()
        found = list(push(item))
        taken.append((time.thread_time_ns() - before) / 1000)
        matches += found
    matches += engine.close()
    return taken[min(_WARM, len(taken) // 2) :], matches


def _given(
    engine: Engine, form: str, events: Sequence[Event]
) -> tuple[Callable[[Any], Iterable[Match]], Iterable[Any]]:
    """A function that takes an event, and the events in the form it takes."""
    if form == "rows":
        return engine.push, events
    (columns,) = arrow_columns(events)
    return engine.push_all, [columns.rows(n, n + 1) for n in range(len(columns))]


def _print(name: str, form: str, taken: list[float], differing: tuple[str, ...]) -> bool:
    """Print a line; returns whether an answer is wrong."""
    middle, most = statistics.median(taken), statistics.quantiles(taken, n=100)[98]
    asked = [f"{bars[form]:,.0f} asked" if form in bars else "" for bars in (MIDDLE, MOST)]
    shown = [f"({text})" if text else "" for text in asked]
    print(
        f"{name:<15}{middle:>8.1f} µs in the middle {shown[0]:<9}{most:>10.1f} for 99 of 100 {shown[1]:<13}"
        f"{max(taken):>10,.0f} at most",
        *differing,
        sep="\n  ",
    )
    return bool(differing)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.single_events", description="One event at a time.")
    parser.add_argument("--only", metavar="NAMES", default=NAMES, help=f"these workloads, by commas ({NAMES})")
    parser.add_argument("--events", type=positive, default=20_000, help=f"so many events, at most {ROWS:,} (20,000)")
    options = parser.parse_args(arguments)
    workloads = chosen(options.only)
    keep_to_one_core()
    wrong = 0
    for workload in workloads:
        events = workload.events(min(options.events, ROWS))
        for form in FORMS:
            wrong += _print(f"{workload.name} in {form}", form, *measure(workload, form, events))
    wrong += _print("hopping window", "window", *measure_window(options.events))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
