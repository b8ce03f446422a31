"""Events: the items of a stream.

An event is an RDF graph (usually one or a few triples) with an interval ``[start, end]`` in microseconds since the
epoch.  Each of its triples is a triple occurrence.  Terms are canonical N-Triples spellings (``etalis_rules.terms``).

``Event`` is a plain tuple, because millions of them are created and unpacked.

>>> Event(1_000_000, 1_000_000, (("<urn:a>", "<urn:p>", '"1"'),)).end
1000000
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, SupportsIndex

Triple = tuple[str, str, str]


class Event(NamedTuple):
    """One stream item; ``stream`` and ``graph`` are IRIs in angle brackets (``graph`` also a blank node), or empty."""

    start: int
    end: int
    triples: tuple[Triple, ...]
    stream: str = ""
    graph: str = ""


class Retraction(Event):
    """An item that withdraws earlier occurrences of the stream: those of its triples, in its interval.

    Only an engine with a revision horizon takes it.  All other code unpacks events, and a retraction cannot be
    unpacked: so code that knows nothing of corrections never mistakes one for an event.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        raise UnexpectedRetraction(
            f"the stream withdraws {' . '.join(' '.join(triple) for triple in self.triples)}, which takes a horizon in "
            "which that is possible: Engine(…, revise=…) or --revise D"
        )

    def __getitem__(self, place: SupportsIndex | slice) -> Any:
        return iter(self)

    def _replace(self, **changes: Any) -> Retraction:
        return Retraction._make(self.withdrawn()._replace(**changes))

    def withdrawn(self) -> Event:
        """What is withdrawn, as an event."""
        return Event(self.start, self.end, self.triples, self.stream, self.graph)


class UnexpectedRetraction(ValueError):
    """A correction reached code that does not take corrections."""


def event(
    triples: str,
    time: int | str | tuple[int | str, int | str],
    *,
    stream: str = "",
    graph: str = "",
    retract: bool = False,
) -> Event:
    """An event from Turtle (prefix ``:`` is ``http://example.org/``) and a time, for trying things out and for tests.

    Times are whole seconds, or dateTimes as text; a pair is an interval.  ``retract``: it withdraws what an earlier
    event stated.

    >>> event(":a :price 3", 5)
    Event(start=5000000, end=5000000, triples=(('<http://example.org/a>', '<http://example.org/price>', \
'"3"^^<http://www.w3.org/2001/XMLSchema#integer>'),), stream='', graph='')
    """
    from etalis_py.rdf import read_turtle
    from etalis_py.streams.clock import parse_datetime

    def micros(t: int | str) -> int:
        return t * 1_000_000 if isinstance(t, int) else parse_datetime(t)

    if not isinstance(triples, str):
        raise TypeError(f"an event is its triples, then its time, as in event(':a :price 3', 5), not {triples!r}")
    try:
        read = read_turtle(f"{triples} .")
    except SyntaxError as error:
        raise ValueError(f"{triples!r} is not Turtle: {error.msg}") from error
    start, end = time if isinstance(time, tuple) else (time, time)
    kind = Retraction if retract else Event
    return kind(micros(start), micros(end), read, stream, graph)
