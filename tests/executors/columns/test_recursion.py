"""A rule that feeds itself through one join, in columns: by the definition, and as rows do it."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Literal

import pytest

from etalis_py import Engine, Event, LimitExceeded, Limits, compile
from etalis_py.executors.columns import rules
from etalis_py.kernel.batch import Batch
from tests.executors.columns.judge import agree, batches, rule_executors

FIRST = "CONSTRUCT { ?x <urn:tc> ?y } WHERE { ?x <urn:e> ?y }"
THROUGH = {
    "the left of SEQ": "CONSTRUCT { ?x <urn:tc> ?z } WHERE { { ?x <urn:tc> ?y } SEQ { ?y <urn:e> ?z } }",
    "the right of SEQ": "CONSTRUCT { ?x <urn:tc> ?z } WHERE { { ?x <urn:e> ?y } SEQ { ?y <urn:tc> ?z } }",
    "both of SEQ": "CONSTRUCT { ?x <urn:tc> ?z } WHERE { { ?x <urn:tc> ?y } SEQ { ?y <urn:tc> ?z } }",
    "one of AND": "CONSTRUCT { ?x <urn:tc> ?z } WHERE { ?x <urn:tc> ?y . ?y <urn:e> ?z }",
    "both of AND": "CONSTRUCT { ?x <urn:tc> ?z } WHERE { ?x <urn:tc> ?y . ?y <urn:tc> ?z }",
    "WITHIN": "CONSTRUCT { ?x <urn:tc> ?z } WHERE { { ?x <urn:tc> ?y } SEQ { ?y <urn:e> ?z } } WITHIN 4 SECONDS",
    "a subject": "CONSTRUCT { ?z <urn:tc> ?x } WHERE { { ?x <urn:tc> ?y } SEQ { ?y <urn:e> ?z } }",
    "a constant": "CONSTRUCT { <urn:1> <urn:tc> ?z } WHERE { <urn:1> <urn:tc> ?y . ?y <urn:e> ?z }",
    "what is tested": "CONSTRUCT { ?z <urn:tc> ?y } WHERE { <urn:1> <urn:tc> ?y . ?y <urn:e> ?z }",
}
SECOND = 1_000_000


def edges(count: int) -> list[Event]:
    """Some in one instant, some that last, some that end in a literal."""
    random = Random(5)
    stream = []
    for n in range(count):
        end = n // 2 * SECOND
        target = '"text"' if random.randrange(9) == 0 else f"<urn:{random.randrange(7)}>"
        triple = f"<urn:{random.randrange(7)}>", random.choice(("<urn:e>", "<urn:e>", "<urn:tc>")), target
        stream.append(Event(end - random.randrange(3) * SECOND, end, (triple,)))
    return stream


@pytest.mark.parametrize("form", THROUGH)
def test_they_report_what_rows_report(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setattr(rules, "MOST_TERMS", 16)
    program = compile([FIRST, THROUGH[form], "SELECT ?x ?y { ?x <urn:tc> ?y }"])
    stream = edges(24)
    assert agree(lambda executor: Engine(program, executor=executor), stream, (1, 7, 1000)) is None  # type: ignore[arg-type]


def paths(stream: list[Event]) -> Iterator[tuple[str, str, int, int]]:
    """The least relation: edges, and paths that have ended when an edge begins that goes on from them."""
    known = {(s, o, e.start, e.end) for e in stream for s, p, o in e.triples if p == "<urn:e>"}
    waiting = list(known)
    while waiting:
        x, y, start, end = waiting.pop()
        for event in stream:
            for s, p, o in event.triples:
                longer = x, o, start, event.end
                if (s, p) == (y, "<urn:e>") and end < event.start and longer not in known:
                    known.add(longer)
                    waiting.append(longer)
    yield from known


@pytest.mark.parametrize("size", [7, 10**9])
def test_a_closure_is_what_the_definition_says(size: int) -> None:
    stream = [event for event in edges(60) if event.triples[0][1] == "<urn:e>"]
    engine = Engine(compile([FIRST, THROUGH["the left of SEQ"]]), executor="columns")
    assert rule_executors(engine)[0].reason is None
    found = [m for some in batches(stream, size) for m in engine.push_all(Batch(some, some[-1].end).columns)]
    found += engine.close()
    derived = {(s, o, m.start_us, m.end_us) for m in found for s, _, o in m.triples or ()}
    assert derived == set(paths(stream))


@pytest.mark.parametrize("form", ["one of AND", "the left of SEQ"])
def test_an_instant_with_too_many_pairs_is_refused_as_in_rows(form: str) -> None:
    stream = [Event(t, t, tuple((f"<urn:{t}>", "<urn:e>", f"<urn:{t + 1}>") for _ in "a")) for t in range(12)]
    executors: tuple[Literal["rows", "columns"], ...] = ("rows", "columns")
    for executor in executors:
        engine = Engine(compile([FIRST, THROUGH[form]]), executor=executor, limits=Limits(derivations=5))
        with pytest.raises(LimitExceeded, match="more than 5 solutions of query q2 in one instant"):
            engine.push_all(Batch(stream, stream[-1].end).columns)
