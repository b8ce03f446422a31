"""What a wrong query is told: place, token, what was expected, a caret, and a hint."""

from __future__ import annotations

import json

import pytest
from etalis_compiler.diagnostics import Diagnostic, QueryError, Source
from etalis_compiler.parser import MAX_DEPTH, MAX_SIZE, parse


def fault(text: str, source: str = "<query>") -> Diagnostic:
    with pytest.raises(QueryError) as caught:
        parse(text, source=source)
    return caught.value.diagnostics[0]


def test_an_error_prints_the_line_and_a_caret() -> None:
    with pytest.raises(QueryError) as caught:
        parse("SELECT ?c\nWHERE { ?c :p ?x }\nSEEQ { ?c :p ?y }", source="drops.rq")
    assert str(caught.value).splitlines()[0].startswith("drops.rq:3:1: error: unexpected 'SEEQ'; expected ")
    assert str(caught.value).splitlines()[1:] == [
        "  3 | SEEQ { ?c :p ?y }",
        "    | ^^^^",
        "  hint: did you mean SEQ?",
    ]


def test_an_error_is_an_object_for_tools() -> None:
    with pytest.raises(QueryError) as caught:
        parse("SELECT ?x { ?x foo:p ?y }")
    assert isinstance(caught.value, ValueError)
    assert json.loads(json.dumps(caught.value.to_dict())) == {
        "diagnostics": [
            {
                "severity": "error",
                "code": "unknown-prefix",
                "message": "the prefix 'foo:' is not declared",
                "hint": "declare it: PREFIX foo: <http://…>",
                "source": "<query>",
                "line": 1,
                "column": 16,
                "end": 21,
                "token": "foo:p",
                "expected": [],
            }
        ]
    }


@pytest.mark.parametrize(
    ("text", "column", "token", "hint"),
    [
        (
            "SELECT ?c { ?c :amount > 5 }",
            24,
            ">",
            "a value is compared in a filter: { ?thing :amount ?value FILTER (?value > …) }",
        ),
        ("SELECT ?c { ?c :p ?x FILTER ?x > 5 }", 29, "?x", "the condition stands in parentheses: FILTER (?x > 5)"),
        ("SELECT ?x WHERE { ?x :p ?y", 27, "", "the '{' of line 1, column 17 is not closed: add '}'"),
        ("SELECT ?x WHERE { ?x :p (?y }", 29, "}", "the '(' of line 1, column 25 must be closed by ')' first"),
        ("SELECT ?x WHERE { ?x :p ?y }}", 29, "}", "no bracket is open here"),
        ("SELECT ?x { ?x :p ?y LIMIT 4", 22, "LIMIT", "the '{' of line 1, column 11 is not closed"),
        ("SELECT ?x { ?x :p ?y FILTER(?y == 3) }", 33, "=", "equality is written with a single '='"),
        ("SELECT ?x WHRE { ?x :p ?y }", 11, "WHRE", "did you mean WHERE?"),
        ("SELCT ?x { ?x :p ?y }", 1, "SELCT", "did you mean SELECT?"),
        ("SELECT ?x { ?x :p ?y } ODER BY ?x", 24, "ODER", "did you mean ORDER?"),
        ("SELECT ?x { ?x :p ?y } GROUP ?x", 30, "?x", ""),
        ("SELECT ?x { ?x :p ?y FILTER(getDurtion() < 3) }", 29, "getDurtion", "did you mean getDURATION?"),
        ("SELECT ?x { ?x :p ?y ?z :q 1 }", 22, "?z", "end the triple before with '.'"),
        ("SELECT x { ?x :p ?y }", 8, "x", "a variable begins with '?' (?x), a name of the vocabulary with ':' (:x)"),
        ("INSERT DATA { :a :b :c }", 1, "INSERT", "SPARQL Update is not supported"),
        ("SELECT ?n AS ?p + 1 { ?a :b ?p }", 21, "{", "a computed column is written (expression AS ?name)"),
        ("PREFIX ex <http://a> SELECT * {}", 8, "ex", "a prefix ends with ':'"),
        ("// two\nSELECT * {}", 1, "/", "a comment begins with '#'"),
        ("SELECT ?x { ?x :p 'abc }", 19, "'", "close it on the same line"),
        ('SELECT ?x { ?x :p """abc }', 19, '"', "close it on the same line"),
        ("SELECT ?x { ?x :p 'a\\qb' }", 19, "'", "a backslash is written"),
        ("SELECT ?x { FILTER (?x & ?y) }", 24, "&", "logical and is written '&&'"),
        ("SELECT ?x { ?x :p ?y SEQ { ?x :q ?y } }", 22, "SEQ", "SEQ stands between groups in braces"),
        (
            "SELECT * FROM NAMED WINDOW :w ON ?s [RANGE 600 STEP 60] { }",
            34,
            "?s",
            "a window is over one stream: ON :stream",
        ),
    ],
)
def test_common_mistakes(text: str, column: int, token: str, hint: str) -> None:
    found = fault(text)
    assert (found.line, found.column, found.token) == (1, column, token)
    assert hint in found.hint
    assert bool(hint) == bool(found.hint)


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("SELECT ?x { STREAM :s [RANGE 10s] { ?x :p ?y } FILTER(SEQ(?e1 ; ?e2)) }", "SEQ"),
        ("SELECT ?x { STREAM :s [RANGE 10s] { ?x :p ?y } FILTER ( SEQ (?e1; !?e2; ?e3)) }", "SEQ"),
        ("SELECT ?x { STREAM :s [RANGE 10s] AS ?e1 { ?x :p ?y } FILTER(SEQ(?e1 ; ?e2)) }", "AS"),
    ],
)
def test_the_sequence_of_cqels_is_told_as_it_is_written_here(text: str, token: str) -> None:
    found = fault(text)
    assert found.token == token
    assert found.hint.startswith("this is CQELS-CEP; here ")
    assert "{ ?x :p ?y } SEQ { ?x :q ?z } WITHIN 10 SECONDS" in found.hint
    parse("SELECT ?x { ?x :p ?y } SEQ { ?x :q ?z } WITHIN 10 SECONDS")


