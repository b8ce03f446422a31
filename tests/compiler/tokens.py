"""What a text of rules spells: the inverse of ``etalis_rules.spelling``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from etalis_rules.algebra import Bound
from etalis_rules.durations import parse_duration
from etalis_rules.spelling import Spelling
from etalis_rules.terms import XSD, literal

_OWN = re.compile(r"X(0|[1-9][0-9]*)")
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
class Unspelling(Spelling):
    """Spells and un-spells under some prefixes."""

    def variable_of(self, token: Token) -> str | None:
        """The name that a token spells, or None when it spells no variable."""
        if token.kind == "variable":
            return token.text[1:]
        if token.kind == "word" and _OWN.fullmatch(token.text):
            return "~" + token.text[1:]
        return None

    def iri_of(self, prefixed: str) -> str | None:
        prefix, _, local = prefixed.partition(":")
        namespace = self.prefixes.get(prefix)
        return None if namespace is None else f"<{namespace}{local}>"

    def term_of(self, token: Token) -> str | None:
        """The term that a token spells, or None."""
        if token.kind == "number":
            return literal(token.text, XSD + ("decimal" if "." in token.text else "integer"))
        if token.kind == "word" and token.text in ("true", "false"):
            return literal(token.text, XSD + "boolean")
        return self.text_of(token) if token.kind in ("iri", "prefixed", "literal", "blank", "text") else None

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


def unquoted(text: str) -> str | None:
    """What stands between the apostrophes, or None when it has an invalid escape."""
    try:
        return str(json.loads(f'"{text[1:-1]}"'))
    except ValueError:
        return None


def bound_of(word: str, argument: str) -> Bound | None:
    """The inverse of ``bound_text``, from its word and what stands in the parentheses."""
    if word == "events":
        return Bound(events=int(argument)) if argument.isdecimal() else None
    parsed = parse_duration(argument)
    if parsed is None or word not in ("below", "upto"):
        return None
    return Bound(micros=parsed[1] - (word == "below"), months=parsed[0])
