"""Comparisons between the two sides of a node: what each side computes, and which equalities are a part of its key."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import TypeGuard

from .algebra import (
    MIRRORED,
    OF_THE_SOLUTION,
    Apply,
    Expr,
    Filter,
    Pattern,
    comparison,
    conjuncts,
    equal_pairs,
    equality,
    operators,
    scope,
    triples_of,
    variables,
)
from .operators import Pairing, decides_for_good, pairs, relation
from .program import Absence, Background, Condition, Join, Node, Outer, Ref, Step
from .relations import TOGETHER, Op
from .steps import conditions_of

Comparing = Join | Outer


def compares_sides(node: Node) -> TypeGuard[Comparing]:
    """Whether it pairs solutions of its two sides that pass conditions on both."""
    return isinstance(node, Comparing)


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


def _finds_partners(node: Node) -> TypeGuard[Pairing | Comparing]:
    """Whether goals wait on one side, and whatever is compared decides which of them a solution of the other finds."""
    if isinstance(node, Outer):
        return node.right is not None and node.op not in TOGETHER and not node.policy
    return pairs(node) and relation(node) not in TOGETHER and not decides_for_good(node)


def _pairing_steps(node: Pairing | Comparing) -> tuple[Step, ...]:
    """The steps on the pairs of a node that decide whether they are pairs."""
    return node.condition if isinstance(node, Outer) else node.steps


def equal_sides(node: Node) -> tuple[tuple[Expr, Expr], ...]:
    """The expressions of the left and right side that a node compares by ``=`` or sameTerm: they are part of its key.

    Where it is decided for good what is next there are none: it is next whatever is tested of it afterwards.  Goals
    that live for one instant are few, and an optional side that is consumed is looked up by the shared terms alone.
    """
    if not _finds_partners(node) or node.right is None:
        return ()
    left, right = frozenset(node.left.columns), frozenset(node.right.columns)
    unsure = (left & right) - {*node.certain}
    sides = Sides(left - unsure, right - unsure)
    each = [e for condition in conditions_of(_pairing_steps(node)) for e in conjuncts(condition)]
    equal = [Apply("=", both) for e in each if (both := equality(e)) is not None]
    parted = [found for e in equal if (found := split(e, sides)) is not None]
    return tuple(dict.fromkeys((found.waiting, found.arriving) for found in parted))


def looked_up(step: Background, later: Iterable[Step], bound: Container[str]) -> tuple[Pattern, frozenset[str]]:
    """What to ask of the background for solutions that bind these variables, and the variables that the answer needs.

    A later condition ``?z = ?y`` on triples that only it connects to the solution is a part of what is asked, so that
    their ?z is found by its value.  It is still tested afterwards.
    """
    pattern, own = step.pattern, scope(step.pattern)

    def is_found(e: Expr) -> bool:
        """Whether it says which value something has that the triples determine."""
        each = ((variables(one), variables(other)) for one, other in equal_pairs((e,)))
        return any(
            bool(new) and all(v in own and v not in bound for v in new) and all(v in bound for v in known)
            for new, known in each
        )

    conditions = conditions_of(later) if triples_of(pattern) else ()
    given = tuple(e for condition in conditions for e in conjuncts(condition) if is_found(e))
    return (Filter(pattern, given), own.union(*map(variables, given))) if given else (pattern, own)


def tested_after(node: Comparing) -> tuple[Step, ...]:
    """The steps on the pairs of a node that are more than the equalities in its key."""
    sides = {frozenset(pair) for pair in equal_sides(node)}

    def in_key(e: Expr) -> bool:
        found = comparison(e)
        return found is not None and found[0] == "=" and frozenset(found[1:]) in sides

    steps: list[Step] = []
    for step in (*node.condition, *node.steps):
        if sides and isinstance(step, Condition) and step in _pairing_steps(node):
            steps += [Condition(e) for e in conjuncts(step.expression) if not in_key(e)]
        else:
            steps.append(step)
    return tuple(steps)


def tells_what_is_absent(node: Absence, ref: Ref, other: Ref) -> bool:
    """Whether one side of a gap alone tells which N agree: the other has no variable of N that may differ there."""
    asked = [v for v in node.absent.columns if v in ref.columns or v in other.columns]
    return all(v in ref.columns and (v in node.certain or v not in other.columns) for v in asked)


def deciding(node: Node, waiting: Ref) -> tuple[tuple[Step, ...], Ref, tuple[str, ...]] | None:
    """The steps that decide on a waiting goal of this side and an arriving solution, its input, and the shared columns.

    None if something else may decide, too, such as a policy among optional goals.
    """
    if isinstance(node, Join) and node.op in (Op.AND, Op.SEQ):
        return node.steps, node.left if waiting is node.right else node.right, node.certain
    if isinstance(node, Absence) and node.deadline is not None and waiting is node.left:
        return node.condition, node.absent, node.shared
    if isinstance(node, Outer) and not node.policy and node.op not in TOGETHER and waiting is node.right:
        return node.condition, node.left, node.certain
    return None
