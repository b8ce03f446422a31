"""One query for a whole family: its text compiled with a marker for every constant that may differ.

A constant is a parameter where it stands as the subject or object of a triple pattern or beside an operator of a
FILTER, and where its marker comes out of the compiler as a constant in such a place.  All others are part of what the
family shares.  Equal constants of a text are one parameter, so a text in which two constants are equal and one in which
they differ belong to two families.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2s

from etalis_rules import terms

from .. import ast
from ..ast.walking import walk
from ..building.terms import TermBuilder
from ..diagnostics import Source
from ..parser import parse
from ..pipeline import Compilation, CompiledQuery, compile_documents, rules_of
from ..rewrites.reorder import AS_WRITTEN, Coupling
from ..windowed import is_windowed
from .parameters import Unfit, parameterized
from .wording import NAME, Wording

_IRI = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9_~:/#?&=%+,;@!$*.-]*>")
_LOCAL = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(r'"[^"\x00-\x1f\x7f]*"|\'[^"\'\x00-\x1f\x7f]*\'')


@dataclass(frozen=True, slots=True)
class Template:
    """The query of a family with markers, and how the constants of a text fill its parameters.

    ``places`` has for each parameter the constants of the wording that are its value; ``named`` is the constant that
    names the query (-1: none does).  ``markers`` are the markers' terms.
    """

    name: str
    wording: Wording
    places: tuple[tuple[int, ...], ...]
    named: int
    namespaces: Mapping[str, str]
    markers: Mapping[str, int]
    query: CompiledQuery

    @property
    def is_numeric(self) -> tuple[bool, ...]:
        """Which parameters are numbers."""
        return tuple(self.wording.kinds[places[0]] in ("NUMBER", "INTEGER") for places in self.places)

    @property
    def fixed(self) -> tuple[int, ...]:
        """The constants that all texts of the family share."""
        free = {place for places in self.places for place in places} | {self.named}
        return tuple(i for i in range(len(self.wording.constants)) if i not in free)

    def likeness(self, given: Sequence[str]) -> tuple[Hashable, ...]:
        """What decides, among the constants of a text of this wording, which family it belongs to."""
        first = [given[places[0]] for places in self.places]
        alike = all(given[place] == given[places[0]] for places in self.places for place in places)
        order = None if alike and len(set(first)) == len(first) else tuple(map(first.index, first))
        return (*[given[i] for i in self.fixed], alike, order)

    def constants_of(self, given: Sequence[str]) -> tuple[str, ...] | None:
        """The terms of the parameters in a text with these constants; None where one has to be parsed."""
        kinds = self.wording.kinds
        found = [spelled(kinds[places[0]], given[places[0]], self.namespaces) for places in self.places]
        return None if None in found else tuple(found)  # type: ignore[arg-type]

    def text_of(self, name: str, constants: Sequence[str]) -> str:
        """The text of one query of the family, its constants written out."""
        given = list(self.wording.constants)
        for places, term in zip(self.places, constants, strict=True):
            for place in places:
                given[place] = written(term)
        if self.named >= 0:
            given[self.named] = name
        return self.wording.written(tuple(given))


def spelled(kind: str, text: str, namespaces: Mapping[str, str]) -> str | None:
    """The term that a constant stands for; None where that takes more than its text."""
    match kind:
        case "IRIREF":
            return text if _IRI.fullmatch(text) and "/." not in text else None
        case "PNAME_LN":
            prefix, _, local = text.partition(":")
            if prefix not in namespaces or not _LOCAL.fullmatch(local):
                return None
            return f"<{namespaces[prefix]}{local}>"
        case "NUMBER" | "INTEGER":
            return TermBuilder.number_of(text, 0, 0).spelling
        case "STRING":
            return f'"{text[1:-1]}"' if _STRING.fullmatch(text) else None
    return None


def written(term: str) -> str:
    """A term as it stands in a text."""
    if term[0] == "<" or "^^" not in term:
        return term
    return terms.parts(term)[0]


def template_of_text(
    source: Source,
    wording: Wording,
    *,
    base: str = "",
    prefixes: Mapping[str, str] | None = None,
    coupling: Coupling = AS_WRITTEN,
    policy: str = "unrestricted",
) -> Template | None:
    """The template of a text's family; None where the text has to be compiled by itself.

    Raises ``QueryError`` for a text that cannot be used.
    """
    document = parse(source.text, source=source.name, base=base, prefixes=prefixes)
    if len(document.queries) != 1 or document.warnings or is_windowed(document.queries[0]):
        return None
    alone = compile_documents([(document, source)], coupling)
    rules_of(alone, policy=policy)
    namespaces: dict[str, str] = {}
    groups = _groups(document, wording, namespaces)
    while True:
        marks: dict[str, int] = {}
        given = list(wording.constants)
        for k, places in enumerate(groups):
            mark, term = _marked(wording.kinds[places[0]], k)
            marks[term] = k
            for place in places:
                given[place] = mark
        text = Source(wording.written(tuple(given)), source.name)
        marked = parse(text.text, source=source.name, base=base, prefixes=prefixes)
        if marked.warnings:
            return None
        (query,) = compile_documents([(marked, text)], coupling).queries
        fixed = [c for i, c in enumerate(wording.constants) if wording.kinds[i] != NAME and not _within(i, groups)]
        key = repr((wording.pieces, fixed, groups, base, sorted((prefixes or {}).items()), repr(coupling)))
        name = f"family {blake2s(key.encode(), digest_size=6).hexdigest()}"
        query = replace(query, name=name, syntax=replace(query.syntax, register=None))
        named = next((i for i, kind in enumerate(wording.kinds) if kind == NAME), -1)
        try:
            used = parameterized(rules_of(Compilation((query,)), policy=policy), name, marks).used
        except Unfit:
            return None
        if len(used) == len(groups):
            return Template(name, wording, tuple(groups), named, namespaces, marks, query)
        groups = [places for k, places in enumerate(groups) if k in used]


def _within(place: int, groups: Sequence[tuple[int, ...]]) -> bool:
    return any(place in places for places in groups)


def _marked(kind: str, number: int) -> tuple[str, str]:
    """What stands for a parameter in the text, and its term."""
    if kind in ("IRIREF", "PNAME_LN"):
        text = f"<urn:etalis:parameter:{number}>"
    elif kind == "STRING":
        text = f'"etalis parameter {number}"'
    else:
        text = f"{7_000_000_000_000_000_000 + number}{'' if kind == 'INTEGER' else '.25'}"
    return text, spelled(kind if kind != "PNAME_LN" else "IRIREF", text, {}) or ""


def _groups(document: ast.Document, wording: Wording, namespaces: dict[str, str]) -> list[tuple[int, ...]]:
    """The constants that may be parameters, equal ones together; ``namespaces`` is filled by their prefixes."""
    place_at = {start: i for i, start in enumerate(wording.starts)}
    alike: dict[tuple[str, str], list[int]] = {}
    for term in _candidates(document.queries[0]):
        place = place_at.get(term.span.start, -1)
        if place < 0 or term.span.end != term.span.start + len(wording.constants[place]):
            continue
        kind, text = wording.kinds[place], wording.constants[place]
        if kind == "PNAME_LN":
            prefix, _, local = text.partition(":")
            namespaces.setdefault(prefix, term.spelling[1 : -1 - len(local)])
        if kind == "NUMBER" and "e" in text.lower():
            continue
        if spelled(kind, text, namespaces) == term.spelling:
            places = alike.setdefault((kind, text), [])
            if place not in places:
                places.append(place)
    return [tuple(places) for places in alike.values()]


def _candidates(query: ast.Query) -> Iterator[ast.Term]:
    for node in walk(query):
        if isinstance(node, ast.TriplePattern):
            yield from (part for part in (node.subject, node.object) if isinstance(part, ast.Term))
        elif isinstance(node, ast.Binary):
            yield from (part for part in (node.left, node.right) if isinstance(part, ast.Term))


__all__ = ["Template", "spelled", "template_of_text"]
