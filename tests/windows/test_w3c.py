"""The W3C SPARQL query evaluation tests over the content of a window: [REQ], all SPARQL 1.1 operators.

The default graph's triples come as one stream item, in a window that is part of the default graph (``FROM STREAM``);
named graphs and what FROM names are stored.  The query is evaluated once, while the window holds the item.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from etalis_compiler import ast
from etalis_compiler.diagnostics import Source
from etalis_compiler.parser import parse
from etalis_rules.terms import XSD

from etalis_py import Engine, Event, Match
from etalis_py.engine.program import program_of
from etalis_py.knowledge import load
from etalis_py.knowledge.loading import read
from tests.conformance import w3c
from tests.windows.small import SECOND

ENTRIES = list(w3c.entries())
STREAM = "<urn:etalis:stream>"
AT = 7

if not ENTRIES:
    pytest.skip(f"the W3C SPARQL tests are not at {w3c.SUITE}", allow_module_level=True)


def triples(path: Path) -> list[w3c.Triple]:
    return [t for found in read(path, base=w3c.url(path)).values() for t in found]


def windowed(query: ast.Query) -> ast.Query:
    """The query with the stream as part of its default graph, evaluated at one time."""
    spec = ast.WindowSpec("tumbling", ast.Duration("duration", "PT10S"))
    at = ast.ReportItem("AT", times=(ast.Term(f'"{AT}"^^<{XSD}integer>'),))
    stream = ast.DatasetClause("stream", ast.Term(STREAM), window=spec)
    where = query.where or ast.Group(())  # DESCRIBE <iri>
    return replace(query, where=where, dataset=(*query.dataset, stream), report=ast.ReportClause((at,)))


def answers(entry: w3c.Entry) -> list[Match]:
    text = entry.query.read_text(encoding="utf-8") + "\n"
    document = parse(text, base=w3c.url(entry.query))
    named = {w3c.url(f): [triples(f)] for f in entry.named}
    for _, file in re.findall(r"(?i)\bFROM\s+(NAMED\s+)?<([^>]*)>", text):
        path = entry.query.parent / file
        named[w3c.url(path)] = [triples(path)]
    program = program_of([(replace(document, queries=tuple(map(windowed, document.queries))), Source(text))])
    knowledge = load([], named=named, entailment="rdf", cache=False)
    engine = Engine(program, background=knowledge, start=0)
    data = tuple(dict.fromkeys(t for path in entry.data for t in triples(path)))
    if data:
        engine.push(Event(5 * SECOND, 5 * SECOND, data, STREAM))
    return [*engine.advance(AT * SECOND), *engine.close()]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_evaluation(entry: w3c.Entry) -> None:
    found, wanted = answers(entry), w3c.expected(entry.result)
    assert {(m.start, m.end) for m in found} <= {(0, AT)}
    if wanted.boolean is not None:
        assert [m.boolean for m in found] == [wanted.boolean]
    elif wanted.graph is not None:
        made = {t for m in found for t in m.triples or ()}
        assert w3c.same_graph(made, wanted.graph)
    else:
        rows = [tuple(sorted(m.bindings.items())) for m in found]
        assert w3c.same_rows(rows, wanted.rows, wanted.ordered, entry.lax)
