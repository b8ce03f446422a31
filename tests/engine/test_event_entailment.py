"""EVENT over what OWL makes of an event: the event's triples closed together with the background.

The judge is ``owlrl.lp`` over the whole graph, which the engine does not use for streamed triples.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from etalis_rules.program import Record
from etalis_rules.records import needs_schema
from etalis_rules.terms import OWL, RDF_TYPE
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import Engine, Event, compile, event, run
from etalis_py.events import Triple
from etalis_py.executors.columns import records
from etalis_py.executors.columns.events import Events
from etalis_py.executors.columns.terms import Terms
from etalis_py.knowledge import load
from tests.draws import examples
from tests.knowledge.rdfs_by_definition import DOMAIN, RANGE, SUB_CLASS, SUB_PROPERTY

THINGS = [f"<urn:{n}>" for n in "xyz"]
PROPERTIES = [f"<urn:{n}>" for n in "pqr"]
CLASSES = [f"<urn:{n}>" for n in "CDE"]
SECOND = 1_000_000

property_ = st.sampled_from(PROPERTIES)
class_ = st.sampled_from(CLASSES)
said = st.one_of(
    st.tuples(st.sampled_from(THINGS), property_, st.sampled_from([*THINGS, '"a literal"'])),
    st.tuples(st.sampled_from(THINGS), st.just(RDF_TYPE), class_),
)
axioms = st.one_of(
    st.tuples(property_, st.sampled_from([SUB_PROPERTY, f"<{OWL}inverseOf>", f"<{OWL}equivalentProperty>"]), property_),
    st.tuples(property_, st.sampled_from([DOMAIN, RANGE]), class_),
    st.tuples(
        property_, st.just(RDF_TYPE), st.sampled_from([f"<{OWL}{n}Property>" for n in ("Symmetric", "Transitive")])
    ),
    st.tuples(class_, st.just(SUB_CLASS), class_),
).map(lambda triple: [triple])
restrictions = st.builds(
    lambda c, p, kind, filler: [(c, f"<{OWL}onProperty>", p), (c, f"<{OWL}{kind}>", filler)],
    class_,
    property_,
    st.sampled_from(["someValuesFrom", "allValuesFrom"]),
    class_,
) | st.builds(
    lambda c, p, value: [(c, f"<{OWL}onProperty>", p), (c, f"<{OWL}hasValue>", value)],
    class_,
    property_,
    st.sampled_from(THINGS),
)


def closed(triples: Iterable[Triple], entailment: str = "owlrl") -> set[Triple]:
    return set(load(list(triples), entailment=entailment, cache=False).default)


@pytest.mark.parametrize("executor", ["rows", "columns"])
@settings(max_examples=examples(1 / 8))
@given(
    st.lists(axioms | restrictions, min_size=1, max_size=4).map(lambda parts: [t for part in parts for t in part]),
    st.lists(said, max_size=3, unique=True),
    st.lists(said, min_size=1, max_size=3, unique=True),
)
def test_an_event_has_what_owl_makes_of_its_triples(
    executor: str, schema: list[Triple], known: list[Triple], triples: list[Triple]
) -> None:
    background = load([*schema, *known], entailment="owlrl", cache=False)
    engine = Engine("SELECT ?s ?p ?o { EVENT { ?s ?p ?o } }", background=background, executor=executor)
    answers = [*engine.push_all([Event(SECOND, SECOND, tuple(triples))]), *engine.close()]
    found = [(m.bindings["s"], m.bindings["p"], m.bindings["o"]) for m in answers]
    assert len(found) == len(set(found)), "what one event says is one solution"
    before, after = closed([*schema, *known]), closed([*schema, *known, *triples])
    assert (after - before) | set(triples) <= set(found) <= after


RECORDS = {
    "?s <urn:p> ?o ; <urn:q> ?v": ("<urn:p>", None, "<urn:q>", None),
    "?s a <urn:C> ; <urn:p> ?v": (RDF_TYPE, "<urn:C>", "<urn:p>", None),
    "?s <urn:p> ?o . ?s a ?v": ("<urn:p>", None, RDF_TYPE, None),
}


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("entailment", ["rdfs", "owlrl"])
@settings(max_examples=examples(1 / 8))
@given(
    st.lists(axioms | restrictions, max_size=3).map(lambda parts: [t for part in parts for t in part]),
    st.lists(said, min_size=1, max_size=4, unique=True),
    st.sampled_from(sorted(RECORDS)),
)
def test_a_record_has_what_follows_from_the_triples_of_its_event(
    executor: str, entailment: str, schema: list[Triple], triples: list[Triple], pattern: str
) -> None:
    background = load(schema, entailment=entailment, cache=False)
    engine = Engine(f"SELECT * {{ EVENT {{ {pattern} }} }}", background=background, executor=executor)
    answers = [*engine.push_all([Event(SECOND, SECOND, tuple(triples))]), *engine.close()]
    one, first, other, second = RECORDS[pattern]
    whole = (closed([*schema, *triples], entailment) - closed(schema, entailment)) | set(triples)
    expected = {
        (s, o if first is None else None, v)
        for s, p, o in whole
        for x, q, v in whole
        if (s, p, q) == (x, one, other) and first in (None, o) and second in (None, v)
    }
    assert {(m.bindings["s"], m.bindings.get("o"), m.bindings["v"]) for m in answers} == expected
    assert len(answers) == len(expected)


@pytest.mark.parametrize(
    ("record", "closes"),
    [
        ("?s <urn:p> ?x ; <urn:q> ?y", False),
        ("?s a <urn:D> ; <urn:p> ?x", False),
        ("?s a <urn:C> ; <urn:p> ?x", True),
        ("?s a <urn:E> ; <urn:p> ?x", True),
        ("?s a ?c ; <urn:p> ?x", True),
        ("?s <urn:r> ?x", True),
        ("?s ?p ?x", True),
        ("?s <urn:p>+ ?x", True),
    ],
)
def test_only_records_that_the_schema_touches_need_what_follows(record: str, closes: bool) -> None:
    schema = [("<urn:D>", SUB_CLASS, "<urn:C>"), ("<urn:o>", DOMAIN, "<urn:E>"), ("<urn:q>", SUB_PROPERTY, "<urn:r>")]
    engine = Engine(f"SELECT * {{ EVENT {{ {record} }} }}", background=load(schema, cache=False))
    [node] = [node for _, node in engine.rules.nodes if isinstance(node, Record)]
    assert node.entailed
    assert needs_schema(node) is closes


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_schema_may_come_to_touch_a_record(executor: str) -> None:
    background = load([("<urn:D>", SUB_CLASS, "<urn:C>")], cache=False)
    seen = [event("<urn:s> <urn:q> 1 ; <urn:v> 2", t) for t in (1, 3)]
    updates = [{"time": 2, "add": f"<urn:q> {SUB_PROPERTY} <urn:p> ."}]
    query = "SELECT ?x { EVENT { ?s <urn:p> ?x ; <urn:v> ?v } }"
    found = run(query, seen, background=background, updates=updates, executor=executor)
    assert [(m["x"], m.end) for m in found] == [(1, 3)]


PROBLEMS = [("<http://example.org/Delay>", SUB_CLASS, "<http://example.org/Problem>")]


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("record", ["?s :mins ?x", "?s a :Delay ; :mins ?x", "?s a :Problem ; :mins ?x"])
def test_a_rule_over_records_does_not_feed_itself_because_there_is_a_schema(executor: str, record: str) -> None:
    rule = f"SELECT ?s (AVG(?x) AS ?mean) {{ EVENT {{ {record} }} }} GROUP BY ?s"
    engine = Engine(f"CONSTRUCT {{ ?s :mean ?mean }} WHERE {{ {rule} }}", background=PROBLEMS, executor=executor)
    seen = [event(":t a :Delay ; :mins 10", 1), event(":t a :Delay ; :mins 20", 2)]
    assert [m.end for m in [*engine.push_all(seen), *engine.close()]] == [1, 2]


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_a_record_sees_what_a_rule_derives_through_the_schema(executor: str) -> None:
    program = """
    CONSTRUCT { ?s a :Delay ; :mins ?m } WHERE { EVENT { ?s :late true ; :by ?m } }
    REGISTER QUERY seen AS SELECT ?s ?m { EVENT { ?s a :Problem ; :mins ?m } }
    """
    engine = Engine(program, background=PROBLEMS, executor=executor)
    seen = [event(":t :late true ; :by 5", 1), event(":u a :Delay ; :mins 7", 2)]
    answers = [*engine.push_all(seen), *engine.close()]
    assert [m["m"] for m in answers if m.query == "seen"] == [5, 7]


def test_columns_evaluate_only_events_that_have_the_needed_triples(monkeypatch: pytest.MonkeyPatch) -> None:
    spelled, evaluated = records.spelled, []

    def counted(events: Events, terms: Terms) -> list[Any]:
        evaluated.append(len(events))
        return spelled(events, terms)

    monkeypatch.setattr(records, "spelled", counted)
    engine = Engine("SELECT ?s { EVENT { ?s a :Problem ; :mins ?m } }", background=PROBLEMS, executor="columns")
    seen = [event(f":t a :{'Scan' if t % 10 else 'Delay'} ; :mins {t}", t) for t in range(1000)]
    answers = [*engine.push_all(seen), *engine.close()]
    assert (len(answers), sum(evaluated)) == (100, 100)


PREFIXES = f"@prefix : <http://example.org/> . @prefix owl: <{OWL}> . "
NEAR = f"{PREFIXES} :near a owl:TransitiveProperty ."


def rows_of(
    program: str, events: Iterable[Event], background: str, executor: str = "rows"
) -> list[tuple[str, int, int]]:
    engine = Engine(program, background=load(background, entailment="owlrl", cache=False), executor=executor)
    answers = [*engine.push_all(events), *engine.close()]
    return sorted((f"{m['a']} {m['b']}", m.start, m.end) for m in answers)


@pytest.mark.parametrize("executor", ["rows", "columns"])
def test_what_follows_from_several_events_is_an_event_of_its_own(executor: str) -> None:
    events = [event(":u :near :v", 1), event(":v :near :w", 2)]
    ours = rows_of("SELECT ?a ?b { EVENT { ?a :near ?b } FILTER (?a != ?b) }", events, NEAR, executor)
    name = "http://example.org/".__add__
    pairs = [("u", "v", 1, 1), ("u", "w", 1, 2), ("v", "w", 2, 2)]
    assert ours == [(f"{name(a)} {name(b)}", start, end) for a, b, start, end in pairs]


def test_what_one_event_says_of_two_triples_is_in_it_once() -> None:
    events = [event(":u :near :v . :v :near :w", 1)]
    ours = rows_of("SELECT ?a ?b { EVENT { ?a :near ?b } FILTER (?a = :u && ?b = :w) }", events, NEAR)
    assert ours == [("http://example.org/u http://example.org/w", 1, 1)]


@pytest.mark.parametrize("group", ["{ ?a :holds ?b }", "{ EVENT { ?a :holds ?b } }"])
def test_a_window_holds_what_owl_makes_of_its_events(group: str) -> None:
    program = (
        "REGISTER QUERY held AS SELECT ?a ?b FROM NAMED WINDOW :w ON :s [RANGE PT5S STEP PT5S] "
        f"WHERE {{ WINDOW :w {group} }}"
    )
    events = [event(":u :in :v", 1, stream="<http://example.org/s>")]
    ours = rows_of(program, events, f"{PREFIXES} :in owl:inverseOf :holds .")
    assert ours == [("http://example.org/v http://example.org/u", 0, 5)]


def test_why_not_looks_at_what_owl_makes_of_an_event() -> None:
    program = "SELECT ?a ?b { EVENT { ?a :holds ?b ; :since ?y } }"
    background = load(f"{PREFIXES} :in owl:inverseOf :holds .", entailment="owlrl", cache=False)
    text = str(compile(program).why_not([event(":u :in :v", 1)], background=background))
    assert ":since" in text
    assert "no event has :holds" not in text
