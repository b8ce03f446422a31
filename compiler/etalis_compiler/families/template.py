"""One query for a whole family: its text compiled with a marker for every constant that may differ.

A constant is a parameter if it is the subject or object of a triple pattern or an operand in a FILTER, and if its
marker comes out of the compiler as a constant in such a place.  All texts of the family have the other constants in
common.
Equal constants of a text are one parameter, so a text in which two constants are equal and one in which they differ
belong to two families.

The number in the length of a WITHIN is a parameter, too.  The rules depend on which of two bounds is shorter, so the
lengths in all texts of a family have the same order, and none of them is a parameter if some other bound is not.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import blake2s
from typing import NamedTuple

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules import terms
from etalis_rules.durations import RATIOS
from etalis_rules.traversal import walk as rules_walk

from .. import ast
from ..ast.query_kinds import is_windowed
from ..ast.walking import walk
from ..building.terms import TermBuilder
from ..diagnostics import Diagnostic, Source
from ..knowledge import NO_KNOWLEDGE, KnowledgeSummary
from ..parser import parse
from ..pipeline import Compilation, CompiledQuery, compile_documents, rules_of
from ..rewrites.reorder import AS_WRITTEN, JoinOrder
from .parameters import NoParameters, Parameterized, length_of, parameterized
from .wording import NAMES, Wording

_IRI = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9_~:/#?&=%+,;@!$*.-]*>")
_LOCAL = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST = 18  # digits, as in a text
_LONG = 1_000_000
"""A number of weeks that is longer than any window, from which the markers of lengths count up."""
_STRING = re.compile(r'"[^"\x00-\x1f\x7f]*"|\'[^"\'\x00-\x1f\x7f]*\'')


@dataclass(frozen=True, slots=True)
class FamilyTemplate:
    """The query of a family with markers, and the way the constants of a text fill its parameters.

    ``places`` has, for each parameter, the constants of the wording that give its value; ``named`` is the constant that
    names the query (-1: none does).  ``markers`` are the markers' terms.  ``units`` has, for each parameter, the
    microseconds of its unit if it is the length of a window, else 0.  ``warnings`` are those about the text that it was
    made of.
    """

    name: str
    wording: Wording
    places: tuple[tuple[int, ...], ...]
    named: int
    units: tuple[int, ...]
    namespaces: Mapping[str, str]
    markers: Mapping[str, int]
    query: CompiledQuery
    warnings: tuple[Diagnostic, ...] = field(default=(), compare=False)
    _rules: dict[str, Parameterized] = field(default_factory=dict, compare=False, repr=False)

    def rules(self, name: str, policy: str, knowledge: KnowledgeSummary = NO_KNOWLEDGE) -> Parameterized:
        """The rules of a family of this name, with ``policy`` if the texts name none; raises ``NoParameters``.

        Rules without a background are made once.
        """
        if knowledge is NO_KNOWLEDGE and name in self._rules:
            return self._rules[name]
        syntax = replace(self.query.syntax, policy=self.query.syntax.policy or policy)
        query = replace(self.query, name=name, syntax=syntax)
        seen = replace(knowledge, parameters=frozenset(self.markers)) if knowledge.infers else knowledge
        rules = parameterized(rules_of(Compilation((query,)), seen), name, self.markers)
        if knowledge is NO_KNOWLEDGE:
            self._rules[name] = rules
        return rules

    @property
    def is_numeric(self) -> tuple[bool, ...]:
        """For each parameter, whether it is a number."""
        return tuple(self.wording.kinds[places[0]] in ("NUMBER", "INTEGER") for places in self.places)

    @property
    def fixed(self) -> tuple[int, ...]:
        """The constants that all texts of the family share."""
        free = {place for places in self.places for place in places} | {self.named}
        return tuple(i for i in range(len(self.wording.constants)) if i not in free)

    def likeness(self, given: Sequence[str]) -> tuple[Hashable, ...]:
        """The properties of a text's constants that decide which family with this wording it belongs to."""
        first = [given[places[0]] for places in self.places]
        alike = all(given[place] == given[places[0]] for places in self.places for place in places)
        order = None if alike and len(set(first)) == len(first) else tuple(map(first.index, first))
        return (*[given[i] for i in self.fixed], alike, order, _ranks(first, self.units))

    def constants_of(self, given: Sequence[str]) -> tuple[str, ...] | None:
        """The terms of the parameters in a text with these constants; None if one of them has to be parsed."""
        kinds = self.wording.kinds
        values = [
            spelled_length(given[places[0]], unit)
            if unit
            else spelled(kinds[places[0]], given[places[0]], self.namespaces)
            for places, unit in zip(self.places, self.units, strict=True)
        ]
        return None if None in values else tuple(values)  # type: ignore[arg-type]

    def name_in(self, given: Sequence[str]) -> str | None:
        """The name that a text with these constants registers, if any; None if it has to be parsed."""
        if self.named < 0:
            return ""
        return registered(self.wording.kinds[self.named], given[self.named], self.namespaces)

    def text_of(self, name: str, constants: Sequence[str]) -> str:
        """The text of one query of the family, its constants written out."""
        given = list(self.wording.constants)
        for places, unit, term in zip(self.places, self.units, constants, strict=True):
            for place in places:
                given[place] = written_length(term, unit) if unit else written(term)
        if self.named >= 0:
            given[self.named] = name
        return self.wording.written(tuple(given))


