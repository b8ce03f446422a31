"""Makes comparisons between the two sides of a join cheap: each side's value is computed once, not once per pair.

A conjunct ``L < R`` whose L reads one side and R the other is conditions_of for every candidate.  Its two sides can be
computed once: that of the arriving solution before the loop over the candidates, that of the waiting goal when the goal
is inserted (it is stored with the goal).  If a side is an error the conjunct can never hold: the arriving solution has
no partner, and the goal need not be kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.operators import decides_for_good, pairs, relation
from etalis_rules.relations import TOGETHER
from etalis_rules.steps import conditions_of

from etalis_py.executors.rows.generate.layout import Layout
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.values import ORDERED
from etalis_py.values.expressions import COMPARISONS, MIRRORED, Emitter, GlobalNames


@dataclass(frozen=True, slots=True)
class Split:
    """A comparison between the sides: ``waiting op arriving``."""

    op: str
    waiting: alg.Expr
    arriving: alg.Expr


@dataclass(frozen=True, slots=True)
class Sides:
    """The variables that only the waiting side may bind, and those whose value the arriving side alone determines.

    A variable of both sides that may be unbound is in neither: its value depends on the pair.
    """

    waiting: frozenset[str]
    arriving: frozenset[str]


def sides_of(waiting: ir.Ref, arriving: ir.Ref, certain: tuple[str, ...]) -> Sides:
    own, other = frozenset(waiting.columns), frozenset(arriving.columns)
    return Sides(own - other, other - (own - {*certain}))


def split(condition: alg.Expr, sides: Sides) -> Split | None:
    """The comparison split by sides, or None if it is not such a comparison."""
    found = alg.comparison(condition)
    if found is None or alg.operators(condition) & _OF_THE_PAIR:
        return None
    op, a, b = found
    reads_a, reads_b = alg.variables(a), alg.variables(b)
    if not reads_a or not reads_b:
        return None
    if reads_a <= sides.waiting and reads_b <= sides.arriving:
        return Split(op, a, b)
    if reads_b <= sides.waiting and reads_a <= sides.arriving:
        return Split(MIRRORED[op], b, a)
    return None


_OF_THE_PAIR = alg.INTERVAL | alg.VOLATILE | {"EXISTS"}


def equal_sides(node: ir.Node) -> tuple[tuple[alg.Expr, alg.Expr], ...]:
    """The expressions of the left and of the right side that a join compares by ``=``: they are part of its key.

    Where it is decided for good what is next there are none: it is next whatever is tested of it afterwards.  Goals
    that live for one instant are few.
    """
    if not pairs(node) or node.right is None or relation(node) in TOGETHER or decides_for_good(node):
        return ()
    left, right = frozenset(node.left.columns), frozenset(node.right.columns)
    unsure = (left & right) - {*node.certain}
    sides = Sides(left - unsure, right - unsure)
    conjuncts = [e for condition in conditions_of(node.steps) for e in alg.conjuncts(condition)]
    parted = [found for e in conjuncts if (found := split(e, sides)) is not None]
    return tuple((found.waiting, found.arriving) for found in parted if found.op == "=")


def stored_expressions(steps: tuple[ir.Step, ...], sides: Sides) -> tuple[alg.Expr, ...]:
    """The expressions to compute when a goal is inserted: the waiting sides that are more than a variable."""
    expressions: dict[alg.Expr, None] = {}
    for condition in conditions_of(steps):
        parted = split(condition, sides)
        if parted is not None and not alg.variable_of(parted.waiting):
            expressions[parted.waiting] = None
    return tuple(expressions)


def hoist_arriving(
    w: Writer, names: GlobalNames, arriving: Emitter, emitter: Emitter, parted: Split, number: int, skip: str
) -> str:
    """Write the code that runs before the loop; returns the test for one candidate.

    ``arriving`` knows how the arriving solution is spelled, ``emitter`` both sides, and ``emitter.ready`` where stored
    expressions are.
    """
    value, kind = f"v{number}", f"c{number}"
    with w.block("try:"):
        w(f"{value} = {arriving.value(parted.arriving)}")
    with w.block("except SparqlError:"):
        w(skip)
    ordered = names.use("ORDERED", ORDERED)
    w(f"{kind} = {value}.__class__ if {value}.__class__ in {ordered} else None")
    name, function = COMPARISONS[parted.op]
    slow = names.use(name, function)
    python = "==" if parted.op == "=" else parted.op
    candidate = f"w{number}"
    waiting = emitter.value(parted.waiting)
    return (
        f"({candidate} {python} {value} if ({candidate} := {waiting}).__class__ is {kind}"
        f" else {slow}({candidate}, {value}))"
    )


def stored_position(layout: Layout, position: int) -> int:
    """The index of the n-th stored expression in the tuple of a goal."""
    return 2 + len(layout.head) + len(layout.values) + position
