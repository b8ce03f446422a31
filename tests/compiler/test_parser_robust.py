"""No text, however mangled, does anything but parse or raise ``QueryError``, and none takes long."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from etalis_compiler.ast import Document
from etalis_compiler.parser import MAX_DEPTH, QueryError, parse
from etalis_compiler.printer import to_text
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.draws import examples
from tests.work import calls_of, growth

pytestmark = pytest.mark.usefixtures("still_heap")

PAPERS = sorted((Path(__file__).parent / "papers").rglob("*.rq"))
QUERIES = [
    *(p.read_text(encoding="utf-8") for p in PAPERS),
    """PREFIX : <urn:x:> SELECT DISTINCT * FROM <urn:g>
    { VALUES (?a ?b) { (1 UNDEF) } ?s :p*/^:q [ :r (1 2) ] MINUS { ?s a ?t } OPTIONAL { GRAPH ?g { ?s ?p 'x'@en } }
      BIND (IF(?a > 1, ?b, -2.5e3) AS ?c) } ORDER BY DESC(?a) LIMIT 3 VALUES ?z { <a> }""",
    """DESCRIBE ?s { SERVICE <urn:e> {
      SELECT (GROUP_CONCAT(DISTINCT ?x ; SEPARATOR='\\n') AS ?l) { ?s !(:a|^:b) ?x } GROUP BY ?s } }""",
]
PIECES = [
    *sorted({word for query in QUERIES for word in query.split()}),
    *"{}()[].,;*/|^!?+=<>-&@\\\"'#:_",
    *("'''", '"""', "\\u00e9", "\\uD800", "\\U00110000", "\x00", "\ud800", "//", "==", "_:", "a:", "<", "<>"),
    *("@en", "1e9", "P1D", "-1", "1.", "\ufeff", "\u03b1"),
]


def attempt(text: str) -> Document | None:
    """The document, if there is one; the kind of the error and the work are looked at either way.

    A thousand calls for each character, beside what is loaded once, are more than twice what any text here takes; most
    take fifty.  The seconds are for what calls nothing, such as one regular expression that never ends.
    """
    document, told = None, ""

    def parsed() -> None:
        nonlocal document, told
        try:
            document = parse(text)
        except QueryError as error:
            told = str(error)

    started = time.process_time()
    calls = calls_of(parsed)
    assert time.process_time() - started < 30 * max(1.0, len(text) / 10_000)
    assert calls < 200_000 + 1_000 * len(text)
    assert document is not None or told
    return document


@settings(max_examples=examples(2))
@given(st.text())
def test_any_text(text: str) -> None:
    attempt(text)


@settings(max_examples=examples(2))
@given(st.lists(st.sampled_from(PIECES), max_size=40), st.sampled_from(["", " "]))
def test_any_row_of_tokens(pieces: list[str], between: str) -> None:
    attempt(between.join(pieces))


@st.composite
def mangled(draw: st.DrawFn) -> str:
    """A real query in which a few pieces were cut out, doubled, moved or replaced."""
    text = draw(st.sampled_from(QUERIES))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        stop = draw(st.integers(start, min(len(text), start + 30)))
        cut = text[start:stop]
        new = draw(st.sampled_from(["", cut + cut, cut[::-1], *(draw(st.sampled_from(PIECES)),), cut + " "]))
        text = text[:start] + new + text[stop:]
    return text


