"""All of RDFS for the background, including the rules and triples that hold for every graph.

``rdfs`` leaves these out (rdfs1, 4a, 4b, 6, 8, 10, rdfD2 and the axiomatic triples of RDF 1.1 Semantics §8 and §9),
because an answer to ``?x a ?c`` would list every term as a resource.  Of the axiomatic triples about ``rdf:_n``, only
those whose n occurs are included.  Streamed triples are entailed as under ``rdfs``, by the resulting schema.

Definition: the least set that holds the graph and the axiomatic triples and is closed under all rules.  It is computed
in turns: ``rdfs.lp`` closes what there is, then the rules below are applied, until they give nothing new.

Cost: one turn for each time that new triples feed the schema, three or four in all; the closed graph has a few more
triples for each term and each predicate, and is computed again at every update.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from etalis_rules.terms import RDF, RDF_TYPE, RDFS, is_blank, is_iri

from etalis_py.events import Triple
from etalis_py.knowledge.derived_tables import derive
from etalis_py.knowledge.graph import Graph
from etalis_py.knowledge.schema import Schema
from etalis_py.knowledge.schema_closure import DOMAIN, RANGE, SUB_CLASS_OF, SUB_PROPERTY_OF, SchemaAnswer, close_rdfs
from etalis_py.knowledge.solving import Ask
from etalis_py.values.lexical import PARSERS

RESOURCE, CLASS, LITERAL, DATATYPE = (f"<{RDFS}{name}>" for name in ("Resource", "Class", "Literal", "Datatype"))
PROPERTY, STATEMENT, LIST = (f"<{RDF}{name}>" for name in ("Property", "Statement", "List"))
CONTAINER, MEMBERSHIP = f"<{RDFS}Container>", f"<{RDFS}ContainerMembershipProperty>"
_MEMBER = re.compile(re.escape(f"<{RDF}_") + "[1-9][0-9]*>")
_ENDS = {
    RDF_TYPE: (RESOURCE, CLASS),
    DOMAIN: (PROPERTY, CLASS),
    RANGE: (PROPERTY, CLASS),
    SUB_PROPERTY_OF: (PROPERTY, PROPERTY),
    SUB_CLASS_OF: (CLASS, CLASS),
    f"<{RDF}subject>": (STATEMENT, RESOURCE),
    f"<{RDF}predicate>": (STATEMENT, RESOURCE),
    f"<{RDF}object>": (STATEMENT, RESOURCE),
    f"<{RDFS}member>": (RESOURCE, RESOURCE),
    f"<{RDF}first>": (LIST, RESOURCE),
    f"<{RDF}rest>": (LIST, LIST),
    f"<{RDFS}seeAlso>": (RESOURCE, RESOURCE),
    f"<{RDFS}isDefinedBy>": (RESOURCE, RESOURCE),
    f"<{RDFS}comment>": (RESOURCE, LITERAL),
    f"<{RDFS}label>": (RESOURCE, LITERAL),
    f"<{RDF}value>": (RESOURCE, RESOURCE),
}
"""The domain and the range of each predicate of the vocabulary."""
_DATATYPES = (*PARSERS, f"{RDF}langString")


def axioms(terms: Iterable[str]) -> Iterator[Triple]:
    """The axiomatic triples; ``terms`` are those of the graph, which are searched for membership properties."""
    for p, (domain, range) in _ENDS.items():
        yield p, DOMAIN, domain
        yield p, RANGE, range
    for name in ("type", "subject", "predicate", "object", "first", "rest", "value"):
        yield f"<{RDF}{name}>", RDF_TYPE, PROPERTY
    yield f"<{RDF}nil>", RDF_TYPE, LIST
    for name in ("Alt", "Bag", "Seq"):
        yield f"<{RDF}{name}>", SUB_CLASS_OF, CONTAINER
    yield MEMBERSHIP, SUB_CLASS_OF, PROPERTY
    yield f"<{RDFS}isDefinedBy>", SUB_PROPERTY_OF, f"<{RDFS}seeAlso>"
    yield DATATYPE, SUB_CLASS_OF, CLASS
    for name in _DATATYPES:  # rdfs1
        yield f"<{name}>", RDF_TYPE, DATATYPE
    for member in filter(_MEMBER.fullmatch, terms):
        yield member, RDF_TYPE, PROPERTY
        yield member, RDF_TYPE, MEMBERSHIP
        yield member, DOMAIN, RESOURCE
        yield member, RANGE, RESOURCE


def close_rdfs_full(asserted: Graph, ask: Ask | None = None) -> SchemaAnswer:
    """The closure of a graph under all rules of RDFS; its ``derived`` has everything that is not stated."""
    plain = close_rdfs(asserted, ask)
    named = dict.fromkeys(term for triple in asserted for term in triple)
    known = dict.fromkeys([*asserted, *axioms(named)])
    while True:
        graph = Graph(known)
        closure = close_rdfs(graph, ask)
        tables = {**graph.tables, **derive(graph, closure, Schema.of(closure), "rdfs")}
        closed = dict.fromkeys((s, p, o) for p, table in tables.items() for s, o in table)
        new = [triple for triple in _of_every_graph(closed) if triple not in closed]
        if not new:
            break
        known = dict.fromkeys([*closed, *new])
    stated = frozenset(asserted)
    derived = tuple(triple for triple in closed if triple not in stated)
    return SchemaAnswer({}, plain.specimens, derived, plain.feeding, plain.feeding_classes)


def _of_every_graph(triples: Iterable[Triple]) -> Iterator[Triple]:
    for s, p, o in triples:
        yield p, RDF_TYPE, PROPERTY  # rdfD2
        yield s, RDF_TYPE, RESOURCE  # rdfs4a
        if is_iri(o) or is_blank(o):
            yield o, RDF_TYPE, RESOURCE  # rdfs4b
        if p == RDF_TYPE and o == PROPERTY:
            yield s, SUB_PROPERTY_OF, s  # rdfs6
        if p == RDF_TYPE and o == CLASS:
            yield s, SUB_CLASS_OF, RESOURCE  # rdfs8
            yield s, SUB_CLASS_OF, s  # rdfs10
