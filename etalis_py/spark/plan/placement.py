"""Describes as text what runs where on Spark: the parts of a program, level by level.

>>> from etalis_compiler.reach import Reach, endless
>>> from etalis_py.spark.plan.parts import ShardPart, RoutedPart
>>> one = ShardPart(0, 0, 4, ("a",), ("a",), feeds=("a",), reason="sharded by ?c")
>>> two = ShardPart(1, 0, 1, ("a", "b"), ("b",), reason="one shard: ASK answers once for all shards")
>>> three = ShardPart(2, 0, 1, ("c",), ("c",), reason="one shard: no variable is shared")
>>> reached = (Reach(5_000_000), endless("ASK answers once for the whole stream"), Reach(10_000_000))
>>> parts = [RoutedPart(part, (), reach=reach) for part, reach in zip((one, two, three), reached)]
>>> print(*placement(parts, 4), sep="\\n")
level 1, 4 shards: a; hands on what a derives
  sharded by ?c
  a batch with a hot key: 4 slices of time, reading the PT5S before each again: 0.42% of an hour is read twice
level 1, one shard: b; computes a as well
  because ASK answers once for all shards
  no slices of time: ASK answers once for the whole stream
level 1, one shard: c
  because no variable is shared
  a batch: 4 slices of time, reading the PT10S before each again: 0.83% of an hour is read twice
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from etalis_rules.durations import duration_text

from etalis_py.spark.plan.parts import RoutedPart

_HOUR = 3_600_000_000
_PERIODS = {
    "an hour": _HOUR, "a day": 24 * _HOUR, "a week": 168 * _HOUR, "a year": 8_766 * _HOUR, "a century": 876_600 * _HOUR,
}  # fmt: skip


def placement(parts: Iterable[RoutedPart], slices: int) -> Iterator[str]:
    """A line for each part and, indented, the reason for it.  A level waits for what earlier ones hand on.

    ``slices``: the number of slices of time for a batch.
    """
    for routed in sorted(parts, key=lambda p: (p.part.level, -p.part.shards, p.part.number)):
        part = routed.part
        where = "one shard" if part.shards == 1 else f"{part.shards} shards"
        clauses = [f"level {part.level}, {where}: {', '.join(part.reports) or 'nothing that is reported'}"]
        if part.takes:
            clauses.append(f"takes what {_derive(part.takes)}")
        if further := [query for query in part.queries if query not in (*part.reports, *part.feeds)]:
            clauses.append(f"computes {', '.join(further)} as well")
        if part.feeds:
            clauses.append(f"hands on what {_derive(part.feeds)}")
        yield "; ".join(clauses)
        reasons = part.reason.removeprefix("one shard: ").split("; ")
        if part.reason.startswith("one shard: "):
            yield from (f"  because {reason}" for reason in reasons)
        else:
            yield f"  {part.reason}"
        if slices > 1:
            yield f"  {_in_time(routed, slices)}"


def _in_time(routed: RoutedPart, slices: int) -> str:
    """Whether a batch is cut by time, and what that costs."""
    if routed.uncut:
        return f"no slices of time: {routed.uncut}"
    batch = "a batch" if routed.part.shards == 1 else "a batch with a hot key"
    cut = f"{batch}: {slices} slices of time"
    back = routed.reach.back
    if not back:
        return f"{cut}: nothing is read twice"
    again = back * (slices - 1)
    of = next((name for name, length in _PERIODS.items() if 4 * again <= length), "a century")
    share = f"{again / _PERIODS[of]:.2g}" if again > _PERIODS[of] else f"{100 * again / _PERIODS[of]:.2g}%"
    return f"{cut}, reading the {duration_text(0, back)} before each again: {share} of {of} is read twice"


def _derive(queries: Sequence[str]) -> str:
    return f"{', '.join(queries)} derive{'s' * (len(queries) == 1)}"
