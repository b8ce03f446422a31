"""Times as Python users have them → microseconds since the epoch."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Rational, Real
from typing import Any

from etalis_py.events.clock import nearest, parse_datetime, parse_number

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_EXAMPLES = "such as 5, 2.5, '2026-01-31T10:00:00Z', datetime.now(UTC), or a pair of them"


def micros_of(given: Any) -> tuple[int, bool]:
    """A time in microseconds, and whether it was given as a date rather than as a number of seconds.

    >>> micros_of(0.1), micros_of("1970-01-01T00:00:01Z")
    ((100000, False), (1000000, True))
    """
    if type(given) is int:  # most are
        return parse_number(given), False
    if isinstance(given, str):
        return parse_datetime(given), True
    if isinstance(given, date):
        return _of_date(given), True
    kind = getattr(getattr(given, "dtype", None), "kind", "")
    if kind == "M":
        return _of_numpy(given), True
    if isinstance(given, Real | Decimal) and not isinstance(given, bool) and kind != "m":
        return _of_number(given), False
    raise TypeError(
        f"the time of an event is a number of seconds or a date, {_EXAMPLES}, not {given!r} ({type(given).__name__})"
    )


def _of_number(given: Any) -> int:
    """A number of seconds; a float has no more digits than its shortest spelling, of which microseconds are kept."""
    if isinstance(given, Integral):
        return parse_number(int(given))
    if isinstance(given, Rational):
        raise TypeError(f"a fraction of seconds is given as Decimal or float, not {given!r}: float({given})")
    number = given if isinstance(given, Decimal) else Decimal(str(given))  # NumPy's repr is no number
    if not number.is_finite():
        raise ValueError(f"the time of an event is a number of seconds or a date, {_EXAMPLES}, not {given!r}")
    return parse_number(number) if isinstance(given, Decimal) else nearest(number)


def _of_date(given: date) -> int:
    if given != given:
        raise ValueError("the time of the event is NaT: leave out what has no time")
    if not isinstance(given, datetime):
        given = datetime.combine(given, time())
    if getattr(given, "nanosecond", 0):
        raise ValueError(f"{given!r} is finer than a microsecond: round it with .floor('us')")
    if given.tzinfo is None:
        given = given.replace(tzinfo=UTC)
    return (given - _EPOCH) // _MICROSECOND


def _of_numpy(given: Any) -> int:
    exact = given.astype("datetime64[us]")
    if exact != given:  # also where it is NaT
        raise ValueError(
            f"{given!r} is no time in whole microseconds; leave out what has none, and round others with "
            ".astype('datetime64[us]')"
        )
    return int(exact.astype("int64"))
