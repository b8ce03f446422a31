"""Sub-SELECTs: grouping, aggregates, HAVING, expressions, ORDER BY, projection, DISTINCT and LIMIT, in this order.

Over timeless solutions, and inside EVENT, this is plain SPARQL; a group, or a row of DISTINCT, inside EVENT has an
interval if one of its members has.  Any other timed sub-SELECT is evaluated if it only projects; grouping, LIMIT and
windows over occurrences belong to the incremental engine and are refused when the pattern is prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from etalis_rules.algebra import Pattern, Select, clauses_over_stream, scope

from etalis_py.sparql.aggregates import Aggregate, compile_aggregate
from etalis_py.sparql.errors import Unsupported
from etalis_py.sparql.run import Bindings, EvaluationRun, Runner, Solution
from etalis_py.sparql.scoping import Env, alphabetical, passable
from etalis_py.sparql.shared_state import SharedState, Value
from etalis_py.values import rank_key
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

Compile = Callable[[Pattern, Env, SharedState], Runner]
Stage = Callable[[Iterable[Solution], Bindings, EvaluationRun], Iterable[Solution]]
"""From solutions to solutions, given the incoming bindings."""


def compile_select(select: Select, env: Env, registry: SharedState, compile_pattern: Compile) -> Runner:
    """The sub-SELECT as an operator; its solutions come in its order."""
    _check(select, registry)
    passed = passable(select)
    inner_env = env.only(passed)
    inner = compile_pattern(select.pattern, inner_env, registry)
    stages = list(_stages(select, inner_env, registry))
    shared = tuple(v for v in select.variables if v in env.seen)
    kept = tuple(sorted(inner_env.seen))

    def run_select(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        into = {v: mu[v] for v in kept if v in mu}
        solutions: Iterable[Solution] = inner(into, run)
        for stage in stages:
            solutions = stage(solutions, into, run)
        for row, s, e in solutions:
            if all(mu.get(v, row[v]) == row[v] for v in shared if v in row):
                yield {**mu, **row}, s, e

    return run_select


def _check(select: Select, registry: SharedState) -> None:
    if select.window is not None and select.window.events:
        raise Unsupported(
            f"WITHIN {select.window.events} EVENTS counts occurrences, and this sub-SELECT is evaluated over "
            "background knowledge or inside EXISTS; leave the window out or use the sub-SELECT outside EXISTS"
        )
    clauses = "" if registry.of_event or not registry.timed else clauses_over_stream(select)
    if clauses:
        raise Unsupported(
            f"a sub-SELECT with {clauses} over a stream is not allowed inside an EXISTS that depends on the solution "
            "around it; join the sub-SELECT outside the EXISTS, or derive triples from it with CONSTRUCT and ask for "
            "those"
        )


def _stages(select: Select, env: Env, registry: SharedState) -> Iterator[Stage]:
    visible = scope(select.pattern)
    if select.grouped:
        yield _grouping(select, env, registry)
        visible = frozenset(select.keys) | {a.variable for a in select.aggregates}
    having = registry.test(select.having, visible, env)
    if having is not None:
        yield lambda solutions, mu, run: (x for x in solutions if having(x[0], x[1], x[2], run))
    for variable, expression in select.extends:
        yield _extending(variable, registry.value(expression, visible, env))
        visible |= {variable}
    names = select.variables
    if select.order or select.limit is not None or select.offset:
        shown = alphabetical(names)
        yield lambda solutions, mu, run: sorted(solutions, key=lambda x: _place(x, shown))
    if select.order:
        keys = [(registry.value(k.expression, visible, env), k.descending) for k in select.order]
        yield lambda solutions, mu, run: _ordered(solutions, keys, run)
    yield lambda solutions, mu, run: (({v: m[v] for v in names if v in m}, s, e) for m, s, e in solutions)
    if select.distinct:
        yield _distinct_of_event if registry.of_event else _distinct
    if select.limit is not None or select.offset:
        stop = None if select.limit is None else select.offset + select.limit
        yield lambda solutions, mu, run: islice(solutions, select.offset, stop)


def _extending(variable: str, value: Value) -> Stage:
    def extend(solutions: Iterable[Solution], mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        for m, s, e in solutions:
            term = value(m, s, e, run)
            yield ({**m, variable: term} if term else m), s, e

    return extend


def _place(solution: Solution, shown: list[str]) -> tuple[Any, ...]:
    """The place of a solution in canonical order: by its end, its start and its shown terms."""
    mu, start, end = solution
    return end, start, *(mu.get(v, "") for v in shown)


def _ordered(solutions: Iterable[Solution], keys: list[tuple[Value, bool]], run: EvaluationRun) -> list[Solution]:
    rows = list(solutions)
    for value, descending in reversed(keys):  # sorting is stable: the last key first
        rows.sort(key=lambda row: rank_key(value(row[0], row[1], row[2], run)), reverse=descending)
    return rows


def _distinct_of_event(solutions: Iterable[Solution], into: Bindings, run: EvaluationRun) -> Iterator[Solution]:
    """Rows with equal terms are one, as in SPARQL, which has the event's interval if one of them uses the event."""
    rows: dict[frozenset[tuple[str, str]], Solution] = {}
    for mu, s, e in solutions:
        key = frozenset(mu.items())
        first, start, end = rows.get(key, (mu, s, e))
        rows[key] = first, min(start, s), max(end, e)
    yield from rows.values()


def _distinct(solutions: Iterable[Solution], into: Bindings, run: EvaluationRun) -> Iterator[Solution]:
    seen = set()
    for solution in solutions:
        mu, s, e = solution
        key = (frozenset(mu.items()), s, e)
        if key not in seen:
            seen.add(key)
            yield solution


def _grouping(select: Select, env: Env, registry: SharedState) -> Stage:
    """One solution per group; exactly one, even over no solutions, if there are aggregates but no keys."""
    keys = select.keys
    visible = scope(select.pattern)
    every = alphabetical(visible) if any(call.name == "GROUP_CONCAT" for call in select.aggregates) else []
    calls: list[tuple[str, Aggregate]] = []
    for call in select.aggregates:
        operand = None if call.operand is None else registry.value(call.operand, visible, env)
        calls.append((call.variable, compile_aggregate(call, operand)))

    def group(solutions: Iterable[Solution], mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        groups: dict[tuple[str, ...], list[Solution]] = {} if keys else {(): []}
        for solution in sorted(solutions, key=lambda x: _place(x, every)) if every else solutions:
            groups.setdefault(tuple([solution[0].get(k, "") for k in keys]), []).append(solution)
        for terms, members in groups.items():
            row = {v: mu[v] for v in env.given if v in mu}
            row.update((k, t) for k, t in zip(keys, terms, strict=True) if t)
            for variable, aggregate in calls:
                term = aggregate(members, run)
                if term:
                    row[variable] = term
            start = min((s for _, s, _ in members), default=TIMELESS_START)
            yield row, start, max((e for _, _, e in members), default=TIMELESS_END)

    return group
