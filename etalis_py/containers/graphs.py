"""RDF in and out: from a request's body to stored N-Triples, and back to any requested syntax.

A stored graph is canonical N-Triples in which this server's own addresses begin with a base of the store's
(``x-…://s/``), so that a store can be served under any host name; the base is replaced when a graph is sent
(``Base.out``).  The base is random for each store, so no literal holds it by accident.

Blank nodes are relabelled on arrival, one series per member: so windows of several graphs never mix them up.
"""

from __future__ import annotations

import re
import secrets
from codecs import BOM_UTF8
from collections.abc import Iterable
from dataclasses import dataclass

import pyoxigraph as ox
from etalis_rules.spelling import PREFIXES as KNOWN_PREFIXES
from etalis_rules.terms import XSD, iri, literal

from etalis_py.events import Triple
from etalis_py.events.clock import TimeError, parse_datetime

from .problems import Problem
from .vocabulary import PREFIXES, PROV

DATE_TIME = XSD + "dateTime"
DATE_TIME_STAMP = XSD + "dateTimeStamp"
_TIME_ENDS = (f'"^^<{DATE_TIME}>', f'"^^<{DATE_TIME_STAMP}>')

TURTLE, NTRIPLES, JSONLD = "text/turtle", "application/n-triples", "application/ld+json"
TRIG, NQUADS, NDJSON = "application/trig", "application/n-quads", "application/x-ndjson"

FORMATS: dict[str, ox.RdfFormat] = {
    TURTLE: ox.RdfFormat.TURTLE,
    JSONLD: ox.RdfFormat.JSON_LD,
    NTRIPLES: ox.RdfFormat.N_TRIPLES,
    TRIG: ox.RdfFormat.TRIG,
    NQUADS: ox.RdfFormat.N_QUADS,
}
SHORT = {TURTLE: "ttl", JSONLD: "jsonld", NTRIPLES: "nt", TRIG: "trig", NQUADS: "nq", NDJSON: "ndjson"}
GRAPH_BYTES = 4 * 1024 * 1024
POSTABLE = (TURTLE, JSONLD, NTRIPLES, TRIG, NQUADS)
CSV, JSON = "text/csv", "application/json"
ROWS = (CSV, JSON, NDJSON)
_KNOWN = {**KNOWN_PREFIXES, "prov": PROV}
_PROLOGUE = "".join(f"@prefix {name}: <{iri}> . " for name, iri in _KNOWN.items()).encode() + b"\n"

# The name and the blank nodes of a member are known only when it is stored: these are placeholders until then.
SELF = f"self-{secrets.token_hex(8)}"
BLANK = f"_:b{secrets.token_hex(8)}x"


@dataclass(frozen=True, slots=True)
class Base:
    """The two spellings of this server's addresses: the store's own and the one of a request."""

    inner: str
    outer: str

    def out(self, data: bytes) -> bytes:
        return data.replace(b"<" + self.inner.encode(), b"<" + self.outer.encode())

    def out_iri(self, path: str) -> str:
        """The public address of a path that begins with ``/``."""
        return self.outer + path[1:]

    def into(self, value: str) -> str:
        """The stored spelling of an IRI (without angle brackets)."""
        if value.startswith(self.outer):
            return self.inner + value[len(self.outer) :]
        scheme = self.inner.partition(":")[0] + ":"
        if value.startswith(scheme) and not value.startswith(self.inner):
            # A reference such as <//other.org/x> takes only the scheme of the base.
            return self.outer.partition(":")[0] + ":" + value[len(scheme) :]
        return value


@dataclass(frozen=True, slots=True)
class Stamp:
    """The time of a graph by one relation ([SC] §3.3, t_pred); ``own``: stated about the resource itself.

    Among several times, the resource's own take precedence, then the latest: a graph is complete when its last part is.
    """

    time: int
    own: bool


@dataclass(frozen=True, slots=True)
class ReceivedGraph:
    """A graph as received: its triples (stored spelling), its times by relation, and the IRI it uses for itself.

    The labels of its blank nodes begin with ``blank`` until it is stored; each process has its own prefix.
    """

    triples: tuple[Triple, ...]
    stamps: dict[str, Stamp]
    me: str
    blank: str = BLANK

    def settled(self, me: str, blank: str) -> bytes:
        """The graph to be stored, under its final address, with its blank nodes in a series of their own."""
        body = ntriples(self.triples).replace(self.blank.encode(), f"_:{blank}".encode())
        return body if me == self.me else body.replace(self.me[:-1].encode(), me[:-1].encode())


def ntriples(triples: Iterable[Triple]) -> bytes:
    return "".join(f"{s} {p} {o} .\n" for s, p, o in triples).encode()


