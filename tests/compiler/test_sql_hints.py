"""What a query with words of SQL is told: how EP-SPARQL says it."""

from __future__ import annotations

import pytest
from etalis_compiler.diagnostics import Diagnostic, QueryError
from etalis_compiler.parser import parse


def fault(text: str) -> Diagnostic:
    with pytest.raises(QueryError) as caught:
        parse(text)
    return caught.value.diagnostics[0]


ABSENT = "a value that is missing is !BOUND(?x), one that is there BOUND(?x)"


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("?p <> 5", "'not equal' is written '!='"),
        ("?p <>5", "'not equal' is written '!='"),
        ("?p <> ?q", "'not equal' is written '!='"),
        ("?p => 5", "'at least' is written '>='"),
        ("?p =< 5", "'at most' is written '<='"),
        ("?p =<?q", "'at most' is written '<='"),
        ("?p ~ 'x'", 'a regular expression is tested with REGEX(?x, "^a")'),
        ("?p > 5 AND ?p < 7", "inside a condition, AND is written '&&'"),
        ("?p > 5 and ?p < 7", "inside a condition, AND is written '&&'"),
        ("?p > 5 OR ?p < 3", "inside a condition, OR is written '||'"),
        ("NOT ?p > 5", "inside a condition, NOT is written '!': !(?x > 5)"),
        ("?p BETWEEN 5 AND 7", "between two values is ?x >= 5 && ?x <= 7"),
        ("?p NOT BETWEEN 5 AND 7", "between two values is ?x >= 5 && ?x <= 7"),
        ("?p IS NULL", ABSENT),
        ("?p IS NOT NULL", ABSENT),
        ("?p = NULL", ABSENT),
        (
            "?p LIKE 'a%'",
            'texts are compared with STRSTARTS(?x, "a"), CONTAINS(?x, "a"), STRENDS(?x, "a") or REGEX(?x, "^a")',
        ),
        ("?p > 5 ? 1 : 0", "one of two values is IF(?x > 5, 1, 2)"),
        ("?p % 2 = 0", "the remainder of ?x by 2 is ?x - 2 * FLOOR(?x / 2)"),
        ("CASE WHEN ?p > 5 THEN 1 ELSE 2 END", "cases are IF(?x > 5, 1, 2)"),
    ],
)
def test_conditions(condition: str, hint: str) -> None:
    assert fault(f"SELECT * WHERE {{ ?c :p ?p ; :q ?q . FILTER ({condition}) }}").hint == hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT ?c, ?p WHERE { ?c :p ?p }", "selected columns are separated by spaces: SELECT ?c ?p"),
        ("SELECT (COUNT(*) AS ?n), ?c WHERE { ?c :p ?p }", "selected columns are separated by spaces: SELECT ?c ?p"),
        ("SELECT ?c WHERE { EVENT { ?c :p ?x } WHERE ?x > 5 }", "a condition is a filter: FILTER (?x > 5)"),
        ("SELECT ?c WHERE { ?c :p ?x WHERE (?x > 5) }", "a condition is a filter: FILTER (?x > 5)"),
        (
            "SELECT ?c { ?c :p ?x } LIMIT 10 ORDER BY ?c",
            "the order is WHERE, WITHIN, GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET",
        ),
        (
            "SELECT ?c { ?c :p ?x } ORDER BY ?c GROUP BY ?c",
            "the order is WHERE, WITHIN, GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET",
        ),
        ("SELECT ?c { ?c :p ?x } ORDER BY ?c DESC", "the direction stands before: ORDER BY DESC(?c)"),
        ("SELECT ?c { ?c :p ?x } GROUP BY ?c, ?x", "several keys are separated by spaces: GROUP BY ?c ?x"),
        ("SELECT ?c { ?c :p ?x } ORDER BY ?c, ?x", "several keys are separated by spaces: ORDER BY ?c ?x"),
        (
            "SELECT ?c { { EVENT { ?c :p ?x } } JOIN { EVENT { ?c :q ?y } } }",
            "patterns that share a variable are joined: { A } AND { B } in any order, { A } SEQ { B } one after the "
            "other",
        ),
        (
            "SELECT * FROM ticks WHERE price > 10",
            "the pattern stands in braces: WHERE { EVENT { ?thing :price ?x } FILTER (?x > 5) }",
        ),
        (
            "SELECT ?c WHERE ?c :price 10",
            "the pattern stands in braces: WHERE { EVENT { ?thing :price ?x } FILTER (?x > 5) }",
        ),
        ("SELECT (SUM(?x) ?s) WHERE { ?c :p ?x }", "a computed column is written (expression AS ?name)"),
        ("SELECT ?c (SUM(?x)) WHERE { ?c :p ?x }", "a computed column is written (expression AS ?name)"),
        ("SELECT DISTINCT(?c) WHERE { ?c :p ?x }", "DISTINCT takes no parentheses: SELECT DISTINCT ?c"),
        (
            "SELECT (COUNT() AS ?n) WHERE { ?c :p ?x }",
            "rows are counted by COUNT(*), the values of a variable by COUNT(?x)",
        ),
        (
            "SELECT ?c { ?c :p ?x } GROUP BY ?c HAVING COUNT(*) > 2",
            "the condition stands in parentheses: HAVING (COUNT(*) > 5)",
        ),
        (
            "SELECT ?c { ( EVENT { ?c :p ?x } SEQ EVENT { ?c :p ?y } ) WITHIN 5 s }",
            "groups stand in braces: { { … } SEQ { … } } WITHIN 10 s",
        ),
        ("SELECT TOP 5 ?c { ?c :p ?x }", "the first five are LIMIT 5, at the end"),
        ("SELECT ?c { EVENT ( ?c :p ?x ) }", "a pattern stands in braces: EVENT { … }"),
        ("SELECT COUNT(?p) WHERE { ?c :p ?p }", "a computed column is written (expression AS ?name)"),
    ],
)
def test_clauses(text: str, hint: str) -> None:
    assert fault(text).hint == hint


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("?c :p ?x, :q ?y", "after ',' comes another object, after ';' another property; a triple ends with '.'"),
        ("?c :p ?x : q ?y", "a name follows its ':' without a blank: :q"),
        ("?c 'p' ?x", "a property is a name of the vocabulary, as :price, or an IRI"),
    ],
)
def test_properties(pattern: str, hint: str) -> None:
    assert fault(f"SELECT * {{ {pattern} }}").hint == hint


def test_what_is_right_is_not_explained() -> None:
    parse("SELECT * { ?c :p ?p ; :q ?q FILTER (?p NOT IN (1, 2) && ?p != 5 || ?p >= ?q) }")
    parse(
        "SELECT ?c (COUNT(*) AS ?n) { ?c :p ?p } WITHIN 5 s GROUP BY ?c ?p HAVING (?n > 1) ORDER BY DESC(?n) ?c LIMIT 3"
    )
