"""Facts: what holds from one event until another ([REQ], TEF-SPARQL).

    Axel enter RoomA, [2]     Axel isIn RoomA holds from 2 on
    Axel leave RoomA, [6]     … until 6: an occurrence with the interval [2, 6]

The definition is ``etalis_compiler.rsp.plan.Fact``.  Within an instant, facts end before others begin, so a person who
leaves and enters a room at once is in it afterwards.

Cost of an item: its own solutions, and for each the facts it begins or ends, found by their values.  State: the facts
that hold, and the items that may change them and wait for their instant to be over (in a window: for its next
evaluation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from etalis_compiler.rsp import Current, Fact, WindowUse
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.events import Event, Triple
from etalis_py.executors.windows.content import Content
from etalis_py.executors.windows.patterns import OneItem
from etalis_py.executors.windows.times import canonical
from etalis_py.kernel.batch import Row
from etalis_py.kernel.position import event_of
from etalis_py.kernel.shapes import Shape
from etalis_py.kernel.templates import template_triples
from etalis_py.sparql import BackgroundSource, ExpressionClock, Prepared, prepare

Key = tuple[str, ...]
Since = tuple[int, int]
"""The start and the end of the SINCE that made a fact hold."""


@dataclass(frozen=True, slots=True)
class Held:
    """Why a fact is reported: the SINCE that began and the TILL that ended it."""

    query: str
    since: int | str
    till: int | str

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--explain-matches`` writes."""
        return {"query": self.query, "since": self.since, "till": self.till}

    def __str__(self) -> str:
        return f"{self.query} held from the SINCE that began at {self.since} until the TILL that ended at {self.till}"


class OpenFacts:
    """The facts of one definition that hold now."""

    def __init__(self, fact: Fact) -> None:
        self.fact = fact
        self.open: dict[Key, Since] = {}
        self._make = template_triples(output_of(fact), fact.keys, None)
        self._since = [_Solver(pattern) for pattern in fact.since]
        self._till = [(_Solver(p), tuple(k for k in fact.keys if k in alg.certain(p))) for p in fact.till]
        # for variables that a TILL leaves unbound: the keys of the facts by the values that it binds
        self._by: dict[tuple[str, ...], dict[Key, dict[Key, None]]] = {
            names: {} for _, names in self._till if names != fact.keys
        }

    def concerns(self, item: Event) -> bool:
        """Whether the item may begin or end a fact."""
        predicates = {triple[1] for triple in item.triples}
        return any(solver.needed <= predicates for solver in (*self._since, *(till for till, _ in self._till)))

    def instant(self, t: int, items: list[Event]) -> tuple[list[tuple[Key, Since]], list[Key]]:
        """Process all items that end at ``t``: the facts that they end, and the keys of those that they begin."""
        items = canonical(items)  # if two begin a fact, the one that started first counts
        ended: list[tuple[Key, Since]] = []
        for solver, names in self._till:
            for item in items:
                for mu in solver.solve(item, t):
                    for key in self._meant(names, mu):
                        ended.append((key, self._close(key)))
        begun = []
        for since in self._since:
            for item in items:
                for mu in since.solve(item, t):
                    key = tuple([mu[k] for k in self.fact.keys])
                    if key not in self.open:
                        self.begin(key, (item.start, item.end))
                        begun.append(key)
        return ended, begun

    def begin(self, key: Key, held: Since) -> None:
        self.open[key] = held
        for names, index in self._by.items():
            index.setdefault(self._part(names, key), {})[key] = None

    def _close(self, key: Key) -> Since:
        for names, index in self._by.items():
            part = self._part(names, key)
            del index[part][key]
            if not index[part]:
                del index[part]
        return self.open.pop(key)

    def _part(self, names: tuple[str, ...], key: Key) -> Key:
        return tuple([x for k, x in zip(self.fact.keys, key, strict=True) if k in names])

    def _meant(self, names: tuple[str, ...], mu: Mapping[str, str]) -> list[Key]:
        """The facts that hold and are compatible with the solution of a TILL."""
        given = tuple([mu[k] for k in names])
        if names == self.fact.keys:
            return [given] if given in self.open else []
        rest = [k for k in self.fact.keys if k in mu and k not in names]  # bound by an OPTIONAL
        keys = []
        for key in self._by[names].get(given, ()):
            values = dict(zip(self.fact.keys, key, strict=True))
            if all(values[k] == mu[k] for k in rest):
                keys.append(key)
        return keys

    def triples(self, key: Key) -> tuple[Triple, ...]:
        """The triples of the fact."""
        return self._make((0, 0, *key))

    def snapshot(self) -> list[Any]:
        return [[list(key), list(held)] for key, held in self.open.items()]

    def restore(self, state: list[Any]) -> None:
        self.open.clear()
        for index in self._by.values():
            index.clear()
        for key, (start, end) in state:
            self.begin(tuple(key), (start, end))


def output_of(fact: Fact) -> ir.Output:
    """The output that describes the query's matches."""
    return ir.Output(
        fact.name, "construct", None, None, fact.keys, template=fact.template, stream=fact.feeds, identity=fact.identity
    )


class _Solver:
    """The solutions of a pattern in one item."""

    def __init__(self, pattern: alg.Pattern) -> None:
        self._prepared: Prepared = prepare(pattern)
        predicates = (alg.constant_of(triple.predicate) for triple in alg.plain_triples(pattern) or ())
        self.needed = {predicate for predicate in predicates if predicate}

    def solve(self, item: Event, t: int) -> list[dict[str, str]]:
        if not self.needed <= {triple[1] for triple in item.triples}:
            return []
        solutions = self._prepared.solve({}, BackgroundSource(OneItem(item)), None, ExpressionClock(t))
        return [mu for mu, _, _ in solutions]


