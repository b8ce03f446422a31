"""Aggregates that follow a sliding window: a triple is added to its group when it enters, taken out when it leaves.

It serves queries with GROUP BY or aggregates over one triple pattern in one window, with filters and expressions on
its solution alone: what such a query answers is a function of sums that change by what enters and leaves.  The cost of
a quad is the same whatever range / slide is; the cost of an evaluation is that of its groups.  Everything else is
evaluated over the whole content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from etalis_compiler.rsp import Current, WindowPlan
from etalis_rules import algebra as alg

from etalis_py.engine.backward.prepared import Prepared
from etalis_py.engine.backward.registry import Registry
from etalis_py.engine.backward.run import Bindings, Run, Runner, Solution
from etalis_py.engine.backward.scoping import Env, volatile
from etalis_py.engine.backward.selects import compile_select
from etalis_py.engine.expressions import condition, term
from etalis_py.engine.functions import Accumulator, accumulator
from etalis_py.engine.time import TIMELESS_END, TIMELESS_START
from etalis_py.engine.values import SparqlError, decode
from etalis_py.events import Event, Triple
from etalis_py.windows.content import Content

Totals = list[Accumulator]
Change = Callable[[Triple, int], None]
"""Told that a triple entered (+1) or left (−1) the content."""
_CACHE = 65_536  # decoded values that are remembered beyond those in the window

Steps = tuple[alg.Triple, str, tuple[tuple[str, alg.Expr] | alg.Expr, ...]]


def incremental(plan: WindowPlan, stored: bool) -> Steps | None:
    """The one triple pattern of the query, its window, and the filters and BINDs on it; None where it has more.

    ``stored``: a stored default graph holds something, so that patterns outside WINDOW see more than windows.
    """
    select = plan.select
    if not select.grouped or plan.matches or plan.times or volatile(alg.SubSelect(select)):
        return None
    steps: list[tuple[str, alg.Expr] | alg.Expr] = []
    pattern = select.pattern
    while not isinstance(pattern, alg.BGP):
        match pattern:
            case alg.Filter(child, conditions):
                steps[:0] = conditions
                pattern = child
            case alg.Extend(child, variable, expression):
                steps.insert(0, (variable, expression))
                pattern = child
            case _:
                return None
    exprs = [s[1] if isinstance(s, tuple) else s for s in steps]
    exprs += [a.operand for a in select.aggregates if a.operand is not None]
    if any(isinstance(part, alg.Exists) for e in exprs for part in alg.subexpressions(e)):
        return None
    if len(pattern.triples) != 1 or pattern.graph is not None:
        return None
    if any(isinstance(w.shape, Current) for w in plan.windows):
        return None  # facts come and go, not items
    names = [w.name for w in plan.windows if (w.name == pattern.stream if pattern.stream else w.default)]
    if len(names) != 1 or len(plan.windows) != 1 or (not pattern.stream and stored):
        return None
    return pattern.triples[0], names[0], tuple(steps)


class GroupedContent(Content):
    """The content of a window without its index: triples that enter or leave change the groups."""

    __slots__ = ("_change",)

    def __init__(self, groups: Groups) -> None:
        super().__init__()
        self._change = groups.change

    def _enter(self, item: Event) -> None:
        self.changes_in += 1
        counts = self.counts
        for triple in item.triples:
            if triple in counts:
                counts[triple] += 1
            else:
                counts[triple] = 1
                self._change(triple, 1)

    def _leave(self, item: Event) -> None:
        counts = self.counts
        for triple in item.triples:
            number = counts[triple]
            if number > 1:
                counts[triple] = number - 1
            else:
                del counts[triple]
                self._change(triple, -1)


class Groups:
    """The groups of a query, kept up to date."""

    def __init__(
        self, select: alg.Select, pattern: alg.Triple, steps: tuple[tuple[str, alg.Expr] | alg.Expr, ...]
    ) -> None:
        self._select = select
        self._groups: dict[tuple[str, ...], tuple[list[int], Totals]] = {}
        self._match = _matcher(pattern)
        self._predicate = pattern.predicate.term if isinstance(pattern.predicate, alg.Const) else None
        self._steps = [(s[0], term(s[1])) if isinstance(s, tuple) else (None, condition(s)) for s in steps]
        self._keys = select.keys
        self._operands = [
            None if a.operand is None else (a.operand.name if isinstance(a.operand, alg.Var) else term(a.operand))
            for a in select.aggregates
        ]
        self._context = _Context()
        places = _plain(pattern, self._steps, select, self._operands)
        self.change = self._by_pattern() if places is None else self._by_place(*places)
        self._runner = self._finish()

    # --- what enters and leaves ---

    def _by_pattern(self) -> Change:
        """The triple as a solution of the pattern, then filters, key and operands."""
        predicate = self._predicate

        def change(triple: Triple, sign: int) -> None:
            if predicate is not None and triple[1] != predicate:
                return
            mu = self._match(triple)
            if mu is not None:
                self._change(mu, sign)

        return change

    def _by_place(self, key_at: int, operand_at: int) -> Change:
        """The same for ``?key <p> ?value`` without filters: key and operand are read off the triple."""
        predicate, groups, new = self._predicate, self._groups, self._new
        decoded: dict[str, Any] = {}

        def change(triple: Triple, sign: int) -> None:
            if triple[1] != predicate:
                return
            key = (triple[key_at],) if key_at >= 0 else ()
            group = groups.get(key)
            if group is None:
                group = groups[key] = new()
            spelling = triple[operand_at]
            size, totals = group
            size[0] += sign
            if sign > 0:
                value = decoded.get(spelling)
                if value is None:
                    value = decoded[spelling] = decode(spelling)
                for total in totals:
                    total.add(value, spelling)
                return
            # what is in the window is at hand; what has left it stays at hand as long as that is little
            value = decoded.pop(spelling, None) if len(decoded) > _CACHE else decoded.get(spelling)
            if value is None:
                value = decode(spelling)
            for total in totals:
                total.remove(value, spelling)
            if not size[0]:
                del groups[key]

        return change

    def _change(self, mu: Bindings, sign: int) -> None:
        for variable, step in self._steps:
            found = step(mu, TIMELESS_START, TIMELESS_END, self._context)
            if variable is not None and isinstance(found, str):
                mu = {**mu, variable: found} if found else mu
            elif not found:
                return
        key = tuple([mu.get(k, "") for k in self._keys])
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = self._new()
        group[0][0] += sign
        for operand, total in zip(self._operands, group[1], strict=True):
            self._count(mu, operand, total, sign)
        if not group[0][0]:
            del self._groups[key]

    def _count(self, mu: Bindings, operand: Any, total: Accumulator, sign: int) -> None:
        change = total.add if sign > 0 else total.remove
        if operand is None:
            change(None, (*sorted(mu.items()), TIMELESS_START, TIMELESS_END))
            return
        spelling = (
            mu.get(operand, "")
            if isinstance(operand, str)
            else operand(mu, TIMELESS_START, TIMELESS_END, self._context)
        )
        if not spelling:
            total.fail() if sign > 0 else total.unfail()
            return
        change(decode(spelling), spelling)

    def _new(self) -> tuple[list[int], Totals]:
        return [0], [accumulator(a.name, distinct=a.distinct, separator=a.separator) for a in self._select.aggregates]

    # --- the answer ---

    def rows(self) -> Iterator[Solution]:
        """One solution per group: its keys and what its aggregates are."""
        groups = self._groups
        if not self._keys and not groups:
            yield self._row((), self._new()[1])
            return
        for key, (_, totals) in groups.items():
            yield self._row(key, totals)

    def _row(self, key: tuple[str, ...], totals: Totals) -> Solution:
        row = {k: t for k, t in zip(self._keys, key, strict=True) if t}
        for call, total in zip(self._select.aggregates, totals, strict=True):
            try:
                found = total.result()
            except SparqlError:  # an aggregate that is an error leaves its variable unbound
                continue
            if found:
                row[call.variable] = found
        return row, TIMELESS_START, TIMELESS_END

    def _finish(self) -> Runner:
        """HAVING, the columns, ORDER BY, DISTINCT and LIMIT, as the backward evaluator does them."""
        select = self._select
        names = (*select.keys, *(a.variable for a in select.aggregates))
        rest = replace(select, pattern=alg.Table(names, ()), grouped=False, keys=(), aggregates=())

        def grouped(pattern: alg.Pattern, env: Env, registry: Registry) -> Runner:
            return lambda mu, run: self.rows()

        return compile_select(rest, Env(), self._registry, grouped)

    @property
    def _registry(self) -> Registry:
        return Registry(False, lambda inner: Prepared(inner, substitute=True))

    def solve(self, run: Run) -> list[Bindings]:
        """The rows of the answer."""
        return [mu for mu, _, _ in self._runner({}, run)]


class _Context:
    """What the expressions of a filter may ask: nothing that changes (the query is not volatile)."""

    now = 0

    def exists(self, pattern: alg.Pattern, mu: Bindings, start: int, end: int) -> bool:
        raise SparqlError("EXISTS cannot stand here")


def _matcher(pattern: alg.Triple) -> Callable[[Triple], Bindings | None]:
    nodes = (pattern.subject, pattern.predicate, pattern.object)

    def match(triple: Triple) -> Bindings | None:
        mu: Bindings = {}
        for node, found in zip(nodes, triple, strict=True):
            if isinstance(node, alg.Const):
                if node.term != found:
                    return None
            elif mu.setdefault(node.name, found) != found:
                return None
        return mu

    return match


def _plain(pattern: alg.Triple, steps: Any, select: alg.Select, operands: list[Any]) -> tuple[int, int] | None:
    """Where the key and the operand stand, when all there is is ``?key <p> ?value`` without filters."""
    if steps or not isinstance(pattern.predicate, alg.Const) or len(select.keys) > 1 or not operands:
        return None
    places = {n.name: i for i, n in ((0, pattern.subject), (2, pattern.object)) if isinstance(n, alg.Var)}
    if len(places) != 2 or len(set(operands)) != 1 or operands[0] not in places:
        return None
    if select.keys and select.keys[0] not in places:
        return None
    return places[select.keys[0]] if select.keys else -1, places[operands[0]]
