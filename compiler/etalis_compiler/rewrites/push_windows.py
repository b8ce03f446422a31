"""Push upper bounds of the duration into the pattern ([EP] §5, "Memory management and time windows").

Filter(A SEQ B, getDURATION() < D): the parts of A and B lie inside the solution's interval, so every inner-joined part
below lasts less than D too.  The bound becomes a ``Within`` at each of these nodes: it is checked at every step, and
determines when a goal can be dropped.

The bound goes into the mandatory side of an outer join.  Of the optional side:

* OPTIONAL, OPTIONALSEQ: it stays out.  A partner p of a solution m may reach so far back that hull(m, p) is too long
  while m itself is not: then m must still find p, or it would be reported as alone.
* EQUALSOPTIONAL with a mandatory side that certainly holds an occurrence: it goes in.  Let every solution that is kept
  above last at most D.  Both halves of the operator have the interval of their mandatory solution m (a partner's is the
  same), so only the m of at most D count.  A timed partner of such an m has its interval, hence lasts at most D too; a
  timeless one satisfies every bound.  So the solutions that D removes from the optional side are partners of no m that
  counts: neither half changes for those that do.  (A timeless m equals everything: it would lose a partner that is too
  long, and be reported as alone.)  Under a consuming policy the bounds below are part of the meaning, so it stays out.

{A} NOT {N}, in which each A lasts at most D, is bounded by D itself: an N counts only inside an A, so it may be
forgotten after D.

The absent side of NOT lies within a solution, or before its deadline, where it rules something out.  So it lasts no
longer than either, and is bounded if it is made of several occurrences; what lasts as long as one event costs no less
with a bound.

It does not go into other parts that decide about solutions: the right side of a nearest relation, the elements of a run
and what must be absent between them.  A solution that lasts too long is still the next one, or still ends the run.

A bound in the condition F itself bounds the optional side of all three.

A bound that is a number of microseconds replaces its filter when the group certainly holds an occurrence (the
duration of a timeless solution is an error); a bound by calendar months is checked at its own node as it was written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from etalis_rules import algebra as alg
from etalis_rules.durations import LONGEST, parse_duration
from etalis_rules.relations import SAME_INTERVAL
from etalis_rules.terms import XSD, is_literal, parts

from ..knowledge import KnowledgeSummary

_DURATIONS = frozenset(XSD + n for n in ("duration", "dayTimeDuration", "yearMonthDuration"))
_FLIPPED = {">": "<", ">=": "<="}


def upper_bound(condition: alg.Expr) -> alg.Bound | None:
    """The bound b such that the condition implies end − start ≤ b, if it is a comparison of getDURATION()."""
    match condition:
        case alg.Apply("<" | "<=" | "=" as op, (alg.Apply("GETDURATION", ()), alg.Const(term))):
            return _bound(op, term)
        case alg.Apply(">" | ">=" as op, (alg.Const(term), alg.Apply("GETDURATION", ()))):
            return _bound(_FLIPPED[op], term)
    return None


def _bound(op: str, term: str) -> alg.Bound | None:
    if not is_literal(term):
        return None
    lexical, datatype, _ = parts(term)
    parsed = parse_duration(lexical) if datatype in _DURATIONS else None
    if parsed is None or parsed[0] < 0:
        return None
    months, micros = parsed
    # A strict bound of whole microseconds is the next smaller closed one; with months it depends on the start.
    bound = alg.Bound(micros=micros - 1 if op == "<" and not months else micros, months=months)
    return bound if bound.longest <= LONGEST else None  # a longer one bounds nothing, and does not fit into 64 bits


def tighter(a: alg.Bound | None, b: alg.Bound | None) -> alg.Bound | None:
    """The smaller of two bounds, or None where months and microseconds cannot be compared."""
    if a is None or b is None:
        return a or b
    if a.months == b.months:
        return a if a.micros <= b.micros else b
    return a if a.longest <= b.longest else b


def certainly_timed(pattern: alg.Pattern, knowledge: KnowledgeSummary) -> bool:
    """Whether every solution has an occurrence, given the triples that the background may hold."""
    match pattern:
        case alg.BGP(triples, stream, graph):
            # The patterns of a stream never look into the background.
            return graph is None and any(stream or not knowledge.may_hold(triple) for triple in triples)
        case alg.GraphNames():
            return False
        case alg.Record():
            return True  # it uses an occurrence of its event
        case alg.Union(left, right):
            return certainly_timed(left, knowledge) and certainly_timed(right, knowledge)
    if alg.only_forward(pattern):
        return True  # sides that may be timeless have been refused
    sides = (part.pattern for part in alg.parts(pattern) if part.role is alg.Role.SIDE)
    return any(certainly_timed(side, knowledge) for side in sides)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The context of a whole query: what its triple patterns may match in the background, and its policy."""

    knowledge: KnowledgeSummary
    consuming: bool


