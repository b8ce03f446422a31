"""The operator on a streaming DataFrame: what Spark's stateful processor (``deferred``) does with a shard.

Events wait until the watermark has passed their instant, or certainly will have when the next batch comes.  The
operator of level k closes what ends before ``watermark − (k − 1) ms``: a shard of an earlier level that was quiet is
woken by a timer, and timers are in whole milliseconds, so what it derives is certainly here by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

import pandas as pd

from etalis_py.kernel.garbage import few_collections
from etalis_py.kernel.position import NEVER
from etalis_py.spark.answers import Row, Table
from etalis_py.spark.errors import SparkError
from etalis_py.spark.identity import ADVICE, JobIdentity
from etalis_py.spark.packing import unpack
from etalis_py.spark.parts import Part
from etalis_py.spark.rows import sorted_out
from etalis_py.spark.shard import Shard
from etalis_py.spark.spec import ProgramSpec
from etalis_py.spark.states import States
from etalis_py.spark.stored import StoredShard
from etalis_py.spark.wire import Wire

_end = itemgetter(1)


class ShardProcessor:
    """The shards of a level, one group after the other.  State: see ``stored``."""

    def __init__(
        self,
        specs: tuple[ProgramSpec, ...],
        slots: Mapping[int, tuple[Part, int]],
        level: int,
        run: str,
        metrics: bool,
        job: JobIdentity,
        lateness: int | None,
        wire: Wire,
        revise: int = 0,
    ) -> None:
        self.specs = specs
        self.slots = dict(slots)
        self.level = level
        self.run = f"{run}/{level}"
        self.metrics = metrics
        self.job = job
        self.lateness = lateness
        self.wire = wire
        self.revise = revise

    def open(self, handle: Any, states: States) -> None:
        """Before the first rows of a task."""
        self.handle = handle
        self.stored = StoredShard(states, self.job)

    def begin(self) -> None:
        """Every shard has a state from the first batch on, so that one that is missing later is noticed."""
        self.stored.begin()

    def take(self, key: Any, rows: Iterator[pd.DataFrame], timer_values: Any) -> Iterator[pd.DataFrame]:
        """The rows of a group."""
        with few_collections():
            out = self._taken(key, rows, timer_values)
        yield from self.wire.frames(out)

    def wake(self, key: Any, timer_values: Any) -> Iterator[pd.DataFrame]:
        """A timer of a group."""
        with few_collections():
            out = self._closed(key, self._load(key), [], timer_values)
        yield from self.wire.frames(out)

    def _taken(self, key: Any, rows: Iterator[pd.DataFrame], timer_values: Any) -> list[Row | Table]:
        shard, ended = self._load(key), False
        out: list[Row | Table] = []
        over = self._over(timer_values.getCurrentWatermarkInMs())
        newest = NEVER
        for data in (data for frame in rows for data in frame["rows"]):
            taken = sorted_out(unpack(data), apart=True, numbered=bool(self.revise))
            out += taken.passed
            out += shard.wait(taken.in_order, over)
            newest = max(newest, max(map(_end, (*taken.in_order, *taken.withdrawn)), default=NEVER))
            # What an earlier level has derived in this batch may lie before the watermark, and is in time.
            out += shard.wait(taken.derived)
            out += shard.withdraw(taken.withdrawn, over)
            out += shard.withdraw(taken.taken_back)
            ended |= taken.ended
        if ended:
            out += shard.finish()
        return self._closed(key, shard, out, timer_values, newest)

    def _over(self, watermark: int) -> int:
        """What ends before this is over.  Spark's watermark is 0 before there is one."""
        return (watermark - (self.level - 1)) * 1000 if watermark > 0 else NEVER

    def _surely_over(self, newest: int) -> int:
        """What ends before this is late from the next batch on, by the newest event of this one alone.

        The next watermark is at least as far, so its instants can be closed now, when all of the batch is here, and the
        batch need not be stored until then.  Later levels wait, because others may still derive events for them.
        """
        if self.level > 1 or self.lateness is None or newest == NEVER:
            return NEVER
        return (newest // 1000 - -(-self.lateness // 1000)) * 1000

    def _load(self, key: Any) -> Shard:
        slot = int(key[0])
        if slot not in self.slots:
            self.stored.compare()
            raise SparkError(f"the checkpoint has a shard, of the number {slot}, that this program has not; {ADVICE}")
        part, number = self.slots[slot]

        def fresh() -> Shard:
            return Shard(self.specs[part.program], part, number, journal=True, revise=self.revise)

        return self.stored.load((self.run, slot), fresh)

    def _closed(
        self, key: Any, shard: Shard, out: list[Row | Table], timer_values: Any, newest: int = NEVER
    ) -> list[Row | Table]:
        watermark = timer_values.getCurrentWatermarkInMs()
        out += shard.close_before(max(self._over(watermark), self._surely_over(newest)))
        self.stored.save((self.run, int(key[0])), shard)
        due = shard.next_due()
        if due is not None:
            # The first watermark by which it is over; never one that has passed.
            self.handle.registerTimer(max(due // 1000 + self.level, watermark + 1))
        if self.metrics:
            snapshot, journal = self.stored.sizes
            out.append(shard.metric(snapshot_bytes=snapshot, journal_bytes=journal, version=self.stored.version))
        return out
