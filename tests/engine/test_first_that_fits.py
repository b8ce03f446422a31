"""A policy with a comparison: each arrival takes the latest (or earliest) goal whose value fits, among very many."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal

import pytest

from etalis_py import Engine, Event, compile
from tests.draws import seeds
from tests.work import growth, lines_of

SECOND = 1_000_000
XSD = "http://www.w3.org/2001/XMLSchema#"
TEXT = "PREFIX : <urn:x:> SELECT ?x ?y { { ?k :a ?x } SEQ { ?k :b ?y } FILTER (%s %s ?y) }"
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
POLICIES = {"recent": -1, "chronological": 0}
Answer = tuple[int, int, str, str]


def integer(number: float) -> str:
    return f'"{round(number)}"^^<{XSD}integer>'


def decimal(number: float) -> str:
    return f'"{round(number, 2)}"^^<{XSD}decimal>'


def double(number: float) -> str:
    return f'"{number:e}"^^<{XSD}double>'


KINDS: dict[str, list[Callable[[float], str]]] = {
    "integers": [integer],
    "exact": [integer, decimal],
    "doubles": [double, double, double, lambda number: f'"NaN"^^<{XSD}double>'],
    "mixed": [integer, double, lambda number: '"text"'],
}


def value(term: str) -> Any:
    """The value of a number, as one that Python compares as SPARQL does for numbers of this size; None for a text."""
    lexical, _, datatype = term[1:].partition('"')
    if not datatype:
        return None
    return float(lexical) if datatype.endswith("double>") else Decimal(lexical)


def drawn(seed: int, size: int, terms: list[Callable[[float], str]], *, crowded: bool) -> list[Event]:
    """First many that wait, with values of two far groups; then arrivals of all values among others that wait."""
    draw, t = random.Random(seed), 10
    events: dict[Event, None] = {}
    for n in range(size):
        t += draw.choice((0, 0, 1)) if crowded else 1
        kind = "a" if draw.random() < (0.98 if n < size // 2 else 0.4) else "b"
        number = draw.choice((draw.uniform(0, 10), draw.uniform(500, 520), draw.uniform(500, 520)))
        start = t - draw.choice((0, 0, 0, 2)) if crowded else t
        triple = ("<urn:x:k>", f"<urn:x:{kind}>", draw.choice(terms)(number))
        events[Event(start * SECOND, t * SECOND, (triple,), "", "")] = None
    return list(events)


def by_definition(
    events: list[Event], fits: Callable[[str, str], bool], policy: str, within: int | None
) -> list[Answer]:
    """Arrivals of an instant choose one after the other among the goals of the past; the goals are in order of end."""
    waiting: list[tuple[int, int, str]] = []
    answers = []
    for now in sorted({event.end for event in events}):
        instant = sorted((e.end, e.start, e.triples[0][2]) for e in events if e.end == now and "b>" in e.triples[0][1])
        for end, start, y in instant:
            fitting = [
                x
                for x in waiting
                if x[0] < start and fits(x[2], y) and (within is None or end - x[1] <= within * SECOND)
            ]
            if fitting:
                taken = fitting[POLICIES[policy]]
                waiting.remove(taken)
                answers.append((taken[1] // SECOND, end // SECOND, taken[2], y))
        waiting += sorted((e.end, e.start, e.triples[0][2]) for e in events if e.end == now and "a>" in e.triples[0][1])
    return sorted(answers)


def comparing(op: str, shift: int = 0) -> Callable[[str, str], bool]:
    def fits(x: str, y: str) -> bool:
        left, right = value(x), value(y)
        if left is None or right is None:
            return x == y and "=" in op and not shift
        return COMPARE[op](left + shift, right)

    return fits


def answers_of(matches: list[Any]) -> list[Answer]:
    return sorted((m.start, m.end, m.bindings["x"], m.bindings["y"]) for m in matches)


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("op", COMPARE)
@pytest.mark.parametrize("kind", KINDS)
def test_the_goal_taken_is_that_of_the_definition(
    executor: Literal["rows", "columns"], policy: str, op: str, kind: str
) -> None:
    for seed in seeds(2):
        draw = random.Random(seed)
        crowded, within = draw.random() < 0.5, draw.choice((None, None, 150))
        shift = draw.choice((0, 0, 5))
        text = TEXT % (f"?x + {shift}" if shift else "?x", op) + (f" WITHIN {within} s" if within else "")
        events = drawn(seed, 450, KINDS[kind], crowded=crowded)
        engine = Engine(compile(text), policy=policy, executor=executor)
        first, second = sorted(draw.sample(range(450), 2))
        matches = [*engine.push_all(events[:first]), *engine.push_all(events[first:second])]
        restored = Engine(compile(text), policy=policy, executor=executor)
        restored.restore(engine.snapshot())
        matches += [*restored.push_all(events[second:]), *restored.close()]
        assert answers_of(matches) == by_definition(events, comparing(op, shift), policy, within), seed


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", [integer, decimal, double])
def test_goals_that_do_not_fit_are_passed_over_together(policy: str, kind: Callable[[float], str]) -> None:
    """High values lie between an arrival and the low ones, of which it takes one."""

    def work(size: int) -> Callable[[], object]:
        engine = Engine(compile(TEXT % ("?x", "<")), policy=policy, executor="rows")
        high, low = [1_000 + n for n in range(size)], [n / 4 for n in range(100)]
        waiting = [*low, *high] if policy == "recent" else [*high, *low]
        engine.push_all(_event(n, "a", kind(number)) for n, number in enumerate(waiting))
        arriving = [_event(len(waiting) + n, "b", kind(500 - n)) for n in range(100)]
        return lambda: engine.push_all(arriving)

    assert growth(work, 250, lines_of) < 1.8


def _event(second: int, kind: str, term: str) -> Event:
    return Event(second * SECOND, second * SECOND, (("<urn:x:k>", f"<urn:x:{kind}>", term),), "", "")
