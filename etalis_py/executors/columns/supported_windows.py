"""Decides which windowed queries can run in columns (``window_groups``), with the reason for the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from etalis_compiler.rsp import Count, Fact, Shape, Sliding, WindowPlan
from etalis_rules import algebra as alg

from etalis_py.executors.columns.window_queries import unsuited_query
from etalis_py.executors.windows.groups import incremental
from etalis_py.executors.windows.source import GENERATED_AT

MOST_CLOSINGS = 60
"""At so many closings a triple may be looked at, where rows would follow it as it enters and leaves."""
EXTREMES = {"MIN": 0, "SAMPLE": 0, "MAX": 1}
"""The aggregates that give the first value of a group in some order: 0 is ascending, 1 descending."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One triple pattern of a star, with the filters on its variables."""

    predicate: str
    object: alg.Var | alg.Const
    filters: tuple[alg.Expr, ...]


@dataclass(frozen=True, slots=True)
class Star:
    """A query pattern whose triples share one subject, with the variables that the query groups by and aggregates.

    ``key`` is the variable of GROUP BY, ``summed`` that of SUM and AVG, and ``member`` that of MIN, MAX, SAMPLE and
    COUNT(DISTINCT …); each is empty if there is none.  A member is a distinct value in a group.  ``of_event``: the
    triples of a solution are of one event, and what two events say are two solutions (``EVENT``).
    """

    subject: str
    slots: tuple[Slot, ...]
    key: str
    summed: str
    member: str
    of_event: bool

    @property
    def is_direct(self) -> bool:
        """Whether each triple is a member by itself, as it consists of the key and the value."""
        single = len(self.slots) == 1 and not self.of_event
        return single and "" not in (self.key, self.member) and self.key != self.member

    def slot_of(self, variable: str) -> int:
        """The number of the first pattern that binds the variable; 0 if it is the subject."""
        places = [i for i, slot in enumerate(self.slots) if slot.object == alg.Var(variable)]
        return places[0] if places else 0


def unsuited_steps(steps: Sequence[WindowPlan | Fact]) -> str | None:
    """The reason why these windowed queries and facts cannot run in columns; None if they can."""
    if len(steps) != 1:
        return "several queries share the stream"
    step = steps[0]
    return "facts have no columnar form" if isinstance(step, Fact) else unsuited(step)


def unsuited(plan: WindowPlan) -> str | None:
    """The reason why a windowed query cannot run in columns; None if it can."""
    if plan.form not in ("select", "ask", "construct") or plan.feeds:
        return "it describes, or its triples are a stream that others read"
    for use in plan.windows:
        counts = isinstance(use.shape, Count) and use.shape.unit != "BGP" and len(plan.windows) == 1
        if not (counts or isinstance(use.shape, Sliding)) or use.inner or not use.stream:
            return "its window does not slide over a stream by the clock, or by the events or triples that it counts"
    kinds, of_one = {s.kind for s in plan.report}, any(s.window for s in plan.report)
    if kinds not in ({"WC"}, {"WC", "NC"}) or (of_one and len(plan.windows) > 1):
        return "it is not evaluated when its window closes"
    if plan.matches or plan.times:
        return "it asks for events, or for times of triples"
    return None if isinstance(sums(plan), Star) else unsuited_at_closings(plan)


def unsuited_at_closings(plan: WindowPlan) -> str | None:
    """The reason why columns should not evaluate the query anew at each closing."""
    return unsuited_query(plan) or _better_followed(plan)


def _better_followed(plan: WindowPlan) -> str | None:
    """Why aggregates should follow their window in rows: looking at its content at each closing would cost more."""
    if incremental(plan, stored=False) is not None and any(_closings(u.shape) > MOST_CLOSINGS for u in plan.windows):
        return f"each triple would be looked at for more than {MOST_CLOSINGS} closings, and rows follow the window"
    return None


def _closings(shape: Shape) -> int:
    """How many evaluations see one item."""
    match shape:
        case Sliding(width, slide) | Count(_, width, slide):
            return width // slide
    return 1


def sums(plan: WindowPlan) -> Star | str:
    """The star whose aggregates follow the window; or the reason why a query has to look at its whole content."""
    select, shape = plan.select, plan.windows[0].shape
    if len(plan.windows) > 1 or not isinstance(shape, Sliding):
        return "it reads several windows, or one that counts"
    if plan.form != "select" or plan.r2s != "RSTREAM":
        return "only a SELECT that is reported whole follows its window"
    if shape.offset or shape.slide > shape.width:
        return "its window leaves items out, or looks back"
    if select.distinct or select.window or not select.grouped:
        return "what follows its pattern is more than GROUP BY with aggregates, HAVING, ORDER BY and LIMIT"
    found, pattern = star(select), _unfiltered(select.pattern)[0]
    streams = {plan.windows[0].name, *([""] if plan.windows[0].default else [])}
    if isinstance(found, Star) and isinstance(pattern, alg.BGP | alg.Record) and pattern.stream not in streams:
        return "its pattern is not over the window"
    return found


