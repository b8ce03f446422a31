"""The operator on a batch DataFrame: rows sorted by shard and time go through one engine after the other.

Each shard's rows end with a row of mark END, so every instant closes and what is only known at the end is reported.
Only the engine's own state is held and, if the engine reads columns, the rows of its next batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa

from etalis_py.garbage import few_collections
from etalis_py.spark.input.packed_rows import split
from etalis_py.spark.input.rows import columns_of, ends_in, events_out, sorted_out, taken_apart, whole_events_out
from etalis_py.spark.output.answers import Answer
from etalis_py.spark.output.wire import Wire
from etalis_py.spark.plan.hot_keys_batch import KeyCount, Telling
from etalis_py.spark.plan.parts import ShardPart
from etalis_py.spark.plan.shard_classes import batch_shard
from etalis_py.spark.plan.spec import ProgramSpec
from etalis_py.spark.shard.shard import Shard
from etalis_py.spark.shard.time_slices import AT_ONCE

Batches = Iterator[pa.RecordBatch]


def batch_operator(
    specs: tuple[ProgramSpec, ...],
    slots: Mapping[int, tuple[ShardPart, int]],
    wire: Wire,
    metrics: bool,
    telling: Telling | None = None,
) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    """The function for ``mapInArrow``, from columns ROUTED to those of ``wire``.

    Rows that withdraw something come before the other rows of their time.
    """

    def operate(chunks: Iterable[pa.RecordBatch]) -> Batches:
        with few_collections():
            yield from through_engines(chunks)

    def through_engines(chunks: Iterable[pa.RecordBatch]) -> Batches:
        slot, fed = -1, None
        for chunk in chunks:
            for slot_number, rows in split(chunk):
                if fed is None or slot_number != slot:
                    slot = slot_number
                    part, number = slots[slot]
                    fed = FedShard(batch_shard(specs[part.program], part, number))
                    keys = KeyCount(part, number)
                fed.hold(rows)
                keys.take(rows)
                if ends_in(rows):
                    answers = [*fed.release(), *fed.shard.finish()]
                    yield from wire.record_batches([*answers, *([fed.shard.metric()] if metrics else [])])
                    keys.tell(telling)
                elif fed.count >= AT_ONCE or not fed.reads_columns:
                    yield from wire.record_batches(fed.release())

    return operate


class FedShard:
    """A shard and the rows that it will take next."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.count = 0
        self._held: list[pa.RecordBatch] = []

    @property
    def reads_columns(self) -> bool:
        """Whether it is worth waiting for more rows."""
        return self.shard.engine.reads_columns and not (self.shard.withdrawals or self.shard.waiting)

    def hold(self, rows: pa.RecordBatch) -> None:
        self._held.append(rows)
        self.count += len(rows)

    def release(self) -> list[Answer]:
        """Take the rows that are held."""
        if not self._held:
            return []
        rows, shard = pa.Table.from_batches(self._held), self.shard
        self._held, self.count = [], 0
        if self.reads_columns and (plain := events_out(rows)) is not None:
            events, passed = plain
            return [*passed, *(shard.take(columns_of(events)) if len(events) else [])]
        if self.reads_columns and (whole := whole_events_out(rows)) is not None:
            events, passed = whole
            return [*passed, *(shard.take(taken_apart(events)) if len(events) else [])]
        parted = sorted_out(rows, apart=False, numbered=bool(shard.withdrawals))
        answers: list[Answer] = [*parted.passed, *shard.withdraw(parted.withdrawn)]
        if shard.withdrawals or shard.waiting:
            answers += shard.wait(parted.in_order)
            # Rows of the last instant may still come.
            answers += shard.close_before(shard.newest_waiting)
        elif parted.in_order:
            answers += shard.push(parted.in_order)
        return answers
