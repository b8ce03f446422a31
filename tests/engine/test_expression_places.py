"""Expressions at every place where one may stand: FILTER, BIND, SELECT, GROUP BY, HAVING, ORDER BY, aggregates, and on
the sides of every operator.

An expression is drawn with every operator and many functions; the engine must answer as the definition does, wherever
it stands.
"""

from __future__ import annotations

from typing import Any

import pytest
from etalis_rules.terms import XSD, literal
from hypothesis import given
from hypothesis import strategies as st

from etalis_py import Event
from tests.engine.judge import agree, run
from tests.oracle.strategies import Case
from tests.oracle.traces import SECOND, queries, short, term

PLACES = {
    "filter": "SELECT ?a ?x {{ ?a :p ?x OPTIONAL {{ ?a :q ?y }} FILTER ({0}) }}",
    "optional": "SELECT ?a ?x ?y {{ ?a :p ?x OPTIONAL {{ ?a :q ?y FILTER ({0}) }} }}",
    "bind": "SELECT ?a ?v {{ ?a :p ?x OPTIONAL {{ ?a :q ?y }} BIND ({0} AS ?v) }}",
    "select": "SELECT ?a ({0} AS ?v) {{ ?a :p ?x OPTIONAL {{ ?a :q ?y }} }}",
    "order": "SELECT ?a {{ ?a :p ?x OPTIONAL {{ ?a :q ?y }} }} ORDER BY ({0}) ?a LIMIT 2",
    "group": "SELECT ?v (COUNT(*) AS ?n) {{ ?a :p ?x OPTIONAL {{ ?a :q ?y }} }} GROUP BY ({0} AS ?v)",
    "having": "SELECT ?a ?x ?y {{ ?a :p ?x OPTIONAL {{ ?a :q ?y }} }} GROUP BY ?a ?x ?y HAVING ({0})",
    "aggregate": "SELECT (COUNT({0}) AS ?n) (MAX({0}) AS ?m) {{ ?a :p ?x OPTIONAL {{ ?a :q ?y }} }}",
    "sequence": "SELECT ?a ?x ?y {{ {{ ?a :p ?x }} SEQ {{ ?a :q ?y }} FILTER ({0}) }}",
    "construct": "CONSTRUCT {{ ?a :v ?v }} {{ ?a :p ?x OPTIONAL {{ ?a :q ?y }} BIND ({0} AS ?v) }}",
    "exists": "SELECT ?a {{ ?a :p ?x FILTER EXISTS {{ ?a :q ?y FILTER ({0}) }} }}",
    "minus": "SELECT ?a ?x {{ ?a :p ?x MINUS {{ ?a :q ?y FILTER ({0}) }} }}",
    "join": "SELECT * {{ {{ ?a :p ?x BIND ({0} AS ?v) }} SEQ {{ ?b :q ?y BIND ({0} AS ?v) }} BIND (?v + 1 AS ?w) }}",
    "equals": "SELECT * {{ {{ ?a :p ?x BIND ({0} AS ?v) }} EQUALS {{ ?a :q ?y BIND ({0} AS ?v) }} FILTER ({0}) }}",
    "next": "SELECT * {{ {{ ?a :p ?x BIND ({0} AS ?v) }} NEXT {{ ?a :q ?y }} FILTER ({0}) }}",
    "union": "SELECT * {{ {{ ?a :p ?x }} UNION {{ ?a :q ?y }} FILTER ({0}) BIND ({0} AS ?v) }}",
    "optionalseq": "SELECT * {{ {{ ?a :q ?y FILTER ({0}) }} OPTIONALSEQ {{ ?a :p ?x BIND ({0} AS ?v) }} }}",
    "equalsoptional": "SELECT * {{ {{ ?a :p ?x BIND ({0} AS ?v) }} EQUALSOPTIONAL {{ ?a :q ?y FILTER ({0}) }} }}",
    "repeat": "SELECT * {{ {{ ?a :p ?x OPTIONAL {{ ?a :q ?y }} }} REPEAT 2 BY ?a WHERE ({0}) AS (SUM(?y) AS ?n) }}",
    "by": "SELECT * {{ {{ ?a :p ?x OPTIONAL {{ ?a :q ?y }} BIND ({0} AS ?v) }} REPEAT 2 BY ?v AS (MIN(?x) AS ?n) }}",
    "subselect": "SELECT * {{ {{ SELECT ?a ({0} AS ?v) {{ ?a :p ?x OPTIONAL {{ ?a :q ?y }} }} }} FILTER (?v > 1) }}",
    "distinct": "SELECT DISTINCT ({0} AS ?v) {{ ?a :p ?x OPTIONAL {{ ?a :q ?y }} }}",
    "sum": "SELECT ?a (SUM({0}) AS ?n) (AVG({0}) AS ?m) {{ ?a :p ?x OPTIONAL {{ ?a :q ?y }} }} GROUP BY ?a",
    "concatenation": "SELECT (GROUP_CONCAT({0}) AS ?n) (SAMPLE({0}) AS ?m) {{ ?a :p ?x OPTIONAL {{ ?a :q ?y }} }}",
    "window": "SELECT (COUNT(DISTINCT {0}) AS ?n) (MIN({0}) AS ?m) {{ ?a :p ?x OPTIONAL {{ ?a :q ?y }} }} WITHIN 2 s",
    "sum of a group": "SELECT ?a {{ ?a :p ?x OPTIONAL {{ ?a :q ?y }} }} GROUP BY ?a HAVING (SUM({0}) > 1)",
    "order of groups": "SELECT ?a {{ ?a :p ?x OPTIONAL {{ ?a :q ?y }} }} GROUP BY ?a ORDER BY DESC(MAX({0})) LIMIT 1",
}
VALUES = (
    *(term(n) for n in ("0", "1", "2", "3", "b")),
    *(literal(text, XSD + "double") for text in ("2.5", "NaN")),
    *(literal(text, XSD + "decimal") for text in ("2.0", "1.50")),
    *(literal(text, XSD + "boolean") for text in ("true", "false")),
    '"z"',
    '"2"',
    '"z"@en',
    literal("z", "urn:t"),
    literal("z", XSD + "integer"),
)
DURATION = XSD + "dayTimeDuration"
MIRRORED = {"=": "=", "!=": "!=", "<": ">"}
_LEAVES = st.sampled_from(("?x", "?y", "1", "2.0", "2.5e0", '"z"', '"z"@en', "true", "<urn:b>", '"z"^^<urn:t>'))
_BINARY = ("<", "<=", ">", ">=", "=", "!=", "+", "-", "*", "/", "&&", "||")
_WRITTEN = (
    "!({0})", "-({0})", "({0}) IN (1, {1})", "({0}) NOT IN ({1}, 2.0)", "IF({0}, {1}, {0})", "COALESCE({0}, {1})",
    "BOUND(?y)", "isNumeric({0})", "isLiteral({0})", "sameTerm({0}, {1})", "xsd:integer({0})", "STR({0})",
)  # fmt: skip


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(st.sampled_from(_BINARY), pairs).map(lambda d: f"({d[1][0]}) {d[0]} ({d[1][1]})"),
        st.tuples(st.sampled_from(_WRITTEN), pairs).map(lambda d: d[0].format(*d[1])),
    )


