"""PREVIOUS(?p, n) in the WHERE of REPEAT: the value n elements back, unbound where there is none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etalis_py import Engine, QueryError, compile, event
from etalis_py.events import Event
from tests.engine.judge import in_rows_and_columns
from tests.oracle.traces import at, run

RUNS = "SELECT ?n {{ {{ ?x :p ?v }} REPEAT {} BY ?x WHERE ({}) {} AS (COUNT(*) AS ?n) }}"
ENDS = ("", "LONGEST", "MAXIMAL", "UNTIL { ?x :q ?w }", "GAP 2 SECONDS MAXIMAL", "NOT { ?x :r ?w } LONGEST")
CONDITIONS = (
    "COALESCE(?v > PREVIOUS(?v, 2), true)",
    "COALESCE(?v > PREVIOUS(?v, 3), ?v >= PREVIOUS(?v))",
    "COALESCE(?v != PREVIOUS(?v, 2) && PREVIOUS(?v) >= PREVIOUS(?v, 3), true)",
    "COALESCE(PREVIOUS(?v, 2), 3) > ?v",
    "COALESCE(?v != PREVIOUS(?v, 2), true) && ?v >= FIRST(?v)",
    "COALESCE(SUM(?v) < 4 * PREVIOUS(?v, 2), true)",
)


def in_all(query: str, *events: Event) -> list[Any]:
    """The answer of the oracle, which that of each executor must be."""
    expected: list[Any] = run(query, *events)
    rows, columns = in_rows_and_columns(query, *events)
    assert sorted(rows) == sorted(columns) == sorted(expected)
    return rows  # type: ignore[no-any-return]


def series(*values: int) -> list[Event]:
    return [at(t, f"a p {v}") for t, v in enumerate(values, 1)]


def spans(text: str, events: list[Event]) -> list[Any]:
    engine = Engine(compile(text))
    return [(m.start_us, m.end_us, m["n"]) for m in [*engine.push_all(events), *engine.close()]]


def test_it_is_the_value_two_elements_back() -> None:
    above = RUNS.format(3, "COALESCE(?v > PREVIOUS(?v, 2), true)", "")
    assert in_all(above, *series(1, 5, 2, 6, 3, 1, 4)) == [("n=3", 1, 3), ("n=3", 2, 4), ("n=3", 3, 5), ("n=3", 5, 7)]


def test_it_looks_no_further_than_the_run() -> None:
    """At 4 the run from 3 is one element long: what came before it is none of its elements."""
    query = RUNS.format("2 OR MORE", "COALESCE(?v > PREVIOUS(?v, 2), ?v > PREVIOUS(?v))", "MAXIMAL")
    assert in_all(query, *series(9, 1, 2)) == [("n=2", 2, 3)]


def test_it_is_unbound_at_the_second_element_and_a_warning_says_so() -> None:
    query = RUNS.format("2 OR MORE", "?v > PREVIOUS(?v) && ?v > PREVIOUS(?v, 2)", "")
    assert in_all(query, *series(1, 2, 3, 4)) == []
    (warning,) = compile(query).warnings
    assert warning.message == "PREVIOUS(?v, 2) is unbound at the second element, so no run has more than one"
    assert warning.hint == "let the first steps pass: COALESCE(?v > PREVIOUS(?v, 2), true)"


@pytest.mark.parametrize("condition", CONDITIONS[:5])
def test_a_condition_that_lets_the_first_steps_pass_has_no_warning(condition: str) -> None:
    assert not compile(RUNS.format("2 OR MORE", condition, "")).warnings


def test_previous_1_is_previous() -> None:
    one, plain = (RUNS.format("2 OR MORE", f"?v > PREVIOUS(?v{n})", "LONGEST") for n in (", 1", ""))
    assert compile(one).compilation.queries[0].syntax == compile(plain).compilation.queries[0].syntax


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_with_each_way_to_report(condition: str, ends: str) -> None:
    values = (1, 5, 2, 6, 3, 1, 4, 4, 2, 5, 6, 1)
    others = [at(6, "a q 0"), at(8, "a r 0"), at(13, "a q 1")]
    events = sorted([*series(*values), *others], key=lambda e: e.end)
    in_all(RUNS.format("1 OR MORE", condition, ends), *events)
    in_all(RUNS.format("2 TO 4", condition, ends), *events)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from("ab"), st.integers(1, 4)), max_size=8),
    st.sampled_from(CONDITIONS),
    st.sampled_from(ENDS[:3]),
)
def test_drawn_elements_at_one_time(drawn: list[tuple[int, str, int]], condition: str, ends: str) -> None:
    """Elements that end together are all next, so that a run has several that may precede it."""
    events = [at(t, f"{s} p {v}") for t, s, v in sorted(drawn)]
    in_all(RUNS.format("2 OR MORE", condition, ends), *events)


@pytest.mark.parametrize("ends", ENDS[1:3])
@pytest.mark.parametrize("back", [2, 3, 5])
def test_a_key_keeps_a_number_of_runs_that_does_not_grow(ends: str, back: int) -> None:
    engine = Engine(RUNS.format("1 OR MORE", f"COALESCE(?v > PREVIOUS(?v, {back}), true)", ends))
    sizes = []
    for t in range(1, 200):
        engine.push(event(f":a :p {t}", t))
        if t in (50, 199):
            sizes.append(len(engine.snapshot()))
    assert sizes[1] < sizes[0] + 40


@pytest.mark.parametrize("cut", range(9))
@pytest.mark.parametrize("ends", ENDS[:3])
def test_a_snapshot_anywhere_changes_nothing(ends: str, cut: int) -> None:
    text = RUNS.format("1 OR MORE", CONDITIONS[1], ends)
    events = [event(f":a :p {v}", t) for t, v in enumerate((1, 5, 2, 6, 3, 1, 4, 4), 1)]
    first, second = Engine(compile(text)), Engine(compile(text))
    found = [(m.start_us, m.end_us, m["n"]) for m in first.push_all(events[:cut])]
    second.restore(first.snapshot())
    found += [(m.start_us, m.end_us, m["n"]) for m in [*second.push_all(events[cut:]), *second.close()]]
    assert found == spans(text, events)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("FIRST(?v, 2)", "FIRST takes a variable alone"),
        ("PREVIOUS(?v, 0)", "1 to 1,000 elements back, not 0"),
        ("PREVIOUS(?v, 1001)", "1 to 1,000 elements back, not 1001"),
        ("PREVIOUS(?v, ?x)", "expected a whole number"),
    ],
)
def test_a_slip_is_refused(value: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        compile(RUNS.format(3, f"?v > {value}", ""))
