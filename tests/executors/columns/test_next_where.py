"""NEXT with a condition on both sides in columns: the pairs, ids and order of rows, for values of every kind."""

from __future__ import annotations

from functools import partial

import pytest

from etalis_py import Engine, compile
from etalis_py.executors.columns import next_where
from tests.draws import length
from tests.engine.judge import agree
from tests.executors.columns import keyed_events
from tests.executors.columns.judge import all_in_columns, same_reports
from tests.executors.columns.keyed_events import MIXED, STREAMS
from tests.oracle.strategies import Case
from tests.oracle.traces import queries

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
drawn = partial(keyed_events.drawn, crowded=(0, 0, 1, 2), mixed=(*MIXED[:4], '"b"', *MIXED[4:]))


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_are_those_of_the_definition(shape: str, stream: str) -> None:
    agree(Case(queries(P + SHAPES[shape]), tuple(drawn(len(shape), 18, stream))), executor="columns")


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_ids_and_order_are_those_of_rows(shape: str, stream: str) -> None:
    """Also where rows and columns take turns, and the goals go from one to the other."""
    all_in_columns(P + SHAPES[shape], [drawn(len(shape), length(120), stream)])


@pytest.mark.parametrize("query", ["?y > ?x", "?x * 2 <= ?y + 1"])
def test_comparisons_are_made_by_the_kernel(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(next_where.NextWhereOperator, "_first_places")
    program = compile(f"{P}SELECT * {{ {{ ?c :p ?x }} NEXT {{ ?c :p ?y FILTER ({query}) }} }}")
    same_reports(lambda name: Engine(program, executor=name), list(drawn(3, length(300), "apart")))


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
