"""The aggregates of long runs: an element costs the same however long the run is, and runs that part do not share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etalis_py import Engine, compile, event
from etalis_py.values.functions.aggregates import Distinct
from tests.engine.judge import in_rows_and_columns
from tests.oracle.traces import at, run

RUNS = "SELECT * {{ {{ {{ ?x :p ?v }} REPEAT 1 OR MORE BY ?x {} AS ({}(?v) AS ?c, COUNT(DISTINCT ?v) AS ?n) }} {} }}"

ENDS = (
    "LONGEST",
    "WHERE (?v >= PREVIOUS(?v)) LONGEST",
    "WHERE (COALESCE(?v >= PREVIOUS(?v, 2), true)) LONGEST",
    "WHERE (?v >= PREVIOUS(?v)) MAXIMAL",
    "WHERE (COALESCE(?v >= PREVIOUS(?v, 2), true)) MAXIMAL",
    "UNTIL { ?x :q ?w }",
    "WHERE (?v >= PREVIOUS(?v)) UNTIL { ?x :q ?w }",
)


@pytest.mark.parametrize("ends", ENDS)
def test_an_element_is_added_as_often_in_a_long_run(ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = RUNS.format(ends, "MAX", "FILTER (?n = 3)")
    assert _added(4 * 50, text, monkeypatch) <= 5 * _added(50, text, monkeypatch)


def _added(elements: int, text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many distinct values accumulators take in, one by one or as a state, over one run of so many elements."""
    taken, add, load = [0], Distinct.add, Distinct.load

    def adding(self: Distinct, value: object, term: object) -> None:
        taken[0] += 1
        add(self, value, term)

    def loading(self: Distinct, state: list[object]) -> None:
        load(self, state)
        taken[0] += len(self._counts)

    with monkeypatch.context() as patched:
        patched.setattr(Distinct, "add", adding)
        patched.setattr(Distinct, "load", loading)
        engine = Engine(compile(text), executor="rows")
        engine.push_all(event(f":a :p {t}", t) for t in range(elements))
        engine.close()
    return taken[0]


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True), max_size=5),
    st.sampled_from(
        (
            *ENDS,
            "",
            "WHERE (SUM(?v) < 5) MAXIMAL",
            "WHERE (SUM(?v) < 5)",
            "WHERE (SUM(?v) < 5) UNTIL { ?x :q ?w }",
            "WHERE (?v > FIRST(?v)) LONGEST",
        )
    ),
    st.sampled_from(("GROUP_CONCAT", "MIN", "SUM", "SAMPLE")),
    st.integers(0, 5),
)
def test_runs_that_part_where_elements_have_one_time(
    instants: list[list[int]], ends: str, aggregate: str, cut: int
) -> None:
    text = RUNS.format(ends, aggregate, "FILTER (?n > 0)")
    events = [at(t, f"a p {v}") for t, values in enumerate(instants, 1) for v in values] + [at(9, "a q 0")]
    rows, columns = in_rows_and_columns(text, *events)
    assert sorted(rows) == sorted(columns) == sorted(run(text, *events))
    first, second = Engine(compile(text)), Engine(compile(text))
    ids = [m.id for m in first.push_all(events[:cut])]
    second.restore(first.snapshot())
    ids += [m.id for m in (*second.push_all(events[cut:]), *second.close())]
    whole = Engine(compile(text))
    assert ids == [m.id for m in (*whole.push_all(events), *whole.close())]
