"""From the solutions of a WHERE clause to what a query reports (SPARQL §15, §18.2.4–5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cmp_to_key
from typing import NamedTuple

from etalis_compiler import ast

from .expressions import Environment, Undetermined, holds, order, value_or_unbound
from .plan import Plan, is_aggregated, projected, variables
from .solutions import (
    AFTER,
    BEFORE,
    Bindings,
    Instant,
    Solution,
    bindings,
    compatible,
    highest,
    interval_key,
    is_made,
    lowest,
)
from .solutions import canonical as canonical_key
from .times import duration, shift

Ask = Callable[[ast.Group, Solution], bool]


class Report(NamedTuple):
    """A row: the projected μ, its interval, when it is known, and whether that makes it come first or last.

    ``nodes`` are those of its solution, if it is of one.
    """

    mu: Bindings
    start: int | None
    end: int | None
    known: Instant
    at: Instant
    nodes: frozenset[str] = frozenset()


class _Row(NamedTuple):
    report: Report
    keys: tuple[str, ...]


def report(query: ast.Query, where: Plan, solutions: Sequence[Solution], exists: Ask, dynamic: bool) -> list[Report]:
    """All rows in the order in which they are reported; ``dynamic``: some pattern may match an occurrence."""
    shown = sorted(projected(query, where))
    every = frozenset(variables(where))
    at_end = isinstance(query.form, ast.Construct) and query.form.at_end
    if is_aggregated(query):
        found = _aggregated(query, shown, every, solutions, exists, dynamic)
        return [r._replace(start=r.end) for r in found] if at_end else found
    if at_end:
        solutions = [s._replace(start=s.end) for s in solutions]
    rows = [_plain_row(query, shown, s, exists, every, dynamic) for s in solutions]
    rows = [row for at in sorted({r.report.at for r in rows}) for row in _at_instant(query, shown, rows, at)]
    return [r.report for r in _sliced(query, rows)]


def of_event(
    query: ast.Query, where: Plan, solutions: Sequence[Solution], exists: Ask, moment: tuple[int, int, Instant]
) -> list[Report]:
    """The rows of a sub-SELECT inside EVENT: all at once, with the event's interval in every expression."""
    shown = sorted(projected(query, where))
    every = frozenset(variables(where))
    start, end, known = moment
    if is_aggregated(query):
        return _result(query, shown, every, list(solutions), exists, known, dynamic=False, inside=(start, end))
    rows = []
    for s in solutions:
        env = Environment(dict(s.mu), start, end, known, exists, None, every)
        row = _projected_row(query, shown, env, known)
        rows.append(row._replace(report=row.report._replace(start=s.start, end=s.end)))
    return [row.report for row in _sliced(query, _distinct_of_event(query, _ordered(query, shown, rows)))]


def _at(start: int | None, known: Instant, dynamic: bool) -> Instant:
    """When a row is reported: the timeless at the start if nothing can match an occurrence, else at the end."""
    if start is not None:
        return known
    return AFTER if dynamic else BEFORE


def _plain_row(
    query: ast.Query, shown: list[str], s: Solution, exists: Ask, every: frozenset[str], dynamic: bool
) -> _Row:
    env = Environment(dict(s.mu), s.start, s.end, s.known, exists, None, every)
    row = _projected_row(query, shown, env, _at(s.start, s.known, dynamic))
    return row._replace(report=row.report._replace(nodes=s.nodes))


def _projected_row(query: ast.Query, shown: list[str], env: Environment, at: Instant) -> _Row:
    """SELECT expressions in turn, then the ORDER BY keys, then the projection."""
    mu = dict(env.mu)
    inner = Environment(mu, env.start, env.end, env.known, env.exists, env.members, env.variables)
    for p in query.form.projections if isinstance(query.form, ast.Select) else ():
        if p.expression is not None:
            mu[p.variable.name] = value_or_unbound(p.expression, inner)
    keys = tuple(value_or_unbound(k.expression, inner) for k in query.order_by)
    kept = bindings({v: mu.get(v, "") for v in shown})
    return _Row(Report(kept, env.start, env.end, env.known, at), keys)


