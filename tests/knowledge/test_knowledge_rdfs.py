"""RDFS: the entailment patterns of RDF 1.1 Semantics, section 9.2.1, and the closure against its definition."""

import itertools

import owlrl
import pytest
import rdflib
from etalis_rules.terms import RDF_TYPE as TYPE
from etalis_rules.terms import RDFS
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py.knowledge import Knowledge, load
from etalis_py.knowledge.from_rdflib import of_rdflib_term
from tests.draws import examples
from tests.knowledge.rdfs_by_definition import (
    DATATYPE,
    DOMAIN,
    LITERAL,
    MEMBER,
    MEMBERSHIP,
    RANGE,
    SUB_CLASS,
    SUB_PROPERTY,
    closure,
)

a, b, c, p, q, r, x, y = (f"<urn:{name}>" for name in "abcpqrxy")


def closed(*triples, **options) -> Knowledge:
    return load(list(triples), cache=False, **options)


def new(*triples) -> set:
    """What the triples entail beyond themselves."""
    return set(closed(*triples).default) - set(triples)


# ----------------------------------------------------------------------------------- the patterns of the specification

PATTERNS = {
    "rdfs2": ([(p, DOMAIN, c), (x, p, y)], (x, TYPE, c)),
    "rdfs3": ([(p, RANGE, c), (x, p, y)], (y, TYPE, c)),
    "rdfs5": ([(p, SUB_PROPERTY, q), (q, SUB_PROPERTY, r)], (p, SUB_PROPERTY, r)),
    "rdfs7": ([(p, SUB_PROPERTY, q), (x, p, y)], (x, q, y)),
    "rdfs9": ([(a, SUB_CLASS, b), (x, TYPE, a)], (x, TYPE, b)),
    "rdfs11": ([(a, SUB_CLASS, b), (b, SUB_CLASS, c)], (a, SUB_CLASS, c)),
    "rdfs12": ([(p, TYPE, MEMBERSHIP)], (p, SUB_PROPERTY, MEMBER)),
    "rdfs13": ([(c, TYPE, DATATYPE)], (c, SUB_CLASS, LITERAL)),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_entailment_pattern(name):
    premises, conclusion = PATTERNS[name]
    assert new(*premises) == {conclusion}
    for missing in premises:
        assert new(*(t for t in premises if t != missing)) == set()


LEFT_OUT = {
    "rdfs1": [(x, p, f'"1"^^{c}')],
    "rdfs4a, rdfs4b, rdfD2": [(x, p, y)],
    "rdfs6": [(p, TYPE, "<http://www.w3.org/1999/02/22-rdf-syntax-ns#Property>")],
    "rdfs8, rdfs10": [(c, TYPE, f"<{RDFS}Class>")],
    "axiomatic triples": [(a, SUB_CLASS, b)],
    "rdf:_1 is a membership property": [(x, "<http://www.w3.org/1999/02/22-rdf-syntax-ns#_1>", y)],
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_holds_of_every_graph_is_left_out(name):
    assert new(*LEFT_OUT[name]) == set()


# ------------------------------------------------------------------------------------------------------------ interplay


def test_a_sub_property_of_sub_class_of_is_used_as_one():
    assert new((p, SUB_PROPERTY, SUB_CLASS), (a, p, b), (b, SUB_CLASS, c), (x, TYPE, a)) == {
        (a, SUB_CLASS, b),
        (a, SUB_CLASS, c),
        (x, TYPE, b),
        (x, TYPE, c),
    }


def test_a_super_property_of_sub_class_of_gets_the_closure():
    assert new((SUB_CLASS, SUB_PROPERTY, q), (a, SUB_CLASS, b), (b, SUB_CLASS, c)) == {
        (a, SUB_CLASS, c),
        (a, q, b),
        (b, q, c),
        (a, q, c),
    }


def test_domains_are_inherited_by_sub_properties_and_reach_super_classes():
    assert new((p, SUB_PROPERTY, q), (q, DOMAIN, a), (a, SUB_CLASS, b), (x, p, y)) == {
        (x, q, y),
        (x, TYPE, a),
        (x, TYPE, b),
    }


def test_a_type_from_a_range_can_make_a_datatype():
    assert new((p, RANGE, DATATYPE), (x, p, y), (c, TYPE, y)) == {
        (y, TYPE, DATATYPE),
        (y, SUB_CLASS, LITERAL),
        (c, TYPE, LITERAL),
    }


def test_a_schema_that_speaks_of_rdf_type():
    assert new((TYPE, RANGE, c), (a, SUB_CLASS, b), (x, TYPE, a)) == {
        (x, TYPE, b),
        (a, TYPE, c),
        (b, TYPE, c),
        (c, TYPE, c),
    }


def test_literals_are_no_subjects_and_blank_nodes_no_predicates():
    assert new((p, RANGE, c), (x, p, '"1"')) == set()
    assert new((p, SUB_PROPERTY, "_:b"), (x, p, y)) == set()


def test_cycles_end():
    assert new((a, SUB_CLASS, b), (b, SUB_CLASS, a), (x, TYPE, a)) == {
        (a, SUB_CLASS, a),
        (b, SUB_CLASS, b),
        (x, TYPE, b),
    }


def test_named_graphs_are_closed_each_by_itself():
    k = closed((a, SUB_CLASS, b), named={"urn:g": [[(x, TYPE, a)]], "urn:h": [[(x, TYPE, a), (a, SUB_CLASS, c)]]})
    assert set(k.graph("<urn:g>")) == {(x, TYPE, a)}
    assert (x, TYPE, c) in k.graph("<urn:h>")


def test_the_rdf_regime_entails_nothing():
    premises, _ = PATTERNS["rdfs9"]
    assert set(closed(*premises, entailment="rdf").default) == set(premises)


# ------------------------------------------------------------------------------------------------------- by definition

NAMES = [f"<urn:{name}>" for name in "abcde"]
VOCABULARY = [TYPE, SUB_CLASS, SUB_PROPERTY, DOMAIN, RANGE]
META = [MEMBERSHIP, DATATYPE, MEMBER, LITERAL]
predicates = st.sampled_from(NAMES[:3] + VOCABULARY * 2)
plain = st.tuples(st.sampled_from(NAMES), predicates, st.sampled_from(NAMES))
wild = st.tuples(
    st.sampled_from([*NAMES, *VOCABULARY, "_:b"]),
    predicates,
    st.sampled_from([*NAMES, *VOCABULARY, *META, "_:b", '"1"']),
)


@settings(max_examples=examples(4 / 15))
@given(st.lists(st.one_of(plain, wild), max_size=9, unique=True))
def test_the_closure_is_the_least_fixpoint(triples):
    assert set(closed(*triples).default) == closure(set(triples))


@settings(max_examples=examples(1 / 10))
@given(st.lists(plain, max_size=8, unique=True))
def test_the_closure_agrees_with_owlrl(triples):
    graph = rdflib.Graph()
    for triple in triples:
        graph.add(tuple(rdflib.URIRef(term[1:-1]) for term in triple))
    owlrl.RDFSClosure.RDFS_Semantics(graph, axioms=False, daxioms=False, rdfs=False).closure()

    def claimed(s: str, pred: str, o: str) -> bool:
        """Not reflexive, and about no class of the vocabulary: what the rules here are for."""
        return {s, o} <= set(NAMES) and not (s == o and pred in (SUB_CLASS, SUB_PROPERTY))

    theirs = {tuple(map(of_rdflib_term, t)) for t in graph}
    ours = set(closed(*triples).default)
    assert {t for t in ours if claimed(*t)} == {t for t in theirs if claimed(*t)}


# ------------------------------------------------------------------------------------------------------------- streams

schemas = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(VOCABULARY[1:]), st.sampled_from(NAMES)), max_size=7, unique=True
)
STREAMED = [("<urn:x>", pred, o) for pred, o in itertools.product([*NAMES, TYPE], [*NAMES, "<urn:y>", '"1"'])]


