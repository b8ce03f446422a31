"""Finds the ways to divide a goal among shards so that each of its solutions is found in exactly one shard.

A *partition* of a node routes every leaf below it by one position of the triple: an occurrence goes to the shard that
the term at this position hashes to.  Each solution of a leaf is then in one shard, and a partition is correct if all
solutions that are combined into one, or that rule one out, are in the same shard:

* a join needs a variable that both sides certainly bind and are partitioned by;
* so does an operator with an optional or forbidden side (an absent partner would have been in this shard);
* a set needs the variable among its columns, an aggregation among its keys.

An event that EVENT reads goes whole to the shard of each term that may be a key of its solutions.  Such a shard also
finds solutions with other keys, which it must drop.

Each function gives all partitions of a node, best first, or the reason why there is none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice, product

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.operator_words import keyword
from etalis_rules.operators import agreement, inputs
from etalis_rules.records import certain_leaves
from etalis_rules.roles import Role

POSITIONS = ("subject", "predicate", "object")
OF_TRIPLE = " in triple pattern "
"""In the position that routes an EVENT, it separates the position in a triple from the number of its pattern."""
MOST = 64  # at most so many partitions of a node are considered

Routes = tuple[tuple[str, str], ...]  # leaf or EVENT → the position that routes it, sorted


@dataclass(frozen=True, slots=True)
class Partition:
    """``column`` is the node's column that holds the key, or empty when the key has been projected away."""

    routes: Routes
    column: str = ""


@dataclass(frozen=True, slots=True)
class PartitionOptions:
    """The partitions of a node; without any, ``reason`` says why and ``node`` where."""

    partitions: tuple[Partition, ...] = ()
    reason: str = ""
    node: str = ""


def merge_routes(*parts: Routes) -> Routes | None:
    """The union of some routings; None if two route the same leaf by different positions."""
    longest, *others = sorted(parts, key=len, reverse=True)
    merged = list(longest)
    for route in chain.from_iterable(others):
        at = bisect_left(merged, route)
        if merged[at : at + 1] == [route]:
            continue
        if any(leaf == route[0] for leaf, _ in merged[max(at - 1, 0) : at + 1]):
            return None
        merged.insert(at, route)
    return tuple(merged)


def routed_leaf(node: ir.Node, position: str) -> tuple[ir.Leaf, str]:
    """The leaf whose triples are routed, and by which of their positions: the node, or a pattern of an EVENT."""
    if isinstance(node, ir.Leaf):
        return node, position
    if not isinstance(node, ir.Record):
        raise TypeError(f"only leaves and EVENT are routed, not {node!r}")
    place, _, number = position.partition(OF_TRIPLE)
    return certain_leaves(node)[int(number) - 1], place


