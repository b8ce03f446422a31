"""Which nodes have a columnar form, and why the others have none or go from instant to instant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.records import columns_of, table_columns_of
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
        case ir.Leaf() | ir.Record() | ir.Union() | ir.Recall() | ir.Closure():
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
        case ir.Record():
            if columns_of(node) is not None:
                return None
            if table_columns_of(node) is not None:
                return "an EVENT with OPTIONAL, unless its events are the rows of a table"
            return "an EVENT of more than triple patterns about one subject"
        case ir.Recall():
            return None  # looks back
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
