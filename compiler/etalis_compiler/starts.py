"""``{ START }``: the beginning of the stream, before every event.

At the left of SEQ, NEXT, SEQ NOT and SEQ OPTIONAL, also as a branch of a UNION, it is what all events come after.  By
itself it is the time at which the stream starts:

    { { START } UNION {A} } NEXT {B}   ↦   { { START } NEXT {B} } UNION { {A} NEXT {B} }
    { START }                          ↦   { START } SEQ NOT { nothing } WITHIN 0 s

No other operator may relate it in time: no event is before it, or at its time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules.relations import APART, relation_of
from etalis_rules.terms import FALSE

from . import ast
from .triple_blocks import error


def beginnings(pattern: ast.Pattern) -> tuple[ast.Pattern, ...]:
    """The left side of a sequence; of a UNION with START the branches, each of which begins a sequence of its own."""
    inner = ast.alone(pattern)
    if isinstance(inner, ast.Combined) and inner.operator is ast.Operator.UNION:
        branches = (*beginnings(inner.left), *beginnings(inner.right))
        if any(map(ast.is_start, branches)):
            return branches
    return (pattern,)


def by_itself() -> alg.Absence:
    """START where nothing comes after it: a point, the time at which the stream starts."""
    return alg.Absence(alg.Start(), alg.Start(), None, alg.Bound(0), (alg.Const(FALSE),))


def check_starts(query: ast.Query) -> None:
    """Refuse START where it would be related in time otherwise than as what comes before all events."""
    if any(isinstance(node, ast.Start) for node in ast.walk(query)):
        _check(query, related=False)


def _check(node: Any, *, related: bool) -> None:
    """``related``: an operator around the node compares times, or looks into the past of what is in it."""
    match node:
        case ast.Start():
            if related:
                refuse_start(node.span)
        case ast.Combined(ast.Operator.UNION | ast.Operator.AND, left, right):
            _check_all((left, right), related=related)
        case ast.Combined(operator, left) if relation_of(operator.value) in APART:
            _check_sequence(left, (node.right,))
        case ast.SeqNot(left, absent, right):
            _check_sequence(left, (absent, right))
        case ast.SeqOptional(left, optionals, right):
            _check_sequence(left, (*optionals, right))
        case ast.Group(elements):
            past = [isinstance(e, ast.Optional | ast.Minus) or _has_exists(e) for e in elements]
            for element, looks_back in zip(elements, past, strict=True):
                _check(element, related=not isinstance(element, ast.Minus) and (related or looks_back or any(past)))
        case ast.Minus(group) | ast.Exists(group):
            _check(group, related=False)
        case ast.Within() | ast.StreamGroup() | ast.Query() | tuple():
            _check_all(_parts(node), related=related)
        case _:
            _check_all(_parts(node), related=True)


def _check_sequence(left: ast.Pattern, others: tuple[ast.Pattern | None, ...]) -> None:
    _check_all([side for side in beginnings(left) if not ast.is_start(side)], related=True)
    _check_all(others, related=True)


def _check_all(nodes: Iterable[Any], *, related: bool) -> None:
    for node in nodes:
        _check(node, related=related)


def _parts(node: Any) -> Iterable[Any]:
    if isinstance(node, tuple):
        return node
    return [getattr(node, f.name) for f in fields(node)] if is_dataclass(node) else ()


def _has_exists(element: ast.Element) -> bool:
    return isinstance(element, ast.Filter | ast.Bind) and any(isinstance(n, ast.Exists) for n in ast.walk(element))


def refuse_start(span: ast.Span) -> None:
    """START where it says nothing."""
    raise error(
        span,
        "start",
        "{ START } stands by itself, or at the left of SEQ, NEXT, SEQ NOT or SEQ OPTIONAL: it comes before every event "
        "and has no other place in time",
        "what has not come since the start is { START } SEQ NOT { … } WITHIN 10 s, the first one { START } NEXT { … }, "
        "the first since the start or an event { { START } UNION {A} } NEXT {B}",
    )


def check_deadline(left: alg.Pattern, bound: alg.Bound, span: ast.Span) -> None:
    """Refuse a deadline after START whose length depends on the calendar."""
    if alg.is_start(left) and bound.months:
        raise error(
            span, "start", "months and years differ in length, and START is the instant before the first", "write days"
        )
