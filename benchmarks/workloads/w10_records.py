"""W10: purchases as records of six columns: a filter on two of them, and the next purchase of the same card.

An event is one purchase: five triples about its card, of a thousand cards at random.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from benchmarks.workloads.common import UNIT, int_of, integer
from benchmarks.workloads.definition import Answer, Bar, Feed, Workload
from etalis_py.events import Event

CARDS, SHOPS = 1_000, 100_000
CITY, AMOUNT, SHOP, KIND, ITEMS = (f"<urn:p:{name}>" for name in ("city", "amount", "shop", "kind", "items"))
FILTER = f"""
SELECT ?card ?city ?amount ?shop ?kind ?items WHERE {{
  EVENT {{ ?card {CITY} ?city ; {AMOUNT} ?amount ; {SHOP} ?shop ; {KIND} ?kind ; {ITEMS} ?items
    FILTER (?amount > 800 && ?items > 10) }}
}}"""
NEXT = f"""
SELECT ?card ?from ?a ?to ?b WHERE {{
  EVENT {{ ?card {CITY} ?from ; {AMOUNT} ?a }} NEXT EVENT {{ ?card {CITY} ?to ; {AMOUNT} ?b }}
  FILTER (?b > 3 * ?a)
}}"""


def events(size: int) -> list[Event]:
    draw = random.Random(10)
    return [_purchase(unit, draw) for unit in range(size)]


def _purchase(unit: int, draw: random.Random) -> Event:
    card = f"<urn:x:card{draw.randrange(CARDS)}>"
    triples = (
        (card, CITY, f"<urn:x:city{draw.randrange(50)}>"),
        (card, AMOUNT, integer(draw.randrange(1, 1_000))),
        (card, SHOP, f"<urn:x:shop{draw.randrange(SHOPS)}>"),
        (card, KIND, f"<urn:x:kind{draw.randrange(4)}>"),
        (card, ITEMS, integer(draw.randrange(1, 21))),
    )
    return Event(unit * UNIT, unit * UNIT, triples)


def filtering() -> Feed:
    """Each purchase by itself."""

    def feed(stream: Iterable[Event]) -> list[Answer]:
        answers: list[Answer] = []
        for start, end, triples, _, _ in stream:
            said = {p: o for _, p, o in triples}
            amount, items = said[AMOUNT], said[ITEMS]
            if int_of(amount) > 800 and int_of(items) > 10:
                answers.append((start, end, (amount, triples[0][0], said[CITY], items, said[KIND], said[SHOP])))
        return answers

    return feed


def following() -> Feed:
    """The last purchase of each card; no two come at the same time."""
    last: dict[str, tuple[int, str, str, int]] = {}

    def feed(stream: Iterable[Event]) -> list[Answer]:
        answers: list[Answer] = []
        for start, end, triples, _, _ in stream:
            said = {p: o for _, p, o in triples}
            card, city, amount = triples[0][0], said[CITY], said[AMOUNT]
            value = int_of(amount)
            before = last.get(card)
            if before is not None and value > 3 * before[3]:
                answers.append((before[0], end, (before[2], amount, card, before[1], city)))
            last[card] = (start, city, amount, value)
        return answers

    return feed


WORKLOADS = (
    Workload(
        name="W10",
        title="records of six columns, a filter on two",
        query=FILTER,
        policy="unrestricted",
        size=200_000,
        events=events,
        loop=filtering,
        bar=Bar("× loop", 3),
    ),
    Workload(
        name="W10n",
        title="records, the next one of the same card",
        query=NEXT,
        policy="unrestricted",
        size=200_000,
        events=events,
        loop=following,
        bar=Bar("× loop", 3),
    ),
)
