"""The definition of a scenario, and the spelling of its data and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal

from etalis_rules.terms import XSD

from benchmarks.workloads.definition import Answer
from etalis_py.events import Event

PREFIX = "PREFIX : <urn:p:>\n"
STREAM = "<urn:p:s>"
MS = 1_000
SECOND = 1_000 * MS
TEN, MINUTE = 10 * SECOND, 60 * SECOND
_EXACT = Context(prec=200)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A query as others ask it, its data, and a plain program that has its answers.

    ``dense``: about a match for each event or more, so that spelling the matches is most of the work.
    """

    name: str
    title: str
    query: str
    events: Callable[[int], list[Event]]
    answers: Callable[[Sequence[Event]], list[Answer]]
    dense: bool = False


def name(local: str) -> str:
    return f"<urn:p:{local}>"


def integer(number: int) -> str:
    return f'"{number}"^^<{XSD}integer>'


def value(term: str) -> int:
    """The number of an ``xsd:integer``."""
    return int(term[1 : term.index('"', 1)])


def decimal(number: Decimal) -> str:
    """A decimal in its canonical form: without zeros at its end, and without a point if it is whole."""
    return f'"{number.normalize(_EXACT):f}"^^<{XSD}decimal>'


def mean(total: int, count: int) -> str:
    """An average of integers: 34 digits, and one more for every power of ten in it."""
    a, b = Decimal(total), Decimal(count)
    digits = 34 + max(0, a.adjusted() - b.adjusted())
    return decimal(Context(prec=digits, rounding=ROUND_HALF_EVEN).divide(a, b))


def record(time: int, subject: str, columns: Mapping[str, str]) -> Event:
    """One event: what is said of a thing at a time."""
    return Event(time, time, tuple((subject, name(p), o) for p, o in columns.items()), STREAM)


def tumbling(events: Sequence[Event], width: int) -> Iterable[tuple[int, Sequence[Event]]]:
    """The windows (close − width, close] that hold an event, by their closings; none waits for its last event."""
    held: dict[int, list[Event]] = {}
    for event in events:
        held.setdefault(-(-event.end // width) * width, []).append(event)
    return held.items()
