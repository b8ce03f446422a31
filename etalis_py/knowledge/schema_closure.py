"""The closure of a graph's schema under RDFS, by the logic program ``rdfs.lp``.

The program sees the schema as numbers and computes two things: the closed schema itself and, for each predicate in the
schema, the consequences of a *specimen* of it, a triple of two fresh terms.  They hold for every triple of the
predicate, so instances and streamed triples are entailed by look-up (``schema.Schema``) and need not pass through
clingo.  Only instance triples that can change the schema do (a predicate below ``rdfs:subClassOf``, say).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from etalis_rules.terms import RDF_TYPE, RDFS, is_blank, is_literal

from etalis_py.events import Triple
from etalis_py.knowledge.graph import Graph, Index, PairColumns
from etalis_py.knowledge.solving import Ask, answer_set, program_text

SUB_CLASS_OF = f"<{RDFS}subClassOf>"
SUB_PROPERTY_OF = f"<{RDFS}subPropertyOf>"
DOMAIN = f"<{RDFS}domain>"
RANGE = f"<{RDFS}range>"
SCHEMA_PREDICATES = (SUB_CLASS_OF, SUB_PROPERTY_OF, DOMAIN, RANGE)
META_CLASSES = (f"<{RDFS}ContainerMembershipProperty>", f"<{RDFS}Datatype>")

# The constants of the programs, numbered from 0 in this order.
CONSTANTS = {
    "rdf_type": RDF_TYPE,
    "sub_class_of": SUB_CLASS_OF,
    "sub_property_of": SUB_PROPERTY_OF,
    "domain": DOMAIN,
    "range": RANGE,
    "member": f"<{RDFS}member>",
    "literal_class": f"<{RDFS}Literal>",
    "membership_class": META_CLASSES[0],
    "datatype_class": META_CLASSES[1],
}
_PAIRS = {"sub_class": SUB_CLASS_OF, "sub_property": SUB_PROPERTY_OF, "has_domain": DOMAIN, "has_range": RANGE}
_FEW = 8
"""With so few objects, it is not worth looking for those that others imply."""
_SUB_CLASS = re.compile(rb"\bsub_class\((\d+),(\d+)\)")
_OTHERS = re.compile(rb"\b(sub_property|has_domain|has_range|type|derived|specimen|feeds|feeding_class)\(([\d,]+)\)")


@dataclass(frozen=True, slots=True)
class Specimen:
    """The consequences of every triple ⟨s, p, o⟩ of one predicate."""

    predicates: tuple[str, ...] = ()  # ⟨s, q, o⟩ for each q
    subject_classes: tuple[str, ...] = ()  # ⟨s, rdf:type, c⟩ for each c
    object_classes: tuple[str, ...] = ()  # ⟨o, rdf:type, c⟩ for each c, unless o is a literal


@dataclass(frozen=True, slots=True)
class SchemaAnswer:
    """The answer of a logic program over one graph.

    ``schema`` has the closed pairs of each schema predicate, ``derived`` has the other consequences of the triples
    given to the program, ``feeding`` and ``feeding_classes`` the predicates and classes whose triples belong to the
    schema.
    """

    schema: dict[str, PairColumns]
    specimens: dict[str, Specimen]
    derived: tuple[Triple, ...]
    feeding: frozenset[str]
    feeding_classes: frozenset[str]


NOTHING = SchemaAnswer({}, {}, (), frozenset(SCHEMA_PREDICATES), frozenset(META_CLASSES))


def close_rdfs(asserted: Graph, ask: Ask | None = None) -> SchemaAnswer:
    """The closure of a graph's schema under RDFS; ``ask`` solves the program, by default in a process of its own."""
    closure = NOTHING
    while True:
        given = list(_schema_triples(asserted, closure.feeding, closure.feeding_classes))
        if not given:
            return closure
        before = (closure.feeding, closure.feeding_classes)
        closure = _ask(given, ask or answer_set)
        if (closure.feeding, closure.feeding_classes) == before or not _more(asserted, closure, *before):
            return closure


def feeds_schema(closure: SchemaAnswer, triple: Triple) -> bool:
    """Whether the schema may differ with and without this triple."""
    _, p, o = triple
    return p in closure.feeding or (p == RDF_TYPE and o in closure.feeding_classes)


def _schema_triples(graph: Graph, predicates: frozenset[str], classes: frozenset[str]) -> Iterator[Triple]:
    for p in sorted(predicates):
        if p in (SUB_CLASS_OF, SUB_PROPERTY_OF):
            yield from (
                (s, p, o) for s, objects in graph.forward(p).items() for o in _direct(graph.forward(p), s, objects)
            )
        else:
            yield from graph.match(None, p, None)
    if RDF_TYPE not in predicates and len(types := graph.table(RDF_TYPE)):
        for c in sorted(classes):
            for s in types.backward.get(c, ()):
                yield s, RDF_TYPE, c


