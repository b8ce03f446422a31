"""Which windowed queries have a columnar form (``sliding``), and why the others have none."""

from __future__ import annotations

from collections.abc import Sequence

from etalis_compiler.rsp import Fact, Sliding, WindowPlan
from etalis_rules import algebra as alg


def unsuited_steps(steps: Sequence[WindowPlan | Fact]) -> str | None:
    """Why these windowed queries and facts cannot be evaluated in columns; None when they can."""
    if len(steps) != 1:
        return "several queries share the stream"
    step = steps[0]
    return "facts have no columnar form" if isinstance(step, Fact) else unsuited(step)


def unsuited(plan: WindowPlan) -> str | None:
    """Why a windowed query cannot be evaluated in columns; None when it can."""
    select = plan.select
    if plan.form != "select" or plan.feeds or plan.r2s != "RSTREAM" or plan.ordered:
        return "only a SELECT that is reported whole, without ORDER BY, has a columnar form"
    if len(plan.windows) != 1:
        return "it reads several windows"
    use = plan.windows[0]
    if not isinstance(use.shape, Sliding) or use.inner or not use.stream:
        return "its window does not slide by the clock over a stream"
    if use.shape.offset or use.shape.slide > use.shape.width:
        return "its window leaves items out, or looks back"
    if {s.kind for s in plan.report} - {"WC", "NC"} or "WC" not in {s.kind for s in plan.report}:
        return "it is not evaluated when its window closes"
    simple = not (select.having or select.order or select.distinct or select.offset or select.window)
    if not simple or select.limit is not None or not select.grouped:
        return "what follows its pattern is more than GROUP BY with COUNT, SUM and AVG"
    return _not_sums(plan, select)


def _not_sums(plan: WindowPlan, select: alg.Select) -> str | None:
    pattern, names = select.pattern, {*select.keys, *(a.variable for a in select.aggregates)}
    if not isinstance(pattern, alg.BGP) or len(pattern.triples) != 1:
        return "its pattern is more than one triple"
    triple = pattern.triples[0]
    if not isinstance(triple.subject, alg.Var) or not isinstance(triple.object, alg.Var):
        return "subject and object of its pattern are not both variables"
    there = {triple.subject.name, triple.object.name}
    if len(there) == 1 or not isinstance(triple.predicate, alg.Const):
        return "its pattern is not of the form ?s <p> ?o"
    if len(select.keys) > 1 or not there.issuperset(select.keys):
        return "it groups by more than one variable of its pattern"
    for call in select.aggregates:
        counted = call.name == "COUNT" and call.operand is None
        if call.name not in ("COUNT", "SUM", "AVG") or call.distinct:
            name = f"{call.name}(DISTINCT …)" if call.distinct else call.name
            return f"{name} over a window has no columnar form"
        if not counted and not (isinstance(call.operand, alg.Var) and call.operand.name in there):
            return "it aggregates an expression"
    if not all(isinstance(e, alg.Var) and e.name in names for _, e in select.extends):
        return "it calculates with its aggregates"
    if not names.union(name for name, _ in select.extends).issuperset(plan.variables):
        return "it selects a variable that is never bound"
    if len(summed(select)) > 1:
        return "it sums several variables"
    return None


def summed(select: alg.Select) -> set[str]:
    """The variables that a query sums."""
    return {c.operand.name for c in select.aggregates if c.name != "COUNT" and isinstance(c.operand, alg.Var)}
