"""``A SEQ NOT { N FILTER } WITHIN d`` among very many A: the answers of the definition, without looking at all."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

import pytest

from etalis_py import Engine, Event, compile
from tests.draws import seeds
from tests.work import growth, lines_of

SECOND = 1_000_000
XSD = "http://www.w3.org/2001/XMLSchema#"
TEXT = "PREFIX : <urn:x:> SELECT ?x { { ?k :a ?x } SEQ NOT { ?k :n ?z FILTER (%s) } WITHIN %d s }"
CONDITIONS: dict[str, Callable[[float, float], bool]] = {
    "?z > ?x": lambda x, z: z > x,
    "?z <= ?x": lambda x, z: z <= x,
    "?z > ?x + 20": lambda x, z: z > x + 20,
    "?z - ?x > 25": lambda x, z: z - x > 25,
}
KINDS: list[Callable[[int], str]] = [
    lambda n: f'"{n}"^^<{XSD}integer>',
    lambda n: f'"{n}.0"^^<{XSD}decimal>',
    lambda n: f'"{n}.0e0"^^<{XSD}double>',
    lambda n: f'"NaN"^^<{XSD}double>',
    lambda n: '"text"',
]


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_those_reported_are_those_of_the_definition(executor: Literal["rows", "columns"], condition: str) -> None:
    for seed in seeds(12):
        draw, t = random.Random(seed), 10
        kinds, within = KINDS[: draw.choice((1, 2, 5))], draw.choice((20, 200))
        events: dict[Event, None] = {}
        for _ in range(250):
            t += draw.choice((0, 1, 1))
            start = t - draw.choice((0, 0, 0, 3))
            events[_event(start, t, draw.choice("aan"), draw.choice(kinds)(draw.randrange(40)))] = None
        some, cut = list(events), draw.randrange(250)
        engine, restored = (Engine(compile(TEXT % (condition, within)), executor=executor) for _ in range(2))
        matches = [*engine.push_all(some[:cut])]
        restored.restore(engine.snapshot())
        matches += [*restored.push_all(some[cut:]), *restored.close()]
        found = sorted((m.start, m.end, m.bindings["x"]) for m in matches)
        assert found == by_definition(some, CONDITIONS[condition], within), seed


def by_definition(
    events: list[Event], holds: Callable[[float, float], bool], within: int
) -> list[tuple[int, int, str]]:
    """Each A after which no N starts that satisfies the condition and ends in time."""
    of = {kind: [e for e in events if e.triples[0][1][-2] == kind] for kind in "an"}
    answers = []
    for a in of["a"]:
        due = a.end + within * SECOND
        refused = (a.end < n.start and n.end <= due and _compared(a, n, holds) for n in of["n"])
        if not any(refused):
            answers.append((a.start // SECOND, due // SECOND, a.triples[0][2]))
    return sorted(answers)


def _compared(a: Event, n: Event, holds: Callable[[float, float], bool]) -> bool:
    x, z = a.triples[0][2], n.triples[0][2]
    if x == z == '"text"':  # texts are compared, but not added up
        return holds is CONDITIONS["?z <= ?x"]
    return "^^" in x and "^^" in z and holds(float(x.split('"')[1]), float(z.split('"')[1]))


def test_a_search_in_vain_is_not_repeated() -> None:
    """Prices fall, and each is too low for all that wait."""

    def work(size: int) -> Callable[[], object]:
        engine = Engine(compile(TEXT % ("?z > ?x", 100_000)), executor="rows")
        events = [_event(t, t, kind, KINDS[0](10_000 - t)) for t, kind in enumerate("a" * size + "an" * 100)]
        engine.push_all(events[: size + 6])
        return lambda: engine.push_all(events[size + 6 :])

    assert growth(work, 250, lines_of) < 1.6


def _event(start: int, end: int, kind: str, term: str) -> Event:
    return Event(start * SECOND, end * SECOND, (("<urn:x:k>", f"<urn:x:{kind}>", term),), "", "")
