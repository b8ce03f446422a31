"""xsd:duration lexical forms as whole numbers: months and microseconds.

>>> parse_duration("P1Y2M")
(14, 0)
>>> parse_duration("PT1.5S")
(0, 1500000)
"""

from __future__ import annotations

import re

from .calendar import DAY, HOUR, MINUTE, SECOND
from .digits import big_int

_DURATION = re.compile(
    r"(-)?P(?=.)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?"
    r"(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?)?",
    re.ASCII,
)


def parse_duration(lexical: str) -> tuple[int, int] | None:
    """``(months, microseconds)`` of an xsd:duration, or None when it is none.

    Surrounding white space is allowed, as XML Schema says.  Digits beyond microseconds are cut off.  Weeks are an
    ISO 8601 form that XML Schema leaves out; they are taken as seven days.
    """
    found = _DURATION.fullmatch(lexical.strip(" \t\r\n"))
    if found is None:
        return None
    sign = -1 if found[1] else 1
    years, months, weeks, days, hours, minutes, seconds = (big_int(found[i] or "0") for i in range(2, 9))
    fraction = int((found[9] or "").ljust(6, "0")[:6])
    micros = (weeks * 7 + days) * DAY + hours * HOUR + minutes * MINUTE + seconds * SECOND + fraction
    return sign * (years * 12 + months), sign * micros


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
