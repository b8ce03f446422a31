"""The operator on a streaming DataFrame: how Spark's stateful processor (``deferred``) drives a shard.

Events wait until the watermark has passed their instant, or is certain to have passed it when the next batch comes.
The operator of level k closes what ends before ``watermark − (k − 1) ms``: a quiet shard of an earlier level is woken
by a timer, and timers are in whole milliseconds, so what it derives is certain to be here by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from etalis_py.garbage import few_collections
from etalis_py.kernel.position import NEVER
from etalis_py.spark.errors import SparkError
from etalis_py.spark.input.packed_rows import concat_packed, unpack
from etalis_py.spark.input.rows import (
    before,
    columns_of,
    ends_in,
    events_of,
    events_out,
    in_order,
    items_of,
    preceded,
    sorted_out,
    taken_apart,
    whole_events_out,
)
from etalis_py.spark.input.schema import LAST
from etalis_py.spark.output.answers import Answer
from etalis_py.spark.output.wire import Selected, Wire
from etalis_py.spark.plan.checkpoint_match import ADVICE, JobIdentity
from etalis_py.spark.plan.hot_keys_stream import HotKeyCount, count_keys
from etalis_py.spark.plan.parts import ShardPart
from etalis_py.spark.plan.shard_classes import shard_kind
from etalis_py.spark.plan.spec import ProgramSpec
from etalis_py.spark.shard.shard import Shard
from etalis_py.spark.shard.ship_background import Shipped
from etalis_py.spark.shard.time_slices import AT_ONCE
from etalis_py.spark.state.shard_in_store import StoredShard
from etalis_py.spark.state.store_layout import States

if TYPE_CHECKING:
    import pandas as pd


class LevelTask(msgspec.Struct, frozen=True):
    """The task of the shards of a level.

    ``slots`` has the part and the shard number of each group; ``run`` distinguishes this run from all others.
    ``behind``: how many operators of other jobs the events come through.
    """

    specs: tuple[ProgramSpec, ...]
    slots: dict[int, tuple[ShardPart, int]]
    level: int
    run: str
    metrics: bool
    job: JobIdentity
    lateness: int | None
    tables: tuple[Selected, ...]
    revise: int
    behind: int = 0

    def encoded(self) -> tuple[bytes, tuple[bytes | Shipped, ...]]:
        """The task as bytes, without the backgrounds of its programs; and these backgrounds."""
        bare = msgspec.structs.replace(self, specs=tuple(replace(spec, background=b"") for spec in self.specs))
        return msgspec.msgpack.encode(bare), tuple(spec.background for spec in self.specs)

    @classmethod
    def decoded(cls, data: bytes, backgrounds: tuple[bytes | Shipped, ...]) -> LevelTask:
        """The inverse of ``encoded``."""
        bare = msgspec.msgpack.decode(data, type=cls)
        specs = zip(bare.specs, backgrounds, strict=True)
        return msgspec.structs.replace(bare, specs=tuple(replace(spec, background=b) for spec, b in specs))


class ShardProcessor:
    """The shards of a level, one group after the other.  State: see ``shard_in_store``."""

    def __init__(self, work: LevelTask) -> None:
        self.specs = work.specs
        self.slots = work.slots
        self.level = work.level + work.behind
        self.derived = work.behind > 0  # all events are matches of other operators
        self.run = f"{work.run}/{work.level}"
        self.metrics = work.metrics
        self.job = work.job
        self.lateness = work.lateness
        self.wire = Wire(work.tables)
        self.revise = work.revise

    def open(self, handle: Any, states: States) -> None:
        """Called before the first rows of a task."""
        self.handle = handle
        self.stored = StoredShard(states, self.job)

    def begin(self) -> None:
        """Give every shard a state from the first batch on, so that a missing one is noticed later."""
        self.stored.begin()

    def take(self, key: Any, rows: Iterator[pd.DataFrame], timer_values: Any) -> Iterator[pd.DataFrame]:
        """Handle the rows of a group, as Spark gives them to its workers."""
        from etalis_py.spark.output.frames import as_frame

        packed = (data for frame in rows for data in frame["rows"])
        yield from map(as_frame, self.taken(key, packed, timer_values))

    def wake(self, key: Any, timer_values: Any) -> Iterator[pd.DataFrame]:
        """Handle a timer of a group, likewise."""
        from etalis_py.spark.output.frames import as_frame

        yield from map(as_frame, self.woken(key, timer_values))

    def taken(self, key: Any, packed: Iterable[bytes], timer_values: Any) -> Iterator[pa.RecordBatch]:
        """The answers to packed rows of a group."""
        with few_collections():
            out = self._taken(key, packed, timer_values)
        yield from self.wire.stream_batches(out)

    def woken(self, key: Any, timer_values: Any) -> Iterator[pa.RecordBatch]:
        """The answers to a timer of a group."""
        with few_collections():
            out = self._closed(key, self._load(key), [], timer_values)
        yield from self.wire.stream_batches(out)

    def _taken(self, key: Any, packed: Iterable[bytes], timer_values: Any) -> list[Answer]:
        tables = [unpack(data) for data in packed]
        shard = self._load(key, sum(map(len, tables)))
        over = self._over(timer_values.getCurrentWatermarkInMs())
        out, newest = self._in_columns(shard, tables, over) or self._in_rows(shard, tables, over)
        if any(map(ends_in, tables)):
            out += shard.finish()
        part = shard.part
        counted = count_keys(tables, part.measured, shard.number, part.shards) if part.measured else None
        return self._closed(key, shard, out, timer_values, newest, counted)

    def _in_rows(self, shard: Shard, tables: Iterable[pa.Table], over: int) -> tuple[list[Answer], int]:
        """The answers to these rows before time moves on, and the newest end."""
        out: list[Answer] = []
        newest = NEVER
        for table in tables:
            taken = sorted_out(table, apart=True, numbered=bool(self.revise))
            out += taken.passed
            out += shard.wait(taken.in_order, NEVER if self.derived else over)
            newest = max(newest, shard.newest_of(taken.in_order), shard.newest_of(taken.withdrawn))
            # Events that an earlier level derived in this batch may be before the watermark, but are in time.
            out += shard.wait(taken.derived)
            out += shard.withdraw(taken.withdrawn, over)
            out += shard.withdraw(taken.taken_back)
        return out, newest

    def _in_columns(self, shard: Shard, tables: Sequence[pa.Table], over: int) -> tuple[list[Answer], int] | None:
        """The answers to these rows, with instants that are certainly over taken at once, in columns."""
        if self.level > 1 or not shard.reads_at_once(sum(map(len, tables))):
            return None
        plain = [each for table in tables if (each := events_out(table)) is not None]
        whole = len(plain) < len(tables)
        if whole:
            plain = [each for table in tables if (each := whole_events_out(table)) is not None]
            if len(plain) < len(tables) or shard.engine.has_windows:
                return None
        read, columns = (items_of, taken_apart) if whole else (events_of, columns_of)
        out: list[Answer] = [row for _, passed in plain for row in passed]
        events = concat_packed([events for events, _ in plain])
        newest = max(pc.max(events.column("end")).as_py(), NEVER) if len(events) else NEVER
        closing = LAST if any(map(ends_in, tables)) else max(over, self._surely_over(newest))
        late, ready, coming = before(events, over, closing)
        out += shard.wait(read(late), over)
        out += shard.wait(read(coming))
        if len(ready):
            rows = in_order(preceded(shard.waiting_before(closing), ready, whole=whole))
            for first in range(0, len(rows), AT_ONCE):
                out += shard.take_at_once(columns(rows.slice(first, AT_ONCE)))
        return out, newest

    def _over(self, watermark: int) -> int:
        """The time before which all instants are over.  Spark gives a watermark of 0 as long as there is none."""
        return (watermark - (self.level - 1)) * 1000 if watermark > 0 else NEVER

    def _surely_over(self, newest: int) -> int:
        """The time before which events are late from the next batch on, judging by the newest event of this one alone.

        The next watermark is at least there, so these instants can be closed now that all of the batch is here, and the
        batch need not be stored until then.  Later levels wait, because earlier ones may still derive events for them.
        Spark's watermark is never below 0, which stands for none, so instants before 1970 wait.
        """
        if self.level > 1 or self.lateness is None or newest == NEVER:
            return NEVER
        return self._over(newest // 1000 - -(-self.lateness // 1000))

    def _load(self, key: Any, size: int = 0) -> Shard:
        slot = int(key[0])
        if slot not in self.slots:
            self.stored.compare()
            raise SparkError(f"the checkpoint has a shard, of the number {slot}, that this program has not; {ADVICE}")
        part, number = self.slots[slot]

        def fresh() -> Shard:
            spec = self.specs[part.program]
            return shard_kind(spec, part)(spec, part, number, journal=True, revise=self.revise)

        return self.stored.load((self.run, slot), fresh, size)

    def _closed(
        self,
        key: Any,
        shard: Shard,
        out: list[Answer],
        timer_values: Any,
        newest: int = NEVER,
        counted: HotKeyCount | None = None,
    ) -> list[Answer]:
        watermark = timer_values.getCurrentWatermarkInMs()
        out += shard.close_before(max(self._over(watermark), self._surely_over(newest)))
        self.stored.save((self.run, int(key[0])), shard)
        due = shard.next_due()
        if due is not None:
            # The timer is for the first watermark by which the instant is over, and never for one that has passed.
            self.handle.registerTimer(max(due // 1000 + self.level, watermark + 1))
        if self.metrics or counted is not None:
            out.append(shard.metric(**self.stored.usage(), **({} if counted is None else counted.numbers())))
        return out
