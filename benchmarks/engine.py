"""The speed of the engine on one core, workload by workload.

    python -m benchmarks.engine [--only W1,W2] [--events N] [--repeat 5] [--json FILE]

Prints a table and writes ``out/bench.json``.  Beside rows from objects, each workload is run in columns from Arrow to
Arrow (see ``columnar``).  The figures are of processor time (see ``harness``).  The last columns are the engine's time
over that of a hand-written loop of the same logic in the same run, which is the room for improvement, and (slowest −
fastest) / median of the runs.  The bars hold for each workload's own number of events.  The command fails if an answer
is wrong; a missed bar is only printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.columnar import measure_columns
from benchmarks.harness import keep_to_one_core, measure
from benchmarks.report import document, print_table
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.definition import Workload

BUSY = 1.1
OUT = Path(__file__).resolve().parents[1] / "out" / "bench.json"


def chosen(names: str | None) -> tuple[Workload, ...]:
    """The workloads of a list of names, in the order of the table."""
    if names is None:
        return WORKLOADS
    wanted = {name.strip().lower() for name in names.split(",")}
    known = {workload.name.lower() for workload in WORKLOADS}
    if unknown := sorted(wanted - known):
        raise SystemExit(f"no workload {', '.join(unknown)}; there are {', '.join(w.name for w in WORKLOADS)}")
    return tuple(workload for workload in WORKLOADS if workload.name.lower() in wanted)


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description="the speed of the engine")
    parser.add_argument("--only", metavar="NAMES", help="these workloads, separated by commas: W1,W2u")
    parser.add_argument("--events", type=positive, help="so many events for each instead of its own number")
    parser.add_argument("--repeat", type=positive, default=5, help="runs of each; the median counts (default 5)")
    parser.add_argument("--json", type=Path, default=OUT, metavar="FILE", help="where to write the JSON")
    options = parser.parse_args(arguments)
    workloads = chosen(options.only)
    core = keep_to_one_core()
    results = []
    for workload in workloads:
        print(f"measuring {workload.name}: {workload.title}", file=sys.stderr)
        result = measure(workload, options.events, options.repeat)
        results.append(replace(result, columns=measure_columns(workload, options.events, options.repeat)))
    print_table(results)
    busy = sum(result.engine.waiting for result in results) / len(results)
    if busy > BUSY:
        print(f"other programs ran beside this: {busy:.1f} times the processor time passed, so trust the figures less")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document(results, core, options.repeat), indent=1, ensure_ascii=False)
    options.json.write_text(text + "\n", encoding="utf-8")
    wrong = [
        f"{result.workload.name}: {line}"
        for result in results
        for line in (*result.differences, *(result.columns.differences if result.columns is not None else ()))
    ]
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
