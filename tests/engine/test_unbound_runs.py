"""REPEAT over elements with a variable that they show and never bind: it is the same, unbound, in all of them."""

from __future__ import annotations

import pytest
from etalis_compiler.parser import parse

from etalis_py import event
from tests.engine.judge import agree
from tests.oracle.strategies import Case

ELEMENT = "{ ?x :p ?y { SELECT ?x ?v { ?x :p ?k } } }"
STREAM = tuple(event(triple, t) for t, triple in enumerate((":a :p 1", ":b :p 2", ":a :p 3", ":a :p 4")))


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT * {{ {ELEMENT} REPEAT 2 BY ?x AS (LAST(?v) AS ?l, FIRST(?y) AS ?f, COUNT(?v) AS ?n) }}",
        f"SELECT * {{ {ELEMENT} REPEAT 2 BY ?v AS (COUNT(*) AS ?n) }}",
        f"SELECT * {{ {{ {ELEMENT} REPEAT 2 BY ?v ?x NOT {{ ?v :q ?z }} AS (COUNT(*) AS ?n) }} SEQ {{ ?x :p ?y }} }}",
        f"SELECT * {{ {ELEMENT} REPEAT 2 BY ?v AS (FIRST(?v) AS ?n) }}",
    ],
)
def test_the_engine_agrees_with_the_definition(query: str) -> None:
    agree(Case(parse(query), STREAM))


def test_a_blank_node_of_a_pattern_does_not_order_what_is_concatenated() -> None:
    query = "SELECT (GROUP_CONCAT(?x) AS ?xs) { ?x :p ?y . ?x :p _:any }"
    agree(Case(parse(query), tuple(event(triple, 0) for triple in (":a :p :a", ":a :p :b", ":b :p :a"))))


def test_a_blank_node_of_an_element_tells_no_solutions_apart() -> None:
    agree(Case(parse("SELECT * { { ?x :p [] } REPEAT 2 BY ?x AS (COUNT(DISTINCT *) AS ?n) }"), STREAM))


@pytest.mark.parametrize("pattern", ["?x :p []", "?x :p [] . ?x :p _:other", "[] :p/^:p ?x", "EVENT { ?x :p [] }"])
def test_different_solutions_differ_in_what_has_a_name(pattern: str) -> None:
    agree(Case(parse(f"SELECT (COUNT(DISTINCT *) AS ?n) {{ {pattern} }}"), STREAM))
    element = f"{{ {pattern} }} REPEAT 1 OR MORE WHERE (COUNT(DISTINCT *) < 2) AS (COUNT(DISTINCT *) AS ?n)"
    agree(Case(parse(f"SELECT ?n {{ {element} }}"), STREAM))
