"""Functions named by an IRI: what cannot be evaluated is an error of the query, with its place and the nearest name."""

from __future__ import annotations

import pytest
from etalis_compiler.diagnostics import QueryError
from etalis_compiler.functions import CASTS

from etalis_py import compile
from etalis_py.values.functions import CASTS as EVALUATED

PLACES = (
    "SELECT (CALL AS ?u) { ?s :p ?x }",
    "SELECT ?x { ?s :p ?x FILTER (CALL > 1) }",
    "SELECT ?x { ?s :p ?x BIND (CALL AS ?u) }",
    "SELECT ?x { ?s :p ?x } ORDER BY CALL",
    "SELECT ?u { ?s :p ?x } GROUP BY (CALL AS ?u)",
    "SELECT ?x { ?s :p ?x } GROUP BY ?x HAVING (CALL > 1)",
    "SELECT (SUM(CALL) AS ?u) { ?s :p ?x }",
    "SELECT ?x { ?s :p ?x FILTER EXISTS { ?s :q ?y FILTER (CALL = ?y) } }",
    "SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT1M] { WINDOW :w { ?s :p ?x FILTER (CALL > 1) } }",
)


def refused(text: str) -> str:
    with pytest.raises(QueryError) as caught:
        compile(text)
    (finding,) = caught.value.diagnostics
    return f"{finding.token}: {finding.message}; {finding.hint}"


@pytest.mark.parametrize("place", PLACES)
def test_an_unknown_function_is_an_error_of_the_query(place: str) -> None:
    call = "<http://x.org/f>(?x)"
    assert refused(place.replace("CALL", call)) == (
        f"{call}: there is no function <http://x.org/f>; "
        "the functions with an IRI are the casts of XML Schema, such as xsd:integer(?x)"
    )


@pytest.mark.parametrize("place", PLACES)
def test_the_nearest_function_is_named(place: str) -> None:
    assert refused(place.replace("CALL", "xsd:interger(?x)")).endswith("; did you mean xsd:integer?")


@pytest.mark.parametrize(
    ("call", "given"),
    [
        ("xsd:integer(?x, 1)", "2 arguments"),
        ("xsd:string()", "0 arguments"),
        ("xsd:date(DISTINCT ?x)", "DISTINCT"),
    ],
)
def test_a_cast_takes_one_argument(call: str, given: str) -> None:
    name = call.partition("(")[0]
    wanted = f"{call}: {name} takes one argument, not {given}; write {name}(?x)"
    assert refused(f"SELECT ({call} AS ?u) {{ ?s :p ?x }}") == wanted


def test_the_compiler_knows_the_functions_that_can_be_evaluated() -> None:
    assert EVALUATED.keys() == CASTS
