"""The substitution of SPARQL §18.6, by which EXISTS sees the solution outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from etalis_compiler import ast

from .plan import plan_query, projected


def substituted(node: Any, mu: dict[str, str]) -> Any:
    """``substitute(pattern, μ)`` of SPARQL §18.6, literally: each variable of μ becomes its term.

    What cannot hold a term keeps its variable: the targets of BIND, VALUES and projections; the solutions are then
    joined with μ.  In a sub-SELECT only the projected variables are the outer ones.
    """

    def inside(child: Any) -> Any:
        return substituted(child, mu)

    match node:
        case ast.Var(name):
            return ast.Term(mu[name]) if name in mu else node
        case ast.Values() | ast.Duration():
            return node
        case ast.Bind(expression, variable):
            return ast.Bind(inside(expression), variable)
        case ast.Projection(variable, expression):
            return ast.Projection(variable, expression and inside(expression))
        case ast.Call("BOUND", (ast.Var(name),)) if name in mu:
            return ast.Term('"true"^^<http://www.w3.org/2001/XMLSchema#boolean>')
        case ast.Query():
            return _substituted_query(node, mu)
    if isinstance(node, tuple):
        return tuple(inside(part) for part in node)
    if is_dataclass(node) and not isinstance(node, type):
        return replace(node, **{f.name: inside(getattr(node, f.name)) for f in fields(node) if f.name != "span"})
    return node


def _substituted_query(query: ast.Query, mu: dict[str, str]) -> ast.Query:
    where = plan_query(query)
    kept = {v: t for v, t in mu.items() if v in projected(query, where)}
    assert query.where
    changed: Callable[[Any], Any] = lambda part: substituted(part, kept)  # noqa: E731
    return replace(query, where=changed(query.where), having=changed(query.having), form=changed(query.form))
