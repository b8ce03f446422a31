"""Warns, once per run, if one key has too large a share of a stream; the share is measured in every batch.

A shard counts the rows that it gets in a batch and, from their dictionaries, those of its most frequent key.  Both are
in its row of metrics, which Spark aggregates as observed metrics.  A listener on the driver warns if one key has more
than the share of a shard: however many shards there are, they then wait for the one that has it.

Cost: one pass over the integers of a column, for each position by which a part is routed.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from threading import Lock, RLock
from typing import Any
from weakref import WeakKeyDictionary
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener, StreamingQueryProgress

from etalis_py.spark.errors import SkewWarning
from etalis_py.spark.output.wire import METRIC
from etalis_py.spark.plan.parts import RoutedPart

PLACES = {"subject": "s", "predicate": "p", "object": "o"}
ENOUGH = 1_000
"""A batch with fewer rows than this is too small to judge the shares of keys by."""
_TRIED = 8  # so many of the most frequent terms of a column are tried, to find a key of the shard


@dataclass(frozen=True, slots=True)
class HotKeyCount:
    """The number of rows of a shard in a batch, and of those of its most frequent key."""

    rows: int = 0
    key: str = ""
    times: int = 0

    def numbers(self) -> dict[str, int | str]:
        """The numbers for the row of metrics."""
        return {"batch": self.rows, "hot_key": self.key, "hot_events": self.times}


def measured(parts: Iterable[RoutedPart]) -> list[RoutedPart]:
    """The parts, where each part that is divided by a key gets the names of the columns that hold the key."""
    return [
        routed
        if routed.part.shards == 1 or routed.part.divided or routed.items or not routed.routes
        else replace(routed, part=replace(routed.part, measured=_columns_of(routed)))
        for routed in parts
    ]


def _columns_of(routed: RoutedPart) -> tuple[str, ...]:
    return tuple(sorted({PLACES[position] for _, position in routed.routes if position}))


def count_keys(tables: Iterable[pa.Table], columns: Sequence[str], shard: int, shards: int) -> HotKeyCount:
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
    return HotKeyCount(rows, key, times.get(key, 0))


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
    """Reads the metrics that Spark observed in the batches of streams, and warns of a hot key once per run and part.

    A session keeps one for as long as it lives.  The metrics say all that a warning needs, so a watch need not know
    which queries come from it, how often one of their DataFrames is started, or when a run is over.
    """

    def __init__(self) -> None:
        self._name = f"skew_{uuid.uuid4().hex}"
        self._numbers = count()
        self._warned = set[tuple[Any, str, str]]()  # run, metrics, part
        # The lock is held while a warning is given, so that nobody finds it marked as given before it really is.
        self._warning = RLock()

    def observed(self, out: DataFrame, parts: Iterable[RoutedPart]) -> DataFrame:
        """The output of the operator of these parts, counted before any of its rows become matches."""
        sums = [_summed(routed) for routed in parts if routed.part.measured]
        return out.observe(f"{self._name}_{next(self._numbers)}", *sums) if sums else out

    def look(self, progress: StreamingQueryProgress) -> None:
        """Warn of hot keys by the observed metrics of a batch."""
        for name, row in progress.observedMetrics.items():
            if name.startswith(self._name):
                for part, counted in row.asDict().items():
                    self._look((progress.runId, name, part), counted)

    def _look(self, key: tuple[Any, str, str], counted: Row) -> None:
        hot = counted["hot"]
        if hot is None or counted["rows"] < ENOUGH or hot["times"] * counted["shards"] <= counted["rows"]:
            return
        with self._warning:
            if key not in self._warned:
                self._warned.add(key)
                share = hot["times"] / counted["rows"]
                warnings.warn(
                    _message(counted["queries"], hot["key"], share, counted["shards"]), SkewWarning, stacklevel=2
                )

    # --- what Spark calls, on a thread of its own ---

    def onQueryStarted(self, event: Any) -> None:
        """Nothing to do: nothing is known yet."""

    def onQueryProgress(self, event: Any) -> None:
        self.look(event.progress)

    def onQueryIdle(self, event: Any) -> None:
        """Nothing to do: there was no batch."""

    def onQueryTerminated(self, event: Any) -> None:
        """Nothing to do: another run may go on, or come."""


_WATCHES: WeakKeyDictionary[SparkSession, SkewWatch] = WeakKeyDictionary()
_ADDING = Lock()


def watch_of(spark: SparkSession, parts: Iterable[RoutedPart]) -> SkewWatch | None:
    """The watch of a session, added to it for the first of its streams; None if no part has a key."""
    if not any(routed.part.measured for routed in parts):
        return None
    with _ADDING:
        if spark not in _WATCHES:
            watch = SkewWatch()
            spark.streams.addListener(watch)
            _WATCHES[spark] = watch
        return _WATCHES[spark]


def _summed(routed: RoutedPart) -> Column:
    """From the rows of metrics: the rows of a part in a batch, and the most frequent of its shards' keys."""

    def of(field: str, kind: str) -> Column:
        return F.get_json_object(F.get_json_object("row", "$.detail"), f"$.{field}").cast(kind)

    of_part = (F.col("table") == METRIC) & (of("part", "int") == routed.part.number)
    hot = F.struct(of("hot_events", "long").alias("times"), of("hot_key", "string").alias("key"))
    return F.struct(
        F.coalesce(F.sum(F.when(of_part, of("batch", "long"))), F.lit(0)).alias("rows"),
        F.max(F.when(of_part, hot)).alias("hot"),
        F.lit(routed.part.shards).alias("shards"),
        F.lit(", ".join(routed.part.reports or routed.part.queries)).alias("queries"),
    ).alias(f"part_{routed.part.number}")


def _message(queries: str, key: str, share: float, shards: int) -> str:
    return (
        f"{queries}: {share:.0%} of the events of a batch have the key {key}, and the {shards} shards wait for the one "
        "that does all the work for it; divide the pattern by a finer key (machine and sensor instead of machine), or "
        "give the events of this key to a job of their own"
    )


__all__ = ["HotKeyCount", "SkewWatch", "count_keys", "measured", "watch_of"]
