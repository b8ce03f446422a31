"""Points in time: the only grammar of xsd:dateTime, xsd:date and xsd:time, on integers; a year has at most 18 digits.

>>> instant("1970-01-01T01:00:00.5+01:00"), instant("1970-01-02"), instant("1970-02-30")
(500000, 86400000000, None)
"""

from __future__ import annotations

import re
from functools import lru_cache

from .calendar import DAY, HOUR, MINUTE, SECOND, days_from_civil, month_length
from .digits import big_int

_DATE = r"(-?(?:[1-9][0-9]{3,17}|0[0-9]{3}))-([0-9]{2})-([0-9]{2})"
_CLOCK = r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
_ZONE = r"(Z|[+-][0-9]{2}:[0-9]{2})?"

DATE_TIME = re.compile(f"{_DATE}T{_CLOCK}{_ZONE}")
DATE = re.compile(f"{_DATE}{_ZONE}")
TIME = re.compile(f"{_CLOCK}{_ZONE}")
EITHER = re.compile(f"{_DATE}(?:T{_CLOCK})?{_ZONE}")
"""A date with or without a time: groups 1 to 3 for ``midnight``, 4 to 7 for ``time_of_day``, 8 for ``offset``."""


@lru_cache(maxsize=4096)
def midnight(year: str, month: str, day: str) -> int | None:
    """Microseconds from the epoch to the start of a date, or None when there is no such date."""
    y, m, d = big_int(year), int(month), int(day)
    if year.startswith("-0000") or not (1 <= m <= 12 and 1 <= d <= month_length(y, m)):
        return None
    return days_from_civil(y, m, d) * DAY


def time_of_day(hour: str, minute: str, second: str, fraction: str | None) -> int | None:
    """Microseconds since midnight, or None when there is no such time; 24:00:00 is the end of the day.

    Digits beyond microseconds are cut off.
    """
    h, m, s = int(hour), int(minute), int(second)
    if h == 24 and not (m or s or (fraction and fraction.strip("0"))):
        return DAY
    if h > 23 or m > 59 or s > 59:
        return None
    micros = int(fraction[:6].ljust(6, "0")) if fraction else 0
    return h * HOUR + m * MINUTE + s * SECOND + micros


def offset(zone: str | None) -> int | None:
    """Minutes east of UTC (0 without a zone), or None when there is no such zone: it is at most 14 hours away."""
    if zone is None or zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    total = 60 * hours + minutes
    if minutes > 59 or total > 840:
        return None
    return -total if zone[0] == "-" else total


def instant(text: str) -> int | None:
    """Microseconds from the epoch to a dateTime or date (UTC without a zone), or None when it is malformed."""
    form = EITHER.fullmatch(text)
    if form is None:
        return None
    day, east = midnight(*form.group(1, 2, 3)), offset(form[8])
    clock = 0 if form[4] is None else time_of_day(*form.group(4, 5, 6, 7))
    if day is None or clock is None or east is None:
        return None
    return day + clock - east * MINUTE