def push_windows(pattern: alg.Pattern, around: Surroundings) -> alg.Pattern:
    """The pattern with every upper bound of a duration at each node that it limits."""
    return _push(pattern, None, around)


def _push(pattern: alg.Pattern, bound: alg.Bound | None, around: Surroundings) -> alg.Pattern:
    match pattern:
        case alg.Filter(child, conditions):
            kept = []
            for condition in conditions:
                upper = upper_bound(condition)
                bound = tighter(bound, upper)
                if (
                    upper is None
                    or upper.months
                    or not certainly_timed(child, around.knowledge)
                    or _is_equality(condition)
                ):
                    kept.append(_inside(condition, around))
            child = _push(child, bound, around)
            return alg.filtered(child, tuple(kept))
        case alg.Within(child, own):
            pushed = _push(child, tighter(bound, own), around)
            # A bound in months is not comparable with one in microseconds: both stay.
            return alg.Within(pushed, own) if own.months else pushed
        case alg.GraphNames() | alg.Table():
            return pattern
        case alg.Extend(child, _, expression):
            return replace(pattern, child=_push(child, bound, around), expression=_inside(expression, around))
        case alg.SubSelect(select):
            return _within(alg.SubSelect(push_select_windows(select, around)), bound)
        case alg.Union() | alg.Minus():
            return _pushed_below(pattern, bound, around)
        case alg.Outer(op, mandatory, optional, condition):
            inner = condition_bound(condition)
            if op in SAME_INTERVAL and not around.consuming:
                inner = tighter(inner, bound if certainly_timed(mandatory, around.knowledge) else None)
            sides = _push(mandatory, bound, around), _push(optional, inner, around)
            return _within(alg.Outer(op, *sides, tuple(_inside(c, around) for c in condition)), bound)
    whole = _thinned_out(pattern)
    limit = bound if whole is None else tighter(bound, _longest(whole))
    pushed = _pushed_below(pattern, bound, around)
    if isinstance(pattern, alg.Absence) and isinstance(pushed, alg.Absence) and _is_joined(pattern.absent):
        pushed = replace(pushed, absent=_push(pattern.absent, tighter(limit, pattern.bound), around))
    return _within(pushed, limit)


def _is_joined(pattern: alg.Pattern) -> bool:
    """Whether its solutions may be made of several occurrences."""
    match pattern:
        case alg.BGP(triples):
            return len(triples) > 1
    below = alg.parts(pattern)
    return len(below) > 1 or any(_is_joined(part.pattern) for part in below)


def _thinned_out(pattern: alg.Pattern) -> alg.Pattern | None:
    """The only part that solutions are made of, if another one rules out some of them while they last, as in NOT."""
    match alg.parts(pattern):
        case (alg.Part(last=True) as part, alg.Part(role=alg.Role.ABSENT)):
            return part.pattern
    return None


def _longest(pattern: alg.Pattern) -> alg.Bound | None:
    """What bounds the length of each solution of the pattern, as it is written."""
    match pattern:
        case alg.Within(child, own):
            return tighter(own, _longest(child))
        case alg.Filter(child, conditions):
            return tighter(condition_bound(conditions), _longest(child))
        case alg.Extend(child) | alg.Skip(child):
            return _longest(child)
    whole = _thinned_out(pattern)
    return None if whole is None else _longest(whole)


def _pushed_below(pattern: alg.Pattern, bound: alg.Bound | None, around: Surroundings) -> alg.Pattern:
    """The pattern with the bound in the parts that lie inside it, except those that decide about others."""
    below = (_push(part.pattern, None if part.decides else bound, around) for part in alg.parts(pattern))
    return alg.with_children(pattern, below)


def push_select_windows(select: alg.Select, around: Surroundings) -> alg.Select:
    """``push_windows`` under a SELECT."""
    return replace(
        select,
        pattern=push_windows(select.pattern, around),
        extends=tuple((v, _inside(e, around)) for v, e in select.extends),
        having=tuple(_inside(e, around) for e in select.having),
    )


def _is_equality(condition: alg.Expr) -> bool:
    return isinstance(condition, alg.Apply) and condition.op == "="


def condition_bound(condition: tuple[alg.Expr, ...]) -> alg.Bound | None:
    """The tightest bound that a conjunction puts on the duration."""
    bound = None
    for part in condition:
        bound = tighter(bound, upper_bound(part))
    return bound


def _within(pattern: alg.Pattern, bound: alg.Bound | None) -> alg.Pattern:
    return pattern if bound is None else alg.Within(pattern, bound)


def _inside(e: alg.Expr, around: Surroundings) -> alg.Expr:
    return alg.with_exists(e, lambda inner: push_windows(inner, around))
