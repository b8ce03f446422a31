"""The W3C SPARQL query evaluation tests: their manifests, their expected results, and what counts as equal.

Two results are equal when they are the same up to a renaming of blank nodes (solutions as multisets, graphs as sets),
in order only where the expected result says so (``rs:index``), numeric literals of one datatype by value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyoxigraph
from etalis_rules.terms import XSD, is_blank, is_literal, literal, parts

SUITE = Path(__file__).parents[3] / "shared" / "conformance" / "w3c-sparql"
BASE = "https://w3c.github.io/rdf-tests/sparql/"
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

Triple = tuple[str, str, str]
Row = tuple[tuple[str, str], ...]
_FORMATS = {".ttl": pyoxigraph.RdfFormat.TURTLE, ".rdf": pyoxigraph.RdfFormat.RDF_XML}
_RESULTS = {".srx": pyoxigraph.QueryResultsFormat.XML, ".srj": pyoxigraph.QueryResultsFormat.JSON}


@dataclass(frozen=True, slots=True)
class Entry:
    """One test: the query, the default graph's documents, the named graphs, and the expected result."""

    name: str
    query: Path
    data: tuple[Path, ...]
    named: tuple[Path, ...]
    result: Path
    lax: bool


@dataclass(frozen=True, slots=True)
class Expected:
    """A boolean, the triples of a graph, or rows; ``ordered`` when their order counts."""

    boolean: bool | None = None
    graph: frozenset[Triple] | None = None
    rows: tuple[Row, ...] = ()
    ordered: bool = False


def url(path: Path) -> str:
    """The address that a file of the suite has upstream."""
    return BASE + path.relative_to(SUITE).as_posix()


def spelling(term: object) -> str:
    """A term of pyoxigraph in its canonical spelling."""
    if isinstance(term, pyoxigraph.Literal):
        return literal(term.value, term.datatype.value if not term.language else "", term.language or "")
    return str(term)


class _Graph:
    """A parsed document, asked by subject and predicate."""

    def __init__(self, path: Path) -> None:
        self.triples = list(triples_of(path))

    def objects(self, subject: str, predicate: str) -> list[str]:
        return [o for s, p, o in self.triples if s == subject and p == f"<{predicate}>"]

    def one(self, subject: str, predicate: str) -> str:
        found = self.objects(subject, predicate)
        return found[0] if found else ""

    def subjects(self, predicate: str, value: str) -> list[str]:
        return [s for s, p, o in self.triples if p == f"<{predicate}>" and o == f"<{value}>"]


def triples_of(path: Path) -> Iterator[Triple]:
    for quad in pyoxigraph.parse(path.read_bytes(), _FORMATS[path.suffix], base_iri=url(path)):
        yield spelling(quad.subject), spelling(quad.predicate), spelling(quad.object)


def entries() -> Iterator[Entry]:
    """Every evaluation test, in the order of the manifests' names; none where the suite is absent."""
    for manifest in sorted(SUITE.rglob("manifest.ttl")):
        graph = _Graph(manifest)
        for test in graph.subjects(RDF + "type", MF + "QueryEvaluationTest"):
            (action,) = graph.objects(test, MF + "action")
            yield Entry(
                f"{manifest.parent.relative_to(SUITE).as_posix()}/{test[1:-1].rsplit('#', 1)[1]}",
                _file(graph.one(action, QT + "query")),
                tuple(map(_file, graph.objects(action, QT + "data"))),
                tuple(map(_file, graph.objects(action, QT + "graphData"))),
                _file(graph.one(test, MF + "result")),
                bool(graph.objects(test, MF + "resultCardinality")),
            )


def _file(address: str) -> Path:
    return SUITE / address[1:-1].removeprefix(BASE)


# --- expected results ------------------------------------------------------------------------------------------


