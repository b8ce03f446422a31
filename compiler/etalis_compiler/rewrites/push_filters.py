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
from etalis_rules.relations import Op


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
        case alg.BGP() | alg.PathPattern() | alg.GraphNames() | alg.Table() | alg.Known() | alg.Record():
            return pattern
        case alg.Within(child, _) | alg.Block(child):
            return replace(pattern, child=push_filters(child))
        case alg.Extend(child, _, expression):
            return replace(pattern, child=push_filters(child), expression=_inside(expression))
        case alg.SubSelect(select):
            return alg.SubSelect(push_select(select))
        case alg.Outer():
            return _push_condition(pattern)
        case alg.Absence(left, absent, right):
            deeper = None if right is None else push_filters(right)
            return replace(pattern, left=push_filters(left), absent=push_filters(absent), right=deeper)
        case alg.Runs(child, absent=absent):
            deeper = None if absent is None else push_filters(absent)
            return replace(pattern, child=push_filters(child), absent=deeper)
        case _:
            return replace(pattern, left=push_filters(pattern.left), right=push_filters(pattern.right))


def push_select(select: alg.Select) -> alg.Select:
    """``push_filters`` under a SELECT."""
    return replace(
        select,
        pattern=push_filters(select.pattern),
        extends=tuple((v, _inside(e)) for v, e in select.extends),
        having=tuple(map(_inside, select.having)),
    )


def _push_condition(pattern: alg.Outer) -> alg.Pattern:
    """A conjunct of F that reads only the optional side keeps out solutions that could never match."""
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
    match e:
        case alg.Exists(inner):
            return alg.Exists(push_filters(inner))
        case alg.Apply(op, args) if args:
            return alg.Apply(op, tuple(map(_inside, args)))
    return e


def _filter(child: alg.Pattern, conditions: tuple[alg.Expr, ...]) -> alg.Pattern:
    if not conditions:
        return child
    if isinstance(child, alg.Filter):
        return alg.Filter(child.child, child.conditions + conditions)
    return alg.Filter(child, conditions)


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
        case alg.Join(Op.NEXT, left, _) | alg.Absence(left, _, None):
            # A filter on the whole says nothing about what is next, or what must be absent.
            if not _binds(left, needed):
                return None
            return replace(pattern, left=_place_or_filter(condition, tells_unbound, left))
        case alg.Join() | alg.Absence():
            left, right = pattern.left, pattern.right
            assert right is not None
            in_left, in_right = _binds(left, needed), _binds(right, needed)
            if not in_left and not in_right:
                return None
            if in_left:
                left = _place_or_filter(condition, tells_unbound, left)
            if in_right:
                right = _place_or_filter(condition, tells_unbound, right)
            return replace(pattern, left=left, right=right)
        case alg.Outer(_, mandatory):
            if tells_unbound or not _binds(mandatory, needed):
                return None
            return replace(pattern, mandatory=_place_or_filter(condition, tells_unbound, mandatory))
        case alg.Minus(left):
            if tells_unbound or not _binds(left, needed):
                return None
            return replace(pattern, left=_place_or_filter(condition, tells_unbound, left))
        case alg.Union(left, right) if _binds(left, needed) and _binds(right, needed):
            return alg.Union(
                _place_or_filter(condition, tells_unbound, left), _place_or_filter(condition, tells_unbound, right)
            )
    return None


def _binds(pattern: alg.Pattern, needed: frozenset[str]) -> bool:
    """Whether every solution binds these variables; a BIND may fail, whatever its expression."""
    return bool(needed) and needed <= alg.certain(pattern)


def _place_or_filter(condition: alg.Expr, tells_unbound: bool, pattern: alg.Pattern) -> alg.Pattern:
    placed = _place(condition, tells_unbound, pattern)
    return _filter(pattern, (condition,)) if placed is None else placed
