"""W11: the purchases of W10 above the limit of their shop, which a reference table of a hundred thousand shops has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks.workloads.common import int_of, integer
from benchmarks.workloads.definition import Answer, Bar, Feed, Triple, Workload
from benchmarks.workloads.w10_records import AMOUNT, SHOP, SHOPS, events
from etalis_py.events import Event

LIMIT, TABLE = "<urn:p:limit>", "<urn:x:limits>"
QUERY = f"""
SELECT ?card ?shop ?amount ?limit WHERE {{
  EVENT {{ ?card {SHOP} ?shop ; {AMOUNT} ?amount }} GRAPH {TABLE} {{ ?shop {LIMIT} ?limit }}
  FILTER (?amount > ?limit)
}}"""


def limits() -> Iterator[Triple]:
    """The limit of each shop: between 500 and 1,000."""
    return ((f"<urn:x:shop{n}>", LIMIT, integer(500 + n * 7919 % 500)) for n in range(SHOPS))


def loop() -> Feed:
    """A look-up for each purchase."""
    known = {shop: (limit, int_of(limit)) for shop, _, limit in limits()}

    def feed(stream: Iterable[Event]) -> list[Answer]:
        answers: list[Answer] = []
        for start, end, triples, _, _ in stream:
            said = {p: o for _, p, o in triples}
            amount, shop = said[AMOUNT], said[SHOP]
            limit, value = known[shop]
            if int_of(amount) > value:
                answers.append((start, end, (amount, triples[0][0], limit, shop)))
        return answers

    return feed


WORKLOAD = Workload(
    name="W11",
    title=f"records joined with a reference table of {SHOPS:,} rows",
    query=QUERY,
    policy="unrestricted",
    size=200_000,
    events=events,
    loop=loop,
    bar=Bar("× loop", 3),
    background={TABLE: limits},
)
