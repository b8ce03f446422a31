"""W4n: each price of W4 with the first higher one of its company, as Esper, Siddhi and Flink understand W4.

A price waits until a higher one comes, which is the next one of all that wait below it.  Nothing is consumed: the
higher one waits for a higher one itself, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.workloads.common import PRICE, close, price_of
from benchmarks.workloads.definition import Answer, Bar, Feed, Workload
from benchmarks.workloads.w4_rising import events
from etalis_py.events import Event

QUERY = """
SELECT ?company ?p1 ?p2 WHERE {
  { ?company <urn:p:price> ?p1 } NEXT { ?company <urn:p:price> ?p2 FILTER (?p1 < ?p2) }
}"""


def loop() -> Feed:
    """The prices that wait fall from the earliest to the latest, so those that are exceeded are the last ones.

    Prices of one instant are compared with those from before it; they wait in the order in which they stay so.
    """
    waiting: dict[str, list[tuple[float, int, str]]] = {}

    def feed(stream: Iterable[Event]) -> list[Answer]:
        answers: list[Answer] = []
        instant: list[tuple[int, str, float, str]] = []

        def end_instant(now: int) -> None:
            found: list[Answer] = []
            exceeded: dict[str, float] = {}
            for _, s, price, p2 in instant:
                goals = waiting.get(s, [])
                for before, began, p1 in reversed(goals):
                    if before >= price:
                        break
                    found.append((began, now, (s, p1, p2)))
                exceeded[s] = max(price, exceeded.get(s, price))
            for s, price in exceeded.items():
                goals = waiting.setdefault(s, [])
                while goals and goals[-1][0] < price:
                    goals.pop()
            for start, s, price, p1 in sorted(instant, key=lambda one: -one[2]):
                waiting[s].append((price, start, p1))
            instant.clear()
            close(answers, found)

        now = -1
        for start, end, triples, _, _ in stream:
            if end != now:
                end_instant(now)
                now = end
            instant += [(start, s, price_of(o), o) for s, p, o in triples if p == PRICE]
        end_instant(now)
        return answers

    return feed


WORKLOAD = Workload(
    name="W4n",
    title="the first higher price by NEXT, 1,000 companies",
    query=QUERY,
    policy="unrestricted",
    size=200_000,
    events=events,
    loop=loop,
    bar=Bar("events/s", 200_000),
)
