"""OWL 2 RL over a static graph: the rules of the profile that need no new individuals, and agreement with owlrl."""

from unittest.mock import patch

import owlrl
import pytest
import rdflib
from etalis_rules.terms import OWL, XSD
from etalis_rules.terms import RDF_TYPE as TYPE
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py.knowledge import load, owl, summarize
from etalis_py.knowledge.from_rdflib import of_rdflib_term
from etalis_py.knowledge.graph import Graph
from etalis_py.knowledge.loading import SourceDocument, parse
from etalis_py.knowledge.owl import close_owl
from tests.draws import examples
from tests.knowledge.rdfs_by_definition import DOMAIN, RANGE, SUB_CLASS, SUB_PROPERTY

PREFIXES = f"""@prefix : <urn:> . @prefix owl: <{OWL}> . @prefix xsd: <{XSD}> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."""

ONE = '"1"^^xsd:nonNegativeInteger'
# rule: what is given, what must follow, and what must not follow when the word in brackets is not there
RULES = {
    "eq-sym": (":x owl:sameAs :y .", ":y owl:sameAs :x ."),
    "eq-trans": (":x owl:sameAs :y . :y owl:sameAs :z .", ":x owl:sameAs :z ."),
    "eq-rep-s": (":x owl:sameAs :y . :x :p :z .", ":y :p :z ."),
    "eq-rep-p": (":p owl:sameAs :q . :x :p :z .", ":x :q :z ."),
    "eq-rep-o": (":y owl:sameAs :z . :x :p :y .", ":x :p :z ."),
    "prp-dom": (":p rdfs:domain :C . :x :p :y .", ":x a :C ."),
    "prp-rng": (":p rdfs:range :C . :x :p :y .", ":y a :C ."),
    "prp-fp": (":p a owl:FunctionalProperty . :x :p :y , :z .", ":y owl:sameAs :z ."),
    "prp-ifp": (":p a owl:InverseFunctionalProperty . :x :p :z . :y :p :z .", ":x owl:sameAs :y ."),
    "prp-symp": (":p a owl:SymmetricProperty . :x :p :y .", ":y :p :x ."),
    "prp-trp": (":p a owl:TransitiveProperty . :x :p :y . :y :p :z .", ":x :p :z ."),
    "prp-spo1": (":p rdfs:subPropertyOf :q . :x :p :y .", ":x :q :y ."),
    "prp-spo2": (":p owl:propertyChainAxiom (:q :r :q) . :x :q :y . :y :r :z . :z :q :w .", ":x :p :w ."),
    "prp-eqp1": (":p owl:equivalentProperty :q . :x :p :y .", ":x :q :y ."),
    "prp-eqp2": (":p owl:equivalentProperty :q . :x :q :y .", ":x :p :y ."),
    "prp-inv1": (":p owl:inverseOf :q . :x :p :y .", ":y :q :x ."),
    "prp-inv2": (":p owl:inverseOf :q . :x :q :y .", ":y :p :x ."),
    "cls-int1": (":C owl:intersectionOf (:D :E) . :x a :D , :E .", ":x a :C ."),
    "cls-int2": (":C owl:intersectionOf (:D :E) . :x a :C .", ":x a :D , :E ."),
    "cls-uni": (":C owl:unionOf (:D :E) . :x a :E .", ":x a :C ."),
    "cls-svf1": (":C owl:someValuesFrom :D ; owl:onProperty :p . :x :p :y . :y a :D .", ":x a :C ."),
    "cls-svf2": (":C owl:someValuesFrom owl:Thing ; owl:onProperty :p . :x :p :y .", ":x a :C ."),
    "cls-avf": (":C owl:allValuesFrom :D ; owl:onProperty :p . :x :p :y . :x a :C .", ":y a :D ."),
    "cls-hv1": (":C owl:hasValue 7 ; owl:onProperty :p . :x a :C .", ":x :p 7 ."),
    "cls-hv2": (":C owl:hasValue 7 ; owl:onProperty :p . :x :p 7 .", ":x a :C ."),
    "cls-maxc2": (f":C owl:maxCardinality {ONE} ; owl:onProperty :p . :x a :C ; :p :y , :z .", ":y owl:sameAs :z ."),
    "cls-maxqc3": (
        f":C owl:maxQualifiedCardinality {ONE} ; owl:onProperty :p ; owl:onClass :D ."
        ":x a :C ; :p :y , :z . :y a :D . :z a :D .",
        ":y owl:sameAs :z .",
    ),
    "cls-maxqc4": (
        f":C owl:maxQualifiedCardinality {ONE} ; owl:onProperty :p ; owl:onClass owl:Thing . :x a :C ; :p :y , :z .",
        ":y owl:sameAs :z .",
    ),
    "cls-oo": (":C owl:oneOf (:x :y) .", ":x a :C . :y a :C ."),
    "cax-sco": (":C rdfs:subClassOf :D . :x a :C .", ":x a :D ."),
    "cax-eqc1": (":C owl:equivalentClass :D . :x a :C .", ":x a :D ."),
    "cax-eqc2": (":C owl:equivalentClass :D . :x a :D .", ":x a :C ."),
    "scm-sco": (":C rdfs:subClassOf :D . :D rdfs:subClassOf :E .", ":C rdfs:subClassOf :E ."),
    "scm-eqc1": (":C owl:equivalentClass :D .", ":C rdfs:subClassOf :D . :D rdfs:subClassOf :C ."),
    "scm-eqc2": (":C rdfs:subClassOf :D . :D rdfs:subClassOf :C .", ":C owl:equivalentClass :D ."),
    "scm-spo": (":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :r .", ":p rdfs:subPropertyOf :r ."),
    "scm-eqp1": (":p owl:equivalentProperty :q .", ":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :p ."),
    "scm-eqp2": (":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :p .", ":p owl:equivalentProperty :q ."),
    "scm-dom1": (":p rdfs:domain :C . :C rdfs:subClassOf :D .", ":p rdfs:domain :D ."),
    "scm-dom2": (":q rdfs:domain :C . :p rdfs:subPropertyOf :q .", ":p rdfs:domain :C ."),
    "scm-rng1": (":p rdfs:range :C . :C rdfs:subClassOf :D .", ":p rdfs:range :D ."),
    "scm-rng2": (":q rdfs:range :C . :p rdfs:subPropertyOf :q .", ":p rdfs:range :C ."),
    "scm-hv": (
        ":C owl:hasValue :x ; owl:onProperty :p . :D owl:hasValue :x ; owl:onProperty :q . :p rdfs:subPropertyOf :q .",
        ":C rdfs:subClassOf :D .",
    ),
    "scm-svf1": (
        ":C owl:someValuesFrom :E ; owl:onProperty :p . :D owl:someValuesFrom :F ; owl:onProperty :p ."
        ":E rdfs:subClassOf :F .",
        ":C rdfs:subClassOf :D .",
    ),
    "scm-svf2": (
        ":C owl:someValuesFrom :E ; owl:onProperty :p . :D owl:someValuesFrom :E ; owl:onProperty :q ."
        ":p rdfs:subPropertyOf :q .",
        ":C rdfs:subClassOf :D .",
    ),
    "scm-avf1": (
        ":C owl:allValuesFrom :E ; owl:onProperty :p . :D owl:allValuesFrom :F ; owl:onProperty :p ."
        ":E rdfs:subClassOf :F .",
        ":C rdfs:subClassOf :D .",
    ),
    "scm-avf2": (
        ":C owl:allValuesFrom :E ; owl:onProperty :p . :D owl:allValuesFrom :E ; owl:onProperty :q ."
        ":p rdfs:subPropertyOf :q .",
        ":D rdfs:subClassOf :C .",
    ),
    "scm-int": (":C owl:intersectionOf (:D :E) .", ":C rdfs:subClassOf :D , :E ."),
    "scm-uni": (":C owl:unionOf (:D :E) .", ":D rdfs:subClassOf :C . :E rdfs:subClassOf :C ."),
}


