"""``{ START }``: the beginning of the stream, before every event.

It may stand at the left of SEQ, NEXT, SEQ NOT and SEQ OPTIONAL, also as a branch of a UNION.  Nothing else can be said
of it: no event is before it, or at its time.

    { { START } UNION {A} } NEXT {B}   ↦   { { START } NEXT {B} } UNION { {A} NEXT {B} }
"""

from __future__ import annotations

from etalis_rules import algebra as alg

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


def refuse_start(span: ast.Span) -> None:
    """START where it says nothing."""
    raise error(
        span,
        "start",
        "{ START } stands at the left of SEQ, NEXT, SEQ NOT or SEQ OPTIONAL, alone or as a branch of a UNION: it comes "
        "before every event",
        "what has not come since the start is { START } SEQ NOT { … } WITHIN 10 s, the first one { START } NEXT { … }, "
        "the first since the start or an event { { START } UNION {A} } NEXT {B}",
    )


def check_deadline(left: alg.Pattern, bound: alg.Bound, span: ast.Span) -> None:
    """Refuse a deadline after START whose length depends on the calendar."""
    if alg.is_start(left) and bound.months:
        raise error(
            span, "start", "months and years differ in length, and START is the instant before the first", "write days"
        )
