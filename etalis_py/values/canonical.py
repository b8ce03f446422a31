"""Values to lexical forms: how computed values are written.

Canonical as in XML Schema 1.1: integers "3", decimals "1.5" and "2" (no point without a fraction), doubles "1.0E0",
dateTimes with "Z" for the zone of UTC.  A literal that was only read keeps its own spelling; these functions are for
results.
"""

from __future__ import annotations

from decimal import Decimal

from etalis_rules.calendar import DAY, HOUR, MINUTE, SECOND, civil_from_days

from etalis_py.values.types import Date, DateTime, Duration, Time, XsdFloat

_INT_LIMIT = 10**4000


def integer_lexical(value: int) -> str:
    return str(value) if -_INT_LIMIT < value < _INT_LIMIT else format(Decimal(value), "f")


def decimal_lexical(value: Decimal) -> str:
    """
    >>> decimal_lexical(Decimal("2.50")), decimal_lexical(Decimal("-0.0")), decimal_lexical(Decimal("1E+2"))
    ('2.5', '0', '100')
    """
    if not value:
        return "0"
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _shortest(value: float) -> str:
    """The shortest text that reads back as the same number of the same precision."""
    if value.__class__ is XsdFloat:
        for digits in range(1, 9):
            text = format(value, f".{digits}g")
            if XsdFloat(Decimal(text)) == value:
                return text
        return format(value, ".9g")
    return repr(float(value))


def double_lexical(value: float) -> str:
    """
    >>> double_lexical(1.0), double_lexical(-0.00015), double_lexical(float("inf"))
    ('1.0E0', '-1.5E-4', 'INF')
    """
    if value - value != 0:
        return "NaN" if value != value else "INF" if value > 0 else "-INF"
    text = _shortest(value)
    sign = "-" if text[0] == "-" else ""
    mantissa, _, exponent = text[len(sign) :].partition("e")
    whole, _, fraction = mantissa.partition(".")
    power = int(exponent or 0)
    if whole == "0":
        digits = fraction.lstrip("0")
        power -= len(fraction) - len(digits) + 1
    else:
        digits = whole + fraction
        power += len(whole) - 1
    if not digits:
        return sign + "0.0E0"
    return f"{sign}{digits[0]}.{digits[1:].rstrip('0') or '0'}E{power}"


def double_as_string(value: float) -> str:
    """The text of a cast to xsd:string (XPath Functions §17.1.2): as a decimal from 0.000001 up to 1000000.

    >>> double_as_string(1.0), double_as_string(1e6), double_as_string(-0.0)
    ('1', '1.0E6', '-0')
    """
    if value == 0:
        return "-0" if str(value).startswith("-") else "0"
    if 1e-6 <= abs(value) < 1e6:
        return decimal_lexical(Decimal(_shortest(value)))
    return double_lexical(value)


def zone_lexical(offset: int | None) -> str:
    if offset is None:
        return ""
    if offset == 0:
        return "Z"
    return f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02d}:{abs(offset) % 60:02d}"


def _fraction(micros: int) -> str:
    return f".{micros:06d}".rstrip("0") if micros else ""


def _date(days: int) -> str:
    year, month, day = civil_from_days(days)
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{month:02d}-{day:02d}"


def _clock(us: int) -> str:
    seconds, micros = divmod(us, SECOND)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{_fraction(micros)}"


def date_time_lexical(value: DateTime) -> str:
    """
    >>> date_time_lexical(DateTime(1_500_000, 60))
    '1970-01-01T01:00:01.5+01:00'
    """
    days, clock = divmod(value.us + (value.offset or 0) * MINUTE, DAY)
    return f"{_date(days)}T{_clock(clock)}{zone_lexical(value.offset)}"


def date_lexical(value: Date) -> str:
    return _date((value.us + (value.offset or 0) * MINUTE) // DAY) + zone_lexical(value.offset)


def time_lexical(value: Time) -> str:
    return _clock((value.us + (value.offset or 0) * MINUTE) % DAY) + zone_lexical(value.offset)


def duration_lexical(value: Duration) -> str:
    """
    >>> duration_lexical(Duration(14, 0)), duration_lexical(Duration(0, -90_061_500_000))
    ('P1Y2M', '-P1DT1H1M1.5S')
    """
    if not value.months and not value.micros:
        return "P0M" if value.by_months else "PT0S"
    months, micros = abs(value.months), abs(value.micros)
    days, clock = divmod(micros, DAY)
    hours, clock = divmod(clock, HOUR)
    minutes, clock = divmod(clock, MINUTE)
    seconds, rest = divmod(clock, SECOND)
    date_parts = ((months // 12, "Y"), (months % 12, "M"), (days, "D"))
    date = "".join(f"{count}{unit}" for count, unit in date_parts if count)
    time = "".join(f"{count}{unit}" for count, unit in ((hours, "H"), (minutes, "M")) if count)
    if seconds or rest:
        time += f"{seconds}{_fraction(rest)}S"
    sign = "-" if value.months < 0 or value.micros < 0 else ""
    return f"{sign}P{date}{'T' + time if time else ''}"
