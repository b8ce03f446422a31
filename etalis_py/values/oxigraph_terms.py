"""The terms of pyoxigraph as spellings, and small Turtle texts read with it."""

from __future__ import annotations

import pyoxigraph as ox
from etalis_rules.terms import triple

MOST_NESTED = 64
TOO_DEEP = f"a triple term holds more than {MOST_NESTED} others; give the inner ones names (reifiers)"


def spell(quad: ox.Quad) -> tuple[str, str, str, str]:
    """A quad as term spellings: its N-Quads line is cut up, which costs less than spelling term by term.

    Raises ``ValueError`` for triple terms that are nested too deeply.
    """
    subject, predicate, rest = str(quad).split(" ", 2)
    if rest[0] != '"':
        if rest[:2] != "<<":
            obj, _, graph = rest.partition(" ")
            return subject, predicate, obj, graph
        if rest.count("<<(") > MOST_NESTED:
            spell_term(quad.object)  # the mark may be inside a literal
        obj, gap, graph = (rest, "", "") if rest.endswith(")>>") else rest.rpartition(" ")
        return subject, predicate, obj, graph
    obj, gap, graph = rest.rpartition(" ")
    # The last space may be inside the literal; then what follows it has the closing quote, which no graph name has.
    if not (gap and '"' not in graph):
        obj, graph = rest, ""
    return subject, predicate, obj, graph


def read_turtle(text: str) -> tuple[tuple[str, str, str], ...]:
    """The triples of a Turtle text in which the empty prefix is ``http://example.org/``; raises ``SyntaxError``.

    >>> read_turtle(":acme :price 3 .")
    (('<http://example.org/acme>', '<http://example.org/price>', '"3"^^<http://www.w3.org/2001/XMLSchema#integer>'),)
    """
    turtle = f"@prefix : <http://example.org/> . {text}"
    return tuple(spell(quad)[:3] for quad in ox.parse(turtle.encode(), ox.RdfFormat.TURTLE))


def spell_term(term: object) -> str:
    """A term of pyoxigraph as its spelling.  Raises ``ValueError`` for triple terms that are nested too deeply."""
    outside: list[tuple[str, str]] = []
    while isinstance(term, ox.Triple):
        outside.append((str(term.subject), str(term.predicate)))
        if len(outside) > MOST_NESTED:
            raise ValueError(TOO_DEEP)
        term = term.object
    spelled = str(term)
    for subject, predicate in reversed(outside):
        spelled = triple(subject, predicate, spelled)
    return spelled
