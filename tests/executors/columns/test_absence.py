"""Absence in columns, over streams that are longer than those drawn: by the definition, and what is kept for it."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from etalis_py import Engine, Event, compile
from etalis_py.executors.columns import rules
from etalis_py.kernel.batch import Batch
from tests.executors.columns.judge import batches, rule_executors

LENGTH = 9
INSIDE = "SELECT ?o { { ?o <urn:a> ?x } NOT { ?o <urn:n> ?y } }"
GAP = "SELECT ?o ?x ?z { { { ?o <urn:a> ?x } SEQ NOT { ?o <urn:n> ?y } SEQ { ?o <urn:c> ?z } } WITHIN 9 S }"
DEADLINE = "SELECT ?o ?x { { ?o <urn:a> ?x } SEQ NOT { ?o <urn:n> ?y } WITHIN 9 SECONDS }"
SECOND = 1_000_000

Row = tuple[str, str, int, int]
"""The subject's number, the predicate, start and end."""


def rows(count: int) -> list[Row]:
    """Intervals of a few seconds, more than one to an instant."""
    random = Random(3)
    ends = sorted(random.randrange(count // 2) for _ in range(count))
    return [(f"{random.randrange(12)}", random.choice("aanc"), end - random.randrange(4), end) for end in ends]


def events(stream: list[Row]) -> list[Event]:
    return [
        Event(start * SECOND, end * SECOND, ((f"<urn:{o}>", f"<urn:{p}>", f'"{number}"'),))
        for number, (o, p, start, end) in enumerate(stream)
    ]


def by_definition(query: str, stream: list[Row]) -> Iterator[tuple[str, int, int]]:
    """Subject, start and end of each solution."""
    absent = [row for row in stream if row[1] == "n"]

    def is_absent(o: str, after: int, before: int) -> bool:
        return not any(n == o and start > after and end < before for n, _, start, end in absent)

    for o, p, start, end in stream:
        if p != "a":
            continue
        if query == INSIDE and is_absent(o, start, end):
            yield o, start, end
        elif query == DEADLINE and is_absent(o, end, end + LENGTH + 1):
            yield o, start, end + LENGTH
        elif query == GAP:
            for of, kind, begins, ends in stream:
                if (of, kind) == (o, "c") and end < begins and ends - start <= LENGTH and is_absent(o, end, begins):
                    yield o, start, ends


@pytest.mark.parametrize("size", [1, 7, 1000, 10**9])
@pytest.mark.parametrize("query", [INSIDE, GAP, DEADLINE], ids=["inside", "gap", "deadline"])
def test_what_is_absent_is_what_the_definition_says(monkeypatch: pytest.MonkeyPatch, query: str, size: int) -> None:
    """Terms are forgotten now and then, so that keys have other numbers."""
    monkeypatch.setattr(rules, "MOST_TERMS", 64)
    stream = rows(300 if size < 1000 else 1_500)
    engine = Engine(compile(query), executor="columns")
    (executor,) = rule_executors(engine)
    assert executor.reason is None
    found = [m for some in batches(events(stream), size) for m in engine.push_all(Batch(some, some[-1].end).columns)]
    found += engine.close()
    assert [m.end_us for m in found] == sorted(m.end_us for m in found)
    shown = sorted((m["o"].removeprefix("urn:"), m.start_us // SECOND, m.end_us // SECOND) for m in found)
    assert shown == sorted(by_definition(query, stream))


@pytest.mark.parametrize("query", [GAP, DEADLINE], ids=["gap", "deadline"])
def test_what_is_kept_for_absence_does_not_grow(query: str) -> None:
    engine = Engine(compile(query), executor="columns", sweep_every=64)
    kept = []
    for some in batches(events(rows(2_000)), 100):
        engine.push_all(Batch(some, some[-1].end).columns)
        kept.append(engine.counters.goals)
    assert max(kept[10:]) <= 1.25 * max(kept[:10]) + 20
