"""The measured workloads of windows, small: their answers are those of a hand-written loop, or of a store."""

from __future__ import annotations

import pytest

from benchmarks import window_store, windows


@pytest.mark.parametrize("overlap", [1, 10, 100])
def test_the_sliding_average_is_right(overlap: int) -> None:
    measured = windows.average(4_000, overlap, runs=1)
    assert measured.right
    assert measured.evaluations >= 8


def test_the_sliding_average_in_columns_is_right() -> None:
    assert windows.average(8_000, runs=1, in_columns=True).right


@pytest.mark.parametrize("times", [1, 10])
def test_the_query_of_csrbench_is_right(times: int) -> None:
    assert windows.csrbench(times, 6, runs=1).right


def test_a_quad_costs_the_same_whatever_the_overlap() -> None:
    """A window of fifty slides that looked at its content each time would cost a quad fifty times as much."""
    apart, together = windows.average(10_000, 1, runs=3), windows.average(10_000, 50, runs=3)
    assert together.rate > apart.rate / 3


@pytest.mark.parametrize("name", window_store.QUERIES)
def test_a_store_answers_the_same(name: str) -> None:
    found = window_store.compare(name, window_store.observations(6_000))
    assert found.same
    assert found.rows > 20
