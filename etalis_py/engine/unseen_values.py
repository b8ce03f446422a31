"""Constants that no event has had though one much like it occurred: "Login" for "login", "5" for 5, :Frim for :Firm.

Looked at are the objects of constant predicates, classes included, in patterns that every answer needs and in
``FILTER (?x = "Login")``, in the first events and in the background; those of ``?x IN ("Login", "Logout")`` and of
``VALUES ?x { "Login" "Logout" }`` only if no event had any of them.  A constant that nothing resembles is left alone:
an alarm may wait for it for years.

>>> from etalis_py import compile
>>> values = UnseenValues.of(compile('SELECT ?c { ?c :does "Login" }'))
>>> values.note("<http://example.org/does>", ['"login"'])
>>> list(values.warnings(""))
['no event had :does "Login"; did you mean "login"? (differs in upper and lower case only)']
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from etalis_rules import algebra as alg
from etalis_rules.spelling import Spelling
from etalis_rules.terms import RDF_TYPE, XSD, is_literal

if TYPE_CHECKING:
    from etalis_py.engine.program import Program
    from etalis_py.knowledge import Knowledge
    from etalis_py.values.term_likeness import Difference

_DISTINCT = 500
"""The values of a predicate that are kept; one with more has names or measurements, and is not compared."""
_SURELY = 0.3
"""Differences above this are in the letters: "failed" and "failing" may both be meant."""

Asked = dict[str, set[str]]
"""For each predicate the objects that are asked for."""


class UnseenValues:
    """State: the distinct objects of the predicates that are asked for by a constant, at most ``_DISTINCT`` of each."""

    def __init__(self, asked: Asked, spelling: Spelling, lists: Iterable[tuple[str, frozenset[str]]] = ()) -> None:
        """``lists``: the predicates of which one object of several is asked for, with these objects."""
        self._asked, self._term = asked, spelling.term
        self._lists: dict[str, list[frozenset[str]]] = {predicate: [] for predicate in asked}
        for predicate, terms in lists:
            self._lists[predicate].append(terms)
        self._seen: Asked = {predicate: set() for predicate in asked}

    @classmethod
    def of(cls, program: Program) -> UnseenValues | None:
        """What looks for the constants of a program; None if it has none, or derives events of its own."""
        if program.plans or derives_events(program):
            return None
        asked: Asked = {}
        lists: list[tuple[str, frozenset[str]]] = []
        for query in program.compilation.queries:
            for predicate, terms in _constants(alg.SubSelect(query.algebra)):
                asked.setdefault(predicate, set()).update(terms)
                lists.append((predicate, terms))
        return cls(asked, Spelling(program.prefixes), lists) if asked else None

    @property
    def predicates(self) -> Collection[str]:
        """The predicates whose objects are still looked at."""
        return self._asked

    def note(self, predicate: str, objects: Iterable[str]) -> None:
        """Take note of objects of a predicate that is looked at."""
        seen = self._seen[predicate]
        seen.update(objects)
        self._asked[predicate] -= seen.union(*(terms for terms in self._lists[predicate] if terms & seen))
        if not self._asked[predicate] or len(seen) > _DISTINCT:
            del self._asked[predicate]

    def warnings(self, among: str, knowledge: Knowledge | None = None) -> Iterator[str]:
        """The constants that no event had, each with the value that it is probably a slip of.

        ``among`` says of how many events this is known, "" if of all.  With ``knowledge``, what the background has or
        may derive is no slip.
        """
        had = f"no event{among} had" if knowledge is None else f"no event{among} and nothing in the background had"
        for predicate, terms in sorted(self._asked.items()):
            stored = set[str]() if knowledge is None else objects_in_background(predicate, knowledge)
            for term in sorted(terms) if stored is not None else ():
                if slip := self._slip(predicate, term, stored or set()):
                    asked = f"{self._term(predicate)} {self._term(term)}"
                    yield f"{had} {asked}; did you mean {self._term(slip[0])}? ({slip[1].text})"

    def _slip(self, predicate: str, term: str, stored: set[str]) -> tuple[str, Difference] | None:
        from etalis_py.values.term_likeness import slip_of  # few runs need it, and difflib takes a while to import

        if term in stored:
            return None
        if predicate == RDF_TYPE and (slip := slip_of(term, stored)):
            return slip  # an ontology lists its classes, so another letter is a slip there
        slip = slip_of(term, self._seen[predicate] | stored)
        return slip if slip is not None and slip[1].rank <= _SURELY else None


def derives_events(program: Program) -> bool:
    """Whether rules, windowed queries or facts of a program state triples of their own."""
    rules, plans = program.compilation.queries, program.plans
    return any(rule.template for rule in rules) or any(plan.template for plan in plans) or bool(program.facts)


def _constants(pattern: alg.Pattern) -> Iterator[tuple[str, frozenset[str]]]:
    """The objects of which every answer needs one, with their predicate."""
    predicates: dict[str, str] = {}
    for triple in alg.needed_triples(pattern):
        predicate = alg.constant_of(triple.predicate)
        if not predicate:
            continue
        if term := alg.constant_of(triple.object):
            yield predicate, frozenset((term,))
        else:
            predicates[alg.variable_of(triple.object)] = predicate
    for condition in alg.needed_conditions(pattern):
        name, terms = _one_of(condition)
        if name in predicates and terms and all(map(_is_spelled, terms)):
            yield predicates[name], terms
    for table in (part for part in alg.needed_parts(pattern) if isinstance(part, alg.Table)):
        for name, terms in zip(table.variables, map(frozenset, zip(*table.rows, strict=True)), strict=False):
            if name in predicates and all(terms):
                yield predicates[name], terms


def _one_of(condition: alg.Expr) -> tuple[str, frozenset[str]]:
    """The variable and the constants of ``?v = c`` and ``?v IN (c, …)``; none of any other condition."""
    match alg.listed(condition), alg.equated(condition):
        case (name, terms), _:
            return name, frozenset(terms)
        case _, ("=", name, term):
            return name, frozenset((term,))
    return "", frozenset()


def objects_in_background(predicate: str, knowledge: Knowledge) -> set[str] | None:
    """The objects that a predicate may have by the background; None if they cannot be told, or are too many."""
    schema, graph = knowledge.schema, knowledge.default
    derived = knowledge.entailment == "owlrl" or schema.sub_properties(predicate)
    if derived or knowledge.programs or knowledge.version:
        return None
    if predicate == RDF_TYPE:
        tables = schema.classes, schema.domains, schema.ranges, graph.pairs(RDF_TYPE)
        return {term for pairs in tables for _, term in pairs}
    objects = {term for _, term in graph.pairs(predicate)}
    return objects if len(objects) <= _DISTINCT else None


def _is_spelled(term: str) -> bool:
    """Whether ``=`` compares the term by its spelling, as it does with IRIs, texts and, but for 0 and 1, booleans."""
    return not is_literal(term) or "^^" not in (end := term.rpartition('"')[2]) or end == f"^^<{XSD}boolean>"


__all__ = ["UnseenValues"]
