"""Matches in pieces: together they are the table of all."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from etalis_py import Engine, Event, compile
from etalis_py.executors.columns import executor, piece_limits
from etalis_py.kernel import tabular
from etalis_py.kernel.batch import Batch

SECOND = 1_000_000
ONE = "SELECT ?x ?v WHERE { ?x <urn:p> ?v }"
TWO = "SELECT ?x WHERE { { ?x <urn:p> ?v } SEQ { ?x <urn:q> ?w } } WITHIN 1 SECOND"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns for any batch, a report for every seven events, and pieces of ten matches."""
    monkeypatch.setattr(executor, "ENOUGH", 1)
    monkeypatch.setattr(executor, "ready", lambda: True)
    monkeypatch.setattr(piece_limits, "AT_ONCE", 7)
    monkeypatch.setattr(tabular, "PIECE", 10)


def event(at: int, name: str, predicate: str, value: int) -> Event:
    return Event(at * SECOND, at * SECOND, ((f"<urn:{name}>", f"<urn:{predicate}>", f'"{value}"'),))


def pieces(query: str, events: Sequence[Event]) -> tuple[list[pa.Table], pa.Table, list[list[int]]]:
    """The pieces, the table of all, and the instants of the pieces."""
    matches = Engine(compile(query)).push_all(Batch(events, events[-1].end).columns)
    whole = tabular.of_columns(matches)
    assert whole is not None
    parts = list(tabular.pieces_of_columns(matches))
    tables = [tabular.table_of([part]) for part, _ in parts]
    return tables, tabular.table_of([whole]), [list(map(int, instants)) for _, instants in parts]


def test_pieces_are_the_whole_in_order() -> None:
    tables, whole, instants = pieces(ONE, [event(n // 3, f"x{n % 5}", "p", n % 2) for n in range(200)])
    assert len(tables) > 5
    assert all(len(table) >= 10 for table in tables[:-1])
    assert pa.concat_tables(tables).equals(whole)
    known = [instant for some in instants for instant in some]
    assert known == sorted(known)


def test_equal_matches_of_an_instant_stay_together() -> None:
    events = []
    for n in range(10):
        events += [event(10 * n, "x", "p", value) for value in range(12)]
        events.append(event(10 * n + 1, "x", "q", 0))
    tables, whole, instants = pieces(TWO, [*events, event(100, "x", "q", 0)])
    assert len(tables) > 5
    assert sum(len(set(some)) for some in instants) == 10
    assert len(set(whole.column("id").to_pylist())) == len(whole) == 120
    assert pa.concat_tables(tables).equals(whole)
