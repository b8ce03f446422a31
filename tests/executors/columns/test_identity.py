"""Which terms of the input are told apart: those that rules compare, and those that are looked up, each once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from etalis_compiler.knowledge import KnowledgeSummary

from etalis_py import Engine, compile, event, run
from etalis_py.executors.columns.identity import OBJECT, SUBJECT, predicates_of, unidentified, unread
from etalis_py.executors.columns.network import network
from etalis_py.executors.columns.occurrences import with_predicates
from etalis_py.kernel.batch import Columns


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


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("SELECT ?x { { ?x <urn:p> ?y } SEQ { ?x <urn:q> 1 } }", {"<urn:p>", "<urn:q>"}),
        ("SELECT ?x { { ?x <urn:p> ?y } UNION { ?x <urn:q> ?y } }", {"<urn:p>", "<urn:q>"}),
        ("SELECT ?x ?p { ?x ?p ?y }", None),
        ("SELECT ?x { { ?x <urn:p> ?y } SEQ { ?x !<urn:q> ?y } }", None),
    ],
)
def test_the_predicates_that_rules_ask_for(text: str, asked: set[str] | None) -> None:
    assert predicates_of(network(compile(text).rules()).nodes) == asked


def test_what_a_schema_may_entail_is_asked_of_every_predicate() -> None:
    schema = KnowledgeSummary(infers=True, sub_properties={"<urn:p>": frozenset({"<urn:q>"})})
    rules = compile("SELECT ?x { ?x <urn:p> ?y }").rules(schema)
    asked = predicates_of(network(rules).nodes)
    assert asked is None or asked == {"<urn:p>", "<urn:q>"}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?s ?a { ?s :c1 ?a FILTER (?a > 90) }",
        "SELECT ?s ?a ?b { { { ?s :c1 ?a } SEQ { ?s :c2 ?b } } WITHIN 5 s FILTER (?b > ?a) }",
        "SELECT ?s ?a { { ?s :c1 ?a FILTER (?a > 80) } SEQ NOT { ?s :c3 ?b } WITHIN 5 s }",
        "SELECT ?s (SUM(?a) AS ?n) { ?s :c1 ?a } WITHIN 5 s GROUP BY ?s",
    ],
)
def test_a_wide_table_gives_the_same_without_what_no_rule_asks_for(query: str) -> None:
    size = 400
    columns = {f"c{c}": [(i * 37 + c * 11) % 101 if (i + c) % 3 else None for i in range(size)] for c in range(20)}
    table = pa.table({"at": [i // 2 for i in range(size)], "s": [f"s{i % 3}" for i in range(size)], **columns})
    engine = Engine(query, executor="columns")
    found = engine.push_all(table, time="at", subject="s") + engine.close()
    rows = [m.id for m in run(query, table, time="at", subject="s", executor="rows")]
    assert [m.id for m in found] == rows
    assert rows


def test_terms_of_predicates_that_no_rule_asks_for_are_not_looked_up() -> None:
    """Of a wide table a query mostly reads few columns, and the terms of all others were looked up."""
    numbers = [f'"{i}"' for i in range(1000)]
    p = pa.array([f"<urn:p{i % 10}>" for i in range(1000)]).dictionary_encode()
    times = np.arange(1000)
    batch = Columns(times, times, pa.array(["<urn:s>"] * 1000), p, pa.array(numbers).dictionary_encode())
    left = with_predicates(batch, {"<urn:p3>", "<urn:other>"})
    assert isinstance(left, Columns)
    assert left.o.dictionary.to_pylist() == numbers[3::10] == left.o.to_pylist()
    assert left.end.tolist() == [*range(3, 1000, 10)]
    assert with_predicates(batch, None) is batch
    assert with_predicates(batch, {f"<urn:p{i}>" for i in range(10)}) is batch
