"""One event at a time: the latency of its matches, in rows and in columns.

    python -m benchmarks.single_events [--only W1,W2] [--events 20000]

Columns are made for large batches; this shows what they cost if every event is a batch of its own.  Each event is
given to the engine alone, as an object in rows and as a batch of one row in columns, and its matches are fetched before
the next one.  The answers are checked against the plain loop.  Times are wall-clock.
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
from benchmarks.workloads.definition import Workload
from etalis_py import Engine, Match, compile
from etalis_py.events import Event

NAMES = "W1,W2,W4,W5"
FORMS = ("rows", "columns")
BAR_MS = 1.0
"""In columns, for 99 of 100 events."""
_WARM = 200


def measure(workload: Workload, form: str, events: Sequence[Event]) -> tuple[list[float], tuple[str, ...]]:
    """The milliseconds of each event, and how the answers differ from the expected ones."""
    engine = Engine(compile(workload.query), policy=workload.policy, executor=form)
    push, items = _given(engine, form, events)
    matches: list[Match] = []
    taken = []
    gc.collect()
    for item in items:
        before = time.perf_counter()
        found = list(push(item))
        taken.append(1e3 * (time.perf_counter() - before))
        matches += found
    matches += engine.close()
    feed = workload.loop()
    return taken[min(_WARM, len(taken) // 2) :], differences(answers_of(workload, matches), feed(events) + feed(()))


def _given(
    engine: Engine, form: str, events: Sequence[Event]
) -> tuple[Callable[[Any], Iterable[Match]], Iterable[Any]]:
    """A function that takes an event, and the events in the form it takes."""
    if form == "rows":
        return engine.push, events
    (columns,) = arrow_columns(events)
    return engine.push_all, [columns.rows(n, n + 1) for n in range(len(columns))]


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
            taken, differing = measure(workload, form, events)
            cut = statistics.quantiles(taken, n=100)[98]
            asked = f" (at most {BAR_MS:.0f} asked)" if form == "columns" else ""
            print(
                f"{workload.name} in {form:<7}: {statistics.median(taken):.3f} ms in the middle, "
                f"{cut:.3f} for 99 of 100{asked}, {max(taken):.1f} at most",
                *differing,
                sep="\n  ",
            )
            wrong += bool(differing)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
