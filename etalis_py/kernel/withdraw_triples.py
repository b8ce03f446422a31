"""Takes what a retraction withdraws out of events."""

from __future__ import annotations

from typing import Any

from etalis_py.events import Event, Retraction


def withdraw(events: list[Event], retraction: Retraction) -> tuple[Any, ...]:
    """Take the occurrences out of the events, in place; returns the triples that are in none of them.

    A retraction that names a graph leaves events of other graphs, and of none, alone.
    """
    gone = set(retraction.triples)
    there = set()
    for i, event in enumerate(events):
        same = (event.start, event.end, event.stream) == (retraction.start, retraction.end, retraction.stream)
        meant = same and retraction.graph in ("", event.graph)
        if meant and not gone.isdisjoint(event.triples):
            there |= gone.intersection(event.triples)
            events[i] = event._replace(triples=tuple(t for t in event.triples if t not in gone))
    return tuple(t for t in retraction.triples if t not in there)
