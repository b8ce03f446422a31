"""The table and the JSON of measured workloads."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.harness import InColumns, Result, Timing
from benchmarks.workloads.definition import Bar

HEADINGS = (
    *("", "workload", "events", "matches", "seconds", "engine", "bar", "met", "× loop", "spread"),
    *("columns", "limit", "× limit"),
)
LEFT = 2


def amount(value: float, unit: str) -> str:
    """A figure with its unit: ``812 k/s``, ``1.43 s``, ``1.08 ×``."""
    match unit:
        case "events/s":
            return f"{value / 1000:,.0f} k/s"
        case "seconds":
            return f"{value:.2f} s"
    return f"{value:.2f} ×"


def asked(bar: Bar) -> str:
    return ("≥ " if bar.unit == "events/s" else "≤ ") + amount(bar.value, bar.unit)


def verdict(result: Result) -> str:
    if result.differences:
        return "WRONG"
    return {True: "yes", False: "no", None: "other size"}[result.met]


def row(result: Result) -> tuple[str, ...]:
    """The cells of one workload; ``× loop`` is the engine's time over the hand-written loop's.

    ``columns`` is the figure from Arrow to Arrow, ``limit`` that of a compiled loop over numbers, both with their own
    number of events, and ``× limit`` the ratio of their times.
    """
    bar = result.workload.bar
    return (
        result.workload.name,
        result.workload.title,
        f"{result.events:,}",
        f"{result.matches:,}",
        f"{result.engine.seconds:.3f}",
        amount(result.figure, bar.unit),
        asked(bar),
        verdict(result),
        f"{result.ratio:.2f}",
        f"{result.engine.spread:.0%}",
        *_in_columns(result),
    )


def _in_columns(result: Result) -> tuple[str, str, str]:
    """The figures in columns, in the unit of the bar."""
    columns, unit = result.columns, result.workload.bar.unit
    if columns is None:
        return "", "", ""
    unit = "events/s" if unit == "× loop" else unit
    figure = amount(columns.figure(unit, columns.engine), unit)
    if columns.differences:
        figure = "WRONG"
    if columns.limit is None or unit == "times":
        return figure, "", ""
    return figure, amount(columns.figure(unit, columns.limit), unit), f"{columns.ratio:.1f}"


def print_table(results: Sequence[Result]) -> None:
    """A table with lines on a terminal, plain columns elsewhere."""
    rows = [row(result) for result in results]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table()
        for i, heading in enumerate(HEADINGS):
            table.add_column(heading, justify="left" if i < LEFT else "right")
        for cells in rows:
            table.add_row(*cells)
        Console().print(table)
        return
    widths = [max(len(cells[i]) for cells in (HEADINGS, *rows)) for i in range(len(HEADINGS))]
    for cells in (HEADINGS, *rows):
        padded = (c.ljust(w) if i < LEFT else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True)))
        print("  ".join(padded).rstrip())


def record(result: Result) -> dict[str, Any]:
    """One workload as JSON."""
    workload = result.workload
    return {
        "workload": workload.name,
        "title": workload.title,
        "query": " ".join(workload.query.split()),
        "policy": workload.policy,
        "events": result.events,
        "matches": result.matches,
        "figure": round(result.figure, 4),
        "unit": workload.bar.unit,
        "bar": workload.bar.value,
        "met": result.met,
        "events_per_second": round(result.events / result.engine.seconds),
        "matches_per_second": round(result.matches / result.engine.seconds),
        "engine": timing(result.engine),
        "loop": timing(result.loop),
        "ratio_to_loop": round(result.ratio, 3),
        **({} if result.columns is None else {"columns": in_columns(result.columns)}),
        **({} if result.few is None else {"engine_with_few_goals": timing(result.few), "goals": workload.live}),
        "differences": list(result.differences),
    }


def in_columns(columns: InColumns) -> dict[str, Any]:
    """The part of the columns as JSON."""
    return {
        "events": columns.events,
        "matches": columns.matches,
        "events_per_second": round(columns.events / columns.engine.seconds),
        "engine": timing(columns.engine),
        **({} if columns.limit is None else {"limit": timing(columns.limit), "ratio_to_limit": columns.ratio}),
        **({} if columns.few is None else {"engine_with_few_goals": timing(columns.few)}),
        "differences": list(columns.differences),
    }


def timing(runs: Timing) -> dict[str, Any]:
    return {
        "median_seconds": round(runs.seconds, 6),
        "seconds": [round(s, 6) for s in runs.processor],
        "passed_seconds": [round(s, 6) for s in runs.passed],
    }


def document(results: Sequence[Result], core: int | None, repeat: int) -> dict[str, Any]:
    """The whole file: the measurements, and the machine."""
    return {
        "benchmark": "engine",
        "python": sys.version.split()[0],
        "machine": f"{platform.system()} {platform.machine()}",
        "core": core,
        "repeat": repeat,
        "clock": "processor time; passed_seconds is the time that passed",
        "collector": "on; objects made before a run are frozen",
        "results": [record(result) for result in results],
    }
