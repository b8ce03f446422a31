"""Withdrawals of members by a graph of a container, by name: ``<> <urn:etalis:retracts> <member>``."""

from __future__ import annotations

from collections import OrderedDict

from etalis_py.events import Event, Retraction
from etalis_py.streams.elements import RETRACTS

REMEMBERED = 10_000


class Remembered:
    """The last events of a container, to find those that are withdrawn.

    Cost: a look-up for each event, and for each name that a graph withdraws.
    """

    def __init__(self) -> None:
        self._events: OrderedDict[int, Event] = OrderedDict()  # by number, in order of arrival
        self._numbers: dict[str, list[int]] = {}  # by graph
        self._next = 0

    def events(self) -> list[Event]:
        """The events that are remembered, in order of arrival."""
        return list(self._events.values())

    def add(self, event: Event) -> None:
        self._events[self._next] = event
        self._numbers.setdefault(event.graph, []).append(self._next)
        self._next += 1
        if len(self._events) > REMEMBERED:
            oldest, dropped = self._events.popitem(last=False)
            numbers = self._numbers[dropped.graph]
            numbers.remove(oldest)
            if not numbers:
                del self._numbers[dropped.graph]

    def take(self, event: Event) -> list[Event]:
        """The event, or if it withdraws others, their withdrawals; its own if none of them is remembered."""
        names = {o for s, p, o in event.triples if s == event.graph and p in RETRACTS}
        if not names:
            self.add(event)
            return [event]
        numbers = sorted(number for name in names for number in self._numbers.pop(name, ()))
        withdrawn = [self._events.pop(number) for number in numbers]
        return [Retraction._make(other) for other in withdrawn or [event]]