def triples(text: str) -> list:
    return parse(SourceDocument("given.ttl", ".ttl", (PREFIXES + text).encode(), "0" * 32))[""]


@pytest.mark.parametrize("name", RULES)
def test_rule(name):
    stated, follows = RULES[name]
    facts = triples(stated)
    k = load(facts, entailment="owlrl", cache=False)
    for conclusion in triples(follows):
        assert conclusion not in facts
        assert conclusion in k.default


NOT = {
    "not every member of an intersection": (":C owl:intersectionOf (:D :E) . :x a :D .", ":x a :C ."),
    "a chain in another order": (":p owl:propertyChainAxiom (:q :r) . :x :r :y . :y :q :z .", ":x :p :z ."),
    "at most two": (
        ':C owl:maxCardinality "2"^^xsd:nonNegativeInteger ; owl:onProperty :p . :x a :C ; :p :y , :z .',
        ":y owl:sameAs :z .",
    ),
    "someValuesFrom of another class": (
        ":C owl:someValuesFrom :D ; owl:onProperty :p . :x :p :y . :y a :E .",
        ":x a :C .",
    ),
    "no symmetry without the axiom": (":x :p :y .", ":y :p :x ."),
}


@pytest.mark.parametrize("name", NOT)
def test_what_does_not_follow(name):
    stated, wrong = NOT[name]
    assert not set(triples(wrong)) & set(load(triples(stated), entailment="owlrl", cache=False).default)


