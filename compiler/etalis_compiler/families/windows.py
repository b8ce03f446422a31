"""Drops tests of a window that an outer window implies, in rules of a family whose windows differ in length.

A bound is pushed into everything inside it (``rewrites.push_windows``), so that goals expire there, too.  If its length
is a parameter, each of these tests would need the parameter, and the nodes below could no longer be shared by all
queries.  Without a consuming policy the outermost test refuses whatever the inner ones would: these only determine how
long goals are kept, for which the longest window of all queries is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.operators import Pairing, pairs

Lengths = frozenset[int]
Length = Callable[[alg.Bound | None], int | None]
"""The parameter that a bound stands for, if any."""


def relaxed(nodes: dict[str, ir.Node], name: str, length: Length, family: str) -> str:
    """The node without the tests that a test above them implies; rewritten nodes below it are added to ``nodes``."""
    if any(getattr(node, "policy", "") for node in nodes.values()):
        return name
    return _Relaxing(nodes, length, family).node(name, frozenset())


class _Relaxing:
    def __init__(self, nodes: dict[str, ir.Node], length: Length, family: str) -> None:
        self.nodes, self.length, self.family = nodes, length, family

    def node(self, name: str, implied: Lengths) -> str:
        """The node inside windows whose lengths are these parameters."""
        before = self.nodes[name]
        after = self._relaxed(before, implied)
        if after == before:
            return name
        own = ir.identify(after)
        self.nodes[own] = after
        return own

    def _relaxed(self, node: ir.Node, implied: Lengths) -> ir.Node:
        match node:
            case ir.Map():
                steps = tuple(s for s in node.steps if not (isinstance(s, ir.Duration) and self._is(s.bound, implied)))
                inner = implied.union(*(self._own(s.bound) for s in steps if isinstance(s, ir.Duration)))
                return replace(node, child=self._ref(node.child, inner), steps=steps)
            case ir.Union():
                return replace(node, branches=tuple(self._ref(ref, implied) for ref in node.branches))
            case _ if pairs(node) and node.right is not None:
                # This holds for a nearest relation, too: if the next solution comes too late, so do all after it.
                inner = implied | self._own(node.bound)
                sides = self._ref(node.left, inner), self._ref(node.right, inner)
                return replace(node, left=sides[0], right=sides[1], bound=self._kept(node, implied))
        return node

    def _ref(self, ref: ir.Ref, implied: Lengths) -> ir.Ref:
        return replace(ref, node=self.node(ref.node, implied))

    def _own(self, bound: alg.Bound | None) -> Lengths:
        parameter = self.length(bound)
        return frozenset() if parameter is None else frozenset((parameter,))

    def _is(self, bound: alg.Bound | None, implied: Lengths) -> bool:
        return not self._own(bound).isdisjoint(implied)

    def _kept(self, node: Pairing, implied: Lengths) -> alg.Bound | None:
        parameter = self.length(node.bound)
        if parameter is None or parameter not in implied:
            return node.bound
        return ir.Longest(family=self.family, place=parameter + 1)
