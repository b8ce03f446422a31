"""Updates: after each one the closed graph is what a fresh start with the same statements would give."""

import msgspec
import pytest
from etalis_rules.terms import RDF_TYPE as TYPE
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py.knowledge import KnowledgeError, load, summarize
from tests.draws import examples
from tests.knowledge.rdfs_by_definition import DOMAIN, MEMBERSHIP, RANGE, SUB_CLASS, SUB_PROPERTY, closure

a, b, c, p, q, x, y = (f"<urn:{name}>" for name in "abcpqxy")
NAMES = [a, b, c, p, q]
THINGS = [x, y, a]
instances = st.one_of(
    st.tuples(st.sampled_from(THINGS), st.sampled_from([p, q, TYPE]), st.sampled_from([*THINGS, b, c, '"1"'])),
    st.tuples(st.sampled_from(THINGS), st.just(TYPE), st.sampled_from([a, b, c])),
)
schema_triples = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from([SUB_CLASS, SUB_PROPERTY, DOMAIN, RANGE]),
    st.sampled_from([*NAMES, TYPE, SUB_CLASS, MEMBERSHIP]),
)
about_type = st.sampled_from([[], [], [(TYPE, RANGE, a)], [(TYPE, SUB_PROPERTY, p)]])


def several(triples, most):
    return st.lists(triples, max_size=most)


def updates(triples, most):
    """Pairs of what to add and what to remove."""
    return st.lists(st.tuples(several(triples, 3), several(triples, 3)), max_size=most)


@settings(max_examples=examples(4 / 15))
@given(several(schema_triples, 5), about_type, several(instances, 8), updates(instances, 6))
def test_instance_updates_equal_a_rebuild(schema, about, first, changes):
    facts = {*schema, *about, *first}
    follow(load(list(facts), cache=False), facts, changes)


@settings(max_examples=examples(1 / 10))
@given(several(schema_triples, 4), several(instances, 6), updates(st.one_of(instances, schema_triples), 3))
def test_schema_updates_equal_a_rebuild(schema, first, changes):
    facts = {*schema, *first}
    follow(load(list(facts), cache=False), facts, changes)


def follow(k, facts, changes):
    graph, types, before = k.default, k.default.backward(TYPE), set(k.default)
    assert before == closure(facts)
    for number, (add, remove) in enumerate(changes, 1):
        facts = (facts - set(remove)) | set(add)
        change = k.update(add=add, remove=[*remove, ("<urn:never>", p, x)])
        after = closure(facts)
        assert set(graph) == after
        assert len(graph) == len(after)
        assert set(k.stated()) == facts
        assert {(s, o) for o in types for s in types[o]} == {(s, o) for s, pred, o in after if pred == TYPE}
        assert change.version == k.version == number
        assert (change.added, change.removed) == (len(after - before), len(before - after))
        before = after
    assert k.default is graph


def test_instance_updates_do_not_ask_clingo(monkeypatch):
    k = load([(a, SUB_CLASS, b), (p, DOMAIN, a), (x, TYPE, a)], cache=False)
    monkeypatch.setattr("etalis_py.knowledge.knowledge.answer_set", None)  # a call would fail
    k.update(add=[(y, p, x)], remove=[(x, TYPE, a)])
    assert set(k.default.pairs(TYPE)) == {(y, a), (y, b)}
    assert (k.version, k.schema_version) == (1, 0)


def test_what_has_a_second_reason_stays():
    k = load([(p, DOMAIN, a), (x, p, y), (x, p, '"1"')], cache=False)
    assert k.update(remove=[(x, p, y)]).removed == 1
    assert k.default.contains(x, TYPE, a)
    assert k.update(remove=[(x, p, '"1"')]).removed == 2
    assert not k.default.contains(x, TYPE, a)


def test_what_is_stated_stays_when_its_reason_goes():
    k = load([(a, SUB_CLASS, b), (x, TYPE, a), (x, TYPE, b)], cache=False)
    k.update(remove=[(x, TYPE, a)])
    assert set(k.default.pairs(TYPE)) == {(x, b)}


def test_a_triple_both_removed_and_added_is_there():
    k = load([(x, p, y)], cache=False)
    assert k.update(add=[(x, p, y)], remove=[(x, p, y)]).removed == 0
    assert set(k.default) == {(x, p, y)}


