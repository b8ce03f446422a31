"""Fetches the matches of a run on Spark in the order of the embedded engine, without holding all of them.

Each match states its place in that order (``shard``).  Spark sorts by it, and the matches are fetched in sorted pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from etalis_py.events import Event, Retraction, Triple
from etalis_py.spark.errors import SparkError
from etalis_py.streams.json_terms import json_term
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

PIECE = 50_000  # matches that are fetched at once
_COLUMNS = ("query", "id", "bindings", "triples", "boolean", "start", "end", "retracted")


@dataclass(frozen=True, slots=True)
class SparkMatch:
    """A match that came out of Spark, in the form that sinks take."""

    query: str
    id: str
    bindings: Mapping[str, str]
    triples: tuple[Triple, ...] | None
    boolean: bool | None
    start_us: int | None
    end_us: int | None
    render: Callable[[int], int | str] = field(compare=False, repr=False)
    retracted: bool = False
    """Whether this takes back an earlier match, the one with the same id."""

    @property
    def start(self) -> int | str | None:
        return None if self.start_us is None else self.render(self.start_us)

    @property
    def end(self) -> int | str | None:
        return None if self.end_us is None else self.render(self.end_us)

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--format jsonl`` prints."""
        result: dict[str, Any] = {"query": self.query, "id": self.id}
        if self.triples is not None:
            result["triples"] = [f"{s} {p} {o} ." for s, p, o in self.triples]
        elif self.boolean is not None:
            result["boolean"] = self.boolean
        else:
            result["bindings"] = {v: json_term(t) for v, t in sorted(self.bindings.items())}
        result["start"], result["end"] = self.start, self.end
        return result | {"retracted": True} if self.retracted else result


class SparkRun:
    """The result of a run, while its session and its files exist.

    ``events`` counts the events taken, ``count`` the matches, and ``late`` the rows for events that Spark's watermark
    had passed.  Iterating gives the matches in order; ``done`` confirms that they have arrived.
    """

    def __init__(
        self,
        matches: DataFrame,
        events: int,
        variables: Iterable[str],
        render: Callable[[int], int | str],
        done: Callable[[], None] = lambda: None,
    ) -> None:
        self.events = events
        self.done = done
        self._rows = matches.persist(StorageLevel.DISK_ONLY)
        self._variables = sorted(variables)
        self._render = render
        kinds = (F.count_if(F.col("kind") == kind).alias(kind) for kind in ("match", "dead_letter"))
        counted = self._rows.agg(*kinds).first()
        assert counted is not None, "an aggregate without groups has one row"
        self.count, self.late = counted["match"], counted["dead_letter"]

    def __iter__(self) -> Iterator[SparkMatch]:
        if not self.count:
            return
        rows = self._rows.where("kind = 'match'")
        keys = order_columns(self._variables)
        pieces = ceil(self.count / PIECE)
        spread = rows.coalesce(1) if pieces == 1 else rows.repartitionByRange(pieces, *keys)
        for row in spread.sortWithinPartitions(*keys).select(*_COLUMNS).toLocalIterator():
            query, identifier, bindings, triples, boolean, start, end, retracted = row
            constructed = None if triples is None else tuple(map(tuple, triples))
            yield SparkMatch(
                query, identifier, bindings or {}, constructed, boolean, start, end, self._render, bool(retracted)
            )

    def late_events(self) -> Iterator[Event]:
        """The events that came too late for Spark, a triple at a time."""
        if self.late:
            columns = ("start", "end", "stream", "triples", "retracted")
            rows = self._rows.where("kind = 'dead_letter' AND triples IS NOT NULL").select(*columns).distinct()
            for start, end, stream, triples, retracted in rows.toLocalIterator():
                yield (Retraction if retracted else Event)(start, end, tuple(map(tuple, triples or ())), stream or "")

    def check_updates(self) -> None:
        """Raise ``SparkError`` for an update of the background that could not be made."""
        if self.late:
            refused = self._rows.where("kind = 'dead_letter' AND triples IS NULL AND query IS NULL").select("detail")
            for row in refused.take(1):
                raise SparkError(row["detail"])


def order_columns(variables: Sequence[str]) -> list[Column]:
    """The order of the embedded engine, for ``matches(…, ordered=True)``.

    First the place that a match states: the instant, the query, and its number if the query has an order of its own.
    Then, among the matches of all shards, the end, the start, and the terms of the ``variables`` (those of all queries,
    in alphabetical order: the matches of a query agree in those that it does not have).  Last its number in its shard.
    """
    place = F.from_json("detail", "array<bigint>")
    terms = [F.coalesce(F.col("bindings")[name], F.lit("")) for name in variables]
    ends = F.coalesce("end", F.lit(TIMELESS_END)), F.coalesce("start", F.lit(TIMELESS_START))
    return [*(place[i] for i in range(3)), *ends, *terms, place[3]]


__all__ = ["SparkMatch", "SparkRun", "order_columns"]
