"""NEXT with a condition on both sides in columns: the pairs, ids and order of rows, for values of every kind."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from etalis_py import Engine, Event, compile
from etalis_py.executors.columns import next_where
from tests.engine.judge import agree
from tests.executors.columns.judge import reason_for_rows, same_reports
from tests.oracle.strategies import Case
from tests.oracle.traces import queries

SECOND = 1_000_000
P = "PREFIX : <urn:x:> "
SHAPES = {
    "higher": "SELECT * { { ?c :p ?x } NEXT { ?c :p ?y FILTER (?y > ?x) } }",
    "equal": "SELECT * { { ?c :p ?x } NEXT { ?c :q ?y FILTER (?y = ?x) } }",
    "other": "SELECT * { { ?c :p ?x } NEXT { ?c :p ?y FILTER (STR(?y) != STR(?x)) } }",
    "calculated": "SELECT * { { ?c :p ?x } NEXT { ?c :q ?y FILTER (?y >= ?x * 2 && ?y < 4) } }",
    "of any key": "SELECT * { { ?c :p ?x } NEXT { ?d :q ?y FILTER (?y > ?x && ?c != ?d) } }",
    "of the left alone": "SELECT * { { ?c :p ?x } NEXT { ?c :p ?y FILTER (?x < 2) } }",
    "within": "SELECT * { { ?c :p ?x } NEXT { ?c :p ?y FILTER (?y > ?x) } } WITHIN 4 s",
    "filtered": "SELECT * { { ?c :p ?x } NEXT { ?c :p ?y FILTER (?y > ?x) } FILTER (?y = 3) }",
    "three": "SELECT * { { ?c :p ?x } NEXT { ?c :p ?y FILTER (?y > ?x) } NEXT { ?c :p ?z FILTER (?z < ?y) } }",
    "below": "SELECT * { { { ?c :p ?x } NEXT { ?c :p ?y FILTER (?y > ?x) } } SEQ { ?c :q ?y } } WITHIN 9 s",
    "derived": "CONSTRUCT { ?c :up ?y } { { ?c :p ?x } NEXT { ?c :p ?y FILTER (?y > ?x) } } "
    "SELECT * { { ?c :up ?y } SEQ { ?c :q ?y } }",
}
STREAMS = ("apart", "crowded", "lasting", "mixed")
"""One event at a time; some of a key at once; some that last; values of all kinds."""
XSD = "http://www.w3.org/2001/XMLSchema#"
MIXED = (f'"1"^^<{XSD}integer>', f'"1.0"^^<{XSD}decimal>', f'"2.5"^^<{XSD}double>', '"a"', '"b"', "<urn:x:i>")


def drawn(seed: int, size: int, stream: str) -> Iterator[Event]:
    draw, t = random.Random(seed), 10
    for _ in range(size):
        t += draw.choice((0, 0, 1, 2) if stream in ("crowded", "lasting") else (1, 1, 2, 4))
        start = t - draw.choice((0, 0, 1, 3)) if stream == "lasting" else t
        number = draw.choice(MIXED) if stream == "mixed" else f'"{draw.randint(1, 3)}"^^<{XSD}integer>'
        triple = (f"<urn:x:s{draw.randrange(3)}>", f"<urn:x:{draw.choice('pppq')}>", number)
        yield Event(start * SECOND, t * SECOND, (triple,), "", "")


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_are_those_of_the_definition(shape: str, stream: str) -> None:
    agree(Case(queries(P + SHAPES[shape]), tuple(drawn(len(shape), 18, stream))), executor="columns")


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_ids_and_order_are_those_of_rows(shape: str, stream: str) -> None:
    """Also where rows and columns take turns, and the goals go from one to the other."""
    program = compile(P + SHAPES[shape])
    assert reason_for_rows(Engine(program, executor="columns")) is None
    same_reports(lambda name: Engine(program, executor=name), list(drawn(len(shape), 120, stream)))


def test_pairs_are_tested_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_where, "AT_ONCE", 8)
    program = compile(P + SHAPES["higher"])
    same_reports(lambda name: Engine(program, executor=name), list(drawn(3, 120, "crowded")))


@pytest.mark.parametrize(
    ("query", "policy", "why"),
    [
        ("{ ?c :p ?x } NEXT { ?c :p ?y FILTER (?y > ?x) }", "recent", "a NEXT that consumes"),
        (
            "{ ?c :p ?x } NEXT { ?c :p ?y FILTER (?y > ?x || RAND() < 0.5) }",
            "unrestricted",
            "a NEXT with a condition on both sides",
        ),
    ],
)
def test_others_are_those_of_rows(query: str, policy: str, why: str) -> None:
    text = str(compile(f"{P}SELECT ?x {{ {query} }}", policy=policy).explain())  # type: ignore[arg-type]
    assert why in text


def test_explain_does_not_say_row_by_row() -> None:
    assert "row by row" not in str(compile(P + SHAPES["higher"]).explain())
