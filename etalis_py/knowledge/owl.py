"""OWL 2 RL over a graph, by the logic program ``owlrl.lp``.

For the graph as a whole the program computes everything that follows.  A single streamed triple is entailed by the part
of OWL that RDFS can express: in the closure, equivalent classes and properties, intersections and unions become
sub-classes and sub-properties.  ``owl_rules`` gives rules for axioms that reverse a triple or join two.
"""

from __future__ import annotations

import re

from etalis_rules.terms import OWL, RDF, XSD, is_literal, parts

from etalis_py.knowledge.graph import Graph
from etalis_py.knowledge.schema_closure import CONSTANTS, NOTHING, Numbering, SchemaAnswer, close_rdfs
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
    given = numbering.facts(asserted)
    ones = "\n".join(f"one({n})." for term, n in numbering.numbers.items() if _is_one(term))
    constants = {name: number for number, name in enumerate(_CONSTANTS)}
    text = f"{program_text('owlrl')}\n{given}\n{ones}\n"
    terms = list(numbering.numbers)
    derived = tuple(
        (terms[int(m[1])], terms[int(m[2])], terms[int(m[3])])
        for m in _DERIVED.finditer((ask or answer_set)(text, constants, name="owlrl.lp"))
    )
    whole = Graph([*asserted, *derived])
    rdfs = close_rdfs(whole, ask)
    return SchemaAnswer({}, rdfs.specimens, derived, rdfs.feeding, rdfs.feeding_classes)


def _is_one(term: str) -> bool:
    if not is_literal(term):
        return False
    lexical, datatype, _ = parts(term)
    return datatype.startswith(XSD) and "nteger" in datatype and _ONE.fullmatch(lexical) is not None
