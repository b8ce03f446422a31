"""Events that Python hands over as objects: what is none of them is refused with what to give instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from etalis_py.events import Event, Retraction
from etalis_py.spark.errors import SparkError
from etalis_py.streams import Idle, Punctuation
from etalis_py.streams.refusals import shown

_ITEMS = (Event, Retraction, Punctuation, Idle)


def event_objects(events: Iterable[Any], taker: str) -> Iterator[Any]:
    """The items of a stream as they are, until one is no event, such as a letter of a file's name or a record."""
    if isinstance(events, str) or not isinstance(events, Iterable):
        raise _no_events(events, taker)
    for item in events:
        if not isinstance(item, _ITEMS):
            raise _no_events(item if isinstance(events, (list, tuple, Iterator)) else events, taker)
        yield item


def _no_events(given: object, taker: str) -> SparkError:
    return SparkError(
        f"{shown(given)} is no event, and {taker} takes Event objects: read_stream(…) of etalis_py.streams reads them "
        "from files, tables and records, and event(':a :price 3', 5) makes one"
    )


__all__ = ["event_objects"]
