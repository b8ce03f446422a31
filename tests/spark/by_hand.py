"""The pipeline without Spark: routing by a literal reading of the leaves, then every shard one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from zlib import crc32

from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py import Event, Program
from etalis_py.spark.input.schema import COLUMNS
from etalis_py.spark.output.answers import Row, single
from etalis_py.spark.output.wire import Wire
from etalis_py.spark.pipeline import plan
from etalis_py.spark.plan.parts import RoutedPart
from etalis_py.spark.shard.shard import Shard

PLACES = ("subject", "predicate", "object")


def wants(leaf: ir.Leaf, triple: tuple[str, str, str], stream: str) -> bool:
    """May the leaf see this occurrence?"""
    if leaf.entailed:
        return True
    if leaf.stream and leaf.stream != stream:
        return False
    bound: dict[str, str] = {}
    for place, term in zip(PLACES, triple, strict=True):
        match getattr(leaf, place):
            case alg.Const(value) if value != term:
                return False
            case ir.OneOf(terms) if term not in terms:
                return False
            case ir.NoneOf(terms) if term in terms:
                return False
            case alg.Var(name) if bound.setdefault(name, term) != term:
                return False
    return True


def routed(events: Iterable[Event], part: RoutedPart, shard: int) -> list[Event]:
    """What one shard of a part gets: single triples, or events whole if one of their triples is wanted."""
    found = []
    for e in events:
        if part.items:
            found += [e] if any(hit(e, triple, part, shard) for triple in e.triples) else []
            continue
        for triple in e.triples:
            if hit(e, triple, part, shard):
                found.append(Event(e.start, e.end, (triple,), e.stream))
    return sorted(found, key=lambda e: e.end)


def hit(e: Event, triple: tuple[str, str, str], part: RoutedPart, shard: int) -> bool:
    """Whether a shard of a part wants a triple of an event."""
    return part.everything or any(
        wants(leaf, triple, e.stream or part.unnamed)
        and (not position or crc32(triple[PLACES.index(position)].encode()) % part.part.shards == shard)
        for leaf, position in part.routes
    )


def run_by_hand(program: Program | str, events: Sequence[Event], shards: int, **options: object) -> list[str]:
    """The ids of the matches."""
    specs, parts = plan(program, shards, options.get("background"), "rdfs", None)
    rows: list[Row] = []
    derived: list[Event] = []
    for level in sorted({p.part.level for p in parts}):
        made: list[Row] = []
        for part in (p for p in parts if p.part.level == level):
            for number in range(part.part.shards):
                shard = Shard(specs[part.part.program], part.part, number)
                made += single(shard.push(routed([*events, *derived], part, number)))
                made += single(shard.finish())
        rows += [r for r in made if r[0] != "event"]
        derived += [Event(r[7], r[8], r[5], r[9] or "") for r in made if r[0] == "event"]
    assert all(r[0] == "match" for r in rows), rows
    return sorted(r[3] for r in rows)


def public(row: dict[str, object], wire: Wire) -> dict[str, object]:
    """The columns of MATCHES that a row of ``wire.schema`` stands for: what Spark's plan makes of it."""
    if row["table"] is None:
        [whole] = row["row"]  # type: ignore[misc]
        return whole  # type: ignore[no-any-return]
    assert row["row"] is None
    selected = wire.tables[row["table"]]  # type: ignore[call-overload]
    terms = {v: row[f"term_{n}"] for n, v in enumerate(selected.variables)}
    own = {name: row[name] for name in ("id", "start", "end", "retracted", "shard", "detail")}
    return {
        **dict.fromkeys(COLUMNS),
        "kind": "match",
        "program": selected.program,
        "query": selected.query,
        "bindings": {v: term for v, term in terms.items() if term is not None},
        **own,
    }
