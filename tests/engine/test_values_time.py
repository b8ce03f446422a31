"""DateTimes, dates, times and durations: order, arithmetic, the calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from etalis_rules.calendar import DAY, civil_from_days, days_from_civil
from etalis_rules.terms import XSD
from hypothesis import given
from hypothesis import strategies as st

from etalis_py.values import (
    Duration,
    SparqlError,
    add,
    add_months,
    compare_span,
    decode,
    div,
    encode,
    eq,
    le,
    lt,
    mul,
    neg,
    shift,
    sub,
    within,
)

ERROR = "error"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def value(text: str) -> Any:
    lexical, _, name = text.partition("^^")
    return decode(f'"{lexical}"^^<{XSD}{name}>')


def us(text: str) -> int:
    return value(f"{text}T00:00:00Z^^dateTime").us  # type: ignore[no-any-return]


def attempt(operation: Any, *arguments: Any) -> Any:
    try:
        return operation(*arguments)
    except SparqlError:
        return ERROR


@pytest.mark.parametrize(
    ("left", "right", "equal", "less"),
    [
        ("2011-01-01T00:00:00Z^^dateTime", "2011-01-01T01:00:00+01:00^^dateTime", True, False),
        ("2011-01-01T00:00:00^^dateTime", "2011-01-01T00:00:00Z^^dateTime", True, False),
        ("2011-01-01T00:00:00^^dateTime", "2011-01-01T00:00:00.5^^dateTime", False, True),
        ("-0001-01-01T00:00:00Z^^dateTime", "0001-01-01T00:00:00Z^^dateTime", False, True),
        ("2006-08-23^^date", "2006-08-23^^date", True, False),
        ("2006-08-23Z^^date", "2006-08-23+00:00^^date", True, False),
        ("2006-08-23^^date", "2006-08-23Z^^date", ERROR, ERROR),
        ("2006-08-23^^date", "2006-08-24Z^^date", False, True),
        ("2006-08-23+12:00^^date", "2006-08-22-12:00^^date", True, False),
        ("21:30:00+10:30^^time", "06:00:00-05:00^^time", True, False),
        ("24:00:00+01:00^^time", "00:00:00+01:00^^time", True, False),
        ("12:00:00^^time", "12:00:00Z^^time", ERROR, ERROR),
        ("2006-08-23^^date", "2006-08-23T00:00:00^^dateTime", False, ERROR),
        ("P1Y^^duration", "P12M^^yearMonthDuration", True, False),
        ("P1D^^dayTimeDuration", "PT24H^^duration", True, False),
        ("P1M^^duration", "P30D^^duration", False, ERROR),
        ("P1M^^duration", "P27D^^duration", False, False),
        ("P1M^^duration", "P32D^^duration", False, True),
        ("P1Y^^duration", "P364D^^duration", False, False),
        ("P1Y^^duration", "P365D^^duration", False, ERROR),
        ("P5M^^duration", "P153D^^duration", False, ERROR),
        ("P5M^^duration", "P154D^^duration", False, True),
        ("2006^^gYear", "2006^^gYear", True, ERROR),
        ("2006^^gYear", "2007^^gYear", ERROR, ERROR),
    ],
)
def test_order(left: str, right: str, equal: object, less: object) -> None:
    a, b = value(left), value(right)
    assert attempt(eq, a, b) == equal
    assert attempt(eq, b, a) == equal
    assert attempt(lt, a, b) == less
    if less is not ERROR:
        assert le(a, b) == (less or equal)
        assert lt(b, a) == (not less and not equal)


@pytest.mark.parametrize(
    ("left", "operation", "right", "result"),
    [
        ("2011-01-31T10:00:00Z^^dateTime", add, "P1M^^duration", "2011-02-28T10:00:00Z^^dateTime"),
        ("2012-01-31T10:00:00+14:00^^dateTime", add, "P1M^^duration", "2012-02-29T10:00:00+14:00^^dateTime"),
        ("2011-03-31T00:00:00^^dateTime", sub, "P1M^^duration", "2011-02-28T00:00:00^^dateTime"),
        ("PT1.5S^^duration", add, "1970-01-01T00:00:00Z^^dateTime", "1970-01-01T00:00:01.5Z^^dateTime"),
        ("2000-10-30T06:12:00-05:00^^dateTime", sub, "1999-11-28T09:00:00Z^^dateTime", "P337DT2H12M^^dayTimeDuration"),
        ("2000-10-30^^date", sub, "1999-11-28^^date", "P337D^^dayTimeDuration"),
        ("2000-10-30^^date", add, "P2DT2H30M^^dayTimeDuration", "2000-11-01^^date"),
        ("2000-02-29-05:00^^date", sub, "P1Y^^duration", "1999-02-28-05:00^^date"),
        ("23:12:00+03:00^^time", add, "P1DT3H15M^^dayTimeDuration", "02:27:00+03:00^^time"),
        ("08:20:00-05:00^^time", sub, "P1DT3H15M^^dayTimeDuration", "05:05:00-05:00^^time"),
        ("P2DT12H5M^^dayTimeDuration", add, "P5DT12H^^dayTimeDuration", "P8DT5M^^dayTimeDuration"),
        ("P2Y11M^^yearMonthDuration", sub, "P3Y3M^^yearMonthDuration", "-P4M^^yearMonthDuration"),
        ("P1M^^duration", add, "P1D^^duration", "P1M1D^^duration"),
        ("P1M^^duration", sub, "P1D^^duration", ERROR),
        ("12:00:00^^time", add, "P1M^^duration", ERROR),
        ("2000-01-01T00:00:00Z^^dateTime", add, "2000-01-01T00:00:00Z^^dateTime", ERROR),
        ("2000-01-01T00:00:00Z^^dateTime", add, "1^^integer", ERROR),
        ("P1D^^duration", sub, "2000-01-01T00:00:00Z^^dateTime", ERROR),
        ("PT2H10M^^dayTimeDuration", mul, "2.1^^double", "PT4H33M^^dayTimeDuration"),
        ("2.3^^decimal", mul, "P2Y11M^^yearMonthDuration", "P6Y9M^^yearMonthDuration"),
        ("P1D^^duration", mul, "NaN^^double", ERROR),
        ("P1DT2H30M10.5S^^dayTimeDuration", div, "1.5^^decimal", "PT17H40M7S^^dayTimeDuration"),
        ("P2Y11M^^yearMonthDuration", div, "1.5^^decimal", "P1Y11M^^yearMonthDuration"),
        ("P1D^^duration", div, "INF^^double", "PT0S^^dayTimeDuration"),
        ("P1D^^duration", div, "0^^integer", ERROR),
        ("P3Y4M^^yearMonthDuration", div, "-P1Y4M^^yearMonthDuration", "-2.5^^decimal"),
        ("P1D^^duration", div, "PT16H^^duration", "1.5^^decimal"),
        ("P1M^^yearMonthDuration", div, "3^^integer", "P0M^^yearMonthDuration"),
        ("P1M^^yearMonthDuration", div, "INF^^double", "P0M^^yearMonthDuration"),
        ("P1M^^yearMonthDuration", mul, "0.5^^decimal", "P1M^^yearMonthDuration"),
        ("P0M^^yearMonthDuration", mul, "2^^integer", "P0M^^yearMonthDuration"),
        ("P1Y^^yearMonthDuration", sub, "P12M^^yearMonthDuration", "P0M^^yearMonthDuration"),
        ("PT1H^^dayTimeDuration", sub, "PT60M^^dayTimeDuration", "PT0S^^dayTimeDuration"),
        ("P1D^^duration", div, "P1M^^duration", ERROR),
        ("P1D^^duration", div, "PT0S^^duration", ERROR),
    ],
)
def test_arithmetic(left: str, operation: Any, right: str, result: str) -> None:
    computed = attempt(operation, value(left), value(right))
    if result == ERROR:
        assert computed == ERROR
    else:
        lexical, _, name = result.partition("^^")
        assert encode(computed) == f'"{lexical}"^^<{XSD}{name}>'


def test_a_duration_is_negated() -> None:
    assert neg(Duration(1, 2)) == Duration(-1, -2)
    assert encode(neg(value("P0M^^yearMonthDuration"))) == f'"P0M"^^<{XSD}yearMonthDuration>'


@given(st.integers(-(10**7), 10**7))
def test_the_calendar_has_an_inverse(days: int) -> None:
    assert days_from_civil(*civil_from_days(days)) == days


@given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31)))
def test_the_calendar_is_that_of_python(moment: datetime) -> None:
    days = (moment.replace(tzinfo=UTC) - EPOCH) // timedelta(days=1)
    assert civil_from_days(days) == (moment.year, moment.month, moment.day)
    assert days_from_civil(moment.year, moment.month, moment.day) == days


@pytest.mark.parametrize(
    ("start", "months", "end"),
    [
        ("2024-01-31", 1, "2024-02-29"),
        ("2023-01-31", 1, "2023-02-28"),
        ("2024-03-31", -1, "2024-02-29"),
        ("2024-12-15", 1, "2025-01-15"),
        ("2024-01-15", -1, "2023-12-15"),
        ("2024-02-29", 12, "2025-02-28"),
        ("0001-01-01", -24, "-0001-01-01"),
    ],
)
def test_months_are_counted_by_the_calendar(start: str, months: int, end: str) -> None:
    assert add_months(us(start), months) == us(end)
    assert add_months(us(start) + 5, months) == us(end) + 5


def test_a_span_is_compared_with_a_duration_from_its_start() -> None:
    """One month from 31 January 2024 is 29 days long, from 1 March it is 31."""
    month = Duration(1, 0)
    assert compare_span(us("2024-01-31"), us("2024-02-29"), month) == 0
    assert compare_span(us("2024-03-01"), us("2024-03-31"), month) == -1
    assert compare_span(us("2024-01-31"), us("2024-02-29") + 1, month) == 1
    assert within(us("2024-01-31"), us("2024-02-29"), month)
    assert not within(us("2024-01-31"), us("2024-02-29") + 1, month)
    assert within(0, DAY, Duration(0, DAY))
    assert not within(0, DAY + 1, Duration(0, DAY))
    assert shift(us("2024-01-31"), Duration(1, DAY)) == us("2024-03-01")
