"""What runs where on Spark, in words: the parts of a program, level by level.

>>> from etalis_py.spark.parts import Part
>>> one = Part(0, 0, 4, ("a",), ("a",), feeds=("a",), reason="sharded by ?c")
>>> two = Part(1, 0, 1, ("a", "b"), ("b",), level=2, reason="one shard: ASK answers once for all shards")
>>> print(*placement([one, two]), sep="\\n")
level 1, 4 shards: a; hands on what a derives
  sharded by ?c
level 2, one shard: b; computes a as well
  because ASK answers once for all shards
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from etalis_py.spark.parts import Part


def placement(parts: Iterable[Part]) -> Iterator[str]:
    """A line for each part and, indented, why it is one.  A level waits for what earlier ones hand on."""
    for part in sorted(parts, key=lambda p: (p.level, -p.shards, p.number)):
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


def _derive(queries: Sequence[str]) -> str:
    return f"{', '.join(queries)} derive{'s' * (len(queries) == 1)}"
