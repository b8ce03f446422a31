"""Functions on dateTimes ([SPARQL 1.1 Query] §17.4.5), and on the parts that dates and times have."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from etalis_rules.calendar import DAY, HOUR, MINUTE, civil_from_days

from etalis_py.values.canonical import zone_lexical
from etalis_py.values.errors import SparqlError, type_error
from etalis_py.values.types import Date, DateTime, Duration, Time

_MICRO = Decimal("0.000001")


def now(instant_us: int) -> DateTime:
    """NOW: the instant, in UTC."""
    return DateTime(instant_us, 0)


def _local(value: Any) -> int:
    return int(value.us) + (value.offset or 0) * MINUTE


def _civil(value: Any, function: str) -> tuple[int, int, int]:
    if value.__class__ is not DateTime and value.__class__ is not Date:
        raise type_error(function, value)
    return civil_from_days(_local(value) // DAY)


def _clock(value: Any, function: str) -> int:
    if value.__class__ is not DateTime and value.__class__ is not Time:
        raise type_error(function, value)
    return _local(value) % DAY


def year(value: Any) -> int:
    return _civil(value, "YEAR")[0]


def month(value: Any) -> int:
    return _civil(value, "MONTH")[1]


def day(value: Any) -> int:
    return _civil(value, "DAY")[2]


def hours(value: Any) -> int:
    return _clock(value, "HOURS") // HOUR


def minutes(value: Any) -> int:
    return _clock(value, "MINUTES") // MINUTE % 60


def seconds(value: Any) -> Decimal:
    """SECONDS: an xsd:decimal, with the fraction."""
    return _clock(value, "SECONDS") % MINUTE * _MICRO


def _zone(value: Any, function: str) -> int | None:
    if value.__class__ is DateTime or value.__class__ is Date or value.__class__ is Time:
        return value.offset
    raise type_error(function, value)


def timezone(value: Any) -> Duration:
    """TIMEZONE: the zone as an xsd:dayTimeDuration; an error when there is none."""
    offset = _zone(value, "TIMEZONE")
    if offset is None:
        raise SparqlError(f"{value} has no time zone; TZ gives an empty string for it")
    return Duration(0, offset * MINUTE)


def tz(value: Any) -> str:
    """TZ: the zone as it is written ("Z" for UTC), "" when there is none."""
    return zone_lexical(_zone(value, "TZ"))
