"""Ties (docs/semantics.md, Ties), literally: times that also know the place of their event in its source.

Two such times are ordered by (time, place), and equal only if both are.  Whatever else is compared with one of them, a
limit or a window's opening, is a time of the source, so only the time counts; what is calculated from it is one, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cmp_to_key
from itertools import groupby

from etalis_py.events import Event

from .expressions import order

LAST = float("inf")
"""The place of what comes after all events of its time: a deadline, and the start of an event that lasts on."""


class Moment(int):
    """A time in microseconds, with a place."""

    place: float

    def __new__(cls, time: int, place: float) -> Moment:
        self = super().__new__(cls, time)
        self.place = place
        return self

    def _against(self, other: object) -> tuple[tuple[object, float], tuple[object, float]]:
        place = other.place if isinstance(other, Moment) else self.place
        return (int(self), self.place), (int(other) if isinstance(other, Moment) else other, place)

    def __lt__(self, other: object) -> bool:
        one, two = self._against(other)
        return one < two

    def __le__(self, other: object) -> bool:
        one, two = self._against(other)
        return one <= two

    def __gt__(self, other: object) -> bool:
        return not self <= other

    def __ge__(self, other: object) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        one, two = self._against(other)
        return one == two

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(int(self))

    def __repr__(self) -> str:
        return f"{int(self)}@{self.place}"


def in_places(events: Iterable[Event], ties: str) -> Iterator[Event]:
    """The events, in order, with the places that they have among those of the same time.

    The place is that in the source, or else the number of events with a lesser value of the predicate ``ties``.
    """
    for _, tied in groupby(events, key=lambda event: event.end):
        there = list(tied)
        if ties == "source":
            placed = list(enumerate(there, 1))
        else:
            values = [_value(event, ties) for event in there]
            placed = [(sum(_before(other, v) for other in values), e) for v, e in zip(values, there, strict=True)]
        for place, event in sorted(placed, key=lambda one: one[0]):
            end = Moment(event.end, place)
            yield event._replace(start=end if event.start == event.end else Moment(event.start, LAST), end=end)


def _value(event: Event, predicate: str) -> str:
    """The least object of the predicate in the event; none is ""."""
    return min((o for _, p, o in event.triples if p == predicate), key=cmp_to_key(order), default="")


def _before(one: str, other: str) -> bool:
    """Whether an event with one value comes before one with the other; what has none comes last."""
    return bool(one) and (not other or order(one, other) < 0)


def decided_at(time: int, since: object) -> int:
    """A time of the clock: with ties it comes after all events of that time."""
    return Moment(time, LAST) if isinstance(since, Moment) else time
