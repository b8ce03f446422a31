"""Durations: their only grammar, and the only list of units.

A duration is two whole numbers, months and microseconds.

>>> parse_duration("P1Y2M")
(14, 0)
>>> parse_duration("PT1.5S")
(0, 1500000)
"""

from __future__ import annotations

import re

from .calendar import DAY, HOUR, MINUTE, SECOND
from .digits import big_int

_FORM = (
    r"P(?=[0-9T])(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)W)?(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]+))?S)?)?"
)
_DURATION = re.compile("(-)?" + _FORM)
_FINE = re.compile(r"\.[0-9]{6}[0-9]*[1-9]")

PATTERN = _FORM.replace("([", "(?:[")
"""The grammar of a positive duration as a regular expression without groups, to be built into others."""

LONGEST = 2**62
"""The most microseconds of a length of time, so that any time of an event and the length together fit into 64 bits."""

UNITS: dict[str, str] = {
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), "ns"),
    **dict.fromkeys(("us", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("w", "week", "weeks"), "w"),
    **dict.fromkeys(("month", "months"), "mo"),
    **dict.fromkeys(("y", "yr", "year", "years"), "y"),
}
"""Every spelling of a unit of time, in lower case, with the one used here."""

RATIOS: dict[str, tuple[int, int]] = {
    "ns": (1, 1000),
    "us": (1, 1),
    "ms": (1000, 1),
    "s": (SECOND, 1),
    "min": (MINUTE, 1),
    "h": (HOUR, 1),
    "d": (DAY, 1),
    "w": (7 * DAY, 1),
}
"""Units of a fixed length: this many microseconds make that many units (so that ns needs no fraction)."""


def is_too_fine(lexical: str) -> bool:
    """Whether there are non-zero digits beyond microseconds."""
    return _FINE.search(lexical) is not None


def parse_duration(lexical: str) -> tuple[int, int] | None:
    """``(months, microseconds)`` of an xsd:duration, or None when it is malformed.

    Surrounding white space is allowed, as XML Schema says.  Digits beyond microseconds are cut off.  Weeks are an
    ISO 8601 form that XML Schema leaves out; they are taken as seven days.
    """
    form = _DURATION.fullmatch(lexical.strip(" \t\r\n"))
    if form is None:
        return None
    sign = -1 if form[1] else 1
    years, months, weeks, days, hours, minutes, seconds = (big_int(form[i] or "0") for i in range(2, 9))
    fraction = int((form[9] or "").ljust(6, "0")[:6])
    micros = (weeks * 7 + days) * DAY + hours * HOUR + minutes * MINUTE + seconds * SECOND + fraction
    return sign * (years * 12 + months), sign * micros


def seconds(us: int) -> int | str:
    """Microseconds as an integer if they are whole seconds, otherwise as a decimal number of seconds.

    >>> seconds(3_000_000), seconds(1_500_000), seconds(-1_250_000)
    (3, '1.5', '-1.25')
    """
    whole, rest = divmod(abs(us), SECOND)
    sign = "-" if us < 0 else ""
    return us // SECOND if not rest else f"{sign}{whole}.{rest:06d}".rstrip("0")


def duration_text(months: int, micros: int) -> str:
    """The shortest xsd:duration lexical form; the inverse of ``parse_duration`` where both parts agree in sign."""
    sign = "-" if months < 0 or micros < 0 else ""
    months, micros = abs(months), abs(micros)
    years, months = divmod(months, 12)
    days, rest = divmod(micros, DAY)
    hours, rest = divmod(rest, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    seconds, fraction = divmod(rest, SECOND)
    date = "".join(f"{n}{mark}" for n, mark in ((years, "Y"), (months, "M"), (days, "D")) if n)
    second_text = f"{seconds}.{fraction:06d}".rstrip("0").rstrip(".") if fraction else str(seconds)
    time = "".join(f"{n}{mark}" for n, mark in ((hours, "H"), (minutes, "M")) if n)
    if second_text != "0":
        time += second_text + "S"
    if not date and not time:
        time = "0S"
    return f"{sign}P{date}{'T' + time if time else ''}"
