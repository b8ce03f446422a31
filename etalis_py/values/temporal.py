"""Arithmetic and order of dateTimes, dates, times and durations (XPath Functions §10, XML Schema 1.1 part 2 §E).

A year-month duration is counted by the calendar from the instant it starts at (``shift``, ``within``,
``compare_span``); among themselves durations have XML Schema's partial order.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from etalis_rules.calendar import DAY, HOUR, MINUTE, add_months, days_from_civil

from etalis_py.values.bounds import MICROS
from etalis_py.values.errors import SparqlError, type_error
from etalis_py.values.exact import quotient
from etalis_py.values.types import NUMERIC, Date, DateTime, Duration, Time

_ZONE_SPREAD = 14 * HOUR
# The dateTimes by which XML Schema defines the order of durations: every length that n months can have is among them.
_REFERENCES = tuple(
    days_from_civil(year, month, 1) * DAY for year, month in ((1696, 9), (1697, 2), (1903, 3), (1903, 7))
)


def shift(us: int, duration: Duration) -> int:
    """The instant a duration after ``us``: first the months by the calendar, then the rest."""
    return (add_months(us, duration.months) if duration.months else us) + duration.micros


def compare_span(start_us: int, end_us: int, duration: Duration) -> int:
    """-1, 0 or 1: whether the interval from start to end is shorter than, as long as or longer than the duration.

    >>> january = (days_from_civil(2024, 1, 31) * DAY, days_from_civil(2024, 2, 29) * DAY)
    >>> compare_span(*january, Duration(1, 0)), compare_span(*january, Duration(0, 30 * DAY))
    (0, -1)
    """
    limit = shift(start_us, duration)
    return (end_us > limit) - (end_us < limit)


def within(start_us: int, end_us: int, duration: Duration) -> bool:
    """WITHIN: end − start ≤ duration."""
    return end_us <= shift(start_us, duration)


def compare_durations(a: Duration, b: Duration) -> int:
    """-1, 0 or 1 by XML Schema's partial order; an error when the two cannot be ordered.

    >>> compare_durations(Duration(1, 0), Duration(0, 27 * DAY))
    1
    """
    if a.months == b.months:
        return (a.micros > b.micros) - (a.micros < b.micros)
    signs = set()
    for reference in _REFERENCES:
        left, right = shift(reference, a), shift(reference, b)
        signs.add((left > right) - (left < right))
    if len(signs) == 1:
        return signs.pop()
    raise SparqlError(f"{a} and {b} cannot be ordered: months have different lengths; compare days with days")


def compare_zoned(a: Date | Time, b: Date | Time) -> int:
    """-1, 0 or 1 for two dates or two times; an error if only one has a zone and the answer depends on the other's."""
    if (a.offset is None) == (b.offset is None):
        return (a.us > b.us) - (a.us < b.us)
    difference = a.us - b.us
    if abs(difference) <= _ZONE_SPREAD:
        raise SparqlError(f"{a} and {b} cannot be compared: only one of them has a time zone")
    return 1 if difference > 0 else -1


def _duration(months: int, micros: int, by_months: bool) -> Duration:
    if (months < 0 < micros) or (micros < 0 < months):
        raise SparqlError("a duration cannot have months and days of opposite signs")
    if max(abs(months), abs(micros)) > MICROS:
        raise SparqlError("the result is a duration of more than 10^30 months or microseconds")
    return Duration(months, micros, by_months)


def _moved(moment: Any, duration: Duration) -> Any:
    """dateTime, date or time plus a duration, in the zone it was written in."""
    zone = (moment.offset or 0) * MINUTE
    local = moment.us + zone
    if moment.__class__ is Time:
        if duration.months:
            raise type_error("adding months", moment)
        return Time((local + duration.micros) % DAY - zone, moment.offset)
    moved = shift(local, duration)
    if moment.__class__ is Date:
        moved -= moved % DAY
        return Date(moved - zone, moment.offset)
    return DateTime(moved - zone, moment.offset)


_MOMENTS = frozenset((DateTime, Date, Time))


def negated(duration: Duration) -> Duration:
    return Duration(-duration.months, -duration.micros, duration.by_months)


def add_temporal(a: Any, b: Any) -> Any:
    """moment + duration, duration + moment, duration + duration."""
    if a.__class__ is Duration and b.__class__ in _MOMENTS:
        a, b = b, a
    if b.__class__ is Duration:
        if a.__class__ in _MOMENTS:
            return _moved(a, b)
        if a.__class__ is Duration:
            return _duration(a.months + b.months, a.micros + b.micros, a.is_year_month and b.is_year_month)
    raise type_error("+", a, b)


def sub_temporal(a: Any, b: Any) -> Any:
    """moment − moment = dayTimeDuration; moment − duration; duration − duration."""
    kind = a.__class__
    if kind is b.__class__ and kind in _MOMENTS:
        return Duration(0, a.us - b.us)
    if b.__class__ is Duration and (a.__class__ in _MOMENTS or a.__class__ is Duration):
        return add_temporal(a, negated(b))
    raise type_error("-", a, b)


def _exact(number: Any, operation: str) -> Fraction:
    if number != number or number in (float("inf"), float("-inf")):
        raise type_error(operation, number)
    return Fraction(number)


def _rounded(value: Fraction) -> int:
    """The nearest integer, halves upward, as XPath rounds."""
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)


def mul_temporal(a: Any, b: Any) -> Duration:
    """duration × number, rounded to whole months and microseconds."""
    if b.__class__ is Duration:
        a, b = b, a
    if a.__class__ is Duration and b.__class__ in NUMERIC:
        factor = _exact(b, "duration × number")
        return _duration(_rounded(a.months * factor), _rounded(a.micros * factor), a.is_year_month)
    raise type_error("*", a, b)


def div_temporal(a: Any, b: Any) -> Duration | Decimal:
    """duration ÷ number; duration ÷ duration of the same kind (both of months, or both of days and time)."""
    if a.__class__ is Duration and b.__class__ in NUMERIC:
        divisor = _exact(b, "duration ÷ number") if b not in (float("inf"), float("-inf")) else None
        if divisor is None:
            return Duration(0, 0, a.is_year_month)
        if not divisor:
            raise SparqlError("division of a duration by zero")
        return _duration(_rounded(a.months / divisor), _rounded(a.micros / divisor), a.is_year_month)
    if a.__class__ is Duration and b.__class__ is Duration:
        if not a.months and not b.months:
            return quotient(Decimal(a.micros), Decimal(b.micros))
        if not a.micros and not b.micros:
            return quotient(Decimal(a.months), Decimal(b.months))
    raise type_error("/", a, b)
