"""[RSEP] Definitions 3 to 10 and equations (1) to (11), read literally, over whole seconds.

With the reading that gives the paper's Example 10 and Figure 1: shared variables are substituted first; (10) and (11)
take the first or last E2 for each value of the shared variables; (9) takes the last E2 of all and the last E1 that is
compatible with it.  ≺ orders by end, then start.
"""

from __future__ import annotations

from dataclasses import dataclass

from etalis_compiler import ast

from tests.windows.literal.rspql import Item, Mu, Operator, matched, merge, number, seconds

Used = frozenset[tuple[str, tuple[str, str, str], int]]
Mapping = tuple[Mu, int, int, Used]


@dataclass(frozen=True)
class Window:
    """A window function on the stream (Definition 3)."""

    operator: Operator
    offset: int = 0

    def apply(self, stream: list[Item], t: int) -> list[Item]:
        """W(S, t): landmark, interval, or time-based with t' = ⌊t/β⌋·β."""
        o = self.operator
        if o.kind == "landmark":
            return [i for i in stream if o.a <= i.time <= t]
        if o.kind == "interval":
            return [i for i in stream if o.a <= i.time <= o.b and i.time <= t]
        at = t // o.b * o.b
        return [i for i in stream if at - o.a < i.time <= at]


def windows(query: ast.Query) -> dict[str, Window]:
    found = {}
    for clause in query.dataset:
        spec = clause.window
        if spec.kind == "landmark":
            found[clause.iri.spelling] = Window(Operator("landmark", number(spec.start)))
        elif spec.kind == "interval":
            found[clause.iri.spelling] = Window(Operator("interval", number(spec.start), number(spec.end)))
        else:
            slide = 1 if spec.slide is None else seconds(spec.slide)
            found[clause.iri.spelling] = Window(Operator("sliding", seconds(spec.range), slide))
    return found


class Matcher:
    """⟨⟨E⟩⟩ at one time after another; ``consuming`` is 𝒫^c or 𝒫^r (Definitions 8 to 10), else 𝒫^u."""

    def __init__(self, query: ast.Query, consuming: bool) -> None:
        self.windows = windows(query)
        self.events = {e.name: e for e in query.events}
        (match,) = query.where.elements
        self.pattern = match.pattern
        self.consuming = consuming
        self.used: set[tuple[str, tuple[str, str, str], int]] = set()

    def evaluate(self, stream: list[Item], t: int) -> list[Mapping]:
        found = self.event(self.pattern, stream, t, {}, None)
        if self.consuming:
            for _, _, _, used in found:
                self.used |= used
        return found

    def event(self, e: object, stream: list[Item], t: int, given: dict[str, str], below: int | None) -> list[Mapping]:
        """⟨⟨μ(E)⟩⟩ with the active window W⊔[0, below − 1]."""
        match e:
            case ast.EventName(name):
                return self.basic(self.events[name], stream, t, given, below)
            case ast.EventUnary("FIRST", inner):
                return first(self.event(inner, stream, t, given, below))
            case ast.EventUnary(_, inner):
                return last(self.event(inner, stream, t, given, below))
            case ast.EventSequence(left, right, "naive"):
                found = []
                for m2 in last(self.event(right, stream, t, given, below)):
                    substituted = {**given, **dict(m2[0])}
                    for m1 in last(self.event(left, stream, t, substituted, below)):
                        if before(m1, m2):
                            found.append(joined(m1, m2))
                return unique(found)
            case ast.EventSequence(left, right, policy):
                return unique(self.sequence(left, right, policy, stream, t, given, below))
        raise TypeError(e)

    def sequence(self, left, right, policy, stream, t, given, below):  # type: ignore[no-untyped-def]
        seconds_ = self.event(right, stream, t, given, below)

        def firsts(m2: Mapping) -> list[Mapping]:
            limit = m2[1] if below is None else min(below, m2[1])
            return self.event(left, stream, t, {**given, **dict(m2[0])}, limit)

        shared = self.variables(left) & self.variables(right)

        def same(m2: Mapping, m3: Mapping) -> bool:
            one, other = dict(m2[0]), dict(m3[0])
            return all(one[v] == other[v] for v in shared)

        found = []
        for m2 in seconds_:
            candidates = firsts(m2)
            if policy == "chronological":
                if any(same(m2, m3) and firsts(m3) and before(m3, m2) for m3 in seconds_):
                    continue
                candidates = first(candidates)
            elif policy == "recent":
                if any(same(m2, m3) and firsts(m3) and before(m2, m3) for m3 in seconds_):
                    continue
                candidates = last(candidates)
            found += [joined(m1, m2) for m1 in candidates]
        return found

    def variables(self, e: object) -> set[str]:
        return {
            n.name
            for name in (x.name for x in ast.walk(e) if isinstance(x, ast.EventName))
            for n in ast.walk(self.events[name].group)
            if isinstance(n, ast.Var)
        }

    def basic(self, declared, stream, t, given, below):  # type: ignore[no-untyped-def]
        """Equation (4), over what a consuming policy has left."""
        window = declared.window.spelling
        (block,) = declared.group.elements
        found = []
        for item in self.windows[window].apply(stream, t):
            if below is not None and item.time > below - 1:
                continue
            graph = [x for x in item.triples if (window, x, item.time) not in self.used]
            mappings: list[tuple[Mu, Used]] = [((), frozenset())]
            for p in block.patterns:
                mappings = [
                    (m, used | {(window, x, item.time)})
                    for mu, used in mappings
                    for x in graph
                    if (one := matched(p, x)) is not None and (m := merge(mu, one)) is not None
                ]
            for mu, used in mappings:
                if all(given.get(v, x) == x for v, x in mu):
                    found.append((mu, item.time, item.time, used))
        return unique(found)


def before(one: Mapping, other: Mapping) -> bool:
    """≺"""
    return (one[2], one[1]) < (other[2], other[1])


def first(found: list[Mapping]) -> list[Mapping]:
    return [m for m in found if not any(before(n, m) for n in found)]


def last(found: list[Mapping]) -> list[Mapping]:
    return [m for m in found if not any(before(m, n) for n in found)]


def joined(m1: Mapping, m2: Mapping) -> Mapping:
    mu = merge(m1[0], m2[0])
    assert mu is not None
    return mu, m1[1], m2[2], m1[3] | m2[3]


def unique(found: list[Mapping]) -> list[Mapping]:
    """A set of ⟨μ, t1, t2⟩; what each used is all that made it."""
    merged: dict[tuple[Mu, int, int], Used] = {}
    for mu, start, end, used in found:
        merged[mu, start, end] = merged.get((mu, start, end), frozenset()) | used
    return [(*key, used) for key, used in merged.items()]
