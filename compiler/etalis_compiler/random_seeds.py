"""Explicit seeds for RAND, UUID, STRUUID and BNODE: ``BNODE("a")`` becomes ``BNODE("a", SEED(1, ?x, ?y))``.

A seed is the number of the call and the solution it is evaluated for: two rows draw differently, however few of their
columns a plan carries, and a replay draws the same again ([SPARQL 1.1 Query] §17.4.2.9: "distinct blank nodes … in
different solutions", one node for one name within a solution).  Variables that BIND and SELECT add to a solution are
not part of the seed, so that two BINDs of one group agree on ``BNODE("a")``.

>>> from etalis_rules.algebra import *
>>> bgp = BGP((Triple(Var("a"), Const("<p>"), Var("x")),))
>>> seeded(Select(Extend(bgp, "u", Apply("RAND")), ("u",))).pattern.expression
Apply(op='RAND', args=(Apply(op='SEED', args=(Const(term='"1"'), Var(name='a'), Var(name='x'))),))
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules.traversal import descend


def seeded(select: alg.Select) -> alg.Select:
    """The query with a seed in every call that draws a value."""
    return _Seeds().select(select)


@dataclass(slots=True)
class _Seeds:
    calls: int = 0

    def select(self, select: alg.Select) -> alg.Select:
        below = _given(select.pattern)
        above = frozenset((*select.keys, *(a.variable for a in select.aggregates))) if select.grouped else below
        operand = lambda a: replace(a, operand=None if a.operand is None else self.expression(a.operand, below))  # noqa: E731
        return replace(
            select,
            pattern=self.pattern(select.pattern),
            aggregates=tuple(map(operand, select.aggregates)),
            having=self.expressions(select.having, above),
            extends=tuple((name, self.expression(e, above)) for name, e in select.extends),
            order=tuple(replace(k, expression=self.expression(k.expression, above)) for k in select.order),
        )

    def pattern(self, pattern: alg.Pattern) -> alg.Pattern:
        if isinstance(pattern, alg.SubSelect):
            return alg.SubSelect(self.select(pattern.select))
        seen = alg.children(pattern)[:2]  # the condition of SEQ NOT … SEQ does not see what follows
        given = frozenset[str]().union(*map(_given, seen))
        return descend(alg.with_expressions(pattern, lambda e: self.expression(e, given)), self._below)

    def _below(self, node: Any) -> Any:
        """What stands below a pattern whose own expressions are done."""
        return self.pattern(node) if isinstance(node, alg.Pattern) else node

    def expressions(self, conditions: tuple[alg.Expr, ...], names: frozenset[str]) -> tuple[alg.Expr, ...]:
        return tuple(self.expression(e, names) for e in conditions)

    def expression(self, e: alg.Expr, names: frozenset[str]) -> alg.Expr:
        match e:
            case alg.Exists(pattern):
                return alg.Exists(self.pattern(pattern))
            case alg.Apply(op, args):
                changed = tuple(self.expression(a, names) for a in args)
                if op not in alg.DRAWN:
                    return alg.Apply(op, changed)
                self.calls += 1
                drawn_from = map(alg.Var, sorted(n for n in names if not n.removeprefix("_:").startswith(".")))
                return alg.Apply(op, (*changed, alg.Apply("SEED", (alg.Const(f'"{self.calls}"'), *drawn_from))))
        return e


def _given(pattern: alg.Pattern) -> frozenset[str]:
    """The variables of the solution before BIND and the filters of its group add to it."""
    while isinstance(pattern, alg.Extend | alg.Filter):
        pattern = pattern.child
    return alg.scope(pattern)
