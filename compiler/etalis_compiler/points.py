"""The elements of a run that a clock or a NOT may end: points in time.

An element with duration may have begun before a silence was over and still end later, so that it would never be certain
that a run is over.  So MAXIMAL with GAP or NOT takes the solutions of its group that are points.
"""

from __future__ import annotations

from etalis_rules import algebra as alg

from . import ast
from .triple_blocks import error


def of_points(child: alg.Pattern, span: ast.Span) -> alg.Pattern:
    """The solutions of a group that are points; a group that has none is an error."""
    if alg.always_lasts(child):
        raise error(
            span,
            "repeat",
            "MAXIMAL with GAP or NOT takes elements that are points, and every match of this group lasts some time",
            "repeat a single event, or leave out GAP and NOT: then a run is over at the next element that does not fit",
        )
    return alg.Within(child, alg.Bound())
