"""Has the engine become slower?  Its time over that of a hand-written loop, compared with the ratios that are kept.

    python -m benchmarks.check [--only W1,W2] [--record]

A ratio holds on any machine, because the loop runs beside the engine, in turn; of each the fastest run counts, which
other programs disturb least.  In rows the loop handles objects, in columns it is compiled and handles numbers.  A ratio
that is more than a quarter above the kept one is measured once more; if it stays so, the command fails.  The workload
with many idle goals is left out: it takes minutes.

``--record`` keeps the ratios that are found, in ``baseline.json``, and adds a line to ``history.jsonl``: the commit and
its ratios, to see when a figure has changed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.columnar import measure_columns
from benchmarks.engine import chosen
from benchmarks.harness import keep_to_one_core, measure
from benchmarks.workloads.definition import Workload

HERE = Path(__file__).parent
ALLOWED = 1.25
SHARE = 10
"""In rows each workload has this part of its events: enough for a ratio."""
REPEAT = 5

Ratios = dict[str, float]


def quick(names: str | None = None) -> tuple[Workload, ...]:
    """The workloads of a list of names, or all, without those that need many goals first."""
    return tuple(workload for workload in chosen(names) if workload.idle is None)


def ratios_of(workload: Workload) -> Ratios:
    """The ratios of a workload, by its name and the form of its events; wrong answers end the command."""
    result = measure(workload, max(1, workload.size // SHARE), REPEAT)
    columns = measure_columns(workload, workload.size, REPEAT)
    if wrong := (*result.differences, *columns.differences):
        raise SystemExit(f"{workload.name} gives wrong answers: {'; '.join(wrong)}")
    ratios = {f"{workload.name} rows": min(result.engine.processor) / min(result.loop.processor)}
    if columns.limit is not None:
        ratios[f"{workload.name} columns"] = min(columns.engine.processor) / min(columns.limit.processor)
    return {name: round(ratio, 3) for name, ratio in ratios.items()}


def slower(found: Ratios, kept: Ratios) -> list[str]:
    """The names whose ratios are too far above the kept ones."""
    return [name for name, ratio in found.items() if name in kept and ratio > ALLOWED * kept[name]]


def checked(workload: Workload, kept: Ratios, measured: Callable[[Workload], Ratios]) -> Ratios:
    """The ratios of a workload; if one is too high, the lower ones of two measurements."""
    found = measured(workload)
    if not slower(found, kept):
        return found
    again = measured(workload)
    return {name: min(ratio, again[name]) for name, ratio in found.items()}


def keep(found: Ratios, folder: Path) -> None:
    """Write the ratios down, as the ones to compare with and as a line of the history."""
    baseline, history = folder / "baseline.json", folder / "history.jsonl"
    kept = {**read(baseline), **found}
    baseline.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=HERE, capture_output=True, text=True, check=False
    ).stdout.strip()
    line = {
        "commit": commit or "unknown",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "python": sys.version.split()[0],
        "ratios": found,
    }
    with history.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def read(file: Path) -> Ratios:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def main(arguments: Sequence[str], folder: Path = HERE, measured: Callable[[Workload], Ratios] = ratios_of) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description="has the engine become slower?")
    parser.add_argument("--only", metavar="NAMES", help="these workloads, separated by commas: W1,W2u")
    parser.add_argument("--record", action="store_true", help="keep the ratios that are found, to compare with them")
    options = parser.parse_args(arguments)
    kept = read(folder / "baseline.json")
    if not kept and not options.record:
        parser.error("no ratios are kept yet: keep some with --record")
    keep_to_one_core()
    found: Ratios = {}
    for workload in quick(options.only):
        ratios = checked(workload, {} if options.record else kept, measured)
        for name, ratio in ratios.items():
            print(
                f"{name:14} {ratio:8.2f}"
                + (f"  kept {kept[name]:.2f}" if name in kept else "  none kept yet: --record"),
                flush=True,
            )
        found |= ratios
    if options.record:
        keep(found, folder)
        return 0
    too_slow = slower(found, kept)
    for name in too_slow:
        print(f"{name} is {found[name] / kept[name]:.2f} times as slow as before: {found[name]} times the loop's time")
    return 1 if too_slow else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
