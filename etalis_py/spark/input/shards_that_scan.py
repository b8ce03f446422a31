"""Runs shards of a batch that read the source themselves, so that nothing has to be shuffled for them.

A slice of time reads only its own events, because the source skips the others.  A shard with a key, or the only shard
of a part, reads all of a source and keeps its own rows.  Every shard then repeats the reading, but avoids the shuffle
and Spark's sort, which take longest of all.  This pays for a few shards over files of a limited size, if reading them
needs no Python, join or shuffle, which each shard would have to repeat.

Each such shard is a task that holds its rows, and sorts them if they are not in order.  Files of this machine are read
without Spark: see ``local_scans``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from etalis_py.garbage import few_collections
from etalis_py.kernel.batch import Batch
from etalis_py.spark.input.catalyst_filters import predicates_of, scanned
from etalis_py.spark.input.local_files import LocalFiles, held_at_once
from etalis_py.spark.input.rows import check_times, columns_of, in_order, with_predicates, without_letters
from etalis_py.spark.output.answers import Answer, Row
from etalis_py.spark.output.wire import Wire, wire_of
from etalis_py.spark.plan.hot_keys_batch import KeyCount, Telling
from etalis_py.spark.plan.parts import RoutedPart, ShardPart
from etalis_py.spark.plan.shard_classes import batch_shard
from etalis_py.spark.plan.spec import ProgramSpec
from etalis_py.spark.session_kinds import is_connect
from etalis_py.spark.shard.time_slices import AT_ONCE

MOST_TIMES = 4
"""The maximum number of times that all of a source is read, once for each shard."""
MOST_TIMES_OF_FILES = 8
"""The maximum number of times if the shards decode files of this machine, which is faster."""
MOST_BYTES = 1 << 26
"""The most bytes of files for each of these shards, whose rows take up to ten times as much memory.  Of files of this
machine, only the pieces that overlap in time count."""
_PLAIN = {"Project", "Filter", "LogicalRelation"}
_PUSHED = re.compile(r"PushedFilters: \[[^\]]*LessThan\(end,|IcebergScan\(.* filters=.*\bend < 0")
"""How a plan shows that the source gets a filter on the time.  The table of a scan of Iceberg is one snapshot."""
_CHOICE = {"GlobalLimit", "LocalLimit", "Offset", "Tail", "Aggregate", "Window", "WindowGroupLimit"}
"""Nodes of a plan whose rows may depend on the order in which Spark's tasks end, so that two readings may differ."""


def prunes(flat: DataFrame) -> bool:
    """Whether the source skips rows that a filter on the time excludes, as Parquet does, and repeats the others.

    A client of Spark Connect does not see the plan that would say so.
    """
    if is_connect(flat.sparkSession):
        return False
    asked = flat.where(F.col("end") < F.lit(0)).select("end")
    plan = asked._jdf.queryExecution().executedPlan().toString()
    if _PUSHED.search(plan) is None:
        return False
    whole = flat._jdf.queryExecution().optimizedPlan()
    return bool(whole.deterministic()) and _CHOICE.isdisjoint(nodes_of(whole))


def apart_of(flat: DataFrame, parts: Sequence[RoutedPart], files: LocalFiles | None) -> list[RoutedPart]:
    """The parts whose shards read the source themselves, if it ``prunes`` or consists of ``files`` of this machine.

    Parts with withdrawals, whole items or input from an earlier level are routed instead.
    """
    if any(routed.part.level > 1 for routed in parts) or {"item", "retract"} & set(flat.columns):
        return []
    sliced = [routed for routed in parts if routed.part.begins]
    others = [routed for routed in parts if not (routed.part.begins or routed.part.divided or routed.lookups)]
    times = sum(routed.part.shards for routed in others)
    if not 0 < times <= (MOST_TIMES if files is None else MOST_TIMES_OF_FILES):
        return sliced
    light = _is_light(flat, times) if files is None else held_at_once(files) <= MOST_BYTES * times
    return [*sliced, *others] if light else sliced


