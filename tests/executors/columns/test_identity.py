"""Which terms of the input are told apart: those that rules compare, and those that are looked up, each once."""

from __future__ import annotations

import pytest
from etalis_compiler.knowledge import KnowledgeSummary

from etalis_py import Engine, compile, event
from etalis_py.executors.columns.identity import OBJECT, SUBJECT, unidentified, unread
from etalis_py.executors.columns.network import network


@pytest.mark.parametrize(
    ("text", "loose"),
    [
        ("SELECT ?x ?y { ?x <urn:p> ?y }", {SUBJECT, OBJECT}),
        ("SELECT ?x ?y { { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } }", {OBJECT}),
        ("SELECT ?x { ?x <urn:p> ?x }", set()),
        ("SELECT DISTINCT ?y { ?x <urn:p> ?y }", {SUBJECT}),
        ('SELECT ?x { ?x <urn:p> ?y FILTER REGEX(?y, "a") }', {SUBJECT}),
        ("SELECT ?x { ?x <urn:p> ?y FILTER (?y > 1) }", {SUBJECT, OBJECT}),
        ("SELECT ?c (COUNT(*) AS ?n) { ?x <urn:p> ?y BIND (?y AS ?c) } GROUP BY ?c", {SUBJECT}),
        ("SELECT (COUNT(DISTINCT ?y) AS ?n) { ?x <urn:p> ?y }", {SUBJECT}),
        ("SELECT (COUNT(?y) AS ?n) { ?x <urn:p> ?y }", {SUBJECT, OBJECT}),
        ("SELECT (MAX(?y) AS ?n) { ?x <urn:p> ?y }", {SUBJECT}),
        ("SELECT ?x ?y { ?x <urn:p> ?y . GRAPH <urn:g> { ?x a <urn:c> } }", {OBJECT}),
        ("SELECT ?x ?w { ?x <urn:p> ?y . GRAPH <urn:g> { ?y <urn:near> ?w } }", {SUBJECT}),
    ],
)
def test_positions_that_need_no_identity(text: str, loose: set[int]) -> None:
    assert unidentified(network(compile(text).rules())) == loose


def test_what_a_schema_entails_is_compared_with_what_is_stated() -> None:
    """One triple may come both ways, and is one then."""
    program = compile("SELECT ?x ?p ?y { ?x ?p ?y }")
    schema = KnowledgeSummary(infers=True, sub_properties={"<urn:p>": frozenset({"<urn:q>"})})
    assert unidentified(network(program.rules())) == {SUBJECT, OBJECT}
    assert unidentified(network(program.rules(schema))) == set()


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("SELECT ?x ?y { ?x <urn:p> ?y }", set()),
        ("SELECT ?x { { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } }", {OBJECT}),
        ("SELECT ?x { { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } FILTER (?y < ?z) }", set()),
        ("SELECT ?x { { ?x <urn:p> 1 } SEQ { ?x <urn:q> ?z } }", set()),
        ("SELECT ?z { { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } }", set()),
    ],
)
@pytest.mark.parametrize("policy", ["unrestricted", "recent"])
def test_positions_that_nothing_reads(text: str, places: set[int], policy: str) -> None:
    net = network(compile(text, policy=policy).rules())
    assert unread(net, unidentified(net)) == places


@pytest.mark.parametrize("policy", ["unrestricted", "recent", "chronological"])
def test_what_nothing_reads_tells_occurrences_of_one_instant_apart(policy: str) -> None:
    """Two objects are two occurrences, and the same one twice is one."""
    text = "SELECT ?x { { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z } }"
    events = [event("<urn:a> <urn:p> 1, 2", 1), event("<urn:a> <urn:p> 2", 1)]
    events += [event("<urn:a> <urn:q> 1", t) for t in (2, 3, 4)]
    expected = [2, 2, 3, 3, 4, 4] if policy == "unrestricted" else [2, 3]
    for executor in ("rows", "columns"):
        engine = Engine(compile(text), policy=policy, executor=executor)
        found = [*engine.push_all(events), *engine.close()]
        assert [m.end for m in found] == expected, executor
