"""Choose the order in which a chain of joins is binarized ([EP] §5, "left-associative binarization").

SEQ is associative: (A SEQ B) SEQ C = A SEQ (B SEQ C), since a hull ends where its last part ends and starts where its
first one starts; a timeless part changes neither.  AND is associative and commutative, and the triples of a basic
graph pattern are a set.  So without a consuming policy the order changes no answer, only the number of goals:

* ``left`` is the plan as written; good if the last part is the most frequent;
* ``right`` couples from the right; good if the first part is the most frequent;
* ``cost`` makes the fewest intermediate solutions, by the rates of the predicates (events per second).

Under a consuming policy the plan is part of the meaning and stays as it is written.

>>> from etalis_rules.algebra import *
>>> from etalis_rules.relations import Op
>>> def seq(left: Pattern, right: Pattern) -> Pattern:
...     return Join(Op.SEQ, left, right)
>>> a, b, c = (BGP((Triple(Var("x"), Const(p), Var(p)),)) for p in ("<a>", "<b>", "<c>"))
>>> reorder(seq(seq(a, b), c), "right") == seq(a, seq(b, c))
True
>>> reorder(seq(seq(a, b), c), "cost", {"<a>": 100.0, "<b>": 1.0, "<c>": 1.0}) == seq(a, seq(b, c))
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from etalis_rules import algebra as alg
from etalis_rules.relations import Op

ORDERS = ("left", "right", "cost")
HORIZON = 60.0  # seconds that a solution is assumed to wait for its partner
SELECTIVITY = 0.01  # assumed for a join with a shared variable

Rates = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class JoinOrder:
    """The order in which a program's joins are to be coupled, with the rates of the predicates."""

    order: str = "left"
    rates: tuple[tuple[str, float], ...] = ()


AS_WRITTEN = JoinOrder()


def coupling(order: str = "", rates: Rates | None = None) -> JoinOrder:
    """The user's choice; rates alone imply ``cost``.  Predicates may be written with or without angle brackets."""
    given = sorted((iri if iri[:1] == "<" else f"<{iri}>", float(rate)) for iri, rate in (rates or {}).items())
    chosen = order or ("cost" if given else "left")
    if chosen not in ORDERS:
        raise ValueError(f"unknown order {chosen!r}: use one of {', '.join(ORDERS)}")
    if chosen == "cost" and not given:
        raise ValueError("the order 'cost' needs rates: give the events per second of some predicates")
    if wrong := [iri for iri, rate in given if not 0 <= rate < float("inf")]:
        raise ValueError(f"the rate of {wrong[0]} is not a number of events per second")
    return JoinOrder(chosen, tuple(given))


def reorder_select(select: alg.Select, wanted: JoinOrder) -> alg.Select:
    """``reorder`` under a SELECT."""
    return replace(select, pattern=reorder(select.pattern, wanted.order, dict(wanted.rates)))


def reorder(pattern: alg.Pattern, order: str, rates: Rates | None = None) -> alg.Pattern:
    """The pattern with its chains of SEQ and AND coupled in this order.

    ``rates`` map predicates (``<iri>``) to events per second; one that is missing counts as the average of the others.
    Filters and windows must not have been pushed yet: they would break up the chains.
    """
    return pattern if order == "left" else _Reorder(order, rates or {}).pattern(pattern)


