"""Withdrawals of members by a graph of a container, by name: ``<> <urn:etalis:retracts> <member>``."""

from __future__ import annotations

from collections import deque

from etalis_py.events import Event, Retraction
from etalis_py.streams.elements import RETRACTS

REMEMBERED = 10_000


class Remembered:
    """The last events of a container, to find those that are withdrawn."""

    def __init__(self) -> None:
        self.events: deque[Event] = deque(maxlen=REMEMBERED)

    def take(self, event: Event) -> list[Event]:
        """The event, or if it withdraws others, their withdrawals; its own if none of them is remembered."""
        names = {o for s, p, o in event.triples if s == event.graph and p in RETRACTS}
        if not names:
            self.events.append(event)
            return [event]
        withdrawn = [other for other in self.events if other.graph in names]
        for other in withdrawn:
            self.events.remove(other)
        return [Retraction._make(other) for other in withdrawn or [event]]
