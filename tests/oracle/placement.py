"""Where the conjuncts of a filter belong in the left-deep plan (docs/semantics.md, Policies).

A consuming policy fixes the plan: *each conjunct at the lowest node where all its variables are certainly bound (never
BOUND, COALESCE, EXISTS or anything volatile below an outer join), getDURATION upper bounds at every inner-joined node
below*.  ``placed`` moves the conjuncts there; without a consuming policy it must not change any answer.
"""

from __future__ import annotations

from dataclasses import replace

from etalis_compiler import ast

from .plan import (
    Beginning,
    Condition,
    Difference,
    Extended,
    Filtered,
    InGraph,
    InStream,
    Lasting,
    Optionally,
    Outer,
    Pair,
    Plan,
    Runs,
    Skipped,
    Sub,
    Union,
    Without,
    alternatives,
    certain,
    mentioned,
    plain_walk,
    variables,
)
from .times import duration_of

Conditions = tuple[Condition, ...]
OF_THE_INTERVAL = {"GETDURATION", "GETSTARTTIME", "GETENDTIME", "NOW"}
VOLATILE = {"RAND", "UUID", "STRUUID", "BNODE"}
OF_ABSENCE = {"BOUND", "COALESCE"}


def _calls(c: Condition) -> set[str]:
    return {n.name.upper() for n in plain_walk(c) if isinstance(n, ast.Call)}


def _stays(c: Condition) -> bool:
    """Whether the conjunct depends on the node itself: on its interval, on what is seen at its end, on chance."""
    asks = any(isinstance(n, ast.Exists) for n in plain_walk(c))
    return asks or isinstance(c, Lasting) or bool(_calls(c) & (OF_THE_INTERVAL | VOLATILE))


def _may_sink(c: Condition, child: Plan, below_outer: bool = False) -> bool:
    """Whether the conjunct may be decided in this child already."""
    if _stays(c) or (below_outer and _calls(c) & OF_ABSENCE):
        return False
    names = mentioned(c)
    return bool(names) and names <= certain(child)


def _upper_bounds(conditions: Conditions) -> Conditions:
    """The conjuncts that bound the duration from above, as bounds."""
    found = []
    for c in conditions:
        if isinstance(c, Lasting):
            found.append(c)
        if isinstance(c, ast.Binary):
            call, bound, strict = c.left, c.right, c.operator == "<"
            if c.operator in (">", ">="):
                call, bound, strict = c.right, c.left, c.operator == ">"
            elif c.operator not in ("<", "<="):
                continue
            asks = isinstance(call, ast.Call) and call.name.upper() == "GETDURATION"
            if asks and isinstance(bound, ast.Term) and duration_of(bound.spelling) is not None:
                found.append(Lasting(bound.spelling[1 : bound.spelling.rindex('"')], strict))
    return tuple(found)


