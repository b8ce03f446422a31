"""SPARQL 1.1 to the letter where it is easily missed: open-world comparison, BASE in IRI(), BNODE, UUID."""

from __future__ import annotations

import pytest
from etalis_rules.terms import XSD, literal

from etalis_py import compile, event, run
from etalis_py.values import SparqlError, decode, eq, ne
from tests.oracle import functions as oracle
from tests.oracle.values import ExpressionError

# The values of the W3C's open-world tests (open-eq-07 to -12).
OPEN = {
    "plain": '"xyz"',
    "en": '"xyz"@en',
    "ill-typed": literal("xyz", XSD + "integer"),
    "unknown": literal("xyz", "http://example/unknown"),
    "blank": "_:xyz",
    "iri": "<http://example/xyz>",
}
UNEQUAL = {(a, b) for a in ("blank", "iri") for b in OPEN} | {("en", b) for b in OPEN}
UNEQUAL |= {(b, a) for a, b in UNEQUAL}


@pytest.mark.parametrize("left", OPEN)
@pytest.mark.parametrize("right", OPEN)
def test_what_is_not_known_may_be_anything_but_a_string_with_a_language(left: str, right: str) -> None:
    a, b = OPEN[left], OPEN[right]
    if left == right:
        assert eq(decode(a), decode(b))
    elif (left, right) in UNEQUAL:
        assert ne(decode(a), decode(b))
        assert not oracle.equal(a, b)
    else:
        with pytest.raises(SparqlError):
            ne(decode(a), decode(b))
        with pytest.raises(ExpressionError):
            oracle.equal(a, b)


def rows(query: str, triples: str = ":a :p 1 . :b :p 2") -> list[dict[str, str]]:
    return [m.bindings for m in run(compile(query), [event(triples, 1)])]


@pytest.mark.parametrize("place", ["(IRI('x') AS ?i) { ?s :p 1 }", "?i { ?s :p 1 BIND (URI('x') AS ?i) }"])
@pytest.mark.parametrize(
    ("base", "iri"), [("BASE <http://b.org/c/d>", "<http://b.org/c/x>"), ("", "<http://example.org/x>")]
)
def test_iri_resolves_against_the_base_as_the_query_does(base: str, iri: str, place: str) -> None:
    assert rows(f"{base} PREFIX : <http://example.org/> SELECT {place}") == [{"i": iri}]


def test_each_query_has_the_base_before_it() -> None:
    text = "BASE <http://a/> SELECT (IRI('x') AS ?i) { ?s <http://example.org/p> 1 } ;"
    text += "BASE <http://b/> SELECT (IRI('x') AS ?i) { ?s <http://example.org/p> 1 }"
    assert {r["i"] for r in rows(text)} == {"<http://a/x>", "<http://b/x>"}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT (BNODE('a') AS ?u) (BNODE('a') AS ?v) (BNODE('b') AS ?w) { ?s :p ?x }",
        "SELECT ?u ?v ?w { ?s :p ?x BIND (BNODE('a') AS ?u) BIND (BNODE('a') AS ?v) BIND (BNODE('b') AS ?w) }",
        "SELECT (BNODE('a') AS ?u) ?v (BNODE('b') AS ?w) { ?s :p ?x FILTER (?x > 0) BIND (BNODE('a') AS ?v) }",
    ],
)
def test_one_name_is_one_blank_node_in_a_solution_and_another_in_the_next(query: str) -> None:
    first, second = rows(query)
    for row in (first, second):
        assert row["u"] == row["v"] != row["w"]
    assert first["u"] != second["u"]


@pytest.mark.parametrize("call", ["RAND()", "UUID()", "STRUUID()", "BNODE()"])
def test_every_row_and_every_call_draws_anew(call: str) -> None:
    """Even of a column that the plan does not carry: two rows at one instant differ."""
    drawn = [term for row in rows(f"SELECT ({call} AS ?u) ({call} AS ?v) {{ ?s :p ?x }}") for term in row.values()]
    assert len(set(drawn)) == 4


@pytest.mark.parametrize("clauses", ["WHERE (RAND() < 1) AS (COUNT(*) AS ?n)", "AS (COUNT(RAND()) AS ?n)"])
def test_a_repeat_draws_too(clauses: str) -> None:
    stream = [event(f":a :p {n}", n) for n in (1, 2, 3)]
    found = [m.bindings["n"] for m in run(f"SELECT ?n {{ {{ ?s :p ?x }} REPEAT 2 OR MORE BY ?s {clauses} }}", stream)]
    assert sorted(found) == [literal(str(n), XSD + "integer") for n in (2, 2, 3)]


def test_what_a_repeat_draws_is_drawn_again_in_a_replay() -> None:
    query = "SELECT ?v { { ?s :p ?x } REPEAT 2 BY ?s WHERE (RAND() < 0.5) AS (SUM(RAND()) AS ?v) }"
    stream = [event(f":a :p {n}", n) for n in range(1, 40)]
    first, second = ([m.bindings["v"] for m in run(query, stream)] for _ in range(2))
    assert first == second
    assert 0 < len(first) < 38
    assert len(set(first)) == len(first)


@pytest.mark.parametrize("path", ["((:p)*)*", ":p*"])
def test_a_constant_on_a_cycle_is_reached_once(path: str) -> None:
    """The W3C's pp37: without a step, and so without a time (SPARQL 1.1 §18.4, ALP)."""
    stream = [event(":a :p :b , :c . :b :p :a , :c . :c :p :a , :b", 1)]
    found = sorted((m.bindings["y"], m.end is None) for m in run(f"SELECT ?y {{ :a {path} ?y }}", stream))
    assert found == [(f"<http://example.org/{n}>", n == "a") for n in "abc"]
    (only,) = run(f"SELECT * {{ :a {path} :a }}", stream)
    assert only.end is None