@dataclass(slots=True)
class _Reorder:
    order: str
    rates: Rates
    usual: float = field(init=False)

    def __post_init__(self) -> None:
        self.usual = sum(self.rates.values()) / len(self.rates) if self.rates else 1.0

    def pattern(self, p: alg.Pattern) -> alg.Pattern:
        match p:
            case alg.Join(Op.SEQ, deadline=None):
                return self._coupled([self.pattern(part) for part in _chain(p, Op.SEQ)])
            case alg.Join(Op.AND):
                parts = [self.pattern(part) for part in _chain(p, Op.AND)]
                if self.order == "cost":
                    parts = self._joined_first(parts)
                result = parts[0]
                for part in parts[1:]:
                    result = alg.Join(Op.AND, result, part)
                return result
            case alg.BGP(triples) if self.order == "cost":
                return replace(p, triples=tuple(sorted(triples, key=self._triple_rate)))
            case alg.GraphNames():
                return p
        below = alg.parts(p)
        if any(part.role in (alg.Role.ABSENT, alg.Role.MEMBER) for part in below):
            return p  # it stays as it is written
        return alg.with_children(p, (self.pattern(part.pattern) for part in below))

    # --- SEQ ---

    def _coupled(self, parts: Sequence[alg.Pattern]) -> alg.Pattern:
        if self.order == "cost":
            return self._cheapest(parts)
        result = parts[-1]
        for part in reversed(parts[:-1]):
            result = alg.Join(Op.SEQ, part, result)
        return result

    def _cheapest(self, parts: Sequence[alg.Pattern]) -> alg.Pattern:
        """The bracketing with the fewest intermediate solutions: dynamic programming over the spans of the chain."""
        size = len(parts)
        best: dict[tuple[int, int], tuple[float, alg.Pattern]] = {(i, i): (0.0, p) for i, p in enumerate(parts)}
        for length in range(2, size + 1):
            for i in range(size - length + 1):
                j = i + length - 1
                costs = {k: best[i, k][0] + best[k + 1, j][0] for k in range(i, j)}
                # The last of equal costs is the left-most coupling, the plan as written.
                at = min(costs, key=lambda k: (costs[k], -k))
                joined = alg.Join(Op.SEQ, best[i, at][1], best[at + 1, j][1])
                best[i, j] = (costs[at] + self._matches(parts[i : j + 1]), joined)
        return best[0, size - 1][1]

    def _matches(self, parts: Sequence[alg.Pattern]) -> float:
        """How many solutions per second these parts form together."""
        seen = alg.scope(parts[0])
        keys = 1.0
        for part in parts[1:]:
            keys *= SELECTIVITY if seen & alg.scope(part) else 1.0
            seen |= alg.scope(part)
        return keys * prod(map(self._rate, parts)) * HORIZON ** (len(parts) - 1)

    # --- AND ---

    def _joined_first(self, parts: list[alg.Pattern]) -> list[alg.Pattern]:
        """Order parts: the rarest comes first, then always the rarest that shares a variable with those before."""
        rest = sorted(parts, key=self._rate)
        order = [rest.pop(0)]
        names = alg.scope(order[0])
        while rest:
            following = next((p for p in rest if alg.scope(p) & names), rest[0])
            rest.remove(following)
            order.append(following)
            names |= alg.scope(following)
        return order

    # --- rates ---

    def _triple_rate(self, t: alg.Triple) -> float:
        if isinstance(t.predicate, alg.Const):
            return self.rates.get(t.predicate.term, self.usual)
        return sum(self.rates.values()) or self.usual

    def _rate(self, p: alg.Pattern) -> float:
        """Roughly how many solutions per second a pattern has: as many as its rarest part."""
        match p:
            case alg.BGP(triples) if triples:
                return min(map(self._triple_rate, triples))
            case alg.Union(left, right):
                return self._rate(left) + self._rate(right)
        below = alg.parts(p)
        sides = [part for part in below if part.role is alg.Role.SIDE]
        counted = sides if len(sides) == 1 else below
        return min((self._rate(part.pattern) for part in counted), default=self.usual)


def _chain(p: alg.Pattern, op: Op) -> list[alg.Pattern]:
    """The parts of a chain of one operator, from left to right."""
    parts: list[alg.Pattern] = []
    stack = [p]
    while stack:
        here = stack.pop()
        if isinstance(here, alg.Join) and here.op is op and here.deadline is None:
            stack += (here.right, here.left)
        else:
            parts.append(here)
    return parts
