"""Which parts of a batch are cut into slices of time, and where; and whether a key is so hot that it has to be.

One query over the batch, before it is routed, tells both: a sample of the ends, whose quantiles are the cuts, and a
sample of the keys; where these are few, another one tells the first and the last end.  They read the columns that they
need only, so they are for sources that can (Parquet and others); any other source is read as a whole for them, which is
done where slices are asked for.  Files of this machine are looked into instead: see ``local_cuts``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from etalis_py.spark.errors import SparkError
from etalis_py.spark.expressions import all_of
from etalis_py.spark.parts import RoutedPart
from etalis_py.spark.routing import asked_by, keys_of
from etalis_py.spark.slices import in_slices

SAMPLED = 16
"""One instant of so many is in the sample."""
ENOUGH = 1_000  # rows in the sample that say something
_CUTS = 10_000  # accuracy of the quantiles


class Measured(Protocol):
    """What is known of a batch."""

    def begins(self) -> list[int]:
        """Where slices begin that have about as many events each; fewer where too few instants are there."""

    def hot(self, shards: int) -> set[int]:
        """The parts of which one key has more than the share of a shard."""


Measure: TypeAlias = Callable[[int, Sequence[RoutedPart]], Measured]
"""Of a number of slices and the parts whose keys are asked for."""


def cut(
    parts: Sequence[RoutedPart], shards: int, slices: int | None, by_time: bool, measure: Measure
) -> list[RoutedPart]:
    """The parts, those in slices of time that can be and gain by it.

    ``slices``: so many for each part that can; without it, as many as there are shards, for what has no key and for
    what has a hot one, if the source can be read ``by_time``.
    """
    if slices is not None and slices < 1:
        raise SparkError(f"the number of slices is {slices}: it must be 1 or more, where 1 cuts nothing")
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
    """What one query over the batch says of it."""

    def __init__(self, flat: DataFrame, parts: Sequence[RoutedPart], slices: int, keyed: Sequence[RoutedPart]) -> None:
        asked_for = asked_by(parts, 1)
        self._rows = flat if asked_for is None else flat.where(asked_for)
        self._slices = slices
        self._keys = {routed.part.number: keys_of(routed) for routed in keyed}
        # Only what is sampled comes to the aggregates that Spark does not compile; what decides it is an integer.
        chosen = f"pmod(xxhash64(`end`), {SAMPLED}) = 0"
        sampled = flat.where(chosen if asked_for is None else all_of([chosen, asked_for]))
        asked = ["count(1) AS sampled", "min(`end`) AS first"]
        if quantiles := ", ".join(str(n / slices) for n in range(1, slices)):
            asked.append(f"percentile_approx(`end`, array({quantiles}), {_CUTS}) AS cuts")
        asked += [f"approx_top_k({key}, 2) AS keys_{n}" for n, key in self._keys.items()]
        [self._found] = sampled.selectExpr(*asked).collect()

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
            counts = [row["count"] for row in self._found[f"keys_{number}"] or () if row["item"]]
            if self._found["sampled"] >= ENOUGH and max(counts, default=0) * shards > self._found["sampled"]:
                found.add(number)
        return found


__all__ = ["ENOUGH", "AskedOfSpark", "Measure", "Measured", "cut"]