def spelled(kind: str, text: str, namespaces: Mapping[str, str]) -> str | None:
    """The term that a constant stands for; None if its text alone does not say."""
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


def registered(kind: str, text: str, namespaces: Mapping[str, str]) -> str | None:
    """The name of a query that is written so; None if its text alone does not say."""
    return text if kind == NAMES["WORD"] else spelled(kind.removeprefix("QUERY "), text, namespaces)


def micros_of(text: str, unit: int) -> int | None:
    """The length of ``text`` units in microseconds; None if the text is not a usable number."""
    if len(text) > _LONGEST or "e" in text.lower():
        return None
    micros = Decimal(text) * unit
    return int(micros) if micros == micros.to_integral_value() else None


def spelled_length(text: str, unit: int) -> str | None:
    """The term that stands for a length of ``text`` units; None if there is none."""
    micros = micros_of(text, unit)
    return None if micros is None else length_of(micros)


def written_length(term: str, unit: int) -> str:
    """The number of units in a length, as written in a text."""
    return format((Decimal(terms.parts(term)[0]) / unit).normalize(), "f")


def _ranks(first: Sequence[str], units: Sequence[int]) -> tuple[int, ...] | None:
    """The order of the lengths among the constants, if there are several."""
    if len(units) - units.count(0) < 2:
        return None
    lengths = [micros_of(text, unit) for text, unit in zip(first, units, strict=True) if unit]
    known = sorted({micros for micros in lengths if micros is not None})
    return tuple(-1 if micros is None else known.index(micros) for micros in lengths)


def written(term: str) -> str:
    """A term as written in a text."""
    if term[0] == "<" or "^^" not in term:
        return term
    return terms.parts(term)[0]


def template_of_text(
    source: Source,
    wording: Wording,
    *,
    base: str = "",
    prefixes: Mapping[str, str] | None = None,
    coupling: JoinOrder = AS_WRITTEN,
    policy: str = "unrestricted",
) -> FamilyTemplate | None:
    """The template of a text's family; None if the text has to be compiled by itself.

    Raises ``QueryError`` for a text that cannot be used.
    """
    document = parse(source.text, source=source.name, base=base, prefixes=prefixes)
    if len(document.queries) != 1 or is_windowed(document.queries[0]):
        return None
    alone = compile_documents([(document, source)], coupling)
    rules_of(alone, policy=policy)
    namespaces: dict[str, str] = {}
    register = document.queries[0].register
    named = next((i for i, kind in enumerate(wording.kinds) if kind in NAMES.values()), -1)
    if register is not None and not _is_spelled(register.name, wording, named, namespaces):
        return None
    groups = [*_groups(document, wording, namespaces), *_lengths(document, wording)]
    while True:
        given = list(wording.constants)
        units = tuple(group.unit for group in groups)
        marks: dict[str, int] = {}
        for k, (text, term) in enumerate(_markers(groups, wording)):
            marks[term] = k
            for place in groups[k].places:
                given[place] = text
        marked = Source(wording.written(tuple(given)), source.name)
        syntax = parse(marked.text, source=source.name, base=base, prefixes=prefixes)
        if [warning.code for warning in syntax.warnings] != [warning.code for warning in document.warnings]:
            return None
        (query,) = compile_documents([(syntax, marked)], coupling).queries
        free = {place for group in groups for place in group.places}
        fixed = [c for i, c in enumerate(wording.constants) if i != named and i not in free]
        ranks = _ranks([wording.constants[group.places[0]] for group in groups], units)
        prologue = (base, sorted((prefixes or {}).items()), repr(coupling))
        key = repr((wording.pieces, fixed, groups, ranks, prologue))
        name = f"family {blake2s(key.encode(), digest_size=6).hexdigest()}"
        query = replace(query, name=name, syntax=replace(query.syntax, register=None))
        rules = rules_of(Compilation((query,)), policy=policy)
        try:
            if any(units) and not _are_comparable(rules, marks, ranks):
                raise NoParameters
            used = _with_longer(groups, wording, parameterized(rules, name, marks).used)
        except NoParameters:
            if not any(units):
                return None
            groups = [group for group in groups if not group.unit]
            continue
        if len(used) == len(groups):
            places = tuple(group.places for group in groups)
            return FamilyTemplate(name, wording, places, named, units, namespaces, marks, query, document.warnings)
        groups = [group for k, group in enumerate(groups) if k in used]


