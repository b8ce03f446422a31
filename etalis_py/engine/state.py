"""What an engine remembers: goal stores, groups, closures, histories; and what the generated code asks of it.

The state of a node is found by the node's id, so that it survives when other programs come and go.  Solutions are
stored as they are used; a snapshot holds times and columns only, decoded values are made again when it is read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from etalis_compiler.rewrites.push_windows import longest
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.engine.backward import BackgroundSource, Clock, HistorySource, OccurrenceLog, Prepared, prepare
from etalis_py.engine.closure import PathClosure
from etalis_py.engine.frames import decode_or_none
from etalis_py.engine.grouping import Grouping
from etalis_py.engine.layout import Layout
from etalis_py.engine.lookups import Lookup, direct_lookup
from etalis_py.engine.running import Running
from etalis_py.engine.slicing import Slicing

Solution = tuple[Any, ...]
Buckets = dict[Any, list[Solution] | tuple[Solution, ...]]


class Because:
    """Why a solution holds: the rule (a node's id) and the provenance of its parts.

    ``event`` has the triple, its interval and stream as parts; ``background`` the triples (or the variables) found.
    """

    __slots__ = ("parts", "rule")

    def __init__(self, rule: str, parts: tuple[Any, ...]) -> None:
        self.rule = rule
        self.parts = parts

    def __lt__(self, other: object) -> bool:
        """Solutions are compared by their terms; where these are equal, either may come first."""
        return False


@dataclass(slots=True)
class Store:
    """The goals of one side of a node: who waits there, in which layout, and for how long."""

    number: int
    node: str
    side: str
    layout: Layout
    key: tuple[int, ...]
    longest: int | None
    buckets: Buckets = field(default_factory=dict)
    edges: dict[Any, Any] = field(default_factory=dict)
    """A number by key, beyond which no goal of the bucket lies (see ``joins``); what is missing can be found again."""
    waited: int = 0
    extend: Callable[[Solution], Solution] | None = None

    def key_of(self, x: Solution) -> Any:
        if not self.key:
            return None
        return x[self.key[0]] if len(self.key) == 1 else tuple(x[i] for i in self.key)

    def rebuild(self, x: Solution) -> Solution:
        """A stored solution with the values it carries decoded again."""
        made = rebuilt(self.layout, x)
        return made if self.extend is None else self.extend(made)

    def add(self, x: Solution) -> None:
        """Insert a goal that was read back."""
        key = self.key_of(x)
        self.edges.pop(key, None)
        bucket = self.buckets.get(key)
        if bucket is None:
            self.buckets[key] = (x,)
        elif isinstance(bucket, tuple):
            self.buckets[key] = [*bucket, x]
        else:
            bucket.append(x)

    def remove(self, x: Solution) -> None:
        """Retract a goal; its times and columns tell which."""
        width = self.layout.width
        key = self.key_of(x)
        bucket = self.buckets.get(key, ())
        for i, goal in enumerate(bucket):
            if goal[:width] == x[:width]:
                if len(bucket) == 1:
                    del self.buckets[key]
                    self.edges.pop(key, None)
                else:
                    del bucket[i]  # type: ignore[union-attr]
                return

    def live(self) -> int:
        return sum(map(len, self.buckets.values()))

    def sweep(self, now: int) -> int:
        """Drop expired goals and empty buckets; returns how many goals were dropped."""
        dropped = 0
        empty = []
        for key, bucket in self.buckets.items():
            if self.longest is not None and bucket and bucket[0][0] < now - self.longest:
                stale = bisect_left(bucket, (now - self.longest,))
                dropped += stale
                if isinstance(bucket, list):
                    del bucket[:stale]
                else:
                    bucket = ()
            if not bucket:
                empty.append(key)
        for key in empty:
            del self.buckets[key]
            self.edges.pop(key, None)
        return dropped

    def clear(self) -> None:
        self.buckets.clear()
        self.edges.clear()


def rebuilt(layout: Layout, x: Solution) -> Solution:
    """The solution with the decoded values of its layout; what it already has beyond its columns is kept last."""
    width = layout.width
    values = [decode_or_none(x[layout.column(name)]) for name in layout.values]
    return (*x[:width], *values, *x[width:])


def _found(pattern: alg.Pattern, mu: dict[str, str]) -> tuple[tuple[str, ...], ...]:
    """What a look-up found, for an explanation: the triples of a basic graph pattern, else variables and terms."""
    if not isinstance(pattern, alg.BGP):
        return tuple((name, term) for name, term in mu.items() if term)

    def term(node: alg.Var | alg.Const) -> str:
        return node.term if isinstance(node, alg.Const) else mu.get(node.name, "")

    return tuple((term(t.subject), term(t.predicate), term(t.object)) for t in pattern.triples)


class State:
    """All stores of an engine, by node."""

    def __init__(self, explain: bool = False) -> None:
        self.explain = explain
        self.because = Because
        self.nodes: dict[str, ir.Node] = {}
        self.layouts: dict[str, Layout] = {}
        self.late: frozenset[str] = frozenset()
        self.stores: dict[tuple[str, str], Store] = {}
        self.groups: dict[str, Grouping | Running] = {}
        self.closures: dict[str, PathClosure] = {}
        self.slices: dict[str, Slicing] = {}
        self.instant_sets: dict[str, set[Any]] = {}
        self.instant_dicts: dict[str, dict[Any, list[Solution]]] = {}
        self.journal: list[tuple[Any, ...]] | deque[tuple[Any, ...]] = []
        self.background: BackgroundSource
        self.log: OccurrenceLog | None = None
        self._numbers = 0
        self._looked: dict[alg.Pattern, Prepared] = {}

    # --- what generated code asks for ---

    def store(self, node: str, side: str, child: str, layout: Layout) -> Store:
        """The goal store of one side of a node, made on first use."""
        found = self.stores.get((node, side))
        if found is None:
            rule = self.nodes[node]
            assert isinstance(rule, (ir.Join, ir.Outer))
            waiting = rule.right if isinstance(rule, ir.Outer) or side == "H" else rule.left
            assert waiting is not None
            key = tuple(2 + waiting.columns.index(name) for name in rule.certain)
            bound = rule.bound
            oldest = None if bound is None else longest(bound)
            self._numbers += 1
            found = self.stores[(node, side)] = Store(self._numbers, node, side, layout, key, oldest)
        return found

    def instant_set(self, node: str) -> set[Any]:
        """A set that is emptied when the instant closes."""
        return self.instant_sets.setdefault(node, set())

    def instant_dict(self, node: str) -> dict[Any, list[Solution]]:
        """A dictionary that is emptied when the instant closes."""
        return self.instant_dicts.setdefault(node, {})

    def is_late(self, node: str) -> bool:
        """May solutions of this node end before the instant in which they are known?"""
        return node in self.late

    def lookup(self, pattern: alg.Pattern, known: tuple[str, ...], wanted: tuple[str, ...]) -> Lookup:
        """A function from the terms of ``known`` to the rows of ``wanted`` that the background holds."""
        prepared = prepare(pattern)
        state = self

        def look_up(terms: tuple[str, ...], t: int) -> list[tuple[str, ...]]:
            source = state.background
            mu = {name: value for name, value in zip(known, terms, strict=True) if value}
            return [tuple(found.get(name, "") for name in wanted) for found, _, _ in prepared.solve(mu, source, None)]

        if not self.explain:
            return direct_lookup(self.background.lasting, pattern, known, wanted, look_up) or look_up

        def explained(terms: tuple[str, ...], t: int) -> list[tuple[Any, ...]]:
            return [(*row, _found(pattern, dict(zip(wanted, row, strict=True)))) for row in look_up(terms, t)]

        return explained

    def minus_lookup(self, pattern: alg.Pattern, shared: tuple[str, ...]) -> Callable[[tuple[str, ...], int], bool]:
        """Does the background hold a compatible solution that shares a bound variable?"""
        prepared = prepare(pattern)
        state = self

        def look_up(terms: tuple[str, ...], t: int) -> bool:
            source = state.background
            mu = {name: value for name, value in zip(shared, terms, strict=True) if value}
            # The bindings prune the search; that a solution binds one of them itself is asked afterwards.
            bound_there = alg.certain(pattern)
            if bound_there & mu.keys():
                return next(iter(prepared.solve(mu, source, None)), None) is not None
            for found, _, _ in prepared.solve({}, source, None):
                if found.keys() & mu.keys() and all(found.get(k, v) == v for k, v in mu.items()):
                    return True
            return False

        return look_up

    def look_back(self, pattern: alg.Pattern, mu: dict[str, str], end: int, t: int) -> bool:
        """EXISTS, evaluated backwards over what has ended by ``end`` and the background."""
        prepared = self._looked.get(pattern)
        if prepared is None:
            prepared = self._looked[pattern] = prepare(pattern, substitute=True, timed=True)
        source = HistorySource(self.background, self.history)
        return prepared.holds({v: term for v, term in mu.items() if term}, source, end, Clock(t))

    @property
    def history(self) -> OccurrenceLog:
        """The occurrences so far, kept where something looks back at them."""
        if self.log is None:
            self.log = OccurrenceLog()
        return self.log

    # --- housekeeping ---

    def end_instant(self) -> None:
        for kept in self.instant_sets.values():
            kept.clear()
        for goals in self.instant_dicts.values():
            goals.clear()

    def live(self) -> int:
        """All goals, group members, path pairs and remembered occurrences."""
        return (
            sum(store.live() for store in self.stores.values())
            + sum(g.live() for g in self.groups.values())
            + sum(c.live() for c in self.closures.values())
            + (0 if self.log is None else len(self.log))
        )
