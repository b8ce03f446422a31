"""The event itself, and the retraction of one.

An event is an RDF graph (usually one or a few triples) with an interval ``[start, end]`` in microseconds since the
epoch.  Each of its triples is a triple occurrence.  Terms are canonical N-Triples spellings (``etalis_rules.terms``).

``Event`` is a plain tuple, because millions of them are created and unpacked.  ``Event(…)`` checks its fields, since
everything behind it compares terms by their spelling.  ``Event._make`` and ``_replace`` take fields as they are:
readers use them, whose fields are right.

>>> Event(1_000_000, 1_000_000, (("<urn:a>", "<urn:p>", '"1"'),)).end
1000000
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, SupportsIndex

from etalis_py.events.checking import NAMES, OBJECTS, PREDICATES, SUBJECTS, checked, is_usual
from etalis_py.events.clock import MAX_TIME, MIN_TIME

Triple = tuple[str, str, str]
SOURCE_ORDER = "source"
"""The order of events of one time (``ties``) that is not that of a column: the order in which they come."""


class _Fields(NamedTuple):
    start: int
    end: int
    triples: tuple[Triple, ...]
    stream: str = ""
    graph: str = ""


class Event(_Fields):
    """One stream item; ``stream`` and ``graph`` are IRIs in angle brackets (``graph`` also a blank node), or empty.

    Its fields become canonical: ``"x"^^xsd:string`` becomes ``"x"``, ``"x"@EN`` becomes ``"x"@en``, an IRI without
    brackets as ``stream`` gets them.  What is no term or no time is a TypeError or ValueError.

    >>> Event(1, 1, [["<urn:a>", "<urn:p>", '"x"@EN']], "urn:s")
    Event(start=1, end=1, triples=(('<urn:a>', '<urn:p>', '"x"@en'),), stream='<urn:s>', graph='')
    """

    __slots__ = ()

    def __new__(cls, start: int, end: int, triples: Any, stream: str = "", graph: str = "") -> Event:
        # Terms that occurred before are only looked up; anything unusual is left to ``checked``.
        try:
            usual = (
                start.__class__ is int is end.__class__
                and MIN_TIME <= start <= MAX_TIME
                and MIN_TIME <= end <= MAX_TIME
                and triples.__class__ is tuple
                and stream in NAMES
                and graph in NAMES
            )
            if usual:
                for s, p, o in triples:
                    if s not in SUBJECTS or p not in PREDICATES or not (o in OBJECTS or is_usual(o)):
                        usual = False
                        break
        except (TypeError, ValueError):
            usual = False
        fields = (start, end, triples, stream, graph)
        return tuple.__new__(cls, fields if usual else checked(*fields))


class Dated(Event):
    """An event whose time was given as a date: matches show their times as dates, too."""

    __slots__ = ()

    __repr__ = _Fields.__repr__


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
        return Event._make((self.start, self.end, self.triples, self.stream, self.graph))


class UnexpectedRetraction(ValueError):
    """A correction reached code that does not take corrections."""
