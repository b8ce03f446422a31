"""The W3C SPARQL query evaluation tests inside EVENT: over one event, a pattern means what it means over a graph.

The data of a test is one event, and the WHERE clause stands in EVENT.  Left out are tests with named graphs, which
would be background, and the short form of CONSTRUCT, which has no WHERE clause of its own.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from etalis_compiler import ast
from etalis_compiler.parser import parse
from etalis_compiler.printer import to_text

from etalis_py import Engine, Event, Match, compile

from . import w3c
from .test_w3c_evaluation import SMALL, T, is_expected, triples

USES_NO_TRIPLE = {
    "sparql10/expr-builtin/case-insensitive-booleans",
    "sparql10/expr-ops/add-literals",
    "sparql11/aggregates/agg-groupconcat-04",
    "sparql11/aggregates/agg-groupconcat-05",
    "sparql11/aggregates/agg-groupconcat-06",
    "sparql11/aggregates/agg-groupconcat-distinct",
}
"""Their solutions use no triple, so EVENT has none of them."""


def wrapped(entry: w3c.Entry) -> str | None:
    """The query with its pattern in EVENT; None if it reads other graphs, or is a short form."""
    document = parse(entry.query.read_text(encoding="utf-8") + "\n", base=w3c.url(entry.query))
    (query,) = document.queries
    reads_graphs = any(isinstance(node, ast.GraphGroup) for node in ast.walk(query))
    is_short = "CONSTRUCT WHERE" in " ".join(to_text(query).split())
    if entry.named or query.dataset or reads_graphs or query.where is None or is_short:
        return None
    asked = replace(query, where=ast.Group((ast.EventGroup(query.where),)))
    return to_text(replace(document, queries=(asked,)))


QUERIES = {entry.name: (entry, text) for entry in w3c.entries() if (text := wrapped(entry)) is not None}

if not QUERIES:
    pytest.skip(f"the W3C SPARQL tests are not at {w3c.SUITE}", allow_module_level=True)


def answers(name: str) -> list[Match]:
    entry, text = QUERIES[name]
    engine = Engine(compile(text, base=w3c.url(entry.query)), limits=SMALL)
    data = tuple(dict.fromkeys(triple for path in entry.data for triple in triples(path)))
    return [*(engine.push(Event(T, T, data)) if data else ()), *engine.close()]


def test_most_of_the_tests_are_asked() -> None:
    assert len(QUERIES) == 224
    assert QUERIES.keys() >= USES_NO_TRIPLE


@pytest.mark.parametrize("name", QUERIES)
def test_over_one_event_a_pattern_means_what_sparql_says(name: str) -> None:
    if name not in USES_NO_TRIPLE:
        is_expected(QUERIES[name][0], answers(name))
        return
    assert [match for match in answers(name) if match.boolean is not False] == []
