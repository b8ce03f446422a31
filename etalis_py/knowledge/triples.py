"""The triples that an update is given, and the check that terms form a triple of a graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etalis_rules.terms import is_blank, is_iri

from etalis_py.events import Triple
from etalis_py.knowledge.errors import KnowledgeError
from etalis_py.values.oxigraph_terms import read_turtle


def triples_of(given: str | Iterable[Any]) -> list[Any]:
    """The triples of an update, which may be given as a short Turtle text.

    >>> triples_of(":acme :in <urn:wien> .")
    [('<http://example.org/acme>', '<http://example.org/in>', '<urn:wien>')]
    """
    if not isinstance(given, str):
        return list(given)
    try:
        return list(read_turtle(given))
    except SyntaxError as error:
        raise KnowledgeError(
            f"{given!r} is not Turtle: {error.msg}", hint="end each statement with a full stop"
        ) from None


def check_triple(triple: tuple[str, ...]) -> Triple:
    """The triple; raises an error that says which term cannot be in its position."""
    s, p, o = triple
    if not (isinstance(s, str) and (is_iri(s) or is_blank(s))):
        raise KnowledgeError(f"{s!r} cannot be a subject", hint="an IRI in angle brackets or a blank node _:x")
    if not (isinstance(p, str) and is_iri(p)):
        raise KnowledgeError(f"{p!r} cannot be a predicate", hint="an IRI in angle brackets")
    if not (isinstance(o, str) and o[:1] in ("<", "_", '"')):
        raise KnowledgeError(
            f"{o!r} cannot be an object", hint="an IRI, a blank node or a literal in N-Triples spelling"
        )
    return s, p, o
