"""Times of many matches are written as those of one."""

from __future__ import annotations

import csv
import io
import json

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etalis_py.events.clock import Clock, ClockRender, parse_datetime, render_datetime
from etalis_py.streams.columns.rendering import csv_lines, json_lines
from etalis_py.streams.columns.results import Results
from tests.draws import examples

FIRST, LAST = parse_datetime("0001-01-01T00:00:00Z"), parse_datetime("9999-12-31T23:59:59.999999Z")
TIMES = st.integers(FIRST, LAST) | st.integers(-9_999, 9_999).map(lambda n: n * 100_000) | st.none()


def results(times: list[int | None], clock: Clock) -> Results:
    column = pa.array(times, pa.int64())
    ids = pa.array(["id"] * len(times), pa.string())
    return Results("q", (), (), column, column, ids, None, ClockRender(lambda: clock))


def check(times: list[int | None], clock: Clock) -> None:
    one = results(times, clock)
    expected = [None if t is None else clock.render(t) for t in times]
    assert [json.loads(line)["end"] for line in json_lines(one).splitlines()] == expected
    rows = csv.reader(io.StringIO(csv_lines(one, (), named=False)))
    assert [row[1] for row in rows] == ["" if text is None else str(text) for text in expected]


@given(st.lists(TIMES, min_size=1, max_size=20))
@example([FIRST, LAST])
@example([None, None])
@example([0, 10, 1_000_000, 1_500_000, -1, 60_000_000])
@settings(max_examples=examples(1))
def test_dates(times: list[int | None]) -> None:
    check(times, Clock("datetime"))


@pytest.mark.parametrize("time", [FIRST - 1, LAST + 1, -(2**62), 2**62])
def test_dates_whose_year_has_not_four_digits(time: int) -> None:
    check([0, time], Clock("datetime"))
    assert render_datetime(time) in json_lines(results([time], Clock("datetime")))


def test_numbers() -> None:
    check([0, 1_500_000, None], Clock("integer"))


def test_a_function_that_shows_times_otherwise_is_asked() -> None:
    one = results([0, 1_500_000], Clock("datetime"))
    shown = Results("q", (), (), one.start, one.end, one.ids, None, lambda us: f"at {us}")
    assert [json.loads(line)["end"] for line in json_lines(shown).splitlines()] == ["at 0", "at 1500000"]
