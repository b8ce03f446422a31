"""The consequences of single triples under a closed schema: the part of entailment that streams and instances need.

All rules of ``rdfs.lp`` have at most one premise outside the schema.  Once the schema is closed, the consequences of a
graph are therefore those of its single triples, and those of a streamed triple are found without looking at any other.

A triple of a stream never changes the schema: a streamed ``:A rdfs:subClassOf :B`` is an occurrence like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from etalis_rules.terms import RDF_TYPE, is_literal

from etalis_py.events import Triple
from etalis_py.knowledge.graph import PredicatePairs
from etalis_py.knowledge.schema_closure import DOMAIN, RANGE, SUB_CLASS_OF, SUB_PROPERTY_OF, SchemaAnswer, Specimen

_NO_SPECIMEN = Specimen()


@dataclass(frozen=True, slots=True)
class TypeTests:
    """The conditions under which a triple ⟨s, p, o⟩ says that something is a C.

    ⟨x, p, d⟩ with p in ``type_predicates`` and d in ``classes`` says it of x; a triple with p in ``subject_of`` says
    it of its subject; one with p in ``object_of`` says it of its object, unless that is a literal.
    """

    type_predicates: frozenset[str]
    classes: frozenset[str]
    subject_of: frozenset[str]
    object_of: frozenset[str]


@dataclass(frozen=True, slots=True)
class Schema:
    """The closed schema of one version of the knowledge.

    >>> from etalis_py.knowledge.schema_closure import close_rdfs
    >>> from etalis_py.knowledge.graph import Graph
    >>> subclass = ("<urn:Gull>", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", "<urn:Bird>")
    >>> schema = Schema.of(close_rdfs(Graph([subclass])))
    >>> schema.entailed(("<urn:x>", RDF_TYPE, "<urn:Gull>"))
    (('<urn:x>', '<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>', '<urn:Bird>'),)
    """

    specimens: Mapping[str, Specimen]
    classes: PredicatePairs  # the closed rdfs:subClassOf
    properties: PredicatePairs  # the closed rdfs:subPropertyOf
    domains: PredicatePairs  # rdfs:domain as stated or entailed, not inherited
    ranges: PredicatePairs
    _sub_predicates: dict[str, tuple[str, ...]] = field(repr=False)

    @classmethod
    def of(cls, closure: SchemaAnswer, tables: Mapping[str, PredicatePairs] | None = None) -> Schema:
        """The schema of a closure; ``tables`` are used if given, instead of making them from the closure."""
        tables = tables or {}

        def table(predicate: str) -> PredicatePairs:
            return tables.get(predicate) or PredicatePairs(closure.schema.get(predicate, ()))

        below: dict[str, list[str]] = {}
        for predicate, specimen in closure.specimens.items():
            for above in specimen.predicates:
                below.setdefault(above, []).append(predicate)
        return cls(
            closure.specimens,
            table(SUB_CLASS_OF),
            table(SUB_PROPERTY_OF),
            table(DOMAIN),
            table(RANGE),
            {p: tuple(q) for p, q in below.items()},
        )

    @property
    def type_is_ruled(self) -> bool:
        """Whether the schema makes statements about ``rdf:type`` itself.

        Then an entailed type has consequences of its own, and only ``entailed`` (no set of leaf tests) finds them all.
        """
        return RDF_TYPE in self.specimens

    # ------------------------------------------------------------------------------------------------ upwards

    def super_classes(self, c: str) -> Collection[str]:
        """All super-classes of a class; the class itself only if the schema has a cycle."""
        return self.classes.forward.get(c, ())

    def super_properties(self, p: str) -> tuple[str, ...]:
        """All other predicates that a triple with this one entails."""
        return self.specimens.get(p, _NO_SPECIMEN).predicates

    def subject_classes(self, p: str) -> tuple[str, ...]:
        """All classes that a triple's subject has by its predicate: domains, inherited and closed."""
        return self.specimens.get(p, _NO_SPECIMEN).subject_classes

    def object_classes(self, p: str) -> tuple[str, ...]:
        """All classes that a triple's object has by its predicate: ranges, inherited and closed."""
        return self.specimens.get(p, _NO_SPECIMEN).object_classes

    # ---------------------------------------------------------------------------------------------- downwards

    def sub_classes(self, c: str) -> Collection[str]:
        """All sub-classes of a class; the class itself only if the schema has a cycle."""
        return self.classes.backward.get(c, ())

    def sub_properties(self, p: str) -> tuple[str, ...]:
        """All other predicates that entail this one."""
        return self._sub_predicates.get(p, ())

    def predicate_test(self, p: str) -> frozenset[str]:
        """The predicates of the triples that entail ⟨s, p, o⟩."""
        return frozenset((p, *self.sub_properties(p)))

    def type_tests(self, c: str) -> TypeTests:
        """The alternatives for the pattern ``?x rdf:type c``."""
        return TypeTests(
            self.predicate_test(RDF_TYPE),
            frozenset((c, *self.sub_classes(c))),
            frozenset(p for p, specimen in self.specimens.items() if c in specimen.subject_classes),
            frozenset(p for p, specimen in self.specimens.items() if c in specimen.object_classes),
        )

    # ------------------------------------------------------------------------------------------------- triples

    def entailed(self, triple: Triple) -> tuple[Triple, ...]:
        """All other triples that follow from this one and the schema, each once."""
        consequences = {triple: None}
        self._direct(triple, consequences)
        if self.type_is_ruled:
            done = 1
            while done < len(consequences):
                for new in list(consequences)[done:]:
                    done += 1
                    self._direct(new, consequences)
        del consequences[triple]
        return tuple(consequences)

    def _direct(self, triple: Triple, consequences: dict[Triple, None]) -> None:
        s, p, o = triple
        specimen = self.specimens.get(p)
        if specimen is not None:
            for q in specimen.predicates:
                consequences[s, q, o] = None
            for c in specimen.subject_classes:
                consequences[s, RDF_TYPE, c] = None
            if specimen.object_classes and not is_literal(o):
                for c in specimen.object_classes:
                    consequences[o, RDF_TYPE, c] = None
            if p != RDF_TYPE and RDF_TYPE in specimen.predicates:
                for c in self.super_classes(o):
                    consequences[s, RDF_TYPE, c] = None
        if p == RDF_TYPE:
            for c in self.super_classes(o):
                consequences[s, RDF_TYPE, c] = None
