"""Families beside a background: together its queries answer what each answers alone, by ids."""

from __future__ import annotations

import pytest
from etalis_compiler.diagnostics import QueryError
from etalis_rules import program as ir
from etalis_rules.terms import RDF_TYPE, RDFS
from hypothesis import given, settings
from hypothesis import strategies as st

import etalis_py.engine.engine as engines
import etalis_py.engine.query_families as families
from etalis_py import Engine, compile, event
from tests.draws import examples
from tests.engine.test_families import EXECUTOR, POLICY, SHAPES, answers, one_by_one, streams

OWL = "http://www.w3.org/2002/07/owl#"
KNOWING = (
    "SELECT ?c ?a WHERE {{ ?c :p ?a . ?c :in :c{0} }}",
    "SELECT ?c ?a WHERE {{ ?c :p ?a . ?c :in :c{0} FILTER (?a > {1}) }}",
    "SELECT ?c WHERE {{ ?c :p ?a . :c{0} :has ?c FILTER (?a != {1}) }}",
    "SELECT ?a WHERE {{ :c{0} :p ?a . :c{0} :in ?d . ?d :limit ?k FILTER (?a >= ?k) }}",
    "SELECT ?c WHERE {{ ?c :p ?a . :c{0} :limit ?k FILTER (?a > ?k) }}",
    "SELECT ?c WHERE {{ {{ ?c :p ?a }} {{ ?c :limit ?k FILTER (?k > {0}) }} }}",
    "SELECT ?c WHERE {{ {{ ?c :p ?a }} {{ ?c :in ?d . ?d :in :c{1} FILTER (?d != :c{0}) }} }}",
    "SELECT ?c WHERE {{ {{ ?c :p ?a }} SEQ {{ ?c :q ?b . ?c a :C{0} }} }}",
    "SELECT ?c WHERE {{ ?c a :C{0} }}",
    "SELECT ?c WHERE {{ {{ ?c a :C{0} }} SEQ {{ ?c :p ?a FILTER (?a > {1}) }} }}",
    "SELECT ?d WHERE {{ :c{0} a ?d }}",
    "SELECT ?c ?a WHERE {{ ?c a :C{0} ; :p ?a . :c{1} :in ?d }}",
    "SELECT ?c ?n WHERE {{ ?c :p ?a FILTER (?a > {0}) OPTIONAL {{ ?c :in ?n }} }}",
    "SELECT ?a ?n WHERE {{ :c{0} :p ?a OPTIONAL {{ :c{1} :in ?n }} }}",
    "SELECT ?c WHERE {{ ?c :p ?a FILTER NOT EXISTS {{ ?c :in :c{0} }} }}",
    "SELECT ?c WHERE {{ ?c :p ?a FILTER EXISTS {{ ?c a :C{0} }} }}",
    "SELECT ?a WHERE {{ :c{0} :p ?a MINUS {{ :c{1} :limit ?a }} }}",
    "SELECT ?c WHERE {{ ?c :p ?a MINUS {{ ?c :in :c{0} }} }}",
    "SELECT ?c (COUNT(*) AS ?n) WHERE {{ ?c :p ?a . ?c :in :c{0} }} GROUP BY ?c",
    "SELECT ?c ?a WHERE {{ {{ ?c :p ?a . ?c :in :c{0} }} SEQ {{ ?c :q ?b }} }} WITHIN {1} s",
    "SELECT ?c ?g WHERE {{ ?c :p ?a GRAPH ?g {{ ?c :in :c{0} }} FILTER (?a > {1}) }}",
    "SELECT ?c WHERE {{ ?c :p ?a FILTER (?a > {0}) GRAPH <urn:g> {{ :c{1} :in ?c }} }}",
    "SELECT ?c WHERE {{ ?c :p ?a . ?c :in+ :c{0} }}",
    "SELECT ?d WHERE {{ :c{0} (:p|:in)+ ?d }}",
    "SELECT ?c ?x WHERE {{ ?c ?x :c{0} FILTER (?c != :c{1}) }}",
    "SELECT ?s WHERE {{ {{ ?s :part :c{0} }} UNION {{ ?s :p ?a . ?s :part ?d . ?d :in :c{1} }} }}",
    "ASK {{ ?c :in :c{0} }}",
    "ASK {{ ?c :p ?a . ?c :in :c{0} FILTER (?a > {1}) }}",
    "CONSTRUCT {{ ?c :in :c{0} }} WHERE {{ ?c :q ?a FILTER (?a > {1}) }}",
    "CONSTRUCT {{ ?c a :C{0} }} WHERE {{ ?c :p ?a . ?c :in :c{1} }}",
    "CONSTRUCT {{ ?c :r :c{0} }} WHERE {{ ?c :in :c{0} }}",
)
"""Queries some of whose patterns the background may answer."""


def iri(name: str) -> str:
    return f"<http://example.org/{name}>"


