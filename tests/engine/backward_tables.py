"""Patterns, graphs and histories written as words, and solutions as text: the tables of ``test_backward*``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etalis_rules.algebra import (
    BGP,
    Apply,
    Const,
    PathPattern,
    Pattern,
    Step,
    Triple,
    Var,
)
from etalis_rules.terms import XSD, literal

from etalis_py.knowledge.graph import Graph
from etalis_py.sparql import (
    BackgroundSource,
    HistorySource,
    OccurrenceLog,
    solve,
)
from etalis_py.values.time import TIMELESS_END, TIMELESS_START
from tests.engine.backward_by_definition import Small

BACK = (TIMELESS_START, TIMELESS_END)
DAY = 86_400_000_000


def t(word: str) -> Any:
    """``?x`` a variable, ``1`` an integer, any other word an IRI."""
    if word[0] == "?" or word[:2] == "_:":
        return Var(word.lstrip("?"))
    return Const(number(int(word)) if word.isdigit() else f"<urn:{word}>")


def number(n: int) -> str:
    return literal(str(n), XSD + "integer")


def triples(text: str) -> list[tuple[Any, ...]]:
    return [tuple(t(word) for word in line.split()) for line in text.split(".") if line.strip()]


def facts(text: str) -> list[tuple[str, str, str]]:
    return [(s.term, p.term, o.term) for s, p, o in triples(text)]


def bgp(text: str, graph: Any = None, stream: str = "") -> BGP:
    return BGP(tuple(Triple(*x) for x in triples(text)), stream, graph)


def path(s: str, p: Any, o: str, graph: Any = None) -> PathPattern:
    return PathPattern(t(s), p, t(o), "", graph)


def op(name: str, *words: str) -> Apply:
    return Apply(name, tuple(t(w) for w in words))


def knowledge(text: str = "", **named: str) -> BackgroundSource:
    return BackgroundSource(Small(Graph(facts(text)), {f"<urn:{g}>": Graph(facts(x)) for g, x in named.items()}))


def history(*events: tuple[Any, ...], background: str = "") -> HistorySource:
    """Events as (start, end, triples) or (start, end, triples, stream)."""
    log = OccurrenceLog()
    for start, end, text, *stream in events:
        log.add(start, end, facts(text), *stream)
    return HistorySource(knowledge(background), log)


def rows(solutions: Iterable[Any]) -> list[str]:
    """Solutions as ``x=a y=b`` or ``x=a @1-2``, sorted."""
    return sorted(row(*s) for s in solutions)


def row(mu: dict[str, str], start: int, end: int) -> str:
    words = [f"{v}={short(x)}" for v, x in sorted(mu.items())]
    return " ".join(words + ([] if end == TIMELESS_END else [f"@{start}-{end}"]))


def short(term: str) -> str:
    return term[5:-1] if term[0] == "<" else term.split('"')[1]


def answers(pattern: Pattern, source: Any, at: int | None = None, substitute: bool = False, **mu: str) -> list[str]:
    given = {v: t(x).term for v, x in mu.items()}
    return rows(solve(pattern, given, source, at, substitute=substitute))


STAR, PLUS, OPTIONAL = (0, True), (1, True), (0, False)
P, Q = Step("<urn:p>"), Step("<urn:q>")
