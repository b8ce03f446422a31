"""Lexical forms to values: one parser per datatype, exact and strict.

A parser gives ``None`` for a text outside the lexical space of its datatype (XML Schema 1.1 part 2), including one with
white space around it: RDF has no white-space rule, only casts strip it.  Python's own conversions accept more than XML
Schema ("1_000", "١٢", "inf"), so every text is checked first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from math import isfinite

from etalis_rules import durations
from etalis_rules.calendar import DAY, MINUTE
from etalis_rules.datetimes import DATE, DATE_TIME, TIME, midnight, offset, time_of_day
from etalis_rules.digits import LONG, big_int
from etalis_rules.terms import XSD

from etalis_py.values.bounds import BOUNDS
from etalis_py.values.types import Date, DateTime, Duration, Time, XsdFloat, may_be_halfway

_DOUBLE_CHARACTERS = "0123456789+-.eE"
_SPECIAL = {"INF": float("inf"), "+INF": float("inf"), "-INF": float("-inf"), "NaN": float("nan")}
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}

_TOO_LONG = re.compile(f"(?<![0-9.])[0-9]{{{BOUNDS.spans + 1}}}")  # a number in a duration; fractions are cut


def parse_integer(text: str) -> int | None:
    """
    >>> parse_integer("-012"), parse_integer("1.0"), parse_integer("1_0")
    (-12, None, None)
    """
    if len(text) > BOUNDS.digits:
        return None
    if text.isdecimal() and text.isascii():
        return int(text) if len(text) < LONG else int(Decimal(text))
    digits = text[1:]
    if text[:1] in ("+", "-") and digits.isdecimal() and digits.isascii():
        return big_int(text)
    return None


def parse_decimal(text: str) -> Decimal | None:
    """
    >>> parse_decimal("1.50"), parse_decimal("1e5")
    (Decimal('1.50'), None)
    """
    if len(text) > BOUNDS.digits:
        return None
    digits = text.replace(".", "", 1)
    if digits.isdecimal() and digits.isascii():
        return Decimal(text)
    digits = digits[1:]
    if text[:1] in ("+", "-") and digits.isdecimal() and digits.isascii():
        return Decimal(text)
    return None


def parse_double(text: str) -> float | None:
    """
    >>> parse_double("1e3"), parse_double("-INF"), parse_double("inf")
    (1000.0, -inf, None)
    """
    # Python reads more than XSD allows: underscores, other digits, white space at the ends, names of infinity.
    if text.isascii() and "_" not in text:
        try:
            number = float(text)
        except ValueError:
            return _SPECIAL.get(text)
        if number - number == 0.0 and text[0] > " " and text[-1] > " ":
            return number
        if not text.strip(_DOUBLE_CHARACTERS):  # too large for a double
            return number
    return _SPECIAL.get(text)


def parse_float(text: str) -> XsdFloat | None:
    double = parse_double(text)
    if double is None:
        return None
    exactly = may_be_halfway(double) and isfinite(double)
    return XsdFloat(Decimal(text) if exactly else double)


def parse_boolean(text: str) -> bool | None:
    return _BOOLEANS.get(text)


def parse_date_time(text: str) -> DateTime | None:
    """
    >>> parse_date_time("1970-01-01T01:00:00+01:00")
    DateTime(us=0, offset=60)
    """
    form = DATE_TIME.fullmatch(text)
    if form is None:
        return None
    day, clock, east = midnight(*form.group(1, 2, 3)), time_of_day(*form.group(4, 5, 6, 7)), offset(form[8])
    if day is None or clock is None or east is None:
        return None
    return DateTime(day + clock - east * MINUTE, None if form[8] is None else east)


def parse_date(text: str) -> Date | None:
    form = DATE.fullmatch(text)
    if form is None:
        return None
    day, east = midnight(*form.group(1, 2, 3)), offset(form[4])
    if day is None or east is None:
        return None
    return Date(day - east * MINUTE, None if form[4] is None else east)


def parse_time(text: str) -> Time | None:
    """
    >>> parse_time("24:00:00"), parse_time("01:00:00+02:00").us // 3_600_000_000
    (Time(us=0, offset=None), -1)
    """
    form = TIME.fullmatch(text)
    if form is None:
        return None
    clock, east = time_of_day(*form.group(1, 2, 3, 4)), offset(form[5])
    if clock is None or east is None:
        return None
    return Time(clock % DAY - east * MINUTE, None if form[5] is None else east)


def parse_duration(text: str) -> Duration | None:
    """
    >>> parse_duration("P1Y2M"), parse_duration("-PT1.5S"), parse_duration("P1DT")
    (Duration(months=14, micros=0), Duration(months=0, micros=-1500000), None)
    """
    # Elsewhere white space may stand around a duration, and weeks in it.
    if "W" in text or text.strip() != text or _TOO_LONG.search(text):
        return None
    parts = durations.parse_duration(text)
    return None if parts is None else Duration(*parts)


def parse_day_time_duration(text: str) -> Duration | None:
    if "Y" in text or "M" in text.partition("T")[0]:
        return None
    return parse_duration(text)


def parse_year_month_duration(text: str) -> Duration | None:
    if "D" in text or "T" in text:
        return None
    value = parse_duration(text)
    return None if value is None else replace(value, by_months=True)


def _ranged(low: int | None, high: int | None) -> Callable[[str], int | None]:
    def parse(text: str) -> int | None:
        value = parse_integer(text)
        if value is None or (low is not None and value < low) or (high is not None and value > high):
            return None
        return value

    return parse


INTEGER_RANGES: dict[str, tuple[int | None, int | None]] = {
    "long": (-(1 << 63), (1 << 63) - 1),
    "int": (-(1 << 31), (1 << 31) - 1),
    "short": (-(1 << 15), (1 << 15) - 1),
    "byte": (-128, 127),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "unsignedLong": (0, (1 << 64) - 1),
    "unsignedInt": (0, (1 << 32) - 1),
    "unsignedShort": (0, (1 << 16) - 1),
    "unsignedByte": (0, 255),
}
"""The types derived from xsd:integer, with their least and greatest values."""

NUMBER_PARSERS: dict[str, Callable[[str], int | Decimal | float | None]] = {
    f"{XSD}integer": parse_integer,
    f"{XSD}decimal": parse_decimal,
    f"{XSD}double": parse_double,
    f"{XSD}float": parse_float,
    **{XSD + name: _ranged(low, high) for name, (low, high) in INTEGER_RANGES.items()},
}

PARSERS: dict[str, Callable[[str], object]] = {
    **NUMBER_PARSERS,
    f"{XSD}boolean": parse_boolean,
    f"{XSD}string": str,
    f"{XSD}dateTime": parse_date_time,
    f"{XSD}date": parse_date,
    f"{XSD}time": parse_time,
    f"{XSD}duration": parse_duration,
    f"{XSD}dayTimeDuration": parse_day_time_duration,
    f"{XSD}yearMonthDuration": parse_year_month_duration,
}
"""Datatype IRI → parser of its lexical forms; ``None`` means ill-formed."""
