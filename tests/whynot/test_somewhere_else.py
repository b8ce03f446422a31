"""What is somewhere else than a query looks for it: in another stream or graph, or under another name."""

from __future__ import annotations

from typing import Any

import pytest

from etalis_py import compile, event
from etalis_py.knowledge import load
from etalis_py.whynot import Report
from etalis_py.whynot.report import Node

from .test_why_not import TICKS, P


def notes(report: Report) -> list[str]:
    """The notes on all parts of the plan."""

    def below(node: Node) -> list[str]:
        return [*node.notes, *(note for part in node.parts for note in below(part))]

    return below(report.plan)


RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SUB_CLASS = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"


def iri(name: str) -> str:
    return f"<http://example.org/{name}>"


CLASSES = [(iri("t"), RDF_TYPE, iri("Thermo")), (iri("Hygro"), SUB_CLASS, iri("Sensor"))]


def test_a_predicate_that_occurs_with_another_object() -> None:
    """What else has the object says nothing of whether the predicate occurs."""
    report = compile(P + "SELECT ?x { ?x a :Sensor }").why_not(TICKS, background=[CLASSES])
    assert notes(report) == ["the predicate rdf:type never has the object :Sensor; it has :Thermo (1)"]


def test_a_predicate_that_occurs_with_another_subject() -> None:
    report = compile(P + "SELECT ?x { :initech :price ?x }").why_not(TICKS)
    assert notes(report) == ["the predicate :price never has the subject :initech; it has :acme (2), :globex (2)"]


def test_a_predicate_that_never_occurs() -> None:
    report = compile(P + "SELECT ?x { ?x a :Sensor }").why_not(TICKS, background=[CLASSES[1:]])
    assert notes(report) == ["the predicate rdf:type never occurs; those that do: rdfs:subClassOf (1)"]


def test_a_predicate_that_occurs_but_not_from_a_node_to_itself() -> None:
    report = compile(P + "SELECT ?x { ?x :price ?x }").why_not([*TICKS, event(":acme :prices 1", 7)])
    assert notes(report) == []


@pytest.mark.parametrize("pattern", ["?c :price ?x", "?c :price+ ?x", "?c :price ?x . ?c :price ?y"])
def test_the_stream_that_has_the_events_is_named(pattern: str) -> None:
    events = [e._replace(stream=iri("trades")) for e in TICKS[:3]] + [TICKS[3]._replace(stream=iri("quotes"))]
    report = compile(P + f"SELECT ?c {{ STREAM :news {{ {pattern} }} }}").why_not(events)
    assert notes(report)[0] == "the stream :news has nothing like this; there is something in :trades, :quotes"
    assert all(b.misses[0].because == ("there is something in :trades, :quotes",) for b in report.blames)


def test_events_that_have_no_stream() -> None:
    report = compile(P + "SELECT ?c { STREAM :news { ?c :price ?x } }").why_not(TICKS)
    nowhere = "what there is has no stream, or parts of it are in several"
    assert notes(report) == [f"the stream :news has nothing like this; {nowhere}"]


def test_a_stream_that_a_rule_derives_is_named() -> None:
    rule = "REGISTER STREAM :rises AS CONSTRUCT { ?c :rose ?x } { ?c :price ?x }"
    program = compile([P + rule, P + "REGISTER QUERY :q AS SELECT ?c { STREAM :news { ?c :rose ?x } }"])
    report = program.why_not(TICKS, query=program.compilation.queries[1].name)
    assert notes(report) == ["the stream :news has nothing like this; there is something in :rises"]


@pytest.mark.parametrize("inside", ["?c a ?k", "?c a/:of ?k", ""])
@pytest.mark.parametrize(
    ("named", "there"),
    [
        ({"Firms": [CLASSES]}, "the nearest is :Firms: differs in upper and lower case only"),
        ({"shops": [CLASSES], "depots": [CLASSES]}, "there are :depots, :shops"),
        ({"shops": [CLASSES]}, "there is :shops"),
        ({}, "the background has none: give it one, from TriG or N-Quads, or by named={…}"),
    ],
)
def test_a_graph_that_does_not_exist_is_named(inside: str, named: dict[str, Any], there: str) -> None:
    background = load([CLASSES], named={iri(name): graphs for name, graphs in named.items()})
    program = compile(P + f"SELECT ?c {{ ?c :price ?x GRAPH :firms {{ {inside} }} }}")
    assert f"there is no graph :firms; {there}" in notes(program.why_not(TICKS, background=background))


def test_the_stream_of_a_window_has_another_name() -> None:
    text = P + "SELECT ?c FROM NAMED WINDOW :w ON :{0} [RANGE PT5S] {{ WINDOW :w {{ ?c :price ?x }} }}"
    events = [e._replace(stream=iri("trades")) for e in TICKS]
    empty = "WINDOW :w is over the stream :{0}, which has no events; "
    assert compile(text.format("news")).why_not(events).notes == (empty.format("news") + "they are in :trades.",)
    nearest = empty.format("trade") + "the nearest is :trades: spelt a little differently."
    assert compile(text.format("trade")).why_not(events).notes == (nearest,)
    assert compile(text.format("trades")).why_not(events, where="?c = :initech").notes == ()
    assert compile(text.format("news")).why_not(TICKS, where="?c = :initech").notes == ()  # the only stream is meant


def test_a_graph_beside_a_window_does_not_exist() -> None:
    text = "SELECT ?c FROM NAMED WINDOW :w ON :s [RANGE PT5S] { WINDOW :w { ?c :price ?x } GRAPH :firms { ?c a ?k } }"
    background = load([CLASSES], named={iri("shops"): [CLASSES]})
    report = compile(P + text).why_not(TICKS, background=background)
    assert notes(report) == ["there is no graph :firms; there is :shops"]