def test_literals_are_neither_subjects_nor_equal():
    facts = triples(":p a owl:SymmetricProperty , owl:FunctionalProperty . :x :p 1 , 2 .")
    assert set(load(facts, entailment="owlrl", cache=False).default) == set(facts)


def test_streams_are_entailed_by_what_owl_says_in_rdfs_terms():
    facts = triples(":C owl:equivalentClass :D . :p owl:equivalentProperty :q . :q rdfs:domain :C .")
    schema = load(facts, entailment="owlrl", cache=False).schema
    assert set(schema.entailed(("<urn:x>", TYPE, "<urn:D>"))) >= set(triples(":x a :C ."))
    assert set(schema.entailed(("<urn:x>", "<urn:p>", '"1"'))) == set(triples(':x :q "1" ; a :C , :D .'))


def test_updates_close_again():
    k = load(triples(":p a owl:TransitiveProperty . :x :p :y ."), entailment="owlrl", cache=False)
    pairs = k.default.forward("<urn:p>")
    assert k.update(add=triples(":y :p :z .")).added == 2
    assert set(pairs["<urn:x>"]) == {"<urn:y>", "<urn:z>"}
    k.update(remove=triples(":y :p :z ."))
    assert pairs == {"<urn:x>": ("<urn:y>",)}


# --------------------------------------------------------------------------------------------------- against owlrl

NAMES = [f"<urn:{n}>" for n in "abcde"]
SAME, INVERSE = f"<{OWL}sameAs>", f"<{OWL}inverseOf>"
EQUIVALENT = [f"<{OWL}equivalentClass>", f"<{OWL}equivalentProperty>"]
KINDS = [f"<{OWL}{n}Property>" for n in ("Symmetric", "Transitive", "Functional", "InverseFunctional")]
REFLEXIVE = {SUB_CLASS, SUB_PROPERTY, SAME, *EQUIVALENT}
statements = st.one_of(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES[:3]), st.sampled_from(NAMES)),
    st.tuples(st.sampled_from(NAMES), st.just(TYPE), st.sampled_from([*NAMES, *KINDS])),
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from([SUB_CLASS, SUB_PROPERTY, DOMAIN, RANGE, SAME, INVERSE, *EQUIVALENT]),
        st.sampled_from(NAMES),
    ),
)