@settings(max_examples=examples(1 / 6))
@given(schemas, st.sampled_from([[], [(TYPE, SUB_PROPERTY, "<urn:a>")], [(TYPE, RANGE, "<urn:b>")]]))
def test_a_streamed_triple_entails_what_it_adds_to_the_closure(schema, about_type):
    statements = {*schema, *about_type}
    k = closed(*statements)
    static = closure(statements)
    for triple in STREAMED:
        found = k.schema.entailed(triple)
        assert len(found) == len(set(found))
        assert {triple, *found} | static == closure({*statements, triple})
        if not k.schema.type_is_ruled:
            assert_leaf_tests_agree(k, triple, {triple, *found})


def assert_leaf_tests_agree(k: Knowledge, triple, entailed: set) -> None:
    """The set tests of leaves find just what ``entailed`` finds."""
    s, pred, o = triple
    for name in NAMES:
        assert ((s, name, o) in entailed) == (pred in k.schema.predicate_test(name))
        tests = k.schema.type_tests(name)
        of_subject = pred in tests.subject_of or (pred in tests.type_predicates and o in tests.classes)
        assert ((s, TYPE, name) in entailed) == of_subject
        if not o.startswith('"') and o != s:
            assert ((o, TYPE, name) in entailed) == (pred in tests.object_of)


def test_schema_lookups():
    schema = closed(
        (a, SUB_CLASS, b), (b, SUB_CLASS, c), (p, SUB_PROPERTY, q), (q, DOMAIN, a), (q, RANGE, b), (x, q, y)
    ).schema
    assert set(schema.super_classes(a)) == {b, c}
    assert set(schema.sub_classes(c)) == {a, b}
    assert schema.super_properties(p) == (q,)
    assert schema.sub_properties(q) == (p,)
    assert set(schema.subject_classes(p)) == {a, b, c}
    assert set(schema.object_classes(p)) == {b, c}
    assert schema.super_classes(x) == schema.super_properties(x) == ()
    tests = schema.type_tests(b)
    assert tests.type_predicates == {TYPE}
    assert tests.classes == {a, b}
    assert tests.subject_of == tests.object_of == {p, q}


def test_a_streamed_schema_triple_is_an_occurrence_and_no_schema():
    schema = closed((p, SUB_PROPERTY, SUB_CLASS), (b, SUB_CLASS, c)).schema
    assert schema.entailed((a, p, b)) == ((a, SUB_CLASS, b),)
    assert set(schema.super_classes(a)) == set()
