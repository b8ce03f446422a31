"""Aggregates in the WHERE of REPEAT: they range over the run with the new element."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etalis_py import Engine, QueryError, compile, event
from etalis_py.events import Event
from tests.engine.judge import in_rows_and_columns
from tests.oracle.traces import at, run

LOADS = "SELECT ?n {{ {{ ?x :p ?v }} REPEAT 1 OR MORE BY ?x WHERE ({}) {} AS (COUNT(*) AS ?n) }}"


def in_all(query: str, *events: Event) -> list[Any]:
    """The answer of the oracle, which that of each executor must be."""
    expected: list[Any] = run(query, *events)
    rows, columns = in_rows_and_columns(query, *events)
    assert sorted(rows) == sorted(columns) == sorted(expected)
    return rows  # type: ignore[no-any-return]


def series(*values: int) -> list[Event]:
    return [at(t, f"a p {v}") for t, v in enumerate(values, 1)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("SUM(?v) < 10", [("n=3", 1, 4), ("n=1", 4, 4)]),
        ("COUNT(*) < 3", [("n=2", 1, 3), ("n=2", 2, 4), ("n=2", 3, 4)]),
        ("MAX(?v) - MIN(?v) < 3", [("n=3", 1, 4), ("n=1", 4, 4)]),
        ("COUNT(DISTINCT ?v) < 3 && ?v > PREVIOUS(?v)", [("n=2", 1, 3), ("n=2", 2, 4), ("n=2", 3, 4)]),
        ("AVG(?v) < FIRST(?v) + 1", [("n=2", 1, 3), ("n=2", 2, 4), ("n=1", 4, 4)]),
    ],
)
def test_it_sees_the_run_with_the_new_element(condition: str, expected: list[Any]) -> None:
    assert in_all(LOADS.format(condition, "MAXIMAL"), *series(1, 2, 3, 9)) == expected


def test_an_error_in_an_aggregate_ends_the_run() -> None:
    assert in_all(LOADS.format("SUM(?v) < 10", "LONGEST"), at(1, "a p 1"), at(2, "a p b"), at(3, "a p 2")) == [
        ("n=1", 1, 1),
        ("n=1", 2, 2),
        ("n=1", 3, 3),
    ]


@pytest.mark.parametrize("ends", ["", "LONGEST", "MAXIMAL", "UNTIL { ?x :q ?w }"])
def test_with_each_way_to_report(ends: str) -> None:
    assert in_all(LOADS.format("SUM(?v) < 6", ends), *series(1, 2, 2, 1, 4, 5), at(9, "a q 0"))


@given(st.lists(st.integers(0, 4), max_size=9), st.sampled_from(("LONGEST", "MAXIMAL")))
def test_a_count_is_an_upper_bound(values: list[int], ends: str) -> None:
    """``COUNT(*) <= 3`` is what ``REPEAT 1 TO 3`` says."""
    events = [event(f":a :p {v}", t) for t, v in enumerate(values, 1)]
    bound = f"SELECT ?n {{ {{ ?x :p ?v }} REPEAT 1 TO 3 BY ?x {ends} AS (COUNT(*) AS ?n) }}"
    found, wanted = _spans(LOADS.format("COUNT(*) <= 3", ends), events), _spans(bound, events)
    # With TO 3 a run is over at its third element, with a condition only at the next one.
    assert {(start, n) for start, _, n in found} == {(start, n) for start, _, n in wanted}


def _spans(text: str, events: list[Event]) -> set[Any]:
    engine = Engine(compile(text))
    return {(m.start_us, m.end_us, m["n"]) for m in [*engine.push_all(events), *engine.close()]}


@pytest.mark.parametrize("cut", range(7))
def test_a_snapshot_anywhere_changes_nothing(cut: int) -> None:
    text = LOADS.format("SUM(?v) < 6", "MAXIMAL")
    events = [event(f":a :p {v}", t) for t, v in enumerate((1, 2, 2, 1, 4, 5), 1)]
    first, second = Engine(compile(text)), Engine(compile(text))
    found = {(m.start_us, m.end_us, m["n"]) for m in first.push_all(events[:cut])}
    second.restore(first.snapshot())
    found |= {(m.start_us, m.end_us, m["n"]) for m in [*second.push_all(events[cut:]), *second.close()]}
    assert found == _spans(text, events)


def test_queries_that_differ_in_the_limit_answer_as_each_alone() -> None:
    texts = [LOADS.format(f"SUM(?v) < {k}", "LONGEST") for k in range(3, 9)]
    events = [event(f":a :p {t * 7 % 4}", t) for t in range(1, 25)]
    engine = Engine(compile(texts))
    found = {(m.query, m.start_us, m.end_us, m["n"]) for m in [*engine.push_all(events), *engine.close()]}
    assert found == {(f"q{i}", *span) for i, text in enumerate(texts, 1) for span in _spans(text, events)}


def test_explain_and_why_not_say_it() -> None:
    program = compile(LOADS.format("SUM(?v) < 10 && COUNT(*) < 5", "LONGEST"))
    text = str(program.explain())
    assert "SUM(Y1) < 10, COUNT(*) < 5" in text
    query = compile("SELECT ?n { { ?x :p ?v } REPEAT 2 BY ?x WHERE (SUM(?v) + COUNT(*) < 3) AS (COUNT(*) AS ?n) }")
    shown = str(query.why_not([event(":a :p 2", 1), event(":a :p 2", 2)]))
    assert "WHERE (SUM(?v) + COUNT(*) < 3) in REPEAT 2 BY ?x" in shown


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("SUM(PREVIOUS(?v)) < 3", r"PREVIOUS\(\) stands inside an aggregate"),
        ("SUM(COUNT(?v)) < 3", "COUNT stands inside an aggregate"),
        ("SUM(?w) < 3", "w is not bound by the group that is repeated"),
    ],
)
def test_what_is_refused(condition: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        compile(LOADS.format(condition, ""))
