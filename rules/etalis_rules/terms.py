"""RDF terms as N-Triples spellings.

A term is a plain ``str``: ``<http://ex.org/a>``, ``_:b0``, ``"text"``, ``"chat"@fr`` or
``"01"^^<http://www.w3.org/2001/XMLSchema#integer>``.  The spelling is canonical (the escapes of canonical
N-Triples, no ``^^xsd:string``, lower-case language tags), so that two terms are the same RDF term exactly when
the strings are equal; the lexical form of a literal is kept as it was written.  The base direction of RDF 1.2 is part
of the language (``"x"@ar--rtl``), and a triple term is ``<<( s p o )>>`` with one space between its parts.
``UNBOUND`` (the empty string) stands for "no term": it sorts before every term.

>>> literal("01", XSD + "integer")
'"01"^^<http://www.w3.org/2001/XMLSchema#integer>'
>>> parts(literal("chat", language="FR"))
('chat', '', 'fr')
"""

from __future__ import annotations

import re
from collections.abc import Callable

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"

UNBOUND = ""
RDF_TYPE = f"<{RDF}type>"
TRUE = f'"true"^^<{XSD}boolean>'
FALSE = f'"false"^^<{XSD}boolean>'

_SHORT = {
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
    '"': '\\"',
    "\\": "\\\\",
}
_MUST_ESCAPE = re.compile('[\x00-\x1f\x7f"\\\\]')
_ESCAPED = re.compile(r'\\(?:([btnfr"\'\\])|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))')
_PLAIN = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "'": "'", "\\": "\\"}
_IN_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\]')


def escape(text: str) -> str:
    """The text as written between the quotes of a canonical N-Triples literal."""
    return _MUST_ESCAPE.sub(lambda m: _SHORT.get(m[0]) or f"\\u{ord(m[0]):04X}", text)


def unescape(text: str) -> str:
    """The inverse of ``escape``; takes every escape that N-Triples and SPARQL know."""
    if "\\" not in text:
        return text
    return _ESCAPED.sub(lambda m: _PLAIN[m[1]] if m[1] else chr(int(m[2] or m[3], 16)), text)


def iri(value: str) -> str:
    """The spelling of an IRI; characters that no IRI may hold become ``\\uXXXX``."""
    return "<" + _IN_IRI.sub(lambda m: f"\\u{ord(m[0]):04X}", value) + ">"


def literal(lexical: str, datatype: str = "", language: str = "") -> str:
    """The spelling of a literal; ``datatype`` is an IRI without angle brackets."""
    quoted = f'"{escape(lexical)}"'
    if language:
        return f"{quoted}@{language.lower()}"
    if datatype and datatype != XSD + "string":
        return f"{quoted}^^<{datatype}>"
    return quoted


def is_iri(term: str) -> bool:
    return term[:1] == "<" and term[:2] != "<<"


def is_triple(term: str) -> bool:
    """Whether it is a triple term (RDF 1.2)."""
    return term[:2] == "<<"


def triple(subject: str, predicate: str, object: str) -> str:
    """The spelling of a triple term."""
    return f"<<( {subject} {predicate} {object} )>>"


def triple_parts(term: str) -> tuple[str, str, str]:
    """Subject, predicate and object of a triple term.

    >>> triple_parts('<<( <urn:a> <urn:p> "x y" )>>')
    ('<urn:a>', '<urn:p>', '"x y"')
    """
    subject, predicate, object = term[4:-4].split(" ", 2)
    return subject, predicate, object


def with_blanks(term: str, rename: Callable[[str], str]) -> str:
    """The term with its blank nodes renamed, those inside a triple term too."""
    if term[:2] == "_:":
        return rename(term)
    if term[:2] != "<<" or "_:" not in term:
        return term
    return triple(*(with_blanks(part, rename) for part in triple_parts(term)))


def blanks_of(term: str) -> tuple[str, ...]:
    """The blank nodes of a term: itself, or those inside a triple term."""
    if term[:2] == "_:":
        return (term,)
    if term[:2] != "<<" or "_:" not in term:
        return ()
    return tuple(node for part in triple_parts(term) for node in blanks_of(part))


def is_triple_of(subject: str, predicate: str, object: str) -> bool:
    """Whether these terms can form a triple (RDF 1.2 Concepts §3.1)."""
    return (is_iri(subject) or is_blank(subject)) and is_iri(predicate) and object != ""


def is_blank(term: str) -> bool:
    return term[:2] == "_:"


def is_literal(term: str) -> bool:
    return term[:1] == '"'


def iri_value(term: str) -> str:
    """The IRI inside the angle brackets."""
    return unescape(term[1:-1])


def parts(term: str) -> tuple[str, str, str]:
    """``(lexical form, datatype IRI, language)`` of a literal; a plain literal has datatype ``""``."""
    if term[-1] == '"':
        return unescape(term[1:-1]), "", ""
    close = term.rindex('"')
    lexical, tail = unescape(term[1:close]), term[close + 1 :]
    if tail[0] == "@":
        return lexical, "", tail[1:]
    return lexical, tail[3:-1], ""