def _direct(above: Index, term: str, objects: Collection[str]) -> Collection[str]:
    """The objects of a term without those that are above another of its objects: transitivity gives them back.

    A hierarchy that holds its own closure has all n·n/2 pairs of a chain, and the program would derive each pair from
    every term between the two.  Only a term with fewer objects stands in for others, so no two stand in for each other.
    """
    if len(objects) <= _FEW:
        return objects
    direct, covered = [], set[str]()
    for o in sorted(objects, key=lambda o: len(above.get(o, ())), reverse=True):
        if o not in covered or o == term:
            direct.append(o)
            if len(further := above.get(o, ())) < len(objects):
                covered.update(further)
    return direct


def _more(graph: Graph, closure: SchemaAnswer, predicates: frozenset[str], classes: frozenset[str]) -> bool:
    """Whether the graph has triples that feed the schema but have not been given to the program yet."""
    return any(graph.pairs(p) for p in closure.feeding - predicates) or any(
        graph.subjects(RDF_TYPE, c) for c in closure.feeding_classes - classes
    )


class Numbering:
    """Terms as numbers from 0, in the order of first use."""

    def __init__(self, first: Iterable[str]) -> None:
        self.numbers: dict[str, int] = {term: number for number, term in enumerate(first)}

    def number(self, term: str) -> int:
        return self.numbers.setdefault(term, len(self.numbers))

    def facts(self, given: Iterable[Triple]) -> str:
        """The facts of a program: the triples, and which of their terms are blank nodes or literals."""
        number = self.number
        lines = [f"given({number(s)},{number(p)},{number(o)})." for s, p, o in given]
        lines += (f"blank({n})." for term, n in self.numbers.items() if is_blank(term))
        lines += (f"literal({n})." for term, n in self.numbers.items() if is_literal(term))
        return "\n".join(lines)


def _ask(given: Iterable[Triple], ask: Ask) -> SchemaAnswer:
    numbering = Numbering(CONSTANTS.values())
    text = program_text("rdfs") + "\n" + numbering.facts(given)
    last = len(numbering.numbers)
    constants = {name: number for number, name in enumerate(CONSTANTS)}
    answer = ask(text, constants | {"last": last}, name="rdfs.lp")
    return _read(answer, list(numbering.numbers), last)


def _read(answer: bytes, terms: list[str], last: int) -> SchemaAnswer:
    sub_class = (array("i"), array("i"))
    sub_class[0].extend(int(m[1]) for m in _SUB_CLASS.finditer(answer))
    sub_class[1].extend(int(m[2]) for m in _SUB_CLASS.finditer(answer))
    relations: dict[bytes, list[tuple[int, ...]]] = {}
    for match in _OTHERS.finditer(answer):
        relations.setdefault(match[1], []).append(tuple(map(int, match[2].split(b","))))
    schema = {SUB_CLASS_OF: _named(PairColumns(terms, *sub_class), last)}
    for relation, predicate in _PAIRS.items():
        if relation != "sub_class":
            pairs = relations.get(relation.encode(), [])
            columns = PairColumns(terms, array("i", (a for a, _ in pairs)), array("i", (b for _, b in pairs)))
            schema[predicate] = _named(columns, last)
    triples = relations.get(b"derived", []) + [(x, 0, c) for x, c in relations.get(b"type", [])]
    named = dict.fromkeys((terms[s], terms[p], terms[o]) for s, p, o in triples if s < last and o < last and p < last)
    return SchemaAnswer(
        {predicate: columns for predicate, columns in schema.items() if len(columns)},
        _specimens(relations.get(b"specimen", []), triples, terms, last),
        tuple(t for t in named if t[1] not in SCHEMA_PREDICATES),
        frozenset(SCHEMA_PREDICATES).union(terms[p] for (p,) in relations.get(b"feeds", []) if p < last),
        frozenset(terms[c] for (c,) in relations.get(b"feeding_class", []) if c < last),
    )


def _named(columns: PairColumns, last: int) -> PairColumns:
    """The pairs without those of specimens."""
    s, o = columns.subjects, columns.objects
    if not s or (max(s) < last and max(o) < last):
        return columns
    kept = [(a, b) for a, b in zip(s, o, strict=True) if a < last and b < last]
    return PairColumns(columns.terms, array("i", (a for a, _ in kept)), array("i", (b for _, b in kept)))


def _specimens(
    specimens: list[tuple[int, ...]], triples: list[tuple[int, ...]], terms: list[str], last: int
) -> dict[str, Specimen]:
    owner = {term: (p, position) for p, s, o in specimens for position, term in ((0, s), (1, o))}
    collected: dict[int, tuple[dict[str, None], dict[str, None], dict[str, None]]] = {
        p: ({}, {}, {}) for p, _, _ in specimens
    }
    rdf_type = 0
    for s, p, o in triples:
        if s not in owner or p >= last:
            continue
        predicate, position = owner[s]
        if position == 0 and owner.get(o) == (predicate, 1) and p != predicate:
            collected[predicate][0][terms[p]] = None
        elif p == rdf_type and o < last:
            collected[predicate][1 + position][terms[o]] = None
    return {terms[p]: Specimen(*map(tuple, parts)) for p, parts in collected.items() if any(parts)}
