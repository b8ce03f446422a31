"""The solutions that refuse another one: of what must not exist, be absent, or come before it."""

from __future__ import annotations

from collections.abc import Callable

from etalis_rules import algebra as alg

from etalis_py.sparql import ExpressionClock as Moment
from etalis_py.sparql import Prepared
from etalis_py.sparql.run import Solution
from etalis_py.values.time import TIMELESS_END
from etalis_py.whynot.condition import Gap, PlanCondition
from etalis_py.whynot.refusal_margins import Measure, Measurer, micros
from etalis_py.whynot.search import Search

Lies = Callable[[int, int], bool]


def blockers_of(
    search: Search, measurer: Measurer, condition: PlanCondition, solution: Solution
) -> tuple[Measure, ...]:
    """The solutions that refuse a solution, latest first."""
    if condition.gap is not None:
        pattern, some = _of_operator(search, condition, condition.gap, solution)
    elif condition.kind == "minus":
        pattern, some = _of_minus(search, condition, solution)
    else:
        pattern, some = _inside(search, condition, solution)
    return tuple(_shown(measurer, pattern, s) for s in sorted(some, key=lambda s: -s[2]))


Blocking = tuple[alg.Pattern, list[Solution]]


def _of_minus(search: Search, condition: PlanCondition, solution: Solution) -> Blocking:
    minus, mu = condition.about, solution[0]
    shared = {name: mu[name] for name in minus.scope if name in mu and name in condition.sees}
    every = Prepared(minus.right, timed=True).solve({}, search.facts.source, _end(condition, mu), _moment(search))
    return minus.right, [s for s in every if _meets(s[0], shared)]


def _inside(search: Search, condition: PlanCondition, solution: Solution) -> Blocking:
    """The pattern inside NOT EXISTS, with the variables of the solution substituted."""
    pattern, mu = condition.about.args[0].pattern, solution[0]
    seen = {name: mu[name] for name in condition.sees if name in mu}
    prepared = Prepared(pattern, substitute=True, timed=True)
    return pattern, list(prepared.solve(seen, search.facts.source, _end(condition, mu), _moment(search)))


def _of_operator(search: Search, condition: PlanCondition, gap: Gap, solution: Solution) -> Blocking:
    """The compatible solutions in a gap of the part that decides: of what must be absent, or nearer than the next."""
    node, mu = condition.about, solution[0]
    below = alg.parts(node)
    deciding = [part for part in below if part.decides and part.role is not alg.Role.MEMBER]
    pattern = deciding[0].pattern
    sides = (alg.scope(part.pattern) for part in below if part.role is alg.Role.SIDE and part not in deciding)
    names = frozenset(alg.agreed(node)) | (alg.scope(pattern) & frozenset[str]().union(*sides))
    lies = _in_gap(condition, gap, solution)
    some = search.all(pattern).solutions
    shared = {name: mu[name] for name in names if name in mu}
    fitting = (s for s in some if all(s[0].get(name, term) == term for name, term in shared.items()))
    lying = [s for s in fitting if lies(s[1], s[2])]
    if tests := alg.across(node):
        left = {name: mu[name] for name in alg.scope(below[0].pattern) if name in mu}
        lying = [s for s in lying if _holds(search, tests, s[0] | left)]
    return pattern, lying


def _holds(search: Search, condition: tuple[alg.Expr, ...], mu: dict[str, str]) -> bool:
    row = alg.Table(tuple(mu), (tuple(mu.values()),))
    return any(Prepared(alg.Filter(row, condition), timed=True).solve({}, search.facts.source, None, _moment(search)))


def _in_gap(condition: PlanCondition, gap: Gap, solution: Solution) -> Lies:
    """A test whether an interval lies where there must be nothing."""
    mu, start, end = solution
    first = micros(mu[condition.mark + gap.first]) if gap.first else start
    if gap.bound is not None:
        until = gap.bound.after(first)
        return lambda n, last: first < n and last <= until
    final = micros(mu[condition.mark + gap.last]) if gap.last else end
    return lambda n, last: first < n and last < final


def _end(condition: PlanCondition, mu: dict[str, str]) -> int | None:
    end = mu.get(condition.mark + "le")
    return None if end is None else micros(end)


def _moment(search: Search) -> Moment:
    return Moment(search.facts.end)


def _meets(mu: dict[str, str], shared: dict[str, str]) -> bool:
    """Whether it is compatible and shares a variable."""
    both = [name for name in shared if name in mu]
    return bool(both) and all(mu[name] == shared[name] for name in both)


def _shown(measurer: Measurer, pattern: alg.Pattern, solution: Solution) -> Measure:
    mu, start, end = solution
    triples = [_triple(measurer, triple, mu) for part in alg.blocks_of_triples(pattern) for triple in part.triples]
    timed = end != TIMELESS_END
    when = measurer.shown((start, end)) if timed else "in the background"
    text = f"blocked by {' . '.join(triples) or 'a solution inside it'} {when}"
    return Measure(text, 0.0, {"triples": triples, "interval": measurer.interval((start, end)) if timed else None})


def _triple(measurer: Measurer, triple: alg.Triple, mu: dict[str, str]) -> str:
    return " ".join(measurer.titles.term(term) if term else "…" for term in alg.triple_in(mu, triple))
