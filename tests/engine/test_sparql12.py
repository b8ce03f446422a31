"""SPARQL 1.2: triple terms, reifiers, annotations and base direction, against pyoxigraph and by the definition."""

from __future__ import annotations

from typing import Any, Literal

import pyoxigraph as ox
import pytest
from etalis_rules.terms import RDF
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from etalis_py import Engine, QueryError, compile, event
from etalis_py.values.oxigraph_terms import spell_term
from tests.conformance import w3c

PREFIX = f"PREFIX : <http://example.org/> PREFIX rdf: <{RDF}> "
GRAPH = """
:r1 rdf:reifies <<( :a :p 1 )>> ; :by :bob .
:a :p 1 .
:a :p 2 ~ :r2 {| :by :eve ; :sure 0.5 |} .
:a :q :b {| :by :bob |} {| :by :eve |} .
:x :says <<( :a :q <<( :b :r "x"@en--ltr )>> )>> , <<( :a :p :a )>> .
:y :says "plain", "tagged"@en, "both"@ar--rtl .
"""


def expected(query: str, graph: str = GRAPH) -> list[tuple[str, ...]]:
    """What pyoxigraph answers, without blank nodes."""
    store = ox.Store()
    store.load(f"@prefix : <http://example.org/> . @prefix rdf: <{RDF}> . {graph}".encode(), ox.RdfFormat.TURTLE)
    solutions: Any = store.query(PREFIX + query)
    names = [v.value for v in solutions.variables]
    return sorted(tuple("" if s[n] is None else _spelled(s[n]) for n in names) for s in solutions)


def _spelled(term: Any) -> str:
    return "_:" if isinstance(term, ox.BlankNode) else spell_term(term)


def variables(query: str) -> list[str]:
    solutions: Any = ox.Store().query(PREFIX + query)
    return [v.value for v in solutions.variables]


def answers(query: str, graph: str = GRAPH, executor: Literal["rows", "columns"] = "rows") -> list[tuple[str, ...]]:
    """The same over a stream in which the whole graph occurs at once."""
    names = variables(query)
    engine = Engine(PREFIX + query, executor=executor)
    posted = event(graph.strip().removesuffix(".").replace("rdf:reifies", f"<{RDF}reifies>"), 1)
    found = [*engine.push_all([posted]), *engine.close()]
    rows = (tuple(m.bindings.get(n, "") for n in names) for m in found)
    return sorted(tuple("_:" if t.startswith("_:") else t for t in row) for row in rows)


