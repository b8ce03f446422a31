"""The proleptic Gregorian calendar on integers, for every year (Python's ``datetime`` ends at 1 and 9999)."""

from __future__ import annotations

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def month_length(year: int, month: int) -> int:
    """The number of days of a month.

    >>> month_length(2024, 2), month_length(1900, 2)
    (29, 28)
    """
    if month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
        return 29
    return _MONTH_LENGTHS[month - 1]


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to the date.

    Years are counted from March, so that the leap day is the last of its year; 400 of them have 146,097 days.

    >>> days_from_civil(2000, 3, 1)
    11017
    """
    if month <= 2:
        year -= 1
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """``(year, month, day)``: the inverse of ``days_from_civil``."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return era * 400 + year_of_era + (month <= 2), month, day


def add_months(us: int, months: int) -> int:
    """The instant some calendar months later (earlier when negative); the day is cut to the length of its month.

    >>> add_months(days_from_civil(2024, 1, 31) * DAY, 1) == days_from_civil(2024, 2, 29) * DAY
    True
    """
    days, within_day = divmod(us, DAY)
    year, month, day = civil_from_days(days)
    year_shift, month_index = divmod(month - 1 + months, 12)
    year, month = year + year_shift, month_index + 1
    return days_from_civil(year, month, min(day, month_length(year, month))) * DAY + within_day