def star(select: alg.Select) -> Star | str:
    """The pattern of a query as a star with the variables of its aggregates; or the reason why it is not one."""
    pattern, filters = _unfiltered(select.pattern)
    of_event = False
    if isinstance(pattern, alg.Record) and pattern.graph is None:
        of_event = True
        pattern, inside = _unfiltered(pattern.pattern)
        filters += inside
    if not isinstance(pattern, alg.BGP) or not pattern.triples or pattern.graph is not None:
        return "its pattern is more than triples and filters, or EVENT with these"
    if alg.is_volatile(alg.SubSelect(select)) or any(map(alg.has_exists, (*filters, *select.having))):
        return "a filter is EXISTS, or changes while nothing comes"
    slots = _slots(pattern.triples, filters)
    if isinstance(slots, str):
        return slots
    (subject,) = {t.subject.name for t in pattern.triples if isinstance(t.subject, alg.Var)}
    there = {subject, *(slot.object.name for slot in slots if isinstance(slot.object, alg.Var))}
    return _unaggregated(select, there) or Star(
        subject,
        slots,
        "".join(select.keys),
        "".join(_operands(select, sums=True)),
        "".join(_operands(select)),
        of_event,
    )


def _unfiltered(pattern: alg.Pattern) -> tuple[alg.Pattern, list[alg.Expr]]:
    """A pattern without the filters around it, and these filters, one for each condition."""
    filters = list[alg.Expr]()
    while isinstance(pattern, alg.Filter):
        filters[:0] = [part for condition in pattern.conditions for part in alg.conjuncts(condition)]
        pattern = pattern.child
    return pattern, filters


def _slots(triples: Sequence[alg.Triple], filters: Sequence[alg.Expr]) -> tuple[Slot, ...] | str:
    subjects = {triple.subject for triple in triples}
    if len(subjects) > 1 or not all(isinstance(subject, alg.Var) for subject in subjects):
        return "its triples have no variable as their one subject"
    if not all(isinstance(t.predicate, alg.Const) and t.predicate.term != GENERATED_AT for t in triples):
        return "its pattern is not of the form ?s <p> ?o ; <q> ?u"
    bound = [t.object for t in triples if isinstance(t.object, alg.Var)]
    if len({*bound, *subjects}) <= len(bound):
        return "a variable comes twice in its triples"
    for one, other in combinations(triples, 2):
        constant = isinstance(one.object, alg.Const) and isinstance(other.object, alg.Const)
        if one.predicate == other.predicate and not (constant and one.object != other.object):
            return "a triple may match several of its patterns"
    (subject,) = subjects
    of_slots: list[list[alg.Expr]] = [[] for _ in triples]
    for e in filters:
        named = {alg.Var(name) for name in alg.variables(e)} - {subject}
        places = [i for i, triple in enumerate(triples) if named <= {triple.object}]
        if not places:
            return "a filter compares several triples"
        of_slots[places[0]].append(e)
    return tuple(
        Slot(t.predicate.term, t.object, tuple(own))
        for t, own in zip(triples, of_slots, strict=True)
        if isinstance(t.predicate, alg.Const)
    )


def _unaggregated(select: alg.Select, there: set[str]) -> str | None:
    """The reason why the groups or aggregates cannot run in columns; ``there`` are the variables of the pattern."""
    names = {*select.keys, *(a.variable for a in select.aggregates)}
    if len(select.keys) > 1 or not there.issuperset(select.keys):
        return "it groups by more than one variable of its pattern"
    for call in select.aggregates:
        counted = call.name == "COUNT" and call.operand is None and not call.distinct
        if not (call.name in EXTREMES or call.name == "COUNT" or (call.name in ("SUM", "AVG") and not call.distinct)):
            name = f"{call.name}(DISTINCT …)" if call.distinct else call.name
            return f"{name} over a window has no columnar form"
        if not counted and not (isinstance(call.operand, alg.Var) and call.operand.name in there):
            return "it aggregates an expression"
    if not all(isinstance(e, alg.Var) and e.name in names for _, e in select.extends):
        return "it calculates with its aggregates"
    named = names.union(name for name, _ in select.extends)
    if not named.issuperset(select.variables):
        return "it selects a variable that is never bound"
    if not named.issuperset(alg.variable_of(key.expression) for key in select.order):
        return "it is ordered by an expression"
    if len(_operands(select, sums=True)) > 1:
        return "it sums several variables"
    if len(_operands(select)) > 1:
        return "MIN, MAX, SAMPLE and COUNT(DISTINCT …) are of several variables"
    return None


def _operands(select: alg.Select, *, sums: bool = False) -> set[str]:
    """The variables of a query's sums and averages if ``sums``, else those of its other aggregates over values."""
    calls = [c for c in select.aggregates if (c.name in ("SUM", "AVG")) == sums and (sums or is_of_members(c))]
    return {c.operand.name for c in calls if isinstance(c.operand, alg.Var)}


def is_of_members(call: alg.AggregateCall) -> bool:
    """Whether an aggregate is computed from the distinct values of a group."""
    return call.name in EXTREMES or (call.name == "COUNT" and call.distinct)
