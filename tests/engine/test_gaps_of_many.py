"""``A SEQ NOT N SEQ C`` among very many A and N: the answers of the definition, without comparing all of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest

from etalis_py import Engine, Event, compile
from etalis_py.executors.columns.absence import GapOperator
from etalis_py.executors.columns.frames import Bindings
from tests.draws import seeds
from tests.work import growth, lines_of

SECOND = 1_000_000
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
TEXT = "PREFIX : <urn:x:> SELECT ?x ?y { { ?k :a ?x } SEQ NOT { %s } SEQ { ?k :c ?y } }"
Item = tuple[int, int, int]
"""End, start and value."""
ABSENT: dict[str, Callable[[int, int, int], bool]] = {
    "?k :n ?z": lambda x, y, z: True,
    "?k :n ?x": lambda x, y, z: z == x,
    "?k :n ?y": lambda x, y, z: z == y,
    "?k :n ?z FILTER (?z < ?x)": lambda x, y, z: z < x,
    "?k :n ?z FILTER (?z + ?x > 55)": lambda x, y, z: z + x > 55,
    "?k :n ?y FILTER (?y < ?x)": lambda x, y, z: z == y and z < x,
}
POLICIES = ["unrestricted", "recent", "chronological"]
Executor = Literal["rows", "columns"]


def drawn(seed: int, size: int, *, crowded: bool) -> list[Event]:
    """Many that wait, and then all kinds of events; if it is crowded, some last, and some share their time."""
    draw, t = random.Random(seed), 10
    events: dict[Event, None] = {}
    for n in range(size):
        t += draw.choice((0, 0, 1)) if crowded else 1
        kind = "a" if draw.random() < (0.95 if n < size // 3 else 0.4) else draw.choice("nnc")
        start = t - draw.choice((0, 0, 0, 1, 6)) if crowded else t
        events[_event(start, t, kind, draw.randrange(30))] = None
    return list(events)


def by_definition(
    events: list[Event], counts: Callable[[int, int, int], bool], policy: str, within: int | None
) -> list[tuple[int, int, int, int]]:
    """The pairs without an N between them; a policy lets each C in turn take the first (or last) goal that is left."""
    items: dict[str, list[Item]] = {"a": [], "n": [], "c": []}
    for e in events:
        _, predicate, term = e.triples[0]
        items[predicate[-2]].append((e.end // SECOND, e.start // SECOND, int(term.split('"')[1])))

    def pairs(a: Item, c: Item) -> bool:
        between = (n for n in items["n"] if a[0] < n[1] and n[0] < c[1])
        near = within is None or c[0] - a[1] <= within
        return near and a[0] < c[1] and not any(counts(a[2], c[2], n[2]) for n in between)

    waiting, answers = sorted(items["a"], key=_as_rows), []
    for c in sorted(items["c"], key=_as_rows):
        found = [a for a in waiting if pairs(a, c)]
        if found and policy != "unrestricted":
            found = [found[-1 if policy == "recent" else 0]]
            waiting.remove(found[0])
        answers += [(a[1], c[0], a[2], c[2]) for a in found]
    return sorted(answers)


def _as_rows(item: Item) -> tuple[int, int, str]:
    end, start, value = item
    return end, start, f'"{value}"^^<{INTEGER}>'


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("absent", ABSENT)
def test_the_pairs_are_those_of_the_definition(executor: Executor, policy: str, absent: str) -> None:
    for seed in seeds(6):
        draw = random.Random(seed)
        crowded, within = draw.random() < 0.6, draw.choice((None, None, 70))
        text = TEXT % absent + (f" WITHIN {within} s" if within else "")
        events = drawn(seed, 260, crowded=crowded)
        first, second = sorted(draw.sample(range(len(events)), 2))
        engine = Engine(compile(text), policy=policy, executor=executor)
        matches = [*engine.push_all(events[:first]), *engine.push_all(events[first:second])]
        restored = Engine(compile(text), policy=policy, executor=executor)
        restored.restore(engine.snapshot())
        matches += [*restored.push_all(events[second:]), *restored.close()]
        answers = sorted((m.start, m.end, m["x"], m["y"]) for m in matches)
        assert answers == by_definition(events, ABSENT[absent], policy, within), seed


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("absent", ["?k :n ?z", "?k :n ?x", "?k :n ?z FILTER (?z < ?x)"])
def test_what_was_refused_costs_nothing_later(policy: str, absent: str) -> None:
    """Each N refuses the A before it, and each C completes the one after it."""

    def work(size: int) -> Callable[[], object]:
        engine = Engine(compile(TEXT % absent), policy=policy, executor="rows")
        value = {"a": 7, "n": 7 if absent == "?k :n ?x" else 5, "c": 1}
        events = [_event(t, t, kind, value[kind]) for t, kind in enumerate("an" * size + "acn" * 50)]
        engine.push_all(events[: 2 * size + 3])
        return lambda: engine.push_all(events[2 * size + 3 :])

    assert growth(work, 200, lines_of) < 1.6


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("absent", ["?k :n ?z", "?k :n ?y"])
def test_columns_make_no_pairs_that_are_refused(monkeypatch: pytest.MonkeyPatch, policy: str, absent: str) -> None:
    """Where C tells which N agree: here each refuses the A before it, and each C completes the one after it."""
    pairs: list[int] = []
    answered = GapOperator._answered

    def counting(self: GapOperator, frame: Bindings, ended: np.ndarray, begins: np.ndarray) -> Bindings:
        pairs.append(len(frame))
        return answered(self, frame, ended, begins)

    monkeypatch.setattr(GapOperator, "_answered", counting)
    engine = Engine(compile(TEXT % absent), policy=policy, executor="columns")
    matches = engine.push_all([_event(t, t, kind, 7) for t, kind in enumerate("an" * 300 + "acn" * 100)])
    assert len(matches) == sum(pairs) == 100


def _event(start: int, end: int, kind: str, value: int) -> Event:
    triple = ("<urn:x:k>", f"<urn:x:{kind}>", f'"{value}"^^<{INTEGER}>')
    return Event(start * SECOND, end * SECOND, (triple,), "", "")
