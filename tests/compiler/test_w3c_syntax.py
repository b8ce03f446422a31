"""The W3C SPARQL 1.0 and 1.1 query syntax tests, and every query of the evaluation tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from etalis_compiler.parser import QueryError, parse
from etalis_compiler.printer import to_text

SUITE = Path(__file__).parents[3] / "shared" / "conformance" / "w3c-sparql"
pytestmark = pytest.mark.skipif(not SUITE.is_dir(), reason=f"the W3C SPARQL tests are not at {SUITE}")

_ENTRY = re.compile(
    r"rdf:type\s+mf:(PositiveSyntaxTest(?:11)?|NegativeSyntaxTest(?:11)?)\b.*?mf:action\s+<([^>]+)>", re.S
)


def _entries() -> list[tuple[str, Path]]:
    """Kind and query file of each syntax test, read from the manifests."""
    found: list[tuple[str, Path]] = []
    for manifest in sorted(SUITE.rglob("manifest.ttl")):
        for statement in re.split(r"\.\s*\n\s*\n", manifest.read_text(encoding="utf-8")):
            for kind, action in _ENTRY.findall(statement):
                found.append((kind, manifest.parent / action))
    return found


ENTRIES = _entries() if SUITE.is_dir() else []
SYNTAX = {path for _, path in ENTRIES}
OTHERS = sorted(p for p in SUITE.rglob("*.rq") if p not in SYNTAX) if SUITE.is_dir() else []


def _name(path: Path) -> str:
    return path.relative_to(SUITE).as_posix()


def _parse(path: Path) -> object:
    text = path.read_bytes().decode("utf-8")
    return parse(text, source=_name(path), base=f"https://w3c.github.io/rdf-tests/sparql/{_name(path)}")


def _of(kind: str) -> list[object]:
    return [pytest.param(path, id=_name(path)) for found, path in ENTRIES if found.startswith(kind)]


def test_all_of_them_are_found() -> None:
    assert len(_of("Positive")) == 134
    assert len(_of("Negative")) == 7


@pytest.mark.parametrize("path", _of("Positive"))
def test_positive(path: Path) -> None:
    document = _parse(path)
    assert parse(to_text(document)) == document


@pytest.mark.parametrize("path", _of("Negative"))
def test_negative(path: Path) -> None:
    with pytest.raises(QueryError) as caught:
        _parse(path)
    assert caught.value.diagnostics[0].source == _name(path)


@pytest.mark.parametrize("path", [pytest.param(p, id=_name(p)) for p in OTHERS])
def test_queries_of_the_evaluation_tests(path: Path) -> None:
    document = _parse(path)
    assert parse(to_text(document)) == document
