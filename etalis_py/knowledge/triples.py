"""Checks that terms form a triple of a graph."""

from __future__ import annotations

from etalis_rules.terms import is_blank, is_iri

from etalis_py.events import Triple
from etalis_py.knowledge.errors import KnowledgeError


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
