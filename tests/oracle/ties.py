"""Ties (DESIGN §4.25), literally: times that also know the place of their event in its source.

Two such times are ordered by (time, place), and equal only if both are.  Whatever else is compared with one of them, a
limit or a window's opening, is a time of the source, so only the time counts; what is calculated from it is one, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from etalis_py.events import Event

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


def in_places(events: Iterable[Event]) -> Iterator[Event]:
    """The events, in the order of their source, with the places that they have among those of the same time."""
    for _, tied in groupby(events, key=lambda event: event.end):
        for place, event in enumerate(tied, 1):
            end = Moment(event.end, place)
            yield event._replace(start=end if event.start == event.end else Moment(event.start, LAST), end=end)


def decided_at(time: int, since: object) -> int:
    """A time of the clock: with ties it comes after all events of that time."""
    return Moment(time, LAST) if isinstance(since, Moment) else time
