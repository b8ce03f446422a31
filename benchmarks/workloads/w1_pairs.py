"""W1: ``a(id) SEQ b(id)`` under ``recent``; a hundred ids in turn.

``a(id)`` is the triple ``id <urn:p:a> n`` where n is the event's number (a triple has an object; nothing reads it).  A
hundred events a, one for each id, are followed by a hundred events b for the same ids, and so on: up to a hundred goals
wait at a time, every b finds one, and half of the events match.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.workloads.common import close, event, integer
from benchmarks.workloads.definition import Answer, Bar, Feed, Workload
from etalis_py.events import Event

A, B = "<urn:p:a>", "<urn:p:b>"
IDS = 100
QUERY = "SELECT ?x WHERE { ?x <urn:p:a> ?i } SEQ { ?x <urn:p:b> ?j }"


def kind(number: int) -> str:
    """The predicate of the n-th event: a for a round of all ids, then b."""
    return B if number // IDS % 2 else A


def events(size: int, first: int = 0) -> list[Event]:
    return [event(first + n, f"<urn:x:id{n % IDS}>", kind(n), integer(n)) for n in range(size)]


def loop() -> Feed:
    """Each b takes the latest a of its id that ended before it began, and removes it."""
    goals: dict[str, list[tuple[int, int]]] = {}

    def feed(stream: Iterable[Event]) -> list[Answer]:
        answers: list[Answer] = []
        instant: list[Answer] = []
        now = -1
        for start, end, triples, _, _ in stream:
            if end != now:
                if instant:
                    close(answers, instant)
                now = end
            for s, p, _ in triples:
                if p == A:
                    if s in goals:
                        goals[s].append((end, start))
                    else:
                        goals[s] = [(end, start)]
                elif p == B:
                    waiting = goals.get(s)
                    if waiting:
                        for i in range(len(waiting) - 1, -1, -1):
                            if waiting[i][0] < start:
                                instant.append((waiting.pop(i)[1], end, (s,)))
                                break
        close(answers, instant)
        return answers

    return feed


WORKLOAD = Workload(
    name="W1",
    title="a(id) SEQ b(id), 100 ids in turn, recent",
    query=QUERY,
    policy="recent",
    size=200_000,
    events=events,
    loop=loop,
    bar=Bar("events/s", 800_000),
)
