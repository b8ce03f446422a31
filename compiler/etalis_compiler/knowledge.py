"""A summary of the background for the compiler: its vocabulary, its schema, and whether it changes over time.

A ``KnowledgeSummary`` is plain frozen data, made by the run time from the loaded knowledge; the compiler itself reads
no files.  The empty summary means that there is no background.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from etalis_rules.algebra import Const, Triple


def _empty() -> Mapping[str, frozenset[str]]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class KnowledgeSummary:
    """``predicates`` of the default background graph (None: unknown, anything may be there).  ``infers``: the
    entailment regime is one under which a schema entails something.

    ``sub_properties`` and ``sub_classes`` map a term to all that imply it (itself left out); ``domain_of`` and
    ``range_of`` map a class to the properties whose subject (object) is an instance of it.  ``entailed`` is False
    when streamed triples have no consequences; ``type_is_ruled`` says that the schema has statements about rdf:type
    itself, ``changes`` that the knowledge may be updated while it is used.  ``parameters`` are terms that each stand
    for many classes, for which streamed triples have consequences now or after an update.  ``joins``: something may
    follow from several triples together, so from an event beside what follows from each of its triples.
    """

    predicates: frozenset[str] | None = frozenset()
    graphs: bool = False
    sub_properties: Mapping[str, frozenset[str]] = field(default_factory=_empty)
    sub_classes: Mapping[str, frozenset[str]] = field(default_factory=_empty)
    domain_of: Mapping[str, frozenset[str]] = field(default_factory=_empty)
    range_of: Mapping[str, frozenset[str]] = field(default_factory=_empty)
    type_is_ruled: bool = False
    changes: bool = False
    infers: bool = False
    parameters: frozenset[str] = frozenset()
    joins: bool = False

    @property
    def entailed(self) -> bool:
        return bool(self.sub_properties or self.sub_classes or self.domain_of or self.range_of)

    def may_hold(self, triple: Triple) -> bool:
        """Whether the default background graph can hold a triple that matches this pattern."""
        if self.predicates is None:
            return True
        if isinstance(triple.predicate, Const):
            return triple.predicate.term in self.predicates
        return bool(self.predicates)

    def properties_implying(self, predicate: str) -> frozenset[str]:
        return self.sub_properties.get(predicate, frozenset()) | {predicate}

    def classes_implying(self, cls: str) -> frozenset[str]:
        return self.sub_classes.get(cls, frozenset()) | {cls}

    def implies_type(self, cls: str) -> tuple[frozenset[str], frozenset[str]]:
        """The properties whose subjects, and those whose objects, are instances of the class."""
        return self.domain_of.get(cls, frozenset()), self.range_of.get(cls, frozenset())


NO_KNOWLEDGE = KnowledgeSummary()
