"""Time spellings ↔ int64 microseconds since the epoch, exactly.

A stream gives its times as ``xsd:dateTime`` (also dateTimeStamp and date; without a time zone: UTC) or as plain numbers
in one unit (seconds unless said otherwise).  A ``Clock`` remembers which, so that the start and end of a match are
printed in the form of the stream.  Floats are never used: ``0.1`` is read as a decimal.

>>> parse_datetime("1970-01-01T00:00:01.5Z"), render_datetime(1_500_000)
(1500000, '1970-01-01T00:00:01.5Z')
>>> Clock("integer", "ms").parse(1500), Clock("integer", "ms").render(1_500_000)
(1500000, 1500)
>>> parse_interval("2016-03-01T13:00:00Z/PT10S")[1] - parse_interval("2016-03-01T13:00:00Z/PT10S")[0]
10000000
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from operator import index
from typing import Literal, TypeAlias

from etalis_rules import datetimes, durations
from etalis_rules.calendar import DAY, MINUTE, SECOND, civil_from_days
from etalis_rules.durations import RATIOS

MIN_TIME, MAX_TIME = -(2**62), 2**62
"""The times that an event may have, so that a time and a length of time together fit into 64 bits."""

_TOO_LONG = "a length of time is at most 146,000 years; give a shorter one"

UNITS = tuple(unit for unit in RATIOS if unit != "w")
"""The units in which a stream may count its time."""

LOOSE = (
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})[ T](?P<minute>[0-9]{2}:[0-9]{2})(?::(?P<second>[0-9]{2})"
    r"(?:[.,](?P<fraction>[0-9]+))?)?(?: ?(?P<zone>Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?))?"
)
"""A day and a time of day, as SQL, Python and logs write them: a pattern that Python and RE2 read alike."""

_MOST_DIGITS = 100
_2000, _2100 = 946_684_800 * SECOND, 4_102_444_800 * SECOND
_YEAR_9999 = 253_402_300_800_000_000 - 1  # its last microsecond
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]+))?")
_WITH_UNIT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_ISO_SECOND_60 = re.compile(r"(T[0-9]{2}:[0-9]{2}):60(?=Z|[+-]|$)")
_LOOSE = re.compile(LOOSE)

Length: TypeAlias = int | str | timedelta
"""A length of time as an option is given it: microseconds, a text such as ``"5 seconds"``, or a ``timedelta``."""
Moment: TypeAlias = int | str | datetime
"""A time as an option is given it: microseconds, a dateTime, or a ``datetime``."""


class TimeError(ValueError):
    """A spelling that is not a time; ``position`` is the offset (from 0) of the error in it."""

    def __init__(self, reason: str, text: str, position: int = 0) -> None:
        self.reason, self.text, self.position = reason, text, position
        super().__init__(f"{reason}: {text!r}" + (f" (at character {position + 1})" if text else ""))


def iso_spelling(text: str) -> str:
    """A day and a time of day, as SQL, Python and logs write them, as an xsd:dateTime; any other text as it is.

    >>> [iso_spelling(f"2026-03-02 {time}") for time in ("08:00:01,250", "08:00:01+01", "08:00")]
    ['2026-03-02T08:00:01.250', '2026-03-02T08:00:01+01:00', '2026-03-02T08:00:00']
    """
    form = _LOOSE.fullmatch(text)
    if form is None:
        return text
    day, minute, second, fraction, zone = (group or "" for group in form.groups())
    digits = zone[1:].replace(":", "")
    offset = "Z" if zone in ("Z", "UTC") else zone and f"{zone[0]}{digits[:2]}:{digits[2:] or '00'}"
    return f"{day}T{minute}:{second or '00'}{fraction and f'.{fraction}'}{offset}"


def parse_datetime(text: str) -> int:
    """An ``xsd:dateTime``, ``xsd:dateTimeStamp`` or ``xsd:date`` in microseconds; without a time zone it is UTC."""
    form = datetimes.EITHER.fullmatch(text)
    if form is None:
        prefix = datetimes.EITHER.match(text)
        raise TimeError("expected an xsd:dateTime such as 2016-03-01T13:00:00Z", text, prefix.end() if prefix else 0)
    day, clock = datetimes.midnight(*form.group(1, 2, 3)), 0
    if day is None:
        raise TimeError("there is no such day", text, form.start(2))
    if form[4] is not None:
        time_of_day = datetimes.time_of_day(*form.group(4, 5, 6, 7))
        if time_of_day is None:
            raise TimeError("there is no such time of day", text, form.start(4))
        if form[7] and form[7][6:].strip("0"):
            raise _too_fine(text, form.start(7) + 6)
        clock = time_of_day
    east = datetimes.offset(form[8])
    if east is None:
        raise TimeError("a time zone is at most 14:00 away from UTC", text, form.start(8))
    return _in_range(day + clock - east * MINUTE, text)


def _too_fine(text: str, position: int) -> TimeError:
    return TimeError("times finer than a microsecond cannot be kept; round them to microseconds", text, position)


def _in_range(time: int, text: str, hint: str = "") -> int:
    if not MIN_TIME <= time <= MAX_TIME:
        raise TimeError(
            f"the time is more than 146,000 years from 1970{hint}; correct it, or the unit that the stream counts in",
            text,
        )
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
    if unit not in RATIOS:
        raise TimeError(f"unknown time unit; expected one of {', '.join(UNITS)}", unit)
    return RATIOS[unit]


def parse_number(number: str | int | Decimal, unit: str = "s") -> int:
    """A number of units in microseconds; an error if it is not a whole number of microseconds."""
    times, per = _unit(unit)
    if isinstance(number, int):
        if abs(number) > 10**_MOST_DIGITS:
            raise TimeError("expected a number of microseconds of at most 64 bits", "a number of very many digits")
        top, bottom, text = number * times, per, str(number)
    else:
        if isinstance(number, Decimal) and abs(number.adjusted()) > _MOST_DIGITS:
            raise TimeError("expected a number of microseconds of at most 64 bits", str(number)[:40])
        text = format(number, "f") if isinstance(number, Decimal) else number
        if len(text) > 2 * _MOST_DIGITS:
            raise TimeError("expected a number of microseconds of at most 64 bits", f"{text[:40]}…")
        match = _NUMBER.fullmatch(text)
        if match is None:
            raise TimeError("expected a number", text)
        sign, whole, fraction = match[1], match[2], match[3] or ""
        top, bottom = int(whole + fraction) * times, per * 10 ** len(fraction)
        top = -top if sign == "-" else top
    time, rest = divmod(top, bottom)
    if rest:
        raise TimeError(f"{text} {unit} is not a whole number of microseconds; round it to microseconds", text)
    return _in_range(time, text, f" in the unit {unit}{_finer(time, unit)}")


def nearest(number: Decimal, unit: str = "s") -> int:
    """The microsecond nearest to a number of units that was a float: its last digits stand for nothing.

    >>> nearest(Decimal("1767225600.1234567"))
    1767225600123457
    """
    times, per = _unit(unit)
    if not number.is_finite() or number.adjusted() > _MOST_DIGITS:
        raise TimeError("expected a number of microseconds of at most 64 bits", str(number))
    time = round(Fraction(number) * times / per)
    return _in_range(time, str(number), f" in the unit {unit}{_finer(time, unit)}")


def far_off(time: int, unit: str) -> str:
    """What to tell of a time beyond the year 9999 that was a number of units: its year, and the unit that makes sense.

    It is "" if there is nothing to tell.

    >>> far_off(1_767_225_600_000_000_000, "s")
    '1767225600000 s is in the year 57971; in ms it would be 2026-01-01T00:00:00Z'
    """
    finer = _finer(time, unit) if time > _YEAR_9999 else ""
    if not finer:
        return ""
    return f"{Clock('integer', unit).render(time)} {unit} is in the year {civil_from_days(time // DAY)[0]}{finer}"


def far_back(earliest: int, latest: int, unit: str) -> str:
    """What to tell of an earliest time near 1970 that would be in this century, as the latest is, in a coarser unit.

    It is "" if there is nothing to tell.

    >>> far_back(1_767_225_600_000, 1_767_225_601_000_000, "ms")
    '1767225600 ms is 1970-01-21T10:53:45.6Z; in s it would be 2026-01-01T00:00:00Z, near the others'
    """
    times, per = RATIOS[unit]
    for coarser in ("s", "ms", "us") if _2000 <= latest < _2100 else ():
        more, parts = RATIOS[coarser]
        moment = earliest * per * more // (times * parts)
        if moment > earliest and _2000 <= moment < _2100:
            shown = f"{Clock('integer', unit).render(earliest)} {unit} is {render_datetime(earliest)}"
            return f"{shown}; in {coarser} it would be {render_datetime(moment)}, near the others"
    return ""


def far_apart(latest: int, unit: str, earliest: int) -> str:
    """What to tell of numbers that end before the year 2000, beside dates that begin later.

    It is "" if there is nothing to tell.

    >>> far_apart(3_000_000, "s", 1_769_853_600_000_000)
    '3 s is 1970-01-01T00:00:03Z, years before the others begin, at 2026-01-31T10:00:00Z'
    """
    if not latest < _2000 <= earliest < _2100:
        return ""
    shown = f"{Clock('integer', unit).render(latest)} {unit} is {render_datetime(latest)}"
    return f"{shown}, years before the others begin, at {render_datetime(earliest)}"


def meant(time: int, unit: str) -> tuple[str, str]:
    """The unit that brings a number of units, which is this time, before the year 10000, and the date that it is then.

    Both are "" if the number needs no other unit, or none helps.

    >>> meant(1_767_225_600_000_000_000, "s")
    ('ms', '2026-01-01T00:00:00Z')
    """
    if -_YEAR_9999 <= time <= _YEAR_9999:
        return "", ""
    times, per = RATIOS[unit]
    for other in ("s", "ms", "us", "ns"):
        fewer, parts = RATIOS[other]
        moment = time * per * fewer // (times * parts)
        if abs(moment) <= _YEAR_9999:
            return other, render_datetime(moment)
    return "", ""


def _finer(time: int, unit: str) -> str:
    """A hint at the unit that makes sense, or ""."""
    other, date = meant(time, unit)
    return other and f"; in {other} it would be {date}"


def parse_duration(text: str) -> int:
    """``10s``, ``5 min``, ``2 hours``, a bare number (seconds) or an ``xsd:dayTimeDuration`` (``PT10S``), in µs."""
    numeral = _WITH_UNIT.fullmatch(text)
    unit = durations.UNITS.get(numeral[2].lower() or "s", "") if numeral else ""
    if numeral and unit in RATIOS:
        times, per = RATIOS[unit]
        if abs(Decimal(numeral[1])) * times > MAX_TIME * per:
            raise TimeError(_TOO_LONG, text)
        return parse_number(numeral[1], unit)
    months, micros = durations.parse_duration(text) or (1, 0)
    if months:  # or not a duration at all
        raise TimeError("expected a duration such as 10s, 5min, 250ms, PT10S or P1DT2H", text)
    if durations.is_too_fine(text):
        raise _too_fine(text, text.index(".") + 7)
    if abs(micros) > MAX_TIME:
        raise TimeError(_TOO_LONG, text)
    return micros


def micros_of(option: str, length: Length) -> int:
    """A length of time as an option of Python is given it.

    >>> micros_of("lateness", "5 seconds"), micros_of("lateness", timedelta(seconds=5))
    (5000000, 5000000)
    """
    micros: object = length
    if isinstance(length, str):
        try:
            micros = parse_duration(length)
        except TimeError as error:
            raise ValueError(f"{option}={length!r}: {error}") from None
    elif isinstance(length, timedelta):
        micros = length // timedelta(microseconds=1)
    if isinstance(micros, bool) or not isinstance(micros, int):
        raise TypeError(f'{option}={length!r}: give microseconds, a timedelta, or a text such as "5 seconds"')
    if micros < 0:
        raise ValueError(f"{option}={length!r}: it must be 0 or more")
    if micros > MAX_TIME:
        raise ValueError(f"{option}={length!r}: {_TOO_LONG}")
    return micros


def moment_in_micros(moment: datetime) -> int:
    """A datetime as microseconds since the epoch; without a zone it is in UTC."""
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)


def time_in_micros(name: str, given: object) -> int:
    """A time that an argument of Python gives, as of ``advance``: in microseconds, or as a datetime (in UTC without a
    zone) or a dateTime.

    >>> time_in_micros("t", "1970-01-01T00:00:05Z"), time_in_micros("t", datetime(1970, 1, 1, 0, 0, 5))
    (5000000, 5000000)
    """
    if isinstance(given, datetime):
        return moment_in_micros(given)
    try:
        if isinstance(given, str):
            return parse_datetime(given)
        return index(given)  # type: ignore[arg-type]
    except (TypeError, TimeError):
        raise TypeError(
            f"{name} is a time in whole microseconds, such as 5_000_000, a datetime, or a dateTime such as "
            f"'2026-01-31T10:00:00Z', not {given!r} ({type(given).__name__})"
        ) from None


def is_number(lexical: str) -> bool:
    """Whether this spelling is a plain number (and so a time in units) rather than a date."""
    return _NUMBER.fullmatch(lexical) is not None


def is_date(time: int | str) -> bool:
    """Whether this time, as its stream spells it, is a date rather than a number of units."""
    return isinstance(time, str) and not is_number(time)


@dataclass(frozen=True, slots=True)
class Clock:
    """How a stream spells its times: plain numbers of ``unit``, or ``xsd:dateTime``."""

    kind: Literal["integer", "datetime"] = "datetime"
    unit: str = "s"

    def __post_init__(self) -> None:
        if self.kind not in ("integer", "datetime"):
            raise TimeError("a clock is 'integer' or 'datetime'", self.kind)
        if self.unit not in UNITS:
            raise TimeError(f"unknown time unit; expected one of {', '.join(UNITS)}", self.unit)

    def parse(self, lexical: str | int | Decimal) -> int:
        """The time in microseconds."""
        if self.kind == "integer":
            return parse_number(lexical, self.unit)
        if not isinstance(lexical, str):
            raise TimeError("expected an xsd:dateTime, found a plain number; name its unit", str(lexical))
        return parse_datetime(lexical)

    def render(self, us: int) -> int | str:
        """The time as this clock spells it; a number that is not whole becomes a decimal spelling.

        >>> Clock("integer").render(1_500_000)
        '1.5'
        """
        if self.kind == "datetime":
            return render_datetime(us)
        times, per = RATIOS[self.unit]
        whole, rest = divmod(us * per, times)
        if not rest:
            return whole
        sign, magnitude = ("-", -us) if us < 0 else ("", us)
        return sign + _decimal(magnitude, times)


class ClockRender:
    """Shows times as a clock does, which is asked for each time: a stream may learn of its clock later.

    >>> ClockRender(lambda: Clock("integer", "ms"))(8_000)
    8
    """

    __slots__ = ("clock",)

    def __init__(self, clock: Callable[[], Clock]) -> None:
        self.clock = clock

    def __call__(self, us: int) -> int | str:
        return self.clock().render(us)


def _decimal(us: int, times: int) -> str:
    """us / times as a decimal numeral; for units from minutes up it may not terminate, and then shows 12 digits."""
    whole, rest = divmod(us, times)
    digits = ""
    while rest and len(digits) < 12:
        digit, rest = divmod(rest * 10, times)
        digits += str(digit)
    return f"{whole}.{digits}"


def clock_of(lexical: str | int | Decimal, unit: str = "s") -> Clock:
    """The clock implied by the first time of a stream."""
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
