"""A stand-in for the engine: reports each pair of a reading above a limit and the one before it.

The "query" is ``HOT <relation> <limit>`` (CONSTRUCT-like) or ``ROWS <relation> <limit>`` (SELECT-like); or it goes
wrong: ``SPIN``, ``EAT``, ``CRASH``, ``SLEEP``, each ``compile`` or ``push``; ``MANY``, ``LONG`` or ``SLOW`` ``push``.
The question why there is no match goes wrong ``where`` it is ``SPIN``, ``EAT`` or ``CRASH``.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from etalis_rules.terms import parts

from etalis_py.containers import RunnerFactory
from etalis_py.events import Event


@dataclass
class FakeMatch:
    id: str
    bindings: dict[str, str]
    triples: tuple
    start_us: int | None
    end_us: int | None
    because: tuple = ()
    retracted: bool = False
    query: str = "fake"

    def to_dict(self) -> dict[str, object]:
        head: dict[str, object] = {"query": self.query, "id": self.id}
        body = {"triples": [" ".join(t) + " ." for t in self.triples]} if self.triples else {"bindings": self.bindings}
        return head | body | {"start": self.start_us, "end": self.end_us}

    def events(self, most: int) -> list[tuple[tuple[str, str, str], int, int]]:
        return [(e.triples[0], e.start, e.end) for e in self.because][:most]

    def why(self) -> object:
        return {"rule": "hot", "events": [{"graph": e.graph, "end": e.end} for e in self.because]}


@dataclass
class FakeRunner:
    relation: str
    limit: float
    rows: bool
    previous: Event | None = None
    pending: list[FakeMatch] = field(default_factory=list)
    last: int = -(2**63)
    gathers: bool = False
    name: str = "fake"

    @property
    def writes(self) -> bool:
        return not self.rows

    def settled(self) -> tuple[int, int]:
        return 0, 0

    def push_all(self, events: Sequence[Event]) -> list[FakeMatch]:
        return [match for event in events for match in self.push(event)]

    def push(self, event: Event) -> list[FakeMatch]:
        closed = self._closed() if event.end > self.last else []
        self.last = event.end
        value = next((o for _, p, o in event.triples if p == self.relation), None)
        if value is not None and float(parts(value)[0]) > self.limit:
            before = self.previous or event
            triples = () if self.rows else ((event.graph, "<http://ex.org/hotterThan>", before.graph),)
            number = event.graph.rstrip(">").rpartition("/")[2]
            bindings = {"value": value} if self.rows else {}
            match = FakeMatch(f"hot-{number}", bindings, triples, before.end, event.end, (before, event))
            self.pending.append(replace(match, query=self.name))
        self.previous = event
        return closed

    def _closed(self) -> list[FakeMatch]:
        closed, self.pending = self.pending, []
        return closed

    def idle(self) -> list[FakeMatch]:
        return self._closed()

    def why_not(self, where: str, at: str) -> object:
        if where == "?":
            raise ValueError("where is not a condition")
        if where in ("SPIN", "EAT", "CRASH"):
            go_wrong(where)
        return f"nothing is hot where {where}"

    def graph(self) -> dict[str, object]:
        return {
            "nodes": [
                {"id": "leaf", "label": f"reading {self.relation}", "kind": "leaf"},
                {"id": "goal", "label": "previous SEQ reading", "kind": "goal"},
                {"id": "rule", "label": f"hot: value > {self.limit}", "kind": "rule"},
            ],
            "edges": [{"from": "leaf", "to": "goal"}, {"from": "leaf", "to": "rule"}, {"from": "goal", "to": "rule"}],
        }

    def waits(self) -> float | None:
        return None

    def warnings(self) -> list[str]:
        return ["a limit of 0 reports every reading"] if self.limit == 0 else []

    def unseen(self) -> list[str]:
        return ["no reading was above the limit"] if self.previous is not None and self.limit >= 1000 else []

    def goals(self) -> int:
        return len(self.pending)

    def close(self) -> None:
        self.pending.clear()


@dataclass
class Rogue(FakeRunner):
    """Goes wrong with every event."""

    how: str = ""

    def push(self, event: Event) -> list[FakeMatch]:
        return go_wrong(self.how)


def go_wrong(how: str) -> list[FakeMatch]:
    eaten = []
    if how == "CRASH":
        os.abort()
    if how == "SLEEP":
        time.sleep(3600)
    if how == "SLOW":
        time.sleep(0.005)
        return []
    while how in ("SPIN", "EAT"):
        if how == "EAT":
            eaten.append(bytearray(1_000_000))
    if how == "LONG":
        return [FakeMatch("long", {"x": '"' + "x" * 2_000_000 + '"'}, (), 1, 2)]
    return [FakeMatch(f"many-{i}", {"x": f'"{i}"'}, (), 1, 2) for i in range(5_000)]


def factory(query: str, stream: str, name: str = "fake") -> FakeRunner:
    how, _, where = query.partition(" ")
    if where in ("compile", "push"):
        if where == "compile":
            go_wrong(how)
        return Rogue("", 0, True, how=how)
    found = re.fullmatch(r"(HOT|ROWS) (<[^>]+>) ([0-9.]+)\s*", query)
    if found is None:
        raise ValueError(f"line 1, column 1: expected HOT <relation> limit, found {query[:20]!r}")
    if float(found[3]) == 666:
        raise ValueError("the limit 666 is refused")
    return FakeRunner(found[2], float(found[3]), found[1] == "ROWS", name=name)


@dataclass
class FakeQueries:
    """Many of these; one is of a known kind where another one differs from it in its limit only."""

    runners: dict[str, FakeRunner] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    unseen = staticmethod(list)
    ready: set[tuple[str, str]] = field(default_factory=set)

    def knows(self, query: str) -> bool:
        return _kind(query) in self.kinds.values()

    def prepare(self, name: str, query: str, size: int) -> None:
        self.ready.add((name, query))

    def is_ready(self, name: str, query: str) -> bool:
        return (name, query) in self.ready or self.knows(query)

    def add(self, name: str, query: str) -> None:
        self.runners[name], self.kinds[name] = factory(query, ""), _kind(query)

    def remove(self, name: str) -> None:
        self.runners.pop(name, None)
        self.kinds.pop(name, None)

    def rules(self) -> int:
        return 3 * len(set(self.kinds.values()))

    def push(self, event: Event) -> list[FakeMatch]:
        return self._named(lambda runner: runner.push(event))

    def idle(self) -> list[FakeMatch]:
        return self._named(lambda runner: runner.idle())

    def _named(self, step: Callable[[FakeRunner], list[FakeMatch]]) -> list[FakeMatch]:
        return [replace(m, query=name) for name, runner in list(self.runners.items()) for m in step(runner)]

    def waits(self) -> float | None:
        return None

    def goals(self) -> int:
        return sum(runner.goals() for runner in self.runners.values())

    def close(self) -> None:
        self.runners.clear()


def _kind(query: str) -> str:
    return query.rpartition(" ")[0] if query[:4] in ("HOT ", "ROWS") else query


class Factory:
    def __call__(self, query: str, stream: str, name: str) -> FakeRunner:
        return factory(query, stream, name)

    def queries(self, stream: str) -> FakeQueries:
        return FakeQueries()


def make() -> RunnerFactory:
    return Factory()
