"""Filters of a group that read something outside it: in EXISTS, and beside an operator (``ast.seen_by_filters``).

They are evaluated outside, where the solutions of both sides are known.  getSTARTTIME(), getENDTIME() and getDURATION()
in them are those of the group, so the group passes its time on in variables.

    {?c :p ?x} NOT {?c :p ?y FILTER (?y > ?x && ?y > 3)}   ↦   {?c :p ?x} NOT {?c :p ?y FILTER (?y > 3)} if ?y > ?x
"""

from __future__ import annotations

from etalis_rules import algebra as alg

from . import ast
from .triple_blocks import FreshNames, error

Conditions = tuple[alg.Expr, ...]


def divided(
    group: alg.Pattern,
    filters: Conditions,
    left: alg.Pattern,
    names: FreshNames,
    span: ast.Span,
    *,
    in_event: bool = False,
    hidden: alg.Var | alg.Const | None = None,
) -> tuple[alg.Pattern, Conditions]:
    """The group with the filters that read nothing of the left side, and those that do.

    In EVENT ?g a filter that reads the ``hidden`` variable ?g stays in the group, which does not see it, and an EXISTS
    looks into the event, which is not at hand outside.  Where the group binds a variable in each of its solutions, a
    filter reads it there.
    """
    of_left = alg.scope(left) - alg.certain(group)
    across = tuple(c for c in filters if of_left & alg.variables(c) and not _reads(c, hidden))
    if in_event and any(map(alg.has_exists, across)):
        raise error(
            span,
            "exists-across",
            "an EXISTS in a filter of this EVENT has a variable that the group to its left binds, too, and looks into "
            "the event alone",
            "rename the variable in the EXISTS if it is another; else write the pattern of the EXISTS into this EVENT, "
            "and compare its variables in a FILTER",
        )
    group = alg.filtered(group, tuple(c for c in filters if c not in across))
    conditions = []
    for condition in across:
        group, condition = _outside(group, condition, names, alg.INTERVAL | {"NOW"})
        conditions.append(condition)
    return group, tuple(conditions)


def passing_on_time(pattern: alg.Pattern, filters: Conditions, names: FreshNames) -> alg.Pattern:
    """The pattern under its filters, and under those of a group that is all of it."""
    inner, own = alg.unfiltered(pattern)
    if own:
        pattern = passing_on_time(inner, own, names)
    conditions = []
    for condition in filters:
        read = {alg.variable_of(part) for part in alg.subexpressions(condition)} - {""}
        if not read <= alg.scope(pattern):
            pattern, condition = _outside(pattern, condition, names, alg.INTERVAL)
        conditions.append(condition)
    return alg.filtered(pattern, tuple(conditions))


def _reads(condition: alg.Expr, hidden: alg.Var | alg.Const | None) -> bool:
    return alg.variable_of(hidden) in alg.variables(condition)


def _outside(
    pattern: alg.Pattern, condition: alg.Expr, names: FreshNames, functions: frozenset[str]
) -> tuple[alg.Pattern, alg.Expr]:
    """The pattern with the values of these functions of its time in variables, and the condition that reads them."""
    for call in alg.calls(condition, functions):
        name = names.fresh("t")
        pattern = alg.Extend(pattern, name, call)
        condition = alg.substitute(condition, call, alg.Var(name))
    return pattern, condition
