"""Deep and large queries either run or are refused as a ``QueryError`` that names the limit, never a raw error.

Each shape is written once for any size, and drawn at sizes up to and beyond the limits.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etalis_py import QueryError, compile, event, run
from tests.draws import examples

pytestmark = pytest.mark.usefixtures("still_heap")

Shape = Callable[[int], str]
EVENTS = [event(":a :p 1 ; :p0 1 ; :q 2", 1), event(":a :q 3", 2)]


def listed(count: int, part: str, between: str = " ") -> str:
    return between.join(part.replace("#", str(i)) for i in range(count))


SHAPES: dict[str, Shape] = {
    "additions": lambda n: "SELECT * { ?a :p ?x FILTER (?x" + " + 1" * n + " > 0) }",
    "alternatives": lambda n: "SELECT * { ?a :p ?x FILTER (?x = 1" + " || ?x = 1" * n + ") }",
    "conjunctions": lambda n: "SELECT * { ?a :p ?x FILTER (?x = 1" + " && ?x = 1" * n + ") }",
    "nested alternatives": lambda n: "SELECT * { ?a :p ?x FILTER " + "(?x = 2 || " * n + "?x = 1" + ")" * n + " }",
    "negations": lambda n: "SELECT * { ?a :p ?x FILTER " + "(!" * n + "(?x = 1)" + ")" * n + " }",
    "conditionals": lambda n: "SELECT (" + "IF(?x = 2, 0, " * n + "1" + ")" * n + " AS ?v) { ?a :p ?x }",
    "coalesced": lambda n: "SELECT (" + "COALESCE(?u, " * n + "1" + ")" * n + " AS ?v) { ?a :p ?x }",
    "listed": lambda n: f"SELECT * {{ ?a :p ?x FILTER (?x IN ({listed(n, '#', ', ')})) }}",
    "concatenated": lambda n: f"SELECT (CONCAT({listed(n, 'STR(#)', ', ')}) AS ?v) {{ ?a :p ?x }}",
    "binds": lambda n: f"SELECT * {{ ?a :p ?x {listed(n, 'BIND (?x + # AS ?y#)')} }}",
    "optionals": lambda n: f"SELECT * {{ ?a :p ?x {listed(n, 'OPTIONAL { ?a :p# ?y# }')} }}",
    "minuses": lambda n: f"SELECT * {{ ?a :p ?x {listed(n, 'MINUS { ?a :q# ?x }')} }}",
    "existence": lambda n: f"SELECT * {{ ?a :p ?x {listed(n, 'FILTER EXISTS { ?a :q# ?y }')} }}",
    "rules": lambda n: listed(n, "CONSTRUCT { ?a :r# ?x } WHERE { ?a :p# ?x }", " ; "),
    "filters": lambda n: f"SELECT * {{ ?a :p ?x {listed(n, 'FILTER (?x != #)')} }}",
    "triples": lambda n: f"SELECT * {{ {listed(n, '?a :p# ?x# .')} }}",
    "groups": lambda n: f"SELECT * {{ {listed(n, '{ ?a :p# ?x# }')} }}",
    "unions": lambda n: f"SELECT * {{ {listed(n, '{ ?a :p# ?x }', ' UNION ')} }}",
    "sequences": lambda n: f"SELECT * {{ {listed(n, '{ ?a :p# ?x# }', ' SEQ ')} }}",
    "path of alternatives": lambda n: f"SELECT * {{ ?a {listed(n, ':p#', '|')} ?x }}",
    "path of steps": lambda n: f"SELECT * {{ ?a {listed(n, ':p#', '/')} ?x }}",
    "path of choices": lambda n: f"SELECT * {{ ?a {listed(n, '(:p|:q)', '/')} ?x }}",
    "path both ways": lambda n: f"SELECT * {{ ?a {listed(n, '!(:p|^:q)', '/')} ?x }}",
    "repeated alternatives": lambda n: f"SELECT * {{ ?a ({listed(n, ':p#', '|')})* ?x }}",
    "repeated steps": lambda n: f"SELECT * {{ ?a ({listed(n, ':p#', '/')})+ ?x }}",
    "nested groups": lambda n: "SELECT * " + "{" * n + " ?a :p ?x " + "}" * n,
    "nested optionals": lambda n: "SELECT * { ?a :p ?x " + "OPTIONAL { ?a :q ?y " * n + "}" * n + " }",
    "digits": lambda n: f"SELECT * {{ ?a :p ?x FILTER (?x < {'1' * n}) }}",
    "digits of a product": lambda n: f"SELECT (?x * {'1' * n} AS ?y) {{ ?a :p ?x }}",
    "digits of a decimal": lambda n: f"SELECT (?x * 1.{'1' * n} AS ?y) {{ ?a :p ?x }}",
    "digits of a year": lambda n: f'SELECT * {{ ?a :p ?x FILTER (?x != "{"1" * n}-01-01"^^xsd:date) }}',
    "digits of a duration": lambda n: f'SELECT * {{ ?a :p ?x FILTER (?x != "P{"1" * n}D"^^xsd:duration) }}',
    "digits of a window": lambda n: f"SELECT * {{ {{ ?a :p ?x }} WITHIN {'1' * n} DAYS }}",
    "digits of a slice": lambda n: f"SELECT * {{ ?a :p ?x }} LIMIT {'1' * n}",
}
LINES = tuple(s for s in SHAPES if "digits" not in s)


def outcome(text: str) -> str:
    """``ran``, or the code of the error; anything but a ``QueryError`` fails the test."""
    try:
        for _ in run(compile(text), EVENTS):
            pass
    except QueryError as error:
        return error.diagnostics[0].code
    return "ran"


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ("additions", 120),
        ("alternatives", 1_000),
        ("unions", 1_000),
        ("sequences", 300),
        ("conjunctions", 120),
        ("nested alternatives", 60),
        ("negations", 60),
        ("conditionals", 60),
        ("coalesced", 60),
        ("listed", 1_000),
        ("concatenated", 1_000),
        ("binds", 120),
        ("optionals", 60),
        ("minuses", 60),
        ("existence", 60),
        ("rules", 400),
        ("filters", 200),
        ("triples", 60),
        ("path of alternatives", 120),
        ("path of steps", 60),
        ("path of choices", 8),
        ("repeated alternatives", 60),
        ("digits", 5_000),
        ("digits of a product", 5_000),
        ("digits of a decimal", 5_000),
        ("digits of a year", 5_000),
        ("digits of a duration", 5_000),
    ],
)
def test_what_is_large_runs(shape: str, size: int) -> None:
    assert outcome(SHAPES[shape](size)) == "ran"


@pytest.mark.parametrize(
    ("shape", "size", "code"),
    [
        ("additions", 1_000, "limit"),
        ("conditionals", 1_000, "limit"),
        ("binds", 1_000, "limit"),
        ("optionals", 1_000, "limit"),
        ("minuses", 1_000, "limit"),
        ("groups", 1_000, "limit"),
        ("existence", 1_000, "limit"),
        ("nested groups", 1_000, "limit"),
        ("path of alternatives", 1_000, "path-alternatives"),
        ("path of choices", 30, "path-alternatives"),
        ("path of choices", 10_000, "path-alternatives"),
        ("path both ways", 30, "path-alternatives"),
        ("digits of a window", 5_000, "duration"),
        ("digits of a slice", 5_000, "limit"),
    ],
)
def test_what_is_too_large_is_refused_at_once(shape: str, size: int, code: str) -> None:
    began = process_time()
    assert outcome(SHAPES[shape](size)) == code
    assert process_time() - began < 10


@given(st.sampled_from(LINES), st.integers(1, 150), st.sampled_from(("", "WINDOW")))
@settings(max_examples=examples(4 / 15))
def test_drawn_sizes_run_or_are_refused(shape: str, size: int, kind: str) -> None:
    text = SHAPES[shape](min(size, 40) if "triples" in shape or "steps" in shape or "optionals" in shape else size)
    if kind:
        head, _, rest = text.partition("{")
        text = f"{head} FROM NAMED WINDOW :w ON :s [RANGE PT1M] {{ WINDOW :w {{ {rest} }}"
    outcome(text)


def test_the_limit_is_named_with_its_place() -> None:
    with pytest.raises(QueryError) as caught:
        compile(SHAPES["binds"](1_000))
    (finding,) = caught.value.diagnostics
    assert finding.token == "BIND (?x + 200 AS ?y200)"
    assert finding.message.startswith("the group has 1000 parts")
    assert "200 are possible" in finding.message
