"""Which nodes have a columnar form, and why the others have none or go from instant to instant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from etalis_compiler.families import NAME
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.relations import Op


def unsupported_node(node: ir.Node) -> str | None:
    """Why a node has no columnar form at all, not even one that goes from instant to instant."""
    match node:
        case ir.Map(steps=steps) | ir.Join(steps=steps) | ir.Absence(steps=steps):
            return _unsupported_steps(steps)
        case ir.Outer():
            return _unsupported_steps(node.steps if node.leaves else (*node.condition, *node.steps))
        case ir.Group(leaves=leaves):
            if leaves:
                return "EXISTS looks back at single occurrences"
            expressions = (*node.having, *(e for _, e in node.extends), *(k.expression for k in node.order))
            operands = (call.operand for call in node.aggregates if call.operand is not None)
            return _unsupported_expressions((*expressions, *operands))
        case ir.Slice(order=order):
            return _unsupported_expressions(key.expression for key in order)
        case ir.Run():
            return _unsupported_expressions(node.condition)
        case ir.Record():
            return "EVENT reads whole events"
        case ir.Leaf() | ir.Union() | ir.Recall() | ir.Closure():
            return None
        case _:
            assert_never(node)


def by_instant(node: ir.Node, late: bool) -> str | None:
    """Why a node with a columnar form goes from instant to instant, with the goals of rows; None where it need not.

    ``late``: its solutions may end before the instant in which they are known.
    """
    match node:
        case _ if looks_back(node):
            return "an EXISTS that looks back at single occurrences"
        case ir.Join(op=Op.NEXT, policy=policy) if policy or is_open(node):
            return "a NEXT that consumes, or whose sides may leave a variable unbound"
        case ir.Join(op=Op.PAR, policy=policy) if policy:
            return "a PAR that consumes"
        case ir.Join() | ir.Outer() if late:
            return "a join with what an aggregate reports, which may have ended before"
        case ir.Run():
            return "a REPEAT"
        case ir.Join() | ir.Absence(deadline=None):
            return _picked_by_instant(node)
        case ir.Leaf() | ir.Map() | ir.Union() | ir.Outer() | ir.Absence() | ir.Closure() | ir.Group() | ir.Slice():
            return None
        case ir.Recall() | ir.Record():
            return None  # looks back, or has no form in columns
        case _:
            assert_never(node)


def looks_back(node: ir.Node) -> bool:
    """Whether a node looks back at single occurrences, beyond what its parts give it."""
    return isinstance(node, ir.Recall) or (isinstance(node, ir.Outer) and bool(node.leaves))


def _picked_by_instant(node: ir.Join | ir.Absence) -> str | None:
    """Why a policy that takes one of the candidates cannot do so a batch at a time."""
    if node.policy and any(isinstance(step, ir.Background) for step in node.steps):
        return "a consuming join that looks into the background"
    if node.policy and any(isinstance(step, ir.Parameters) for step in node.steps):
        return "a consuming join that is divided among queries that differ in constants only"
    return None


def is_open(node: ir.Join) -> bool:
    """Whether a variable of both sides may be unbound in one of them."""
    return not set(node.left.columns) & set(node.right.columns) <= set(node.certain)


def _unsupported_steps(steps: Iterable[ir.Step]) -> str | None:
    steps = tuple(steps)
    return _unsupported_expressions(s.expression for s in steps if isinstance(s, (ir.Condition, ir.Assign)))


def _unsupported_expressions(expressions: Iterable[alg.Expr]) -> str | None:
    return next((reason for reason in map(unsupported_expression, expressions) if reason is not None), None)


def unsupported_expression(e: alg.Expr) -> str | None:
    """Why an expression cannot be evaluated from its solution alone, without what came before."""
    looks = any(isinstance(part, alg.Exists) for part in alg.subexpressions(e))
    return "EXISTS looks back at single occurrences" if looks else None


def is_windowed(node: ir.Group) -> bool:
    """Whether this aggregation can be computed from running totals."""
    window = node.window
    if window is None or window.months or node.keys or node.background is not None:
        return False
    if node.having or node.order or node.distinct or node.limit is not None or node.offset:
        return False
    names = {call.variable for call in node.aggregates}
    if not all(isinstance(e, alg.Var) and e.name in names for _, e in node.extends):
        return False
    return all(_is_simple(call) for call in node.aggregates)


def _is_simple(call: alg.AggregateCall) -> bool:
    if call.distinct:
        return False
    counted = call.operand is None and call.name == "COUNT"
    return counted or (call.name == "SUM" and isinstance(call.operand, alg.Var))


def is_grouped(node: ir.Group) -> bool:
    """Whether this aggregation is over a sliding window of solutions, and its rows are shown as they change."""
    window = node.window
    if window is None or window.months or node.background is not None or node.leaves or NAME in node.keys:
        return False  # a query of a family only looks at its window when a solution of its own enters
    if node.order or node.distinct or node.limit is not None or node.offset:
        return False
    return all(
        call.name in ("MIN", "MAX", "SAMPLE")
        or (call.name in ("COUNT", "SUM", "AVG") and (call.operand is not None or not call.distinct))
        for call in node.aggregates
    )


def is_cumulative(node: ir.Group) -> bool:
    """Whether this aggregation is of integers over all solutions so far."""
    if node.window is not None or node.background is not None or node.leaves or NAME in node.keys:
        return False
    if node.having or node.order or node.distinct or node.limit is not None or node.offset:
        return False
    names = {call.variable for call in node.aggregates} | set(node.keys)
    renamed = all(isinstance(e, alg.Var) and e.name in names for _, e in node.extends)
    return renamed and all(call.name in ("COUNT", "SUM", "AVG") and not call.distinct for call in node.aggregates)


def aggregates_by_kernel(node: ir.Group) -> bool:
    """Whether a kernel aggregates, as long as its summands are exact."""
    return is_windowed(node) or is_grouped(node) or is_cumulative(node)
