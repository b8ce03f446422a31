"""W4: two prices of a company, the later one higher, ``recent``; a thousand companies.

The quotes are those of W2 with 1,000 companies instead of 50, as doubles.  There is no window: a price that is never
followed by a higher one waits for ever, so the goals of a company increase during the run (about thirty on average at
200,000 events), and the latest one that fits may come before several that do not.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.workloads.common import PRICE, close, price_of, priced
from benchmarks.workloads.definition import Answer, Bar, Feed, Workload
from etalis_py.events import Event

COMPANIES = 1_000
QUERY = """
SELECT ?company ?p1 ?p2 WHERE {
  { ?company <urn:p:price> ?p1 } SEQ { ?company <urn:p:price> ?p2 } FILTER (?p1 < ?p2)
}"""


def events(size: int) -> list[Event]:
    return priced(size, COMPANIES)


def loop() -> Feed:
    """An event takes the latest lower price of its company, and then waits as a price itself."""
    goals: dict[str, list[tuple[int, int, float, str]]] = {}

    def feed(stream: Iterable[Event]) -> list[Answer]:
        answers: list[Answer] = []
        instant: list[Answer] = []
        now = -1
        for start, end, triples, _, _ in stream:
            if end != now:
                if instant:
                    close(answers, instant)
                now = end
            for s, p, o in triples:
                if p != PRICE:
                    continue
                price = price_of(o)
                waiting = goals.get(s)
                if waiting is None:
                    waiting = goals[s] = []
                for i in range(len(waiting) - 1, -1, -1):
                    ended, began, before, p1 = waiting[i]
                    if before < price and ended < start:
                        del waiting[i]
                        instant.append((began, end, (s, p1, o)))
                        break
                waiting.append((end, start, price, o))
        close(answers, instant)
        return answers

    return feed


WORKLOAD = Workload(
    name="W4",
    title="two steps with FILTER (p1 < p2), 1,000 companies, recent",
    query=QUERY,
    policy="recent",
    size=200_000,
    events=events,
    loop=loop,
    bar=Bar("events/s", 500_000),
)
