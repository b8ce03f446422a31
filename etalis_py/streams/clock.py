"""Time spellings ↔ int64 microseconds since the epoch, exactly.

A stream gives its times as ``xsd:dateTime`` (also dateTimeStamp and date; without a time zone: UTC) or as plain
numbers in one unit (seconds unless said otherwise).  A ``Clock`` remembers which, so that the start and end of a match
are printed as the stream gave them.  No float is ever made: ``0.1`` is read as a decimal.

>>> parse_datetime("1970-01-01T00:00:01.5Z"), render_datetime(1_500_000)
(1500000, '1970-01-01T00:00:01.5Z')
>>> Clock("integer", "ms").parse(1500), Clock("integer", "ms").render(1_500_000)
(1500000, 1500)
>>> parse_interval("2016-03-01T13:00:00Z/PT10S")[1] - parse_interval("2016-03-01T13:00:00Z/PT10S")[0]
10000000
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Literal

from etalis_rules import durations
from etalis_rules.calendar import DAY, SECOND, civil_from_days, days_from_civil, month_length

MIN_TIME, MAX_TIME = -(2**63), 2**63 - 1

# A unit as a ratio: this many microseconds make that many units (so that ns needs no fraction).
UNITS: dict[str, tuple[int, int]] = {
    "ns": (1, 1000),
    "us": (1, 1),
    "ms": (1000, 1),
    "s": (SECOND, 1),
    "min": (60 * SECOND, 1),
    "h": (3600 * SECOND, 1),
    "d": (DAY, 1),
}

_DATETIME = re.compile(
    r"(-?(?:[1-9][0-9]{4,}|[0-9]{4}))-([0-9]{2})-([0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?)?"
    r"(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))?",
)
_NUMBER = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]+))?")
_SHORT_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(ns|us|ms|s|min|h|d)?\s*")
_ISO_SECOND_60 = re.compile(r"(T[0-9]{2}:[0-9]{2}):60(?=Z|[+-]|$)")


class TimeError(ValueError):
    """A spelling that is no time; ``position`` is the offset (from 0) of what is wrong in it."""

    def __init__(self, reason: str, text: str, position: int = 0) -> None:
        self.reason, self.text, self.position = reason, text, position
        super().__init__(f"{reason}: {text!r}" + (f" (at character {position + 1})" if text else ""))


@lru_cache(maxsize=4096)
def _midnight(year: str, month: str, day: str) -> int | None:
    """Microseconds at the start of a date, or None when there is no such date."""
    y, m, d = int(year), int(month), int(day)
    if not 1 <= m <= 12 or not 1 <= d <= month_length(y, m):
        return None
    return days_from_civil(y, m, d) * DAY


def _micros(digits: str, text: str, position: int) -> int:
    if len(digits) > 6 and digits[6:].strip("0"):
        raise TimeError("times finer than a microsecond cannot be kept; round them to microseconds", text, position + 6)
    return int(digits[:6].ljust(6, "0"))


def parse_datetime(text: str) -> int:
    """An ``xsd:dateTime``, ``xsd:dateTimeStamp`` or ``xsd:date`` in microseconds; without a time zone it is UTC."""
    match = _DATETIME.fullmatch(text)
    if match is None:
        prefix = _DATETIME.match(text)
        raise TimeError("expected an xsd:dateTime such as 2016-03-01T13:00:00Z", text, prefix.end() if prefix else 0)
    year, month, day, hour, minute, second, fraction, _, sign, zone_hour, zone_minute = match.groups()
    time = _midnight(year, month, day)
    if time is None:
        raise TimeError("there is no such day", text, match.start(2))
    if hour is not None:
        h, m, s = int(hour), int(minute), int(second)
        if m > 59 or s > 59 or h > 24 or (h == 24 and (m or s or (fraction or "").strip("0"))):
            raise TimeError("there is no such time of day", text, match.start(4))
        time += (h * 3600 + m * 60 + s) * SECOND
        if fraction:
            time += _micros(fraction, text, match.start(7))
    if sign:
        zh, zm = int(zone_hour), int(zone_minute)
        if zm > 59 or zh * 60 + zm > 840:
            raise TimeError("a time zone is at most 14:00 away from UTC", text, match.start(9))
        offset = (zh * 60 + zm) * 60 * SECOND
        time += -offset if sign == "+" else offset
    return _in_range(time, text)


def _in_range(time: int, text: str) -> int:
    if not MIN_TIME <= time <= MAX_TIME:
        raise TimeError("the time does not fit into 64 bits of microseconds (about 292,000 years)", text)
    return time


def render_datetime(us: int) -> str:
    """The canonical ``xsd:dateTime`` in UTC; fractions without trailing zeros."""
    days, rest = divmod(us, DAY)
    year, month, day = civil_from_days(days)
    seconds, micros = divmod(rest, SECOND)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    shown = f"{year:04d}" if year >= 0 else f"-{-year:04d}"
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{shown}-{month:02d}-{day:02d}T{clock}{fraction}Z"


def _unit(unit: str) -> tuple[int, int]:
    if unit not in UNITS:
        raise TimeError(f"unknown time unit; expected one of {', '.join(UNITS)}", unit)
    return UNITS[unit]


def parse_number(number: str | int | Decimal, unit: str = "s") -> int:
    """A number of units in microseconds; an error where it is not a whole number of microseconds."""
    times, per = _unit(unit)
    if isinstance(number, int):
        top, bottom, text = number * times, per, str(number)
    else:
        text = format(number, "f") if isinstance(number, Decimal) else number
        match = _NUMBER.fullmatch(text)
        if match is None:
            raise TimeError("expected a number", text)
        sign, whole, fraction = match[1], match[2], match[3] or ""
        top, bottom = int(whole + fraction) * times, per * 10 ** len(fraction)
        top = -top if sign == "-" else top
    time, rest = divmod(top, bottom)
    if rest:
        raise TimeError(f"{text} {unit} is not a whole number of microseconds; round it to microseconds", text)
    return _in_range(time, text)


def parse_duration(text: str) -> int:
    """``10s``, ``5 min``, ``250ms``, a bare number (seconds) or an ``xsd:dayTimeDuration`` (``PT10S``), in µs."""
    short = _SHORT_DURATION.fullmatch(text)
    if short:
        return parse_number(short[1], short[2] or "s")
    months, micros = durations.parse_duration(text) or (1, 0)
    if months:  # or no duration at all
        raise TimeError("expected a duration such as 10s, 5min, 250ms, PT10S or P1DT2H", text)
    whole, _, fraction = text.partition(".")
    _micros(fraction.rstrip("S \t\r\n"), text, len(whole) + 1)
    return _in_range(micros, text)


def is_number(lexical: str) -> bool:
    """Is this spelling a plain number (and so a time in units), rather than a date?"""
    return _NUMBER.fullmatch(lexical) is not None


@dataclass(frozen=True, slots=True)
class Clock:
    """How a stream spells its times: plain numbers of ``unit``, or ``xsd:dateTime``."""

    kind: Literal["integer", "datetime"] = "datetime"
    unit: str = "s"

    def __post_init__(self) -> None:
        if self.kind not in ("integer", "datetime"):
            raise TimeError("a clock is 'integer' or 'datetime'", self.kind)
        _unit(self.unit)

    def parse(self, lexical: str | int | Decimal) -> int:
        """The time in microseconds."""
        if self.kind == "integer":
            return parse_number(lexical, self.unit)
        if not isinstance(lexical, str):
            raise TimeError("expected an xsd:dateTime, found a plain number; name its unit", str(lexical))
        return parse_datetime(lexical)

    def render(self, us: int) -> int | str:
        """The time as this clock spells it; a number that is not whole comes as a decimal spelling.

        >>> Clock("integer").render(1_500_000)
        '1.5'
        """
        if self.kind == "datetime":
            return render_datetime(us)
        times, per = UNITS[self.unit]
        whole, rest = divmod(us * per, times)
        if not rest:
            return whole
        sign, magnitude = ("-", -us) if us < 0 else ("", us)
        return sign + _decimal(magnitude, times)


def _decimal(us: int, times: int) -> str:
    """us / times as a decimal numeral; units of minutes and more may not end, and then show 12 digits."""
    whole, rest = divmod(us, times)
    digits = ""
    while rest and len(digits) < 12:
        digit, rest = divmod(rest * 10, times)
        digits += str(digit)
    return f"{whole}.{digits}"


def clock_of(lexical: str | int | Decimal, unit: str = "s") -> Clock:
    """The clock that a first time of a stream speaks for."""
    if not isinstance(lexical, str) or is_number(lexical):
        return Clock("integer", unit)
    return Clock("datetime")


def parse_interval(text: str, clock: Clock | None = None) -> tuple[int, int]:
    """An ISO 8601 interval ``a/b``, ``a/P…`` or ``P…/b`` ([REQ], RDF Stream), or an instant as [t, t].

    ISO 8601 (unlike xsd:dateTime) may write second 60, and [REQ]'s own example does: it is the next minute's 0.
    """
    if "/" not in text:
        time = _either(text, clock)
        return time, time
    left, _, right = text.partition("/")
    try:
        if left.startswith("P") and right.startswith("P"):
            raise TimeError("an interval needs a start or an end", text)
        if left.startswith("P"):
            end = _either(right, clock)
            return _ordered(end - parse_duration(left), end, text)
        start = _either(left, clock)
        return _ordered(start, start + parse_duration(right) if right.startswith("P") else _either(right, clock), text)
    except TimeError as error:
        if error.text == text:
            raise
        shift = 0 if error.text == left else len(left) + 1
        raise TimeError(error.reason, text, error.position + shift) from None


def _either(text: str, clock: Clock | None) -> int:
    if (clock or clock_of(text)).kind == "integer":
        return (clock or Clock("integer")).parse(text)
    if ":60" in text and _ISO_SECOND_60.search(text):
        return parse_datetime(_ISO_SECOND_60.sub(r"\1:59", text)) + SECOND
    return parse_datetime(text)


def _ordered(start: int, end: int, text: str) -> tuple[int, int]:
    if start > end:
        raise TimeError("the interval ends before it starts", text)
    return _in_range(start, text), _in_range(end, text)
