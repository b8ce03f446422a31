"""A stand-in for the engine: reports each pair of a reading above a limit and the one before it.

The "query" is ``HOT <relation> <limit>`` (CONSTRUCT-like) or ``ROWS <relation> <limit>`` (SELECT-like).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from etalis_rules.terms import parts

from etalis_py.events import Event


@dataclass
class FakeMatch:
    id: str
    bindings: dict[str, str]
    triples: tuple
    start_us: int | None
    end_us: int | None
    events: tuple = ()

    def to_dict(self) -> dict[str, object]:
        head: dict[str, object] = {"query": "fake", "id": self.id}
        body = {"triples": [" ".join(t) + " ." for t in self.triples]} if self.triples else {"bindings": self.bindings}
        return head | body | {"start": self.start_us, "end": self.end_us}

    def why(self) -> object:
        return {"rule": "hot", "events": [{"graph": e.graph, "end": e.end} for e in self.events]}


@dataclass
class FakeRunner:
    relation: str
    limit: float
    rows: bool
    previous: Event | None = None
    pending: list[FakeMatch] = field(default_factory=list)
    last: int = -(2**63)

    def push(self, event: Event) -> list[FakeMatch]:
        closed = self._closed() if event.end > self.last else []
        self.last = event.end
        value = next((o for _, p, o in event.triples if p == self.relation), None)
        if value is not None and float(parts(value)[0]) > self.limit:
            before = self.previous or event
            triples = () if self.rows else ((event.graph, "<http://ex.org/hotterThan>", before.graph),)
            number = event.graph.rstrip(">").rpartition("/")[2]
            bindings = {"value": value} if self.rows else {}
            self.pending.append(FakeMatch(f"hot-{number}", bindings, triples, before.end, event.end, (before, event)))
        self.previous = event
        return closed

    def _closed(self) -> list[FakeMatch]:
        closed, self.pending = self.pending, []
        return closed

    def idle(self) -> list[FakeMatch]:
        return self._closed()

    def graph(self) -> dict[str, object]:
        return {
            "nodes": [
                {"id": "leaf", "label": f"reading {self.relation}", "kind": "leaf"},
                {"id": "goal", "label": "previous SEQ reading", "kind": "goal"},
                {"id": "rule", "label": f"hot: value > {self.limit}", "kind": "rule"},
            ],
            "edges": [{"from": "leaf", "to": "goal"}, {"from": "leaf", "to": "rule"}, {"from": "goal", "to": "rule"}],
        }

    def close(self) -> None:
        self.pending.clear()


def factory(query: str, stream: str) -> FakeRunner:
    found = re.fullmatch(r"(HOT|ROWS) (<[^>]+>) ([0-9.]+)\s*", query)
    if found is None:
        raise ValueError(f"line 1, column 1: expected HOT <relation> limit, found {query[:20]!r}")
    if float(found[3]) == 666:
        raise ValueError("the limit 666 is refused")
    return FakeRunner(found[2], float(found[3]), found[1] == "ROWS")
