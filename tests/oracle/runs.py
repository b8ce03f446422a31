"""REPEAT, literally: all runs x₁ … x_k of solutions of A that satisfy the clauses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from etalis_compiler import ast
from etalis_rules.terms import parts

from . import patterns
from .absence import in_stream, next_of, timed
from .expressions import holds, value_or_unbound
from .maximal import maximal, over
from .plan import Runs, variables
from .solutions import Solution, bindings, compatible
from .times import duration, shift
from .until import ended

if TYPE_CHECKING:
    from .patterns import Place


def runs(plan: Runs, place: Place) -> list[Solution]:
    """One solution for each run."""
    elements = in_stream(patterns.answers(plan.child, place))
    absent = [] if plan.absent is None else patterns.answers(plan.absent, replace(place, policy="unrestricted"))
    absent = in_stream(absent)
    enders = [] if plan.until is None else in_stream(patterns.answers(plan.until, place))
    timed(elements, absent, enders)
    keys = [v.name for v in plan.written.by]
    partitions: dict[tuple[str, ...], list[Solution]] = {}
    for x in elements:
        partitions.setdefault(tuple(dict(x.mu).get(k, "") for k in keys), []).append(x)
    rows = []
    for values, members in partitions.items():
        key = dict(zip(keys, values, strict=True))
        gone, ending = _agreeing(absent, key), _agreeing(enders, key)
        gone += ending
        after = _following(members, gone)
        chosen = [run for i in range(len(members)) for run in _from((i,), members, after, plan, place)]
        if plan.written.maximal:
            rows += _ended(chosen, members, gone, key, plan, place)
            continue
        if plan.until is not None:
            for run, b in ended(_longest(chosen), members, ending):
                row = _row([members[i] for i in run], key, plan, place)
                rows.append(row._replace(mu=bindings(dict(row.mu) | dict(b.mu)), end=b.end, known=b.known))
            continue
        for run in _longest(chosen) if plan.written.longest else chosen:
            rows.append(_row([members[i] for i in run], key, plan, place))
    return rows


def _agreeing(solutions: list[Solution], key: dict[str, str]) -> list[Solution]:
    """Those that are compatible on the BY variables."""
    return [s for s in solutions if compatible(bindings({k: dict(s.mu).get(k, "") for k in key}), bindings(key))]


def _ended(
    chosen: list[tuple[int, ...]],
    members: list[Solution],
    gone: list[Solution],
    key: dict[str, str],
    plan: Runs,
    place: Place,
) -> list[Solution]:
    """The maximal ones of the runs, each with the end of its solution."""
    written, after, following = plan.written, _following(members, gone), _following(members, [])

    def is_run(run: tuple[int, ...]) -> bool:
        before = range(1, len(run))
        fits = (
            run[k] in after[run[k - 1]] and _fits([members[i] for i in run[:k]], members[run[k]], plan, place)
            for k in before
        )
        return (written.most is None or len(run) <= written.most) and all(fits)

    rows = []
    for run in maximal(chosen, members, is_run):
        end, known = over(run, members, [members[j] for j in following[run[-1]]], gone, written)
        rows.append(_row([members[i] for i in run], key, plan, place)._replace(end=end, known=known))
    return rows


def _following(members: list[Solution], absent: list[Solution]) -> list[list[int]]:
    """For each element those that may come after it: a next one, with no N in the gap.  Their intervals decide that."""
    alike = [_bare(m) for m in members]
    intervals = [*dict.fromkeys(alike)]

    def in_gap(a: Solution, x: Solution) -> bool:
        return any(n.start > a.end and n.end < x.start for n in absent)  # type: ignore[operator]

    after = {a: {x for x in intervals if next_of(intervals, a, x) and not in_gap(a, x)} for a in intervals}
    return [[j for j, x in enumerate(alike) if x in after[a]] for a in alike]


def _from(
    run: tuple[int, ...], members: list[Solution], after: list[list[int]], plan: Runs, place: Place
) -> Iterator[tuple[int, ...]]:
    """The run, when it is long enough, and those that go on from it."""
    if len(run) >= plan.written.least:
        yield run
    if len(run) == plan.written.most:
        return
    for j in after[run[-1]]:
        if _fits([members[i] for i in run], members[j], plan, place):
            yield from _from((*run, j), members, after, plan, place)


def _fits(run: list[Solution], x: Solution, plan: Runs, place: Place) -> bool:
    """Whether a run may go on with x."""
    return _near(plan.written.gap, run[-1], x) and _step(run, x, plan, place)


def _near(gap: ast.Duration | None, last: Solution, x: Solution) -> bool:
    """Whether x starts at most so long after the one before it ended."""
    if gap is None:
        return True
    parsed = duration(gap.lexical)
    assert parsed is not None
    return x.start <= shift(last.end, *parsed)  # type: ignore[operator, arg-type]


def _bare(x: Solution) -> Solution:
    """The members of a partition agree on the BY values; what else they bind does not count for NEXT."""
    return x._replace(mu=())


def _step(run: list[Solution], x: Solution, plan: Runs, place: Place) -> bool:
    """F at one step: ``?p`` is the value in x, ``PREVIOUS(?p)`` that in the element before, ``FIRST(?p)`` in x₁.

    ``PREVIOUS(?p, n)`` is the value n elements before x in the run, unbound where there is none.

    Its aggregates range over the run with x.
    """
    condition = plan.written.condition
    if condition is None:
        return True
    mu = dict(x.mu)
    mu |= {f"PREVIOUS {v}": t for v, t in run[-1].mu} | {f"FIRST {v}": t for v, t in run[0].mu}
    mu |= {f"PREVIOUS {v} {n}": t for n in range(1, len(run) + 1) for v, t in run[-n].mu}
    inside = place.environment(x._replace(mu=bindings(mu)), frozenset(variables(plan.child)))
    return holds(_named(condition), replace(inside, members=[*run, x]))


def _named(node: Any) -> Any:
    """The expression with ``PREVIOUS(?p)`` and the like as variables of their own."""
    if isinstance(node, ast.Call) and node.name in ("PREVIOUS", "FIRST", "LAST"):
        variable, *back = node.arguments
        assert isinstance(variable, ast.Var)
        return ast.Var(" ".join([node.name, variable.name, *(parts(n.spelling)[0] for n in back)]))  # type: ignore[union-attr]
    if isinstance(node, tuple):
        return tuple(map(_named, node))
    if is_dataclass(node) and not isinstance(node, type):
        return replace(node, **{f.name: _named(getattr(node, f.name)) for f in fields(node) if f.name != "span"})
    return node


def _longest(chosen: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Of the runs with the same last element those with the most."""
    most: dict[int, int] = {}
    for run in chosen:
        most[run[-1]] = max(most.get(run[-1], 0), len(run))
    return [run for run in chosen if len(run) == most[run[-1]]]


def _row(members: list[Solution], key: dict[str, str], plan: Runs, place: Place) -> Solution:
    """The BY values and the aggregates over the run, with its hull."""
    first, last = members[0], members[-1]
    start = min(x.start for x in members if x.start is not None)
    end = max(x.end for x in members if x.end is not None)
    mu = {f"FIRST {v}": t for v, t in first.mu} | {f"LAST {v}": t for v, t in last.mu}
    inside = place.environment(Solution(bindings(mu), start, end, last.known), frozenset(variables(plan.child)))
    inside = replace(inside, members=members)
    made = {c.variable.name: value_or_unbound(_named(c.expression), inside) for c in plan.written.columns}
    return Solution(bindings(key | made), start, end, max(x.known for x in members))
