"""OWL 2 RL over a graph, by the logic program ``owlrl.lp``.

For the graph as a whole the program computes everything that follows.  A single streamed triple is entailed by the part
of OWL that RDFS can express: in the closure, equivalent classes and properties, intersections and unions become
sub-classes and sub-properties.  ``owl_rules`` gives rules for axioms that reverse a triple or join two.
"""

from __future__ import annotations

import re

from etalis_rules.terms import OWL, RDF, RDF_TYPE, XSD, is_iri, is_literal, parts

from etalis_py.knowledge.graph import Graph, Pair
from etalis_py.knowledge.schema_closure import (
    CONSTANTS,
    NOTHING,
    SUB_PROPERTY_OF,
    Numbering,
    SchemaAnswer,
    close_rdfs,
)
from etalis_py.knowledge.solving import Ask, answer_set, program_text

SAME_AS = f"<{OWL}sameAs>"
INVERSE_OF = f"<{OWL}inverseOf>"
SYMMETRIC = f"<{OWL}SymmetricProperty>"
TRANSITIVE = f"<{OWL}TransitiveProperty>"
FUNCTIONAL = f"<{OWL}FunctionalProperty>"
INVERSE_FUNCTIONAL = f"<{OWL}InverseFunctionalProperty>"
ON_PROPERTY = f"<{OWL}onProperty>"
HAS_VALUE = f"<{OWL}hasValue>"
SOME_VALUES = f"<{OWL}someValuesFrom>"
ALL_VALUES = f"<{OWL}allValuesFrom>"
INTERSECTION = f"<{OWL}intersectionOf>"
CHAIN = f"<{OWL}propertyChainAxiom>"
THING = f"<{OWL}Thing>"
FIRST, REST, NIL = f"<{RDF}first>", f"<{RDF}rest>", f"<{RDF}nil>"

_CONSTANTS = CONSTANTS | {
    "same_as": SAME_AS,
    "functional": FUNCTIONAL,
    "inverse_functional": INVERSE_FUNCTIONAL,
    "symmetric": SYMMETRIC,
    "transitive": TRANSITIVE,
    "inverse_of": INVERSE_OF,
    "chain_axiom": CHAIN,
    "equivalent_class": f"<{OWL}equivalentClass>",
    "equivalent_property": f"<{OWL}equivalentProperty>",
    "intersection_of": INTERSECTION,
    "union_of": f"<{OWL}unionOf>",
    "one_of": f"<{OWL}oneOf>",
    "on_property": ON_PROPERTY,
    "on_class": f"<{OWL}onClass>",
    "some_values_from": SOME_VALUES,
    "all_values_from": ALL_VALUES,
    "has_value": HAS_VALUE,
    "max_cardinality": f"<{OWL}maxCardinality>",
    "max_qualified": f"<{OWL}maxQualifiedCardinality>",
    "thing": THING,
    "first": FIRST,
    "rest": REST,
    "nil": NIL,
}
_DERIVED = re.compile(rb"\bderived\((\d+),(\d+),(\d+)\)")
_ONE = re.compile(r"\+?0*1")


def close_owl(asserted: Graph, ask: Ask | None = None) -> SchemaAnswer:
    """The closure of a graph under OWL 2 RL."""
    if not len(asserted):
        return NOTHING
    numbering = Numbering(_CONSTANTS.values())
    text = f"{program_text('owlrl')}\n{facts(asserted, numbering)}\n"
    constants = {name: number for number, name in enumerate(_CONSTANTS)}
    terms = list(numbering.numbers)
    derived = tuple(
        (terms[int(m[1])], terms[int(m[2])], terms[int(m[3])])
        for m in _DERIVED.finditer((ask or answer_set)(text, constants, name="owlrl.lp"))
    )
    whole = Graph([*asserted, *derived])
    rdfs = close_rdfs(whole, ask)
    return SchemaAnswer({}, rdfs.specimens, derived, rdfs.feeding, rdfs.feeding_classes)


def facts(asserted: Graph, numbering: Numbering) -> str:
    """What the program is told of a graph."""
    given, number = numbering.facts(asserted), numbering.numbers
    lines = [given, f"term(0..{len(number) - 1})."]
    lines += (f"one({n})." for term, n in number.items() if _is_one(term))
    lines += (f"like({number[term]},{number[r]})." for term, r in known_same(asserted).items())
    return "\n".join(lines)


def known_same(asserted: Graph) -> dict[str, str]:
    """Terms that the stated triples make the same as another one, each with the one that stands for it.

    This follows ``owl:sameAs`` and the functional and inverse functional properties with those below them, in about
    linear time.  The program finds the same and more; but it joins by what it derives, so it would compare each of n
    values with all others, and would walk from each of them over all n*n pairs.

    >>> known_same(Graph([("<urn:a>", SAME_AS, "<urn:b>")]))
    {'<urn:b>': '<urn:a>'}
    """
    links: dict[str, dict[tuple[str, bool], str]] = {}  # by representative: property and direction to one neighbour
    pending = [pair for pair in asserted.pairs(SAME_AS) if not is_literal(pair[1])]

    def link(x: str, key: tuple[str, bool], y: str) -> None:
        known = links.setdefault(x, {}).setdefault(key, y)
        if known != y:
            pending.append((known, y))

    for kind, forwards in ((FUNCTIONAL, True), (INVERSE_FUNCTIONAL, False)):
        for top in filter(is_iri, asserted.subjects(RDF_TYPE, kind)):
            for p in _below(asserted, top):
                for s, o in asserted.pairs(p):
                    if not forwards:
                        link(o, (top, forwards), s)
                    elif not is_literal(o):
                        link(s, (top, forwards), o)
    return _merged(pending, links)


def _merged(pending: list[Pair], links: dict[str, dict[tuple[str, bool], str]]) -> dict[str, str]:
    """The classes of the pairs, and of the neighbours that the members of one class have by the same link."""
    members: dict[str, list[str]] = {}
    of: dict[str, str] = {}
    while pending:
        a, b = (of.get(x, x) for x in pending.pop())
        if a == b:
            continue
        if len(members.get(a, ())) < len(members.get(b, ())):  # a term moves log n times at most
            a, b = b, a
        joined = [b, *members.pop(b, ())]
        members.setdefault(a, []).extend(joined)
        of.update(dict.fromkeys(joined, a))
        mine = links.setdefault(a, {})
        for key, y in links.pop(b, {}).items():
            pending.append((mine.setdefault(key, y), y))
    return of


def _below(graph: Graph, p: str) -> list[str]:
    """A property and those stated to be below it."""
    found = {p: None}
    queue = [p]
    while queue:
        for q in graph.subjects(SUB_PROPERTY_OF, queue.pop()):
            if is_iri(q) and q not in found:
                found[q] = None
                queue.append(q)
    return list(found)


def _is_one(term: str) -> bool:
    if not is_literal(term):
        return False
    lexical, datatype, _ = parts(term)
    return datatype.startswith(XSD) and "nteger" in datatype and _ONE.fullmatch(lexical) is not None
