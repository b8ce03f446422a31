"""The meaning of patterns written down literally: bottom-up over whole lists of solutions, nothing passed sideways."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import product
from typing import Any

from etalis_rules.algebra import (
    BGP,
    AggregateCall,
    Chain,
    Choice,
    Const,
    Extend,
    Filter,
    GraphNames,
    Inverse,
    Join,
    Minus,
    NotAny,
    Outer,
    PathPattern,
    Repeated,
    Select,
    Step,
    SubSelect,
    Table,
    Triple,
    Union,
    Var,
    Within,
)
from etalis_rules.relations import Op, OuterOp
from etalis_rules.terms import XSD, literal

from etalis_py.knowledge.graph import Graph
from etalis_py.sparql import BackgroundSource, HistorySource, OccurrenceLog
from etalis_py.values.expressions import condition, term
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

Solution = tuple[dict[str, str], int, int]


@dataclass
class Small:
    """Background knowledge of a test."""

    default: Graph
    graphs: dict[str, Graph]
    version: int = 0

    def names(self) -> list[str]:
        return list(self.graphs)

    def graph(self, name: str) -> Graph:
        return self.graphs[name]


@dataclass
class Data:
    """Facts: triples with intervals (background ones timeless), and named graphs."""

    facts: list[tuple[str, str, str, int, int]]
    named: dict[str, list[tuple[str, str, str]]]

    def knowledge(self) -> Small:
        default = [f[:3] for f in self.facts if f[4] == TIMELESS_END]
        return Small(Graph(default), {g: Graph(ts) for g, ts in self.named.items() if ts})

    def source(self) -> HistorySource:
        log = OccurrenceLog()
        for s, p, o, a, b in sorted((f for f in self.facts if f[4] != TIMELESS_END), key=lambda f: f[4]):
            log.add(a, b, [(s, p, o)])
        return HistorySource(BackgroundSource(self.knowledge()), log)

    def upto(self, at: int | None) -> Data:
        return Data([f for f in self.facts if at is None or f[4] <= at], self.named)

    def seen_from(self, graph: str | None) -> list[tuple[str, str, str, int, int]]:
        if graph is None:
            return self.facts
        return [(*t, TIMELESS_START, TIMELESS_END) for t in self.named.get(graph, ())]


def compatible(a: dict[str, str], b: dict[str, str]) -> bool:
    return all(b.get(v, t) == t for v, t in a.items())


def combine(a: Solution, b: Solution) -> Solution:
    return {**a[0], **b[0]}, min(a[1], b[1]), max(a[2], b[2])


def timeless(a: Solution) -> bool:
    return a[2] == TIMELESS_END


def before(a: Solution, b: Solution) -> bool:
    return timeless(a) or timeless(b) or a[2] < b[1]


def equal(a: Solution, b: Solution) -> bool:
    return timeless(a) or timeless(b) or a[1:] == b[1:]


def not_after(a: Solution, b: Solution) -> bool:
    return timeless(a) or timeless(b) or a[2] <= b[2]


@dataclass
class Definitions:
    """The bottom-up meaning of patterns over the data; the context of its expressions."""

    data: Data
    now: int = 0

    def exists(self, pattern: Any, mu: dict[str, str], start: int, end: int) -> bool:
        outer = (mu, start, end)
        return any(compatible(s[0], mu) and not_after(s, outer) for s in self.of(substitute(pattern, mu)))

    def holds(self, conditions: tuple[Any, ...], s: Solution) -> bool:
        return all(condition(c)(*s, self) for c in conditions)

    def of(self, pattern: Any) -> list[Solution]:
        match pattern:
            case BGP(triples, _, graph):
                return self.in_graphs(graph, lambda facts, _: self.block(triples, facts), ())
            case PathPattern(subject, path, object_, _, graph):
                item = (subject, object_)
                return self.in_graphs(graph, lambda facts, ends: self.path(item, path, facts, ends), item)
            case GraphNames(graph):
                rows = [{"": g} for g, ts in self.data.named.items() if ts]
                found = [bind({}, ((graph, r[""]),)) for r in rows]
                return [(mu, TIMELESS_START, TIMELESS_END) for mu in found if mu is not None]
            case Table(names, rows):
                bound = [{v: t for v, t in zip(names, row, strict=True) if t} for row in rows]
                return [(mu, TIMELESS_START, TIMELESS_END) for mu in bound]
            case Join(Op.AND, left, right):
                return self.pairs(left, right, lambda a, b: True)
            case Join(Op.SEQ, left, right):
                return self.pairs(left, right, before)
            case Join(Op.EQUALS, left, right):
                return self.pairs(left, right, equal)
            case Union(left, right):
                return self.of(left) + self.of(right)
            case Outer(OuterOp.OPTIONAL, left, right, conditions):
                return self.outer(left, right, conditions, lambda m, o: not_after(o, m))
            case Outer(OuterOp.EQUALSOPTIONAL, left, right, conditions):
                return self.outer(left, right, conditions, equal)
            case Outer(OuterOp.OPTIONALSEQ, left, right, conditions):
                return self.outer(left, right, conditions, lambda m, o: before(o, m))
            case Minus(left, right, counted):
                others = self.of(right)
                return [s for s in self.of(left) if not any(self.removes(o, s, counted) for o in others)]
            case Filter(child, conditions):
                return [s for s in self.of(child) if self.holds(conditions, s)]
            case Extend(child, variable, expression):
                return [self.extended(s, variable, expression) for s in self.of(child)]
            case Within(child, bound):
                return [s for s in self.of(child) if timeless(s) or s[2] - s[1] <= bound.micros]
            case SubSelect(select):
                return self.selected(select)
        raise TypeError(pattern)

    def in_graphs(self, graph: Any, evaluate: Any, item: tuple[Any, ...]) -> list[Solution]:
        constants = frozenset(n.term for n in item if isinstance(n, Const))
        if isinstance(graph, Const) and not self.data.named.get(graph.term):
            return []  # [SPARQL 1.1] §18.6: no graph of that name
        if graph is None or isinstance(graph, Const):
            return evaluate(self.data.seen_from(graph and graph.term), constants)
        found = []
        for g, ts in self.data.named.items():
            if not ts:
                continue
            for mu, a, b in evaluate(self.data.seen_from(g), constants):
                if mu.get(graph.name, g) == g:
                    found.append(({**mu, graph.name: g}, a, b))
        return found

    def block(self, triples: tuple[Triple, ...], facts: list[Any]) -> list[Solution]:
        found = {}
        for chosen in product(facts, repeat=len(set(triples))):
            mu: dict[str, str] | None = {}
            for t, f in zip(dict.fromkeys(triples), chosen, strict=True):
                mu = mu if mu is None else bind(mu, ((t.subject, f[0]), (t.predicate, f[1]), (t.object, f[2])))
            if mu is not None:
                a = min((f[3] for f in chosen), default=TIMELESS_START)
                b = max((f[4] for f in chosen), default=TIMELESS_END)
                found[(frozenset(mu.items()), a, b)] = (mu, a, b)
        return list(found.values())

    def path(self, item: tuple[Any, Any], path: Any, facts: list[Any], constants: frozenset[str]) -> list[Solution]:
        rows = links(path, facts, constants)
        found = [(bind({}, ((item[0], x), (item[1], y))), a, b) for x, y, a, b in rows]
        return [(mu, a, b) for mu, a, b in found if mu is not None]

    def pairs(self, left: Any, right: Any, related: Any) -> list[Solution]:
        lefts, rights = self.of(left), self.of(right)
        return [combine(a, b) for a in lefts for b in rights if compatible(a[0], b[0]) and related(a, b)]

    def outer(self, mandatory: Any, optional: Any, conditions: Any, related: Any) -> list[Solution]:
        found, others = [], self.of(optional)
        for m in self.of(mandatory):
            partners = [combine(m, o) for o in others if compatible(m[0], o[0]) and related(m, o)]
            found += [c for c in partners if self.holds(conditions, c)] or [m]
        return found

    def removes(self, o: Solution, s: Solution, counted: tuple[str, ...]) -> bool:
        own = {v: t for v, t in s[0].items() if v in counted}
        return compatible(own, o[0]) and not_after(o, s) and bool(own.keys() & o[0].keys())

    def extended(self, s: Solution, variable: str, expression: Any) -> Solution:
        value = term(expression)(*s, self)
        return ({**s[0], variable: value} if value else s[0], s[1], s[2])

    def selected(self, select: Select) -> list[Solution]:
        rows = self.of(select.pattern)
        if select.grouped:
            groups: dict[Any, list[Solution]] = {} if select.keys else {(): []}
            for s in rows:
                groups.setdefault(tuple(s[0].get(k, "") for k in select.keys), []).append(s)
            rows = []
            for key, members in groups.items():
                mu = {k: t for k, t in zip(select.keys, key, strict=True) if t}
                for call in select.aggregates:
                    mu[call.variable] = literal(str(count(call, members)), XSD + "integer")
                rows.append((mu, TIMELESS_START, TIMELESS_END))
        rows = [({v: t for v, t in mu.items() if v in select.variables}, a, b) for mu, a, b in rows]
        if select.distinct:
            rows = list({(frozenset(mu.items()), a, b): (mu, a, b) for mu, a, b in rows}.values())
        if select.order:
            rows.sort(key=lambda s: [by_kind(s[0].get(k.expression.name, "")) for k in select.order])  # type: ignore[union-attr]
        return rows[select.offset :][: select.limit]


def by_kind(t: str) -> tuple[int, str]:
    """Unbound, IRIs, one-digit integers."""
    return (0 if not t else 1 if t[0] == "<" else 2, t)


def count(call: AggregateCall, members: list[Solution]) -> int:
    if call.operand is None:
        return len(members)
    terms = [m[0][call.operand.name] for m in members if call.operand.name in m[0]]  # type: ignore[union-attr]
    return len(set(terms) if call.distinct else terms)


def bind(mu: dict[str, str], pairs: Any) -> dict[str, str] | None:
    mu = dict(mu)
    for node, t in pairs:
        if (node.term if isinstance(node, Const) else mu.setdefault(node.name, t)) != t:
            return None
    return mu


def links(path: Any, facts: list[Any], constants: frozenset[str]) -> list[tuple[str, str, int, int]]:
    """The pairs of a path; sets but for chains, alternatives and negated sets."""
    match path:
        case Step(iri):
            return [(s, o, a, b) for s, p, o, a, b in facts if p == iri]
        case NotAny(iris):
            return [(s, o, a, b) for s, p, o, a, b in facts if p not in iris]
        case Inverse(inner):
            return [(y, x, a, b) for x, y, a, b in links(inner, facts, constants)]
        case Choice(first, second):
            return links(first, facts, constants) + links(second, facts, constants)
        case Chain(first, second):
            return composed(links(first, facts, constants), links(second, facts, constants))
        case Repeated(inner, minimum, many):
            step = set(links(inner, facts, constants))
            found = set(step)
            while many and (more := set(composed(list(found), list(step))) - found):
                found |= more
            if minimum == 0:
                found |= {(n, n, a, b) for s, _, o, a, b in facts for n in (s, o) if n not in constants}
                found |= {(c, c, TIMELESS_START, TIMELESS_END) for c in constants}
            return list(found)
    raise TypeError(path)


def composed(first: list[Any], second: list[Any]) -> list[Any]:
    return [(x, z, min(a, c), max(b, d)) for x, y, a, b in first for y2, z, c, d in second if y == y2]


def substitute(node: Any, mu: dict[str, str]) -> Any:
    """SPARQL 1.1 §18.6 ``substitute``: variables become terms, but for targets of BIND, VALUES and projections."""
    match node:
        case Var(name):
            return Const(mu[name]) if name in mu else node
        case Table():
            return node
        case tuple():
            return tuple(substitute(part, mu) for part in node)
        case Select():
            mu = {v: t for v, t in mu.items() if v in node.variables}
    if hasattr(node, "__dataclass_fields__"):
        return type(node)(**{f.name: substitute(getattr(node, f.name), mu) for f in fields(node)})
    return node
