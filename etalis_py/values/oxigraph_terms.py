"""The terms of pyoxigraph as spellings, and small Turtle texts read with it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyoxigraph as ox
from etalis_rules.spelling import PREFIXES
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


def parsed(document: str | bytes, syntax: ox.RdfFormat, *, base_iri: str | None = None) -> Iterator[ox.Quad]:
    """The quads of a document; ``SyntaxError`` or ``ValueError`` says what is wrong with it."""
    try:
        yield from ox.parse(document, syntax, base_iri=base_iri)
    except MemoryError as error:
        raise too_long(error) from None


def too_long(error: MemoryError) -> ValueError:
    """What pyoxigraph means by a lack of memory if the document is wrong; any other is raised again."""
    if "maximal size" not in str(error):
        raise error
    return ValueError("a term or a comment has more than 16,777,216 bytes, the most that the parser takes")


_PLACE = re.compile(r"^Parser error at line (\d+) [^:]*: ")


def read_turtle(text: str) -> tuple[tuple[str, str, str], ...]:
    """The triples of a Turtle text with the prefixes of queries; raises ``SyntaxError`` or ``ValueError``.

    >>> read_turtle(":acme :price 3 .")
    (('<http://example.org/acme>', '<http://example.org/price>', '"3"^^<http://www.w3.org/2001/XMLSchema#integer>'),)
    """
    try:
        return tuple(spell(quad)[:3] for quad in parsed(with_prefixes(text), ox.RdfFormat.TURTLE))
    except SyntaxError as error:
        # The prefixes stand in the first line, so the columns are not those of the text.
        raise SyntaxError(_PLACE.sub(r"line \1: " if "\n" in text.strip() else "", error.msg)) from None


def with_prefixes(text: str) -> str:
    """A short Turtle text after the prefixes that queries need not declare either, as far as it uses them.

    >>> with_prefixes(":Bank rdfs:subClassOf :Firm .")  # doctest: +NORMALIZE_WHITESPACE
    '@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    :Bank rdfs:subClassOf :Firm .'
    """
    used = (name for name in PREFIXES if not name or f"{name}:" in text)
    return "".join(f"@prefix {name}: <{PREFIXES[name]}> . " for name in used) + text


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
