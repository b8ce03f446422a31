"""Downward compatibility ([EP] §4.2), judged by pyoxigraph.

"Given an RDF graph, we obtain μ as a result of the SPARQL query q if and only if we obtain ⟨μ, t, t⟩ as a solution to
the EP-SPARQL query against the RDF stream" in which all its triples occur at t.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pyoxigraph
import pytest
from etalis_compiler import ast
from etalis_rules.terms import is_literal, literal, parts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etalis_py.events import Event
from tests.draws import examples

from . import Asked, answers, printing
from .drawing import LIKELY, NUMBERS, SUBJECTS, Draw, Palette, Pen
from .strategies import CHAINS, TRIPLES, aggregate_queries, selects
from .traces import PROLOGUE, at, queries, term
from .values import number

PLAIN = Palette(
    pairs=("UNION",), optionals=("OPTIONAL",), minus=True, exists=True, within=False, times=False, predicates=LIKELY
)
PATHS = replace(PLAIN, paths=True, values=False, subselect=False, minus=False, exists=False)
QUICK = settings(max_examples=examples(2 / 5), suppress_health_check=list(HealthCheck))
T = 5_000_000


def rewritten(text: str) -> str:
    """The text without what pyoxigraph decides in its own way.

    Its store reads "01" as 1: another number stands for it.  It takes <= and >= for true of two equal IRIs, for which
    SPARQL §17.3 has no such operator.
    """
    return text.replace('"01"', '"4"').replace(" <= ", " < ").replace(" >= ", " > ")


def canonical(spelling: str) -> str:
    if not is_literal(spelling):
        return spelling
    n = number(spelling)
    return f"number {float(n.value):.9g}" if n else literal(*parts(spelling))


def by_pyoxigraph(text: str, triples: list[tuple[str, str, str]]) -> list | bool:
    store = pyoxigraph.Store()
    data = "\n".join(" ".join(t) + " ." for t in triples)
    store.load(data.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)
    result = store.query(text)
    if isinstance(result, pyoxigraph.QueryBoolean):
        return bool(result)
    assert isinstance(result, pyoxigraph.QuerySolutions)
    names = [v.value for v in result.variables]
    return [tuple(sorted((v, canonical(str(row[v]))) for v in names if row[v] is not None)) for row in result]


def agrees(query: ast.Query, triples: list[tuple[str, str, str]], as_sets: bool = False) -> None:
    text = rewritten(printing.query(query))
    triples = [tuple(rewritten(t) for t in triple) for triple in triples]  # type: ignore[misc]
    expected = by_pyoxigraph(text, triples)
    (found,) = answers(queries(text), [Event(T, T, tuple(triples))]).values()
    if isinstance(found, Asked):
        assert found.value == expected
        return
    assert all((r.start, r.end) in ((T, T), (None, None)) for r in found)
    rows = [tuple(sorted((v, canonical(t)) for v, t in r.bindings.items())) for r in found]  # type: ignore[union-attr]
    assert isinstance(expected, list)
    if query.limit is not None or query.offset:
        assert len(rows) == len(expected)
    elif as_sets:
        assert set(rows) == set(expected)
    else:
        assert Counter(rows) == Counter(expected)


@QUICK
@given(selects(PLAIN), st.lists(TRIPLES, min_size=1, max_size=8))
def test_plain_sparql_over_one_instant(query: ast.Query, triples: list) -> None:
    agrees(query, triples)


@QUICK
@given(selects(PATHS, depth=1), st.lists(CHAINS, min_size=1, max_size=6))
def test_property_paths_over_one_instant(query: ast.Query, triples: list) -> None:
    """As sets: pyoxigraph counts alternatives and negated sets in its own way.

    Every constant occurs in the graph: pyoxigraph gives an absent one no zero-length path, SPARQL §18.4 does.
    """
    present = [(n, "<urn:other>", v) for n in SUBJECTS for v in NUMBERS]
    agrees(replace(query, limit=None, offset=None), [*triples, *present], as_sets=True)


@st.composite
def repeated_paths(draw: Draw[Any]) -> ast.Query:
    """One path that is repeated as a whole, so its pairs are a set, between variables and a constant."""
    pen = Pen(draw, PATHS)
    path = ast.PathRepeat(pen.path(2), pen.pick("*+?"))
    ends = (ast.Term(SUBJECTS[0]), ast.Term(SUBJECTS[0]), ast.Var("x"), ast.Var("y"))
    triple = ast.TriplePattern(pen.pick(ends), path, pen.pick(ends))
    return ast.Query(ast.Select(()), ast.Group((ast.Triples((triple,)),)))


CYCLES = st.sampled_from([(s, LIKELY[0], o) for s in SUBJECTS[:2] for o in SUBJECTS[:2]])


@QUICK
@given(repeated_paths(), st.lists(CYCLES, min_size=2, max_size=6))
def test_repeated_paths_give_each_pair_once(query: ast.Query, triples: list) -> None:
    agrees(query, [*triples, (SUBJECTS[0], "<urn:other>", NUMBERS[0])])


@QUICK
@given(aggregate_queries(replace(PLAIN, exists=False)), st.lists(TRIPLES, min_size=1, max_size=8))
def test_aggregates_over_one_instant(query: ast.Query, triples: list) -> None:
    """Without what the order of a group decides: SAMPLE, GROUP_CONCAT and ties of ORDER BY."""
    free = {"SAMPLE", "GROUP_CONCAT"}
    if any(isinstance(n, ast.Aggregate) and n.name in free for n in ast.walk(query)):
        return
    agrees(replace(query, within=None, order_by=(), limit=None), triples)


EXPRESSIONS = """
1 <= 1.0 | 2 >= 3 | "a" <= "b"
1 + 2 | 1.5 + 1 | 7 / 2 | 1 / 4 | 2 * 3.5 | -(3) | 1 < 2 | 1 = 1.0 | "a" < "b" | "a" = 1 | true = 1 | "a"@en = "a"
!(1 = 2) | (1/0) = 1 || true | (1/0) = 1 && false | (1/0) = 1 && true | COALESCE(1/0, 3) | IF(1 < 2, "y", "n")
1 IN (2, 1.0) | 1 IN (2, 1/0) | 1 NOT IN (2, 3) | 1 IN (1/0, 1) | STR(:a) | STRLEN("abc") | CONCAT("a", "b")
UCASE("abc") | CONTAINS("abc", "b") | REGEX("abc", "^A", "i") | REPLACE("abc", "b", "x") | ABS(-2) | ROUND(2.5)
CEIL(1.2) | FLOOR(-1.2) | xsd:integer("7") | xsd:integer(2.7) | xsd:integer("x") | xsd:decimal(2) | xsd:boolean("1")
xsd:boolean(0) | xsd:double("1e3") + 1 | DATATYPE(1) | LANG("a"@en) | isIRI(:a) | isNumeric("1") | sameTerm(1, 1.0)
xsd:dateTime("2020-01-01T00:00:00Z") + "P1D"^^xsd:dayTimeDuration | YEAR("2020-01-01T00:00:00Z"^^xsd:dateTime)
"2020-01-02T00:00:00Z"^^xsd:dateTime - "2020-01-01T00:00:00Z"^^xsd:dateTime
"PT60M"^^xsd:duration = "PT1H"^^xsd:duration | "P1D"^^xsd:duration < "PT25H"^^xsd:dayTimeDuration
"P31D"^^xsd:duration < "P1M"^^xsd:duration | "x"^^:t = "y"^^:t | "x"^^:t = "x"^^:t | "abc"^^xsd:integer = 1
1e0 / 0 | STRDT("1", xsd:integer) + 1 | IF(1/0, 1, 2) | BOUND(?none) | ?none = 1 || true | SHA1("a") | SUBSTR("abc", 2)
"""


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().replace("\n", " | ").split(" | "))
def test_expressions(expression: str) -> None:
    text = f"SELECT (({expression}) AS ?r) {{ }}"
    expected = by_pyoxigraph(PROLOGUE + text, [])
    (rows,) = answers(queries(text), []).values()
    assert [tuple((v, canonical(t)) for v, t in r.bindings.items()) for r in rows] == expected  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("9223372036854775807 + 1", "9223372036854775808"),
        ("0.1 + 0.2", "0.3"),
        ("1.50 + 0", "1.5"),
        ("1 / 3", "0.3333333333333333333333333333333333"),
        ('IF("abc"^^xsd:integer, 1, 2)', "2"),
        ("COALESCE(:a <= :a, 7)", "7"),
        ("1000000000000.000000000001 * 1000000000000", "1000000000000000000000001"),
        ("xsd:integer(1e23)", "99999999999999991611392"),
        ("xsd:decimal(1.1e0)", "1.100000000000000088817841970012523233890533447265625"),
        ('0.1 * "0.1"^^xsd:float', "1.0000001E-2"),
        ('"P1M"^^xsd:yearMonthDuration / 3', "P0M"),
        ('"P1M"^^xsd:yearMonthDuration * 13', "P1Y1M"),
        ('"P1Y"^^xsd:yearMonthDuration / "-P4M"^^xsd:yearMonthDuration', "-3"),
        ('COALESCE(STR(<<( :a :p :b )>>), "none")', "none"),
    ],
)
def test_numbers_are_exact_where_pyoxigraph_is_not(expression: str, value: str) -> None:
    (rows,) = answers(queries(f"SELECT (({expression}) AS ?r) {{ }}"), []).values()
    assert [parts(r.bindings["r"])[0] for r in rows] == [value]  # type: ignore[union-attr]


def test_spellings_are_kept() -> None:
    (rows,) = answers(queries("SELECT ?y { ?x :p ?y FILTER(?y = 1) }"), [at(1, "a p 01 ; a p 1")]).values()
    assert [r.bindings["y"] for r in rows] == [term("01"), term("1")]  # type: ignore[union-attr]
