"""What ETALIS, the EP-SPARQL authors' engine, answers to random patterns and streams.

Encoding of its event patterns: the event ``a(K, I)`` at [t, t'] is the triple ``K :a I`` with that interval, and the
pattern ``a(?K, ?I)`` the triple pattern ``?K :a ?I``, a group of its own.  ``NOT-BETWEEN(A SEQ B, C)``, no C that
starts after A's end and ends before B's start, is written with two bindings of the time and NOT EXISTS.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from etalis_compiler import ast
from etalis_compiler.parser import parse
from etalis_rules.terms import XSD, iri, literal, parts

from etalis_py.events import Event

from . import answers

FOLDER = Path(__file__).parents[3] / "shared" / "conformance" / "etalis-oracle"


def cases(name: str) -> list[dict]:
    path = FOLDER / name
    if not path.exists():
        return []
    return [c for c in json.loads(path.read_text()) if c["unrestricted_equals_declarative_answer"]]


PATTERNS = cases("event-patterns.json")
QUERIES = cases("epsparql-queries.json")
absent = pytest.mark.skipif(not PATTERNS, reason=f"no conformance material beside the checkout ({FOLDER.name})")


def number(n: int) -> str:
    return literal(str(n), XSD + "integer")


def plain(term: str) -> int | str:
    return int(parts(term)[0]) if term.startswith('"') else term[5:-1]


def node(word: object) -> ast.Node:
    return ast.Var(word[1:]) if isinstance(word, str) and word[0] == "?" else ast.Term(number(word))  # type: ignore[arg-type]


def group(*elements: ast.Element) -> ast.Group:
    return ast.Group(elements)


def to_group(pattern: list) -> ast.Group:
    """An ETALIS pattern as a group."""
    if pattern[0] in ("SEQ", "EQUALS", "UNION"):
        return group(ast.Combined(ast.Operator(pattern[0]), to_group(pattern[1]), to_group(pattern[2])))
    if pattern[0] == "NOT-BETWEEN":
        return not_between(pattern[1][1], pattern[1][2], pattern[2])
    name, subject, value = pattern
    return group(ast.Triples((ast.TriplePattern(node(subject), ast.Term(f"<urn:{name}>"), node(value)),)))


def not_between(a: list, b: list, c: list) -> ast.Group:
    """{A, end ?ta} SEQ {B, start ?tb} FILTER NOT EXISTS {C} with ?ta < start and end < ?tb."""

    def timed(pattern: list, function: str, variable: str) -> ast.Group:
        return group(*to_group(pattern).elements, ast.Bind(ast.Call(function, ()), ast.Var(variable)))

    between = ast.Binary(
        "&&",
        ast.Binary("<", ast.Var("ta"), ast.Call("GETSTARTTIME", ())),
        ast.Binary("<", ast.Call("GETENDTIME", ()), ast.Var("tb")),
    )
    absence = ast.Exists(group(*to_group(c).elements, ast.Filter(between)), negated=True)
    pair = ast.Combined(ast.Operator.SEQ, timed(a, "GETENDTIME", "ta"), timed(b, "GETSTARTTIME", "tb"))
    return group(pair, ast.Filter(absence))


def pattern_answers(case: dict, policy: str) -> list:
    where = to_group(case["pattern"])
    if case["filter"]:
        operator, left, right = case["filter"]
        where = group(*where.elements, ast.Filter(ast.Binary(operator, node(left), node(right))))
    shown = tuple(ast.Projection(ast.Var(v[1:])) for v in case["select"])
    events = [
        Event._make((s, e, ((number(k), f"<urn:{name}>", number(i)),), "", "")) for name, (k, i), s, e in case["events"]
    ]
    (rows,) = answers(ast.Query(ast.Select(shown), where), events, policy=policy).values()
    return sorted(
        [[plain(row.bindings[v[1:]]) for v in case["select"]], row.start, row.end]
        for row in rows  # type: ignore[union-attr]
    )


def ids(case: dict) -> str:
    return case["id"]


@absent
@pytest.mark.parametrize("case", PATTERNS, ids=ids)
def test_event_patterns_unrestricted(case: dict) -> None:
    """The declarative answer."""
    assert pattern_answers(case, "unrestricted") == sorted(case["observed"]["unrestricted"])


TWO_STEPS = [
    c
    for c in PATTERNS
    if c["filter"] is None and all(isinstance(side, str) or (len(side) == 3 and side[0] == side[0].lower())
                                   for side in c["pattern"][1:])
]  # fmt: skip


@absent
@pytest.mark.parametrize("policy", ["recent", "chronological"])
@pytest.mark.parametrize("case", TWO_STEPS, ids=ids)
def test_two_steps_without_a_filter_consume_as_etalis_does(case: dict, policy: str) -> None:
    """Policies: the earliest or the latest candidate, retracted once used."""
    assert pattern_answers(case, policy) == sorted(case["observed"][policy])


def query_answers(case: dict, policy: str) -> list:
    events = [Event(t, u, ((iri(f"urn:{s}"), iri(f"urn:{p}"), number(o)),)) for s, p, o, t, u in case["stream"]]
    document = parse("BASE <urn:> PREFIX : <urn:> " + case["query"])
    (found,) = answers(document, events, policy=policy).values()
    (query,) = document.queries
    if isinstance(query.form, ast.Construct):
        made = {(t[0], t[2], d.start, d.end) for d in found for t in d.triples}  # type: ignore[union-attr]
        return sorted([[plain(s), plain(o)], a, b] for s, o, a, b in made)
    assert isinstance(query.form, ast.Select)
    names = [p.variable.name for p in query.form.projections]
    return sorted([[plain(row.bindings[v]) for v in names], row.start, row.end] for row in found)  # type: ignore[union-attr]


@absent
@pytest.mark.parametrize("case", QUERIES, ids=ids)
def test_queries_unrestricted(case: dict) -> None:
    assert query_answers(case, "unrestricted") == sorted(case["observed"]["unrestricted"])


@absent
@pytest.mark.parametrize("policy", ["recent", "chronological"])
@pytest.mark.parametrize("case", [c for c in QUERIES if "FILTER" not in c["query"] and "seq3" not in c["id"]], ids=ids)
def test_queries_of_two_steps_consume_as_etalis_does(case: dict, policy: str) -> None:
    assert query_answers(case, policy) == sorted(case["observed"][policy])