QUERIES = [
    "SELECT ?r ?s ?o { ?r rdf:reifies <<( ?s :p ?o )>> }",
    "SELECT ?s ?p ?o ?w { << ?s ?p ?o >> :by ?w }",
    "SELECT ?s ?o ?w { ?s :p ?o {| :by ?w |} }",
    "SELECT ?s ?o ?w ?n { ?s :p ?o ~ ?r {| :by ?w ; :sure ?n |} }",
    "SELECT ?p ?w { :a ?p ?o ~ ?r . ?r :by ?w }",
    "SELECT ?w ?v { :a :q ?o {| :by ?w |} {| :by ?v |} }",
    "SELECT ?r { ?r rdf:reifies <<( :a :p 1 )>> }",
    "SELECT ?x { ?x :says <<( :a :q <<( :b :r ?l )>> )>> }",
    "SELECT ?l (LANG(?l) AS ?g) (LANGDIR(?l) AS ?d) (DATATYPE(?l) AS ?t) { :y :says ?l }",
    "SELECT ?l (hasLANG(?l) AS ?h) (hasLANGDIR(?l) AS ?i) { :y :says ?l }",
    'SELECT ?x { ?x :says <<( :a :q <<( :b :r "x"@en--ltr )>> )>> }',
    "SELECT ?s { ?x :says <<( ?s :p ?s )>> }",
    "SELECT ?x ?s { ?x :says <<( ?s ?p ?o )>> . ?s :p 2 }",
    "SELECT ?t ?s ?p ?o { ?x :says ?t BIND(SUBJECT(?t) AS ?s) BIND(PREDICATE(?t) AS ?p) BIND(OBJECT(?t) AS ?o) }",
    "SELECT ?x (isTRIPLE(?t) AS ?i) (isIRI(?t) AS ?j) (isLITERAL(?t) AS ?k) (isBLANK(?t) AS ?l) { ?x :says ?t }",
    "SELECT (TRIPLE(?s, :q, ?o) AS ?t) (<<( ?s :q ?o )>> AS ?u) (TRIPLE(?o, :q, ?s) AS ?none) { ?s :p ?o }",
    "SELECT (STRLANGDIR('a', 'EN', 'rtl') AS ?t) (STRLANGDIR('a', 'en', 'up') AS ?none) { :x :says ?t2 }",
    "SELECT ?t { ?x :says ?t FILTER (?t = <<( :a :p :a )>>) }",
    "SELECT ?x { ?x :says ?t FILTER (<<( :a :p 1 )>> = <<( :a :p 1.0 )>>) }",
    "SELECT ?x { ?x :says ?t FILTER (sameTerm(<<( :a :p 1 )>>, <<( :a :p 1.0 )>>)) }",
    "SELECT ?t { ?x :says ?t } ORDER BY ?t",
    "SELECT ?t ?x { VALUES ?t { <<( :a :p :a )>> <<( :a :p :b )>> } OPTIONAL { ?x :says ?t } }",
    "SELECT ?s ?w { ?s :p ?o FILTER NOT EXISTS { << ?s :p ?o >> :by :bob } OPTIONAL { << ?s :p ?o >> :by ?w } }",
    "SELECT ?s ?o { ?s :p ?o MINUS { << ?s :p ?o >> :by :eve } }",
    "SELECT ?w (COUNT(*) AS ?n) { << ?s ?p ?o >> :by ?w } GROUP BY ?w",
    'SELECT (CONCAT("a"@en--ltr, "b"@en--ltr) AS ?c) (CONCAT("a"@en--ltr, "b"@en) AS ?d) { :x :says ?t }',
    'SELECT ("a"@en--ltr = "a"@en AS ?e) { :x :says ?t }',
    'VERSION "1.2" SELECT ?s { ?s :p 2 }',
    "SELECT ?x ?s { ?x :says <<( 1 ?p ?s )>> }",
    "SELECT ?x ?s { ?x :says <<( <<( :a :q ?s )>> ?p ?o )>> }",
    "SELECT ?s { <<( :a :p ?s )>> :by ?w }",
    "SELECT ?s { ?s ?p ?o . << <<( ?s ?p ?o )>> :p 1 >> :by ?w }",
    "SELECT ?l (!!STR(?l) AS ?n) (!!(?l = 'plain') AS ?m) (!-?l AS ?e) { :y :says ?l }",
    "SELECT ?o (!!?o AS ?n) (!-?o AS ?m) (!!!?o AS ?k) { :a :p ?o }",
    r'SELECT ("\u0022" AS ?q) ("\u005C" AS ?b) ("\u005Ct" AS ?c) ("\\u0061" AS ?d) { :y :says ?l }',
    r"""SELECT ("a\u000A\t\U0001F47E" AS ?e) ('\u0027' AS ?f) { :y :says ?l }""",
    r"SELECT ?o { <http://example.org/\u0061> :p ?o }",
]


@pytest.mark.parametrize("query", QUERIES)
def test_the_answers_are_those_of_sparql(query: str) -> None:
    assert answers(query) == expected(query)


@pytest.mark.parametrize("query", [q for q in QUERIES if "EXISTS" not in q and "GROUP" not in q])
def test_the_answers_over_the_background(query: str) -> None:
    background = event(GRAPH.strip().removesuffix(".").replace("rdf:reifies", f"<{RDF}reifies>"), 1)
    engine = Engine(PREFIX + query, background=list(background.triples), entailment="rdf")
    names = variables(query)
    found = [*engine.push(event(":other :thing 1", 1)), *engine.close()]
    rows = (tuple(m.bindings.get(n, "") for n in names) for m in found)
    assert sorted(tuple("_:" if t.startswith("_:") else t for t in row) for row in rows) == expected(query)