EXPRESSIONS = st.recursive(_LEAVES, _larger, max_leaves=5)
_TRIPLES = st.tuples(st.sampled_from("abc"), st.sampled_from("pq"), st.sampled_from(VALUES))
_EVENTS = st.lists(st.tuples(st.integers(1, 4), _TRIPLES), min_size=1, max_size=6)


def _case(place: str, expression: str, events: list[Any]) -> Case:
    items = [Event(t * SECOND, t * SECOND, ((term(s), term(p), o),), "") for t, (s, p, o) in sorted(events, key=str)]
    items.sort(key=lambda e: e.end)
    return Case(queries(PLACES[place].format(expression)), items)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("operator", _BINARY)
def test_every_operator_stands_everywhere(place: str, operator: str) -> None:
    events = [(1, ("a", "p", term("1"))), (1, ("b", "p", term("3"))), (2, ("a", "q", term("2")))]
    agree(_case(place, f"?x {operator} 2", events))


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize(
    ("operator", "kept"),
    [
        ("!=", {"1", "b", "z", "PT3S"}),  # another known kind is not equal
        ("=", {"PT2S"}),
        ("<", {"PT3S"}),  # no order between different kinds: an error
    ],
)
def test_the_duration_of_a_solution_differs_from_what_is_no_duration(
    operator: str, kept: set[str], executor: str
) -> None:
    """What is compared is ?x; equality with a literal of an unknown datatype is an error."""
    values = (term("1"), term("b"), '"z"', literal("z", "urn:t"), *(literal(d, DURATION) for d in ("PT2S", "PT3S")))
    events = [Event(t * SECOND, (t + 2) * SECOND, ((term("a"), term("p"), x),)) for t, x in enumerate(values)]
    for text in (f"getDURATION() {operator} ?x", f"?x {MIRRORED[operator]} getDURATION()"):
        case = Case(queries(f"SELECT ?x {{ ?a :p ?x FILTER ({text}) }}"), tuple(events))
        (rows,) = run(case, executor=executor).values()
        assert {short(row.bindings["x"]) for row in rows} == kept
        agree(case, executor=executor)


@given(st.sampled_from(sorted(PLACES)), EXPRESSIONS, _EVENTS, st.sampled_from(["rows", "columns"]))
def test_drawn_expressions_everywhere(place: str, expression: str, events: list[Any], executor: str) -> None:
    agree(_case(place, expression, events), executor=executor)
