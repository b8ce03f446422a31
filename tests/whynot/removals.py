"""A query without one of its conditions, on the syntax: what why-not has to name, written without its help."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from etalis_compiler import ast
from etalis_compiler.translate import expression
from etalis_compiler.triple_blocks import FreshNames, Scope
from etalis_rules import algebra as alg

FRESH = "why_not_fresh"

NEVER = ast.Group(
    (ast.Triples((ast.TriplePattern(ast.Var(FRESH + "s"), ast.Term("<urn:never>"), ast.Var(FRESH + "o")),)),)
)
RELAXED = {ast.Operator.SEQ: "order", ast.Operator.NEXT: "order", ast.Operator.EQUALS: "interval"} | {
    ast.Operator[name]: "relation" for name in ("MEETS", "OVERLAPS", "STARTS", "DURING", "FINISHES", "PAR")
}


@dataclass(frozen=True)
class Removal:
    """``kind`` of the condition taken away, and the query without it.

    ``expression`` is that of a filter; ``opened`` the variable that has another name at one of its places.
    """

    kind: str
    query: ast.Query
    expression: alg.Expr | None = None
    opened: str = ""


def removals(query: ast.Query) -> Iterator[Removal]:
    """Every query that lacks one filter, window, order, equal interval, key, constant, MINUS or NOT EXISTS."""
    assert query.where is not None
    expressions = {v.name for v in _variables(tuple(_expressions(query)))}
    for kind, where, condition in _of(query.where, query.where, expressions):
        word, _, opened = kind.partition(" ")
        yield Removal(word, replace(query, where=where), condition, opened)


Change = tuple[str, Any, alg.Expr | None]


def _of(node: Any, whole: ast.Group, expressions: set[str]) -> Iterator[Change]:
    match node:
        case ast.Group(elements):
            for i, element in enumerate(elements):
                rest = elements[:i], elements[i + 1 :]
                if isinstance(element, ast.Filter):
                    for condition, without in _conjuncts(element.condition):
                        kept = () if without is None else (ast.Filter(without),)
                        yield "filter", replace(node, elements=(*rest[0], *kept, *rest[1])), _translated(condition)
                elif isinstance(element, ast.Minus):
                    yield "minus", replace(node, elements=(*rest[0], *rest[1])), None
                elif isinstance(element, ast.Query):
                    continue
                else:
                    for kind, changed, condition in _of(element, whole, expressions):
                        yield kind, replace(node, elements=(*rest[0], changed, *rest[1])), condition
        case ast.Within(inner, _):
            yield "window", inner, None
            for kind, changed, condition in _of(inner, whole, expressions):
                yield kind, replace(node, pattern=changed), condition
        case ast.Combined(operator, left, right):
            moved = operator is ast.Operator.NEXT and _filters(right)  # outside of NEXT they would not see the left
            if operator in RELAXED and not moved:
                yield RELAXED[operator], replace(node, operator=ast.Operator.AND), None
            if operator is ast.Operator.NEXT and not moved:
                yield "absence", replace(node, operator=ast.Operator.SEQ), None
            if operator is ast.Operator.NOT:
                yield "absence", replace(node, right=NEVER), None
            sides = (("left", left), ("right", right))
            for side, part in sides[: 1 if operator is ast.Operator.NOT else 2]:
                for kind, changed, condition in _of(part, whole, expressions):
                    yield kind, replace(node, **{side: changed}), condition
        case ast.SeqNot(left, _, right, _):
            yield "absence", replace(node, absent=NEVER), None
            if right is not None:
                yield "order", ast.Combined(ast.Operator.AND, left, right), None
            for side, part in (("left", left), ("right", right)):
                if part is not None:
                    for kind, changed, condition in _of(part, whole, expressions):
                        yield kind, replace(node, **{side: changed}), condition
        case ast.SeqOptional(left, (part,), right):
            yield "absence", replace(node, optionals=(NEVER,)), None
            if right is not None:
                yield "order", ast.Combined(ast.Operator.AND, left, right), None
            elif not _filters(part):
                yield "window", ast.Combined(ast.Operator.SEQ, left, part), None
        case ast.Repeat(inner, least, _, _, condition, absent):
            if condition is not None:
                for _, without in _conjuncts(condition):
                    yield "step", replace(node, condition=without), None
            of_points = node.maximal and (absent is None) != (node.gap is None)  # and of anything without that clause
            if absent is not None and not of_points:
                yield "absence", replace(node, absent=None), None
            if node.gap is not None and not of_points:
                yield "gap", replace(node, gap=None), None
            if node.until is not None:
                yield "until", replace(node, until=None, longest=True), None
            if node.maximal:
                yield "maximal", replace(node, maximal=False), None
            if least > 1:
                yield "repeat", replace(node, least=1), None
        case ast.Triples(patterns):
            for i, pattern in enumerate(patterns):
                for kind, changed in _opened(pattern, whole, expressions):
                    yield kind, replace(node, patterns=(*patterns[:i], changed, *patterns[i + 1 :])), None


def _filters(pattern: Any) -> bool:
    return any(isinstance(node, ast.Filter) for node in ast.walk(pattern))


def _opened(pattern: ast.TriplePattern, whole: ast.Group, expressions: set[str]) -> Iterator[tuple[str, Any]]:
    for place in ("subject", "predicate", "object"):
        part = getattr(pattern, place)
        opened = replace(pattern, **{place: ast.Var(FRESH)})
        if isinstance(part, ast.Term):
            yield "term", opened
        elif isinstance(part, ast.Var) and part.name not in expressions and _count(whole, part) > 1:
            yield f"key {part.name}", opened


def _count(node: Any, variable: ast.Var) -> int:
    return sum(v == variable for v in _variables(node))


def _translated(condition: ast.Expression) -> alg.Expr:
    [translated] = alg.conjuncts(expression(condition, Scope(FreshNames())))
    return translated


def _conjuncts(condition: ast.Expression) -> Iterator[tuple[ast.Expression, ast.Expression | None]]:
    """Each conjunct, and what is left without it."""
    if isinstance(condition, ast.Binary) and condition.operator == "&&":
        for mine, other, side in (
            (condition.left, condition.right, "left"),
            (condition.right, condition.left, "right"),
        ):
            for conjunct, rest in _conjuncts(mine):
                yield conjunct, other if rest is None else replace(condition, **{side: rest})
        return
    yield condition, None


def _variables(node: Any) -> Iterator[ast.Var]:
    if isinstance(node, ast.Var):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from _variables(part)
    elif is_dataclass(node) and not isinstance(node, type):
        for field in fields(node):
            if field.name != "span":
                yield from _variables(getattr(node, field.name))


def _expressions(node: Any) -> Iterator[Any]:
    """What stands in filters, BIND, VALUES and sub-SELECTs."""
    if isinstance(node, (ast.Filter, ast.Bind, ast.Values)) or (isinstance(node, ast.Query) and node.where is None):
        yield node
        return
    if isinstance(node, tuple):
        for part in node:
            yield from _expressions(part)
    elif is_dataclass(node) and not isinstance(node, type):
        for field in fields(node):
            value = getattr(node, field.name)
            if isinstance(value, ast.Query):
                yield value
            elif field.name != "span":
                yield from _expressions(value)
