"""The cost of growing state on Spark: batches that touch few goals, while many wait.

    python -m benchmarks.spark_state [--goals 10000 100000 1000000] [--restore 10000000] [--json FILE]
                                     [--master local[2]] [--shards 2] [--batches 10] [--engines N]

``?id <urn:p:a> ?x`` SEQ ``?id <urn:p:b> ?y``.  The first batches insert the goals, each with an id of its own; then
come ten batches of 1,000 events that make 500 pairs of other ids.  Printed for each number of goals: how long such a
batch takes, and what it writes (the journals of the shards), beside the size of the last snapshots.  A batch that
touches few goals must not write them all: its output must stay the same while the goals grow a hundredfold.  Also
how many copies of a goal the workers hold at the end, and how often a shard was restored in full after the first ten
batches (``--master 'local[4]' --shards 4 --batches 100`` shows more of both), and the memory of Spark's Python
workers and the engine processes (``--engines 0``: without these).  Finally the job is restarted with one more such
batch, for which all goals have to be restored.

``--restore``: also the processor time to restore one shard with that many goals from its snapshot and take a small
batch in rows, without Spark.  Fails when an answer is wrong.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.quiet import quiet_session
from benchmarks.spark_runs import SECOND, processes, processor_time, write_parquet
from benchmarks.workloads import w1_pairs
from benchmarks.workloads.common import integer
from etalis_py import Engine, Event, compile
from etalis_py.garbage import few_collections
from etalis_py.spark import matches
from etalis_py.spark.input.schema import FLAT_EVENTS
from etalis_py.spark.session_kinds import ENGINES

SMALL, BATCHES = 1_000, 10
SETTLED = 10
"""After this many batches each worker should have seen each shard."""
LOADED = 1_000_000  # goals in a file
QUERY = "SELECT ?id WHERE { { ?id <urn:p:a> ?x } SEQ { ?id <urn:p:b> ?y } }"


@dataclass(frozen=True, slots=True)
class Result:
    goals: int
    loading: float
    seconds: float
    journal_bytes: float
    snapshot_bytes: int
    again: float
    copies: float
    restored: int
    work: float
    memory: int
    right: bool

    def __str__(self) -> str:
        loaded = f"{self.goals:>9,} goals (loaded in {self.loading:.1f} s, snapshots of {self.snapshot_bytes:,} bytes)"
        cost = f"a batch of {SMALL:,} events takes {self.seconds:.2f} s, {self.work:.2f} s of processor time"
        cost += f", and writes {self.journal_bytes:,.0f} bytes"
        again = f"the first one after a restart takes {self.again:.1f} s"
        copies = f"{self.copies:.1f} copies of a goal, {self.restored} shards restored after {SETTLED} batches"
        copies += f", {self.memory >> 20:,} MiB in Python"
        return f"{loaded}: {cost}, {again}, {copies}, answers {'right' if self.right else 'WRONG'}"


def idle(first: int, last: int) -> list[Event]:
    """Events that nothing follows."""
    return [Event(n * SECOND, n * SECOND, ((f"<urn:idle:{n}>", w1_pairs.A, integer(n)),)) for n in range(first, last)]


def write_idle(file: Path, first: int, last: int) -> None:
    """The same in a file, made in columns: ten million of them take seconds, not minutes."""
    number = pa.array(np.arange(first, last))
    text = number.cast(pa.string())
    at = pc.multiply(number, SECOND)
    alike = {"stream": "", "graph": "", "p": w1_pairs.A}
    columns = {name: pa.repeat(value, len(number)) for name, value in alike.items()}
    columns |= {"start": at, "end": at, "time": at.cast(pa.timestamp("us", tz="UTC"))}
    columns["s"] = pc.binary_join_element_wise("<urn:idle:", text, ">", "")
    columns["o"] = pc.binary_join_element_wise('"', text, integer(0).removeprefix('"0'), "")
    pq.write_table(pa.table(columns), file, row_group_size=-(-len(number) // 8))


def pairs(goals: int, batches: int) -> Iterator[list[Event]]:
    """The batches beside the goals: pairs, half of a batch each; the last one is for after the restart."""
    now = goals
    for batch in range(batches + 1):
        some = []
        for predicate in (w1_pairs.A, w1_pairs.B):
            for n in range(SMALL // 2):
                now += 1
                triple = (f"<urn:busy:{batch}:{n}>", predicate, integer(n))
                some.append(Event(now * SECOND, now * SECOND, (triple,)))
        yield some


def measure(spark: SparkSession, goals: int, shards: int, batches: int = BATCHES) -> Result:
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "events"
        source.mkdir()
        loaded = -(-goals // LOADED)
        for n in range(loaded):
            write_idle(source / f"{n:04d}.parquet", n * LOADED, min(goals, (n + 1) * LOADED))
        for n, some in enumerate(pairs(goals, batches), loaded):
            write_parquet(source / f"{n:04d}.parquet", some)
        last = (source / f"{n:04d}.parquet").rename(Path(name) / "last.parquet")
        frame = spark.readStream.schema(FLAT_EVENTS).option("maxFilesPerTrigger", 1).parquet(str(source))
        output = matches(compile(QUERY), frame, shards=shards, metrics=True)
        ends: list[float] = []
        works: list[float] = []
        sizes: list[tuple[int, int]] = []
        counted: list[int] = []
        held: dict[int, int] = {}
        loads: list[list[str]] = []

        def take(batch: DataFrame, number: int) -> None:
            rows = batch.select("kind", "shard", "detail").where("kind = 'metric' OR kind = 'match'").cache()
            counted.append(rows.where("kind = 'match'").count())
            said = [
                (row["shard"], json.loads(row["detail"])) for row in rows.where(F.col("kind") == "metric").collect()
            ]
            rows.unpersist()
            # A shard reports it for its rows, and again for each of its timers.
            last_said = dict(sorted(said, key=lambda pair: pair[1]["version"])).values()
            snapshot, journal = (sum(d[key] for d in last_said) for key in ("snapshot_bytes", "journal_bytes"))
            sizes.append((snapshot, journal))
            held.update((metric["worker"], metric["held"]) for _, metric in said)
            loads.append([metric["loaded"] for _, metric in said])
            ends.append(time.perf_counter())
            works.append(processor_time())

        began = time.perf_counter()
        query = output.writeStream.foreachBatch(take).option("checkpointLocation", str(Path(name) / "state"))
        query.trigger(availableNow=True).start().awaitTermination()
        copies = sum(held.values()) / shards
        memory = _memory_of_python()
        restored = [load for batch in loads[SETTLED:] for load in batch].count("restored")
        last.rename(source / f"{n:04d}.parquet")
        # A different plan is a new run, whose workers have no state.
        again = matches(compile(QUERY), frame, shards=shards, metrics=True)
        query = again.writeStream.foreachBatch(take).option("checkpointLocation", str(Path(name) / "state"))
        running = query.trigger(availableNow=True).start()
        running.awaitTermination()
        restart = running.recentProgress[0]["durationMs"]["addBatch"] / 1000
    ends = ends[: loaded + batches]
    durations = [b - a for a, b in pairwise(ends)]
    worked = [b - a for a, b in pairwise(works[: loaded + batches])]
    grown = [b[1] - a[1] for a, b in pairwise(sizes) if b[0] == a[0]]
    # The last events wait for the watermark; nothing ends the stream here.
    expected = (batches + 1) * SMALL // 2 - 1
    return Result(
        goals,
        ends[loaded - 1] - began,
        statistics.median(durations[loaded:]),
        statistics.median(grown),
        sizes[-1][0],
        restart,
        copies,
        restored,
        statistics.median(worked[loaded:]),
        memory,
        sum(counted) == expected,
    )


def _memory_of_python() -> int:
    """The bytes of all interpreters that this process has started, on Linux: pages that some share count in parts."""
    total = 0
    for number in processes():
        folder = Path("/proc") / str(number)
        try:
            python = (folder / "exe").readlink().name.startswith("python")
            lines = (folder / "smaps_rollup").read_text().splitlines() if python and number != os.getpid() else []
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return total


def restored(goals: int) -> float:
    """The processor seconds to restore a shard with ``goals`` goals and take a few events in rows."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_restored, (goals,))


