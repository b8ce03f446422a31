"""rdflib's graphs and terms as canonical spellings.  The only module that loads rdflib."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, TypeGuard

import rdflib
from etalis_rules import terms
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID

from etalis_py.events import Triple
from etalis_py.knowledge.errors import KnowledgeError
from etalis_py.knowledge.triples import check_triple

_lock = threading.Lock()


class Unreadable(ValueError):
    """A document that rdflib's parser refuses, with the line if it gives one (else 0)."""

    def __init__(self, error: Any):
        self.message = f"{type(error).__name__}: {error}"
        self.line = getattr(error, "getLineNumber", lambda: 0)() or getattr(error, "lines", 0) or 0
        super().__init__(self.message)


def parse(data: bytes, syntax: str, base: str) -> Iterator[tuple[str, Triple]]:
    """The triples of a document, each with its graph.  Literals keep their lexical form."""
    dataset = rdflib.Dataset()
    with _lock:
        before, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
        try:
            dataset.parse(data=data, format=syntax, publicID=base or None)
        except Exception as error:
            raise Unreadable(error) from error
        finally:
            rdflib.NORMALIZE_LITERALS = before
    return quads(dataset)


def is_graph(source: object) -> TypeGuard[rdflib.Graph]:
    """Whether it is an rdflib graph or dataset."""
    return isinstance(source, rdflib.Graph)


def quads(graph: rdflib.Graph) -> Iterator[tuple[str, Triple]]:
    """The triples of a graph or dataset, each with the name of its graph."""
    if isinstance(graph, rdflib.Dataset):
        for s, p, o, context in graph.quads():
            name = getattr(context, "identifier", context)
            in_default = name is None or name == DATASET_DEFAULT_GRAPH_ID
            yield "" if in_default else of_rdflib_term(name), _triple(s, p, o)
    else:
        for s, p, o in graph:
            yield "", _triple(s, p, o)


def _triple(s: object, p: object, o: object) -> Triple:
    return check_triple((of_rdflib_term(s), of_rdflib_term(p), of_rdflib_term(o)))


def of_rdflib_term(term: object) -> str:
    """The canonical spelling of an rdflib term."""
    if isinstance(term, rdflib.URIRef):
        return terms.iri(str(term))
    if isinstance(term, rdflib.BNode):
        return f"_:{term}"
    if isinstance(term, rdflib.Literal):
        return terms.literal(str(term), str(term.datatype or ""), term.language or "")
    raise KnowledgeError(f"{term!r} ({type(term).__name__}) is not an RDF term")