@settings(max_examples=examples(1 / 10))
@given(st.lists(statements, max_size=7, unique=True))
def test_the_closure_agrees_with_owlrl(facts):
    graph = rdflib.Graph()
    for triple in facts:
        graph.add(tuple(rdflib.URIRef(term[1:-1]) for term in triple))
    owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(graph)

    def claimed(s: str, p: str, o: str) -> bool:
        return s in NAMES and (o in NAMES or (p == TYPE and o in KINDS)) and not (s == o and p in REFLEXIVE)

    theirs = {t for t in (tuple(map(of_rdflib_term, t)) for t in graph) if claimed(*t)}
    ours = {t for t in load(facts, entailment="owlrl", cache=False).default if claimed(*t)}
    assert ours == theirs


linked = st.one_of(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["<urn:p>", "<urn:q>", SAME]), st.sampled_from([*NAMES, '"v"'])),
    st.tuples(st.sampled_from(["<urn:p>", "<urn:q>"]), st.just(TYPE), st.sampled_from(KINDS[2:])),
    st.tuples(st.sampled_from(["<urn:p>", "_:b"]), st.just(SUB_PROPERTY), st.sampled_from(["<urn:q>", "_:b", SAME])),
)


@settings(max_examples=examples(1 / 10))
@given(st.lists(linked, max_size=14, unique=True))
def test_what_is_known_to_be_the_same_beforehand_follows_anyway(facts):
    known = close_owl(Graph(facts))
    with patch.object(owl, "known_same", return_value={}):
        assert set(known.derived) == set(close_owl(Graph(facts)).derived)


# ------------------------------------------------------------------------------------------------ rules for streams

STREAMED = ["prp-fp", "prp-ifp", "prp-symp", "prp-trp", "prp-spo2", "prp-inv1", "prp-inv2", "cls-int1", "cls-svf1"]
STREAMED += ["cls-svf2", "cls-avf", "cls-hv1", "cls-hv2"]
BLANK = {
    "a named class equivalent to a restriction": (
        ":C owl:equivalentClass [ owl:onProperty :p ; owl:someValuesFrom :D ] . :x :p :y . :y a :D .",
        ":x a :C .",
    ),
    "a sub-class of a restriction": (
        ":C rdfs:subClassOf [ owl:onProperty :p ; owl:hasValue :v ] . :x a :C .",
        ":x :p :v .",
    ),
    "an intersection with a restriction": (
        ":C owl:equivalentClass [ owl:intersectionOf (:D [ owl:onProperty :p ; owl:hasValue :v ]) ] ."
        ":x a :D . :x :p :v .",
        ":x a :C .",
    ),
    "all values of a restriction": (
        ":C rdfs:subClassOf [ owl:onProperty :p ; owl:allValuesFrom :D ] . :x a :C . :x :p :y .",
        ":y a :D .",
    ),
}


@pytest.mark.parametrize("name", [*STREAMED, *BLANK])
def test_the_rules_for_streams_conclude_as_the_program_does(name):
    """The triples about :x, :y, :z, :w are streamed; rules and schema applied to them give the rule's conclusion."""
    stated, follows = (RULES | BLANK)[name]
    streamed = {t for t in triples(stated) if t[0] in {f"<urn:{n}>" for n in "xyzw"}}
    k = load([t for t in triples(stated) if t not in streamed], entailment="owlrl", cache=False)
    rules = summarize(k).rules
    assert rules == tuple(sorted(rules))
    known = set(streamed)
    while True:
        graph = rdflib.Graph().parse(data="".join(f"{s} {p} {o} .\n" for s, p, o in known), format="nt")
        new = {tuple(map(of_rdflib_term, t)) for rule in rules for t in graph.query(rule)}
        new |= {t for triple in known for t in k.schema.entailed(triple)}
        if new <= known:
            break
        known |= new
    assert set(triples(follows)) <= known
    whole = set(load(triples(stated), entailment="owlrl", cache=False).default)
    assert known <= whole
