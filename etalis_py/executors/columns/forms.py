"""Which nodes and outputs have a columnar form, and why the others have none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.values.functions import find_function

JOINS = frozenset(("and", "seq", "equals", "meets", "overlaps", "starts", "during", "finishes", "par", "next"))
"""The joins that have a columnar form (``joins.RELATIONS``, which loads the kernels)."""


def unsupported_node(node: ir.Node, late: frozenset[str], name: str) -> str | None:
    match node:
        case ir.Leaf():
            return None
        case ir.Map(steps=steps):
            return _unsupported_steps(steps)
        case ir.Union():
            return None
        case ir.Join(op=op) if op not in JOINS:
            return f"there is no columnar form of {op.upper()} yet"
        case ir.Join(op="next", policy=policy) if policy or is_open(node):
            return "there is no columnar form of a NEXT that consumes, or whose sides may leave a variable unbound, yet"
        case ir.Join(op="par", policy=policy) if policy:
            return "there is no columnar form of a PAR that consumes yet"
        case ir.Join(steps=steps):
            if name in late:
                return "a join reads what an aggregate reports, which may have ended before"
            return _unsupported_picking(node) or _unsupported_steps(steps)
        case ir.Absence():
            return _unsupported_picking(node) or _unsupported_steps(node.steps)
        case ir.Outer():
            if name in late:
                return "an optional part reads what an aggregate reports, which may have ended before"
            return _unsupported_steps((*node.condition, *node.steps))
        case ir.Group(leaves=leaves):
            if leaves:
                return "EXISTS looks back at single occurrences"
            expressions = (*node.having, *(e for _, e in node.extends), *(k.expression for k in node.order))
            operands = (call.operand for call in node.aggregates if call.operand is not None)
            return _unsupported_expressions((*expressions, *operands))
        case ir.Slice(order=order):
            return _unsupported_expressions(key.expression for key in order)
        case ir.Run():
            if any(map(alg.has_exists, node.condition)):
                return "EXISTS looks back at single occurrences"
            return None
        case ir.Closure():
            return None
    return f"there is no columnar form of {type(node).__name__} yet"


def _unsupported_picking(node: ir.Join | ir.Absence) -> str | None:
    """Why one of the candidates cannot be taken in columns, where a policy does that."""
    if node.policy and any(isinstance(step, ir.Background) for step in node.steps):
        return "a consuming join looks into the background"
    if node.policy and any(isinstance(step, ir.Parameters) for step in node.steps):
        return "a consuming join is divided among queries that differ in constants only"
    return None


def is_open(node: ir.Join) -> bool:
    """May a variable of both sides be unbound in one?"""
    return not set(node.left.columns) & set(node.right.columns) <= set(node.certain)


def _unsupported_steps(steps: Iterable[ir.Step]) -> str | None:
    steps = tuple(steps)
    return _unsupported_expressions(s.expression for s in steps if isinstance(s, (ir.Condition, ir.Assign)))


def _unsupported_expressions(expressions: Iterable[alg.Expr]) -> str | None:
    return next((reason for reason in map(unsupported_expression, expressions) if reason is not None), None)


def unsupported_expression(e: alg.Expr) -> str | None:
    """Why an expression cannot be evaluated apart from its solution's history and identity."""
    for part in alg.subexpressions(e):
        if isinstance(part, alg.Exists):
            return "EXISTS looks back at single occurrences"
        if isinstance(part, alg.Apply) and _is_volatile(part):
            return f"{part.op} is seeded by its solution"
    return None


def _is_volatile(e: alg.Apply) -> bool:
    if not e.op[:1].isalpha() or e.op in ("IN", "BOUND", "neg", "pos"):
        return False
    try:
        return find_function(e.op, 1 if e.op in ("IRI", "URI") else len(e.args)).volatile
    except LookupError:
        return False


def unsupported_output(output: ir.Output, feeding: bool) -> str | None:
    if feeding and _makes_nodes(output):
        return "it makes blank nodes that other rules read"
    return None


def _makes_nodes(output: ir.Output) -> bool:
    columns = () if output.source is None else output.source.columns
    positions: list[Any] = [p for t in output.template for p in (t.subject, t.predicate, t.object)]
    return any(isinstance(p, alg.Var) and p.name.startswith("_:") and p.name not in columns for p in positions)
