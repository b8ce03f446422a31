"""What the compiler may know about the background: plain frozen data, without the triples themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from etalis_rules.terms import RDF_TYPE

from etalis_py.knowledge.knowledge import Knowledge
from etalis_py.knowledge.owl import FUNCTIONAL, INVERSE_FUNCTIONAL, INVERSE_OF, SYMMETRIC, TRANSITIVE
from etalis_py.knowledge.owl_rules import construct_rules
from etalis_py.knowledge.schema_closure import DOMAIN, RANGE, SUB_CLASS_OF

_KINDS = {
    "symmetric": SYMMETRIC,
    "transitive": TRANSITIVE,
    "functional": FUNCTIONAL,
    "inverse_functional": INVERSE_FUNCTIONAL,
}


@dataclass(frozen=True, slots=True)
class Summary:
    """The vocabulary and the closed schema of one ``schema_version`` of the knowledge.

    ``predicates`` and ``classes`` are those that have a triple now, stated or entailed; with ``updates`` others may be
    added.  ``super_properties``, ``super_classes``, ``subject_classes`` and ``object_classes`` are closed and only have
    entries with consequences; the map of classes is not made if there are more than ``limit`` pairs: ask the schema
    then.  Under ``owlrl``, ``axioms`` has the predicates of each kind (``symmetric``, ``transitive``, ``functional``,
    ``inverse_functional``), ``inverses`` the pairs in both directions, and ``rules`` the CONSTRUCT rules for streams.
    """

    entailment: str
    schema_version: int
    updates: bool
    predicates: frozenset[str]
    named: Mapping[str, frozenset[str]]
    classes: frozenset[str]
    super_properties: Mapping[str, tuple[str, ...]]
    super_classes: Mapping[str, tuple[str, ...]] | None
    subject_classes: Mapping[str, tuple[str, ...]]
    object_classes: Mapping[str, tuple[str, ...]]
    type_is_ruled: bool
    axioms: Mapping[str, frozenset[str]]
    inverses: frozenset[tuple[str, str]]
    rules: tuple[str, ...]


def summarize(knowledge: Knowledge, *, updates: bool = False, limit: int = 100_000) -> Summary:
    """The summary of the current version; ``updates`` says whether the knowledge may change while queries run."""
    graph, schema = knowledge.default, knowledge.schema
    classes = frozenset(graph.backward(RDF_TYPE))
    classes |= {c for pair in graph.pairs(SUB_CLASS_OF) for c in pair}
    classes |= {c for p in (DOMAIN, RANGE) for _, c in graph.pairs(p)}
    specimens = schema.specimens
    axioms: dict[str, frozenset[str]] = {}
    inverses: frozenset[tuple[str, str]] = frozenset()
    if knowledge.entailment == "owlrl":
        axioms = {kind: frozenset(graph.subjects(RDF_TYPE, c)) for kind, c in _KINDS.items()}
        inverses = frozenset(pair for s, o in graph.pairs(INVERSE_OF) for pair in ((s, o), (o, s)))
    return Summary(
        entailment=knowledge.entailment,
        schema_version=knowledge.schema_version,
        updates=updates,
        predicates=frozenset(graph.predicates()),
        named={name: frozenset(knowledge.graph(name).predicates()) for name in knowledge.names()},
        classes=classes,
        super_properties={p: x.predicates for p, x in specimens.items() if x.predicates},
        super_classes=(
            {c: tuple(above) for c, above in schema.classes.forward.items()} if len(schema.classes) <= limit else None
        ),
        subject_classes={p: x.subject_classes for p, x in specimens.items() if x.subject_classes},
        object_classes={p: x.object_classes for p, x in specimens.items() if x.object_classes},
        type_is_ruled=schema.type_is_ruled,
        axioms=axioms,
        inverses=inverses,
        rules=tuple(construct_rules(graph)) if knowledge.entailment == "owlrl" else (),
    )
