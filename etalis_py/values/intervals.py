"""The interval of a solution in expressions: getSTARTTIME(), getENDTIME(), getDURATION(), and comparisons with the
last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from etalis_py.values import DateTime, Duration, SparqlError, compare_span, eq
from etalis_py.values.time import TIMELESS_END


def start_time(start: int, end: int) -> DateTime:
    """getSTARTTIME() of a solution."""
    _timed(end)
    return DateTime(start)


def end_time(start: int, end: int) -> DateTime:
    """getENDTIME() of a solution."""
    _timed(end)
    return DateTime(end)


def duration(start: int, end: int) -> Duration:
    """getDURATION() of a solution."""
    _timed(end)
    return Duration(0, end - start)


def span_compare(start: int, end: int, value: Any) -> int:
    """getDURATION() compared with a duration: negative, zero or positive; months count by calendar from the start."""
    _timed(end)
    if value.__class__ is not Duration:
        raise SparqlError(f"getDURATION() is compared with {value!r}, which is not a duration")
    return compare_span(start, end, value)


def span_equals(start: int, end: int, value: Any) -> bool:
    """Whether getDURATION() equals a value, which need not be a duration."""
    if value.__class__ is Duration:
        return span_compare(start, end, value) == 0
    return eq(duration(start, end), value)


def _timed(end: int) -> None:
    if end == TIMELESS_END:
        raise SparqlError("a solution from the background alone has no time")


TIME_FUNCTIONS: dict[str, Callable[[int, int], Any]] = {
    "GETSTARTTIME": start_time,
    "GETENDTIME": end_time,
    "GETDURATION": duration,
}
"""From the start and the end of a solution to the value."""
