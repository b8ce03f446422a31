"""``{ START }``: the beginning of the stream, before every event.

It may stand at the left of SEQ, NEXT and SEQ NOT.  Nothing else can be said of it: no event is before it, or at its
time.
"""

from __future__ import annotations

from etalis_rules import algebra as alg

from . import ast
from .triple_blocks import error


def refuse_start(span: ast.Span) -> None:
    """START where it says nothing."""
    raise error(
        span,
        "start",
        "{ START } stands alone at the left of SEQ, NEXT or SEQ NOT: it comes before every event",
        "what has not come since the start is { START } SEQ NOT { … } WITHIN 10 s, the first one { START } NEXT { … }, "
        "and since the start or an event { { START } NEXT {B} } UNION { {A} NEXT {B} }",
    )


def check_deadline(left: alg.Pattern, bound: alg.Bound, span: ast.Span) -> None:
    """Refuse a deadline after START whose length depends on the calendar."""
    if alg.is_start(left) and bound.months:
        raise error(
            span, "start", "months and years differ in length, and START is the instant before the first", "write days"
        )
