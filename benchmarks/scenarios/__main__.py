"""Scenarios in rows, in columns, and in SQL, each answer checked against a plain program.

    python -m benchmarks.scenarios [--events N] [--repeat N] [--only N5,funnel] [--json FILE]

A line has the events a second of the plain program, of rows, of columns and of DuckDB (``pip install duckdb``), then
in which shape SQL says it.  The data are Arrow batches, for DuckDB a complete table in memory; all have one thread, and
times are processor times, medians, without compiling the query.  The bar is a million events a second in columns, but
where about each event has a match.  The command fails if an answer is wrong; a missed bar is only printed, with what
``explain`` says of large batches.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeVar

from benchmarks.columnar import ROWS, spelled
from benchmarks.harness import differences
from benchmarks.scenarios import SCENARIOS
from benchmarks.scenarios.definition import Scenario
from benchmarks.scenarios.in_sql import QUERIES, answered_in_sql, rows_of
from benchmarks.workloads.definition import Answer
from etalis_py import Engine, Match, Program, compile
from etalis_py.events import Event
from etalis_py.kernel.batch import Batch, Columns
from etalis_py.kernel.matches import Matches

T = TypeVar("T")

BAR = 1_000_000
EVENTS = 200_000
Executor = Literal["rows", "columns"]
EXECUTORS: tuple[Executor, ...] = ("rows", "columns")


@dataclass(frozen=True, slots=True)
class Measured:
    """Events a second of the plain program, of rows, of columns and of SQL; ``wrong`` says how their answers differ."""

    name: str
    title: str
    events: int
    matches: int
    plain: float
    rows: float
    columns: float
    sql: float | None
    explained: str
    wrong: tuple[str, ...]


def batches(events: Sequence[Event]) -> list[Columns]:
    """The events in the flat form, as Arrow gives them."""
    return [Batch(events[first : first + ROWS], 0).columns for first in range(0, len(events), ROWS)]


def measure(scenario: Scenario, size: int, repeat: int) -> Measured:
    """Measure a scenario over so many events."""
    events = scenario.events(size)
    parts = batches(events)
    program = compile(scenario.query)
    plain, expected = timed(lambda: scenario.answers(events), repeat)
    rates: dict[Executor, float] = {}
    wrong: list[str] = []
    for executor in EXECUTORS:
        seconds, matches = timed(partial(answered, program, parts, executor), repeat)
        rates[executor] = size / seconds
        wrong += differences([answer_of(match) for some in matches for match in some], expected)
    sql: float | None = None
    if find_spec("duckdb") is not None:
        seconds, answers = answered_in_sql(QUERIES[scenario.name], rows_of(events), repeat)
        sql = size / seconds
        wrong += differences(answers, expected)
    return Measured(
        scenario.name,
        scenario.title,
        size,
        len(expected),
        size / plain,
        rates["rows"],
        rates["columns"],
        sql,
        " ".join(str(program.explain()).partition("large batches\n")[2].partition("\n\n")[0].split()),
        tuple(wrong),
    )


def answer_of(match: Match) -> Answer:
    """A match as the plain programs have it."""
    assert match.start_us is not None
    assert match.end_us is not None
    return match.start_us, match.end_us, match.row


def answered(program: Program, parts: Sequence[Columns], executor: Executor) -> list[Matches]:
    """All matches, spelled."""
    engine = Engine(program, executor=executor)
    return [*(spelled(engine.push_all(part)) for part in parts), spelled(engine.close())]


def timed(call: Callable[[], list[T]], repeat: int) -> tuple[float, list[T]]:
    """The median processor time of a call, and what it returns; a first one, which compiles, is not counted."""
    found, seconds = call(), []
    for _ in range(repeat):
        gc.collect()
        start = time.process_time()
        found = call()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds), found


def line(measured: Measured, dense: bool) -> str:
    """A line of the table, in thousand events a second."""
    rates = [f"{rate / 1_000:9,.0f}" for rate in (measured.plain, measured.rows, measured.columns)]
    sql = f"{'–' if measured.sql is None else f'{measured.sql / 1_000:,.0f}':>9}"
    missed = "" if dense or measured.columns >= BAR else f" ↓ {measured.explained[:80]}"
    shape = QUERIES[measured.name].shape
    return f"{measured.name:10}{measured.matches:9,}{''.join(rates)}{sql}   {shape}{missed}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scenarios", description="queries that others ask")
    parser.add_argument("--events", type=int, default=EVENTS, help=f"so many for each (default {EVENTS:,})")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the median counts (default 3)")
    parser.add_argument("--only", metavar="NAMES", help="these scenarios, separated by commas: N5,funnel")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the figures as JSON")
    options = parser.parse_args(arguments)
    wanted = None if options.only is None else set(options.only.split(","))
    if unknown := sorted((wanted or set()) - {scenario.name for scenario in SCENARIOS}):
        parser.error(f"no scenario {', '.join(unknown)}; there are {', '.join(s.name for s in SCENARIOS)}")
    heads = "".join(f"{head:>9}" for head in ("matches", "plain", "rows", "columns", "SQL"))
    print(f"{'':10}{heads}   thousand events a second, and how SQL says it; ↓ below a million")
    results = []
    for scenario in SCENARIOS:
        if wanted is None or scenario.name in wanted:
            results.append(measure(scenario, options.events, options.repeat))
            print(line(results[-1], scenario.dense), *results[-1].wrong, sep="\n  ", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n", encoding="utf-8")
    return int(any(result.wrong for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
