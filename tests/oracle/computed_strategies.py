"""Aggregates of what is computed for each solution, and HAVING with any condition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from etalis_compiler import ast
from hypothesis import strategies as st

from .drawing import VARIABLES, Draw, Pen
from .strategies import PLAIN, Case, aggregate_queries, document, streams

ASKING = replace(PLAIN, exists=True)


@st.composite
def computed_queries(draw: Draw[Any]) -> ast.Query:
    query: ast.Query = draw(aggregate_queries(ASKING))
    pen = Pen(draw, ASKING, patterns=2)
    assert isinstance(query.form, ast.Select)
    shown = tuple(_computed(pen, projection) for projection in query.form.projections)
    having = (pen.condition(1),) if pen.chance(3) else query.having
    return replace(query, form=replace(query.form, projections=shown), having=having)


def _computed(pen: Pen, projection: ast.Projection) -> ast.Projection:
    call = projection.expression
    if not isinstance(call, ast.Aggregate) or call.operand is None:
        return projection
    return replace(projection, expression=replace(call, operand=_argument(pen)))


def _argument(pen: Pen) -> ast.Expression:
    variable = ast.Var(pen.pick(VARIABLES))
    match pen.pick(("variable", "if", "if", "plus", "time")):
        case "if":
            return ast.Call("IF", (pen.condition(1), variable, pen.value()))
        case "plus":
            return ast.Binary("+", variable, pen.value())
        case "time":
            return ast.Call("SECONDS", (ast.Call(pen.pick(("NOW", "GETSTARTTIME", "GETENDTIME")), ()),))
    return variable


def computed_aggregates() -> st.SearchStrategy[Case]:
    return st.builds(Case, computed_queries().map(document), streams())