NODES = st.sampled_from([iri(f"c{n}") for n in range(5)])
CLASSES = st.sampled_from([iri(f"C{n}") for n in range(5)])
PREDICATES = st.sampled_from([iri(name) for name in ("p", "q", "in", "has", "limit", "part", "r")])
NUMBERS = st.integers(0, 4).map(lambda n: f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>')
FACTS = st.one_of(
    st.tuples(NODES, st.sampled_from([iri(name) for name in ("in", "has", "part")]), NODES),
    st.tuples(NODES, st.just(iri("limit")), NUMBERS),
    st.tuples(NODES, st.just(RDF_TYPE), CLASSES),
    st.tuples(NODES, PREDICATES, st.one_of(NODES, NUMBERS)),
)
AXIOMS = st.one_of(
    st.tuples(CLASSES, st.just(f"<{RDFS}subClassOf>"), CLASSES),
    st.tuples(PREDICATES, st.just(f"<{RDFS}subPropertyOf>"), PREDICATES),
    st.tuples(PREDICATES, st.sampled_from([f"<{RDFS}domain>", f"<{RDFS}range>"]), CLASSES),
    st.tuples(PREDICATES, st.just(f"<{OWL}inverseOf>"), PREDICATES),
    st.tuples(NODES, st.just(f"<{OWL}sameAs>"), NODES),
)


@st.composite
def knowledge(draw):
    """What an engine is given: triples, a schema, a named graph and a regime."""
    facts = draw(st.lists(FACTS, max_size=8)) + draw(st.lists(AXIOMS, max_size=3))
    named = draw(st.lists(FACTS, max_size=4))
    regime = draw(st.sampled_from(("rdf", "rdfs", "rdfs", "owlrl")))
    return {"background": [facts], "named": {"urn:g": [named]}, "entailment": regime}


@st.composite
def texts(draw, most=8):
    chosen = draw(st.lists(st.sampled_from(KNOWING), min_size=1, max_size=2, unique=True))
    chosen += draw(st.lists(st.sampled_from(SHAPES), max_size=1))
    constants = st.tuples(*[st.integers(0, 4)] * 3)
    queries = draw(st.lists(st.tuples(st.sampled_from(chosen), constants), min_size=2, max_size=most))
    return [text.format(*some) for text, some in queries]


@st.composite
def events(draw):
    """Events whose predicates and classes the background has, too."""
    said = [draw(streams())]
    one = st.tuples(st.integers(0, 12), st.integers(0, 4), st.sampled_from(("in", "has", "part")), st.integers(0, 4))
    typed = st.tuples(st.integers(0, 12), st.integers(0, 4), st.just("a"), st.integers(0, 4))
    for time, c, name, d in draw(st.lists(st.one_of(one, typed), max_size=4)):
        said.append([event(f":c{c} a :C{d}" if name == "a" else f":c{c} :{name} :c{d}", time)])
    return sorted((one for part in said for one in part), key=lambda one: one.end)


@pytest.fixture(autouse=True)
def from_two_on(monkeypatch):
    monkeypatch.setattr(families, "FEWEST", 2)


@st.composite
def changes(draw):
    """Updates of what is stated, and after which event each comes."""
    one = st.tuples(st.integers(0, 12), st.lists(FACTS, max_size=2), st.lists(FACTS, max_size=2))
    return draw(st.lists(one, max_size=3))


def loaded(queries, policy, executor, **known):
    """An engine that runs them one by one and one that runs families; None where no engine takes them."""
    alone = one_by_one(queries, policy)
    try:
        expected = Engine(alone, executor="rows", **known)
    except QueryError:
        with pytest.raises(QueryError):
            Engine(compile(queries, policy=policy), executor=executor, **known)
        return None
    return expected, Engine(compile(queries, policy=policy), executor=executor, **known)


@settings(max_examples=examples(1 / 3))
@given(texts(), events(), knowledge(), POLICY, EXECUTOR)
def test_together_they_answer_in_order_what_they_answer_one_by_one(queries, stream, known, policy, executor):
    engines = loaded(queries, policy, executor, **known)
    if engines is None:
        return
    expected, engine = engines
    for one in stream:
        assert answers(engine.push(one)) == answers(expected.push(one))
    assert answers(engine.close()) == answers(expected.close())


@settings(max_examples=examples(1 / 3))
@given(texts(), events(), knowledge(), changes(), EXECUTOR)
def test_the_background_may_change_meanwhile(queries, stream, known, updates, executor):
    engines = loaded(queries, "unrestricted", executor, changes=True, **known)
    if engines is None:
        return
    for number, one in enumerate(stream):
        expected, found = (answers(engine.push(one)) for engine in engines)
        assert found == expected
        for after, add, remove in updates:
            if after == number:
                taken = [_taken(engine, add, remove) for engine in engines]
                assert taken[0] == taken[1]
                if not taken[0]:
                    return
    expected, found = (answers(engine.close()) for engine in engines)
    assert found == expected


def _taken(engine, add, remove):
    """Is there an order of the queries beside the updated background?"""
    try:
        engine.update(add=add, remove=remove)
    except QueryError:
        return False
    return True


@settings(max_examples=examples(1 / 3))
@given(texts(), events(), knowledge(), POLICY, st.tuples(EXECUTOR, EXECUTOR), st.data())
def test_queries_come_and_go_and_a_snapshot_goes_on(queries, stream, known, policy, executors, data):
    """``queries`` come one by one, some are gone again, and another engine takes over at any point."""
    named = [f"REGISTER QUERY n{i} AS {query}" for i, query in enumerate(queries) if "CONSTRUCT" not in query]
    gone = data.draw(st.integers(0, len(named)))
    taken = data.draw(st.integers(0, len(stream)))
    found, expected = (Engine(policy=policy, executor=executor, **known) for executor in (executors[0], "rows"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(families, "FEWEST", 10**9)
        patch.setattr(engines, "ALIKE", 10**9)
        try:
            for text in named:
                expected.add(text)
        except QueryError:
            return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "ALIKE", 2)
        identifiers = [found.add(text) for text in named]
    for engine in (found, expected):
        for identifier in identifiers[:gone]:
            engine.remove(identifier)
    results = [answers(engine.push_all(stream[:taken])) for engine in (found, expected)]
    other = Engine(policy=policy, executor=executors[1], **known)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "ALIKE", 2)
        for text, identifier in zip(named, identifiers, strict=True):
            other.add(text, name=identifier)
    for identifier in identifiers[:gone]:
        other.remove(identifier)
    other.restore(found.snapshot())
    for answered, engine in zip(results, (other, expected), strict=True):
        answered += answers([*engine.push_all(stream[taken:]), *engine.close()])
    assert sorted(map(str, results[0])) == sorted(map(str, results[1]))


ALERT = "REGISTER QUERY n{0} AS SELECT ?c ?a WHERE {{ ?c :p ?a . ?c a :C{0} FILTER (?a > {1}) }}"
SCHEMA = [[(iri("c1"), RDF_TYPE, iri("C1")), (iri("C1"), f"<{RDFS}subClassOf>", iri("C2"))]]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_alerts_over_an_ontology_are_one_family(executor):
    engine = Engine(compile([ALERT.format(n, 10 * n) for n in range(8)]), background=SCHEMA, executor=executor)
    added = engine.add(ALERT.format(8, 0).replace(":C8", ":C1"))
    assert len(engine.rules.outputs) == 1
    found = engine.push_all([event(f":c1 :p {a}", t) for t, a in enumerate((5, 15, 25))])
    engine.update(add=[(iri("c3"), RDF_TYPE, iri("C5"))])
    engine.remove(added)
    found = [*found, *engine.push(event(":c3 :p 60", 9)), *engine.close()]
    assert [(m.query, m["a"]) for m in found] == [
        ("n8", 5), ("n1", 15), ("n8", 15), ("n1", 25), ("n2", 25), ("n8", 25), ("n5", 60)
    ]  # fmt: skip


def test_what_an_event_says_is_looked_up_before_the_limits_of_queries_are_tested():
    text = "SELECT ?c ?a WHERE {{ ?c :p ?a FILTER (?a > {0}) GRAPH <urn:g> {{ ?c :in :c{0} }} }}"
    engine = Engine(compile([text.format(n) for n in range(4)]), named={"urn:g": [[(iri("c1"), iri("in"), iri("c2"))]]})
    (node,) = [node for _, node in engine.rules.nodes if isinstance(node, ir.Map)]
    assert [type(step) for step in node.steps] == [ir.Background, ir.Parameters, ir.Condition]
    assert len(node.steps[1].equal) == 1
    found = engine.push_all([event(":c1 :p 2", 1), event(":c1 :p 3", 2), event(":c2 :p 9", 3)])
    assert [(m.query, m["a"]) for m in [*found, *engine.close()]] == [("q3", 3)]


def test_what_no_longer_runs_together_is_refused_where_goals_would_be_lost():
    """Whether an OPTIONAL is absent beside a background is known at the end, of each query by itself."""
    queries = [f"SELECT ?x ?d WHERE {{ :c{n} :q ?x OPTIONAL {{ ?d :r ?x }} }}" for n in range(3)]
    engines = [Engine(compile(queries), background=SCHEMA, changes=changes) for changes in (False, True)]
    assert [len(engine.rules.outputs) for engine in engines] == [1, 3]
    for engine in engines:
        engine.push(event(":c5 :r 7", 1))
    update = [(iri("c9"), iri("q"), iri("c8"))]
    with pytest.raises(ValueError, match=r"no longer run together.*changes=True"):
        engines[0].update(add=update)
    engines[1].update(add=update)
    found = [*engines[1].push(event(":c2 :q 7", 2)), *engines[1].close()]
    assert [(m.query, m.bindings["d"]) for m in found] == [("q3", iri("c5"))]
