"""RDFS consequences of single triples under a schema (RDF 1.1 Semantics §9, rules rdfs2, 3, 5, 7, 9, 11).

The consequences of a streamed triple are occurrences with its interval.
"""

from __future__ import annotations

from collections.abc import Iterable

from etalis_rules.terms import RDF_TYPE, RDFS, is_literal

Triple = tuple[str, str, str]
SUB_CLASS, SUB_PROPERTY, DOMAIN, RANGE = (
    f"<{RDFS}{name}>" for name in ("subClassOf", "subPropertyOf", "domain", "range")
)


def closed(triples: Iterable[Triple], schema: Iterable[Triple]) -> set[Triple]:
    """The triples and what they entail together with the schema, without the schema's own consequences."""
    rules = set(schema)
    found = set(triples)
    while True:
        more = {c for t in found for c in _consequences(t, rules)} - found
        if not more:
            return found
        found |= more


def _consequences(triple: Triple, schema: set[Triple]) -> Iterable[Triple]:
    s, p, o = triple
    for a, kind, b in schema:
        if kind == SUB_PROPERTY and a == p:
            yield s, b, o
        elif kind == DOMAIN and a == p:
            yield s, RDF_TYPE, b
        elif kind == RANGE and a == p and not is_literal(o):
            yield o, RDF_TYPE, b
        elif (kind == SUB_CLASS and p == RDF_TYPE and a == o) or (p == kind in (SUB_CLASS, SUB_PROPERTY) and a == o):
            yield s, p, b