def expected(path: Path) -> Expected:
    """What a result file says: SPARQL's XML or JSON, or RDF that is a result set or the graph itself."""
    if path.suffix in _RESULTS:
        found = pyoxigraph.parse_query_results(path.read_bytes(), _RESULTS[path.suffix])
        if isinstance(found, pyoxigraph.QueryBoolean):
            return Expected(boolean=bool(found))
        names = [v.value for v in found.variables]
        return Expected(rows=tuple(_row((n, r[n]) for n in names) for r in found))
    graph = _Graph(path)
    if not graph.subjects(RDF + "type", RS + "ResultSet"):
        return Expected(graph=frozenset(graph.triples))
    (root,) = graph.subjects(RDF + "type", RS + "ResultSet")
    if graph.objects(root, RS + "boolean"):
        return Expected(boolean=parts(graph.one(root, RS + "boolean"))[0] == "true")
    solutions = graph.objects(root, RS + "solution")
    ordered = bool(solutions) and all(graph.objects(s, RS + "index") for s in solutions)
    if ordered:
        solutions.sort(key=lambda s: int(parts(graph.one(s, RS + "index"))[0]))
    return Expected(rows=tuple(_solution(graph, s) for s in solutions), ordered=ordered)


def _solution(graph: _Graph, node: str) -> Row:
    pairs = [
        (parts(graph.one(b, RS + "variable"))[0], graph.one(b, RS + "value"))
        for b in graph.objects(node, RS + "binding")
    ]
    return tuple(sorted(pairs))


def _row(pairs: Iterable[tuple[str, object]]) -> Row:
    return tuple(sorted((name, spelling(term)) for name, term in pairs if term is not None))


# --- equality --------------------------------------------------------------------------------------------------


def by_value(term: str) -> str:
    """A numeric literal by its value and datatype; any other term as it is."""
    if not is_literal(term):
        return term
    lexical, datatype, _ = parts(term)
    try:
        match datatype.removeprefix(XSD):
            case "integer" | "decimal":
                return f'"{Decimal(lexical).normalize():f}"^^<{datatype}>'
            case "double" | "float":
                return f'"{float(lexical)!r}"^^<{datatype}>'
    except (ValueError, ArithmeticError):
        return term
    return term


def same_rows(actual: Iterable[Row], wanted: Iterable[Row], ordered: bool, lax: bool = False) -> bool:
    """The same solutions; ``lax``: duplicates may be left out, all or some (REDUCED)."""
    mine, theirs = ([tuple((n, by_value(t)) for n, t in row) for row in rows] for rows in (actual, wanted))
    if lax:
        return set(mine) == set(theirs) and len(set(theirs)) <= len(mine) <= len(theirs)
    if ordered:
        mine = [(("index", f'"{i}"'), *row) for i, row in enumerate(mine)]
        theirs = [(("index", f'"{i}"'), *row) for i, row in enumerate(theirs)]
    ground = [Counter(r for r in rows if not _has_blank(r)) for rows in (mine, theirs)]
    return ground[0] == ground[1] and _canonical(_as_graph(mine)) == _canonical(_as_graph(theirs))


def same_graph(actual: Iterable[Triple], wanted: Iterable[Triple]) -> bool:
    """The same graph up to a renaming of its blank nodes."""
    mine, theirs = ([(s, p, by_value(o)) for s, p, o in triples] for triples in (actual, wanted))
    return _canonical(mine) == _canonical(theirs)


def _has_blank(row: Row) -> bool:
    return any(is_blank(term) for _, term in row)


def _as_graph(rows: Iterable[Row]) -> Iterator[Triple]:
    """Rows with blank nodes as a graph, one blank node for each row."""
    for i, row in enumerate(r for r in rows if _has_blank(r)):
        yield from ((f"_:row{i}", f"<urn:{name}>", term) for name, term in row)


def _canonical(triples: Iterable[Triple]) -> pyoxigraph.Dataset:
    text = "".join(f"{s} {p} {o} .\n" for s, p, o in triples)
    dataset = pyoxigraph.Dataset(pyoxigraph.parse(text.encode(), pyoxigraph.RdfFormat.N_TRIPLES))
    dataset.canonicalize(pyoxigraph.CanonicalizationAlgorithm.UNSTABLE)
    return dataset
