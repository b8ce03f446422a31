"""Refusals outside the pattern of a query: by a consuming policy, HAVING, LIMIT and OFFSET."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from etalis_rules import algebra as alg

from etalis_py.engine.program import Program
from etalis_py.kernel.matches import Match
from etalis_py.sparql.run import Solution
from etalis_py.whynot.condition import PlanCondition
from etalis_py.whynot.conditions import sides_of
from etalis_py.whynot.explaining import Explainer
from etalis_py.whynot.other_streams import NEAREST
from etalis_py.whynot.refusal_margins import Measure
from etalis_py.whynot.report import Blame
from etalis_py.whynot.search import query_of, run_beside, solution_of

Wanted = Callable[[Match], bool]


def after_the_pattern(
    explainer: Explainer, program: Program, answers: tuple[Match, ...], wanted: Wanted
) -> Iterator[Blame]:
    """Blames for solutions that the pattern has and the query does not report."""
    question = explainer.search.question
    select = question.query.algebra
    if select.grouped:
        yield from _having(explainer, select, wanted)
        return
    policy = question.query.syntax.policy or program.policy
    reasons = []
    if policy != "unrestricted":
        reasons.append(("policy", f"USING POLICY {policy}", "its parts were used up by other matches"))
    if select.limit is not None or select.offset:
        words = [f"LIMIT {select.limit}"] * (select.limit is not None) + [f"OFFSET {select.offset}"] * bool(
            select.offset
        )
        reasons.append(("limit", " ".join(words), "it is cut off"))
    if not reasons:
        return
    missing = list(_unreported(explainer, select, answers))
    if missing:
        kinds, texts, because = zip(*reasons, strict=True)
        measure = Measure(" or ".join(because))
        misses = tuple(explainer.miss(s, (measure,), question.plan) for s in missing[:NEAREST])
        yield Blame(kinds, texts, len(missing), True, misses)


def _unreported(explainer: Explainer, select: alg.Select, answers: Iterable[Match]) -> Iterator[Solution]:
    reported = Counter(_row(solution_of(match), select) for match in answers)
    for solution in explainer.search.wanted(explainer.search.question.plan, at_end=True).solutions:
        row = _row(solution, select)
        if reported[row]:
            reported[row] -= not select.distinct
        else:
            yield solution


def _row(solution: Solution, select: alg.Select) -> object:
    mu, start, end = solution
    return tuple(mu.get(name, "") for name in select.variables), start, end


def _having(explainer: Explainer, select: alg.Select, wanted: Wanted) -> Iterator[Blame]:
    """The groups that a single conjunct of HAVING refuses."""
    question = explainer.search.question
    tests = [_condition(explainer, select, i, test) for i, test in enumerate(select.having)]
    if not tests:
        return
    extends = (*select.extends, *(pair for test in tests for pair in _recorded(test)))
    shown = (*select.variables, *(test.mark + m for test in tests for m in test.marks))
    relaxed = replace(select, having=(), extends=extends, variables=shown)
    asked = query_of(question.query, relaxed, ".groups")
    rows = [solution_of(m) for m in run_beside(explainer.search.facts, asked) if m.query == ".groups" and wanted(m)]
    for test in tests:
        refused = []
        for row in rows:
            measure = explainer.measurer.measure(test, row)
            others = (explainer.measurer.measure(other, row) for other in tests if other is not test)
            if measure is not None and all(other is None for other in others):
                refused.append((row, measure))
        if refused:
            refused.sort(key=lambda item: (item[1].distance, -item[0][2]))
            visible = alg.Table(select.variables, ())
            misses = tuple(explainer.miss(row, (measure,), visible) for row, measure in refused[:NEAREST])
            yield Blame(("having",), (test.text,), len(refused), True, misses)


def _condition(explainer: Explainer, select: alg.Select, i: int, test: alg.Expr) -> PlanCondition:
    marks = ("ok", "a", "b") if sides_of(test) else ("ok",)
    text = f"HAVING ({explainer.titles.expression(_written(test, select))})"
    return PlanCondition("filter", text, (), lambda p: p, f".having{i}.", marks, test)


def _recorded(test: PlanCondition) -> Iterator[tuple[str, alg.Expr]]:
    expression: alg.Expr = test.about
    yield test.mark + "ok", alg.Apply("!", (alg.Apply("!", (expression,)),))
    if sides := sides_of(expression):
        yield from zip((test.mark + "a", test.mark + "b"), sides, strict=True)


def _written(expression: alg.Expr, select: alg.Select) -> alg.Expr:
    """The expression with its aggregates as the user wrote them."""
    calls = {call.variable: call for call in select.aggregates}

    def written(part: object) -> alg.Expr | None:
        call = calls.get(alg.variable_of(part))
        if call is None:
            return None
        return alg.Apply(call.name, (alg.Var("*") if call.operand is None else call.operand,))

    return alg.transform(expression, written)