def _are_comparable(rules: ir.Rules, marks: Mapping[str, int], ranks: tuple[int, ...] | None) -> bool:
    """Whether all bounds are parameters with different lengths."""
    bounds = [node for node in rules_walk(rules) if isinstance(node, alg.Bound)]
    plain = all(not (b.months or b.events) and length_of(b.micros) in marks for b in bounds)
    return plain and (ranks is None or sorted(ranks) == list(range(len(ranks))))


def _with_longer(groups: Sequence[_Group], wording: Wording, used: frozenset[int]) -> frozenset[int]:
    """The parameters that are read, with those of windows that were dropped because a shorter one encloses them."""
    lengths = {k: micros_of(wording.constants[g.places[0]], g.unit) or 0 for k, g in enumerate(groups) if g.unit}
    shortest = min((lengths[k] for k in used if k in lengths), default=None)
    return used if shortest is None else used | {k for k, length in lengths.items() if length > shortest}


class _Group(NamedTuple):
    """Equal constants, which are one parameter; ``unit`` is the microseconds of its unit if it is a length."""

    places: tuple[int, ...]
    unit: int = 0


def _markers(groups: Sequence[_Group], wording: Wording) -> Iterator[tuple[str, str]]:
    """The marker for each parameter in the text, and its term.

    Markers of lengths are in the order of the lengths of the text, and longer than any of them.
    """
    constants = wording.constants
    lengths = sorted({micros_of(constants[group.places[0]], group.unit) or 0 for group in groups if group.unit})
    for k, group in enumerate(groups):
        if group.unit:
            micros = micros_of(constants[group.places[0]], group.unit) or 0
            term = length_of((_LONG + lengths.index(micros)) * RATIOS["w"][0])
            yield written_length(term, group.unit), term
        else:
            yield _marked(wording.kinds[group.places[0]], k)


def _marked(kind: str, number: int) -> tuple[str, str]:
    """The marker for a parameter in the text, and its term."""
    if kind in ("IRIREF", "PNAME_LN"):
        text = f"<urn:etalis:parameter:{number}>"
    elif kind == "STRING":
        text = f'"etalis parameter {number}"'
    else:
        text = f"{7_000_000_000_000_000_000 + number}{'' if kind == 'INTEGER' else '.25'}"
    return text, spelled(kind if kind != "PNAME_LN" else "IRIREF", text, {}) or ""


def _is_spelled(name: str, wording: Wording, place: int, namespaces: dict[str, str]) -> bool:
    """Whether the text of a name says which one it is; ``namespaces`` is given its prefix."""
    if place < 0:
        return False  # that of a stream
    text = wording.constants[place]
    prefix, colon, local = text.partition(":")
    if colon and name.endswith(f"{local}>"):
        namespaces.setdefault(prefix, name[1 : -1 - len(local)])
    return registered(wording.kinds[place], text, namespaces) == name


def _lengths(document: ast.Document, wording: Wording) -> list[_Group]:
    """The lengths of windows that are a single number of a unit of fixed length, equal ones together."""
    alike: dict[tuple[str, int], list[int]] = {}
    for node in walk(document.queries[0]):
        if not isinstance(node, ast.Duration):
            continue
        span = range(node.span.start, node.span.end)
        inside = [i for i, start in enumerate(wording.starts) if start in span]
        months, micros = node.length or (0, 0)
        if len(inside) != 1 or months or not micros:
            continue
        text = wording.constants[inside[0]]
        unit = micros / Decimal(text)
        if unit == unit.to_integral_value() and inside[0] not in alike.setdefault((text, int(unit)), []):
            alike[text, int(unit)].append(inside[0])
    return [_Group(tuple(places), unit) for (_, unit), places in alike.items()]


def _groups(document: ast.Document, wording: Wording, namespaces: dict[str, str]) -> list[_Group]:
    """The constants that may be parameters, equal ones together; ``namespaces`` is filled with their prefixes."""
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
    return [_Group(tuple(places)) for places in alike.values()]


def _candidates(query: ast.Query) -> Iterator[ast.Term]:
    for node in walk(query):
        if isinstance(node, ast.TriplePattern):
            yield from (part for part in (node.subject, node.object) if isinstance(part, ast.Term))
        elif isinstance(node, ast.Binary):
            yield from (part for part in (node.left, node.right) if isinstance(part, ast.Term))


__all__ = ["FamilyTemplate", "spelled", "template_of_text"]
