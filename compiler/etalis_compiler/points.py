"""The elements of a run that a clock or a NOT may end: points in time.

An element with duration may have begun before a silence was over and still end later, so that it would never be certain
that a run is over.  So MAXIMAL with GAP or NOT takes the solutions of its group that are points.
"""

from __future__ import annotations

from etalis_rules import algebra as alg
from etalis_rules.relations import Op

from . import ast
from .triple_blocks import error

_AT_ONCE = frozenset({Op.AND, Op.EQUALS, Op.PAR})
"""The relations in which two points can stand."""


def of_points(child: alg.Pattern, span: ast.Span) -> alg.Pattern:
    """The solutions of a group that are points; a group that has none is an error."""
    if _lasts(child):
        raise error(
            span,
            "repeat",
            "MAXIMAL with GAP or NOT takes elements that are points, and every match of this group lasts some time",
            "repeat a single event, or leave out GAP and NOT: then a run is over at the next element that does not fit",
        )
    return alg.Within(child, alg.Bound())


def _lasts(pattern: alg.Pattern) -> bool:
    """Whether the solutions of a pattern certainly have a duration."""
    match pattern:
        case alg.Join(op) if op not in _AT_ONCE:
            return True
        case alg.Absence(_, _, right, bound) if right is not None or bound is not None:
            return True
        case alg.Union():
            return all(map(_lasts, alg.children(pattern)))
    return any(_lasts(part.pattern) for part in alg.parts(pattern) if part.role is alg.Role.SIDE and part.binds)
