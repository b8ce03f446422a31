"""What an expression calls, where that decides how it may be moved or kept."""

from __future__ import annotations

from .nodes import Apply, Exists, Expr, Pattern
from .structure import expressions, subexpressions, subpatterns

INTERVAL = frozenset({"GETDURATION", "GETSTARTTIME", "GETENDTIME"})
"""They read the interval of the group they stand in."""

DRAWN = frozenset({"RAND", "UUID", "STRUUID", "BNODE"})
"""They draw something new at every call."""

VOLATILE = DRAWN | {"NOW"}
"""They may answer differently the next time."""

TELLS_UNBOUND = frozenset({"BOUND", "COALESCE"})
"""They tell a variable that is not bound yet from one that is."""


def is_function_iri(op: str) -> bool:
    """Does the ``op`` of an ``Apply`` name a function by its IRI?  (``<`` and ``<=`` do not.)"""
    return op[:1] == "<" and op[-1:] == ">"


def operators(e: Expr) -> frozenset[str]:
    """All operator and function names in an expression; ``EXISTS`` for an EXISTS."""
    return frozenset(
        "EXISTS" if isinstance(part, Exists) else part.op
        for part in subexpressions(e)
        if isinstance(part, (Apply, Exists))
    )


def has_exists(e: Expr) -> bool:
    """Is there an EXISTS in the expression?"""
    return any(isinstance(part, Exists) for part in subexpressions(e))


def is_volatile(pattern: Pattern) -> bool:
    """May the same pattern over the same graph answer differently the next time?"""
    return any(operators(e) & VOLATILE for part in subpatterns(pattern) for e in expressions(part))
