"""Background knowledge beside streams: entailment, joins, graphs and versions."""

from __future__ import annotations

from pathlib import Path

import pytest
from etalis_compiler.diagnostics import QueryError
from etalis_compiler.parser import parse
from etalis_rules.terms import RDF_TYPE, RDFS
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, Event, compile, event
from etalis_py.kernel.stored import SnapshotError
from tests.draws import examples
from tests.engine.judge import answers_of
from tests.oracle import Background, evaluation
from tests.oracle.compare import same

PREFIX = f"PREFIX : <http://example.org/> PREFIX rdfs: <{RDFS}> PREFIX rdf: <{RDF_TYPE[1:-5]}> "
TURTLE = f"@prefix rdfs: <{RDFS}> . @prefix rdf: <{RDF_TYPE[1:-5]}> . @prefix : <http://example.org/> .\n"


def short(term: str) -> str:
    return term.removeprefix("<http://example.org/").removeprefix(f"<{RDFS}").rstrip(">") if term[:1] == "<" else term


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(TURTLE + text)
    return folder / name


class Setup:
    """An engine over a background in Turtle; what it finds as sorted rows of short terms with start and end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def engine(self, query: str, background: str, **options):
        return Engine(compile(PREFIX + query), background=[write(self.folder, "bg.ttl", background)], **options)

    def __call__(self, query: str, background: str, *stream: str, **options):
        engine = self.engine(query, background, **options)
        return rows([*engine.push_all(event(t, i) for i, t in enumerate(stream, 1)), *engine.close()])


def rows(matches):
    return sorted((" ".join(f"{n}={short(v)}" for n, v in sorted(m.bindings.items())), m.start, m.end) for m in matches)


@pytest.fixture
def run(tmp_path: Path) -> Setup:
    return Setup(tmp_path)


# --- entailment over streams ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "background", "stream", "expected"),
    [
        ("SELECT * {?x :p ?y}", ":q rdfs:subPropertyOf :p .", ":a :q :b", ["x=a y=b"]),
        ("SELECT * {?x :p ?y}", ":r rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :p .", ":a :r :b", ["x=a y=b"]),
        ("SELECT * {?x a :C}", ":B rdfs:subClassOf :C .", ":a a :B", ["x=a"]),
        ("SELECT * {?x a :C}", ":q rdfs:domain :C .", ":a :q :b", ["x=a"]),
        ("SELECT * {?x a :C}", ":q rdfs:range :D . :D rdfs:subClassOf :C .", ":a :q :b", ["x=b"]),
        ("SELECT * {?x a :C}", ":q rdfs:range :C .", ':a :q "text"', []),
        ("SELECT * {?x a :C}", ":r rdfs:subPropertyOf :q . :q rdfs:domain :C .", ":a :r :b", ["x=a"]),
        ("SELECT ?c {:a a ?c}", ":q rdfs:domain :B . :B rdfs:subClassOf :C .", ":a :q :b", ["c=B", "c=C"]),
        ("SELECT ?p {:a ?p :b}", ":q rdfs:subPropertyOf :p .", ":a :q :b", ["p=p", "p=q"]),
        ("SELECT * {?x a :C}", ":kind rdfs:subPropertyOf rdf:type . :B rdfs:subClassOf :C .", ":a :kind :B", ["x=a"]),
        ("SELECT * {?x a :Typed}", "rdf:type rdfs:domain :Typed .", ":a a :B", ["x=a"]),
        ("SELECT * {?x :isA ?y}", "rdf:type rdfs:subPropertyOf :isA . :B rdfs:subClassOf :C .", ":a a :B",
         ["x=a y=B", "x=a y=C"]),
        ("SELECT * {?x a :C}", ":q rdfs:domain :C . :B rdfs:subClassOf :C .", ":a :q :b ; a :B", ["x=a"]),
    ],
)  # fmt: skip
def test_a_streamed_triple_is_entailed_by_the_schema(run, query, background, stream, expected):
    found = run(query, background, stream)
    assert [row for row in found if row[1] is not None] == [(b, 1, 1) for b in expected]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_what_sees_every_consequence_hides_nothing_from_what_names_its_predicate(run, executor):
    background = ":q rdfs:range :C . :B rdfs:subClassOf :C ."
    query = "SELECT * { { ?x a ?y } UNION { ?x :p ?y } UNION { ?x :r ?z } }"
    found = run(query, background, ":a :p 1", ":a :q :b", ":b :p 2", executor=executor)
    streamed = [row for row in found if row[1] is not None]
    assert [(row[0].partition('"^^')[0], row[1]) for row in streamed] == [
        ('x=a y="1', 1),
        ('x=b y="2', 3),
        ("x=b y=C", 2),
    ]


def test_without_entailment_only_what_is_said_counts(run):
    assert run("SELECT * {?x :p ?y}", ":q rdfs:subPropertyOf :p .", ":a :q :b", entailment="rdf") == []


NODES = [f"<urn:{n}>" for n in "abc"]
PROPERTIES = [f"<urn:{n}>" for n in "pqr"]
CLASSES = [f"<urn:{n}>" for n in "CDE"]
AXIOMS = st.one_of(
    st.tuples(st.sampled_from(PROPERTIES), st.just(f"<{RDFS}subPropertyOf>"), st.sampled_from(PROPERTIES)),
    st.tuples(st.sampled_from(CLASSES), st.just(f"<{RDFS}subClassOf>"), st.sampled_from(CLASSES)),
    st.tuples(st.sampled_from(PROPERTIES), st.just(f"<{RDFS}domain>"), st.sampled_from(CLASSES)),
    st.tuples(st.sampled_from(PROPERTIES), st.just(f"<{RDFS}range>"), st.sampled_from(CLASSES)),
)
FACTS = st.one_of(
    st.tuples(st.sampled_from(NODES), st.sampled_from(PROPERTIES), st.sampled_from([*NODES, '"01"'])),
    st.tuples(st.sampled_from(NODES), st.just(RDF_TYPE), st.sampled_from(CLASSES)),
)
QUERIES = [
    "SELECT * { ?x <urn:p> ?y }",
    "SELECT * { ?x a <urn:C> }",
    "SELECT * { ?x a <urn:C> . ?x <urn:q> ?y }",
    "SELECT * { { ?x a <urn:C> } SEQ { ?x <urn:p> ?y } }",
    "SELECT * { ?x <urn:p> ?y OPTIONAL { ?y a <urn:D> . ?y <urn:q> ?z } }",
    "SELECT * { ?x <urn:p> ?y FILTER NOT EXISTS { ?x a <urn:E> } }",
]


@settings(max_examples=examples(4 / 5))
@given(st.sampled_from(QUERIES), st.lists(AXIOMS, max_size=4), st.lists(FACTS, max_size=3), st.lists(FACTS, max_size=6))
def test_the_engine_entails_as_the_definitions_do(query, schema, known, streamed):
    document = parse(query)
    events = [Event(n * 1_000_000, n * 1_000_000, (t,)) for n, t in enumerate(streamed, 1)]
    # The queries never ask for the schema's own triples, so it need not be part of the oracle's background.
    expected = evaluation(document, events, Background(frozenset(known)), schema_entailment=schema).answers
    engine = Engine(compile(query), background=[[*known, *schema]] if known or schema else [])
    found = answers_of([*engine.push_all(events), *engine.close()], [o.query for o in engine.rules.outputs], document)
    ((_, right),), ((_, mine),) = expected.items(), found.items()
    assert same(right, mine), f"oracle {right}\nengine {mine}"


# --- joins, graphs and spellings --------------------------------------------------------------------------------

NAMES = ':b :name "01", "1", "1.50" . :b :next :c . :c :next :d .'


def test_all_answers_of_a_background_join_with_their_spellings(run):
    assert [r[0] for r in run("SELECT ?n {?x :p ?y . ?y :name ?n}", NAMES, ":a :p :b")] == [
        'n="01"',
        'n="1"',
        'n="1.50"',
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('SELECT ?x {?x :p ?y FILTER EXISTS {?y :name "01"}}', ["x=a"]),
        ('SELECT ?x {?x :p ?y FILTER EXISTS {?y :name "001"}}', []),
        ("SELECT ?n {?x :p ?y OPTIONAL {?y :name ?n}}", ['n="01"', 'n="1"', 'n="1.50"']),
        ("SELECT ?x ?n {?x :p ?y OPTIONAL {?y :age ?n}}", ["x=a"]),
        ("SELECT ?z {?x :p ?y . ?y :next+ ?z}", ["z=c", "z=d"]),
        ("SELECT ?n {?x :p ?y . ?y :next/^:next/:name ?n}", ['n="01"', 'n="1"', 'n="1.50"']),
    ],
)
def test_operators_over_the_background(run, query, expected):
    assert [r[0] for r in run(query, NAMES, ":a :p :b")] == expected


def test_a_named_graph_is_asked_by_its_name(tmp_path):
    named = tmp_path / "g.trig"
    named.write_text(TURTLE + ':g { :b :name "01" } :h { :b :name "2" }')
    stream = [event(":a :p :b", 1)]

    def found(query):
        engine = Engine(compile(PREFIX + query), background=[named])
        return [r[0] for r in rows([*engine.push_all(stream), *engine.close()])]

    assert found("SELECT ?n {?x :p ?y . GRAPH :g {?y :name ?n}}") == ['n="01"']
    assert found("SELECT ?g ?n {?x :p ?y . GRAPH ?g {?y :name ?n}}") == ['g=g n="01"', 'g=h n="2"']
    assert found("SELECT ?n {?x :p ?y . ?y :name ?n}") == []


@pytest.fixture
def graphs(tmp_path: Path):
    """An engine over a default graph and two named ones, each with another name of :b."""
    (tmp_path / "all.trig").write_text(TURTLE + ':b :name "0" . :g { :b :name "1" } :h { :b :name "2" }')
    return lambda query, **options: Engine(compile(PREFIX + query), background=[tmp_path / "all.trig"], **options)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT ?n {?x :p ?y . ?y :name ?n}", ['n="0"']),
        ("SELECT ?n FROM :g {?x :p ?y . ?y :name ?n}", ['n="1"']),
        ("SELECT ?n FROM :g FROM :h {?x :p ?y . ?y :name ?n}", ['n="1"', 'n="2"']),
        ("SELECT ?n FROM NAMED :g {?x :p ?y . ?y :name ?n}", []),
        ("SELECT ?n FROM NAMED :g {?x :p ?y . GRAPH ?g {?y :name ?n}}", ['n="1"']),
        ("SELECT ?n FROM :g FROM NAMED :h {?x :p ?y . GRAPH :g {?y :name ?n}}", []),
        ("SELECT ?n FROM :g {?x :p ?y FILTER EXISTS {?y :name '1'} OPTIONAL {?y :name ?n}}", ['n="1"']),
    ],
)
def test_from_chooses_the_background(graphs, query, expected):
    engine = graphs(query)
    assert [r[0] for r in rows([*engine.push(event(":a :p :b", 1)), *engine.close()])] == expected


def test_an_update_of_a_from_graph_changes_the_default_graph(graphs):
    b, name = "<http://example.org/b>", "<http://example.org/name>"
    engine = graphs("SELECT ?n FROM :g FROM :h {?x :p ?y . ?y :name ?n}", changes=True)
    engine.update("<http://example.org/g>", add=[(b, name, '"2"'), (b, name, '"3"')], remove=[(b, name, '"1"')])
    engine.update("<http://example.org/h>", remove=[(b, name, '"2"')])  # :g says it still
    found = rows([*engine.push(event(":a :p :b", 1)), *engine.close()])
    assert [r[0] for r in found] == ['n="2"', 'n="3"']
    restored = graphs("SELECT ?n FROM :g FROM :h {?x :p ?y . ?y :name ?n}", changes=True)
    restored.restore(graphs("SELECT ?n FROM :g FROM :h {?x :p ?y . ?y :name ?n}", changes=True).snapshot())
    assert [r[0] for r in rows([*restored.push(event(":a :p :b", 1)), *restored.close()])] == ['n="1"', 'n="2"']


def test_a_graph_that_is_not_loaded_is_an_error(graphs):
    with pytest.raises(QueryError, match=r"no graph <http://example.org/x> is loaded; there are: .*/g>"):
        graphs("SELECT ?n FROM :x {?x :p ?y}")


def test_queries_with_different_datasets_are_refused(graphs):
    with pytest.raises(QueryError, match="different FROM clauses"):
        graphs("SELECT ?n FROM :g {?x :p ?n} SELECT ?n {?x :q ?n}")


def test_named_sources_are_loaded_by_their_iri(tmp_path):
    file = write(tmp_path, "g.ttl", ':b :name "01" .')
    query = compile(PREFIX + "SELECT ?n FROM <urn:g> {?x :p ?y . ?y :name ?n}")
    engine = Engine(query, named={"urn:g": file})
    assert rows([*engine.push(event(":a :p :b", 1)), *engine.close()]) == [('n="01"', 1, 1)]


# --- versions ---------------------------------------------------------------------------------------------------

A, P, NAME = "<http://example.org/a>", "<http://example.org/p>", "<http://example.org/name>"


def test_a_new_version_holds_from_the_next_instant(run):
    engine = run.engine("SELECT ?n {?x :p ?y . ?x :name ?n}", ':a :name "old" .', changes=True)
    found = [*engine.push(event(":a :p 1", 1))]
    engine.update(remove=[(A, NAME, '"old"')], add=[(A, NAME, '"new"')])
    found += [*engine.push(event(":a :p 2", 2)), *engine.close()]
    assert rows(found) == [('n="new"', 2, 2), ('n="old"', 1, 1)]


def test_an_update_ends_the_open_instant(run):
    engine = run.engine("SELECT ?n {?x :p ?y . ?x :name ?n}", ':a :name "old" .', changes=True)
    engine.push(event(":a :p 1", 1))
    engine.update(add=[(A, NAME, '"new"')])
    found = [*engine.push(event(":a :p 2", 1)), *engine.close()]
    assert rows(found) == [('n="old"', 1, 1)]
    assert engine.counters.late == len(engine.dead_letters) == 1


def test_a_pattern_uses_the_version_at_the_end_of_its_solution(run):
    engine = run.engine("SELECT ?n {?x :p ?y . ?x :q ?z . ?x :name ?n}", ':a :name "old" .', changes=True)
    found = [*engine.push(event(":a :p 1", 1))]
    engine.update(remove=[(A, NAME, '"old"')], add=[(A, NAME, '"new"')])
    found += [*engine.push(event(":a :q 2", 2)), *engine.close()]
    assert rows(found) == [('n="new"', 1, 2)]


def test_an_update_alone_fires_nothing(run):
    engine = run.engine("SELECT ?n {?x :p ?y . ?x :name ?n}", ":z :name 0 .", changes=True)
    found = [*engine.push(event(":a :p 1", 1))]
    engine.update(add=[(A, NAME, '"new"')])
    assert rows([*found, *engine.advance(5_000_000), *engine.close()]) == []


def test_a_new_schema_entails_what_comes_after_it(run):
    engine = run.engine("SELECT ?x {?x :p ?y}", ":z :name 0 .", changes=True)
    found = [*engine.push(event(":a :q 1", 1))]
    engine.update(add=[("<http://example.org/q>", f"<{RDFS}subPropertyOf>", P)])
    found += [*engine.push(event(":b :q 1", 2)), *engine.close()]
    assert rows(found) == [("x=b", 2, 2)]


def test_a_snapshot_has_the_version_of_the_knowledge(run):
    query, background = "SELECT ?n {?x :p ?y . ?x :name ?n}", ':a :name "old" .'
    first = run.engine(query, background, changes=True)
    first.update(remove=[(A, NAME, '"old"')], add=[(A, NAME, '"new"')])
    second = run.engine(query, background, changes=True)
    second.restore(first.snapshot())
    assert rows([*second.push(event(":a :p 1", 1)), *second.close()]) == [('n="new"', 1, 1)]


def test_a_snapshot_has_the_schema_too(run):
    query, background = "SELECT ?x {{?x :p ?y} SEQ {?x :p ?z}}", ":z :name 0 ."
    first = run.engine(query, background, changes=True, journal=True)
    second = run.engine(query, background, changes=True)
    third = run.engine(query, background, changes=True)
    third.restore(first.snapshot())
    first.update(add=[("<http://example.org/q>", f"<{RDFS}subPropertyOf>", P)])
    first.push(event(":a :q 1", 1))
    first.advance(1_000_000)
    second.restore(first.snapshot())
    third.apply_journal(first.take_journal())
    for engine in (first, second, third):
        assert rows([*engine.push(event(":a :q 2", 2)), *engine.close()]) == [("x=a", 1, 2)]


def test_a_journal_is_as_large_as_what_changed(run):
    query, background = "SELECT ?n {?x :p ?y . ?x :name ?n}", ':a :name "old" .'
    leader = run.engine(query, background, changes=True, journal=True)
    follower = run.engine(query, background, changes=True, journal=True)
    sizes = []
    for i in range(40):
        leader.update(add=[(f"<http://example.org/x{i:02}>", NAME, '"new"')])
        journal = leader.take_journal()
        sizes.append(len(journal))
        follower.apply_journal(journal)
    assert max(sizes) <= min(sizes) + 8
    leader.update(remove=[("<http://example.org/x07>", NAME, '"new"')])
    follower.apply_journal(leader.take_journal())
    assert leader.knowledge.snapshot() == follower.knowledge.snapshot()
    again = run.engine(query, background, changes=True)
    again.restore(follower.snapshot())
    for engine in (leader, follower, again):
        found = [*engine.push(event(":x06 :p 1 . :x07 :p 1", 1)), *engine.close()]
        assert rows(found) == [('n="new"', 1, 1)]


def test_journals_of_the_background_are_applied_in_order(run):
    query, background = "SELECT ?n {?x :p ?y . ?x :name ?n}", ':a :name "old" .'
    leader = run.engine(query, background, changes=True, journal=True)
    leader.update(add=[(A, NAME, '"new"')])
    first = leader.take_journal()
    leader.update(remove=[(A, NAME, '"new"')])
    follower = run.engine(query, background, changes=True)
    with pytest.raises(SnapshotError, match=r"goes on from version 1 .*this engine has version 0"):
        follower.apply_journal(leader.take_journal())
    follower.apply_journal(first)
    assert follower.knowledge.version == 1
    with pytest.raises(SnapshotError, match="with background knowledge"):
        Engine(compile(PREFIX + query), changes=True).apply_journal(first)


def test_a_journal_survives_rules_that_an_update_replaced(run):
    query, background = "SELECT ?x {{?x :p ?y} SEQ {?x :p ?z}}", ":z :name 0 ."
    leader = run.engine(query, background, changes=True, journal=True)
    follower = run.engine(query, background, changes=True, journal=True)
    leader.push(event(":a :p 1", 1))
    leader.advance(1_000_000)
    leader.update(add=[("<http://example.org/q>", f"<{RDFS}subPropertyOf>", P)])
    leader.push(event(":a :q 1 . :b :q 1", 2))
    leader.advance(2_000_000)
    follower.apply_journal(leader.take_journal())
    told = []
    for engine in (leader, follower):
        told.append(rows([*engine.push(event(":a :q 2 . :b :p 2", 3)), *engine.close()]))
    assert told[0] == told[1]
    assert ("x=b", 2, 3) in told[0]


# --- OWL over streams -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "background", "stream", "expected"),
    [
        ("SELECT ?x ?y {?x :has ?y}", ":in owl:inverseOf :has .", [":a :in :b"], [("x=b y=a", 1, 1)]),
        ("SELECT ?y {:a :near ?y}", ":near a owl:SymmetricProperty .", [":b :near :a"], [("y=b", 1, 1)]),
        ("SELECT ?y {:a :part ?y}", ":part a owl:TransitiveProperty .", [":a :part :b", ":b :part :c"],
         [("y=b", 1, 1), ("y=c", 1, 2)]),
        ("SELECT ?y {:a :part ?y}", ":part a owl:TransitiveProperty . :b :part :c .", [":a :part :b"],
         [("y=b", 1, 1), ("y=c", 1, 1)]),
    ],
)  # fmt: skip
def test_owl_rules_join_streamed_triples(run, query, background, stream, expected):
    owl = "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
    assert run(query, owl + background, *stream, entailment="owlrl") == expected


def test_owl_rules_report_nothing_themselves(run):
    owl = "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
    engine = run.engine("SELECT ?x {?x :has ?y}", owl + ":in owl:inverseOf :has .", entailment="owlrl")
    engine.push(event(":a :in :b", 1))
    assert [m.query for m in engine.close()] == ["q1"]
    assert [output.query for output in engine.rules.outputs] == ["q1", ".owl1", ".owl2"]
    assert [
        output.query
        for output in run.engine(
            "SELECT ?x {?x :p ?y}", owl + ":in owl:inverseOf :has .", entailment="owlrl"
        ).rules.outputs
    ] == ["q1"]
