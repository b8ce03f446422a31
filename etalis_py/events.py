"""Events: the items of a stream.

An event is an RDF graph (usually one or a few triples) with an interval ``[start, end]`` in microseconds since the
epoch.  Every triple of it is a triple occurrence.  Terms are canonical N-Triples spellings (``etalis_rules.terms``).

``Event`` is a plain tuple, because millions of them are made and unpacked.

>>> Event(1_000_000, 1_000_000, (("<urn:a>", "<urn:p>", '"1"'),)).end
1000000
"""

from __future__ import annotations

from typing import NamedTuple

Triple = tuple[str, str, str]


class Event(NamedTuple):
    """One stream item; ``stream`` and ``graph`` are IRIs in angle brackets (``graph`` also a blank node), or empty."""

    start: int
    end: int
    triples: tuple[Triple, ...]
    stream: str = ""
    graph: str = ""


def event(triples: str, time: int | str | tuple[int | str, int | str], *, stream: str = "", graph: str = "") -> Event:
    """An event from Turtle (prefix ``:`` is ``http://example.org/``) and a time, for trying things out and for tests.

    Times are whole seconds, or dateTimes as text; a pair is an interval.

    >>> event(":a :price 3", 5)
    Event(start=5000000, end=5000000, triples=(('<http://example.org/a>', '<http://example.org/price>', \
'"3"^^<http://www.w3.org/2001/XMLSchema#integer>'),), stream='', graph='')
    """
    import pyoxigraph

    from etalis_py.streams.clock import parse_datetime

    def micros(t: int | str) -> int:
        return t * 1_000_000 if isinstance(t, int) else parse_datetime(t)

    text = f"@prefix : <http://example.org/> . {triples} ."
    parsed = pyoxigraph.parse(text.encode(), pyoxigraph.RdfFormat.TURTLE)
    read = tuple((str(q.subject), str(q.predicate), str(q.object)) for q in parsed)
    start, end = time if isinstance(time, tuple) else (time, time)
    return Event(micros(start), micros(end), read, stream, graph)