@settings(max_examples=examples(10 / 3), suppress_health_check=[HealthCheck.too_slow])
@given(mangled())
@example("SELECT * { ?s ?p 'x'@en--a }")
@example("SELECT * { ?s ?p ?o } WITHIN 1e999999999 SECONDS")
def test_mangled_queries(text: str) -> None:
    document = attempt(text)
    if document is not None:
        assert parse(to_text(document)) == document


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000,
        "SELECT * " + "{" * 10_000,
        "SELECT * { FILTER " + "(" * 10_000 + "1" + ")" * 10_000 + " }",
        "SELECT * { FILTER (" + "!(" * 5_000 + "1" + ")" * 5_000 + ") }",
        "SELECT * { FILTER (" + "-" * 10_000 + "1) }",
        "SELECT * { ?s " + "(" * 5_000 + ":p" + ")" * 5_000 + " ?o }",
        "SELECT * { ?s " + "^(" * 5_000 + ":p" + ")" * 5_000 + " ?o }",
        "SELECT * { ?s " + "/".join([":p"] * 5_000) + " ?o }",
        "SELECT * { ?s :p " + "[ :p " * 3_000 + "1" + "]" * 3_000 + " }",
        "SELECT * { ?s :p " + "(" * 5_000 + ")" * 5_000 + " }",
        "SELECT * { ?s :p (" + "1 " * 5_000 + ") }",
        "SELECT * { " + " SEQ ".join(["{}"] * 2_000) + " }",
        "SELECT * { {}" + " WITHIN 1s" * 1_000 + " }",
        "SELECT * { " + "{ SELECT * " * 800 + "{}" + "}" * 800 + " }",
        "SELECT * { " + "OPTIONAL { " * 900 + "}" * 900 + " }",
        "SELECT * { " + "BIND (1 AS ?x) " * 600 + "}",
        "SELECT "
        + " ".join(f"?v{i}" for i in range(1_500))
        + " { "
        + " ".join(f"?w{i} ?p ?o ." for i in range(900))
        + " }",
        "SELECT * { " + "_:a :p 1 . { } " * 600 + "}",
        "SELECT * { ?s ?p '" + "\\n" * 5_000 + "' }",
        'SELECT * { ?s ?p """' + '"" \\" ' * 2_000,
        "SELECT * { ?s ?p " + "'" * 10_000,
        "SELECT * { ?s ?p " + '"""' * 3_333 + " }",
        "SELECT * { ?s ?p <" + "a" * 10_000,
        "<" * 10_000,
        "a." * 5_000,
        "a.b" * 3_000,
        "SELECT * { ?s :a" + "." * 10_000 + " }",
        "SELECT * { ?s " + "a.a." * 2_500 + ":b ?o }",
        ":" * 10_000,
        "_:" * 5_000,
        "#" * 10_000,
        "# \n" * 3_000,
        "\\u0020" * 1_600,
        "\\" * 10_000,
        "?" * 10_000,
        "@" + "a-" * 5_000,
        "1" * 10_000,
        "1." * 5_000,
        "SELECT * { ?s ?p " + "9" * 9_000 + " } LIMIT " + "9" * 900,
        "SELECT * {} WITHIN PT" + "9" * 9_000 + "S",
        "SELECT * {} WITHIN " + "9" * 9_000 + " SECONDS",
        "x" * 10_000,
        "SELECT " + "x" * 10_000,
        "PREFIX a: <urn:a> " * 500,
        "SELECT * {} ;" * 700,
        "SELECT * FROM x [" + "RANGE " * 1_500,
        "insert " * 1_400,
        " ".join(f"_:b{'b' * i}0" for i in range(120)),
    ],
    ids=lambda text: f"{text[:24]}…{len(text)}",
)
def test_texts_made_to_be_slow_or_deep(text: str) -> None:
    document = attempt(text)
    if document is not None:
        assert parse(to_text(document)) == document


NESTED = {
    "groups": lambda n: "{" * n + "}" * n,
    "optionals": lambda n: "OPTIONAL {" * n + "}" * n,
    "sub-selects": lambda n: "{ SELECT * {" * n + "}}" * n,
    "exists": lambda n: "FILTER EXISTS {" * n + "}" * n,
    "sequences": lambda n: " SEQ ".join(["{}"] * n),
    "sequences to the right": lambda n: "{} SEQ {" * n + "}" * n,
    "windows": lambda n: "{}" + " WITHIN 1s" * n,
    "alternatives": lambda n: "FILTER (" + " || ".join(["?x"] * n) + ")",
    "negations": lambda n: "FILTER (" + "!(" * n + "1" + ")" * n + ")",
    "calls": lambda n: "FILTER (" + "STR(" * n + "1" + ")" * n + ")",
    "paths": lambda n: "?s " + "(" * n + ":p" + ")+" * n + " ?o",
    "blank nodes": lambda n: "?s :p " + "[ :p " * n + "1" + "]" * n,
}
CHAINS = ("sequences", "sequences to the right", "alternatives")
"""Those of which stretches are put into groups, so that they may be longer than the limit of depth."""


@pytest.mark.parametrize("kind", NESTED)
def test_the_deepest_tree_can_be_printed_hashed_and_compared(kind: str) -> None:
    """What the parser accepts, everything behind it can walk without running out of stack."""
    accepted = []
    for depth in (MAX_DEPTH, 1000, 2000) if kind in CHAINS else range(1, MAX_DEPTH + 2):
        document = attempt(f"SELECT * {{ {NESTED[kind](depth)} }}")
        if document is None:
            break
        accepted.append(document)
    assert len(accepted) == 3 if kind in CHAINS else len(accepted) <= MAX_DEPTH
    deepest = accepted[-1]
    again = parse(to_text(deepest))
    assert again == deepest
    assert hash(again) == hash(deepest)
    assert repr(deepest)


def test_time_grows_with_the_length_only() -> None:
    """Four times the text takes about four times the work, not sixteen times."""
    group = "{ ?s :p ?o . FILTER (?o > 1 && STRLEN(?s) = 2) } "

    def written(times: int) -> str:
        return "SELECT * { " + group * times + "}"

    assert growth(lambda times: lambda: parse(written(times)), 200) < 6


def test_a_typical_query_takes_few_calls() -> None:
    """Ten thousand take about three milliseconds."""
    text = PAPERS[0].read_text(encoding="utf-8")
    parse(text)
    assert calls_of(lambda: parse(text)) < 10_000