def _at_instant(query: ast.Query, shown: list[str], rows: list[_Row], at: Instant) -> list[_Row]:
    return _distinct(query, _ordered(query, shown, [r for r in rows if r.report.at == at]))


def _ordered(query: ast.Query, shown: list[str], rows: list[_Row]) -> list[_Row]:
    """ORDER BY, then the canonical order."""

    def canonical(row: _Row) -> tuple[object, ...]:
        mu = dict(row.report.mu)
        return (*interval_key(row.report.start, row.report.end), tuple(mu.get(v, "") for v in shown))

    def compared(a: _Row, b: _Row) -> int:
        for key, x, y in zip(query.order_by, a.keys, b.keys, strict=True):
            found = order(x, y)
            if found:
                return -found if key.descending else found
        return 0

    return sorted(sorted(rows, key=canonical), key=cmp_to_key(compared))


def _distinct(query: ast.Query, rows: list[_Row]) -> list[_Row]:
    """DISTINCT at one instant, over ⟨projected μ, start, end⟩."""
    if not (isinstance(query.form, ast.Select) and query.form.modifier == "DISTINCT"):
        return rows
    first = {row.report[:3]: row for row in reversed(rows)}
    return [row for row in rows if first[row.report[:3]] is row]


def _distinct_of_event(query: ast.Query, rows: list[_Row]) -> list[_Row]:
    """DISTINCT inside EVENT, over projected μ: a row uses the event if one of those that are equal does."""
    if not (isinstance(query.form, ast.Select) and query.form.modifier == "DISTINCT"):
        return rows
    found: dict[Bindings, _Row] = {}
    for row in rows:
        first = found.setdefault(row.report.mu, row).report
        start, end = lowest(first.start, row.report.start), highest(first.end, row.report.end)
        found[first.mu] = found[first.mu]._replace(report=first._replace(start=start, end=end))
    return list(found.values())


def _sliced(query: ast.Query, rows: list[_Row]) -> list[_Row]:
    start = query.offset or 0
    end = len(rows) if query.limit is None else start + query.limit
    for cut in (start, end):
        if 0 < cut < len(rows):
            _check_cut(rows[cut - 1].report, [row.report for row in rows if row.report.at == rows[cut].report.at])
    return rows[start:end]


def _check_cut(last: Report, tied: list[Report]) -> None:
    """Where nodes that rules made are shown, which of the rows of an instant come first is left open."""
    if any(row.at == last.at for row in tied) and any(is_made(term) for row in tied for _, term in row.mu):
        raise Undetermined("LIMIT or OFFSET among rows with nodes that rules made")


# --- grouping and aggregation ----------------------------------------------------------------------------------


def _aggregated(
    query: ast.Query,
    shown: list[str],
    every: frozenset[str],
    solutions: Sequence[Solution],
    exists: Ask,
    dynamic: bool,
) -> list[Report]:
    """At each instant in which a solution entered: the full current result, of which what changed is reported.

    Rows without any occurrence in them are reported once, of the last result: when the stream has ended, or at the
    start when nothing can match an occurrence.
    """
    timed = [s for s in solutions if not s.timeless]
    timeless = [s for s in solutions if s.timeless]
    reports: list[Report] = []
    previous: Counter[tuple[object, ...]] = Counter()
    current = _result(query, shown, every, timeless, exists, BEFORE, dynamic)
    for now in sorted({s.known for s in timed}):
        window = _in_window(query.within, [s for s in timed if s.known <= now], now)
        current = _result(query, shown, every, timeless + window, exists, now, dynamic)
        unchanged = previous.copy()
        for row in current:
            same = row[:3]
            if unchanged[same]:
                unchanged[same] -= 1
            elif row.start is not None:
                reports.append(row)
        previous = Counter(row[:3] for row in current)
    at = AFTER if dynamic else BEFORE
    last = [r._replace(known=at, at=at) for r in current if r.start is None]
    return reports + last


