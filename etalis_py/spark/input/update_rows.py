"""Sends updates of the background, rows of a second DataFrame, to all shards of all levels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from etalis_py.events import Triple
from etalis_py.spark.errors import SparkError
from etalis_py.spark.input.columns import time_of
from etalis_py.spark.input.schema import CHANGE, EVERY_SLOT, UPDATE
from etalis_py.spark.plan.parts import RoutedPart
from etalis_py.spark.plan.slots import slots_of
from etalis_py.spark.shard.updates_in_shard import BEGINNING
from etalis_py.streams.updates import Updates, updates_of

UPDATES = "end long, graph string, add string, remove string, arrived long"
NAMES = {column.split()[0] for column in UPDATES.split(", ")}
_ARROW = pa.schema(
    [("end", pa.int64()), *((name, pa.string()) for name in ("graph", "add", "remove")), ("arrived", pa.int64())]
)


def check_updates(updates: DataFrame, events: DataFrame, revise: int) -> None:
    """Refuse a table that is not one of updates, or that conflicts with the other options."""
    kinds = dict(updates.dtypes)
    wrong = [name for name in ("graph", "add", "remove") if kinds.get(name, "string") not in ("string", "void")]
    if "end" not in kinds or wrong or not kinds.keys() & {"add", "remove"}:
        raise SparkError(
            f"the updates have the columns {', '.join(f'{n} {kind}' for n, kind in kinds.items())}; wanted is: end, "
            "add string, remove string (Turtle), and where they are of a named graph: graph string"
        )
    if updates.isStreaming != events.isStreaming:
        raise SparkError("the events and the updates must both be streams, or neither: read them in the same way")
    if revise:
        raise SparkError("what the background said cannot be corrected on Spark: leave out revise, or the updates")


def updates_for(updates: DataFrame, parts: Iterable[RoutedPart], partitions: int) -> DataFrame:
    """The updates as routed rows, each for all shards of these parts; in a stream a single row until it is packed."""
    kinds = dict(updates.dtypes)

    def text(name: str) -> Column:
        return F.coalesce(F.col(name), F.lit("")) if kinds.get(name) == "string" else F.lit("")

    slots = [slot for routed in parts for slot in slots_of(routed.part, partitions)]
    slot = F.lit(EVERY_SLOT) if updates.isStreaming else F.explode(F.array(*map(F.lit, slots)))
    number = F.coalesce(F.col("arrived").cast("long"), F.lit(0)) if "arrived" in kinds else F.lit(0).cast("long")
    nothing = F.lit(None)
    return updates.select(
        slot.alias("slot"),
        F.lit(CHANGE).alias("mark"),
        number.alias("start"),
        F.coalesce(time_of(updates, "end", "end") + 1, F.lit(BEGINNING)).alias("end"),
        F.lit("").alias("stream"),
        text("graph").alias("s"),
        F.lit(UPDATE).alias("p"),
        F.to_json(F.array(text("add"), text("remove"))).alias("o"),
        nothing.cast("string").alias("passed"),
        nothing.cast("long").alias("arrived"),
    )


def write_updates(file: Path, updates: Updates, *, first: int = 0) -> None:
    """Updates, as ``run`` takes them, as a Parquet file with the columns of ``UPDATES``, numbered from ``first`` on."""
    rows = [
        (update.time, update.graph, _turtle(update.add), _turtle(update.remove), number)
        for number, update in enumerate(updates_of(updates), first)
    ]
    columns = zip(*rows, strict=True) if rows else [()] * len(_ARROW)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, _ARROW.types, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=_ARROW), file)


def _turtle(triples: Sequence[Triple]) -> str:
    return " ".join(f"{s} {p} {o} ." for s, p, o in triples)


__all__ = ["UPDATES", "check_updates", "updates_for", "write_updates"]
