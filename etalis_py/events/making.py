"""``event``: an event from Turtle and a time as Python users have them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import date
from typing import Any

from etalis_py.events.checking import characters_of, name_of
from etalis_py.events.clock import meant
from etalis_py.events.item import Dated, Event, Retraction
from etalis_py.events.times import micros_of


def event(
    triples: str,
    time: int | float | str | date | Sequence[int | float | str | date] | Any,
    *,
    stream: str = "",
    graph: str = "",
    retract: bool = False,
) -> Event:
    """An event from Turtle (prefix ``:`` is ``http://example.org/``) and a time, for trying things out and for tests.

    Times are numbers of seconds (a float counts as its shortest decimal spelling, to the microsecond), or dates: an
    xsd:dateTime as text, a datetime or date of Python, pandas or NumPy; without a time zone they are UTC.  A pair is an
    interval.  Matches show dates if the events were timed by dates.  ``stream`` and ``graph`` are IRIs.  ``retract``:
    it withdraws what an earlier event stated.

    >>> event(":a :price 3", 5)
    Event(start=5000000, end=5000000, triples=(('<http://example.org/a>', '<http://example.org/price>', \
'"3"^^<http://www.w3.org/2001/XMLSchema#integer>'),), stream='', graph='')
    """
    from etalis_py.values.oxigraph_terms import read_turtle  # takes a while to import

    if not isinstance(triples, str):
        raise TypeError(f"an event is its triples, then its time, as in event(':a :price 3', 5), not {triples!r}")
    characters_of(triples)
    try:
        try:
            read = read_turtle(f"{triples}\n." if "#" in triples else f"{triples} .")  # it may end in a comment
        except SyntaxError:
            if "#" not in triples and not triples.rstrip().endswith("."):
                raise
            read = read_turtle(triples)
    except SyntaxError as error:
        raise ValueError(
            f"{triples!r} is not Turtle: {error.msg}; statements are as :acme :price 10 . :acme a :Firm"
        ) from error
    bounds = tuple(time) if isinstance(time, (tuple, list)) else (time, time)
    if len(bounds) != 2:
        raise ValueError(f"an interval has two times, a start and an end, not {len(bounds)}: {time!r}")
    start, also = micros_of(bounds[0])
    end, dated = (start, also) if bounds[1] is bounds[0] else micros_of(bounds[1])
    if also != dated:
        raise ValueError(f"an interval is between two numbers or between two dates, not {time!r}")
    if start > end:
        raise ValueError(f"the event starts at {bounds[0]!r} and ends before, at {bounds[1]!r}: swap the two")
    if not dated and end > 0 and (other := meant(end, "s"))[0]:
        # Without the time itself, so that Python tells the same once.
        warnings.warn(
            "the time of an event is in seconds, and this one is after the year 9999; "
            f"in {other[0]} it would be in the year {other[1].partition('-')[0]}",
            stacklevel=2,
        )
    kind = Retraction if retract else Dated if dated else Event
    return kind(start, end, read, name_of(stream, "stream"), name_of(graph, "graph"))
