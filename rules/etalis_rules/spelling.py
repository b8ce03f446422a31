"""How terms, variables and durations are spelled in the text of rules, and how that text is cut into tokens.

A variable of the query is ``?c``, one of a goal's own (``~0``) is ``X0``, as Prolog writes its variables.  A term is
its N-Triples spelling, shortened by the prefixes at the head of the text; whole and decimal numbers and truth values
stand bare.  Everything else is a word, or text between apostrophes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from .algebra import Bound
from .calendar import SECOND
from .durations import duration_text, parse_duration
from .terms import OWL, RDF, RDFS, XSD, is_iri, is_literal, literal, parts

PREFIXES: Mapping[str, str] = MappingProxyType(
    {"": "http://example.org/", "owl": OWL, "rdf": RDF, "rdfs": RDFS, "xsd": XSD}
)

_LOCAL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_OWN = re.compile(r"X(0|[1-9][0-9]*)")
_CANONICAL = re.compile(r"~(0|[1-9][0-9]*)")
_PLAIN_NAME = re.compile(r"[^\s,()\[\]{}]+")
_BARE = {
    XSD + "integer": re.compile(r"-?[0-9]+"),
    XSD + "decimal": re.compile(r"-?[0-9]+\.[0-9]+"),
    XSD + "boolean": re.compile(r"true|false"),
}
_LITERAL = r'"(?:[^"\\\n]|\\.)*"'
_PREFIXED = r"(?:[A-Za-z][A-Za-z0-9_-]*)?:[A-Za-z_][A-Za-z0-9_-]*"
_TOKENS = re.compile(
    r"[ \t]*(?:"
    r"(?P<iri><[^<>\s]*>)"
    rf"|(?P<literal>{_LITERAL}(?:@[A-Za-z0-9-]+|\^\^(?:<[^<>\s]*>|{_PREFIXED}))?)"
    r"|(?P<text>'[^'\n]*')"
    r"|(?P<blank>_:[^\s,()\[\]{}]+)"
    r"|(?P<variable>\?[^\s,()\[\]{}]+)"
    rf"|(?P<prefixed>{_PREFIXED})"
    r"|(?P<duration>-?P(?=T?[0-9])[0-9YMWDTHS.]+(?![A-Za-z0-9_-]))"
    r"|(?P<number>-?[0-9]+(?:\.[0-9]+)?(?![A-Za-z0-9_]))"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_-]*)"
    r"|(?P<mark>:=|&&|\|\||!=|<=|>=|[-+*/<>=()\[\],])"
    r")"
)
_EXACT_LITERAL = re.compile(rf"{_LITERAL}(?:@[a-z0-9-]+|\^\^<[^<>\s]*>)?")
_EXACT_IRI = re.compile(r"<[^<>\s]*>")


class Token(NamedTuple):
    kind: str
    text: str
    column: int


def tokens(line: str) -> Iterator[Token]:
    """The tokens of a line; a character that begins none is a token of kind ``wrong``."""
    at, end = 0, len(line.rstrip())
    while at < end:
        token = _TOKENS.match(line, at)
        if token is None or token.lastgroup is None:
            yield Token("wrong", line[at:].strip()[:1], at + 1)
            return
        yield Token(token.lastgroup, token[token.lastgroup], token.start(token.lastgroup) + 1)
        at = token.end()


@dataclass(frozen=True, slots=True)
class Spelling:
    """Spells and un-spells under some prefixes."""

    prefixes: Mapping[str, str] = field(default_factory=lambda: PREFIXES)

    # --- names ---

    def variable(self, name: str) -> str:
        if _CANONICAL.fullmatch(name):
            return "X" + name[1:]
        return "?" + name

    def variable_of(self, token: Token) -> str | None:
        """The name that a token spells, or None when it spells no variable."""
        if token.kind == "variable":
            return token.text[1:]
        if token.kind == "word" and _OWN.fullmatch(token.text):
            return "~" + token.text[1:]
        return None

    # --- terms ---

    def iri(self, spelling: str) -> str:
        inner = spelling[1:-1]
        for prefix, namespace in self.prefixes.items():
            if inner.startswith(namespace) and _LOCAL.fullmatch(inner, len(namespace)):
                return f"{prefix}:{inner[len(namespace) :]}"
        return spelling

    def iri_of(self, prefixed: str) -> str | None:
        prefix, _, local = prefixed.partition(":")
        namespace = self.prefixes.get(prefix)
        return None if namespace is None else f"<{namespace}{local}>"

    def term(self, spelling: str) -> str:
        """A term as it stands in an expression or a triple."""
        if _EXACT_LITERAL.fullmatch(spelling):
            lexical, datatype, _ = parts(spelling)
            bare = _BARE.get(datatype)
            if bare is not None and bare.fullmatch(lexical):
                return lexical
        return self.text(spelling)

    def term_of(self, token: Token) -> str | None:
        """The term that a token spells, or None."""
        if token.kind == "number":
            return literal(token.text, XSD + ("decimal" if "." in token.text else "integer"))
        if token.kind == "word" and token.text in ("true", "false"):
            return literal(token.text, XSD + "boolean")
        return self.text_of(token) if token.kind in ("iri", "prefixed", "literal", "blank", "text") else None

    # --- any text ---

    def text(self, value: str) -> str:
        """Any text: a word, an IRI or a literal as such, else between apostrophes."""
        if is_iri(value) and _EXACT_IRI.fullmatch(value):
            return self.iri(value)
        if is_literal(value) and _EXACT_LITERAL.fullmatch(value):
            cut = value.rfind('"^^<')
            return value if cut < 0 else f"{value[: cut + 3]}{self.iri(value[cut + 3 :])}"
        if value[:2] == "_:" and _PLAIN_NAME.fullmatch(value):
            return value
        return value if _WORD.fullmatch(value) else self.quoted(value)

    def text_of(self, token: Token) -> str | None:
        """The inverse of ``text``; None where the token cannot stand for a text."""
        match token.kind:
            case "text":
                return unquoted(token.text)
            case "prefixed":
                return self.iri_of(token.text)
            case "literal":
                close = token.text.rindex('"')
                tail = token.text[close + 1 :]
                if tail[:2] != "^^" or tail[2] == "<":
                    return token.text
                datatype = self.iri_of(tail[2:])
                return None if datatype is None else f"{token.text[: close + 1]}^^{datatype}"
            case "iri" | "blank" | "word" | "duration":
                return token.text
        return None

    @staticmethod
    def quoted(value: str) -> str:
        inner = json.dumps(value)[1:-1].replace("'", "\\u0027")
        return f"'{inner}'"


def unquoted(text: str) -> str | None:
    """What stands between the apostrophes, or None when it has an invalid escape."""
    try:
        return str(json.loads(f'"{text[1:-1]}"'))
    except ValueError:
        return None


# --- windows ---------------------------------------------------------------------------------------------------


def limit(bound: Bound) -> tuple[str, str]:
    """A bound as a relation and a length: ``("<", "P30D")``, ``("≤", "P1M")`` or ``("≤", "3 events")``.

    A strict bound of whole seconds is held as the next smaller closed one; it is shown as it was written.
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


def bound_of(word: str, argument: str) -> Bound | None:
    """The inverse of ``bound_text``, from its word and what stands in the parentheses."""
    if word == "events":
        return Bound(events=int(argument)) if argument.isdecimal() else None
    parsed = parse_duration(argument)
    if parsed is None or word not in ("below", "upto"):
        return None
    return Bound(micros=parsed[1] - (word == "below"), months=parsed[0])
