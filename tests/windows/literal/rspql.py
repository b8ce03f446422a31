"""[RSPQL] Definitions 12 to 24, read literally.

Two readings are taken, both stated by the design: the present window of Definition 13 is the oldest one with
o < t ≤ c (Example 7 and Table 1 need it), and content change means that an item entered the content since the last
time at which the clock's part of the policy held; non-empty content alone is looked at when an item enters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from etalis_compiler import ast

Triple = tuple[str, str, str]
Mu = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Item:
    """(d, t) of Definition 9, with several statements at once."""

    time: int
    triples: tuple[Triple, ...]
    stream: str


Stream = list[Item]


@dataclass(frozen=True)
class Operator:
    """𝕎 of Definition 13, or a landmark or interval window of [RSEP] §3.2."""

    kind: str
    a: int  # α, or the first time
    b: int = 0  # β, or the last time
    t0: int = 0
    offset: int = 0  # a sliding window shows what it held so much earlier (SPARQLstream's NOW - a TO NOW - b)

    def windows(self, horizon: int) -> list[tuple[int, int]]:
        """W_1, W_2, …: (o, c] from t0 on, every β, each α wide."""
        return [(o, o + self.a) for o in range(self.t0, horizon + 1, self.b)]

    def present(self, now: int) -> tuple[int, int] | None:
        """The present window: the oldest that is open."""
        now -= self.offset
        for o, c in self.windows(now):
            if o < now <= c:
                return o, c
        return None

    def holds(self, t: int, now: int) -> bool:
        """Whether an item at t is in the content at now."""
        if t > now - self.offset:
            return False
        if self.kind == "landmark":
            return self.a <= t
        if self.kind == "interval":
            return self.a <= t <= self.b
        found = self.present(now)
        return found is not None and found[0] < t

    def closes(self, now: int) -> bool:
        if self.kind == "sliding":
            return any(c + self.offset == now for _, c in self.windows(now))
        return self.kind == "interval" and now == self.b

    def opening(self, now: int) -> int | None:
        if self.kind != "sliding":
            return self.a
        found = self.present(now)
        return None if found is None else found[0]


@dataclass(frozen=True)
class Query:
    """(SE, SDS, ET, QF): the named windows, the patterns over them, the policy, the operator, the projection.

    ``policies`` must hold for one window together, each of ``of`` (policy, window) for the window it names.
    """

    windows: dict[str, tuple[Operator, str]]
    patterns: list[tuple[str, tuple[ast.TriplePattern, ...]]]
    policies: frozenset[str]
    of: frozenset[tuple[str, str]]
    period: int
    times: frozenset[int]
    r2s: str
    variables: tuple[str, ...]


def seconds(duration: ast.Duration) -> int:
    found = re.fullmatch(r"PT(\d+)S", duration.lexical)
    assert found is not None
    return int(found[1])


def number(term: ast.Expression) -> int:
    assert isinstance(term, ast.Term)
    return int(term.spelling.split('"')[1])


def read(query: ast.Query) -> Query:
    windows = {}
    for clause in query.dataset:
        spec = clause.window
        assert spec is not None
        assert clause.source is not None
        if spec.kind == "landmark":
            operator = Operator("landmark", number(spec.start))
        elif spec.kind == "interval":
            operator = Operator("interval", number(spec.start), number(spec.end))
        else:
            t0 = 0 if spec.t0 is None else number(spec.t0)
            offset = 0 if spec.offset is None else seconds(spec.offset)
            operator = Operator("sliding", seconds(spec.range), seconds(spec.slide or spec.range), t0, offset)
        windows[clause.iri.spelling] = (operator, clause.source.spelling)
    patterns = []
    for group in query.where.elements:
        assert isinstance(group, ast.WindowGroup)
        (block,) = group.group.elements
        patterns.append((group.window.spelling, block.patterns))
    report = query.report
    never_close = all(operator.kind == "landmark" for operator, _ in windows.values())
    usual = ("CC",) if never_close else ("WC", "NC")  # where a query says nothing
    items = report.items if report else tuple(map(ast.ReportItem, usual))
    return Query(
        windows,
        patterns,
        frozenset(i.kind for i in items if i.window is None),
        frozenset((i.kind, i.window.spelling) for i in items if i.window is not None),
        max((seconds(i.period) for i in items if i.period is not None), default=0),
        frozenset(number(t) for i in items for t in i.times),
        query.r2s or "RSTREAM",
        tuple(p.variable.name for p in query.form.projections),
    )


# --- SPARQL over instantaneous graphs (Definitions 3, 4, 16 to 19) ---


def merge(one: Mu, other: Mu) -> Mu | None:
    """merge(μ1, μ2) of Definition 4, if they are compatible."""
    left, right = dict(one), dict(other)
    if any(left[v] != right[v] for v in left.keys() & right.keys()):
        return None
    return tuple(sorted({**left, **right}.items()))


def join(one: list[Mu], other: list[Mu]) -> list[Mu]:
    return [m for a in one for b in other if (m := merge(a, b)) is not None]


def bgp(graph: set[Triple], patterns: tuple[ast.TriplePattern, ...]) -> list[Mu]:
    """Every μ with μ(P) ⊆ G."""
    found: list[Mu] = [()]
    for p in patterns:
        one = []
        for triple in sorted(graph):
            mu = matched(p, triple)
            if mu is not None:
                one.append(mu)
        found = join(found, one)
    return sorted(set(found))


def matched(p: ast.TriplePattern, triple: Triple) -> Mu | None:
    mu: dict[str, str] = {}
    for node, term in zip((p.subject, p.predicate, p.object), triple, strict=True):
        if isinstance(node, ast.Term):
            if node.spelling != term:
                return None
        elif mu.setdefault(node.name, term) != term:
            return None
    return tuple(sorted(mu.items()))


# --- continuous evaluation (Definitions 13, 14, 18, 20 to 24) ---


def content(query: Query, name: str, stream: Stream, now: int) -> list[Item]:
    operator, source = query.windows[name]
    return [i for i in stream if i.stream == source and operator.holds(i.time, now)]


def answer(query: Query, stream: Stream, now: int) -> list[tuple[str, ...]]:
    """Ψ(t): eval(SDS(G), SE, t), projected."""
    solutions: list[Mu] = [()]
    for name, patterns in query.patterns:
        graph = {t for i in content(query, name, stream, now) for t in i.triples}
        solutions = join(solutions, bgp(graph, patterns))
    return sorted(tuple(dict(mu)[v] for v in query.variables) for mu in solutions)


def evaluation_times(query: Query, stream: Stream) -> Iterator[int]:
    """ET (Definition 23): every second from the first item on is tried."""
    first = min(i.time for i in stream)
    clocked = {w for p, w in query.of if p == "WC"} | (set(query.windows) if "WC" in query.policies else set())
    kinds = query.policies | {p for p, _ in query.of}
    checked: dict[str, set[Item]] = {name: set() for name in query.windows}
    for now in range(first, end_of_time(query, stream) + 1):
        if "P" in query.policies and now % query.period:
            continue
        if "AT" in query.policies and now not in query.times:
            continue
        conditions: dict[str, dict[str, bool]] = {}
        came: dict[str, set[Item]] = {}
        for name, (operator, _) in query.windows.items():
            held = set(content(query, name, stream, now))
            came[name] = held | checked[name]
            conditions[name] = {"WC": operator.closes(now), "NC": bool(held), "CC": bool(held - checked[name])}
        free = query.policies & {"WC", "NC", "CC"}
        met = not free or any(all(of[p] for p in free) for of in conditions.values())
        met &= all(conditions[w][p] for p, w in query.of)
        if kinds == {"NC"}:
            met &= any(of["CC"] for of in conditions.values())
        if met or not clocked or any(conditions[w]["WC"] for w in clocked):
            checked = came
        if met:
            yield now


def end_of_time(query: Query, stream: Stream) -> int:
    """After the last item, time runs until no window holds anything that has not been reported."""
    last = []
    for operator, source in query.windows.values():
        for item in stream:
            if item.stream != source or not any(operator.holds(item.time, t) for t in range(item.time, item.time + 50)):
                continue
            last.append(item.time)
            if operator.kind == "sliding":
                last += [c + operator.offset for o, c in operator.windows(item.time) if o < item.time <= c]
            elif operator.kind == "interval":
                last.append(operator.b)
    last += query.times
    end = max(last, default=-1)
    if "P" in query.policies and end >= 0:
        while end % query.period:
            end += 1
    return max(end, *(i.time for i in stream), 0)


def run(query: Query, stream: Stream) -> list[tuple[int, int, list[tuple[str, ...]]]]:
    """Ans(Q) of Definition 24: for each t ∈ ET the time, the opening of the earliest window, and the rows."""
    result = []
    before: list[tuple[str, ...]] = []
    for now in evaluation_times(query, stream):
        psi = answer(query, stream, now)
        match query.r2s:
            case "RSTREAM":
                rows = psi
            case "ISTREAM":
                rows = [mu for mu in psi if mu not in before]
            case _:
                rows = sorted({mu for mu in before if mu not in psi})
        before = psi
        openings = [o for operator, _ in query.windows.values() if (o := operator.opening(now)) is not None]
        result.append((now, min(openings, default=now), rows))
    return result
