"""``run_on_spark``: a stream that Python reads, run through Spark, with matches in the form that sinks take.

Events go to a Parquet file first, a few thousand at a time, and Spark reads that file: all executors must see its
folder.  This module decides which events are too late, like the embedded engine, because Spark does not know the order
of arrival.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from etalis_py.engine.engine import Engine
from etalis_py.engine.tie_order import refuse_other_ties
from etalis_py.events import Event, Retraction
from etalis_py.spark.errors import SparkError, short_errors
from etalis_py.spark.input.event_objects import event_objects
from etalis_py.spark.input.schema import ARROW_EVENTS, EVENTS
from etalis_py.spark.input.update_rows import UPDATES, write_updates
from etalis_py.spark.input.watermarks import micros
from etalis_py.spark.output.results import SparkMatch, SparkRun
from etalis_py.spark.pipeline import Programs, compiled_programs, matches
from etalis_py.spark.plan.options import JobSettings, RunOptions
from etalis_py.spark.sessions import PARTITIONS, session
from etalis_py.spark.state.run_folder import (
    Continued,
    address,
    batches,
    go_on,
    next_file,
    plan_stream,
    put_updates,
    read_state,
    refuse_other_files,
    same_horizon,
    same_reading,
    same_shards,
    same_updates,
    unconfirmed,
    write_state,
)
from etalis_py.streams import Idle, Punctuation, Stream
from etalis_py.values.keywords import check_keywords

_AT_ONCE = 50_000
_BATCH = 1024
_STATED = ["start", "end", "stream", "graph", "triples", "retract"]
_MS = 1000  # Spark's watermark is in whole milliseconds


@dataclass(frozen=True, slots=True)
class SparkResult:
    """The matches in the order of the embedded engine, and the events that came too late."""

    matches: list[SparkMatch]
    late: list[Event]


def run_on_spark(
    program: Programs,
    events: Iterable[Any],
    *,
    spark: SparkSession | None = None,
    master: str | None = None,
    **options: Unpack[RunOptions],
) -> SparkResult:
    """Run a program over a finite stream of events (``read_stream``) on Spark.

    With ``checkpoint`` the run is a streaming one whose state, input and matches stay in that folder: called again with
    further events, it continues from there, and gives only the new matches; the stream then has no end, so what is only
    known at the end is not reported.  ``options`` are those of ``JobSettings``.
    """
    check_keywords("run_on_spark", options, RunOptions.__annotations__)
    if spark is not None and not hasattr(spark, "createDataFrame"):
        raise SparkError(f"spark={spark!r} is no session: session(…) makes one, and master= takes an address of Spark")
    if spark is not None and master is not None:
        raise SparkError(f"master={master!r} starts a session, and spark= is one already: give one of them")
    if isinstance(events, Stream):
        refuse_other_ties(events.ties, None, "Spark has the events of a time in many engines")
    late: list[Event] = []

    def start(shards: int | None) -> AbstractContextManager[SparkSession]:
        return stopping(session(master, shards=shards)) if spark is None else nullcontext(spark)

    taken = event_objects(events, "run_on_spark")
    with short_errors(), open_run(program, taken, start, late.append, JobSettings(**options)) as run:
        run.check_updates()
        result = SparkResult(list(run), [*late, *run.late_events()])
        run.done()
    return result


@contextmanager
def stopping(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, stopped when it is no longer needed."""
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def open_run(
    program: Programs,
    events: Iterable[Any],
    start: Callable[[int | None], AbstractContextManager[SparkSession]],
    late: Callable[[Event], None],
    options: JobSettings,
) -> Iterator[SparkRun]:
    """Like ``run_on_spark``, for results that are not held in memory: the matches exist while the context is open.

    All events are read before ``start`` is asked for a session, for a number of shards (that of the checkpoint if there
    is one).  ``late`` is called with each event that comes too late.
    """
    shards, revise = options.shards, micros("revise", options.revise)
    lateness = None if options.lateness is None else micros("lateness", options.lateness)
    variables = variables_of(program, options.policy)
    if options.checkpoint is None:
        with tempfile.TemporaryDirectory(prefix="etalis-") as name:
            file, changes = Path(name) / "events.parquet", Path(name) / "updates.parquet"
            count = write_events(file, InTime(lateness, late, revise=revise).of(events))
            if options.updates is not None:
                write_updates(changes, options.updates)
            with start(shards) as spark:
                frame = spark.read.schema(EVENTS).parquet(address(file))
                asked = options.matching(shards)
                if options.updates is not None:
                    asked["updates"] = spark.read.schema(UPDATES).parquet(address(changes))
                rows = matches(program, frame, **asked)
                yield SparkRun(rows, count, variables, options.render)
        return
    folder = Path(options.checkpoint)
    state = read_state(folder)
    if state is None:
        refuse_other_files(folder)
    else:
        if shards is not None:
            same_shards(folder, state, shards)
        same_updates(folder, state, options.updates is not None)
        same_reading(folder, state, options.reading)
        same_horizon(folder, state, revise)
    file = next_file(folder)
    part = folder / "events.part"
    over = None if state is None else state.over
    confirmed = 0 if state is None else int(file.stem) if state.confirmed is None else state.confirmed
    failed = unconfirmed(folder, confirmed)
    over = reached(over, failed, lateness or 0)
    events = without_all_taken(events, failed) if revise else without_taken(events, failed)
    before = earlier(folder, over - revise) if over is not None and revise else ()
    ordering = InTime(lateness, late, over, revise=revise, before=before)
    count = write_events(part, ordering.of(events), first=int(file.stem) << 40)
    with start(shards if state is None else state.shards) as spark:
        number = int(shards or spark.conf.get(PARTITIONS) or 1) if state is None else state.shards
        reported = -1 if state is None else state.told
        how = options.reading or ({} if state is None else state.reading)
        going_on = Continued(number, reported, ordering.over, options.updates is not None, how, revise, confirmed)
        if options.updates is not None:
            (folder / "updates").mkdir(exist_ok=True)
        watermark = -(-(lateness or 0) // _MS) * _MS
        planned = plan_stream(spark, program, folder, options.matching(number, watermark))
        if options.updates is not None:
            put_updates(folder, file.name, options.updates)
        part.rename(file)
        write_state(folder, going_on)  # after the file: without its events the time reached would make them late
        rows = go_on(spark, folder, planned, reported)

        def done() -> None:
            last = max((number for number, _ in batches(folder)), default=reported)
            write_state(folder, msgspec.structs.replace(going_on, told=last, confirmed=int(file.stem) + 1))

        yield SparkRun(rows, count, variables, options.render, done)


def variables_of(program: Programs, policy: str | None) -> set[str]:
    """The variables that matches may bind."""
    names: set[str] = set()
    for compiled in compiled_programs(program, policy).values():
        names.update(v for output in compiled.rules().outputs for v in output.variables)
        names.update(v for plan in compiled.plans for v in plan.variables)
    return names


class InTime:
    """The events that are not late, in order of arrival, as decided by an engine without queries.

    ``over``: every instant before it is over, by the arrivals and the lateness; None if nothing has arrived.
    ``before``: earlier events within the horizon of corrections.
    """

    def __init__(
        self,
        lateness: int | None,
        late: Callable[[Event], None],
        over: int | None = None,
        *,
        revise: int = 0,
        before: Iterable[Event] = (),
    ) -> None:
        self.over = over
        self._lateness, self._late = lateness or 0, late
        self._engine = None if lateness is None and not revise else Engine(lateness=lateness or 0, revise=revise)
        if self._engine is not None and over is not None:
            self._engine.push_all(before)
            self._engine.advance(over - 1)
            self._engine.dead_letters.clear()

    def of(self, items: Iterable[Any]) -> Iterator[Event]:
        batch: list[Event] = []
        for item in items:
            if isinstance(item, Idle):
                continue
            if not isinstance(item, Punctuation):
                batch.append(item)
                if len(batch) < _BATCH:
                    continue
            for piece in split_double_withdrawals(batch):
                yield from self._in_time(piece)
            batch = []
            if isinstance(item, Punctuation) and self._engine is not None:
                self._engine.advance(item.time)
        for piece in split_double_withdrawals(batch):
            yield from self._in_time(piece)

    def _in_time(self, batch: list[Event]) -> list[Event]:
        if not batch:
            return batch
        over = max(event.end for event in batch) - self._lateness
        self.over = over if self.over is None else max(self.over, over)
        engine = self._engine
        if engine is None:
            return batch
        engine.push_all(batch)
        if not engine.dead_letters:
            return batch
        refused = Counter(e for e in engine.dead_letters if not isinstance(e, Retraction))
        never = {
            (e.start, e.end, e.stream, e.graph, t)
            for e in engine.dead_letters
            if isinstance(e, Retraction)
            for t in e.triples
        }
        for event in engine.dead_letters:
            self._late(event)
        engine.dead_letters.clear()
        kept: list[Event] = []
        for event in reversed(batch):  # of several equal events, the last ones to arrive are the late ones
            if isinstance(event, Retraction):
                where = event.start, event.end, event.stream, event.graph
                if triples := tuple(t for t in event.triples if (*where, t) not in never):
                    kept.append(event._replace(triples=triples))
            elif refused[event]:
                refused[event] -= 1
            else:
                kept.append(event)
        return kept[::-1]


def split_double_withdrawals(batch: list[Event]) -> Iterator[list[Event]]:
    """Split a batch so that no piece withdraws the same triple of an event twice.

    A refused withdrawal can then be attributed to the one event that asked for it.
    """
    first, gone = 0, set[object]()
    for i, event in enumerate(batch):
        if isinstance(event, Retraction):
            withdrawn = {(event.start, event.end, event.stream, event.graph, t) for t in event.triples}
            if not gone.isdisjoint(withdrawn):
                yield batch[first:i]
                first, gone = i, set()
            gone |= withdrawn
    yield batch[first:]


def write_events(file: Path, events: Iterable[Event], *, first: int = 0) -> int:
    """Events as a Parquet file with the columns of EVENTS, numbered from ``first`` on; returns how many there are."""
    count = 0
    with pq.ParquetWriter(file, ARROW_EVENTS) as writer:
        for batch in _batches(events):
            columns = [
                [e.start for e in batch],
                [e.end for e in batch],
                [e.end for e in batch],
                [e.stream for e in batch],
                [e.graph for e in batch],
                [[{"s": s, "p": p, "o": o} for s, p, o in e.triples] for e in batch],
                [isinstance(e, Retraction) for e in batch],
                range(first + count, first + count + len(batch)),
            ]
            arrays = [pa.array(c, t) for c, t in zip(columns, ARROW_EVENTS.types, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=ARROW_EVENTS))
            count += len(batch)
    return count


def earlier(folder: Path, oldest: int) -> Iterator[Event]:
    """Events of earlier calls that end at ``oldest`` or later, in order of arrival."""
    for file in sorted((folder / "events").glob("*.parquet")):
        yield from _stated(pq.read_table(file, columns=_STATED, filters=[("end", ">=", oldest)]))


def without_taken(events: Iterable[Any], failed: Iterable[Path]) -> Iterator[Any]:
    """What is new among the events of a call: those that failed calls have taken may be given again, in their order.

    To take them again would change no match, but they would be said to be late, because the time has passed them.
    """
    taken = _taken(failed)
    expected = next(taken, None)
    for event in events:
        if event == expected and type(event) is type(expected):
            expected = next(taken, None)
        else:
            yield event


def without_all_taken(events: Iterable[Any], failed: Iterable[Path]) -> Iterator[Any]:
    """What is new among the events of a call with corrections, if it repeats all that failed calls have taken.

    A single event does not show that: the next call may state again what the one before has stated and withdrawn.  So
    events are held back until all of those that were taken have come.
    """
    taken = _taken(failed)
    expected = next(taken, None)
    given, held, new = iter(events), list[Any](), list[Any]()
    while expected is not None and (event := next(given, None)) is not None:
        held.append(event)
        if event == expected and type(event) is type(expected):
            expected = next(taken, None)
        else:
            new.append(event)
    yield from held if expected is not None else new
    yield from given


def _taken(failed: Iterable[Path]) -> Iterator[Event]:
    """The events that failed calls have taken."""
    for file in failed:
        for rows in pq.ParquetFile(file).iter_batches(_BATCH, columns=_STATED):
            yield from _stated(rows)


def reached(over: int | None, failed: Iterable[Path], lateness: int) -> int | None:
    """The time before which all is over, also if a failed call ended before it could write it down."""
    ends = (pc.max(pq.read_table(file, columns=["end"]).column("end")).as_py() for file in failed)
    times = [over, *(None if end is None else end - lateness for end in ends)]
    return max((time for time in times if time is not None), default=None)


def _stated(rows: pa.Table | pa.RecordBatch) -> Iterator[Event]:
    """The events of rows of a file."""
    for row in rows.to_pylist():
        triples = tuple((t["s"], t["p"], t["o"]) for t in row["triples"])
        kind = Retraction if row["retract"] else Event
        yield kind(row["start"], row["end"], triples, row["stream"], row["graph"])


def _batches(events: Iterable[Event]) -> Iterator[list[Event]]:
    batch: list[Event] = []
    for event in events:
        batch.append(event)
        if len(batch) >= _AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


__all__ = ["InTime", "SparkMatch", "SparkResult", "open_run", "run_on_spark", "write_events"]
