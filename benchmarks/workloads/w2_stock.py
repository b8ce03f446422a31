"""W2: a fall and a recovery of a stock price within 1,000 units, ``recent``.

``?company <urn:p:price> ?price``, 50 companies at random, prices as doubles (see ``quotes``).  The
three steps read the same triple pattern, so every event is tried as third, as second and as first step.  WITHIN stands
after the group: it bounds the duration of the whole sequence.  Each half of the FILTER belongs to the node where its
variables are bound, so a goal is consumed only by a pair that passes.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.workloads.common import PRICE, UNIT, close, price_of, priced
from benchmarks.workloads.definition import Answer, Bar, Feed, Workload
from etalis_py.events import Event

COMPANIES = 50
WINDOW = 1_000 * UNIT
FALL, RISE = 0.7, 1.05
QUERY = """
SELECT ?company ?p1 ?p2 ?p3 WHERE {
  { { ?company <urn:p:price> ?p1 } SEQ { ?company <urn:p:price> ?p2 } SEQ { ?company <urn:p:price> ?p3 }
    FILTER (?p2 < ?p1 * 0.7 && ?p3 > ?p1 * 1.05) } WITHIN PT1000S
}"""


def events(size: int) -> list[Event]:
    return priced(size, COMPANIES)


def loop() -> Feed:
    """An event takes the latest fall it ends, then the latest price it fell from, then waits as a price itself.

    ``firsts`` holds (end, start, p1 × 0.7, p1 × 1.05, p1), ``falls`` (end, start, p1 × 1.05, p1, p2), by end.
    """
    firsts: dict[str, list[tuple[int, int, float, float, str]]] = {}
    falls: dict[str, list[tuple[int, int, float, str, str]]] = {}

    def feed(stream: Iterable[Event]) -> list[Answer]:
        answers: list[Answer] = []
        instant: list[Answer] = []
        now = -1
        for start, end, triples, _, _ in stream:
            if end != now:
                if instant:
                    close(answers, instant)
                now = end
            oldest = end - WINDOW
            for s, p, o in triples:
                if p != PRICE:
                    continue
                price = price_of(o)
                if s not in firsts:
                    firsts[s], falls[s] = [], []
                waiting = falls[s]
                for i in range(len(waiting) - 1, -1, -1):
                    ended, began, floor, p1, p2 = waiting[i]
                    if began < oldest:
                        del waiting[i]
                    elif price > floor and ended < start:
                        del waiting[i]
                        instant.append((began, end, (s, p1, p2, o)))
                        break
                opened = firsts[s]
                while opened and opened[0][1] < oldest:
                    del opened[0]
                for i in range(len(opened) - 1, -1, -1):
                    ended, began, ceiling, floor, p1 = opened[i]
                    if price < ceiling and ended < start:
                        del opened[i]
                        waiting.append((end, began, floor, p1, o))
                        break
                opened.append((end, start, price * FALL, price * RISE, o))
        close(answers, instant)
        return answers

    return feed


WORKLOAD = Workload(
    name="W2",
    title="stock query of three steps with FILTER, recent, within 1,000 units",
    query=QUERY,
    policy="recent",
    size=100_000,
    events=events,
    loop=loop,
    bar=Bar("events/s", 150_000),
)