def _is_light(flat: DataFrame, times: int) -> bool:
    """Whether all of the source may be read this many times."""
    plan = flat._jdf.queryExecution().optimizedPlan()
    return plan.stats().sizeInBytes() <= MOST_BYTES * times and _PLAIN.issuperset(nodes_of(plan))


def nodes_of(plan: Any) -> Iterator[str]:
    """The names of the nodes of a plan of Spark."""
    nodes = [plan]
    while nodes:
        node = nodes.pop()
        yield str(node.nodeName()).split()[0]
        children = node.children()
        nodes += [children.apply(n) for n in range(children.size())]


def answers_of(
    flat: DataFrame,
    parts: Iterable[RoutedPart],
    specs: Sequence[ProgramSpec],
    metrics: bool,
    telling: Telling | None,
    refusing: Sequence[RoutedPart] = (),
) -> DataFrame:
    """The matches of such parts: a task for each shard.

    ``refusing``: the shards of the first part give dead letters for rows that are no events and that one of these may
    want.
    """
    names = [spec.name for spec in specs]
    out: list[DataFrame] = []
    for place, routed in enumerate(parts):
        # Spark copies what it makes of the rows into the plan of each shard, so a shard has only its own queries there.
        wire = wire_of([routed.part], names)
        spec, predicates = specs[routed.part.program], predicates_of(routed)
        for number in range(routed.part.shards):
            rows = scanned(flat, routed, number, () if place else refusing).coalesce(1)
            operator = scan_operator(spec, routed.part, number, predicates, wire, metrics, telling)
            out.append(wire.read(rows.mapInArrow(operator, wire.schema)))
    if len(out) > 1:
        # Spark would merge frames of one partition each into one partition; a frame with none prevents that.
        out.append(wire.read(flat.sparkSession.range(0).mapInArrow(operator, wire.schema)))
    return reduce(DataFrame.union, out)


def scan_operator(
    spec: ProgramSpec,
    part: ShardPart,
    number: int,
    predicates: Sequence[str],
    wire: Wire,
    metrics: bool,
    telling: Telling | None = None,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow`` over the rows of one shard: columns that ``routing.scanned`` sends.

    They come in pieces that may not be in order, so they are held, and sorted only if necessary.  ``predicates``: the
    meanings of the codes in the column ``p``.
    """

    def operate(chunks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with few_collections():
            letters: list[Row] = []
            rest = (without_letters(chunk, letters) for chunk in chunks if len(chunk))
            held = [with_predicates(chunk, predicates) for chunk in rest]
            yield from wire.record_batches(letters)
            tables = [pa.Table.from_batches(held)] if held else []
            held.clear()
            for answers in answered(spec, part, number, tables, metrics, telling):
                yield from wire.record_batches(answers)

    return operate


def answered(
    spec: ProgramSpec,
    part: ShardPart,
    number: int,
    tables: Iterable[pa.Table],
    metrics: bool,
    telling: Telling | None,
) -> Iterator[list[Answer]]:
    """The answers of a shard over tables that are consecutive in time; the rows of a table may be in any order."""
    shard, keys = batch_shard(spec, part, number), KeyCount(part, number)
    for rows in tables:
        keys.take(rows)
        check_times(rows)
        columns = columns_of(in_order(rows))
        for first in range(0, len(columns), AT_ONCE):
            some = columns.rows(first, first + AT_ONCE)
            if shard.engine.reads_columns:
                yield shard.take(some)
            else:
                yield shard.push(Batch(None, int(some.end[-1]), some).rows)
    yield [*shard.finish(), *([shard.metric()] if metrics else [])]
    keys.tell(telling)


__all__ = ["answered", "answers_of", "apart_of", "nodes_of", "prunes", "scan_operator"]
