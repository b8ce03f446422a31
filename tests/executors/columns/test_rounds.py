"""Rules that feed each other and keep nothing, in columns: by the definition, and as rows do it."""

from __future__ import annotations

from random import Random
from typing import Any, Literal

import pytest

from etalis_py import Engine, Event, LimitExceeded, Limits, compile
from etalis_py.executors.columns import rules
from etalis_py.kernel.batch import Batch
from tests.executors.columns.judge import agree, batches, reason_for_rows

SECOND = 1_000_000
BOTH_WAYS = "CONSTRUCT { ?y <urn:p> ?x } WHERE { ?x <urn:p> ?y }"
PROGRAMS = {
    "both ways": [BOTH_WAYS],
    "the same": ["CONSTRUCT { ?x <urn:p> ?y } WHERE { ?x <urn:p> ?y }"],
    "its ends": ["CONSTRUCT { ?x <urn:p> ?x . ?y <urn:p> ?y } WHERE { ?x <urn:p> ?y }"],
    "one that is not read": ["CONSTRUCT { ?x <urn:p> <urn:0> } WHERE { ?x <urn:p> ?y }"],
    "inverses": [
        "CONSTRUCT { ?y <urn:q> ?x } WHERE { ?x <urn:p> ?y }",
        "CONSTRUCT { ?y <urn:p> ?x } WHERE { ?x <urn:q> ?y }",
    ],
    "in a circle": [
        "CONSTRUCT { ?x <urn:q> ?y } WHERE { ?x <urn:p> ?y }",
        "CONSTRUCT { ?x <urn:r> ?y } WHERE { ?x <urn:q> ?y FILTER (?x != ?y) }",
        "CONSTRUCT { ?y <urn:p> ?x } WHERE { ?x <urn:r> ?y }",
    ],
    "either": ["CONSTRUCT { ?y <urn:p> ?x . ?x <urn:q> ?y } WHERE { { ?x <urn:p> ?y } UNION { ?y <urn:q> ?x } }"],
    "any predicate": ["CONSTRUCT { ?p <urn:q> ?x } WHERE { ?x ?p ?y }"],
    "a count": ["CONSTRUCT { ?x <urn:n> ?m } WHERE { ?x <urn:n> ?n FILTER (?n < 5) BIND (?n + 1 AS ?m) }"],
    "through a stream": [
        "REGISTER STREAM <urn:s> AS CONSTRUCT { ?y <urn:p> ?x } WHERE { ?x <urn:q> ?y }",
        "CONSTRUCT { ?x <urn:q> ?y } WHERE { STREAM <urn:s> { ?x <urn:p> ?y } }",
    ],
}
READERS = [
    "SELECT ?x ?y WHERE { ?x <urn:p> ?y }",
    "SELECT ?x ?y WHERE { { ?x <urn:p> ?z } SEQ { ?z <urn:p> ?y } }",
    "SELECT ?s ?p ?o WHERE { ?s ?p ?o }",
    "SELECT (COUNT(*) AS ?n) WHERE { ?x <urn:q> ?y }",
]


def events(count: int) -> list[Event]:
    """Some in one instant, some that last, some of two triples, some in a stream, some that end in a literal."""
    random = Random(3)
    stream = []
    for n in range(count):
        end = n // 2 * SECOND
        triples = []
        for _ in range(random.choice((1, 1, 2))):
            p = random.choice(("<urn:p>", "<urn:q>", "<urn:r>", "<urn:n>"))
            value = random.choice((f"<urn:{random.randrange(4)}>", f"<urn:{random.randrange(4)}>", '"text"'))
            number = f'"{random.randrange(4)}"^^<http://www.w3.org/2001/XMLSchema#integer>'
            triples.append((f"<urn:{random.randrange(4)}>", p, number if p == "<urn:n>" else value))
        stream.append(Event(end - random.randrange(3) * SECOND, end, tuple(triples), random.choice(("", "<urn:s>"))))
    return stream


@pytest.mark.parametrize("name", PROGRAMS)
def test_they_report_what_rows_report(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(rules, "MOST_TERMS", 16)
    program = compile([*PROGRAMS[name], *READERS])

    def making(executor: Any) -> Engine:
        return Engine(program, executor=executor)

    assert reason_for_rows(making("columns")) is None
    assert agree(making, events(40), (1, 7, 1000)) is None


@pytest.mark.parametrize("size", [7, 10**9])
def test_both_ways_are_what_the_definition_says(size: int) -> None:
    stream = [event for event in events(60) if all(p == "<urn:p>" for _, p, _ in event.triples)]
    engine = Engine([BOTH_WAYS, "SELECT ?x ?y { ?x <urn:p> ?y }"], executor="columns")
    matches = [m for some in batches(stream, size) for m in engine.push_all(Batch(some, some[-1].end).columns)]
    matches += engine.close()
    there = {(s, o, e.start, e.end) for e in stream for s, _, o in e.triples}
    expected = there | {(o, s, start, end) for s, o, start, end in there if o.startswith("<")}
    actual = [(m.bindings["x"], m.bindings["y"], m.start_us, m.end_us) for m in matches if m.query == "q2"]
    assert len(actual) == len(set(actual))
    assert set(actual) == expected


def test_what_does_not_end_is_refused_as_in_rows() -> None:
    endless = "CONSTRUCT { ?x <urn:n> ?m } WHERE { ?x <urn:n> ?n BIND (?n + 1 AS ?m) }"
    one = ("<urn:a>", "<urn:n>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>')
    stream = [Event(t, t, (one,)) for t in range(3)]
    messages = []
    executors: tuple[Literal["rows", "columns"], ...] = ("rows", "columns")
    for executor in executors:
        engine = Engine(endless, executor=executor, limits=Limits(rounds=20))
        with pytest.raises(LimitExceeded) as refused:
            engine.push_all(Batch(stream, stream[-1].end).columns)
        messages.append(str(refused.value))
    assert messages[0] == messages[1]
    assert "did not end within 20 rounds" in messages[0]