def parse(
    data: bytes, media_type: str, path: str, base: Base, max_triples: int, max_bytes: int = GRAPH_BYTES
) -> ReceivedGraph:
    """The graph of a body whose null relative IRI is ``path``; a ``Problem`` that says where it is wrong.

    Prefixes and contexts make a graph longer than its body, far longer if intended: ``max_bytes`` bounds its triples.

    A named graph is merged with the default one, but only a single graph may be named: a stream item is one graph.
    JSON-LD contexts are never fetched.  In Turtle and TriG the prefixes that queries know need no declaration.
    """
    declares = media_type in (TURTLE, TRIG)
    try:
        text = _PROLOGUE + data.removeprefix(BOM_UTF8) if declares else data
        quads = ox.parse(text, FORMATS[media_type], base_iri=base.inner + path[1:])
        return _graph(quads, base, base.inner + path[1:], max_triples, max_bytes)
    except (SyntaxError, ValueError) as error:
        reason = str(error)
        if "LoadDocumentCallback" in reason:
            raise Problem(
                "constraint", "the JSON-LD names a remote context, which is never fetched; write it inline"
            ) from None
        if declares:
            reason = re.sub(r"\bline (\d+)", lambda found: f"line {int(found[1]) - 1}", reason)
        raise Problem("bad-request", f"the body is not {media_type}: {reason}") from None


def spelled_term(term: object, base: Base, blanks: dict[str, str], kind: str) -> str:
    """A term that was read, under an address of this server; ``blanks`` numbers the blank nodes.

    ``kind`` is that of the ``Problem`` with a term that is not of RDF 1.1.
    """
    if isinstance(term, ox.NamedNode):
        return iri(base.into(term.value))
    if isinstance(term, ox.BlankNode):
        return blanks.setdefault(term.value, f"{BLANK}{len(blanks)}")
    if isinstance(term, ox.Literal) and term.direction is None:
        return literal(term.value, term.datatype.value, term.language or "")
    raise Problem(kind, "triple terms and base directions (RDF 1.2) are not taken; write plain RDF 1.1 terms")


def _graph(quads: Iterable[ox.Quad], base: Base, me: str, max_triples: int, max_bytes: int) -> ReceivedGraph:
    blanks: dict[str, str] = {}
    names: set[str] = set()
    triples: dict[Triple, None] = {}
    size = 0

    def spell(term: object) -> str:
        return spelled_term(term, base, blanks, "constraint")

    for quad in quads:
        triple = (spell(quad.subject), spell(quad.predicate), spell(quad.object))
        size += sum(map(len, triple))
        triples[triple] = None
        if len(triples) > max_triples:
            raise Problem("too-large", f"the graph has more than {max_triples} triples (triples_per_graph)")
        if size > max_bytes:
            raise Problem("too-large", f"the graph is longer than {max_bytes} bytes as N-Triples (graph_bytes)")
        if not isinstance(quad.graph_name, ox.DefaultGraph):
            names.add(str(quad.graph_name))
            if len(names) > 1:
                raise Problem("constraint", "the body names several graphs; post one graph at a time")
    return stamped(tuple(triples), f"<{me}>")


def stamped(triples: tuple[Triple, ...], me: str) -> ReceivedGraph:
    """The graph of these triples about ``me``, with the times that it gives."""
    stamps: dict[str, Stamp] = {}
    for s, p, o in triples:
        if o.endswith(_TIME_ENDS):
            _stamp(stamps, p, o[1 : o.rindex('"')], s == me)
    return ReceivedGraph(triples, stamps, me)


def _stamp(stamps: dict[str, Stamp], relation: str, lexical: str, own: bool) -> None:
    try:
        stamp = Stamp(parse_datetime(lexical), own)
    except TimeError:
        return  # not a time: that only matters if the container orders by it, and ``order_time`` reports it
    known = stamps.get(relation)
    if known is None or (stamp.own, stamp.time) > (known.own, known.time):
        stamps[relation] = stamp


def order_time(graph: ReceivedGraph, relation: str) -> int | None:
    """The time of a graph by the relation that orders its container; None if it gives none."""
    stamp = graph.stamps.get(relation)
    if stamp is not None:
        return stamp.time
    unreadable = next((o for _, p, o in graph.triples if p == relation), None)
    if unreadable is None:
        return None
    raise Problem(
        "constraint",
        f"{relation} orders this container, and its value {unreadable} is not a time; "
        "expected an xsd:dateTime or xsd:dateTimeStamp such as 2021-07-20T10:51:08.657Z, no finer than microseconds",
    )


def triples_of(body: bytes) -> tuple[Triple, ...]:
    """The triples of a stored graph."""
    quads = ox.parse(body, ox.RdfFormat.N_TRIPLES)
    return tuple((str(q.subject), str(q.predicate), str(q.object)) for q in quads)


def serialize(body: bytes, media_type: str, base: Base, path: str) -> bytes:
    """A stored graph in a syntax, with public addresses; in Turtle they are relative to ``path``."""
    if media_type in (NTRIPLES, NQUADS):
        return base.out(body)
    if media_type == JSONLD:
        quads = ox.parse(base.out(body), ox.RdfFormat.N_TRIPLES)
        return ox.serialize((q.triple for q in quads), format=FORMATS[media_type]) or b"[]"
    by_subject: dict[object, list[ox.Triple]] = {}
    for quad in ox.parse(body, ox.RdfFormat.N_TRIPLES):
        by_subject.setdefault(quad.subject, []).append(quad.triple)
    used = {k: iri for k, iri in PREFIXES.items() if f"<{iri}".encode() in body}
    grouped = (triple for group in by_subject.values() for triple in group)
    # With the inner base only this server's own addresses become relative, not others of the same scheme.
    me = base.inner + path[1:]
    return base.out(ox.serialize(grouped, format=FORMATS[media_type], prefixes=used, base_iri=me) or b"")