@pytest.mark.parametrize("modifier", ["GROUP BY ?x", "GROUP BY ?x HAVING (COUNT(*) > 1)", "ORDER BY ?x", "LIMIT 3"])
@pytest.mark.parametrize("window", ["PT10S", "10 s", "5 EVENTS"])
def test_a_window_after_a_modifier_is_told_its_place(modifier: str, window: str) -> None:
    found = fault(f"SELECT ?x {{ ?x :p ?y }} {modifier} WITHIN {window}")
    assert found.token == "WITHIN"
    assert found.hint.startswith("WITHIN stands before GROUP BY, ORDER BY and LIMIT: ")
    assert fault(f"SELECT ?x {{ {{ SELECT ?x {{ ?x :p ?y }} {modifier} WITHIN {window} }} }}").hint == found.hint


def test_less_than_without_a_space_reads_as_an_iri() -> None:
    found = fault("SELECT * { ?s ?p ?o FILTER (?a <?b&&?c> ?d) }")
    assert found.token == "<?b&&?c>"
    assert found.hint == "put a space after '<': it reads as the beginning of an IRI"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * { FILTER ( }", ("an expression",)),
        ("SELECT * { ?s }", ("a property (IRI, variable or path)",)),
        ("SELECT * { ?s ?p }", ("a term (variable, IRI, literal, blank node)",)),
        ("SELECT * { ?s ?p ?o } LIMIT x", ("a whole number",)),
        ("", ()),
    ],
)
def test_expectations_are_in_words(text: str, expected: tuple[str, ...]) -> None:
    assert fault(text).expected == expected


def test_nothing_is_no_query() -> None:
    assert fault("# only a comment").message == "the text holds no query"
    assert fault("PREFIX a: <urn:a>").message == "the text holds no query"


def test_limits() -> None:
    deep = "(" * (MAX_DEPTH + 10) + "1 = 1" + ")" * (MAX_DEPTH + 10)
    parse(f"SELECT * {{ FILTER {deep} }}")  # parentheses alone nest nothing
    nested = "{" * (MAX_DEPTH + 10) + "}" * (MAX_DEPTH + 10)
    found = fault(f"SELECT * {nested}")
    assert (found.code, found.message.startswith(f"more than {MAX_DEPTH} groups")) == ("limit", True)
    assert fault("SELECT * { FILTER (" + "+ ".join(["?x "] * 500) + "> 1) }").code == "limit"
    assert fault(" " * (MAX_SIZE + 1)).code == "limit"
    parse("SELECT * { " + "?s ?p ?o . " * 5000 + "}")


def test_long_lines_are_cut_around_the_fault() -> None:
    text = "SELECT * { " + "?s ?p ?o . " * 100 + "& " + "?s ?p ?o . " * 100 + "}"
    with pytest.raises(QueryError) as caught:
        parse(text)
    _, line, caret, _ = str(caught.value).splitlines()
    assert len(line) < 180
    assert line[caret.index("^")] == "&"


def test_tabs_keep_the_caret_in_its_place() -> None:
    source = Source("\tSELECT\t!", "t")
    assert str(source.diagnostic("error", "x", "no", 8, 9)).splitlines()[1:] == [
        "  1 | \tSELECT\t!",
        "    | \t      \t^",
    ]


def test_a_byte_order_mark_is_passed_over() -> None:
    assert parse("\ufeffSELECT * { ?s ?p ?o }").queries == parse("SELECT * { ?s ?p ?o }").queries
    assert fault("\ufeffSELCT * {}").column == 2


