"""Runs on several cores beside runs on one: the same ids in the same order, and how much shorter they are.

    python -m benchmarks.cores [--events 1000000] [--cores 2] [--repeat 3] [--only TEXT] [--json FILE]

Files: W2 (prices of fifty companies) by format, read by other processes or by a thread.  Tables of the same events, in
rows: pairs of prices with a condition on their texts, which is most of the work, shared out by key and in turns.

``wall`` is the ratio of wall-clock times, which other programs on the machine distort.  ``work`` is what the ratio
would be without them: the processor time of one core over that of the thread that matches, or of all threads and
processes divided among the cores, whichever is more.  Medians of the repeats.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.files import FORMATS
from benchmarks.workloads import w2_stock
from benchmarks.workloads.common import PRICE
from etalis_py import Engine, compile
from etalis_py.engine.cores.choosing import driver_on_cores, engine_on_cores, sharing
from etalis_py.engine.program import Program
from etalis_py.events import Event
from etalis_py.streams import read_stream
from etalis_py.streams.columns.flat_form import batch_of

SLOW = 4
"""Programs whose conditions are dear have so many times fewer events."""
_SPELLED = "FILTER (CONTAINS(CONCAT(STR(?p), '-', STR(?q)), '7-77'))"
BY_KEY = f"""
SELECT ?c ?p ?q WHERE {{ {{ {{ ?c {PRICE} ?p }} SEQ {{ ?c {PRICE} ?q }} {_SPELLED} }} WITHIN PT250S }}"""
BY_TIME = f"""
SELECT ?p ?q WHERE {{ {{ {{ ?c {PRICE} ?p }} SEQ {{ ?d {PRICE} ?q }} {_SPELLED} }} WITHIN PT5S }}"""


@dataclass(frozen=True, slots=True)
class Case:
    """``given`` opens what the program runs over."""

    name: str
    program: Program
    given: Callable[[], Any]
    options: dict[str, Any]
    executor: str = "auto"


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds: of processor time in this thread, in the other threads and processes, and of wall-clock time."""

    own: float
    others: float
    wall: float

    def least(self, cores: int) -> float:
        """What all of them would take on so many cores that have nothing else to do."""
        return max(self.own, (self.own + self.others) / cores)


@dataclass(frozen=True, slots=True)
class Result:
    case: str
    matches: int
    one: float
    several: float
    work: float
    wall: float
    shared: str


def others() -> float:
    """Seconds of processor time in the other threads, and in the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime + time.process_time() - time.thread_time()


def run(case: Case, cores: int) -> tuple[Taken, list[str], str]:
    """One run from the opened input to the last match."""
    options: dict[str, Any] = {} if case.executor == "auto" else {"executor": case.executor}
    given = case.given()
    with read_stream(given, **case.options) as stream:
        engine = Engine(case.program, **options)
        own, before, begun = time.thread_time(), others(), time.perf_counter()
        shared = sharing(engine, stream, cores, given)
        if cores == 1:
            driver = driver_on_cores(type(shared)(), engine, stream)
        else:
            driver = driver_on_cores(shared, engine_on_cores(engine, shared, cores, case.program), stream)
        steps = [step.matches for step in driver.steps()]
        taken = Taken(time.thread_time() - own, others() - before, time.perf_counter() - begun)
    return taken, [match.id for matches in steps for match in matches], str(shared)


def measure(case: Case, cores: int, repeat: int) -> Result:
    run(case, 1)  # compiles anything not compiled yet
    ones: list[Taken] = []
    many: list[Taken] = []
    for _ in range(repeat):
        taken, expected, _ = run(case, 1)
        ones.append(taken)
        taken, ids, shared = run(case, cores)
        many.append(taken)
        if ids != expected:
            raise SystemExit(
                f"{case.name}: {len(ids)} matches on {cores} cores, which are not the {len(expected)} of one"
            )
    one, several = (statistics.median(t.least(n) for t in runs) for runs, n in ((ones, 1), (many, cores)))
    wall = statistics.median(t.wall for t in ones) / statistics.median(t.wall for t in many)
    return Result(case.name, len(expected), one, several, one / several, wall, shared)


def cases(events: int, folder: Path, only: str) -> list[Case]:
    """What is measured."""
    prices = w2_stock.events(events)
    stock = compile(w2_stock.QUERY, policy="recent")
    chosen = []
    for name, (ending, write, _, options) in FORMATS.items():
        if only in name:
            path = folder / f"{len(chosen)}.{ending}"
            write(prices, path)
            chosen.append(Case(name, stock, partial(Path, path), options))
    few = prices[: events // SLOW]
    for name, text in {"texts, by key": BY_KEY, "texts, by time": BY_TIME}.items():
        if only in name:
            chosen.append(Case(name, compile(text), partial(table, few), {}, "rows"))
    return chosen


def table(events: list[Event]) -> pa.Table:
    return pa.Table.from_batches([batch_of(events)])


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cores", description="runs on several cores beside one")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="", help="the cases whose name has this text")
    parser.add_argument("--json", help="also write the results to this file")
    options = parser.parse_args(arguments)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'':<22}{'matches':>9}{'one':>8}{'several':>9}{'work':>7}{'wall':>7}")
        for case in cases(options.events, Path(folder), options.only):
            r = measure(case, options.cores, options.repeat)
            results.append(r)
            print(
                f"{r.case:<22}{r.matches:>9,}{r.one:>7.2f}s{r.several:>8.2f}s{r.work:>7.2f}{r.wall:>7.2f}  {r.shared}"
            )
    print("the same ids in the same order")
    if options.json:
        record = {"benchmark": "cores", "cores": options.cores, "results": [asdict(r) for r in results]}
        Path(options.json).write_text(json.dumps(record) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
