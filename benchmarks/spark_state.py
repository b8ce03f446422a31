"""What state costs on Spark as it grows: batches that touch few goals, while many wait.

    python -m benchmarks.spark_state [--goals 10000 100000 1000000] [--json FILE]

``?id <urn:p:a> ?x`` SEQ ``?id <urn:p:b> ?y``.  The first batches insert so many goals, each of an id of its own; then
come ten batches of 1,000 events that make 500 pairs of other ids.  Printed for each number of goals: how long such a
batch takes, and what it writes (the journals of the shards), beside the size of the last snapshots.  A batch that
touches few goals must not write them all: what it writes must stay the same while the goals grow a hundredfold.  Fails
when an answer is wrong.
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
from itertools import pairwise
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.spark_runs import SECOND, write_parquet
from benchmarks.workloads import w1_pairs
from benchmarks.workloads.common import integer
from etalis_py import Event, compile
from etalis_py.spark import matches, session
from etalis_py.spark.schema import FLAT_EVENTS

SMALL, BATCHES = 1_000, 10
QUERY = "SELECT ?id WHERE { { ?id <urn:p:a> ?x } SEQ { ?id <urn:p:b> ?y } }"


@dataclass(frozen=True, slots=True)
class Result:
    goals: int
    loading: float
    seconds: float
    journal_bytes: float
    snapshot_bytes: int
    right: bool

    def __str__(self) -> str:
        loaded = f"{self.goals:>9,} goals (loaded in {self.loading:.1f} s, snapshots of {self.snapshot_bytes:,} bytes)"
        cost = f"a batch of {SMALL:,} events takes {self.seconds:.2f} s and writes {self.journal_bytes:,.0f} bytes"
        return f"{loaded}: {cost}, answers {'right' if self.right else 'WRONG'}"


def events(goals: int) -> list[list[Event]]:
    """The files: goals that wait, then pairs, half of a file each."""
    waiting = [Event(n * SECOND, n * SECOND, ((f"<urn:idle:{n}>", w1_pairs.A, integer(n)),)) for n in range(goals)]
    files = [waiting[i : i + 250_000] for i in range(0, goals, 250_000)]
    now = goals
    for batch in range(BATCHES):
        some = []
        for predicate in (w1_pairs.A, w1_pairs.B):
            for n in range(SMALL // 2):
                now += 1
                triple = (f"<urn:busy:{batch}:{n}>", predicate, integer(n))
                some.append(Event(now * SECOND, now * SECOND, (triple,)))
        files.append(some)
    return files


def measure(spark: SparkSession, goals: int, shards: int) -> Result:
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "events"
        source.mkdir()
        files = events(goals)
        for n, some in enumerate(files):
            write_parquet(source / f"{n:04d}.parquet", some)
        frame = spark.readStream.schema(FLAT_EVENTS).option("maxFilesPerTrigger", 1).parquet(str(source))
        output = matches(compile(QUERY), frame, shards=shards, metrics=True)
        ends: list[float] = []
        sizes: list[tuple[int, int]] = []
        counted: list[int] = []

        def take(batch: DataFrame, number: int) -> None:
            rows = batch.select("kind", "detail").where("kind = 'metric' OR kind = 'match'").cache()
            counted.append(rows.where("kind = 'match'").count())
            details = [json.loads(row["detail"]) for row in rows.where(F.col("kind") == "metric").collect()]
            rows.unpersist()
            snapshot, journal = (sum(d[key] for d in details) for key in ("snapshot_bytes", "journal_bytes"))
            sizes.append((snapshot, journal))
            ends.append(time.perf_counter())

        began = time.perf_counter()
        query = output.writeStream.foreachBatch(take).option("checkpointLocation", str(Path(name) / "state"))
        query.trigger(availableNow=True).start().awaitTermination()
    loaded = len(files) - BATCHES
    durations = [b - a for a, b in pairwise(ends)]
    grown = [b[1] - a[1] for a, b in pairwise(sizes) if b[0] == a[0]]
    # What ends last waits for the watermark; nothing ends the stream here.
    expected = BATCHES * SMALL // 2 - 1
    return Result(
        goals,
        ends[loaded - 1] - began,
        statistics.median(durations[loaded:]),
        statistics.median(grown),
        sizes[-1][0],
        sum(counted) == expected,
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_state", description="The cost of state on Spark.")
    parser.add_argument("--goals", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--shards", type=int, default=2, help="shards and shuffle partitions (2)")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    local = {"spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.ui.showConsoleProgress": "false"}
    spark = session("local[2]", shards=options.shards, config=local)
    results = []
    try:
        for goals in options.goals:
            result = measure(spark, goals, options.shards)
            results.append(result)
            print(result, flush=True)
    finally:
        spark.stop()
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(r) for r in results], indent=1) + "\n")
    return 0 if all(result.right for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
