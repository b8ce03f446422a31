"""The pipeline on Spark: events a second on this machine, with every answer checked.

    python -m benchmarks.spark [--only W1 W2 W4 classes pairs] [--source parquet nquads stream] [--events 500000]
                               [--shards 2] [--slices 1 2 4] [--repeat 3] [--json FILE]

``parquet`` and ``nquads``: batch queries from files written before the clock starts, to the last match; a first run
that is not counted starts the Python workers, and the median of the others counts.  ``stream``: a streaming query over
Parquet files, ``--events`` events a batch, with its state in RocksDB; two batches more than ``--repeat`` warm it up
and are not counted, nor are those that end the stream.  Beside each the same plan runs with an operator that does
nothing, which is what Spark takes by itself.  ``classes`` is the reasoning of [EP] Test 2 over 40,080
sub-classes.  ``pairs`` are two keys in sequence, ten seconds apart: no
key divides them, so they are run from Parquet in slices of time, and each number of slices is compared with the first.
The session's start is printed too.  Fails when an answer is wrong.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.spark_runs import (
    FILES,
    NAMES,
    PAIRS,
    Case,
    batch_run,
    case,
    idle_run,
    idle_stream_run,
    read_nquads,
    stream_run,
    write_files,
    write_nquads,
)
from etalis_py.spark import session

SOURCES = ("parquet", "nquads", "stream")
BAR, SLICED_BAR = 200_000, 700_000
WARMING = 2  # batches of a stream: the first starts workers and stores, and the JVM compiles for a while


@dataclass(frozen=True, slots=True)
class Beside:
    """The same plan with an idle operator: its seconds, and how much more processor time the workload took."""

    seconds: float
    work: float


@dataclass(frozen=True, slots=True)
class Result:
    workload: str
    source: str
    events: int
    matches: int
    shards: int
    seconds: tuple[float, ...]
    first: float
    right: bool
    beside: Beside | None = None

    @property
    def rate(self) -> float:
        return self.events / statistics.median(self.seconds)

    def __str__(self) -> str:
        answer = "right" if self.right else "WRONG"
        asked = SLICED_BAR if self.workload == PAIRS and self.source != "1 slice" else BAR
        bar = "at least" if self.rate >= asked else "below"
        counted = "events a batch" if self.source == "stream" else "events"
        return (
            f"{self.workload:<8} {self.source:<8} {self.rate:>10,.0f} events/s, {bar} {asked:,}  "
            f"({self.events:,} {counted}, {self.matches:,} matches, {self.shards} shards, "
            f"first run {self.first:.1f} s, answers {answer}{self._compared}"
        )

    @property
    def _compared(self) -> str:
        if self.beside is None:
            return ")"
        times = statistics.median(self.seconds) / self.beside.seconds
        return f"; {times:.2f} times as long as an idle operator, with {self.beside.work:.2f} times the processor time)"


def measure(spark: SparkSession, case: Case, source: str, shards: int, repeat: int) -> Result:
    """One workload from one kind of source."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if source == "stream":
            size = -(-len(case.events) // (repeat + WARMING))
            run = stream_run(spark, case, folder, size, shards)
            (folder / "idle").mkdir()
            idle = idle_stream_run(spark, case, folder / "idle", size, shards)
            counted = slice(WARMING, WARMING + repeat)
            beside = _beside(idle.batches[counted], idle.worked[counted], run.worked[counted])
            first, others = run.batches[0], run.batches[WARMING : WARMING + repeat]
            right = run.answers == case.answers
            return Result(case.name, source, size, run.answers[0], shards, tuple(others), first, right, beside)
        (folder / "events").mkdir()
        if source == "parquet":
            write_files(folder / "events", case.events, -(-len(case.events) // FILES))
        else:
            write_nquads(folder / "events", case.events)
        runs, idles = [], []
        for _ in range(repeat + 1):
            read = spark.read.parquet if source == "parquet" else lambda path: read_nquads(spark, path)
            runs.append(batch_run(case, read(str(folder / "events")), shards))
            idles.append(idle_run(case, read(str(folder / "events")), shards))
    right = all(run.answers == case.answers for run in runs)
    seconds = tuple(run.seconds for run in runs)
    beside = _beside(*([x.seconds for x in idles[1:]], [x.work for x in idles[1:]], [x.work for x in runs[1:]]))
    return Result(case.name, source, len(case.events), case.answers[0], shards, seconds[1:], seconds[0], right, beside)


def _beside(seconds: Sequence[float], idle: Sequence[float], worked: Sequence[float]) -> Beside:
    return Beside(statistics.median(seconds), statistics.median(worked) / max(statistics.median(idle), 0.01))


def measure_slices(spark: SparkSession, case: Case, shards: int, slices: int, repeat: int) -> Result:
    """The pairs from Parquet in so many slices of time."""
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name), case.events, -(-len(case.events) // FILES))
        runs = [batch_run(case, spark.read.parquet(name), shards, slices) for _ in range(repeat + 1)]
    right = all(run.answers == case.answers for run in runs)
    source = f"{slices} slice{'s' * (slices != 1)}"
    first, *others = (run.seconds for run in runs)
    return Result(case.name, source, len(case.events), case.answers[0], shards, tuple(others), first, right)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description="Measure the pipeline on Spark.")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, help="these workloads (all)")
    parser.add_argument("--source", nargs="+", choices=SOURCES, default=SOURCES, help="from these (all)")
    parser.add_argument("--events", type=int, default=500_000, help="events of a batch (500,000)")
    parser.add_argument("--shards", type=int, default=2, help="shards and shuffle partitions (2)")
    parser.add_argument("--slices", nargs="+", type=int, default=[1, 2, 4], help="slices of the pairs (1 2 4)")
    parser.add_argument("--master", default="local[2]", help="as Spark takes it (local[2])")
    parser.add_argument("--repeat", type=int, default=3, help="runs, or batches, that count (3)")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    local = {"spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.ui.showConsoleProgress": "false"}
    spark = session(options.master, shards=options.shards, config=local)
    print(f"the session started in {time.perf_counter() - began:.1f} s")
    results = []
    try:
        if PAIRS in options.only:
            pairs = case(PAIRS, options.events)
            for slices in options.slices:
                results.append(measure_slices(spark, pairs, options.shards, slices, options.repeat))
                print(results[-1], f"{results[-1].rate / results[0].rate:.2f} times {results[0].source}", flush=True)
        for name in (name for name in options.only if name != PAIRS):
            for source in options.source:
                many = options.events * (options.repeat + WARMING) if source == "stream" else options.events
                results.append(measure(spark, case(name, many), source, options.shards, options.repeat))
                print(results[-1], flush=True)
    finally:
        spark.stop()
    if options.json is not None:
        options.json.write_text(json.dumps([{**asdict(r), "rate": r.rate} for r in results], indent=1) + "\n")
    return 0 if all(result.right for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
