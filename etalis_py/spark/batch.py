"""The operator on a batch DataFrame: rows sorted by shard and time go through one engine after the other.

Each shard's rows end with a row of mark END, so every instant closes and what is only known at the end is reported.
Nothing but the engine's own state is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa

from etalis_py.engine.garbage import few_collections
from etalis_py.spark.answers import record_batches
from etalis_py.spark.packing import split
from etalis_py.spark.parts import Part
from etalis_py.spark.rows import sorted_out
from etalis_py.spark.spec import ProgramSpec
from etalis_py.spark.windowed_shard import shard_of
from etalis_py.spark.windows import WindowSpec

Batches = Iterator[pa.RecordBatch]


def batch_operator(
    specs: tuple[ProgramSpec | WindowSpec, ...], slots: Mapping[int, tuple[Part, int]], metrics: bool
) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    """The function for ``mapInArrow``."""

    def operate(chunks: Iterable[pa.RecordBatch]) -> Batches:
        with few_collections():
            yield from through_engines(chunks)

    def through_engines(chunks: Iterable[pa.RecordBatch]) -> Batches:
        slot, shard = -1, None
        for chunk in chunks:
            for found, mine in split(chunk):
                if shard is None or found != slot:
                    slot = found
                    part, number = slots[slot]
                    shard = shard_of(specs[part.program], part, number)
                found_here = sorted_out(mine, apart=False)
                rows = found_here.passed
                if found_here.in_order:
                    rows += shard.push(found_here.in_order)
                if found_here.ended:
                    rows += shard.finish()
                    if metrics:
                        rows.append(shard.metric())
                yield from record_batches(rows)

    return operate
