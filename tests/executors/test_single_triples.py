"""Rows: what is written for an instant of one triple gives what the code for any instant gives."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from etalis_rules.terms import XSD

from etalis_py import Engine, Match, compile
from etalis_py.events import Event
from tests.draws import seeds

RECURSION = "CONSTRUCT { ?a :r ?b } WHERE { ?a :p ?b }\n;\nCONSTRUCT { ?a :r ?c } WHERE { ?a :r ?b . ?b :q ?c }"
QUERIES = [
    ("SELECT * WHERE { { ?s :p ?x } SEQ { ?s :p ?y } FILTER (?x < ?y) }", "recent"),
    ("SELECT * WHERE { { ?s :p ?x } SEQ { ?s :p ?y } FILTER (?x * 2 > ?y + 1) } WITHIN 9 s", "recent"),
    ("SELECT * WHERE { { ?s :p ?x } SEQ { ?s :q ?y } FILTER (?x >= ?y) }", "chronological"),
    ("SELECT * WHERE { { ?s :p ?x FILTER (?x != 2) } SEQ { ?s :q ?y FILTER (?y < 3) } FILTER (?x = ?y) }", "recent"),
    ("SELECT * WHERE { { ?s :p ?x } SEQ { ?s :p ?y } SEQ { ?s :q ?z } FILTER (?x < ?z) } WITHIN 8 s", "unrestricted"),
    ("SELECT * WHERE { { ?s :p ?x } { ?s :q ?y } FILTER (?x <= ?y) } WITHIN 5 s", "recent"),
    ("SELECT * WHERE { { ?s :p ?x } NEXT { ?s :p ?y } }", "unrestricted"),
    ("SELECT * WHERE { { ?s :p ?x } SEQ NOT { ?s :q ?z } SEQ { ?s :p ?y } FILTER (?x < ?y) }", "recent"),
    ("SELECT * WHERE { { ?s :p 2 } SEQ { ?s :p ?x } SEQ { ?s :q ?x } }", "recent"),
    ("SELECT (SUM(?x) AS ?n) (AVG(?x) AS ?m) WHERE { ?s :p ?x } WITHIN 4 EVENTS", "unrestricted"),
    ("SELECT (COUNT(*) AS ?n) (SUM(?x) AS ?m) WHERE { ?s ?p ?x FILTER (?x > 0) } WITHIN 7 s", "unrestricted"),
    ("SELECT ?s ?p (SUM(?x) AS ?n) WHERE { ?s ?p ?x } WITHIN 7 s GROUP BY ?s ?p", "unrestricted"),
    ("SELECT ?s (AVG(?x) AS ?n) WHERE { ?s :p ?x FILTER (?x < 3) } GROUP BY ?s", "unrestricted"),
    ("SELECT (SUM(?x + 1) AS ?n) WHERE { ?s :p ?x } WITHIN 3 EVENTS GROUP BY ?s", "unrestricted"),
    ("SELECT (SUM(?x) AS ?n) WHERE { ?s :p ?x } WITHIN 6 s GROUP BY ?s", "unrestricted"),
    ("SELECT ?s (SUM(?x) AS ?n) WHERE { ?s :p ?x } WITHIN 6 s GROUP BY ?s HAVING (SUM(?x) > 3)", "unrestricted"),
    ("SELECT ?s (SUM(?x) AS ?n) WHERE { ?s :p ?x } WITHIN P1M GROUP BY ?s", "unrestricted"),
    (RECURSION, "unrestricted"),
]
TERMS = [
    *(f'"{n}"^^<{XSD}integer>' for n in (0, 1, 2, 3, 2**53, 2**53 + 1)),
    *(f'"{n}"^^<{XSD}double>' for n in ("1.0", "2.00000000000001", "NaN", "9007199254740992.0", "-0", "-0.0000000000")),
    f'"1.5"^^<{XSD}decimal>',
    f'"2.5"^^<{XSD}float>',
    f'"12345678901234567890123"^^<{XSD}double>',
    '"text"',
    "<urn:s0>",
    "<urn:s1>",
]


def events(draw: random.Random, size: int) -> list[Event]:
    """Events of one triple, some of which last, at times that differ."""
    made, time = [], 0
    for _ in range(size):
        time += draw.choice((1, 1, 1, 2, 5)) * 1_000_000
        triple = (f"<urn:s{draw.randrange(2)}>", f"<http://example.org/{draw.choice('ppq')}>", draw.choice(TERMS))
        made.append(Event(time - draw.choice((0, 0, 0, 1_500_000)), time, (triple,)))
    return made


def answers(query: str, policy: Any, given: Sequence[Event], *, alone: bool, **options: Any) -> list[Match]:
    """The matches; unless ``alone``, by the function for instants of any number of triples."""
    engine = Engine(compile(query), policy=policy, executor="rows", **options)
    dispatch = engine._dispatch
    assert dispatch is not None
    if not alone:
        instant = dispatch.instant
        engine._dispatch = replace(
            dispatch, single={}, other=lambda s, o, start, t, stream, p: instant(t, ((s, p, o, start, stream),))
        )
    return [*engine.push_all(given), *engine.close()]


@pytest.mark.parametrize(("query", "policy"), QUERIES)
def test_one_triple_is_an_instant_like_others(query: str, policy: str) -> None:
    for seed in seeds(12):
        given = events(random.Random(seed), 40)
        expected = answers(query, policy, given, alone=False)
        assert answers(query, policy, given, alone=True) == expected, seed
        assert answers(query, policy, given, alone=True, journal=True) == expected, seed
        assert answers(query, policy, given, alone=True, explain=True) == expected, seed