def test_lines_end_as_they_end_on_any_system() -> None:
    assert (fault("SELECT *\r\n{ ?s ?p &").line, fault("SELECT *\r\n{ ?s ?p &").column) == (2, 9)


@pytest.mark.parametrize("text", ["SELECT * { ?s ?p '\\uD800' }", "SELECT * { ?s ?p '\\U00110000' }", "\ud800"])
def test_code_points_that_are_no_characters(text: str) -> None:
    assert fault(text).code == "character"


def test_control_characters_are_shown_as_escapes_with_the_caret_in_its_place() -> None:
    source = Source("?x \x1b[31m !", "t")
    assert str(source.diagnostic("error", "x", "no \x1b", 9, 10)).splitlines() == [
        "t:1:10: error: no \\x1b",
        "  1 | ?x \\x1b[31m !",
        "    |             ^",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?d ?n { { ?d :p ?x } REPEAT 3 BY ?d (COUNT(*) AS ?n) }",
        "SELECT ?d ?n { { ?d :p ?x } REPEAT BY ?d GAP 5 MINUTES MAXIMAL }",
    ],
)
def test_how_a_run_is_written_is_told(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert "a run is written { A } REPEAT 2 TO 5 BY ?key" in str(caught.value)


PLAIN = "SELECT ?c WHERE { ?c :p ?x }"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT ?c { ?c :p ?x // a price\n}", "a comment begins with '#'"),
        ("SELECT ?c { ?c :p ?x /* a price */ }", "a comment begins with '#'"),
        ("SELECT ?c { ?c :p ?x -- a price\n}", "a comment begins with '#'"),
        ("SELECT ?c { { ?c :p ?x } -- a price\n SEQ { ?c :q ?y } }", "a comment begins with '#'"),
        (
            "SELECT ?c { ?c <http://example.org/p ?x }",
            "this IRI is not closed: write '>' at its end, <http://example.org/p>",
        ),
        ("SELECT ?c { ?c :p ‘acme’ }", "a text stands between straight quotes, as \"acme\" or 'acme'"),
        ("SELECT ?c { ?c :p “acme” }", "a text stands between straight quotes, as \"acme\" or 'acme'"),
        ("SELECT ?c { ?c :p ?x GROUP BY ?c }", "GROUP stands behind the last '}' of WHERE: WHERE { … } GROUP BY ?key"),
        ("SELECT ?c { ?c :p ?x limit 10 }", "limit stands behind the last '}' of WHERE: WHERE { … } LIMIT 10"),
        ("SELECT ?c { ?c :p ?x GROUP BY ?c", "the '{' of line 1, column 11 is not closed: add '}'"),
        ("SELECT ?c WITHIN 10 s WHERE { ?c :p ?x }", "WITHIN stands behind the pattern: WHERE { … } WITHIN 10 SECONDS"),
        (f"{PLAIN} POLICY recent", "a policy is written USING POLICY recent"),
        (
            "SELECT (STDDEV(?x) AS ?d) { ?c :p ?x }",
            "there is no function STDDEV(); the aggregates are COUNT, SUM, MIN, MAX, AVG, SAMPLE and GROUP_CONCAT",
        ),
        ('SELECT ?c { ?c :p "5"^^integer }', "a datatype has a prefix: ^^xsd:integer"),
        (
            f"@prefix ex: <http://ex/> . {PLAIN}",
            "in a query a prefix is declared without '@' and '.': PREFIX ex: <http://…>",
        ),
        (
            "SELECT ?c { { ?c :p ?x } SEQ NOT { ?c :q ?y } WITHIN 5 }",
            "say which: WITHIN 5 SECONDS, 5 MINUTES or 5 HOURS; an aggregate may also take the last 5 EVENTS, behind "
            "the WHERE clause",
        ),
        ("SELECT ?c { EVENT AS ?e { ?c :p ?x } }", "an event has no name; EVENT ?g { … } binds the name of its graph"),
        (
            "SELECT ?c { ?c :p ?x FILTER (getDURATION() < PT5S) }",
            'in an expression a length of time is a literal: "PT5S"^^xsd:duration',
        ),
        (
            "SELECT ?c { ?c :p ?x FILTER (getDURATION() < 5 s) }",
            'in an expression a length of time is a literal, such as "PT5S"^^xsd:duration',
        ),
        (
            "SELECT ?c { ?c a :Firm, ?c :p ?x }",
            "after ',' comes another object, after ';' another property; a triple ends with '.'",
        ),
        ("rising.rq", "this is the name of a file, which is given without -q: etalis run rising.rq"),
    ],
)
def test_slips_of_a_first_query_are_told_how_it_is_written(text: str, hint: str) -> None:
    assert fault(text).hint == hint