def _restored(goals: int) -> float:
    full = Engine(compile(QUERY), journal=True)
    with full.without_journal():
        for first in range(0, goals, LOADED):
            full.push_all(idle(first, min(goals, first + LOADED)))
    data = full.snapshot()
    del full
    some = [Event(goals * SECOND, goals * SECOND, ((f"<urn:idle:{n}>", w1_pairs.B, integer(n)),)) for n in range(SMALL)]
    engine = Engine(compile(QUERY), journal=True)
    began = time.process_time()
    with few_collections():
        with engine.into_rows():
            engine.restore(data)
        found = [*engine.push_all(some), *engine.advance(goals * SECOND)]
    seconds = time.process_time() - began
    if len(found) != SMALL or engine.counters.kept().goals != goals:
        raise AssertionError(f"{len(found)} matches and {engine.counters.kept().goals} goals of a restored shard")
    return seconds


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_state", description="The cost of state on Spark.")
    parser.add_argument("--goals", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--restore", type=int, metavar="N", help="also restore one shard of so many goals")
    parser.add_argument("--shards", type=int, default=2, help="shards and shuffle partitions (2)")
    parser.add_argument("--master", default="local[2]", help="as Spark takes it (local[2])")
    parser.add_argument("--batches", type=int, default=BATCHES, help=f"batches beside the goals ({BATCHES})")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--engines", type=int, metavar="N", help="engine processes (one a core; 0: none)")
    options = parser.parse_args(arguments)
    results = []
    config = {} if options.engines is None else {ENGINES: str(options.engines)}
    with quiet_session(options.master, options.shards, config) as spark:
        for goals in options.goals:
            result = measure(spark, goals, options.shards, options.batches)
            results.append(result)
            print(result, flush=True)
    if options.restore is not None:
        print(f"a shard of {options.restore:,} goals is restored in {restored(options.restore):.1f} s of a processor")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(r) for r in results], indent=1) + "\n")
    return 0 if all(result.right for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
