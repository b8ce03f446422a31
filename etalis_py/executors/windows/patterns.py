"""Event patterns over windows ([RSEP] §4.2 to §4.4).

An event mapping is ⟨μ, start, end⟩ with the occurrences it was made from.  ≺ orders by end, then start.  The printed
equations have to be read as follows to give the paper's own Example 10 and Figure 1:

* the variables that two patterns share are substituted first, as in (7);
* (10) and (11) take the first or last E2 for each value of the shared variables;
* (9) takes the last E2 of all, and the last E1 that is compatible with it.

Consumption (§4.4): an occurrence ⟨triple, time⟩ of a window that took part in a result of the pattern is consumed for
this pattern at later evaluation times.

Cost of an evaluation: the mappings of every basic event (an item is matched once, while it is in the window), and for
each mapping of a right side a look-up among those of its left side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from etalis_compiler.rsp.plan import Basic, EventExpr, First, Last, Sequence, event_variables, event_windows
from etalis_rules import algebra as alg

from etalis_py.events import Event, Triple
from etalis_py.executors.windows.content import Content
from etalis_py.knowledge.graph import Graph
from etalis_py.sparql import BackgroundSource, ExpressionClock, Prepared, prepare

Occurrence = tuple[str, Triple, int]
"""A triple of a window at a time: what is consumed."""

CONSUMING = ("chronological", "recent")


class EventMapping(NamedTuple):
    """⟨μ, start, end⟩ and the occurrences it is made of."""

    mu: dict[str, str]
    start: int
    end: int
    used: frozenset[Occurrence]


class OneItem:
    """The graph of a single item, as knowledge to evaluate a pattern over."""

    version = 0

    def __init__(self, item: Event) -> None:
        self.default = Graph(item.triples)

    def names(self) -> Iterable[str]:
        return ()

    def graph(self, name: str) -> Graph:
        return Graph()


def precedes(one: EventMapping, other: EventMapping) -> bool:
    """≺: earlier end, or the same end and earlier start."""
    return (one.end, one.start) < (other.end, other.start)


class EventMatcher:
    """Evaluates one MATCH at its evaluation times; remembers what a consuming policy has consumed."""

    def __init__(self, pattern: EventExpr, consumption: str = "unrestricted") -> None:
        self.pattern = pattern
        self.windows = event_windows(pattern)
        self.consuming = consumption in CONSUMING
        self.consumed: set[Occurrence] = set()
        self._basics: dict[Basic, Prepared] = {}
        self._solved: dict[tuple[Basic, Event], list[EventMapping]] = {}
        self._collect(pattern)

    def _collect(self, event: EventExpr) -> None:
        match event:
            case Basic(_, pattern):
                if self.consuming and alg.plain_triples(pattern) is None:
                    raise ValueError(
                        "a consuming policy needs to know which triples an event uses: write the events of MATCH as "
                        "triple patterns with FILTERs, without OPTIONAL, UNION, MINUS or paths"
                    )
                self._basics[event] = prepare(pattern)
            case First(inner) | Last(inner):
                self._collect(inner)
            case Sequence(left, right, _):
                self._collect(left)
                self._collect(right)

    def evaluate(self, windows: Mapping[str, Content], t: int) -> list[EventMapping]:
        """⟨⟨E⟩⟩ at t; under a consuming policy the occurrences used are consumed."""
        items = {name: windows[name].items() for name in self.windows}
        solved: dict[tuple[Basic, Event], list[EventMapping]] = {}
        basics: dict[Basic, list[EventMapping]] = {}
        for event, prepared in self._basics.items():
            unused: list[EventMapping] = []
            for item in items[event.window]:
                key = (event, item)
                mappings = self._solved.get(key)
                if mappings is None:
                    mappings = _in_item(event, prepared, item, t)
                solved[key] = mappings
                unused += mappings
            if self.consuming:
                unused = [m for m in unused if not m.used & self.consumed]
            basics[event] = list(_distinct(unused))
        self._solved = solved
        results = _Evaluation(basics).solve(self.pattern, None, {})
        if self.consuming:
            self._consume(results, items)
        return results

    def _consume(self, results: list[EventMapping], items: Mapping[str, list[Event]]) -> None:
        for mapping in results:
            self.consumed |= mapping.used
        # an occurrence that has left its window cannot come back
        first = {name: held[0].end if held else None for name, held in items.items()}
        self.consumed = {o for o in self.consumed if (low := first[o[0]]) is not None and o[2] >= low}


def _in_item(event: Basic, prepared: Prepared, item: Event, t: int) -> list[EventMapping]:
    """[RSEP] (4): the solutions of the pattern in the graph of one item."""
    triples = alg.plain_triples(event.pattern) or ()
    mappings = []
    for mu, _, _ in prepared.solve({}, BackgroundSource(OneItem(item)), None, ExpressionClock(t)):
        used = frozenset((event.window, alg.triple_in(mu, triple), item.end) for triple in triples)
        shown = {v: x for v, x in mu.items() if alg.is_visible(v)}
        mappings.append(EventMapping(shown, item.start, item.end, used))
    return mappings


def _distinct(mappings: Iterable[EventMapping]) -> Iterable[EventMapping]:
    """Event mappings are a set of ⟨μ, start, end⟩; one made from several occurrences uses them all."""
    merged: dict[object, EventMapping] = {}
    for m in mappings:
        key = (frozenset(m.mu.items()), m.start, m.end)
        old = merged.get(key)
        merged[key] = m if old is None else old._replace(used=old.used | m.used)
    return merged.values()


class _Evaluation:
    """One evaluation: the mappings of the basic events come first, the rest follows from them."""

    def __init__(self, basics: dict[Basic, list[EventMapping]]) -> None:
        self._basics = basics
        self._indexes: dict[tuple[Basic, tuple[str, ...]], dict[tuple[str, ...], list[EventMapping]] | None] = {}

    def solve(self, event: EventExpr, below: int | None, given: Mapping[str, str]) -> list[EventMapping]:
        """⟨⟨μ(E)⟩⟩ over the items that end before ``below``; ``given`` is μ."""
        match event:
            case Basic():
                mappings = self._lookup(event, given)
                return [m for m in mappings if below is None or m.end < below]
            case First(inner):
                return _first(self.solve(inner, below, given))
            case Last(inner):
                return _last(self.solve(inner, below, given))
            case Sequence(left, right, policy):
                return list(_distinct(self._sequence(left, right, policy, below, given)))
        raise TypeError(f"not an event pattern: {event!r}")

    def _lookup(self, event: Basic, given: Mapping[str, str]) -> list[EventMapping]:
        mappings = self._basics[event]
        names = tuple(sorted(v for v in event_variables(event) if v in given))
        if not names:
            return mappings
        key = (event, names)
        if key not in self._indexes:
            index: dict[tuple[str, ...], list[EventMapping]] | None = {}
            for m in mappings:
                if any(v not in m.mu for v in names):
                    index = None  # an OPTIONAL left one unbound: compatible with everything
                    break
                index.setdefault(tuple([m.mu[v] for v in names]), []).append(m)  # type: ignore[union-attr]
            self._indexes[key] = index
        index = self._indexes[key]
        if index is not None:
            return index.get(tuple([given[v] for v in names]), [])
        return [m for m in mappings if all(m.mu.get(v, given[v]) == given[v] for v in names)]

    def _sequence(
        self, left: EventExpr, right: EventExpr, policy: str, below: int | None, given: Mapping[str, str]
    ) -> list[EventMapping]:
        if policy == "naive":  # (9)
            results = []
            for second in self.solve(Last(right), below, given):
                for first in self.solve(Last(left), below, {**given, **second.mu}):
                    if precedes(first, second):
                        results.append(_joined(first, second))
            return results
        pairs = []
        for second in self.solve(right, below, given):
            before = second.start if below is None else min(below, second.start)
            firsts = self.solve(left, before, {**given, **second.mu})
            if firsts:
                pairs.append((second, firsts))
        if policy == "unrestricted":  # (7)
            return [_joined(first, second) for second, firsts in pairs for first in firsts]
        chosen = _first if policy == "chronological" else _last  # (10), (11)
        shared = sorted(event_variables(left) & event_variables(right))
        groups: dict[tuple[str, ...], list[tuple[EventMapping, list[EventMapping]]]] = {}
        for second, firsts in pairs:
            groups.setdefault(tuple([second.mu.get(v, "") for v in shared]), []).append((second, firsts))
        results = []
        for group in groups.values():
            kept = {id(m) for m in chosen([second for second, _ in group])}
            for second, firsts in group:
                if id(second) in kept:
                    results += [_joined(first, second) for first in chosen(firsts)]
        return results


def _joined(first: EventMapping, second: EventMapping) -> EventMapping:
    return EventMapping({**first.mu, **second.mu}, first.start, second.end, first.used | second.used)


def _first(mappings: list[EventMapping]) -> list[EventMapping]:
    """[RSEP] (5): those that no other precedes."""
    if not mappings:
        return []
    least = min((m.end, m.start) for m in mappings)
    return [m for m in mappings if (m.end, m.start) == least]


def _last(mappings: list[EventMapping]) -> list[EventMapping]:
    """[RSEP] (6): those that precede no other."""
    if not mappings:
        return []
    greatest = max((m.end, m.start) for m in mappings)
    return [m for m in mappings if (m.end, m.start) == greatest]