def instants(waiting: list[Event], t: int) -> tuple[list[tuple[int, list[Event]]], list[Event]]:
    """The instants up to ``t`` among items in order of their ends, and the items after them."""
    over = [item for item in waiting if item.end <= t]
    later = waiting[len(over) :]
    return [(end, list(items)) for end, items in groupby(over, key=lambda item: item.end)], later


class FactRun:
    """A CONSTRUCT FACT query at work: each fact that has ended is an occurrence with its interval."""

    def __init__(self, fact: Fact, render: Callable[[int], int | str]) -> None:
        self.fact = fact
        self.facts = OpenFacts(fact)
        self._waiting: list[Event] = []
        output, places = output_of(fact), tuple(range(2, 2 + len(fact.keys)))
        make = template_triples(output, fact.keys, None)

        def why(row: Row) -> Held:
            return Held(fact.name, render(row[1]), render(row[0]))

        self.shape = Shape(output, fact.keys, places, render, make, why)

    def push(self, item: Event) -> None:
        if self.facts.concerns(item):
            self._waiting.append(item)

    def advance(self, t: int) -> list[Row]:
        """The rows of the facts that ended at or before ``t``."""
        rows: list[Row] = []
        over, self._waiting = instants(self._waiting, t)
        for end, items in over:
            ended, _ = self.facts.instant(end, items)
            rows += sorted((end, held[0], *key) for key, held in ended)
        return rows

    def events(self, rows: Iterable[Row]) -> Iterator[Event]:
        """The rows as stream items."""
        for row in rows:
            yield Event._make((row[1], row[0], self.facts.triples(row[2:]), self.fact.feeds, ""))

    def remembered(self) -> int:
        """How many facts and items are kept."""
        return len(self.facts.open) + len(self._waiting)

    def snapshot(self) -> list[Any]:
        return [self.facts.snapshot(), [list(item) for item in self._waiting]]

    def restore(self, state: list[Any]) -> None:
        held, waiting = state
        self.facts.restore(held)
        self._waiting = [event_of(item) for item in waiting]


class FactContent(Content):
    """The facts that hold as items, which may leave in any order."""

    __slots__ = ("_facts",)

    def __init__(self) -> None:
        super().__init__()
        self._facts: dict[tuple[str, Key], Event] = {}

    @property
    def size(self) -> int:
        return len(self._facts)

    def items(self) -> list[Event]:
        return sorted(self._facts.values(), key=lambda item: (item.end, item.start, item.triples))

    def begin(self, name: str, key: Key, item: Event) -> None:
        self._facts[name, key] = item
        self._enter(item)

    def end(self, name: str, key: Key) -> None:
        self._leave(self._facts.pop((name, key)))

    def clear(self) -> None:
        for name, key in list(self._facts):
            self.end(name, key)


class FactWindow:
    """A window that holds the facts that hold now (``Current``)."""

    offset = 0

    def __init__(self, use: WindowUse) -> None:
        assert isinstance(use.shape, Current)
        self.use, self.shape = use, use.shape
        self.content = FactContent()
        self.entered = 0  # how many facts began or ended: either changes the content
        self.arrived = False
        self._facts = [OpenFacts(fact) for fact in use.shape.facts]
        self._waiting: list[Event] = []
        self._last: int | None = None

    def push(self, item: Event) -> bool:
        if any(facts.concerns(item) for facts in self._facts):
            self._waiting.append(item)
            self._last = item.end
        return True

    def move(self, t: int) -> None:
        """Process the items that ended at or before ``t``."""
        before = self.entered
        over, self._waiting = instants(self._waiting, t)
        for end, items in over:
            for facts in self._facts:
                self._change(facts, *facts.instant(end, items))
        self.arrived = self.entered > before

    def _change(self, facts: OpenFacts, ended: list[tuple[Key, Since]], begun: list[Key]) -> None:
        for key, _ in ended:
            self.content.end(facts.fact.name, key)
        for key in begun:
            start, end = facts.open[key]
            self.content.begin(facts.fact.name, key, Event._make((start, end, facts.triples(key), "", "")))
        self.entered += len(ended) + len(begun)

    @property
    def empty(self) -> bool:
        return not self._waiting and not self.content.size

    @property
    def remembered(self) -> int:
        """How many facts and items it keeps."""
        return self.content.size + len(self._waiting)

    def opening(self, t: int) -> int | None:
        """The time since which the oldest fact holds."""
        return min((item.start for item in self.content.items()), default=None)

    def closes(self, t: int) -> bool:
        """Never: it has no closing times of its own."""
        return False

    def next_close(self, after: int, nonempty: bool) -> int | None:
        return None

    def next_entry(self, after: int) -> int | None:
        return max(self._waiting[0].end, after + 1) if self._waiting else None

    def prune(self, t: int) -> None:
        """Nothing to do: facts that no longer hold have been forgotten already."""

    def horizon(self) -> int | None:
        return self._last

    def snapshot(self) -> list[Any]:
        held = [facts.snapshot() for facts in self._facts]
        return [self.entered, self._last, held, [list(item) for item in self._waiting]]

    def restore(self, state: list[Any]) -> None:
        self.entered, self._last, held, waiting = state
        self.content.clear()
        for facts, open_ in zip(self._facts, held, strict=True):
            facts.restore(open_)
            for key, (start, end) in facts.open.items():
                self.content.begin(facts.fact.name, key, Event._make((start, end, facts.triples(key), "", "")))
        self._waiting = [event_of(item) for item in waiting]