@dataclass(slots=True)
class Partitioner:
    """Partitions of the nodes of a program; ``names`` are the node names used in reasons."""

    nodes: Mapping[str, ir.Node]
    names: Mapping[str, str]
    known: dict[str, PartitionOptions] = field(default_factory=dict)

    def of(self, identifier: str) -> PartitionOptions:
        """The partitions of a node, children first (without recursion: chains may be long)."""
        stack = [identifier]
        while stack:
            name = stack[-1]
            if name in self.known:
                stack.pop()
                continue
            waiting = [ref.node for ref in ir.refs(self.nodes[name]) if ref.node not in self.known]
            if waiting:
                stack.extend(waiting)
                continue
            self.known[name] = self._of(name, self.nodes[name])
            stack.pop()
        return self.known[identifier]

    def _of(self, name: str, node: ir.Node) -> PartitionOptions:
        for ref in ir.refs(node):
            if not self.known[ref.node].partitions:
                return self.known[ref.node]
        if reason := _undivided(node):
            return PartitionOptions((), reason, name)
        match node:
            case ir.Leaf():
                return self._leaf(name, node)
            case ir.Record():
                return self._event(name, node)
            case ir.Start():
                return PartitionOptions((), "START is the same for all keys", name)
            case ir.Map(head, child, _, distinct):
                return self._kept(name, child, head, distinct, "its solutions are a set")
            case ir.Slice(head, child):
                return self._kept(name, child, head, node.distinct, "DISTINCT compares its solutions")
            case ir.Skip(child=child):
                why = f"{keyword(node)} goes by the last one kept of all its solutions"
                return self._by_one(name, [child], agreement(node), node.head, why)
            case ir.Union():
                return self._union(name, node)
            case ir.Group():
                return self._group(name, node)
        below = inputs(node)
        sides = [part.ref for part in below]
        if len(sides) == 1 and below[0].role is Role.SIDE:
            return self._kept(name, sides[0], node.head)
        keys = agreement(node)
        if below[0].role is Role.MEMBER:
            return self._by_one(name, sides, keys, node.head, f"{keyword(node)} without BY makes runs of all solutions")
        if any(part.role is Role.ABSENT for part in below):
            # Occurrences that may rule out a solution must be in the solution's shard.
            return self._by_one(name, sides, keys, node.head, "what NOT looks for may belong to any solution")
        return self._joined(name, node, sides[0], sides[1], keys)

    # --- operators ---

    def _leaf(self, name: str, leaf: ir.Leaf) -> PartitionOptions:
        """By any position that is not a constant; the columns first."""
        if leaf.entailed:
            return PartitionOptions(
                (), "it sees what the schema derives from an occurrence, which may belong elsewhere", name
            )
        partitions: list[Partition] = []
        columns: set[str] = set()
        for position in POSITIONS:
            held = getattr(leaf, position)
            if isinstance(held, alg.Const):
                continue
            column = held.name if isinstance(held, alg.Var) and held.name in leaf.head else ""
            if column and column in columns:
                continue  # the same variable twice: both positions hold the same term
            columns.add(column)
            partitions.append(Partition(((name, position),), column))
        if not partitions:
            return PartitionOptions((), "all three terms of the triple pattern are constants", name)
        return PartitionOptions(tuple(sorted(partitions, key=lambda p: not p.column)))

    def _event(self, name: str, node: ir.Record) -> PartitionOptions:
        """By any variable that a triple of the event binds in every solution, best in a pattern with constants."""
        partitions: dict[str, Partition] = {}
        for number, leaf in sorted(enumerate(certain_leaves(node), 1), key=lambda pair: _open_places(pair[1])):
            for position in POSITIONS:
                held = getattr(leaf, position)
                if isinstance(held, alg.Var) and held.name in node.head and held.name not in partitions:
                    route = name, f"{position}{OF_TRIPLE}{number}"
                    partitions[held.name] = Partition((route,), held.name)
        if partitions:
            return PartitionOptions(tuple(partitions.values()))
        if node.entailed:
            return PartitionOptions((), "EVENT sees what the schema derives, which may be about any term", name)
        if not node.alone:
            return PartitionOptions((), "the background may have triples that EVENT asks for", name)
        return PartitionOptions((), "no triple pattern binds one of its variables in every solution of EVENT", name)

    def _seen(self, ref: ir.Ref) -> Iterator[Partition]:
        """The partitions of a child, with the key under its name here."""
        names = dict(zip(self.nodes[ref.node].head, ref.columns, strict=True))
        for partition in self.known[ref.node].partitions:
            yield Partition(partition.routes, names.get(partition.column, ""))

    def _kept(
        self, name: str, child: ir.Ref, head: tuple[str, ...], compared: bool = False, because: str = ""
    ) -> PartitionOptions:
        kept = [Partition(p.routes, p.column if p.column in head else "") for p in self._seen(child)]
        if compared:
            kept = [p for p in kept if p.column]
        return self._result(name, kept, f"{because}, and no shard key is among its columns")

    def _joined(self, name: str, node: ir.Node, left: ir.Ref, right: ir.Ref, keys: frozenset[str]) -> PartitionOptions:
        shared = frozenset(left.columns) & frozenset(right.columns)
        if not keys:
            why = "is not bound in every solution of both" if shared else "no variable is shared"
            word = keyword(node)
            sides = f"{self.names[left.node]} {word} {self.names[right.node]}"
            if shared:
                return PartitionOptions((), f"in {sides} the shared variable {self._list(shared)} {why}", name)
            return PartitionOptions((), f"in {sides} {why}, so any two solutions may belong together", name)
        pairs = [
            (first.column if first.column in node.head else "", (first.routes, second.routes))
            for first, second in product(tuple(self._seen(left)), tuple(self._seen(right)))
            if first.column and first.column == second.column and first.column in keys
        ]
        if pairs:
            why = f"the join on {self._list(keys)} needs one triple pattern routed by two different positions"
        else:
            why = f"the joins below {self.names[name]} have no variable in common with its own, {self._list(keys)}"
        return self._result(name, _best_merged(pairs), why)

    def _by_one(
        self, name: str, sides: list[ir.Ref], keys: frozenset[str], head: tuple[str, ...], without: str
    ) -> PartitionOptions:
        """The partitions of a node whose sides are all partitioned by the same one of these variables."""
        if not keys:
            return PartitionOptions((), without, name)
        combined = []
        for parts in islice(product(*(tuple(self._seen(side)) for side in sides)), MOST * MOST):
            column = parts[0].column
            if column and column in keys and all(p.column == column for p in parts):
                combined.append((column if column in head else "", tuple(p.routes for p in parts)))
        partitions = _best_merged(combined)
        return self._result(name, partitions, f"no shard key of all its sides is among {self._list(keys)}")

    def _union(self, name: str, node: ir.Union) -> PartitionOptions:
        combined: list[Partition] = [Partition((), "*")]
        for branch in node.branches:
            step = []
            for before, own in islice(product(combined, tuple(self._seen(branch))), MOST * MOST):
                column = own.column if before.column in ("*", own.column) else ""
                step.append((column if column in node.head else "", (before.routes, own.routes)))
            combined = _best_merged(step)
        if node.distinct:
            combined = [p for p in combined if p.column]
        return self._result(name, combined, "the parts of a union have no shard key in common")

    def _group(self, name: str, node: ir.Group) -> PartitionOptions:
        """Groups are independent, unless something looks at all of them together."""
        partitions = []
        for p in self._seen(node.child):
            visible = p.column if p.column in node.head else ""
            if p.column in node.keys and (visible or not node.distinct):
                partitions.append(Partition(p.routes, visible))
        return self._result(name, partitions, f"GROUP BY {self._list(node.keys)} holds no shard key of what is counted")

    def _result(self, name: str, partitions: list[Partition], reason: str) -> PartitionOptions:
        return PartitionOptions(tuple(_best(partitions))) if partitions else PartitionOptions((), reason, name)

    @staticmethod
    def _list(names: Iterable[str]) -> str:
        return ", ".join("X" + n[1:] if n[:1] == "~" else "?" + n for n in sorted(names))


