"""The operator on a batch DataFrame: rows sorted by shard and time go through one engine after the other.

Each shard's rows end with a row of mark END, so every instant closes and what is only known at the end is reported.
Nothing but the engine's own state is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa

from etalis_py.kernel.garbage import few_collections
from etalis_py.spark.answers import Row, Table, record_batches
from etalis_py.spark.packing import split
from etalis_py.spark.parts import Part
from etalis_py.spark.rows import sorted_out
from etalis_py.spark.shard import Shard
from etalis_py.spark.slices import SlicedShard
from etalis_py.spark.spec import ProgramSpec

Batches = Iterator[pa.RecordBatch]


def batch_operator(
    specs: tuple[ProgramSpec, ...], slots: Mapping[int, tuple[Part, int]], metrics: bool
) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    """The function for ``mapInArrow``.  What withdraws something stands before the other rows of its time."""

    def operate(chunks: Iterable[pa.RecordBatch]) -> Batches:
        with few_collections():
            yield from through_engines(chunks)

    def through_engines(chunks: Iterable[pa.RecordBatch]) -> Batches:
        slot, shard = -1, None
        for chunk in chunks:
            for slot_number, of_slot in split(chunk):
                if shard is None or slot_number != slot:
                    slot = slot_number
                    part, number = slots[slot]
                    shard = _shard_of(specs[part.program], part, number)
                found_here = sorted_out(of_slot, apart=False, numbered=bool(shard.withdrawals))
                rows: list[Row | Table] = [*found_here.passed]
                rows += shard.withdraw(found_here.withdrawn)
                if shard.withdrawals or shard.waiting:
                    rows += shard.wait(found_here.in_order)
                    # Rows of the last instant may still come.
                    rows += shard.close_before(shard.newest_waiting)
                elif found_here.in_order:
                    rows += shard.push(found_here.in_order)
                if found_here.ended:
                    rows += shard.finish()
                    if metrics:
                        rows.append(shard.metric())
                yield from record_batches(rows)

    return operate


def _shard_of(spec: ProgramSpec, part: Part, number: int) -> Shard:
    return SlicedShard(spec, part, number) if part.begins else Shard(spec, part, number, corrected=True)
