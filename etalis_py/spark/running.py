"""``run_on_spark``: the streams of the command line through Spark, matches as the sinks take them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Row, SparkSession

from etalis_py.engine.matches import json_term
from etalis_py.events import Event, Triple
from etalis_py.spark.pipeline import Programs, SparkError, matches
from etalis_py.spark.schema import ARROW_TRIPLES, EVENTS
from etalis_py.spark.session import session
from etalis_py.streams import Idle, Punctuation

_ARROW = pa.schema(
    [
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("stream", pa.string()),
        ("graph", pa.string()),
        ("triples", ARROW_TRIPLES),
    ]
)
_AT_ONCE = 50_000
META = "etalis.json"


@dataclass(frozen=True, slots=True)
class SparkMatch:
    """A match that came out of Spark; what a sink takes."""

    query: str
    id: str
    bindings: Mapping[str, str]
    triples: tuple[Triple, ...] | None
    boolean: bool | None
    start_us: int | None
    end_us: int | None
    render: Callable[[int], int | str] = field(compare=False, repr=False)

    @property
    def start(self) -> int | str | None:
        return None if self.start_us is None else self.render(self.start_us)

    @property
    def end(self) -> int | str | None:
        return None if self.end_us is None else self.render(self.end_us)

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--format jsonl`` prints."""
        result: dict[str, Any] = {"query": self.query, "id": self.id}
        if self.triples is not None:
            result["triples"] = [f"{s} {p} {o} ." for s, p, o in self.triples]
        elif self.boolean is not None:
            result["boolean"] = self.boolean
        else:
            result["bindings"] = {v: json_term(t) for v, t in sorted(self.bindings.items())}
        result["start"], result["end"] = self.start, self.end
        return result


@dataclass(frozen=True, slots=True)
class SparkResult:
    """The matches in the order of their ends, and the events that came too late."""

    matches: list[SparkMatch]
    late: list[Event]


def run_on_spark(
    program: Programs,
    events: Iterable[Any],
    *,
    spark: SparkSession | None = None,
    master: str | None = None,
    shards: int | None = None,
    background: Any = None,
    entailment: str = "rdfs",
    policy: str | None = None,
    lateness: int = 0,
    checkpoint: str | Path | None = None,
    render: Callable[[int], int | str] | None = None,
) -> SparkResult:
    """Run a program over a finite stream of events (``read_stream``) on Spark.

    Events are written to a Parquet file first, from which Spark reads.  With ``checkpoint`` the run is a streaming one
    whose state, input and matches stay in that folder: called again with further events, it goes on from there, and
    gives the new matches only; the stream then has no end, so what is only known at the end is not reported.
    ``lateness`` matters for such a run; without it all events are put in order.
    ``render``: how times are given (default: as seconds).
    """
    own = spark is None
    active = session(master, shards=shards) if spark is None else spark
    try:
        options: dict[str, Any] = {
            "shards": shards,
            "background": background,
            "entailment": entailment,
            "policy": policy,
        }
        if checkpoint is None:
            with tempfile.TemporaryDirectory(prefix="etalis-") as folder:
                write_events(Path(folder) / "events.parquet", events)
                rows = matches(program, active.read.parquet(folder), **options).collect()
        else:
            rows = _continued(active, program, events, Path(checkpoint), lateness, options)
        return _result(rows, render or _seconds)
    finally:
        if own:
            active.stop()


def write_events(file: Path, events: Iterable[Any]) -> int:
    """Events as a Parquet file with the columns of EVENTS; gives their number."""
    count = 0
    with pq.ParquetWriter(file, _ARROW) as writer:
        for batch in _batches(events):
            columns = [
                [e.start for e in batch],
                [e.end for e in batch],
                [e.end for e in batch],
                [e.stream for e in batch],
                [e.graph for e in batch],
                [[{"s": s, "p": p, "o": o} for s, p, o in e.triples] for e in batch],
            ]
            arrays = [pa.array(c, t) for c, t in zip(columns, _ARROW.types, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=_ARROW))
            count += len(batch)
    return count


def _batches(events: Iterable[Any]) -> Iterator[list[Event]]:
    batch: list[Event] = []
    for item in events:
        if isinstance(item, (Idle, Punctuation)):
            continue
        batch.append(item)
        if len(batch) >= _AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _continued(
    spark: SparkSession,
    program: Programs,
    events: Iterable[Any],
    folder: Path,
    lateness: int,
    options: dict[str, Any],
) -> list[Row]:
    """A streaming run over what is new, to its end."""
    source, sink, state = folder / "events", folder / "matches", folder / "state"
    source.mkdir(parents=True, exist_ok=True)
    _same_shards(folder, int(options["shards"] or spark.conf.get("spark.sql.shuffle.partitions") or 0))
    before = {p.name for p in sink.glob("*.parquet")} if sink.exists() else set()
    number = len(list(source.glob("*.parquet")))
    part = folder / "events.part"
    write_events(part, events)
    part.rename(source / f"{number:06d}.parquet")
    frame = spark.readStream.schema(EVENTS).parquet(str(source))
    found = matches(program, frame, lateness=lateness, **options)
    query = (
        found.writeStream.format("parquet")
        .option("checkpointLocation", str(state))
        .option("path", str(sink))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    new = [str(p) for p in sorted(sink.glob("*.parquet")) if p.name not in before]
    return spark.read.schema(found.schema).parquet(*new).collect() if new else []


def _same_shards(folder: Path, shards: int) -> None:
    """The number of shards is fixed in a checkpoint."""
    file = folder / META
    if not file.exists():
        file.write_bytes(msgspec.json.encode({"shards": shards}))
        return
    stored = msgspec.json.decode(file.read_bytes())["shards"]
    if stored != shards:
        raise SparkError(
            f"the checkpoint {folder} was made with {stored} shards, now {shards} are asked for: go on with {stored}, "
            "or take a new folder and replay the stream"
        )


def _result(rows: Iterable[Row], render: Callable[[int], int | str]) -> SparkResult:
    found: list[SparkMatch] = []
    late: list[Event] = []
    for row in rows:
        triples = None if row["triples"] is None else tuple((t["s"], t["p"], t["o"]) for t in row["triples"])
        if row["kind"] == "match":
            start, end = row["start"], row["end"]
            bindings = row["bindings"] or {}
            found.append(SparkMatch(row["query"], row["id"], bindings, triples, row["boolean"], start, end, render))
        elif row["kind"] == "dead_letter":
            late.append(Event(row["start"], row["end"], triples or (), row["stream"] or ""))
    last = 2**63
    found.sort(
        key=lambda m: (last if m.end_us is None else m.end_us, m.query, m.start_us or 0, sorted(m.bindings.items()))
    )
    return SparkResult(found, late)


def _seconds(us: int) -> int | str:
    whole, rest = divmod(us, 1_000_000)
    return whole if not rest else f"{whole}.{rest:06d}".rstrip("0")


__all__ = ["SparkMatch", "SparkResult", "run_on_spark", "write_events"]
