"""Time in expressions: dateTimes and durations made from microseconds, and the bounds of WITHIN.

A duration is a pair (months, microseconds).  A year-month part is counted by calendar from the start of the interval
it is compared with (docs/semantics.md, Time).
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from etalis_rules.terms import XSD, is_literal, literal, parts

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
DURATIONS = {XSD + "duration", XSD + "dayTimeDuration", XSD + "yearMonthDuration"}
_DURATION = re.compile(
    r"(-?)P(?=.)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?\Z"
)


def seconds(microseconds: int) -> str:
    """Whole or fractional seconds without trailing zeros: 1500000 → "1.5"."""
    whole, rest = divmod(microseconds, SECOND)
    return f"{whole}.{rest:06d}".rstrip("0") if rest else str(whole)


def date_time(t: int) -> str:
    """The xsd:dateTime of an instant, in UTC and in canonical form."""
    moment = EPOCH + timedelta(microseconds=t)
    text = f"{moment.year:04d}" + moment.strftime("-%m-%dT%H:%M:")
    rest = f"{moment.second:02d}"
    if moment.microsecond:
        rest += f".{moment.microsecond:06d}".rstrip("0")
    return literal(f"{text}{rest}Z", XSD + "dateTime")


def day_time_duration(span: int) -> str:
    """The canonical xsd:dayTimeDuration of a span in microseconds."""
    minutes, rest = divmod(abs(span), 60 * SECOND)
    hours, minute = divmod(minutes, 60)
    day, hour = divmod(hours, 24)
    clock = (f"{hour}H" if hour else "") + (f"{minute}M" if minute else "") + (f"{seconds(rest)}S" if rest else "")
    text = "-" * (span < 0) + "P" + (f"{day}D" if day else "") + (f"T{clock}" if clock else "")
    return literal("PT0S" if text == "P" else text, XSD + "dayTimeDuration")


def year_month_duration(months: int) -> str:
    """The canonical xsd:yearMonthDuration of a number of months."""
    year, month = divmod(abs(months), 12)
    text = "-" * (months < 0) + "P" + (f"{year}Y" if year else "") + (f"{month}M" if month else "")
    return literal("P0M" if text == "P" else text, XSD + "yearMonthDuration")


def duration(lexical: str) -> tuple[int, Fraction] | None:
    """(months, microseconds) of a duration's lexical form, or None when it is none."""
    found = _DURATION.match(lexical)
    if not found:
        return None
    sign = -1 if found[1] else 1
    year, month, day, hour, minute = (int(g or 0) for g in found.groups()[1:6])
    micros = (((day * 24 + hour) * 60 + minute) * 60 + Fraction(found[7] or 0)) * SECOND
    return sign * (12 * year + month), sign * micros


def duration_of(term: str) -> tuple[int, Fraction] | None:
    """(months, microseconds) of a literal, or None when it is not a duration."""
    if not is_literal(term):
        return None
    lexical, datatype, _ = parts(term)
    return duration(lexical) if datatype in DURATIONS else None


def shift(t: int, months: int, micros: Fraction) -> Fraction:
    """``t`` moved by a duration: months by calendar (the day cut to the month's length), then the rest."""
    moment = EPOCH + timedelta(microseconds=t)
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    day = min(moment.day, monthrange(year, month + 1)[1])
    moved = moment.replace(year=year, month=month + 1, day=day)
    return Fraction((moved - EPOCH) // timedelta(microseconds=1)) + micros
