"""The texts of a program sorted into families by their wording.

One text of each family is compiled; of the others only the name, the constants and the place are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from .. import ast
from ..ast.query_kinds import is_windowed
from ..diagnostics import Source
from ..parser import parse
from ..pipeline import QueryNames
from ..rewrites.reorder import AS_WRITTEN, JoinOrder
from .template import FamilyTemplate, template_of_text
from .wording import Wording, wording_of


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """How texts are read: base and prefixes, coupling and policy."""

    base: str
    prefixes: Mapping[str, str]
    coupling: JoinOrder
    policy: str

    @property
    def plain(self) -> bool:
        """Whether nothing is given from outside."""
        return not self.base and not self.prefixes and self.coupling == AS_WRITTEN

    def template(self, source: Source, wording: Wording) -> FamilyTemplate | None:
        """The template of the family of a text, if it can have one."""
        return template_of_text(
            source, wording, base=self.base, prefixes=self.prefixes, coupling=self.coupling, policy=self.policy
        )

    def document(self, source: Source) -> ast.Document:
        """The syntax of a text."""
        return parse(source.text, source=source.name, base=self.base, prefixes=self.prefixes)


class FamilyText(NamedTuple):
    """What is kept of a text that a template stands for: the query's name, constants, place and identity."""

    name: str
    constants: Sequence[str]
    place: int
    identity: str


@dataclass(frozen=True, slots=True)
class SortedTexts:
    """The texts of a program: those of each family, and the ``rest``, parsed, with the places of their queries."""

    families: tuple[tuple[FamilyTemplate, list[FamilyText]], ...]
    rest: list[tuple[ast.Document, Source]]
    places: list[int]


def sort_into_families(texts: Sequence[Source], reading: CompileOptions, fewest: int) -> SortedTexts | None:
    """The families among texts, of at least ``fewest`` each; None if there are none, or if some texts have windows."""
    if len(texts) < fewest:
        return None
    chosen = _chosen(texts, reading, fewest)
    if not chosen:
        return None
    documents: dict[int, ast.Document] = {}
    for i, text in enumerate(texts):
        if i not in chosen:
            documents[i] = reading.document(text)
            if any(map(is_windowed, documents[i].queries)):
                return None
    return _numbered(texts, documents, chosen)


def _chosen(
    texts: Sequence[Source], reading: CompileOptions, fewest: int
) -> dict[int, tuple[FamilyTemplate, tuple[str, ...]]]:
    """The texts that belong to families, each with the template and its constants."""
    alike: dict[tuple[str, ...], list[tuple[int, tuple[str, ...]]]] = {}
    for i, text in enumerate(texts):
        wording = wording_of(text)
        if wording is not None:
            alike.setdefault(wording.pieces, []).append((i, wording.constants))
    chosen: dict[int, tuple[FamilyTemplate, tuple[str, ...]]] = {}
    pending = list(alike.values())
    while pending:
        some = pending.pop()
        if len(some) < fewest:
            continue
        # A window of length 0 does not show its unit, so another text stands for all, if there is one.
        first, example = min(some, key=lambda one: one[1].count("0"))
        source = texts[first]
        wording = wording_of(source)
        template = None if wording is None else reading.template(source, wording)
        if template is None:
            continue
        families: dict[Any, list[tuple[int, tuple[str, ...]]]] = {}
        for i, given in some:
            families.setdefault(template.likeness(given), []).append((i, given))
        own = families.pop(template.likeness(example))
        if len(own) >= fewest:
            _choose(chosen, own, template)
        pending += families.values()
    return chosen


def _choose(
    chosen: dict[int, tuple[FamilyTemplate, tuple[str, ...]]],
    members: Sequence[tuple[int, tuple[str, ...]]],
    template: FamilyTemplate,
) -> None:
    known: dict[str, str] = {}
    for i, given in members:
        constants = template.constants_of(given)
        name = template.name_in(given)
        if constants is not None and name is not None:
            terms = [known.setdefault(term, term) for term in constants]
            chosen[i] = template, (name, *terms) if name else tuple(terms)


def _numbered(
    texts: Sequence[Source],
    documents: Mapping[int, ast.Document],
    chosen: Mapping[int, tuple[FamilyTemplate, tuple[str, ...]]],
) -> SortedTexts:
    """Names and places, as if each text had been compiled by itself."""
    names = QueryNames()
    rest: list[tuple[ast.Document, Source]] = []
    places: list[int] = []
    families: dict[str, tuple[FamilyTemplate, list[FamilyText]]] = {}
    for i, text in enumerate(texts):
        if i in chosen:
            template, constants = chosen[i]
            place = len(names.sources)
            if template.named >= 0:
                name, *constants = constants  # type: ignore[assignment]
                identity = names.add(name, text, name)
            else:
                name, identity = names.take(template.query.syntax, text, 1)
            _, members = families.setdefault(template.name, (template, []))
            members.append(FamilyText(name, constants, place, identity))
            continue
        document = documents[i]
        queries = []
        for syntax in document.queries:
            places.append(len(names.sources))
            name, identity = names.take(syntax, text, len(document.queries))
            register = syntax.register or ast.Register("QUERY", name, span=syntax.span)
            queries.append(replace(syntax, register=register, identity=identity))
        rest.append((replace(document, queries=tuple(queries)), text))
    return SortedTexts(tuple(families.values()), rest, places)


__all__ = ["CompileOptions", "FamilyText", "SortedTexts", "sort_into_families"]
