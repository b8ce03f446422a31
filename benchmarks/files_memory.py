"""The memory of a whole run does not depend on how many events there are.

    python -m benchmarks.files_memory [--events 1000000] [--times 10]

The events of W2 as a Parquet file, once and repeated ``--times`` times, later each time; ``etalis run`` reads them, in
a process of its own, and writes a Parquet file.  Printed: matches, events a second and the most memory of the process.
Fails if the long run does not have exactly that many times the matches, or takes over a quarter more memory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from benchmarks.files import flat_parquet
from benchmarks.workloads import w2_stock

MORE = 1.25


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the command."""

    events: int
    matches: int
    seconds: float
    megabytes: float


def repeated(path: Path, times: int, target: Path) -> None:
    """The events of a file ``times`` times, each time after a pause longer than the window."""
    table = parquet.read_table(path)
    span = pc.max(table["end"]).as_py() + 2 * w2_stock.WINDOW
    with parquet.ParquetWriter(target, table.schema) as writer:
        for n in range(times):
            later = {name: pc.add(table[name], pa.scalar(n * span, pa.int64())) for name in ("end", "start")}
            writer.write_table(pa.table({**later, **{name: table[name] for name in "spo"}}, schema=table.schema))


def run(folder: Path, events: Path) -> Run:
    """Run the command over a file."""
    query, matches = folder / "w2.rq", folder / "matches.parquet"
    query.write_text(w2_stock.QUERY, encoding="utf-8")
    command = [sys.executable, "-m", "etalis_py.cli.main", "run", query, "--stream", events, "--policy", "recent"]
    began = time.perf_counter()
    process = subprocess.Popen([*command, "--sink", matches])
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status:
        raise SystemExit(f"etalis run ended with {os.waitstatus_to_exitcode(status)}")
    rows = parquet.read_metadata(matches).num_rows
    return Run(parquet.read_metadata(events).num_rows, rows, seconds, usage.ru_maxrss / 1024)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.files_memory", description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=10)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        short, long = folder / "once.parquet", folder / "often.parquet"
        flat_parquet(w2_stock.events(options.events), short)
        repeated(short, options.times, long)
        runs = [run(folder, path) for path in (short, long)]
    print(f"{'events':>12}{'matches':>12}{'seconds':>10}{'events/s':>12}{'MB':>8}")
    for r in runs:
        print(f"{r.events:>12,}{r.matches:>12,}{r.seconds:>10.1f}{r.events / r.seconds:>12,.0f}{r.megabytes:>8.0f}")
    once, often = runs
    right = once.matches > 0 and often.matches == options.times * once.matches
    constant = often.megabytes <= MORE * once.megabytes
    print(f"matches are {'right' if right else 'WRONG'}, memory is {'constant' if constant else 'NOT constant'}")
    return 0 if right and constant else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
