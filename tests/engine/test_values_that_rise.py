"""Values that rise ever more, as those of a meter do, and a comparison that few or none of them pass."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

import pytest

from etalis_py import Engine, Event, compile
from tests.draws import seeds
from tests.engine.test_first_that_fits import KINDS, comparing, double, integer
from tests.work import growth, lines_of

SECOND = 1_000_000
FORMS = {
    "SEQ": "SELECT ?x ?y { { ?k :a ?x } SEQ { ?k :a ?y } FILTER (%s) }",
    "AND": "SELECT ?x ?y { { ?k :a ?x } AND { ?k :a ?y } FILTER (%s) }",
    "EXISTS": "SELECT ?y { ?k :a ?y FILTER EXISTS { ?k :a ?x FILTER (%s) } }",
    "OPTIONAL": "SELECT ?y ?x { ?k :a ?y OPTIONAL { ?k :a ?x FILTER (%s) } }",
}


def rising(seed: int, size: int, terms: list[Callable[[float], str]]) -> list[Event]:
    """Two meters, of which one is set back now and then."""
    draw, values = random.Random(seed), [0.0, 100.0]
    events = []
    for n in range(size):
        meter = draw.randrange(2)
        values[meter] = values[meter] + draw.choice((1, 1, 2, 9)) if draw.random() < 0.98 or not meter else 3
        events.append(_event(n, f"k{meter}", draw.choice(terms)(values[meter])))
    return events


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("within", [None, 40])
def test_a_rise_is_found_by_the_definition(executor: Literal["rows", "columns"], kind: str, within: int | None) -> None:
    text = "PREFIX : <urn:x:> " + FORMS["SEQ"] % "?x + 60 < ?y" + (f" WITHIN {within} s" if within else "")
    for seed in seeds(3):
        events = rising(seed, 300, KINDS[kind])
        engine = Engine(compile(text), executor=executor)
        matches = [*engine.push_all(events[:170]), *engine.push_all(events[170:]), *engine.close()]
        passes = comparing("<", 60)
        expected = [
            (i, j)
            for j, later in enumerate(events)
            for i, earlier in enumerate(events[:j])
            if earlier.triples[0][0] == later.triples[0][0] and (within is None or j - i <= within)
            if passes(earlier.triples[0][2], later.triples[0][2])
        ]
        assert sorted((m.start, m.end) for m in matches) == sorted(expected), seed


@pytest.mark.parametrize("kind", [integer, double])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("within", ["", " WITHIN 9 h"])
def test_a_rise_that_never_comes_is_not_looked_for_in_all_values(
    form: str, kind: Callable[[float], str], within: str
) -> None:
    def work(size: int) -> Callable[[], object]:
        engine = Engine(compile("PREFIX : <urn:x:> " + FORMS[form] % "?x + 90000 < ?y" + within), executor="rows")
        engine.push_all(_event(n, "k", kind(n)) for n in range(size))
        arriving = [_event(size + n, "k", kind(size + n)) for n in range(100)]
        return lambda: engine.push_all(arriving)

    assert growth(work, 200, lines_of) < 1.3


def _event(second: int, key: str, term: str) -> Event:
    return Event(second * SECOND, second * SECOND, ((f"<urn:x:{key}>", "<urn:x:a>", term),), "", "")
