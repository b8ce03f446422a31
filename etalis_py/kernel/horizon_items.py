"""The input within the horizon of corrections: events and updates of the background, in order of time.

Here are the functions of such items alone: late events and withdrawals are applied to them, they are cut into what an
engine takes at once, and they are written as plain data.  ``revision`` has the state that they belong to.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from etalis_py.events import Event, Retraction
from etalis_py.kernel.withdraw_triples import withdraw

_end = attrgetter("end")


@dataclass(frozen=True, slots=True)
class BackgroundUpdate:
    """A change of the background, after the instant at ``end``: every event of that time precedes it, late ones too."""

    end: int
    graph: str
    add: list[Any]
    remove: list[Any]


Item = Event | BackgroundUpdate


def pieces_of_items(items: Sequence[Item], oldest: int, most: int) -> Iterator[Any]:
    """Events in runs of at most so many, and the updates between them; events before ``oldest`` need no points."""
    if BackgroundUpdate not in set(map(type, items)):  # the usual case, and the quick test, as every event pays for it
        within = bisect_left(items, oldest, key=_end)
        if within:
            yield items[:within]
        yield from (items[i : i + most] for i in range(within, len(items), most))
        return
    first = 0
    for i, item in enumerate(items):
        if item.__class__ is BackgroundUpdate:
            if first < i:
                yield items[first:i]
            yield item
            first = i + 1
        elif i - first >= most:
            yield items[first:i]
            first = i
    if first < len(items):
        yield items[first:]


def correct_items(items: Sequence[Item], arrived: Iterable[Event]) -> tuple[list[Item], list[Event], bool]:
    """Apply late events and withdrawals to past items.

    Returns the corrected items in order, the withdrawals of triples that never occurred, and whether any withdrawal
    found something.
    """
    arrived = list(arrived)
    wanted = {event.end for event in arrived if isinstance(event, Retraction)}
    rest: list[Item] = []
    at: dict[int, list[Event]] = {end: [] for end in wanted}
    for item in items:
        if item.end in wanted and not isinstance(item, BackgroundUpdate):
            at[item.end].append(item)
        else:
            rest.append(item)
    missing: list[Event] = []
    withdrawn = False
    for event in arrived:
        if isinstance(event, Retraction):
            absent = withdraw(at[event.end], event)
            withdrawn |= absent != event.triples
            if absent:
                missing.append(event._replace(triples=absent))
            continue
        (at[event.end] if event.end in wanted else rest).append(event)
    kept = [event for events in at.values() for event in events if event.triples]
    return sorted([*rest, *kept], key=order_of_item), missing, withdrawn


def order_of_item(item: Item) -> tuple[int, bool]:
    """By time, events before the updates of their instant."""
    return item.end, isinstance(item, BackgroundUpdate)


def fields_of_event(event: Event) -> list[Any]:
    """An event or a retraction as plain data."""
    if isinstance(event, Retraction):
        return [*event.withdrawn(), True]
    return list(event)


def event_of_fields(fields: Any) -> Event:
    """The event or the retraction that ``fields_of_event`` wrote."""
    start, end, triples, stream, graph, *withdrawn = fields
    kind = Retraction if withdrawn else Event
    return kind._make((start, end, tuple(tuple(t) for t in triples), stream, graph))
