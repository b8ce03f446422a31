"""A made-up stock market: prices that walk at random, ratings and acquisitions, from a seed.

Every company has one price a trading day, a random walk of its logarithm.  Now and then one falls into a crisis (a
fall of 40 to 65 % within a few days, in most cases followed by a recovery) or rises by 60 to 90 % within two weeks, so
that the queries of [EP] §4.1 have something to find.  Four agencies rate companies with scores from 1 to 10; a company
in a crisis is rated more often and lower.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from random import Random

import pyoxigraph
from etalis_rules.calendar import DAY, SECOND
from etalis_rules.terms import RDF, XSD, literal

from etalis_py.events import Event
from etalis_py.events.clock import parse_datetime
from etalis_py.replays.resources import data

STOCK = "http://example.org/stock#"
HAS_PRICE = f"<{STOCK}hasStockPrice>"
HAS_ACQUIRED = f"<{STOCK}hasAcquired>"
RATER, RATED, SCORE = f"<{STOCK}rater>", f"<{STOCK}rated>", f"<{STOCK}score>"
AGENCIES = tuple(f"<{STOCK}{name}>" for name in ("Northgate", "Meridian", "Castor", "Veritas"))

START = parse_datetime("2019-01-07T00:00:00Z")  # a Monday
CLOSING = 21 * 3600 * SECOND
LAST_TRADES = 600  # seconds: the last trade of a company is somewhere in the last ten minutes
OPENING = 14 * 3600 * SECOND
CRISIS, BOOM = 0.0012, 0.0006
RATED_A_DAY, ACQUIRED_A_DAY = 0.04, 0.0004


@lru_cache(maxsize=1)
def companies() -> tuple[str, ...]:
    """The companies of ``data/stock/companies.ttl``, in N-Triples spelling: ACME first, the others by name."""
    quads = pyoxigraph.parse(data("stock/companies.ttl").read_bytes(), pyoxigraph.RdfFormat.TURTLE)
    names = sorted({str(q.subject) for q in quads if q.predicate.value == RDF + "type"})
    acme = f"<{STOCK}ACME>"
    return (acme, *(c for c in names if c != acme))


@dataclass(slots=True)
class _Company:
    """A company on its walk; ``ahead`` are the logarithms of daily changes that are settled already."""

    iri: str
    price: float
    volatility: float
    ahead: list[float] = field(default_factory=list)
    trouble: int = 0

    def walk(self, random: Random) -> float:
        """The next day's price."""
        if not self.ahead:
            chance = random.random()
            if chance < CRISIS:
                self.ahead = _crisis(random)
                self.trouble = len(self.ahead)
            elif chance < CRISIS + BOOM:
                days = random.randint(5, 9)
                self.ahead = [random.uniform(0.47, 0.64) / days] * days
        drift = self.ahead.pop(0) if self.ahead else 0.0
        self.trouble = max(0, self.trouble - 1)
        self.price *= 2.718281828459045 ** (drift + random.gauss(0, self.volatility))
        self.price = max(self.price, 0.5)
        return self.price


def _crisis(random: Random) -> list[float]:
    down = random.randint(2, 4)
    changes = [random.uniform(-1.05, -0.5) / down] * down
    if random.random() < 0.7:
        rest, up = random.randint(1, 4), random.randint(5, 9)
        changes += [0.0] * rest + [(random.uniform(0.15, 0.4) - sum(changes)) / up] * up
    return changes


def market_events(count: int, events: int, seed: int) -> Iterator[Event]:
    """The first ``events`` events of a market of so many companies, in order of time."""
    random = Random(f"market {seed}")
    firms = [
        _Company(iri, round(random.uniform(15, 250), 2), random.uniform(0.008, 0.022)) for iri in companies()[:count]
    ]
    ratings = 0
    generated = 0
    day = START
    while True:
        happening: list[Event] = []
        for firm in firms:
            if random.random() < (0.4 if firm.trouble else RATED_A_DAY):
                ratings += 1
                happening.append(_rating(firm, ratings, day + OPENING + random.randrange(6 * 3600) * SECOND, random))
            if random.random() < ACQUIRED_A_DAY:
                other = random.choice(firms).iri
                if other != firm.iri:
                    at = day + OPENING + random.randrange(6 * 3600) * SECOND
                    happening.append(Event(at, at, ((firm.iri, HAS_ACQUIRED, other),)))
            closing = day + CLOSING - random.randrange(LAST_TRADES) * SECOND
            price = literal(f"{firm.walk(random):.2f}", XSD + "decimal")
            happening.append(Event(closing, closing, ((firm.iri, HAS_PRICE, price),)))
        happening.sort()
        for event in happening:
            if generated == events:
                return
            generated += 1
            yield event
        day = _next_trading_day(day)


def _rating(firm: _Company, number: int, at: int, random: Random) -> Event:
    score = random.randint(1, 4) if firm.trouble else random.randint(5, 10)
    rating = f"<{STOCK}rating/{number}>"
    agency = random.choice(AGENCIES)
    triples = (
        (rating, RATER, agency),
        (rating, RATED, firm.iri),
        (rating, SCORE, literal(str(score), XSD + "integer")),
    )
    return Event(at, at, triples)


def _next_trading_day(day: int) -> int:
    day += DAY
    while (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=day)).weekday() >= 5:
        day += DAY
    return day