def placed(plan: Plan, conditions: Conditions = ()) -> Plan:
    """The plan with every conjunct of its filters, and the ``conditions`` on its solutions, where they belong."""
    bounds = _upper_bounds(conditions)
    match plan:
        case Filtered(child, when):
            return placed(child, conditions + when)
        case Pair("NEXT", left, right, when, across):
            # What stands inside B's braces decides what is a B: nothing is added to it.
            here = conditions + when
            sunk_a = tuple(c for c in here if _may_sink(c, left))
            kept = tuple(c for c in here if c not in sunk_a)
            alone, both = _of_right_alone(left, right, across)
            sides = placed(left, sunk_a + _upper_bounds(here)), placed(right, alone)
            return Pair("NEXT", *sides, kept, both)
        case Without(left, absent, None):
            sunk_a = tuple(c for c in conditions if _may_sink(c, left))
            kept = tuple(c for c in conditions if c not in sunk_a)
            absent, across = _with_its_own(left, absent, plan.across)
            plan = replace(plan, left=placed(left, sunk_a + bounds), absent=absent, across=across)
            return _filtered(plan, kept)
        case Without(left, absent, right, _, when):
            pair = placed(Pair("SEQ", left, right, when), conditions)
            assert isinstance(pair, Pair)
            absent, across = _with_its_own(left, absent, plan.across)
            return replace(plan, left=pair.left, absent=absent, right=pair.right, when=pair.when, across=across)
        case Optionally(_, (_,), right) if right is not None:
            return placed(alternatives(plan), conditions)
        case Optionally(left):
            return _filtered(replace(plan, left=placed(left)), conditions)
        case Runs(child, until=until) if until is not None:
            return _filtered(replace(plan, child=placed(child), until=placed(until)), conditions)
        case Runs(child) | Skipped(child):
            return _filtered(replace(plan, child=placed(child)), conditions)
        case Pair(operator, left, right, when):
            here = conditions + when
            sunk = [tuple(c for c in here if _may_sink(c, side)) for side in (left, right)]
            kept = tuple(c for c in here if not any(c in s for s in sunk))
            sides = [placed(side, s + _upper_bounds(here)) for side, s in zip((left, right), sunk, strict=True)]
            return Pair(operator, sides[0], sides[1], kept)
        case Outer(operator, mandatory, optional, when):
            sunk_m = tuple(c for c in conditions if _may_sink(c, mandatory, below_outer=True))
            sunk_o = tuple(c for c in when if _may_sink(c, optional, below_outer=True))
            outer = Outer(
                operator,
                placed(mandatory, sunk_m + bounds),
                placed(optional, sunk_o + _upper_bounds(when)),
                tuple(c for c in when if c not in sunk_o),
            )
            return _filtered(outer, tuple(c for c in conditions if c not in sunk_m))
        case Difference(left, right):
            sunk_l = tuple(c for c in conditions if _may_sink(c, left, below_outer=True))
            kept = tuple(c for c in conditions if c not in sunk_l)
            return _filtered(Difference(placed(left, sunk_l + bounds), right), kept)
        case Union(left, right):
            both = tuple(c for c in conditions if _may_sink(c, left) and _may_sink(c, right))
            kept = tuple(c for c in conditions if c not in both)
            return _filtered(Union(placed(left, both + bounds), placed(right, both + bounds)), kept)
        case Extended(child, variable):
            through = tuple(c for c in conditions if variable not in mentioned(c))
            kept = tuple(c for c in conditions if c not in through)
            return _filtered(replace(plan, child=placed(child, through + bounds)), kept)
        case InGraph(name, child) | InStream(name, child):
            through = tuple(c for c in conditions if not _names(c, name) and not _asks(c))
            kept = tuple(c for c in conditions if c not in through)
            return _filtered(replace(plan, child=placed(child, through + bounds)), kept)
        case Sub(query, where):
            return _filtered(Sub(query, placed(where)), conditions)
        case Beginning():
            # START is a point, which no bound on a duration excludes; under a filter it would stand by itself.
            return _filtered(plan, tuple(c for c in conditions if not isinstance(c, Lasting)))
    return _filtered(plan, conditions)


def _of_right_alone(left: Plan, right: Plan, across: Conditions) -> tuple[Conditions, Conditions]:
    """The conditions of the right group that read nothing of the left, and those that do."""
    of_left = variables(left) - certain(right)
    both = tuple(c for c in across if of_left & mentioned(c))
    return tuple(c for c in across if c not in both), both


def _with_its_own(left: Plan, absent: Plan, across: Conditions) -> tuple[Plan, Conditions]:
    """What is absent, under the conditions that are about it alone, and the others."""
    alone, both = _of_right_alone(left, absent, across)
    return _filtered(absent, alone), both


def _names(c: Condition, name: ast.Var | ast.Term) -> bool:
    return isinstance(name, ast.Var) and name.name in mentioned(c)


def _asks(c: Condition) -> bool:
    return any(isinstance(n, ast.Exists) for n in plain_walk(c))


def _filtered(plan: Plan, conditions: Conditions) -> Plan:
    return Filtered(plan, conditions) if conditions else plan
