"""The parts of ``benchmarks.spark``: the workloads, the files with their events, and the runs over these.

The answers of a run are the number of its matches and the sum of the hashes of their ids, counted in the JVM; they must
be those of the embedded engine.
"""

from __future__ import annotations

import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from etalis_rules.terms import RDF_TYPE
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor  # type: ignore[attr-defined]

from benchmarks.taxonomy import ROOT, hierarchy
from benchmarks.taxonomy_stream import EX, REPORTS, TAXONOMY, instances
from benchmarks.workloads import w1_pairs, w2_stock, w4_rising, w10_records
from benchmarks.workloads.common import int_of, integer
from etalis_py import Engine, Program, compile
from etalis_py.events import Event
from etalis_py.knowledge import Knowledge, load
from etalis_py.spark import end_of_stream, events_from_nquads, events_from_rows, matches
from etalis_py.spark.input.schema import FLAT_EVENTS

SECOND = 1_000_000
WORKLOADS = {w.name: w for w in (w1_pairs.WORKLOAD, w2_stock.WORKLOAD, w4_rising.WORKLOAD)}
RECORDS = w10_records.WORKLOADS[1]
CLASSES = "classes"
PAIRS = "pairs"  # two keys in sequence, ten seconds apart: divided by slices of time, not by a key
FILES = 2  # per batch; as many as cores, as Spark writes them
NAMES = (*WORKLOADS, RECORDS.name, CLASSES, PAIRS)
WIDE = "end long, card string, city string, shop string, kind string, amount int, items int"
"""The columns of a table of records."""
_OBJECTS = {"city": "<urn:x:{city}>", "amount": "{amount}", "shop": "<urn:x:{shop}>", "kind": "<urn:x:{kind}>"}
_OBJECTS |= {"items": "{items}"}
MAPPING = {
    "time": "{end}",
    "triple": [
        {"subject": "<urn:x:{card}>", "predicate": f"<urn:p:{name}>", "object": o} for name, o in _OBJECTS.items()
    ],
}

Answers = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Case:
    """A program with its events and the right answers."""

    name: str
    program: Program
    events: list[Event]
    background: Knowledge | None
    answers: Answers

    @property
    def wide(self) -> bool:
        """Whether its events are the rows of a table with a column for each property."""
        return self.name == RECORDS.name

    @property
    def rows(self) -> int:
        """Its rows: triples, or records."""
        return len(self.events) if self.wide else sum(len(event.triples) for event in self.events)

    def read(self, rows: DataFrame) -> DataFrame:
        """The events of its files."""
        return events_from_rows(rows, mapping=MAPPING, time_unit="us") if self.wide else rows


@dataclass(slots=True)
class Run:
    """One run: how long it took, its answers, and for a stream how long each batch took.

    ``work`` is the processor time of all processes; for a stream, ``worked`` has that of each batch.
    """

    seconds: float
    answers: Answers
    work: float = 0.0
    batches: list[float] = field(default_factory=list)
    worked: list[float] = field(default_factory=list)


def case(name: str, size: int) -> Case:
    """A workload with ``size`` events: one of the engine's, the reasoning over 40,080 sub-classes, or the pairs."""
    if name == CLASSES:
        return _classes(size)
    if name == PAIRS:
        return _pairs(size)
    workload = RECORDS if name == RECORDS.name else WORKLOADS[name]
    program = compile(workload.query, policy=workload.policy)
    events = workload.events(size)
    return Case(name, program, events, None, _expected(program, events, None))


def _classes(size: int) -> Case:
    """As in [EP] Test 2: whether the subject of a triple is an instance of the class of concern."""
    triples = list(hierarchy())
    things = instances({c for s, _, o in triples for c in (s, o)})
    known = load(named={TAXONOMY: [triples, [(x, RDF_TYPE, c) for x, c in things]]}, cache=False)
    draw = random.Random(1)
    names = [x for x, _ in things] + [f"<{EX}stranger{n}>" for n in range(len(things))]
    events = [Event(n * SECOND, n * SECOND, ((draw.choice(names), REPORTS, f'"{n % 100}"'),)) for n in range(size)]
    program = compile(f"SELECT ?x ?y WHERE {{ ?x {REPORTS} ?y . GRAPH {TAXONOMY} {{ ?x {RDF_TYPE} {ROOT} }} }}")
    return Case(CLASSES, program, events, known, _expected(program, events, known))


