"""The queries of CSRBench and those that were put to ETALIS itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from etalis_compiler.parser import parse
from etalis_compiler.printer import to_text

CONFORMANCE = Path(__file__).parents[3] / "shared" / "conformance"
CSRBENCH = CONFORMANCE / "csrbench" / "queries"
ORACLE = CONFORMANCE / "etalis-oracle" / "epsparql-queries.json"


def _same_again(text: str) -> None:
    document = parse(text)
    assert document.warnings == ()
    assert parse(to_text(document)) == document


@pytest.mark.skipif(not CSRBENCH.is_dir(), reason=f"CSRBench is not at {CSRBENCH}")
@pytest.mark.parametrize("query", ["q1", "q2", "q5"])
@pytest.mark.parametrize(
    ("ending", "dialect", "registered"),
    [(".rq", "", None), (".aligned-csparql.txt", "c-sparql", "QUERY"), (".aligned-rspql.txt", "rsp-ql", "STREAM")],
)
def test_csrbench(query: str, ending: str, dialect: str, registered: str | None) -> None:
    text = (CSRBENCH / (query + ending)).read_text(encoding="utf-8")
    _same_again(text)
    (found,) = parse(text).queries
    assert found.dialect == dialect
    assert (found.register.kind if found.register else None) == registered


@pytest.mark.skipif(not ORACLE.is_file(), reason=f"the answers of ETALIS are not at {ORACLE}")
def test_queries_put_to_etalis() -> None:
    queries = {case["query"] for case in json.loads(ORACLE.read_text(encoding="utf-8"))}
    assert len(queries) == 8
    for query in queries:
        _same_again(query)
