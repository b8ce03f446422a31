"""Makes comparisons between the two sides of a join cheap: each side's value is computed once, not once per pair.

A conjunct ``L < R`` in which L reads one side of the join and R the other is tested for every candidate pair.  Its two
values can be computed once: that of the arriving solution before the loop over the candidates, that of a waiting goal
when the goal is inserted, with which it is stored.  If a side is an error the conjunct can never hold: the arriving
solution has no partner, and the goal need not be kept.
"""

from __future__ import annotations

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.sides import Sides, Split, split
from etalis_rules.steps import conditions_of

from etalis_py.executors.rows.generate.layout import Layout
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.values import ORDERED
from etalis_py.values.expressions import COMPARISONS, Emitter, GlobalNames


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
    w(f"{kind} = {value}.__class__", f"if {kind} not in {ordered}: {kind} = None")
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
