"""How terms, variables and durations are spelled in the text of rules.

A variable of the query is ``?c``, one of a goal's own (``~0``) is ``X0``, as Prolog writes its variables.  A term is
its N-Triples spelling, shortened by the prefixes at the head of the text; whole and decimal numbers and booleans are
written bare.  Everything else is a word, or text between apostrophes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from .algebra import Bound
from .calendar import SECOND
from .durations import duration_text
from .terms import OWL, RDF, RDFS, XSD, is_iri, is_literal, parts

PREFIXES: Mapping[str, str] = MappingProxyType(
    {"": "http://example.org/", "owl": OWL, "rdf": RDF, "rdfs": RDFS, "xsd": XSD}
)

_LOCAL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_CANONICAL = re.compile(r"~(0|[1-9][0-9]*)")
_BLANK = re.compile(r"_:[^\s,()\[\]{}]+")
_BARE = {
    XSD + "integer": re.compile(r"-?[0-9]+"),
    XSD + "decimal": re.compile(r"-?[0-9]+\.[0-9]+"),
    XSD + "boolean": re.compile(r"true|false"),
}
_LITERAL = r'"(?:[^"\\\n]|\\.)*"'
_EXACT_LITERAL = re.compile(rf"{_LITERAL}(?:@[a-z0-9-]+|\^\^<[^<>\s]*>)?")
_EXACT_IRI = re.compile(r"<[^<>\s]*>")


@dataclass(frozen=True, slots=True)
class Spelling:
    """Spells under some prefixes."""

    prefixes: Mapping[str, str] = field(default_factory=lambda: PREFIXES)

    # --- names ---

    def variable(self, name: str) -> str:
        if _CANONICAL.fullmatch(name):
            return "X" + name[1:]
        return "?" + name

    # --- terms ---

    def iri(self, spelling: str) -> str:
        inner = spelling[1:-1]
        for prefix, namespace in self.prefixes.items():
            if inner.startswith(namespace) and _LOCAL.fullmatch(inner, len(namespace)):
                return f"{prefix}:{inner[len(namespace) :]}"
        return spelling

    def term(self, spelling: str) -> str:
        """A term as written in an expression or a triple."""
        if _EXACT_LITERAL.fullmatch(spelling):
            lexical, datatype, _ = parts(spelling)
            bare = _BARE.get(datatype)
            if bare is not None and bare.fullmatch(lexical):
                return lexical
        return self.text(spelling)

    # --- any text ---

    def text(self, value: str) -> str:
        """Any text: a word, an IRI or a literal as such, else between apostrophes."""
        if is_iri(value) and _EXACT_IRI.fullmatch(value):
            return self.iri(value)
        if is_literal(value) and _EXACT_LITERAL.fullmatch(value):
            cut = value.rfind('"^^<')
            return value if cut < 0 else f"{value[: cut + 3]}{self.iri(value[cut + 3 :])}"
        return value if _BLANK.fullmatch(value) or _WORD.fullmatch(value) else self.quoted(value)

    @staticmethod
    def quoted(value: str) -> str:
        inner = json.dumps(value)[1:-1].replace("'", "\\u0027")
        return f"'{inner}'"


# --- windows ---------------------------------------------------------------------------------------------------


def limit(bound: Bound) -> tuple[str, str]:
    """A bound as a relation and a length: ``("<", "P30D")``, ``("≤", "P1M")`` or ``("≤", "3 events")``.

    A strict bound of whole seconds is stored as the next smaller closed one; it is shown as written.
    """
    if bound.events:
        return "≤", f"{bound.events} events"
    if not bound.months and bound.micros >= 0 and (bound.micros + 1) % SECOND == 0:
        return "<", duration_text(0, bound.micros + 1)
    return "≤", duration_text(bound.months, bound.micros)


def bound_text(bound: Bound) -> str:
    """``below(P30D)``, ``upto(P1M)`` or ``events(3)``."""
    if bound.events:
        return f"events({bound.events})"
    relation, length = limit(bound)
    return f"{'below' if relation == '<' else 'upto'}({length})"