def _pairs(size: int) -> Case:
    """An event every four seconds, and at every eighth two pairs."""
    draw = random.Random(1)
    predicates = ["<urn:stops>", *["<urn:fails>"] * 7]
    triples = ((f"<urn:m{draw.randrange(1000)}>", predicates[n % 8], f'"{n}"') for n in range(size))
    events = [Event(4 * n * SECOND, 4 * n * SECOND, (triple,)) for n, triple in enumerate(triples)]
    text = "SELECT ?a ?x ?b ?y WHERE { { ?a <urn:fails> ?x } SEQ { ?b <urn:stops> ?y } } WITHIN 10 SECONDS"
    program = compile(text)
    return Case(PAIRS, program, events, None, _expected(program, events, None))


def _expected(program: Program, events: list[Event], background: Knowledge | None) -> Answers:
    engine = Engine(program, policy=program.policy, background=background)
    matched = [*engine.push_all(events), *engine.close()]
    return len(matched), sum(crc32(m.id.encode()) for m in matched)


# --- files -----------------------------------------------------------------------------------------------------


def write_records(file: Path, events: Sequence[Event]) -> None:
    """One row an event, with the columns of ``WIDE``, in eight row groups."""
    city, amount, shop, kind, items = zip(*([o for _, _, o in e.triples] for e in events), strict=True)
    names = {"card": [e.triples[0][0] for e in events], "city": city, "shop": shop, "kind": kind}
    columns = {name: pa.array([iri[len("<urn:x:") : -1] for iri in iris]) for name, iris in names.items()}
    numbers = {"amount": amount, "items": items}
    columns |= {name: pa.array(list(map(int_of, terms)), pa.int32()) for name, terms in numbers.items()}
    table = pa.table({"end": pa.array([e.end for e in events], pa.int64()), **columns})
    pq.write_table(table, file, row_group_size=-(-len(events) // 8))


def write_parquet(file: Path, events: Iterable[Event]) -> None:
    """One row a triple, in eight row groups, so that Spark reads with all cores."""
    rows = [(e.start, e.end, e.end, e.stream, e.graph, *triple) for e in events for triple in e.triples]
    columns = dict(
        zip(("start", "end", "time", "stream", "graph", "s", "p", "o"), zip(*rows, strict=True), strict=True)
    )
    arrays = {name: pa.array(values) for name, values in columns.items()}
    arrays["time"] = arrays["time"].cast(pa.timestamp("us", tz="UTC"))
    pq.write_table(pa.table(arrays), file, row_group_size=-(-len(rows) // 8))


def write_files(folder: Path, case: Case, size: int) -> None:
    """Parquet files of ``size`` events each."""
    write = write_records if case.wide else write_parquet
    for n, some in enumerate(_cut(case.events, size)):
        write(folder / f"{n:04d}.parquet", some)


def write_nquads(folder: Path, events: Iterable[Event], files: int = 2) -> None:
    """One statement per line; the name of its graph has its time."""
    lines = [f"{s} {p} {o} <urn:t:{e.end}> .\n" for e in events for s, p, o in e.triples]
    for n in range(files):
        (folder / f"{n}.nq").write_text("".join(lines[n::files]))


def read_nquads(spark: SparkSession, folder: str) -> DataFrame:
    lines = spark.read.text(folder)
    return events_from_nquads(lines, time=F.regexp_extract("value", r"<urn:t:(\d+)> \.$", 1).cast("long"))


# --- runs ------------------------------------------------------------------------------------------------------


def batch_run(case: Case, events: DataFrame, shards: int, slices: int | None = None) -> Run:
    """A batch query from the files to the last match."""
    began, before = time.perf_counter(), processor_time()
    answers = _answers(
        matches(case.program, case.read(events), shards=shards, slices=slices, background=case.background)
    )
    return Run(time.perf_counter() - began, answers, processor_time() - before)


def processor_time() -> float:
    """The processor seconds of this process and all those it started, on Linux; elsewhere 0."""
    return sum(processes().values()) / os.sysconf("SC_CLK_TCK")


def processes() -> dict[int, int]:
    """This process and all those it started, with the ticks of the processor that each has used.

    An engine process outlives the worker that started it, but stays in the process group of Spark's daemon.
    """
    ticks: dict[int, int] = {}
    children: defaultdict[int, set[int]] = defaultdict(set)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
        for leader in fields[1:3]:
            children[int(leader)].add(int(folder.name))
        ticks[int(folder.name)] = sum(map(int, fields[11:15]))
    found, waiting = dict[int, int](), {os.getpid()}
    while waiting:
        process = waiting.pop()
        found[process] = ticks.get(process, 0)
        waiting |= children[process] - found.keys()
    return found


def plain_run(events: DataFrame, shards: int) -> Run:
    """The baseline: Spark reads the same rows, routes and sorts them, and Python counts them.

    The answer is the number of rows.
    """
    began, before = time.perf_counter(), processor_time()
    columns = ("s", "p", "o", "end") if "s" in events.columns else events.columns
    key = "s" if "s" in events.columns else "card"
    rows = events.select(*columns).repartition(shards, key).sortWithinPartitions("end")
    answers = _rows(rows.mapInArrow(_counted, "rows long"))
    return Run(time.perf_counter() - began, answers, processor_time() - before)


def _counted(chunks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"rows": [sum(map(len, chunks))]})


class Counting(StatefulProcessor):
    """A stateful function that counts its rows and does nothing else."""

    def init(self, handle: Any) -> None:
        self._state = handle.getValueState("state", "value binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        yield pd.DataFrame({"rows": [sum(map(len, rows))]})

    def close(self) -> None:
        """Nothing to close."""


def _rows(counted: DataFrame) -> Answers:
    return counted.agg(F.sum("rows")).collect()[0][0] or 0, 0


def plain_stream_run(spark: SparkSession, case: Case, folder: Path, size: int, shards: int) -> Run:
    """The same for a stream: a stateful function counts the rows, with as many keys as shards."""

    def taken(events: DataFrame) -> DataFrame:
        shard = F.pmod(F.crc32("card" if case.wide else "s"), F.lit(shards)).alias("shard")
        columns = events.columns if case.wide else ("s", "p", "o", "end")
        rows = events.select(shard, *columns).groupBy("shard")
        return rows.transformWithStateInPandas(Counting(), "rows long", "append", "none")

    return _stream_run(spark, case, folder, size, taken, _rows)


def _answers(rows: DataFrame) -> Answers:
    counted = rows.where("kind = 'match'").agg(F.count("id"), F.sum(F.crc32(F.col("id").cast("binary"))))
    count, total = counted.collect()[0]
    return count, total or 0


def stream_run(spark: SparkSession, case: Case, folder: Path, size: int, shards: int) -> Run:
    """A streaming query with ``size`` events per batch, from files, with its state in RocksDB.

    The last events are evaluated by the row that ends the stream, or one that comes later.  ``batches`` of the run has
    the time of each.
    """
    return _stream_run(
        spark,
        case,
        folder,
        size,
        lambda events: matches(case.program, case.read(events), shards=shards, background=case.background),
        _answers,
    )


def _stream_run(
    spark: SparkSession,
    case: Case,
    folder: Path,
    size: int,
    taken: Callable[[DataFrame], DataFrame],
    answer: Callable[[DataFrame], Answers],
) -> Run:
    source, state = folder / "stream", folder / "state"
    source.mkdir()
    write_files(source, case, -(-size // FILES))
    last = case.events[-1].end + SECOND
    if case.wide:  # there is no row that ends a stream of records; a later one lets time pass
        write_records(source / "9999.parquet", [_last_record(last)])
    else:
        write_parquet(source / "9999.parquet", [_as_event(row) for row in end_of_stream(spark, last).collect()])
    schema = WIDE if case.wide else FLAT_EVENTS
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES).parquet(str(source))
    rows = taken(frame)
    answers: list[Answers] = []
    ends: list[float] = []
    works: list[float] = []

    def take(batch: DataFrame, number: int) -> None:
        answers.append(answer(batch))
        ends.append(time.perf_counter())
        works.append(processor_time())

    began, before = time.perf_counter(), processor_time()
    query = rows.writeStream.foreachBatch(take).option("checkpointLocation", str(state)).trigger(availableNow=True)
    query.start().awaitTermination()
    batches = [b - a for a, b in zip([began, *ends], ends, strict=False)]
    total = sum(n for n, _ in answers), sum(h for _, h in answers)
    worked = [b - a for a, b in zip([before, *works], works, strict=False)]
    return Run(sum(batches), total, sum(worked), batches, worked)


def _cut(events: list[Event], size: int) -> Iterator[list[Event]]:
    for first in range(0, len(events), size):
        yield events[first : first + size]


def _last_record(at: int) -> Event:
    objects = ("<urn:x:none>", integer(0), "<urn:x:none>", "<urn:x:none>", integer(0))
    return Event(
        at, at, tuple(("<urn:x:last>", f"<urn:p:{name}>", o) for name, o in zip(_OBJECTS, objects, strict=True))
    )


def _as_event(row: object) -> Event:
    fields = row.asDict(recursive=True)  # type: ignore[attr-defined]
    triples = tuple((t["s"], t["p"], t["o"]) for t in fields["triples"])
    return Event(fields["start"], fields["end"], triples)
