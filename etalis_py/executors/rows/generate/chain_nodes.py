"""Puts chains in place of sequences of joins, so that solutions of only some parts are never made.

A SEQ of n parts is compiled to n − 1 joins, each of which waits for its partner at the left of the next.  In a window
of w solutions there may be (w/n)ⁿ⁻¹ such partial solutions, even if none is ever completed.  Where joins do nothing but
wait, a ``Chain`` takes their place, with the name and the columns of the last one: each part keeps its own solutions,
and for each of them the latest start of what it completes (``chains``).

Which joins become a chain follows from their definitions alone, so goals keep their meaning when other queries come and
go.  A join that other rules read, too, stays besides.

>>> from etalis_rules.algebra import Bound
>>> a, b, c = (ir.Leaf(("x",), ir.Var("x"), ir.Const(p), ir.Any()) for p in ("<a>", "<b>", "<c>"))
>>> on_x = lambda left, right: ir.Join(("x",), Op.SEQ, ir.Ref(left, ("x",)), ir.Ref(right, ("x",)), ("x",))
>>> nodes = {"a": a, "b": b, "c": c, "ab": on_x("a", "b"), "abc": on_x("ab", "c")}
>>> chain = chain_of("abc", nodes, frozenset())
>>> [part.node for part in chain.parts], chain.keys
(['a', 'b', 'c'], (('x',), ('x',)))
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from etalis_compiler.families import NAME
from etalis_compiler.stratify import stratify
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.lateness import late_nodes
from etalis_rules.relations import Op

SHORTEST = 3
"""A chain has at least so many parts: with two, nothing is partial."""
SHORTEST_TESTED = 4
"""The same where conditions refuse complete solutions: with three parts, pairs are compared faster than chains."""
HIDDEN = "·"
"""Stands in the names of variables that a join does not pass on."""


def joins_of(name: str, nodes: Mapping[str, ir.Node]) -> tuple[str, ...]:
    """The joins that a chain with the name of the last one stands for."""
    joins = [name]
    while isinstance(below := nodes[joins[-1]], ir.Join) and _goes_on(below, nodes):
        joins.append(below.left.node)
    return tuple(joins[::-1])


def chain_of(name: str, nodes: Mapping[str, ir.Node], late: Collection[str]) -> ir.Chain | None:
    """The chain in place of a join, or None.  ``late``: the nodes whose solutions may end before they are known."""
    join = nodes[name]
    if not isinstance(join, ir.Join) or name in late or not _is_last(join) or not _goes_on(join, nodes):
        return None
    parts, keys = _flat(join, nodes, 0)
    tested = any(isinstance(step, ir.Condition) for step in join.steps)
    if len(parts) < (SHORTEST_TESTED if tested else SHORTEST):
        return None
    return ir.Chain(join.head, parts, keys, join.steps, join.bound, join.owner)


def _is_last(join: ir.Join) -> bool:
    """Whether a join can be the last one of a chain."""
    if not _is_plain(join) or join.leaves or any(isinstance(s, ir.Parameters | ir.Lasting) for s in join.steps):
        return False
    return not any(alg.has_exists(s.expression) for s in join.steps if isinstance(s, ir.Condition | ir.Assign))


def _is_plain(join: ir.Join) -> bool:
    """Whether it takes every pair in sequence whose shared variables are equal, in a fixed length of time if any."""
    bound, columns = join.bound, (*join.left.columns, *join.right.columns)
    if join.op is not Op.SEQ or join.policy or join.deadline is not None or NAME in columns:
        return False
    if bound is not None and (not bound.is_fixed or isinstance(bound, ir.Longest)):
        return False
    sides = (join.left.columns, join.right.columns)
    return set(sides[0]) & set(sides[1]) == set(join.certain) and all(len(set(side)) == len(side) for side in sides)


def _goes_on(join: ir.Join, nodes: Mapping[str, ir.Node]) -> bool:
    """Whether the left side is a join of which it is enough to know its right side and its latest start."""
    left = nodes[join.left.node]
    if not isinstance(left, ir.Join) or not _is_plain(left) or left.steps or left.leaves or left.bound != join.bound:
        return False
    right = {column for column, name in zip(join.left.columns, left.head, strict=True) if name in left.right.columns}
    return set(join.certain) <= right


def _flat(
    join: ir.Join, nodes: Mapping[str, ir.Node], depth: int
) -> tuple[tuple[ir.Ref, ...], tuple[tuple[str, ...], ...]]:
    """The parts of a join and of those at its left, and the variables by which neighbours find each other."""
    if not _goes_on(join, nodes):
        return (join.left, join.right), (join.certain,)
    left = nodes[join.left.node]
    assert isinstance(left, ir.Join)
    names = dict(zip(left.head, join.left.columns, strict=True))
    parts, keys = _flat(left, nodes, depth + 1)

    def named(some: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names.get(name, f"{name}{HIDDEN}{depth}") for name in some)

    before = tuple(ir.Ref(part.node, named(part.columns)) for part in parts)
    return (*before, join.right), (*map(named, keys), join.certain)


@dataclass(frozen=True, slots=True)
class Chained:
    """Rules with chains; ``joins`` are those that each of them stands for."""

    rules: ir.Rules
    joins: Mapping[str, tuple[str, ...]]


def with_chains(rules: ir.Rules, built: Collection[str] = ()) -> Chained:
    """The rules with chains in place of joins, except for those ``built`` of joins, by the name of the last one."""
    nodes = dict(rules.nodes)
    joined = {join for name in built if name in nodes for join in joins_of(name, nodes)}
    late = late_nodes(nodes)
    chains: dict[str, ir.Chain] = {}
    kept: dict[str, None] = {}
    stack = [output.source.node for output in rules.outputs if output.source is not None]
    while stack:
        name = stack.pop()
        if name in kept:
            continue
        kept[name] = None
        chain = None if name in joined else chain_of(name, nodes, late)
        if chain is not None:
            chains[name] = chain
        stack.extend(ir.made_from(chain or nodes[name]))
    if not chains:
        return Chained(rules, {})
    changed = {name: chains.get(name, node) for name, node in nodes.items() if name in kept}
    strata = stratify(changed, rules.outputs)
    order = [name for stratum in strata for name in stratum if name in changed]
    joins = {name: joins_of(name, nodes) for name in chains}
    return Chained(replace(rules, nodes=tuple((name, changed[name]) for name in order), strata=strata), joins)