def _in_window(within: ast.Duration | None, solutions: list[Solution], now: Instant) -> list[Solution]:
    """WITHIN after the WHERE clause: those with end in (t − n, t]."""
    if within is None or within.kind != "duration":
        return solutions
    parsed = duration(within.lexical)
    if now == AFTER:
        raise Undetermined("a window at the end of the stream")
    if parsed is None:
        raise ValueError(f"not a duration: {within.lexical!r}")
    opening: Fraction = shift(int(now), -parsed[0], -parsed[1])
    return [s for s in solutions if s.end is not None and s.end > opening]


def _result(
    query: ast.Query,
    shown: list[str],
    every: frozenset[str],
    solutions: list[Solution],
    exists: Ask,
    now: Instant,
    dynamic: bool,
    inside: tuple[int, int] | None = None,
) -> list[Report]:
    """SPARQL §18.2.4.1–18.2.5: group, HAVING, VALUES, SELECT expressions, order, DISTINCT, slice.

    ``inside``: the interval of the event in whose EVENT it stands.
    """
    groups: dict[Bindings, list[Solution]] = {} if query.group_by else {(): []}
    anonymous: dict[tuple[Bindings, tuple[str, ...]], list[Solution]] = {}
    for s in solutions:
        env = Environment(dict(s.mu), *(inside or (s.start, s.end)), s.known, exists, None, every)
        named, unnamed = _key(query, env)
        anonymous.setdefault((named, unnamed), []).append(s)
    rows = []
    for (key, _), members in (anonymous or {(k, ()): m for k, m in groups.items()}).items():
        chosen = _last(query.within, members, every)
        start, end = None, None
        for s in chosen:
            start, end = lowest(start, s.start), highest(end, s.end)
        if inside is not None:
            chosen = [s._replace(start=inside[0], end=inside[1]) for s in chosen]
        env = Environment(dict(key), *(inside or (start, end)), now, exists, chosen, every)
        if all(holds(h, env) for h in query.having):
            for mu in _with_values(query.values, key):
                env = Environment(dict(mu), *(inside or (start, end)), now, exists, chosen, every)
                row = _projected_row(query, shown, env, _at(start, now, dynamic))
                rows.append(row._replace(report=row.report._replace(start=start, end=end)))
    only = _distinct if inside is None else _distinct_of_event
    return [r.report for r in _sliced(query, only(query, _ordered(query, shown, rows)))]


def _key(query: ast.Query, env: Environment) -> tuple[Bindings, tuple[str, ...]]:
    """The group key: its named part (variables and ``expr AS ?v``), and the values of unnamed expressions."""
    named: dict[str, str] = {}
    unnamed: list[str] = []
    for item in query.group_by:
        if isinstance(item, ast.Var):
            named[item.name] = env.mu.get(item.name, "")
        elif isinstance(item, ast.Projection):
            expression = item.expression or item.variable
            named[item.variable.name] = value_or_unbound(expression, env)
        else:
            unnamed.append(value_or_unbound(item, env))
    return bindings(named), tuple(unnamed)


def _last(within: ast.Duration | None, members: list[Solution], every: frozenset[str]) -> list[Solution]:
    """WITHIN n EVENTS: the last n of a group in canonical order; the timeless neither count nor leave."""
    if within is None or within.kind == "duration":
        return members
    timed = sorted((s for s in members if not s.timeless), key=lambda s: (s.known, *canonical_key(s, every)))
    return [s for s in members if s.timeless] + timed[max(0, len(timed) - within.count) :]


def _with_values(values: ast.Values | None, key: Bindings) -> list[Bindings]:
    """A trailing VALUES is joined to the groups' rows (SPARQL §18.2.4.3)."""
    if values is None:
        return [key]
    joined = []
    for row in values.rows:
        mu = bindings({v.name: t.spelling for v, t in zip(values.variables, row, strict=True) if t is not None})
        if compatible(key, mu):
            joined.append(bindings(dict(key) | dict(mu)))
    return joined
