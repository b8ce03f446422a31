"""Comparisons between the two sides of a node: what each side computes, and which equalities are a part of its key."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from .algebra import (
    MIRRORED,
    OF_THE_SOLUTION,
    Apply,
    Expr,
    Filter,
    Pattern,
    Var,
    comparison,
    conjuncts,
    equalities,
    operators,
    scope,
    triples_of,
    variables,
)
from .operators import decides_for_good, pairs, relation
from .program import Background, Condition, Join, Node, Ref, Step
from .relations import TOGETHER
from .steps import conditions_of


@dataclass(frozen=True, slots=True)
class Split:
    """A comparison between the sides: ``waiting op arriving``."""

    op: str
    waiting: Expr
    arriving: Expr


@dataclass(frozen=True, slots=True)
class Sides:
    """The variables that only the waiting side may bind, and those whose value the arriving side alone determines.

    A variable of both sides that may be unbound is in neither: its value depends on the pair.
    """

    waiting: frozenset[str]
    arriving: frozenset[str]


def sides_of(waiting: Ref, arriving: Ref, certain: tuple[str, ...]) -> Sides:
    """What each side of a node determines, given the variables that both bind for certain."""
    own, other = frozenset(waiting.columns), frozenset(arriving.columns)
    return Sides(own - other, other - (own - {*certain}))


def split(condition: Expr, sides: Sides) -> Split | None:
    """The comparison split by sides, or None if it is not such a comparison."""
    found = comparison(condition)
    if found is None or operators(condition) & OF_THE_SOLUTION:
        return None
    op, a, b = found
    reads_a, reads_b = variables(a), variables(b)
    if not reads_a or not reads_b:
        return None
    if reads_a <= sides.waiting and reads_b <= sides.arriving:
        return Split(op, a, b)
    if reads_b <= sides.waiting and reads_a <= sides.arriving:
        return Split(MIRRORED[op], b, a)
    return None


def equal_sides(node: Node) -> tuple[tuple[Expr, Expr], ...]:
    """The expressions of the left and of the right side that a join compares by ``=``: they are part of its key.

    Where it is decided for good what is next there are none: it is next whatever is tested of it afterwards.  Goals
    that live for one instant are few.
    """
    if not pairs(node) or node.right is None or relation(node) in TOGETHER or decides_for_good(node):
        return ()
    left, right = frozenset(node.left.columns), frozenset(node.right.columns)
    unsure = (left & right) - {*node.certain}
    sides = Sides(left - unsure, right - unsure)
    each = [e for condition in conditions_of(node.steps) for e in conjuncts(condition)]
    parted = [found for e in each if (found := split(e, sides)) is not None]
    return tuple((found.waiting, found.arriving) for found in parted if found.op == "=")


def looked_up(step: Background, later: Iterable[Step], bound: Container[str]) -> tuple[Pattern, frozenset[str]]:
    """What to ask of the background for solutions that bind these variables, and the variables that the answer needs.

    A later condition ``?z = ?y`` on triples that only it connects to the solution is a part of what is asked, so that
    their ?z is found by its value.  It is still tested afterwards.
    """
    pattern, own = step.pattern, scope(step.pattern)
    given = tuple(
        Apply("=", (Var(name), other))
        for name, other in (equalities(conditions_of(later)) if triples_of(pattern) else ())
        if name in own and name not in bound and all(v in bound for v in variables(other))
    )
    return (Filter(pattern, given), own.union(*map(variables, given))) if given else (pattern, own)


def tested_after(node: Join) -> tuple[Step, ...]:
    """The steps on the pairs of a join that are more than the equalities in its key."""
    equal = equal_sides(node)
    if not equal:
        return (*node.condition, *node.steps)
    sides = {frozenset(pair) for pair in equal}

    def in_key(e: Expr) -> bool:
        found = comparison(e)
        return found is not None and found[0] == "=" and frozenset(found[1:]) in sides

    steps: list[Step] = []
    for step in node.steps:
        if isinstance(step, Condition):
            steps += [Condition(e) for e in conjuncts(step.expression) if not in_key(e)]
        else:
            steps.append(step)
    return tuple(steps)
