"""The indexed graph against a plain set of triples."""

import itertools
from array import array

from hypothesis import given
from hypothesis import strategies as st

from etalis_py.knowledge.graph import Graph, PairColumns, PredicatePairs

NAMES = [f"<urn:{x}>" for x in "abcdefghijkl"]  # enough to pass the size at which an entry becomes a dictionary
terms = st.sampled_from(NAMES)
triples = st.tuples(terms, st.sampled_from(NAMES[:3]), terms)


def answers(facts: set, s, p, o) -> set:
    return {t for t in facts if all(want in (None, got) for want, got in zip((s, p, o), t, strict=True))}


@given(st.lists(triples, max_size=60), st.lists(st.tuples(st.booleans(), triples), max_size=60))
def test_every_binding_pattern_after_every_change(first, changes):
    graph, facts = Graph(first), set(first)
    forward, backward = graph.forward(NAMES[0]), graph.backward(NAMES[0])
    for add, triple in changes:
        if add:
            assert graph.add(*triple) == (triple not in facts)
            facts.add(triple)
        else:
            assert graph.remove(*triple) == (triple in facts)
            facts.discard(triple)
    assert len(graph) == len(facts)
    assert set(graph) == facts
    for triple in [*facts, ("<urn:a>", "<urn:a>", "<urn:z>")]:
        for mask in itertools.product([True, False], repeat=3):
            pattern = tuple(term if keep else None for term, keep in zip(triple, mask, strict=True))
            found = list(graph.match(*pattern))
            assert set(found) == answers(facts, *pattern)
            assert len(found) == len(set(found))
    # The dictionaries given before the changes are the maintained ones.
    assert {(s, o) for s in forward for o in forward[s]} == {(s, o) for s, p, o in facts if p == NAMES[0]}
    assert {(s, o) for o in backward for s in backward[o]} == {(s, o) for s, p, o in facts if p == NAMES[0]}


def test_direct_accessors():
    graph = Graph([("<urn:a>", "<urn:p>", "<urn:b>"), ("<urn:a>", "<urn:p>", "<urn:c>"), ("<urn:c>", "<urn:q>", '"1"')])
    assert tuple(graph.objects("<urn:a>", "<urn:p>")) == ("<urn:b>", "<urn:c>")
    assert tuple(graph.subjects("<urn:q>", '"1"')) == ("<urn:c>",)
    assert tuple(graph.objects("<urn:z>", "<urn:p>")) == tuple(graph.subjects("<urn:none>", "<urn:b>")) == ()
    assert graph.contains("<urn:a>", "<urn:p>", "<urn:c>")
    assert not graph.contains("<urn:a>", "<urn:q>", "<urn:c>")
    assert list(graph.pairs("<urn:q>")) == [("<urn:c>", '"1"')]
    assert graph.predicates() == ["<urn:p>", "<urn:q>"]


def test_an_index_of_an_unknown_predicate_shows_what_comes_later():
    graph = Graph()
    index = graph.backward("<urn:p>")
    assert graph.predicates() == []
    graph.add("<urn:a>", "<urn:p>", "<urn:b>")
    assert index == {"<urn:b>": ("<urn:a>",)}


def test_columns_are_grouped_wherever_the_pairs_of_a_subject_stand():
    names = [f"<urn:{i}>" for i in range(30)]
    pairs = [(0, 1), (0, 2), (3, 1), (0, 4), *((5, i) for i in range(6, 12)), (3, 2), *((5, i) for i in range(12, 20))]
    columns = PairColumns(names, array("i", [s for s, _ in pairs]), array("i", [o for _, o in pairs]))
    table = PredicatePairs(columns)
    plain = PredicatePairs([(names[s], names[o]) for s, o in pairs])
    assert {s: list(objects) for s, objects in table.forward.items()} == {
        s: list(objects) for s, objects in plain.forward.items()
    }
    assert {s: type(objects) for s, objects in table.forward.items()} == {
        names[0]: tuple,
        names[3]: tuple,
        names[5]: dict,
    }
    assert sorted(table) == sorted(plain)
    assert len(table) == len(pairs)