@pytest.mark.parametrize("query", QUERIES[:12])
def test_the_same_in_columns(query: str) -> None:
    assert answers(query, executor="columns") == answers(query)


@pytest.mark.parametrize("query", QUERIES[:8])
def test_in_a_window(query: str) -> None:
    select, where = query.split(" {", 1)
    window = f"{select} FROM NAMED WINDOW :w ON :s [RANGE PT1H STEP PT1H] WHERE {{ WINDOW :w {{{where} }}"
    engine = Engine(PREFIX + window)
    graph = GRAPH.strip().removesuffix(".").replace("rdf:reifies", f"<{RDF}reifies>")
    found = [*engine.push_all([event(graph, 1, stream="<http://example.org/s>")]), *engine.close()]
    names = select.replace("SELECT", "").replace("?", "").split()
    rows = (tuple(m.bindings.get(n, "") for n in names) for m in found)
    assert sorted(tuple("_:" if t.startswith("_:") else t for t in row) for row in rows) == expected(query)


def constructed(query: str, executor: Literal["rows", "columns"] = "rows") -> frozenset[w3c.Triple]:
    engine = Engine(PREFIX + query, executor=executor)
    posted = event(GRAPH.strip().removesuffix(".").replace("rdf:reifies", f"<{RDF}reifies>"), 1)
    return frozenset(t for m in [*engine.push(posted), *engine.close()] for t in m.triples or ())


def constructed_by_sparql(query: str) -> frozenset[w3c.Triple]:
    store = ox.Store()
    store.load(f"@prefix : <http://example.org/> . @prefix rdf: <{RDF}> . {GRAPH}".encode(), ox.RdfFormat.TURTLE)
    made: Any = store.query(PREFIX + query)
    return frozenset((spell_term(t.subject), spell_term(t.predicate), spell_term(t.object)) for t in made)


CONSTRUCTS = [
    "CONSTRUCT { << ?s ?p ?o >> :seen true } WHERE { ?s ?p ?o . ?s :p 1 }",
    "CONSTRUCT { ?s :was ?o {| :seen true |} } WHERE { ?s :p ?o }",
    "CONSTRUCT { ?s :was ?o ~ {| :seen true |} ~ _:r . _:r :of ?s } WHERE { ?s :p ?o }",
    "CONSTRUCT { << << ?s ?p ?o >> :seen true >> :by :me } WHERE { ?s ?p ?o . ?s :p 1 }",
    "CONSTRUCT { _:b :holds <<( ?s :p _:b )>> , <<( ?s :p _:c )>> } WHERE { ?s :p ?o }",
    "CONSTRUCT { ?s :holds <<( ?s :p <<( _:b :q ?o )>> )>> } WHERE { ?s :p ?o }",
    "CONSTRUCT { ?s :holds <<( ?o :p [] )>> } WHERE { ?s ?p ?o }",
    "CONSTRUCT { ?s :holds <<( 1 :p ?o )>> , <<( <<( ?s :p 1 )>> :p ?o )>> } WHERE { ?s :p ?o }",
    "CONSTRUCT { 1 :holds ?o . <<( ?s :p 1 )>> :holds ?o . ?o :holds ?s } WHERE { ?s :p|:q ?o }",
    "CONSTRUCT WHERE { ?s :p ?o {| :by ?w |} }",
    "CONSTRUCT WHERE { << :a :p ?o >> :by ?w ; :sure ?n }",
    "CONSTRUCT WHERE { ?x :says <<( :a ?p <<( :b :r ?l )>> )>> }",
]


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("query", CONSTRUCTS)
def test_the_triples_are_those_of_sparql(query: str, executor: Literal["rows", "columns"]) -> None:
    wanted = constructed_by_sparql(query)
    assert w3c.same_graph(constructed(query, executor), wanted), f"expected {sorted(wanted)}"


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_each_solution_has_a_new_reifier(executor: Literal["rows", "columns"]) -> None:
    made = constructed("CONSTRUCT { << :it :is :so >> :for ?o } WHERE { ?s :p ?o }", executor)
    reifiers = {s for s, p, _ in made if p == f"<{RDF}reifies>"}
    assert len(reifiers) == 2
    assert reifiers == {s for s, p, _ in made if p == "<http://example.org/for>"}


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("subject", ["1", "?t", "<<( ?s :p ?o )>>", "<<( :a :p 1 )>>"])
@pytest.mark.parametrize("reader", ["SELECT ?x { ?x :holds ?y }", "SELECT ?x { EVENT { ?x :holds ?y } }"])
def test_a_triple_that_is_no_rdf_is_not_derived(
    subject: str, reader: str, executor: Literal["rows", "columns"]
) -> None:
    rule = f"CONSTRUCT {{ {subject} :holds ?o . ?s :kept ?o }} WHERE {{ ?s :p ?o . ?x :says ?t }}"
    engine = Engine([PREFIX + rule, PREFIX + reader, PREFIX + "SELECT ?o { :a :kept ?o }"], executor=executor)
    found = [*engine.push(event(":a :p :b . :x :says <<( :a :p 1 )>>", 1)), *engine.close()]
    assert [m.query for m in found if m.triples is None] == ["q3"]


