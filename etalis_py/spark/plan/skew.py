"""The share of a stream that one key has: measured in every batch, reported once per run.

A shard counts the rows that it gets in a batch and, from their dictionaries, those of its most frequent key.  Both are
in its row of metrics, which Spark aggregates as observed metrics.  A listener on the driver warns if one key has more
than the share of a shard: however many shards there are, they then wait for the one that has it.

Cost: one pass over the integers of a column, for each position by which a part is routed.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener

from etalis_py.spark.errors import SkewWarning
from etalis_py.spark.output.wire import METRIC
from etalis_py.spark.plan.parts import RoutedPart

PLACES = {"subject": "s", "predicate": "p", "object": "o"}
ENOUGH = 1_000
"""The least number of rows for which a batch says something."""
_TRIED = 8  # so many of the most frequent terms of a column are tried, to find a key of the shard


@dataclass(frozen=True, slots=True)
class Counted:
    """The number of rows of a shard in a batch, and of those of its most frequent key."""

    rows: int = 0
    key: str = ""
    times: int = 0

    def numbers(self) -> dict[str, int | str]:
        """The numbers for the row of metrics."""
        return {"batch": self.rows, "hot_key": self.key, "hot_events": self.times}


def measured(parts: Iterable[RoutedPart]) -> list[RoutedPart]:
    """The parts; those that are divided by a key get the columns that hold it."""
    return [
        routed
        if routed.part.shards == 1 or routed.part.divided or routed.items or not routed.routes
        else replace(routed, part=replace(routed.part, measured=_columns_of(routed)))
        for routed in parts
    ]


def _columns_of(routed: RoutedPart) -> tuple[str, ...]:
    return tuple(sorted({PLACES[position] for _, position in routed.routes if position}))


def count_keys(tables: Iterable[pa.Table], columns: Sequence[str], shard: int, shards: int) -> Counted:
    """Count the rows of a shard and of its most frequent key, from the most frequent one of each table.

    So the count is never too high, and a key with a large share is found.
    """
    rows = 0
    times: dict[str, int] = {}
    for table in tables:
        frequent: list[tuple[int, str]] = []
        for name in columns:
            column = table.column(name).combine_chunks()
            if not isinstance(column, pa.DictionaryArray):
                column = column.dictionary_encode()
            places = column.indices.drop_null().to_numpy()
            counts = np.bincount(places, minlength=len(column.dictionary)) if len(places) else np.zeros(0, np.int64)
            frequent += _own(counts, column.dictionary, shard, shards)
        rows += len(table)
        if frequent:
            most, key = max(frequent)
            times[key] = times.get(key, 0) + most
    key = max(times, key=lambda term: times[term], default="")
    return Counted(rows, key, times.get(key, 0))


def _own(counts: np.ndarray[Any, Any], terms: pa.Array, shard: int, shards: int) -> list[tuple[int, str]]:
    """The most frequent term that is a key of the shard, with its count; none if there is no such term."""
    size = min(_TRIED, len(counts))
    if not size:
        return []
    places = np.argpartition(counts, -size)[-size:]
    for place in places[np.argsort(-counts[places], kind="stable")]:
        term = terms[int(place)].as_py()
        if term is not None and crc32(term.encode()) % shards == shard:
            return [(int(counts[place]), term)]
    return []


class SkewWatch(StreamingQueryListener):
    """Reads the metrics that Spark observed in a query's batches, and warns of a hot key once for each part."""

    def __init__(self, spark: SparkSession, parts: Iterable[RoutedPart]) -> None:
        self._name = f"skew_{uuid.uuid4().hex}"
        self._parts = {f"part_{routed.part.number}": routed for routed in parts if routed.part.measured}
        self._spark = spark
        self._run: Any = None  # the run that was seen last
        if self._parts:
            spark.streams.addListener(self)

    def observed(self, out: DataFrame, level: int) -> DataFrame:
        """The output of the operator of a level, counted before any of its rows become matches."""
        here = {name: routed for name, routed in self._parts.items() if routed.part.level == level}
        if not here:
            return out
        return out.observe(self._named(level), *[one for name, routed in here.items() for one in _summed(name, routed)])

    def _named(self, level: int) -> str:
        return f"{self._name}_{level}"

    def look(self, metrics: Mapping[str, Any]) -> None:
        """Warn of hot keys by the observed metrics of a batch."""
        for name, routed in list(self._parts.items()):
            row = metrics.get(self._named(routed.part.level))
            if row is None:
                continue
            rows, hot = row[name], row[f"{name}_hot"]
            hot_one = hot is not None and rows >= ENOUGH and hot["times"] * routed.part.shards > rows
            if hot_one and self._parts.pop(name, None) is not None:
                warnings.warn(_message(routed, hot["key"], hot["times"] / rows), SkewWarning, stacklevel=2)

    # --- what Spark calls ---

    def onQueryStarted(self, event: Any) -> None:
        """Nothing to do: nothing is known yet."""

    def onQueryProgress(self, event: Any) -> None:
        if any(name.startswith(self._name) for name in event.progress.observedMetrics):
            self._run = event.progress.runId
            self.look(event.progress.observedMetrics)

    def onQueryIdle(self, event: Any) -> None:
        """Nothing to do: there was no batch."""

    def onQueryTerminated(self, event: Any) -> None:
        if event.runId == self._run:
            self._spark.streams.removeListener(self)


def _summed(name: str, routed: RoutedPart) -> tuple[Column, Column]:
    """From the rows of metrics: the rows of a part in a batch, and the most frequent of its shards' keys."""

    def of(field: str, kind: str) -> Column:
        return F.get_json_object(F.get_json_object("row", "$.detail"), f"$.{field}").cast(kind)

    of_part = (F.col("table") == METRIC) & (of("part", "int") == routed.part.number)
    hot = F.struct(of("hot_events", "long").alias("times"), of("hot_key", "string").alias("key"))
    rows = F.coalesce(F.sum(F.when(of_part, of("batch", "long"))), F.lit(0))
    return rows.alias(name), F.max(F.when(of_part, hot)).alias(f"{name}_hot")


def _message(routed: RoutedPart, key: str, share: float) -> str:
    queries = ", ".join(routed.part.reports or routed.part.queries)
    return (
        f"{queries}: {share:.0%} of the events of a batch have the key {key}, and the {routed.part.shards} shards wait "
        "for the one that does all the work for it; divide the pattern by a finer key (machine and sensor instead of "
        "machine), or give the events of this key to a job of their own"
    )


__all__ = ["Counted", "SkewWatch", "count_keys", "measured"]
