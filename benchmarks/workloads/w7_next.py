"""W7: three rises in a row, by NEXT, with a filter on each pair; a thousand companies.

The quotes are those of W4.  NEXT keeps one price of a company, and one pair of prices, until its next price comes.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.workloads.common import PRICE, price_of, priced
from benchmarks.workloads.definition import Answer, Bar, Feed, Workload
from etalis_py.events import Event

COMPANIES = 1_000
QUERY = """
SELECT ?company ?p1 ?p2 ?p3 WHERE {
  { ?company <urn:p:price> ?p1 } NEXT { ?company <urn:p:price> ?p2 } NEXT { ?company <urn:p:price> ?p3 }
  FILTER (?p1 < ?p2 && ?p2 < ?p3)
}"""


def events(size: int) -> list[Event]:
    return priced(size, COMPANIES)


def loop() -> Feed:
    """The last two prices of each company; no two of one company come at the same time."""
    last: dict[str, tuple[int, str, float]] = {}
    before: dict[str, tuple[int, str, float]] = {}

    def feed(stream: Iterable[Event]) -> list[Answer]:
        answers: list[Answer] = []
        for start, end, triples, _, _ in stream:
            for s, p, o in triples:
                if p != PRICE:
                    continue
                price = price_of(o)
                second = last.get(s)
                if second is not None:
                    first = before.get(s)
                    if first is not None and first[2] < second[2] < price:
                        answers.append((first[0], end, (s, first[1], second[1], o)))
                    before[s] = second
                last[s] = (start, o, price)
        return answers

    return feed


WORKLOAD = Workload(
    name="W7",
    title="three rises in a row by NEXT, 1,000 companies",
    query=QUERY,
    policy="unrestricted",
    size=200_000,
    events=events,
    loop=loop,
    bar=Bar("events/s", 250_000),
)
