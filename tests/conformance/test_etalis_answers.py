"""What ETALIS answers to random patterns and streams, put to the engine (the oracle's tests say how it is written).

Under the consuming policies only two-step cases without a filter: ETALIS filters after a pair has been consumed.
"""

from __future__ import annotations

from typing import Any

import pytest
from etalis_compiler import ast
from etalis_compiler.diagnostics import Source
from etalis_compiler.parser import parse
from etalis_compiler.pipeline import compile_documents
from etalis_rules.terms import iri

from etalis_py import Engine, Event, Match
from tests.oracle.test_conformance import (
    PATTERNS,
    QUERIES,
    TWO_STEPS,
    absent,
    group,
    ids,
    node,
    number,
    plain,
    to_group,
)

pytestmark = absent
TWO_STEP_QUERIES = [c for c in QUERIES if "FILTER" not in c["query"] and "seq3" not in c["id"]]
CONSUMING = pytest.mark.parametrize("policy", ["recent", "chronological"])


def matches(document: ast.Document, events: list[Event], policy: str) -> list[Match]:
    engine = Engine(compile_documents([(document, Source("", "<case>"))]), policy=policy, render=lambda t: t)
    return [*engine.push_all(sorted(events, key=lambda e: e.end)), *engine.close()]


def rows(found: list[Match], names: list[str]) -> list[Any]:
    return sorted([[plain(m.bindings[v]) for v in names], m.start, m.end] for m in found)


def pattern_answers(case: dict[str, Any], policy: str) -> list[Any]:
    where = to_group(case["pattern"])
    if case["filter"]:
        operator, left, right = case["filter"]
        where = group(*where.elements, ast.Filter(ast.Binary(operator, node(left), node(right))))
    names = [v[1:] for v in case["select"]]
    query = ast.Query(ast.Select(tuple(ast.Projection(ast.Var(v)) for v in names)), where)
    events = [
        Event._make((s, e, ((number(k), f"<urn:{name}>", number(i)),), "", "")) for name, (k, i), s, e in case["events"]
    ]
    return rows(matches(ast.Document((query,)), events, policy), names)


def query_answers(case: dict[str, Any], policy: str) -> list[Any]:
    document = parse("BASE <urn:> PREFIX : <urn:> " + case["query"])
    events = [Event(t, u, ((iri(f"urn:{s}"), iri(f"urn:{p}"), number(o)),)) for s, p, o, t, u in case["stream"]]
    found = matches(document, events, policy)
    form = document.queries[0].form
    if isinstance(form, ast.Construct):
        made = {(s, o, m.start, m.end) for m in found for s, _, o in m.triples or ()}
        return sorted([[plain(s), plain(o)], a, b] for s, o, a, b in made)
    assert isinstance(form, ast.Select)
    return rows(found, [p.variable.name for p in form.projections])


def test_the_cases_are_found() -> None:
    assert len(PATTERNS) > 100
    assert len(QUERIES) > 20
    assert TWO_STEPS
    assert TWO_STEP_QUERIES


@pytest.mark.parametrize("case", PATTERNS, ids=ids)
def test_patterns_unrestricted(case: dict[str, Any]) -> None:
    assert pattern_answers(case, "unrestricted") == sorted(case["observed"]["unrestricted"])


@CONSUMING
@pytest.mark.parametrize("case", TWO_STEPS, ids=ids)
def test_two_steps_without_a_filter_consume_as_etalis_does(case: dict[str, Any], policy: str) -> None:
    assert pattern_answers(case, policy) == sorted(case["observed"][policy])


@pytest.mark.parametrize("case", QUERIES, ids=ids)
def test_queries_unrestricted(case: dict[str, Any]) -> None:
    assert query_answers(case, "unrestricted") == sorted(case["observed"]["unrestricted"])


@CONSUMING
@pytest.mark.parametrize("case", TWO_STEP_QUERIES, ids=ids)
def test_queries_of_two_steps_consume_as_etalis_does(case: dict[str, Any], policy: str) -> None:
    assert query_answers(case, policy) == sorted(case["observed"][policy])
