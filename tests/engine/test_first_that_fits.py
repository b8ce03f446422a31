"""A policy with a comparison: each arrival takes the latest (or earliest) goal whose value fits, among very many."""

from __future__ import annotations

import itertools
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


@pytest.mark.parametrize("executor", ["rows", "columns"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("within", [None, 2_000])
def test_thousands_of_goals(executor: Literal["rows", "columns"], policy: str, within: int | None) -> None:
    """Goals in whole blocks, of which many are taken out of the middle, through several batches."""
    draw, size = random.Random(within), 4_000
    numbers = [draw.choice((draw.uniform(0, 10), draw.uniform(500, 520))) for _ in range(size)]
    kinds = ["b" if n > size // 3 and draw.random() < 0.5 else "a" for n in range(size)]
    waiting: list[int] = []
    expected = []
    for n in range(size):
        if kinds[n] == "a":
            waiting.append(n)
            continue
        order = reversed(waiting) if policy == "recent" else waiting
        near = (x for x in order if within is None or n - x <= within)
        if (taken := next((x for x in near if numbers[x] < numbers[n]), None)) is not None:
            waiting.remove(taken)
            expected.append((taken, n))
    engine = Engine(
        compile(TEXT % ("?x", "<") + (f" WITHIN {within} s" if within else "")), policy=policy, executor=executor
    )
    events = [_event(n, kinds[n], f'"{numbers[n]!r}"^^<{XSD}double>') for n in range(size)]
    events.append(_event(size, "c", double(0)))
    cuts = [0, 1_100, 1_700, 3_300, size + 1]
    matches = [m for i, j in itertools.pairwise(cuts) for m in engine.push_all(events[i:j])]
    if within is None:
        (goals,) = engine.goals()
        assert engine.count().goals == len(goals.columns[0]) == len(waiting)
    assert sorted((m.start, m.end) for m in [*matches, *engine.close()]) == sorted(expected)


def test_a_place_is_filled_again_with_a_lower_value() -> None:
    """Two blocks of goals; the second has been passed as a whole when its last goal is taken and another one comes."""
    numbers = [*[10 - n / 100 for n in range(256)], *[900 - n for n in range(256)]]
    events = [_event(n, "a", double(number)) for n, number in enumerate(numbers)]
    events += [_event(600, "b", double(20)), _event(601, "b", double(1_000)), _event(602, "a", double(50))]
    events += [_event(603, "b", double(60)), _event(604, "a", double(0))]
    engine = Engine(compile(TEXT % ("?x", "<")), policy="recent", executor="columns")
    matches = [*engine.push_all(events), *engine.close()]
    assert [(m.start, m.end) for m in matches] == [(255, 600), (511, 601), (602, 603)]


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
