"""NEXT with a condition: the pairs of the definition, in rows and in columns; rows look at no goal again in vain."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from etalis_py import Engine, Event, compile
from tests.draws import seeds
from tests.work import growth, lines_of

SECOND = 1_000_000
XSD = "http://www.w3.org/2001/XMLSchema#"
TEXT = "PREFIX : <urn:x:> SELECT ?k ?x ?y { { ?k :a ?x } NEXT { ?k :b ?y FILTER (?y %s ?x) } }"
NUMBERS = [f'"{n}"^^<{XSD}integer>' for n in range(40)]
OTHERS = [
    f'"7.5"^^<{XSD}double>',
    *(f'"{n}"^^<{XSD}decimal>' for n in ("9.0", "9.5", "20.25")),
    f'"NaN"^^<{XSD}double>',
    '"m"',
    "<urn:x:m>",
]

Pair = tuple[int, int, str, str, str]


def drawn(seed: int, size: int, terms: list[str], *, crowded: bool) -> list[Event]:
    """Waiting values and others of two keys, in runs of one kind, so that many wait and many look in vain."""
    draw, t, events, kind = random.Random(seed), 10, {}, "a"
    for _ in range(size):
        t += draw.choice((0, 0, 1)) if crowded else 1
        kind = draw.choice("ab") if draw.random() < 0.2 else kind
        start = t - draw.choice((0, 0, 0, 2)) if crowded else t
        triple = (f"<urn:x:k{draw.randrange(2)}>", f"<urn:x:{kind}>", draw.choice(terms))
        events[Event(start * SECOND, t * SECOND, (triple,), "", "")] = None
    return list(events)


def by_definition(events: list[Event], fits: Callable[[str, str], bool], within: int | None) -> list[Pair]:
    """Each event of :a with those of :b of the first instant in which one starts after its end and fits."""
    pairs = []
    for (key, _, x), begun, ended in [(e.triples[0], e.start, e.end) for e in events if e.triples[0][1] == "<urn:x:a>"]:
        partners = [
            (e.start, e.end, e.triples[0][2])
            for e in events
            if e.triples[0][:2] == (key, "<urn:x:b>") and e.start > ended and fits(x, e.triples[0][2])
        ]
        if not partners:
            continue
        first = min(end for _, end, _ in partners)
        pairs += [
            (begun // SECOND, end // SECOND, key, x, y)
            for _, end, y in partners
            if end == first and (within is None or end - begun <= within * SECOND)
        ]
    return sorted(pairs)


def value(term: str) -> float | None:
    """The number of a term; None if it is none."""
    return float(term.split('"')[1]) if term.startswith('"') and "^^" in term else None


def comparing(op: str) -> Callable[[str, str], bool]:
    def fits(x: str, y: str) -> bool:
        left, right = value(x), value(y)
        if left is None or right is None:
            texts = x == y == '"m"'
            return texts and "=" in op
        return {">": right > left, ">=": right >= left, "<": right < left, "<=": right <= left}[op]

    return fits


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("op", [">", ">=", "<", "<="])
@pytest.mark.parametrize("within", [None, 6])
@pytest.mark.parametrize("crowded", [False, True])
@pytest.mark.parametrize("mixed", [False, True])
def test_pairs_are_those_of_the_definition(
    executor: str, op: str, within: int | None, crowded: bool, mixed: bool
) -> None:
    text = TEXT % op + (f" WITHIN {within} s" if within else "")
    for seed in seeds(12):
        events = drawn(seed, 90, [*NUMBERS[:12], *OTHERS] if mixed else NUMBERS, crowded=crowded)
        engine = Engine(compile(text), executor=executor)
        cut = random.Random(seed).randrange(1, 90)
        found = [*engine.push_all(events[:cut]), *engine.push_all(events[cut:]), *engine.close()]
        answers = sorted((m.start, m.end, *(m.bindings[name] for name in "kxy")) for m in found)
        assert answers == by_definition(events, comparing(op), within), seed


@pytest.mark.parametrize("keys", [1, 3])
@pytest.mark.parametrize(("order", "kind"), [(1, "integer"), (-1, "integer"), (1, "decimal"), (-1, "decimal")])
def test_goals_that_cannot_fit_are_not_looked_at_again(order: int, kind: str, keys: int) -> None:
    """Hundreds of high values wait, and low ones that come and go are no reason to look at them.

    Values that rise go beyond what those before them have shown, unless the lowest one that waits is known: it is where
    all values are compared by their exact values, as integers and decimals are.
    """

    def work(size: int) -> Callable[[], object]:
        engine = Engine(compile(TEXT % ">"), executor="rows")
        waiting = [
            _event(n, f"k{key}", "a", f'"{1_000 + n}"^^<{XSD}integer>') for n in range(size) for key in range(keys)
        ]
        coming = [
            _event(size + n, f"k{key}", name, f'"{n if order > 0 else 200 - n}"^^<{XSD}{kind}>')
            for n in range(200)
            for key in range(keys)
            for name in "ab"
        ]
        engine.push_all(waiting)
        return lambda: engine.push_all(coming)

    assert growth(work, 200, lines_of) < 1.8


def _event(second: int, key: str, kind: str, term: str) -> Event:
    return Event(second * SECOND, second * SECOND, ((f"<urn:x:{key}>", f"<urn:x:{kind}>", term),), "", "")
