"""Push each filter conjunct to the lowest node at which all its variables are certainly bound.

Filter(A SEQ B, p1 ∧ p2) = (Filter(A, p1) SEQ B) with p2 kept, if p1 reads only A's variables.

A conjunct that reads the interval stays with its group (``push_windows`` takes upper bounds of the duration further
down).  BOUND and COALESCE, EXISTS and volatile functions never go below an outer join, because they can distinguish a
missing variable from a bound one, or would be evaluated a different number of times.

>>> from etalis_rules.algebra import *
>>> from etalis_rules.relations import Op
>>> a = BGP((Triple(Var("c"), Const("<p>"), Var("x")),)); b = BGP((Triple(Var("c"), Const("<p>"), Var("y")),))
>>> low = Apply(">", (Var("x"), Const('"1"')))
>>> push_filters(Filter(Join(Op.SEQ, a, b), (low,))) == Join(Op.SEQ, Filter(a, (low,)), b)
True
"""

from __future__ import annotations

from dataclasses import replace

from etalis_rules import algebra as alg


def push_filters(pattern: alg.Pattern) -> alg.Pattern:
    """The pattern with every filter as deep as possible."""
    match pattern:
        case alg.Filter(child, conditions):
            child = push_filters(child)
            kept = []
            for condition in map(_inside, conditions):
                sunk = _sink(condition, child)
                if sunk is None:
                    kept.append(condition)
                else:
                    child = sunk
            return _filter(child, tuple(kept))
        case alg.GraphNames() | alg.Known():
            return pattern
        case alg.Extend(child, _, expression):
            return replace(pattern, child=push_filters(child), expression=_inside(expression))
        case alg.SubSelect(select):
            return alg.SubSelect(push_select(select))
        case alg.Outer():
            return _push_condition(pattern)
    return alg.with_children(pattern, map(push_filters, alg.children(pattern)))


def push_select(select: alg.Select) -> alg.Select:
    """``push_filters`` under a SELECT."""
    return replace(
        select,
        pattern=push_filters(select.pattern),
        extends=tuple((v, _inside(e)) for v, e in select.extends),
        having=tuple(map(_inside, select.having)),
    )


def _push_condition(pattern: alg.Outer) -> alg.Pattern:
    """Push conjuncts of F that read only the optional side into it: they keep out solutions that could never match."""
    mandatory, optional = push_filters(pattern.mandatory), push_filters(pattern.optional)
    kept = []
    for part in map(_inside, pattern.condition):
        names = alg.operators(part)
        if names & (alg.INTERVAL | alg.VOLATILE | alg.TELLS_UNBOUND | {"EXISTS"}) or not _binds(
            optional, alg.variables(part)
        ):
            kept.append(part)
        else:
            optional = _place_or_filter(part, False, optional)
    return alg.Outer(pattern.op, mandatory, optional, tuple(kept))


def _inside(e: alg.Expr) -> alg.Expr:
    """The same expression with the patterns of its EXISTS rewritten too."""
    return alg.with_exists(e, push_filters)


def _filter(child: alg.Pattern, conditions: tuple[alg.Expr, ...]) -> alg.Pattern:
    inner, own = alg.unfiltered(child)
    return alg.filtered(inner, own + conditions)


def _sink(condition: alg.Expr, pattern: alg.Pattern) -> alg.Pattern | None:
    """The pattern with the condition inside, or None if it has to stay above."""
    names = alg.operators(condition)
    if names & (alg.INTERVAL | alg.VOLATILE | {"EXISTS"}) or not alg.variables(condition):
        return None
    return _place(condition, names & alg.TELLS_UNBOUND != frozenset(), pattern)


def _place(condition: alg.Expr, tells_unbound: bool, pattern: alg.Pattern) -> alg.Pattern | None:
    needed = alg.variables(condition)
    match pattern:
        case alg.BGP() | alg.PathPattern() | alg.Block() | alg.Record() if needed <= alg.certain(pattern):
            return alg.Filter(pattern, (condition,))
        case alg.Filter(child, conditions) if isinstance(child, alg.BGP | alg.PathPattern | alg.Block | alg.Record):
            return alg.Filter(child, (condition, *conditions)) if needed <= alg.certain(child) else None
        case alg.Filter(child, _) | alg.Within(child, _):
            below = _place(condition, tells_unbound, child)
            return None if below is None else replace(pattern, child=below)
        case alg.Extend(child, variable, _):
            # An EXISTS may read a variable that the child does not bind; it is bound outside.
            if variable in needed or not _binds(child, needed):
                return None
            return replace(pattern, child=_place_or_filter(condition, tells_unbound, child))
        case alg.Union(left, right) if not (_binds(left, needed) and _binds(right, needed)):
            return None
        case alg.BGP() | alg.PathPattern() | alg.Block() | alg.Record() | alg.Known() | alg.GraphNames():
            return None
        case alg.SubSelect():
            return None
    return _place_in_sides(condition, tells_unbound, pattern)


def _place_in_sides(condition: alg.Expr, tells_unbound: bool, pattern: alg.Pattern) -> alg.Pattern | None:
    """The pattern with the condition in each side that binds its variables, if any.

    It does not go into a side that is next, optional or absent, because a filter on the whole does not restrict those.
    """
    below = alg.parts(pattern)
    if tells_unbound and any(part.role is alg.Role.OPTIONAL for part in below):
        return None
    needed = alg.variables(condition)
    taking = [p.role is alg.Role.SIDE and not p.decides and _binds(p.pattern, needed) for p in below]
    if not any(taking):
        return None
    placed = (
        _place_or_filter(condition, tells_unbound, part.pattern) if takes else part.pattern
        for part, takes in zip(below, taking, strict=True)
    )
    return alg.with_children(pattern, placed)


def _binds(pattern: alg.Pattern, needed: frozenset[str]) -> bool:
    """Whether every solution binds these variables; a BIND may fail, whatever its expression."""
    return bool(needed) and needed <= alg.certain(pattern)


def _place_or_filter(condition: alg.Expr, tells_unbound: bool, pattern: alg.Pattern) -> alg.Pattern:
    placed = _place(condition, tells_unbound, pattern)
    return _filter(pattern, (condition,)) if placed is None else placed
