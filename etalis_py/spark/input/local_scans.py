"""Runs shards of a batch that read files on this machine themselves (``local_files``).

Each shard is a task that decodes the pieces of files in its range of time, and keeps only its own rows.  If the pieces
follow each other in time, it goes from one to the next and holds no more rows than the engine takes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from etalis_py.garbage import few_collections
from etalis_py.spark.input.arrow_filters import dead_letters, letters_of_terms, own_of, wrong_in
from etalis_py.spark.input.local_files import NEVER, FileReader, LocalFiles, RowGroup, runs_of
from etalis_py.spark.input.shards_that_scan import answered
from etalis_py.spark.output.answers import Row
from etalis_py.spark.output.wire import Wire, wire_of
from etalis_py.spark.plan.hot_keys_batch import Telling
from etalis_py.spark.plan.parts import RoutedPart, ShardPart
from etalis_py.spark.plan.spec import ProgramSpec
from etalis_py.spark.shard.time_slices import AT_ONCE

_WIDE = 8
"""A dictionary with more terms per row than this is rebuilt."""


def local_answers(
    spark: SparkSession,
    files: LocalFiles,
    parts: Iterable[RoutedPart],
    specs: Sequence[ProgramSpec],
    metrics: bool,
    telling: Telling | None,
    refusing: Sequence[RoutedPart] = (),
) -> DataFrame:
    """The matches of parts over files: a task for each shard.

    ``refusing``: the shards of the first part give dead letters for rows that are no events and that one of these may
    want.
    """
    shards = [(routed, number) for routed in parts for number in range(routed.part.shards)]
    wire = wire_of([routed.part for routed, number in shards if not number], [spec.name for spec in specs])
    numbers = spark.range(0, len(shards), 1, len(shards))
    operator = local_operator(files, shards, tuple(specs), wire, metrics, telling, refusing)
    return wire.read(numbers.mapInArrow(operator, wire.schema))


def local_operator(
    files: LocalFiles,
    shards: Sequence[tuple[RoutedPart, int]],
    specs: Sequence[ProgramSpec],
    wire: Wire,
    metrics: bool,
    telling: Telling | None,
    refusing: Sequence[RoutedPart],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow`` over the numbers of shards; its name is what Spark's plan shows."""

    def decode_files(chunks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with few_collections():
            for chunk in chunks:
                for place in chunk.column(0).to_pylist():
                    reader = FileReader(files)
                    if place == 0 and refusing:
                        yield from wire.record_batches(_refused(reader, refusing))
                    routed, number = shards[place]
                    # Each slice of time has rows of its own; other shards read all rows, so one of them tells.
                    telling_terms = routed is shards[0][0] and (place == 0 or routed.part.begins)
                    letters: list[Row] = []
                    tables = _tables(reader, routed, number, refusing if telling_terms else (), letters)
                    spec = specs[routed.part.program]
                    for answers in answered(spec, routed.part, number, tables, metrics, telling):
                        yield from wire.record_batches(answers)
                    yield from wire.record_batches(letters)

    return decode_files


def groups_of(groups: Iterable[RowGroup], part: ShardPart, shard: int) -> list[RowGroup]:
    """The pieces that a shard reads: those of its slice of time, or all."""
    begin, until = part.span(shard)
    return [
        group
        for group in groups
        if (begin is None or group.last >= begin - part.overlap) and (until is None or group.first < until)
    ]


def _tables(
    reader: FileReader, routed: RoutedPart, shard: int, refusing: Sequence[RoutedPart], letters: list[Row]
) -> Iterator[pa.Table]:
    """The rows of a shard, in tables that are consecutive in time.

    ``letters`` gets the rows that are no terms and that one of ``refusing`` may want.
    """
    columns = ["end", "start", "s", "p", "o"]
    if refusing or any(leaf.stream for leaf, _ in routed.routes):
        columns.append("stream")
    held: list[pa.RecordBatch] = []
    for groups in _runs_together(groups_of(reader.groups, routed.part, shard)):
        for rows in reader.batches(groups, columns):
            if refusing:
                letters += letters_of_terms(_in_slice(rows, routed.part, shard, 0), refusing)
            if len(own := _own(rows, routed, shard)):
                held.append(own)
        if sum(map(len, held)) >= AT_ONCE:
            yield pa.Table.from_batches(held)
            held.clear()
    if held:
        yield pa.Table.from_batches(held)


def _runs_together(groups: Sequence[RowGroup]) -> Iterator[list[RowGroup]]:
    """Runs, joined until they have as many rows as the engine takes at once."""
    some: list[RowGroup] = []
    for run in runs_of(groups):
        some += run
        if sum(group.rows for group in some) >= AT_ONCE:
            yield some
            some = []
    if some:
        yield some


def _own(rows: pa.RecordBatch, routed: RoutedPart, shard: int) -> pa.RecordBatch:
    if (wrong := wrong_in(rows)) is not None:
        rows = rows.filter(pc.invert(wrong))
    rows = _in_slice(rows, routed.part, shard, routed.part.overlap)
    own = own_of(rows, routed, shard)
    return _lean(rows if own is None else rows.filter(own))


def _in_slice(rows: pa.RecordBatch, part: ShardPart, shard: int, overlap: int) -> pa.RecordBatch:
    """The rows that end in a slice of time, or up to so much before it."""
    begin, until = part.span(shard)
    if begin is None and until is None:
        return rows
    end = rows.column("end").fill_null(NEVER).to_numpy()
    chosen = np.ones(len(end), np.bool_)
    if begin is not None:
        chosen &= end >= begin - overlap
    if until is not None:
        chosen &= end < until
    return rows if chosen.all() else rows.filter(pa.array(chosen))


def _lean(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows, with dictionaries rebuilt if few of a piece's terms occur in them."""
    columns = {}
    for name in rows.schema.names:
        column = columns[name] = rows.column(name)
        if isinstance(column, pa.DictionaryArray) and len(column.dictionary) > _WIDE * len(rows):
            columns[name] = column.cast(pa.string()).dictionary_encode()
    return pa.RecordBatch.from_pydict(columns)


def _refused(reader: FileReader, refusing: Sequence[RoutedPart]) -> list[Row]:
    """Dead letters for the rows that are no events."""
    suspected = [group for group in reader.groups if group.may_be_wrong]
    every = ("end", "start", "s", "p", "o", "stream")
    return [letter for rows in reader.batches(suspected, every) for letter in dead_letters(rows, refusing)]


__all__ = ["groups_of", "local_answers", "local_operator"]