def _open_places(leaf: ir.Leaf) -> int:
    """How many positions hold a variable: the fewer there are, the fewer events are sent."""
    return sum(isinstance(getattr(leaf, position), alg.Var) for position in POSITIONS)


def _undivided(node: ir.Node) -> str:
    """The reason why a node has to see all solutions of its inputs, whatever their keys; empty if it does not."""
    limited = "ORDER BY, LIMIT and OFFSET count"
    if any(part.role is Role.PAST for part in inputs(node)):
        if isinstance(node, ir.Recall):
            return "its EXISTS is evaluated backwards over all occurrences"
        if getattr(node, "condition", ()):
            return "its condition looks back at all occurrences with EXISTS"
        return "its EXISTS looks back at all occurrences"
    match node:
        case ir.Closure():
            return "a path may lead from any node to any other"
        case ir.Slice() if node.order or node.limit is not None or node.offset:
            return f"{limited} all solutions"
        case ir.Group() if not node.keys:
            return "an aggregate without GROUP BY counts all solutions"
        case ir.Group() if node.order or node.limit is not None or node.offset:
            return f"{limited} the rows of all groups"
        case ir.Group() if node.background is not None:
            return "its groups hold solutions from the background too, which are in every shard"
        case ir.Group() if node.window is not None and not node.window.events:
            return "a group that solutions leave with time is reported when a solution enters any group"
    return ""


def _best(partitions: Iterable[Partition]) -> list[Partition]:
    """Each partition once, those with a visible key first, and not too many."""
    return sorted(dict.fromkeys(partitions), key=lambda p: not p.column)[:MOST]


def _best_merged(candidates: Iterable[tuple[str, tuple[Routes, ...]]]) -> list[Partition]:
    """The best partitions that some routings make together, each with its column; no more are merged than are kept."""
    best: dict[Partition, None] = {}
    for column, parts in sorted(candidates, key=lambda candidate: not candidate[0]):
        routes = merge_routes(*parts)
        if routes is not None:
            best[Partition(routes, column)] = None
        if len(best) == MOST:
            break
    return list(best)
