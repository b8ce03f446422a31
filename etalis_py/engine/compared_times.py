"""Values that are compared with a time and are of another kind: texts, numbers, or dates where a dateTime is needed.

CSV and JSON have no dates, so a column of days is one of texts, and SPARQL compares no text with a date.  Nor does it
compare a date with a dateTime, which ``NOW()`` gives; and only times have a YEAR.

>>> from etalis_py import compile
>>> times = ComparedTimes.of(compile('SELECT ?o { ?o :due ?d FILTER (?d < "2026-04-01"^^xsd:date) }'))
>>> times.note("<http://example.org/due>", ['"2026-03-02"'])
>>> [text.partition(": ")[2] for text in times.warnings("")]
['?d < "2026-04-01"^^xsd:date lets none of them through; xsd:date(…) makes a date of one']
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from etalis_rules import algebra as alg
from etalis_rules.spelling import Spelling
from etalis_rules.terms import XSD, is_literal, literal, parts

from etalis_py.engine.needed_values import COMPARISONS, branches, conditions_of, sentence
from etalis_py.values import NUMERIC, Date, DateTime, LangString, decode

if TYPE_CHECKING:
    from etalis_py.engine.program import Program

_NOW = {"NOW": "NOW()", "GETSTARTTIME": "getSTARTTIME()", "GETENDTIME": "getENDTIME()"}
"""The functions that give a dateTime, as they are written."""
_DAYS = frozenset(("YEAR", "MONTH", "DAY"))
_NAMES: dict[type, str] = {DateTime: "dateTime", Date: "date"}


class _Demand(NamedTuple):
    """The kinds of time of which values must be, and what happens to others."""

    kinds: tuple[type, ...]
    effect: str


class ComparedTimes:
    """State: for each predicate one literal that is no such time, and whether any is one."""

    def __init__(self, demands: dict[str, _Demand], spelling: Spelling) -> None:
        self._demands, self._term = demands, spelling.term
        self._others: dict[str, str] = {}
        self._times: set[str] = set()

    @classmethod
    def of(cls, program: Program) -> ComparedTimes | None:
        """What looks at the values that a program compares with times; None if there are none."""
        spelling = Spelling(program.prefixes)
        demands: dict[str, _Demand] = {}
        for pattern in program.patterns:
            for branch, predicates in branches(pattern):
                for name, demand in _demands(conditions_of(branch), spelling):
                    demands.update(dict.fromkeys(predicates.get(name, ()), demand))
        return cls(demands, spelling) if demands else None

    @property
    def predicates(self) -> Collection[str]:
        """The predicates whose objects are looked at."""
        return self._demands.keys()

    def note(self, predicate: str, objects: Iterable[str]) -> None:
        """Take note of objects of a predicate that is looked at."""
        for term in filter(is_literal, objects):
            if isinstance(decode(term), self._demands[predicate].kinds):
                self._times.add(predicate)
            else:
                self._others.setdefault(predicate, term)

    def warnings(self, among: str) -> Iterator[str]:
        """What is of the wrong kind, by predicate; ``among`` says of how many events this is known, "" if of all."""
        for predicate, other in sorted(self._others.items()):
            kinds, effect = self._demands[predicate]
            which = "some values" if predicate in self._times else "all values"
            told = effect + _advice(other, kinds)
            yield sentence(self._term, which, predicate, other, among=among, kind=_kind(other, kinds), effect=told)

    def by_type(self, texts: Collection[str], numbers: Collection[str]) -> Iterator[str]:
        """The same before any event, of predicates whose objects are all texts, or all numbers."""
        for predicate, (_, effect) in sorted(self._demands.items()):
            for kind, wrong in (("texts", texts), ("numbers", numbers)):
                if predicate in wrong:
                    yield f"{self._term(predicate)} is a column of {kind}: {effect}"


def _demands(conditions: Iterable[alg.Expr], spelling: Spelling) -> Iterator[tuple[str, _Demand]]:
    """The variables that are compared with a time, or asked for a part of one."""
    for e in conditions:
        if not isinstance(e, alg.Apply) or e.op not in (*COMPARISONS, "=", "!="):
            continue
        for mine, other in (e.args, e.args[::-1]):
            time = _time(other, spelling)
            if isinstance(mine, alg.Var) and time is not None and e.op in COMPARISONS:
                sides = (f"?{mine.name}", time[1])
                one, two = sides if mine is e.args[0] else sides[::-1]
                yield mine.name, _Demand((time[0],), f"{one} {e.op} {two} lets none of them through")
            elif isinstance(mine, alg.Apply) and mine.op in _DAYS and isinstance(mine.args[0], alg.Var):
                name = mine.args[0].name
                effect = f"{mine.op}(?{name}) has no value, so the filter lets none of them through"
                yield name, _Demand((DateTime, Date), effect)


def _time(e: alg.Expr, spelling: Spelling) -> tuple[type, str] | None:
    """The kind of time that an expression certainly is, and how it is written."""
    match e:
        case alg.Const(term) if type(value := decode(term)) in _NAMES:
            return type(value), spelling.term(term)
        case alg.Apply(op) if op in _NOW:
            return DateTime, _NOW[op]
    return None


def _kind(term: str, kinds: tuple[type, ...]) -> str:
    """What a literal is, in the plural."""
    value = decode(term)
    if isinstance(value, (str, LangString)):
        return "texts"
    if type(value) in NUMERIC:
        return "numbers"
    return f"{_NAMES.get(type(value), f'no {_NAMES[kinds[0]]}')}s"


def _advice(term: str, kinds: tuple[type, ...]) -> str:
    """How a time is made of a value, if it can be."""
    value, text = decode(term), parts(term)[0]
    for kind in kinds:
        name = _NAMES[kind]
        spells = isinstance(value, str) and isinstance(decode(literal(text, XSD + name)), kind)
        if spells or isinstance(value, (Date, DateTime)):
            return f"; xsd:{name}(…) makes a {name} of one"
    return ""


__all__ = ["ComparedTimes"]
