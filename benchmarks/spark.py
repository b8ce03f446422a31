"""The pipeline on Spark: events a second on this machine, with every answer checked.

    python -m benchmarks.spark [--only W1 W2 W4 W10n classes pairs] [--source parquet jvm delta nquads stream]
                               [--events N] [--shards 2] [--slices 1 2 4] [--repeat 3] [--json FILE]

Two million events a batch, and half a million in a stream, which needs several batches; a fifth of both where each has
five triples.

``parquet``, ``jvm``, ``delta`` and ``nquads``: batch queries from files written before the clock starts, to the last
match; the first three runs, in which workers start and the JVM compiles, are not counted, and the median of the others
counts.  Files of Parquet are decoded by the shards themselves, or (``jvm``) by Spark for each shard, as tables of Delta
are; these take the jars that ``make test-lakes`` fetches for its PySpark, with whose interpreter this then runs.
``W10n`` is a table of records, a row an event, which EVENT reads.
``stream``: a streaming query over Parquet files, ``--events`` events a batch, with its state in RocksDB.  It runs
three times, and the first run, in which the JVM compiles, is not counted; nor are the first two batches of the others
and those that end the stream.  Beside each, in turn, runs a plain Spark job that reads the same rows, routes them by
their subjects, sorts them by time and hands them to Python, which counts them; beside a stream, a stateful function
that counts the rows.  ``classes`` is the reasoning of [EP] Test 2 over 40,080 sub-classes.  ``pairs``
are two keys in sequence, ten seconds apart: no key divides them, so they are run from Parquet in slices of time, with a
filter and without, and each number of slices is compared with the first.

The processor time is that of the JVM and all workers.  It is more reliable than wall-clock time if the machine is busy.
At the end comes a table with the figures of docs/spark-sizes.md; without ``--only`` and ``--source`` it is complete.
The session's start is printed too.  Fails if an answer is wrong.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.quiet import quiet_session
from benchmarks.spark_runs import (
    CLASSES,
    FILES,
    NAMES,
    PAIRS,
    RECORDS,
    Case,
    batch_run,
    case,
    plain_run,
    plain_stream_run,
    read_nquads,
    stream_run,
    write_files,
    write_nquads,
)
from tests.lakes.artifacts import LAKES

SOURCES = ("parquet", "jvm", "delta", "nquads", "stream")
MANY, OF_STREAM = 2_000_000, 500_000
"""Events in a batch."""
DELTA = LAKES.jars("lakes")
ROWS = (
    *(("parquet", name) for name in ("W1", "W2", "W4", CLASSES, RECORDS.name)),
    *(("jvm", name) for name in ("W1", "W4", CLASSES)),
    *(("delta", name) for name in ("W1", "W4", CLASSES, RECORDS.name) if DELTA),
    ("nquads", "W1"),
    *(("stream", name) for name in ("W1", "W2", "W4", RECORDS.name)),
    ("slices", PAIRS),
    ("filtered slices", PAIRS),
)
TITLES = {
    "W1": "W1, `a SEQ b`",
    "W2": "W2, three steps with arithmetic in FILTER",
    "W4": "W4, a higher price than the latest lower one",
    RECORDS.name: "W10n, records, the next one of the same card",
    CLASSES: "class membership over 40,080 sub-classes",
}
SOURCES_OF = {
    "parquet": "Parquet",
    "jvm": "Parquet through the JVM",
    "delta": "Delta",
    "nquads": "N-Quads",
    "stream": "stream with state",
}
HEAD = """
| | thousand events/s | µs of processor time an event | times as long as a plain job | processor time |
|---|---|---|---|---|"""
BARS = {"nquads": 350_000, "slices": 700_000, "filtered slices": 700_000}
WITHIN = 1.3  # times as long as the plain job
COMPILING = 3  # runs of a batch: the first starts workers, and the JVM compiles in all of them
WARMING = 2  # batches of a stream: the first starts workers and stores
STREAMS = 2  # runs of a stream that count


@dataclass(frozen=True, slots=True)
class Beside:
    """The plain job: its seconds, and how much more processor time the workload took."""

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
    work: float
    beside: Beside | None = None
    slices: int = 0
    faster: float = 1.0

    @property
    def rate(self) -> float:
        return self.events / statistics.median(self.seconds)

    @property
    def work_of_event(self) -> float:
        """Microseconds of processor time."""
        return 1e6 * self.work / self.events

    def __str__(self) -> str:
        answer = "right" if self.right else "WRONG"
        counted = "events a batch" if self.source == "stream" else "events"
        source = self.source.replace("slices", f"{self.slices} slices") if self.slices else self.source
        return (
            f"{self.workload:<8} {source:<8} {self.rate:>10,.0f} events/s, {self.work_of_event:.2f} µs of processor "
            f"time an event, {self._compared}{self._asked}  ({self.events:,} {counted}, {self.matches:,} matches, "
            f"{self.shards} shards, first run {self.first:.1f} s, answers {answer})"
        )

    @property
    def row(self) -> str:
        """The row of the table."""
        if self.slices:
            behind = " behind a filter" * self.source.startswith("filtered")
            title = (
                f"two keys in sequence{behind}: {self.slices} slices of time, {self.faster:.2f} times as fast as one"
            )
            if self.slices == 1:
                title = f"two keys in sequence, ten seconds apart, from Parquet{behind}: 1 slice of time"
        else:
            title = f"{SOURCES_OF[self.source]}: {TITLES[self.workload]}, {self.matches:,} matches"
        beside = ("", "") if self.beside is None else (f"{self._times:.2f}", f"{self.beside.work:.2f}")
        return f"| {' | '.join([title, f'{self.rate / 1000:.0f}', f'{self.work_of_event:.2f}', *beside])} |"

    @property
    def _times(self) -> float:
        assert self.beside is not None
        return statistics.median(self.seconds) / self.beside.seconds

    @property
    def _compared(self) -> str:
        if self.beside is not None:
            return f"{self._times:.2f} times as long as a plain job, {self.beside.work:.2f} times its processor time, "
        return f"{self.faster:.2f} times as fast as one slice, " if self.slices else ""

    @property
    def _asked(self) -> str:
        if self.source in BARS:
            bar = BARS[self.source]
            return f"{'at least' if self.rate >= bar else 'below'} {bar:,} events/s"
        assert self.beside is not None
        return f"{'within' if self._times <= WITHIN else 'above'} {WITHIN}"


def measure(spark: SparkSession, case: Case, source: str, shards: int, repeat: int) -> Result:
    """One workload from one kind of source."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if source == "stream":
            size = -(-len(case.events) // (repeat + WARMING))
            plains, runs = [], []
            for n in range(1 + STREAMS):
                for kind in ("ours", "plain"):
                    (folder / str(n) / kind).mkdir(parents=True)
                plains.append(plain_stream_run(spark, case, folder / str(n) / "plain", size, shards))
                runs.append(stream_run(spark, case, folder / str(n) / "ours", size, shards))
            counted = slice(WARMING, WARMING + repeat)
            took = [[s for run in some[1:] for s in run.batches[counted]] for some in (plains, runs)]
            worked = [[s for run in some[1:] for s in run.worked[counted]] for some in (plains, runs)]
            beside = _beside(took[0], *worked)
            first, others, work = runs[0].batches[0], tuple(took[1]), statistics.median(worked[1])
            right = all(run.answers == case.answers for run in runs)
            right &= all(run.answers == (case.rows + 1, 0) for run in plains)  # including the row that ends the stream
            matches = case.answers[0] * size // len(case.events)
            return Result(case.name, source, size, matches, shards, others, first, right, work, beside)
        (folder / "events").mkdir()
        if source == "nquads":
            write_nquads(folder / "events", case.events)
        else:
            write_files(folder / "events", case, -(-len(case.events) // FILES))
        if source == "delta":
            spark.read.parquet(str(folder / "events")).write.format("delta").save(str(folder / "table"))
            folder.joinpath("events").rename(folder / "files")
            folder.joinpath("table").rename(folder / "events")
        runs, plains = [], []
        for _ in range(COMPILING + repeat):
            runs.append(batch_run(case, _read(spark, source, str(folder / "events")), shards))
            if source != "nquads":
                plains.append(plain_run(_read(spark, source, str(folder / "events")), shards))
    right = all(run.answers == case.answers for run in runs) and all(run.answers == (case.rows, 0) for run in plains)
    seconds = tuple(run.seconds for run in runs)
    plains, runs = plains[COMPILING:], runs[COMPILING:]
    worked = [[x.work for x in some] for some in (plains, runs)]
    beside = _beside([x.seconds for x in plains], *worked) if plains else None
    size, matches, work = len(case.events), case.answers[0], statistics.median(run.work for run in runs)
    return Result(case.name, source, size, matches, shards, seconds[COMPILING:], seconds[0], right, work, beside)


def _read(spark: SparkSession, source: str, folder: str) -> DataFrame:
    if source == "nquads":
        return read_nquads(spark, folder)
    if source == "delta":
        return spark.read.format("delta").load(folder)
    if source == "jvm":
        return spark.read.option("mergeSchema", "false").parquet(
            folder
        )  # shards leave files with such options to Spark
    file = spark.read.parquet(folder)
    return file.where("length(p) > 0") if source == "filtered" else file


def _beside(seconds: Sequence[float], plain: Sequence[float], worked: Sequence[float]) -> Beside:
    return Beside(statistics.median(seconds), statistics.median(worked) / max(statistics.median(plain), 0.01))


def measure_slices(
    spark: SparkSession, case: Case, source: str, shards: int, every: Sequence[int], repeat: int
) -> Iterator[Result]:
    """The pairs from Parquet in each number of slices of time."""
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name), case, -(-len(case.events) // FILES))
        one = 0.0
        for slices in every:
            read = source.removesuffix(" slices")
            runs = [batch_run(case, _read(spark, read, name), shards, slices) for _ in range(repeat + 1)]
            right = all(run.answers == case.answers for run in runs)
            first, *others = (run.seconds for run in runs)
            work, taken = statistics.median(run.work for run in runs[1:]), statistics.median(others)
            one = one or taken
            size, matches = len(case.events), case.answers[0]
            yield Result(
                case.name, source, size, matches, shards, tuple(others), first, right, work, None, slices, one / taken
            )


def _with_delta() -> dict[str, str]:
    if not DELTA:
        return {}
    return {
        "spark.jars": ",".join(map(str, DELTA)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


def _chosen(only: Sequence[str] | None, sources: Sequence[str] | None) -> list[tuple[str, str]]:
    """Sources and workloads: those of the table, or those asked for."""
    if only is not None and sources is not None:
        asked = [(source, name) for source in sources for name in only if name != PAIRS]
        return [*asked, *((source, name) for source, name in ROWS if name == PAIRS and name in only)]
    names, kinds = only or NAMES, sources or {source for source, _ in ROWS}
    return [(source, name) for source, name in ROWS if name in names and source in kinds]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description="Measure the pipeline on Spark.")
    parser.add_argument("--only", nargs="+", choices=NAMES, help="these workloads (those of the table)")
    parser.add_argument("--source", nargs="+", choices=SOURCES, help="from these (as in the table)")
    parser.add_argument("--events", type=int, help=f"events of a batch ({MANY:,}, of a stream {OF_STREAM:,})")
    parser.add_argument("--shards", type=int, default=2, help="shards and shuffle partitions (2)")
    parser.add_argument("--slices", nargs="+", type=int, default=[1, 2, 4], help="slices of the pairs (1 2 4)")
    parser.add_argument("--master", default="local[2]", help="as Spark takes it (local[2])")
    parser.add_argument("--repeat", type=int, default=3, help="runs, or batches, that count (3)")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    # Small rows: see Sizes in docs/spark-sizes.md.
    config = {"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1), **_with_delta()}
    results = []
    with quiet_session(options.master, options.shards, config) as spark:
        print(f"the session started in {time.perf_counter() - began:.1f} s")
        for source, name in _chosen(options.only, options.source):
            events = options.events or (OF_STREAM if source == "stream" else MANY) // (5 if name == RECORDS.name else 1)
            if name == PAIRS:
                pairs = case(PAIRS, events)
                measured = measure_slices(spark, pairs, source, options.shards, options.slices, options.repeat)
            else:
                many = events * (options.repeat + WARMING) if source == "stream" else events
                measured = iter([measure(spark, case(name, many), source, options.shards, options.repeat)])
            for result in measured:
                results.append(result)
                print(result, flush=True)
    print(HEAD, *(result.row for result in results), sep="\n")
    if options.json is not None:
        options.json.write_text(json.dumps([{**asdict(r), "rate": r.rate} for r in results], indent=1) + "\n")
    return 0 if all(result.right for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
