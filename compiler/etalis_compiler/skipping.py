"""What SKIP may be given: a time that every solution of its group has."""

from __future__ import annotations

from etalis_rules import algebra as alg

from . import ast
from .triple_blocks import error

_TIMES = frozenset({"GETSTARTTIME", "GETENDTIME"})


def check_skip(skip: alg.Skip, span: ast.Span) -> None:
    """Refuse an expression that may have no value, and one that reads more than its solution."""
    if skip.after is None:
        return
    if alg.has_exists(skip.after) or alg.operators(skip.after) & alg.DRAWN:
        raise error(
            span,
            "skip",
            "the time of SKIP is computed with an EXISTS or a drawn value",
            "write a time of the match, such as getENDTIME(), or a variable bound to one inside the group",
        )
    unsure = sorted(alg.variables(skip.after) - _bound_times(skip.child))
    if unsure:
        raise error(
            span,
            "skip",
            f"?{unsure[0]} may be unbound, and then SKIP would not know where to go on",
            f"bind it in every solution of the group, as {{ … BIND (getSTARTTIME() AS ?{unsure[0]}) }} does",
        )


def _bound_times(pattern: alg.Pattern) -> frozenset[str]:
    """The variables that every solution binds, those bound to its times included: all of them have a time here."""
    below = [part for part in alg.parts(pattern) if part.role in (alg.Role.SIDE, alg.Role.MEMBER)]
    inside = [_bound_times(part.pattern) for part in below]
    sides = [names for part, names in zip(below, inside, strict=True) if part.role is alg.Role.SIDE and part.binds]
    match pattern:
        case alg.Union():
            return frozenset.intersection(*sides)
        case alg.SubSelect(select) if not select.grouped:
            return alg.certain(pattern) | (inside[0] & frozenset(select.variables))
        case alg.Extend(_, variable, alg.Apply(op)) if op in _TIMES:
            sides.append(frozenset((variable,)))
    sides.append(frozenset(name for name, source in alg.copied(pattern).items() if source in inside[0]))
    return alg.certain(pattern).union(*sides)
