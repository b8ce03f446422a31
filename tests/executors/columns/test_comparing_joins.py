"""Joins that compare numbers report what their definition says, over many goals of a key and values of every sort.

The kernels pass over rows whose value is known to be too small, hold what arrives in a batch apart from older goals,
and stop where they lack room for pairs: none of which may be seen.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations, product
from typing import Any, Literal

import pytest

from etalis_py import Engine, Event, compile
from etalis_py.executors.columns import joins
from tests.draws import draws_many, is_quick
from tests.executors.columns.judge import in_columns, reason_for_rows

SECOND = 1_000_000
XSD = "http://www.w3.org/2001/XMLSchema#"
VALUES = [f'"{v}"^^<{XSD}integer>' for v in (0, 1, 2, 2, 3, 5, 8, -1)]
VALUES += [f'"{v}"^^<{XSD}double>' for v in ("NaN", "INF", "-INF", "-0.0", "2.5E0", "3.0E0")]
RELATIONS = {
    "SEQ": lambda a, b: a[1] < b[0],
    "EQUALS": lambda a, b: a == b,
    "FINISHES": lambda a, b: b[0] < a[0] and a[1] == b[1],
    "DURING": lambda a, b: b[0] < a[0] and a[1] < b[1],
    "OVERLAPS": lambda a, b: a[0] < b[0] < a[1] < b[1],
    "PAR": lambda a, b: a[0] <= b[1] and b[0] <= a[1],
}
CONDITIONS = {
    "?x < ?y": lambda x, y: x < y,
    "?x >= ?y": lambda x, y: x >= y,
    "?x = ?y": lambda x, y: x == y,
    "?x != ?y": lambda x, y: x != y,
    "?x < ?y && ?x != 0": lambda x, y: x < y and x != 0,
}
Row = tuple[int, int, int, str, str]


SIZES = (1, 7, 10**9)


def pairwise(*choices: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Some of all combinations: any two values of two choices stand together in at least one of them.

    A nightly run takes all, and a quick look a third of these.
    """
    remaining = list(product(*choices))
    if draws_many():
        return remaining
    missing = {pair for combination in remaining for pair in pairs_of(combination)}
    chosen = []
    while missing:
        best = max(remaining, key=lambda combination: len(missing & pairs_of(combination)))
        missing -= pairs_of(best)
        chosen.append(best)
    return chosen[::3] if is_quick() else chosen


def pairs_of(combination: tuple[Any, ...]) -> set[Any]:
    return set(combinations(enumerate(combination), 2))


def test_any_two_choices_meet() -> None:
    chosen = pairwise("ab", "cd", "ef")
    assert len(chosen) < 8 or draws_many()
    assert is_quick() or {(x, z) for x, _, z in chosen} == {("a", "e"), ("a", "f"), ("b", "e"), ("b", "f")}


def rows(count: int, seed: int, longest: int) -> list[Row]:
    """Start, end, key, predicate and value; some of the same end."""
    draw = random.Random(seed)
    drawn, end = [], 1
    for _ in range(count):
        end += draw.choice((0, 1, 1, 2))
        drawn.append(
            (end - draw.randrange(longest + 1), end, draw.randrange(3), draw.choice("pq"), draw.choice(VALUES))
        )
    return sorted(set(drawn), key=lambda row: row[1])


@cache
def number(term: str) -> float:
    return float(term.split('"')[1].replace("INF", "inf"))


def all_pairs(stream: list[Row], relation: str, condition: str, bound: int) -> Iterator[tuple[Row, Row]]:
    """Every pair of the definition."""
    related, compared = RELATIONS[relation], CONDITIONS[condition]
    for a, b in product((r for r in stream if r[3] == "p"), (r for r in stream if r[3] == "q")):
        if a[2] != b[2] or max(a[1], b[1]) - min(a[0], b[0]) > bound:
            continue
        if related(a[:2], b[:2]) and compared(number(a[4]), number(b[4])):
            yield a, b


def query(relation: str, condition: str, bound: int) -> str:
    return f"""SELECT ?c ?x ?y WHERE {{
        {{ {{ ?c <urn:p> ?x }} {relation} {{ ?c <urn:q> ?y }} FILTER ({condition}) }} WITHIN PT{bound}S }}"""


def events(stream: list[Row]) -> list[Event]:
    return [
        Event(start * SECOND, end * SECOND, ((f"<urn:{key}>", f"<urn:{predicate}>", value),), "")
        for start, end, key, predicate, value in stream
    ]


@pytest.mark.parametrize(("relation", "condition", "size"), pairwise(RELATIONS, CONDITIONS, SIZES))
def test_all_pairs(monkeypatch: pytest.MonkeyPatch, relation: str, condition: str, size: int) -> None:
    """A batch has more pairs than are held at a time."""
    monkeypatch.setattr(joins, "MANY_AT_ONCE", 16)
    pairs = 0
    for seed, (longest, bound) in enumerate(((0, 9), (6, 12), (6, 100))):
        stream = rows(400, seed, longest)
        engine = Engine(compile(query(relation, condition, bound)), executor="columns")
        assert reason_for_rows(engine) is None
        reported = sorted(
            (
                m["bindings"]["c"]["value"],
                m["bindings"]["x"]["value"],
                m["bindings"]["y"]["value"],
                m["start"],
                m["end"],
            )
            for m in in_columns(engine, events(stream), size)
        )
        expected = sorted(
            (f"urn:{a[2]}", a[4].split('"')[1], b[4].split('"')[1], min(a[0], b[0]), max(a[1], b[1]))
            for a, b in all_pairs(stream, relation, condition, bound)
        )
        assert reported == expected
        pairs += len(expected)
    assert pairs


@pytest.mark.parametrize(
    ("relation", "condition", "size", "policy"),
    pairwise([name for name in RELATIONS if name != "PAR"], CONDITIONS, SIZES, ["recent", "chronological"]),
)
def test_one_goal_for_each(
    monkeypatch: pytest.MonkeyPatch,
    relation: str,
    condition: str,
    size: int,
    policy: Literal["recent", "chronological"],
) -> None:
    """Under a policy columns take the goals that rows take."""
    monkeypatch.setattr(joins, "AT_ONCE", 16)
    pairs = 0
    for seed, (longest, bound) in enumerate(((0, 9), (6, 12), (6, 100))):
        stream = events(rows(400, seed, longest))
        program = compile(query(relation, condition, bound))
        engine = Engine(program, policy=policy, executor="columns")
        assert reason_for_rows(engine) is None
        expected = Engine(program, policy=policy, executor="rows")
        matches = [*expected.push_all(stream), *expected.close()]
        assert in_columns(engine, stream, size) == [m.to_dict() for m in matches]
        pairs += len(matches)
    assert pairs