def test_a_rule_is_not_applied_to_the_triple_terms_that_it_made() -> None:
    rule = "CONSTRUCT { ?x :says <<( ?t :about [] )>> . ?t a :Node } WHERE { ?x :says ?u BIND(SUBJECT(?u) AS ?t) }"
    engine = Engine(PREFIX + rule)
    found = [*engine.push(event(":x :says <<( :a :p 1 )>>", 1)), *engine.close()]
    assert len(found) == 1


def test_explain_shows_what_a_template_makes() -> None:
    program = compile(PREFIX + "CONSTRUCT { ?s :holds <<( ?s :p _:b )>> } WHERE { ?s :p ?o }")
    text = str(program)
    assert "triple(?s, :holds, <<( ?s :p _:b(?o, ?s) )>>)[T1,T2] ← triple(?s, :p, ?o)[T1,T2]" in text
    assert "template=[template(?s, :holds, <<( ?s :p ?_:b )>>)]" in text


nodes = st.sampled_from([":a", ":b", "1", '"x"@en--ltr', "<<( :a :p :b )>>", "<<( :a :q 1 )>>"])
positions = st.one_of(
    nodes, st.sampled_from(["?x", "?y", "?z", "<<( ?x :p ?y )>>", "<<( ?x ?z 1 )>>", "<<( :a ?z ?x )>>"])
)
names = st.sampled_from([":a", ":b"])


@settings(deadline=None)
@given(
    st.lists(st.tuples(names, st.sampled_from([":p", ":q"]), nodes), min_size=1, max_size=6, unique=True),
    st.lists(
        st.tuples(st.sampled_from([":a", "?x", "?y"]), st.sampled_from([":p", ":q", "?z"]), positions),
        min_size=1,
        max_size=3,
    ),
)
def test_drawn_patterns(triples: list[tuple[str, str, str]], patterns: list[tuple[str, str, str]]) -> None:
    graph = " . ".join(map(" ".join, triples))
    query = f"SELECT ?x ?y ?z {{ {' . '.join(map(' '.join, patterns))} }}"
    try:
        wanted = expected(query, graph + " .")
    except RuntimeError:  # pyoxigraph makes a triple term with a literal as its subject, and notices
        reject()
    assert answers(query, graph) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * { ?a :p/:q ?b {| :r 1 |} }", "a property path is not allowed in an annotated triple"),
        ("SELECT * { << ?a :p [ :q 1 ] >> :r 1 }", "are not allowed in a reified triple"),
        ('SELECT * { ?a :p "x"@en--up }', "not a base direction"),
        ("SELECT (TRIPLE(:a, :b) AS ?t) { ?s :p ?o }", "TRIPLE takes three arguments, not 2"),
        ("SELECT * { ?a :p <<( :a :b :c }", "expected"),
    ],
)
def test_what_is_not_supported_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        compile(PREFIX + text)
