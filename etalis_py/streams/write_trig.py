"""Matches as TriG, which ``read_stream`` can read: each a named graph, with its time before it in the default graph.

    <urn:etalis:match:7f3a> prov:generatedAtTime "2016-03-01T13:00:10Z"^^xsd:dateTime ;
        prov:startedAtTime …; prov:endedAtTime … ; dul:hasConstituent <urn:g1>, <urn:g2> .
    <urn:etalis:match:7f3a> { … }

A match happens when it is complete, so it was generated at its end; ``start_predicate="prov:startedAtTime"`` and
``end_predicate="prov:endedAtTime"`` read the interval back.  With explanations the constituent events ([REQ],
Immutability and Event Derivation) are linked, and written as separate graphs.  A match that is taken back is written
again, with ``<urn:etalis:retracted> true``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from etalis_rules.terms import RDF_TYPE, literal

from etalis_py.events import Triple
from etalis_py.streams.blanks import digest
from etalis_py.streams.sinks import Match, is_construct, solution, time_type

DUL = "http://www.ontologydesignpatterns.org/ont/dul/DUL.owl#"
RESULT_SET = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
_HEADER = f"""PREFIX prov: <http://www.w3.org/ns/prov#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX dul: <{DUL}>
PREFIX rs: <{RESULT_SET}>
"""
_REMEMBERED = 100_000


class Constituent(NamedTuple):
    """An event that a match is made of; its times are spelled as in the stream."""

    iri: str
    triples: tuple[Triple, ...]
    start: int | str
    end: int | str


class Trig:
    """The TriG format; remembers the latest constituent events it wrote, so that they are seldom written twice."""

    def __init__(self, constituents: Callable[[Any], Iterable[Constituent]] | None = None) -> None:
        self._constituents = constituents
        self._written: set[Constituent] = set()

    def begin(self) -> str:
        return _HEADER

    def render(self, match: Match) -> str:
        name = match_iri(match)
        parts = []
        about = [] if match.start is None or match.end is None else _times(match.start, match.end)
        events = tuple(self._constituents(match)) if self._constituents else ()
        if events:
            about.append("dul:hasConstituent " + ", ".join(dict.fromkeys(event.iri for event in events)))
            parts += [self._event(event) for event in events]
        if getattr(match, "retracted", False):
            about.append("<urn:etalis:retracted> true")
        if about:
            parts.append(f"{name} {' ; '.join(about)} .\n")
        triples = match.triples if is_construct(match) else solution_triples(match)
        parts.append(_graph(name, triples or ()))
        return "".join(parts)

    def end(self) -> str:
        # The next file must be complete in itself.
        self._written.clear()
        return ""

    def _event(self, event: Constituent) -> str:
        if event in self._written:
            return ""
        if len(self._written) >= _REMEMBERED:
            self._written.clear()
        self._written.add(event)
        return f"{event.iri} {' ; '.join(_times(event.start, event.end))} .\n{_graph(event.iri, event.triples)}"


def explained(match: Any) -> Iterator[Constituent]:
    """The events at the leaves of a match's explanation, each named by a hash of its triple, stream and time."""
    for leaf in match.why().events():
        start, end = leaf.interval
        name = f"<urn:etalis:event:{digest(leaf.stream, f'{start}/{end}', *leaf.triple)}>"
        yield Constituent(name, (leaf.triple,), start, end)


def match_iri(match: Match) -> str:
    """The name of a match, which is the same in every run because its id is.

    >>> from types import SimpleNamespace
    >>> match_iri(SimpleNamespace(id="a b"))
    '<urn:etalis:match:a%20b>'
    """
    return f"<urn:etalis:match:{quote(match.id, safe='-._~:')}>"


def solution_triples(match: Match) -> list[Triple]:
    """A SELECT match in the W3C's vocabulary for result sets."""
    node = "_:s" + digest(match.query, match.id)
    triples: list[Triple] = []
    for number, (variable, term) in enumerate(sorted(solution(match).items())):
        if term:
            binding = f"{node}b{number}"
            triples += [
                (node, f"<{RESULT_SET}binding>", binding),
                (binding, f"<{RESULT_SET}variable>", literal(variable)),
                (binding, f"<{RESULT_SET}value>", term),
            ]
    return triples or [(node, RDF_TYPE, f"<{RESULT_SET}ResultSolution>")]


def _times(start: int | str, end: int | str) -> list[str]:
    first, last = (f'"{time}"^^xsd:{time_type(time)}' for time in (start, end))
    return [f"prov:generatedAtTime {last}", f"prov:startedAtTime {first}", f"prov:endedAtTime {last}"]


def _graph(name: str, triples: Iterable[Triple]) -> str:
    return f"{name} {{\n" + "".join(f"  {s} {p} {o} .\n" for s, p, o in triples) + "}\n"
