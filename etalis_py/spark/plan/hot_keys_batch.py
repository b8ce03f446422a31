"""Warns if one key has too large a share of a batch: shards count while they read, and report when they have finished.

The counts reach the driver by a Spark accumulator as soon as a task has ended, so no extra pass over the batch is
needed.  One row in sixteen is counted.  A session has one accumulator, which knows the latest plans.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from pyspark import Accumulator, SparkContext
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import SparkSession

from etalis_py.spark.errors import SkewWarning
from etalis_py.spark.plan.hot_keys_stream import ENOUGH, HotKeyCount, count_keys
from etalis_py.spark.plan.parts import RoutedPart, ShardPart
from etalis_py.spark.session_kinds import is_connect

SAMPLED = 16
"""One in so many rows is counted."""
_PLANS = 1_000
"""With more plans than this in a session, the oldest ones no longer warn."""

Share: TypeAlias = tuple[str, int, int, int, str, int]
"""The count of a shard: plan, part, shard, the number of counted rows, the most frequent key and its number of rows."""
Shares: TypeAlias = tuple[Share, ...]


class KeyCount:
    """The number of rows of a shard, and how often its most frequent keys occur."""

    def __init__(self, part: ShardPart, number: int) -> None:
        self._part, self._number = part, number
        self._counted = HotKeyCount()
        self._lots = np.random.default_rng(number)
        self._times: dict[str, int] = {}

    def take(self, rows: pa.RecordBatch | pa.Table) -> None:
        columns = self._part.measured
        # Chosen at random: recurring keys might be in step with any fixed interval.
        chosen = np.flatnonzero(self._lots.random(len(rows)) * SAMPLED < 1) if columns else ()
        if len(chosen):
            some = pa.table({name: rows.column(name).take(pa.array(chosen)) for name in columns})
            one = count_keys([some], columns, self._number, self._part.shards)
            self._times[one.key] = self._times.get(one.key, 0) + one.times
            key = max(self._times, key=self._times.__getitem__)
            self._counted = HotKeyCount(self._counted.rows + one.rows, key, self._times[key])

    def tell(self, telling: Telling | None) -> None:
        """Report the count: the shard has read all of its rows."""
        if telling is not None and self._part.measured:
            counted = self._counted
            share = (telling.plan, self._part.number, self._number, counted.rows, counted.key, counted.times)
            telling.shares.add((share,))


@dataclass(frozen=True, slots=True)
class Telling:
    """The accumulator to which the shards of a plan report their counts, with the name of the plan."""

    plan: str
    shares: Accumulator[Shares]


class Gathering(AccumulatorParam[Shares]):
    """In a task: the counts of its shards."""

    def zero(self, value: Shares) -> Shares:
        return ()

    def addInPlace(self, value1: Shares, value2: Shares) -> Shares:
        return (*value1, *value2)


@dataclass(slots=True)
class _Plan:
    parts: dict[int, RoutedPart]
    shares: dict[tuple[int, int], Share] = field(default_factory=dict)


class Watch(Gathering):
    """On the driver: warns of a hot key once for each part of a plan, and keeps no counts after looking at them."""

    def __init__(self) -> None:
        self._plans: dict[str, _Plan] = {}

    def __reduce__(self) -> tuple[type[Gathering], tuple[()]]:
        return Gathering, ()  # a task gets this instead, which only collects

    def watch(self, parts: Iterable[RoutedPart]) -> str:
        """The name of a plan with these parts."""
        plan = uuid.uuid4().hex
        self._plans[plan] = _Plan({routed.part.number: routed for routed in parts})
        for oldest in list(self._plans)[:-_PLANS]:
            self._plans.pop(oldest, None)
        return plan

    def addInPlace(self, value1: Shares, value2: Shares) -> Shares:
        for share in value2:
            if (plan := self._plans.get(share[0])) is not None:
                _look(plan, share)
        return ()


def _look(plan: _Plan, share: Share) -> None:
    _, number, shard, *_ = share
    routed = plan.parts.get(number)
    if routed is None:  # a warning has been given
        return
    plan.shares[number, shard] = share
    every = [told for (part, _), told in plan.shares.items() if part == number]
    if len(every) < routed.part.shards:
        return
    for one in range(routed.part.shards):  # the DataFrame may be evaluated again
        del plan.shares[number, one]
    rows = sum(told[3] for told in every)
    *_, key, times = max(every, key=lambda told: told[5])
    if rows >= ENOUGH and times * routed.part.shards > rows:
        del plan.parts[number]
        warnings.warn(_message(routed, key, times / rows), SkewWarning, stacklevel=2)


_WATCHES: WeakKeyDictionary[SparkContext, tuple[Watch, Accumulator[Shares]]] = WeakKeyDictionary()


def telling_of(spark: SparkSession, parts: Iterable[RoutedPart]) -> Telling | None:
    """The ``Telling`` by which the shards of a batch report their counts.

    None if no part has a key, and for Spark Connect, which has no accumulators.
    """
    watched = [routed for routed in parts if routed.part.measured]
    if not watched or is_connect(spark):
        return None
    context = spark.sparkContext
    if context not in _WATCHES:
        watch = Watch()
        _WATCHES[context] = watch, context.accumulator((), watch)
    watch, shares = _WATCHES[context]
    return Telling(watch.watch(watched), shares)


def _message(routed: RoutedPart, key: str, share: float) -> str:
    """The warning about a hot key, which only its own shard can work on."""
    queries = ", ".join(routed.part.reports or routed.part.queries)
    advice = (
        f"bound the pattern with WITHIN, so that a batch can be cut by time instead, or divide it by a finer key "
        f"({routed.uncut})"
        if routed.uncut
        else "cut the batch by time with slices=N, or divide it by a finer key"
    )
    return f"{queries}: {share:.0%} of the events have the key {key}, and one shard does all the work for it; {advice}"


__all__ = ["KeyCount", "Telling", "telling_of"]
