"""What RDFS and OWL make of the triples of one event, together with the background.

RDFS and most of OWL conclude from single triples (``schema.Schema``).  The other rules of OWL (``owl_rules``) are
applied until nothing new follows; at least one premise is of the event, the others may be of the background.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from etalis_rules.terms import RDF_TYPE, is_literal

from etalis_py.events import Triple
from etalis_py.knowledge.graph import Graph
from etalis_py.knowledge.owl_rules import OwlRule, Pattern
from etalis_py.knowledge.schema import Schema

Terms = Mapping[str, str]
"""The terms of variables."""


class EventClosure:
    """The closure of the triples of an event.

    >>> from etalis_py.knowledge.schema_closure import NOTHING
    >>> rules = [OwlRule(("?y", "<urn:holds>", "?x"), (("?x", "<urn:in>", "?y"),))]
    >>> EventClosure(Graph(), Schema.of(NOTHING), rules).of([("<urn:a>", "<urn:in>", "<urn:b>")])
    (('<urn:a>', '<urn:in>', '<urn:b>'), ('<urn:b>', '<urn:holds>', '<urn:a>'))
    """

    def __init__(self, background: Graph, schema: Schema, rules: Iterable[OwlRule]) -> None:
        self.background = background
        self.schema = schema
        self.rules: dict[str, list[tuple[OwlRule, int]]] = {}
        """For the predicate of a premise (and the class, of a type): the rules, and which premise it is."""
        for rule in rules:
            for number, premise in enumerate(rule.body):
                self.rules.setdefault(_key(premise), []).append((rule, number))

    def of(self, triples: Iterable[Triple]) -> tuple[Triple, ...]:
        """The triples and what follows from them, each once."""
        whole: dict[Triple, None] = {}
        waiting = [t for triple in triples for t in self.of_triple(triple)]
        for triple in waiting:  # grows
            if triple in whole:
                continue
            whole[triple] = None
            for rule, number in self.rules.get(_key(triple), ()):
                for terms in self._joined(rule, number, triple, whole):
                    new = _filled(rule.head, terms)
                    if new not in whole and not is_literal(new[0]):
                        waiting += self.of_triple(new)
        return tuple(whole)

    def of_triple(self, triple: Triple) -> tuple[Triple, ...]:
        """A triple and what follows from it by the schema alone."""
        return (triple, *self.schema.entailed(triple))

    def _joined(self, rule: OwlRule, number: int, triple: Triple, whole: Mapping[Triple, None]) -> Iterator[Terms]:
        """The solutions of a rule in which this triple is the premise of this number."""
        terms = _bound(rule.body[number], triple, {})
        if terms is not None:
            others = [*rule.body[:number], *rule.body[number + 1 :]]
            yield from (found for found in self._all(others, terms, whole) if _holds(rule, found))

    def _all(self, premises: Sequence[Pattern], terms: Terms, whole: Mapping[Triple, None]) -> Iterator[Terms]:
        if not premises:
            yield terms
            return
        first = _filled(premises[0], terms)
        s, p, o = (None if term[0] == "?" else term for term in first)
        for triple in (*whole, *self.background.match(s, p, o)):
            if (found := _bound(first, triple, terms)) is not None:
                yield from self._all(premises[1:], found, whole)


def _key(pattern: Pattern) -> str:
    _, p, o = pattern
    return f"{p} {o}" if p == RDF_TYPE else p


def _filled(pattern: Pattern, terms: Terms) -> Triple:
    s, p, o = (terms.get(term, term) for term in pattern)
    return s, p, o


def _bound(pattern: Pattern, triple: Triple, terms: Terms) -> Terms | None:
    """The terms with those that the triple gives the pattern; None if it does not match."""
    found = dict(terms)
    for wanted, term in zip(pattern, triple, strict=True):
        if (found.setdefault(wanted, term) if wanted[0] == "?" else wanted) != term:
            return None
    return found


def _holds(rule: OwlRule, terms: Terms) -> bool:
    if any(is_literal(terms[name]) for name in rule.things):
        return False
    return len({terms[name] for name in rule.different}) == len(rule.different)


__all__ = ["EventClosure"]
