"""SUM and AVG of doubles in columns are exact, and rounded once, as in rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etalis_py import Engine, Event
from etalis_py.executors.columns.arguments import Summands, Unfit, results_of, spelled_doubles, summands_of
from etalis_py.executors.columns.terms import Terms
from etalis_py.values.codec import encode
from tests.draws import examples

XSD = "http://www.w3.org/2001/XMLSchema#"
PRICES = st.floats(-1e4, 1e4).map(lambda x: round(x, 2))
NEAR = st.floats(-1e3, 1e3, allow_subnormal=False).filter(lambda x: not 0 < abs(x) < 1e-5)


def summed(values: list[float]) -> Summands:
    terms = Terms()
    ids = terms.append([encode(value) for value in values])
    return summands_of(terms, ids, np.ones(len(ids), np.bool_))


def result(values: list[float], *, average: bool) -> str:
    summands = summed(values)
    totals = [part.sum(keepdims=True) for part in summands.parts]
    return str(results_of(summands, totals, np.array([len(values)]), average)[0].as_py())


@given(st.lists(PRICES | NEAR, min_size=1, max_size=60))
@settings(max_examples=examples(1))
@example([0.1] * 10)
@example([-0.0])
@example([2.0**60, 2.0**-20, -(2.0**60)])
@example([1e9, 0.1, -1e9])
def test_a_sum_is_the_double_nearest_to_the_exact_one(values: list[float]) -> None:
    assert result(values, average=False) == encode(math.fsum(values))
    assert result(values, average=True) == encode(math.fsum(values) / len(values))


@given(st.lists(st.floats(allow_nan=False) | PRICES, max_size=40))
@settings(max_examples=examples(1))
@example([0.0, -0.0, 1.0, 10.0, 120.0, 0.001, -0.5, 1e-7, 12.5])
@example([1e21, 1e22, 123456789.125, 5e-324, -1.7976931348623157e308, 2.0**-1022, math.inf, -math.inf])
def test_doubles_are_spelled_as_one_by_one(values: list[float]) -> None:
    assert spelled_doubles(np.array(values, np.float64)).to_pylist() == [encode(value) for value in values]


@pytest.mark.parametrize("values", [[1e15, 0.1], [1e300, 1.0], [1.0, 5e-324], [float("inf"), 1.0], [float("nan")]])
def test_what_does_not_fit_is_left_to_rows(values: list[float]) -> None:
    with pytest.raises(Unfit):
        summed(values)


WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE PT3S STEP PT2S] { WINDOW :w { ?k :v ?v } }"
QUERIES = [
    "SELECT ?k (AVG(?v) AS ?m) { ?k :v ?v } WITHIN 3 s GROUP BY ?k",
    "SELECT (SUM(?v) AS ?s) (COUNT(*) AS ?n) (AVG(?v) AS ?m) { ?k :v ?v } WITHIN 5 EVENTS",
    "SELECT ?k (SUM(DISTINCT ?v) AS ?s) { ?k :v ?v } WITHIN 4 s GROUP BY ?k HAVING (SUM(DISTINCT ?v) > 0.5)",
    f"SELECT (SUM(?v) AS ?s) (AVG(?v) AS ?m) {WINDOW}",
    f"SELECT ?k (AVG(?v) AS ?m) {WINDOW} GROUP BY ?k",
    "SELECT ?k (AVG(?v * 2) AS ?m) (MAX(?v) AS ?most) { ?k :v ?v } WITHIN 3 s GROUP BY ?k",
]


def event_of(at: int, key: str, value: Any) -> Event:
    term = encode(value) if isinstance(value, float) else f'"{value}"^^<{XSD}integer>'
    triple = (f"<http://example.org/{key}>", "<http://example.org/v>", term)
    return Event(at * 1_000_000, at * 1_000_000, (triple,), "<http://example.org/s>")


@pytest.mark.parametrize("query", QUERIES)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ab"), PRICES | NEAR | st.just(float("inf")) | st.just(7))),
    st.integers(1, 6),
)
@settings(max_examples=examples(0.3))
def test_sliding_sums_are_those_of_rows(query: str, steps: list[tuple[int, str, Any]], size: int) -> None:
    events, at = [], 0
    for step, key, value in steps:
        at += step
        events.append(event_of(at, key, value))
    answers = []
    for executor in ("rows", "columns"):
        engine = Engine(query, executor=executor)  # type: ignore[arg-type]
        found = [m for i in range(0, len(events), size) for m in engine.push_all(events[i : i + size])]
        answers.append(sorted(m.id for m in [*found, *engine.close()]))
    assert answers[0] == answers[1]


@pytest.mark.filterwarnings("error")
def test_doubles_that_are_too_far_apart_are_left_to_rows_without_a_word() -> None:
    with pytest.raises(Unfit):
        summed([1e300, 5e-324])
