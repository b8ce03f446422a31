"""Ten million events of five workloads, in rows: memory stays what it was after the first ones.

    python -m benchmarks.constant_memory [--events 10000000] [--only W2,W12]

The events of a workload are pushed again and again, each time later by as long as they last.  A line has the matches,
the events a second of processor time, and the resident memory after a tenth and at the end, beyond that of the events
before the first push.  The command fails if it has grown by more than a twentieth and eight megabytes in between.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Iterator, Sequence

import psutil

from benchmarks.engine import chosen, positive
from benchmarks.workloads.common import UNIT
from benchmarks.workloads.definition import Workload
from etalis_py import Engine, compile
from etalis_py.events import Event

NAMES = "W2,W5t,W7,W8,W12"
EVENTS, ROUND = 10_000_000, 20_000
MEGABYTE = 1 << 20
MOST = 1.05, 8 * MEGABYTE


def later(events: Sequence[Event], rounds: int) -> Iterator[list[Event]]:
    """The events once for each round, each round after the one before."""
    last = events[-1].end + UNIT
    for n in range(rounds):
        yield [Event(start + n * last, end + n * last, triples) for start, end, triples, _, _ in events]


def measure(workload: Workload, size: int) -> tuple[int, float, int, int]:
    """The matches, the processor seconds, and the bytes after a tenth of the events and at the end."""
    process = psutil.Process()
    engine = Engine(compile(workload.query), policy=workload.policy, executor="rows")
    rounds = max(10, size // ROUND)
    events = workload.events(max(1, size // rounds))
    matches, seconds, tenth = 0, 0.0, 0
    gc.collect()
    before = process.memory_info().rss
    for n, some in enumerate(later(events, rounds), 1):
        begun = time.process_time()
        matches += len(engine.push_all(some))
        seconds += time.process_time() - begun
        some.clear()  # else the events of two rounds would be there at once
        if n == rounds // 10:
            tenth = process.memory_info().rss - before
    return matches, seconds, tenth, process.memory_info().rss - before


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constant_memory", description="memory of long runs")
    parser.add_argument("--only", metavar="NAMES", default=NAMES, help=f"these workloads, by commas ({NAMES})")
    parser.add_argument("--events", type=positive, default=EVENTS, help=f"so many of each ({EVENTS:,})")
    options = parser.parse_args(arguments)
    grown = 0
    print(f"{'':6}{'events':>12}{'matches':>12}{'events/s':>12}{'MB after a tenth':>18}{'at the end':>12}")
    for workload in chosen(options.only):
        matches, seconds, tenth, end = measure(workload, options.events)
        grows = end > MOST[0] * tenth + MOST[1]
        print(
            f"{workload.name:6}{options.events:>12,}{matches:>12,}{options.events / seconds:>12,.0f}"
            f"{tenth / MEGABYTE:>18.1f}{end / MEGABYTE:>12.1f}{'  GROWS' if grows else ''}",
            flush=True,
        )
        grown += grows
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
