"""The pipeline on Spark: events a second from Parquet on this machine, with every answer checked.

    python -m benchmarks.spark [--only W1 …] [--events 200000] [--shards 2] [--repeat 3] [--json FILE]

The events are written to a flat Parquet file (one row a triple) before the clock starts; a first run that is not
counted starts the Python workers.  The clock sees a batch query from the file to the last match: reading, routing,
sorting, the engines, and counting the matches by a hash of their ids in the JVM.  The median of the runs counts.
The answers are those of the embedded engine: the same number of matches and the same sum of hashes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.workloads import w1_pairs, w2_stock, w4_rising
from benchmarks.workloads.definition import Workload
from etalis_py import Engine, compile
from etalis_py.events import Event
from etalis_py.spark import matches, session

WORKLOADS = {w.name: w for w in (w1_pairs.WORKLOAD, w2_stock.WORKLOAD, w4_rising.WORKLOAD)}


@dataclass(frozen=True, slots=True)
class Result:
    workload: str
    events: int
    matches: int
    shards: int
    seconds: tuple[float, ...]
    right: bool

    @property
    def rate(self) -> float:
        return self.events / statistics.median(self.seconds)


def write_flat(file: Path, events: Iterable[Event]) -> None:
    """One row a triple, in eight row groups, so that Spark reads with all cores."""
    rows = [(e.start, e.end, e.stream, *triple) for e in events for triple in e.triples]
    columns = dict(zip(("start", "end", "stream", "s", "p", "o"), zip(*rows, strict=True), strict=True))
    pq.write_table(
        pa.table({name: list(values) for name, values in columns.items()}), file, row_group_size=-(-len(rows) // 8)
    )


def expected(workload: Workload, events: list[Event]) -> tuple[int, int]:
    """The number of matches, and the sum of the hashes of their ids, of the embedded engine."""
    engine = Engine(compile(workload.query), policy=workload.policy)
    found = [*engine.push_all(events), *engine.close()]
    return len(found), sum(crc32(m.id.encode()) for m in found)


def measure(spark: SparkSession, workload: Workload, size: int, shards: int, repeat: int) -> Result:
    """Measure one workload with so many events."""
    events = workload.events(size)
    wanted = expected(workload, events)
    program = compile(workload.query, policy=workload.policy)
    seconds: list[float] = []
    right = True
    with tempfile.TemporaryDirectory() as folder:
        write_flat(Path(folder) / "events.parquet", events)
        for _ in range(repeat + 1):
            began = time.perf_counter()
            found = matches(program, spark.read.parquet(folder), shards=shards)
            row = found.agg(F.count("id"), F.sum(F.crc32(F.col("id").cast("binary")))).collect()[0]
            seconds.append(time.perf_counter() - began)
            right &= (row[0], row[1] or 0) == wanted
    return Result(workload.name, size, wanted[0], shards, tuple(seconds[1:]), right)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure the pipeline on Spark.")
    parser.add_argument("--only", nargs="+", choices=list(WORKLOADS), default=list(WORKLOADS), help="these workloads")
    parser.add_argument("--events", type=int, default=200_000, help="events of each workload (200,000)")
    parser.add_argument("--shards", type=int, default=2, help="shards and shuffle partitions (2)")
    parser.add_argument("--master", default="local[2]", help="as Spark takes it (local[2])")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each (3)")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    local = {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}
    spark = session(options.master, shards=options.shards, config=local)
    print(f"the session started in {time.perf_counter() - began:.1f} s", file=sys.stderr)
    try:
        results = [measure(spark, WORKLOADS[n], options.events, options.shards, options.repeat) for n in options.only]
    finally:
        spark.stop()
    for result in results:
        answer = "right" if result.right else "WRONG"
        counts = f"{result.events:,} events, {result.matches:,} matches, {result.shards} shards"
        print(f"{result.workload}: {result.rate:>10,.0f} events/s  ({counts}, answers {answer})")
    if options.json is not None:
        options.json.write_text(json.dumps([{**asdict(r), "rate": r.rate} for r in results], indent=1) + "\n")
    return 0 if all(result.right for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
