"""Shared by the workloads: events of one triple, random walks of prices, and closing an instant in the plain loops.

One time unit is one second.  An event is one triple that starts and ends at its unit, and there is one event a unit.
Subjects and objects are fresh strings in every event, as a reader of a stream would make them; predicates are not.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from etalis_rules.terms import XSD

from benchmarks.workloads.definition import Answer
from etalis_py.events import Event

UNIT = 1_000_000
PRICE = "<urn:p:price>"

_DOUBLE = f'"^^<{XSD}double>'
_INTEGER = f'"^^<{XSD}integer>'


def event(unit: int, subject: str, predicate: str, object_: str) -> Event:
    """One triple at a time unit."""
    time = unit * UNIT
    return Event(time, time, ((subject, predicate, object_),))


def integer(number: int) -> str:
    return f'"{number}{_INTEGER}'


def int_of(term: str) -> int:
    """The value of an ``xsd:integer``."""
    return int(term[1 : -len(_INTEGER)])


def price_of(term: str) -> float:
    """The value of a price, an ``xsd:double``."""
    return float(term[1 : -len(_DOUBLE)])


def quotes(events: int, companies: int, seed: int = 7) -> Iterator[tuple[str, str]]:
    """``(company, price)``, the company at random.

    Its price starts at 100 and at each of its quotes becomes price × (1 + u), u uniform in ±15 %, clamped to 20..500;
    nothing is rounded, so it is quoted as an ``xsd:double``.  The company is drawn before u.
    """
    draw = random.Random(seed)
    prices = [100.0] * companies
    for _ in range(events):
        company = draw.randrange(companies)
        moved = prices[company] * (1 + draw.uniform(-0.15, 0.15))
        prices[company] = min(500.0, max(20.0, moved))
        yield f"<urn:x:company{company}>", f'"{prices[company]!r}{_DOUBLE}'


def priced(events: int, companies: int) -> list[Event]:
    """The quotes as events ``?company <urn:p:price> ?price``."""
    return [event(i, company, PRICE, price) for i, (company, price) in enumerate(quotes(events, companies))]


def close(answers: list[Answer], instant: list[Answer]) -> None:
    """Emit the answers of an instant in canonical order: end, start, terms.  All of them end at the instant."""
    if len(instant) > 1:
        instant.sort()
    answers += instant
    instant.clear()