def test_a_schema_update_makes_a_new_schema():
    k = load([(x, TYPE, a)], cache=False)
    assert k.schema.super_classes(a) == ()
    change = k.update(add=[(a, SUB_CLASS, b)])
    assert change.schema_changed
    assert k.schema_version == 1
    assert set(k.schema.super_classes(a)) == {b}
    assert k.default.contains(x, TYPE, b)


def test_named_graphs_come_and_go():
    k = load([], cache=False)
    graph = k.graph("<urn:g>")
    k.update("<urn:g>", add=[(x, p, y)])
    assert (list(graph), k.names(), list(k.default)) == ([(x, p, y)], ["<urn:g>"], [])
    k.update("<urn:g>", remove=[(x, p, y)])
    assert k.names() == []
    with pytest.raises(KnowledgeError, match="cannot name a graph"):
        k.update("g", add=[(x, p, y)])


def test_a_failing_update_changes_nothing(monkeypatch):
    k = load([(a, SUB_CLASS, b), (x, TYPE, a)], cache=False)
    before = set(k.default)

    def fails(*_, **__):
        raise KnowledgeError("no clingo")

    monkeypatch.setattr("etalis_py.knowledge.knowledge.answer_set", fails)
    with pytest.raises(KnowledgeError):
        k.update(add=[(b, SUB_CLASS, c)])
    assert (set(k.default), k.version, set(k.stated())) == (before, 0, before - {(x, TYPE, b)})


def test_the_summary_tells_a_compiler_what_there_is():
    k = load([(p, SUB_PROPERTY, q), (q, DOMAIN, a), (a, SUB_CLASS, b), (x, p, y), (y, TYPE, c)], cache=False)
    k.update("<urn:g>", add=[(x, q, y)])
    s = summarize(k, updates=True)
    assert (s.entailment, s.schema_version, s.updates, s.type_is_ruled) == ("rdfs", 0, True, False)
    assert s.predicates == {SUB_PROPERTY, DOMAIN, SUB_CLASS, TYPE, p, q}
    assert s.named == {"<urn:g>": {q}}
    assert s.classes == {a, b, c}
    assert s.super_properties == {p: (q,)}
    assert s.super_classes == {a: (b,)}
    assert {key: set(classes) for key, classes in s.subject_classes.items()} == {p: {a, b}, q: {a, b}}
    assert (s.object_classes, s.axioms, s.inverses, s.rules) == ({}, {}, frozenset(), ())
    assert summarize(k, limit=0).super_classes is None


@settings(max_examples=examples(1 / 6))
@given(several(instances, 6), updates(instances, 4), updates(instances, 4))
def test_a_snapshot_restores_the_version_from_any_other(first, changes, others):
    facts = [*dict.fromkeys([(a, SUB_CLASS, b), (p, DOMAIN, a), *first])]
    k, other = load(facts, cache=False), load(facts, cache=False)
    for knowledge, list_ in ((k, changes), (other, others)):
        for number, (add, remove) in enumerate(list_):
            knowledge.update("" if number % 2 else "<urn:g>", add=add, remove=remove)
    snapshot = msgspec.msgpack.decode(msgspec.msgpack.encode(k.snapshot()))
    other.restore(snapshot)
    for name in ("", "<urn:g>"):
        assert set(other.graph(name)) == set(k.graph(name))
        assert set(other.stated(name)) == set(k.stated(name))
    assert other.version == k.version == len(changes)
    assert other.snapshot() == k.snapshot()


def test_a_snapshot_is_the_difference_and_not_the_data():
    k = load([(x, p, y)], cache=False)
    k.update(add=[(x, p, a), (x, p, y)], remove=[(x, p, y), (x, p, b)])
    k.update(add=[(x, p, b)])
    k.update(remove=[(x, p, b), (x, p, y)])
    difference = {"added": [[x, p, a]], "removed": [[x, p, y]]}
    assert k.snapshot() == {"version": 3, "schema_version": 0, "graphs": {"": difference}}


def test_an_update_may_be_turtle_with_the_prefixes_of_queries():
    k = load(":Bank rdfs:subClassOf :Firm .", cache=False)
    assert k.update(add=":acme a :Bank .").added == 2
    assert k.update(remove=":acme a :Bank .").removed == 2
    with pytest.raises(KnowledgeError, match=r"':acme a :Bank' is not Turtle.*\n.*full stop"):
        k.update(add=":acme a :Bank")
