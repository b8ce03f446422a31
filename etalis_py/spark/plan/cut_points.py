"""Decides which parts of a batch are cut into slices of time, and where; a hot key may require it.

One query over the batch, before it is routed, takes a sample of the ends, whose quantiles are the cuts, and a sample of
the keys.  If the sample is small, another query finds the first and the last end.  The queries read only the columns
that they need, which is cheap for sources such as Parquet.  Any other source would be read as a whole, so for it they
only run if slices were asked for.  Files of this machine are inspected directly instead (``local_cuts``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from etalis_py.spark.errors import SparkError
from etalis_py.spark.input.catalyst_filters import asked_by, keys_of
from etalis_py.spark.input.expressions import all_of
from etalis_py.spark.plan.parts import RoutedPart
from etalis_py.spark.plan.slots import MOST_SHARDS
from etalis_py.spark.shard.time_slices import in_slices
from etalis_py.spark.versions import TOP_KEYS

SAMPLED = 16
"""Of so many instants, one is in the sample."""
ENOUGH = 1_000  # least size of a sample that says something
_CUTS = 10_000  # accuracy of the quantiles


class Measured(Protocol):
    """Measurements of a batch."""

    def begins(self) -> list[int]:
        """The beginnings of slices with about equally many events; there are fewer if there are too few instants."""

    def hot(self, shards: int) -> set[int]:
        """The parts in which one key has more than the share of a shard."""


Measure: TypeAlias = Callable[[int, Sequence[RoutedPart]], Measured]
"""Measures a batch, given a number of slices and the parts whose keys are asked for."""


def cut(
    parts: Sequence[RoutedPart], shards: int, slices: int | None, by_time: bool, measure: Measure
) -> list[RoutedPart]:
    """The parts, cut into slices of time where that is possible and useful.

    ``slices``: the number for each part that can be cut.  Default: the number of shards, for parts without a key or
    with a hot one, if the source can be read ``by_time``.
    """
    whole = isinstance(slices, int) and not isinstance(slices, bool)
    if slices is not None and not (whole and 1 <= slices <= MOST_SHARDS):
        raise SparkError(f"the number of slices is {slices!r}: choose 1 to {MOST_SHARDS}, where 1 cuts nothing")
    possible = [routed for routed in parts if not routed.uncut]
    if slices is not None:
        chosen = {routed.part.number for routed in possible} if slices > 1 else set[int]()
        measured = measure(slices, ()) if chosen else None
    else:
        slices = shards
        keyed = [routed for routed in possible if routed.part.shards > 1 and not (routed.items or routed.part.divided)]
        alone = {routed.part.number for routed in possible if routed.part.shards == 1}
        if shards == 1 or not (alone or keyed) or not by_time:
            return list(parts)
        measured = measure(slices, keyed)
        chosen = alone | measured.hot(shards)
    begins = measured.begins() if measured is not None and chosen else []
    if not begins:
        return list(parts)
    return [in_slices(routed, begins) if routed.part.number in chosen else routed for routed in parts]


class AskedOfSpark:
    """Measurements by one query over the batch."""

    def __init__(self, flat: DataFrame, parts: Sequence[RoutedPart], slices: int, keyed: Sequence[RoutedPart]) -> None:
        asked_for = asked_by(parts, 1)
        self._rows = flat if asked_for is None else flat.where(asked_for)
        self._slices = slices
        self._keys = {routed.part.number: keys_of(routed) for routed in keyed}
        # Only the sample gets to the aggregates, which Spark does not compile; an integer decides what is sampled.
        chosen = f"pmod(xxhash64(`end`), {SAMPLED}) = 0"
        sampled = flat.where(chosen if asked_for is None else all_of([chosen, asked_for]))
        asked = ["count(1) AS sampled", "min(`end`) AS first"]
        if quantiles := ", ".join(str(n / slices) for n in range(1, slices)):
            asked.append(f"percentile_approx(`end`, array({quantiles}), {_CUTS}) AS cuts")
        if TOP_KEYS:
            asked += [f"approx_top_k({key}, 2) AS keys_{n}" for n, key in self._keys.items()]
        [self._found] = sampled.selectExpr(*asked).collect()
        self._top = {
            n: self._found[f"keys_{n}"] if TOP_KEYS else _top_keys(sampled, key) for n, key in self._keys.items()
        }

    def begins(self) -> list[int]:
        if self._found["sampled"] >= ENOUGH:
            return sorted({int(begin) for begin in self._found["cuts"] if begin > self._found["first"]})
        [(first, last)] = self._rows.agg(F.min("end"), F.max("end")).collect()
        if first is None:
            return []
        cuts = [first + (last - first) * n // self._slices for n in range(1, self._slices)]
        return sorted({begin for begin in cuts if first < begin <= last})

    def hot(self, shards: int) -> set[int]:
        found = set()
        for number in self._keys:
            counts = [row["count"] for row in self._top[number] or () if row["item"]]
            if self._found["sampled"] >= ENOUGH and max(counts, default=0) * shards > self._found["sampled"]:
                found.add(number)
        return found


def _top_keys(rows: DataFrame, key: str) -> list[Row]:
    """The two most frequent keys with their counts, by a query of their own."""
    counts = rows.groupBy(F.expr(key).alias("item")).agg(F.count("*").alias("count"))
    return counts.orderBy(F.desc("count")).limit(2).collect()


__all__ = ["ENOUGH", "AskedOfSpark", "Measure", "Measured", "cut"]
