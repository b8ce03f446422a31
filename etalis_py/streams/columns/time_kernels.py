"""Times in bytes → microseconds, as ``timing.TimeReader`` reads them: loops compiled by Numba.

The usual spellings are those without a year beyond 9999, a 24th hour, a 60th second, white space, escapes, or more
digits than microseconds have; any other literal is for ``TimeReader`` itself.
"""

from __future__ import annotations

import numpy as np
from etalis_rules.calendar import DAY

from etalis_py.events.clock import MAX_TIME
from etalis_py.numba_cache import kernel, part, section

NO_TIME = -(2**63)
_MOST = MAX_TIME - 10 * DAY * 10**5
"""A time up to this one is in range, also with the longest duration that is read here: any other is for the reader."""


@part
def _digits(data, i, count):
    """The number with ``count`` digits, or -1."""
    number = 0
    for k in range(count):
        digit = data[i + k] - 48
        if digit < 0 or digit > 9:
            return -1
        number = number * 10 + digit
    return number


@section
def days_from_civil(year, month, day):
    """Days since 1970-01-01; -1 << 40 if there is no such day."""
    longest = 31
    if month == 4 or month == 6 or month == 9 or month == 11:
        longest = 30
    elif month == 2:
        longest = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    if not 1 <= month <= 12 or not 1 <= day <= longest:
        return -1 << 40
    if month <= 2:
        year -= 1
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + (9 if month <= 2 else -3)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


@section
def _fraction(data, i, end):
    """The microseconds of the digits after a point, and the place after them; -1 if there are none or too many."""
    scale, micros = 100_000, 0
    begin = i
    while i < end and 48 <= data[i] <= 57:
        if scale == 0:
            return -1, i
        micros += (data[i] - 48) * scale
        scale //= 10
        i += 1
    return (micros, i) if i > begin else (-1, i)


@kernel
def date(data, i, end):
    """The microseconds that a date, or a date and a time, spells from ``i`` up to ``end``, or NO_TIME."""
    if end - i < 10 or data[i + 4] != 45 or data[i + 7] != 45:
        return NO_TIME
    year, month, day = _digits(data, i, 4), _digits(data, i + 5, 2), _digits(data, i + 8, 2)
    if year < 0 or month < 0 or day < 0:
        return NO_TIME
    days = days_from_civil(year, month, day)
    if days == -1 << 40:
        return NO_TIME
    i += 10
    hour = minute = second = micros = east = 0
    if i < end and data[i] == 84:
        if end - i < 9 or data[i + 3] != 58 or data[i + 6] != 58:
            return NO_TIME
        hour, minute, second = _digits(data, i + 1, 2), _digits(data, i + 4, 2), _digits(data, i + 7, 2)
        if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
            return NO_TIME
        i += 9
        if i < end and data[i] == 46:
            micros, i = _fraction(data, i + 1, end)
            if micros < 0:
                return NO_TIME
    if i < end and data[i] == 90:
        i += 1
    elif i < end:
        if end - i != 6 or (data[i] != 43 and data[i] != 45) or data[i + 3] != 58:
            return NO_TIME
        hours, minutes = _digits(data, i + 1, 2), _digits(data, i + 4, 2)
        if hours < 0 or minutes < 0 or minutes > 59 or hours * 60 + minutes > 840:
            return NO_TIME
        east = hours * 60 + minutes
        if data[i] == 45:
            east = -east
        i += 6
    if i != end:
        return NO_TIME
    return ((days * 24 + hour) * 60 + minute - east) * 60_000_000 + second * 1_000_000 + micros


@kernel
def number(data, i, end, times, per):
    """The microseconds of a number of units, ``per`` of which are ``times`` microseconds, or NO_TIME."""
    negative = data[i] == 45
    if negative or data[i] == 43:
        i += 1
    if not 1 <= end - i <= 18:
        return NO_TIME
    value, divisor, point = 0, per, False
    begin = i
    for k in range(i, end):
        c = data[k]
        if c == 46 and not point and k > begin and k < end - 1:
            point = True
        elif 48 <= c <= 57:
            value = value * 10 + (c - 48)
            if point:
                if divisor > _MOST // 10:
                    return NO_TIME
                divisor *= 10
        else:
            return NO_TIME
    if value > _MOST // times or value * times % divisor != 0:
        return NO_TIME
    micros = value * times // divisor
    return -micros if negative else micros


@kernel
def _duration(data, i, end):
    """The microseconds of a duration such as P1DT2H3M4.5S, or NO_TIME."""
    i += 1
    total, timed, last, parts = 0, False, 0, 0
    while i < end:
        if data[i] == 84 and not timed:
            timed = True
            i += 1
            parts = 0
            continue
        begin, value = i, 0
        while i < end and 48 <= data[i] <= 57 and i - begin < 6:
            value = value * 10 + (data[i] - 48)
            i += 1
        micros = 0
        if i in (begin, end):
            return NO_TIME
        if data[i] == 46:
            micros, i = _fraction(data, i + 1, end)
            if micros < 0 or i == end or data[i] != 83:
                return NO_TIME
        c = data[i]
        if not timed and c == 68 and last == 0:
            total, last = total + value * 86_400_000_000, 1
        elif timed and c == 72 and last < 2:
            total, last = total + value * 3_600_000_000, 2
        elif timed and c == 77 and last < 3:
            total, last = total + value * 60_000_000, 3
        elif timed and c == 83 and last < 4:
            total, last = total + value * 1_000_000 + micros, 4
        else:
            return NO_TIME
        parts += 1
        i += 1
    return total if parts else NO_TIME


@kernel
def _interval(data, i, close, times, per, out):
    """Put the start and the end that a text spells into ``out``; returns whether it is usual."""
    if close == i:
        return False
    slash = -1
    for k in range(i, close):
        if data[k] == 92:
            return False
        if data[k] == 47:
            if slash >= 0:
                return False
            slash = k
    last = close if slash < 0 else slash
    first = date(data, i, last) if times == 0 else number(data, i, last, times, per)
    if first == NO_TIME:
        return False
    out[0] = out[1] = first
    if slash >= 0:
        if slash + 1 == close:
            return False
        if data[slash + 1] == 80:
            length = _duration(data, slash + 1, close)
            if length == NO_TIME or first > _MOST:
                return False
            out[1] = first + length
        else:
            after = slash + 1
            out[1] = date(data, after, close) if times == 0 else number(data, after, close, times, per)
        if out[1] < out[0]:
            return False
    return True


@kernel
def span(data, i, end, times, per, out):
    """Put the start and the end that a literal spells into ``out``; returns whether it is usual.

    ``times`` is 0 in a stream of dates; otherwise it counts units, ``per`` of which are ``times`` microseconds.
    """
    if data[i] != 34:
        return False
    close = i + 1
    while close < end and data[close] != 34:
        close += 1
    return _interval(data, i + 1, close, times, per, out)


@kernel
def spans(data, texts, times, per, out, starts, ends, usual):
    """Read the texts ``data[texts[n]:texts[n + 1]]``; says which are usual."""
    for n in range(len(usual)):
        first, last = np.int64(texts[n]), np.int64(texts[n + 1])
        usual[n] = _interval(data, first, last, times, per, out)
        if usual[n]:
            starts[n], ends[n] = out[0], out[1]


YEAR, SHORT_YEAR, MONTH, DAY_OF_MONTH, HOUR_OF_DAY, MINUTE, SECOND_OF_MINUTE, FRACTION, HOUR_OF_HALF, DAY_OF_YEAR = (
    range(10)
)
_WIDTHS = (4, 2, 2, 2, 2, 2, 2, 6, 2, 3)
ZONE, HALF, MONTH_SHORT, MONTH_NAME, WEEKDAY_SHORT, WEEKDAY_NAME, SPACES = range(10, 17)
_NAMES_BEGIN = (0, 2, 14, 26, 33, 40)
FIELD = 256
"""Steps of a format: a byte, or one of the fields above and this.  Those before ``ZONE`` are digits.

The names are those of ``times.NAMES``, and those of HALF to WEEKDAY_NAME begin in it at ``_NAMES_BEGIN``.
"""


@kernel
def _east(data, i, end):
    """The minutes that a zone such as Z, +0100 or -01:30 is ahead of UTC, and the place after it, or -1."""
    if i < end and data[i] == 90:
        return 0, i + 1
    if end - i < 5 or (data[i] != 43 and data[i] != 45):
        return 0, -1
    colon = 1 if data[i + 3] == 58 else 0
    if end - i < 5 + colon:
        return 0, -1
    hours, minutes = _digits(data, i + 1, 2), _digits(data, i + 3 + colon, 2)
    if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
        return 0, -1
    east = hours * 60 + minutes
    return -east if data[i] == 45 else east, i + 5 + colon


@section
def _name(data, i, end, names, begins, kind):
    """Which of the names of a kind stands at ``i``, in letters of any case, and the place after it; 0 if none does."""
    first = _NAMES_BEGIN[kind]
    for name in range(first, _NAMES_BEGIN[kind + 1]):
        begin, length = begins[name], begins[name + 1] - begins[name]
        k = 0
        while k < length and i + k < end and data[i + k] | 32 == names[begin + k]:
            k += 1
        if k == length:
            return name - first + 1, i + length
    return 0, i


@section
def _field(data, i, end, field, least, values):
    """Put the number of a field into ``values``; returns the place after it, or -1 if it has too few digits."""
    width, begin, value = _WIDTHS[field], i, 0
    while i < end and i - begin < width and 48 <= data[i] <= 57:
        value = value * 10 + (data[i] - 48)
        i += 1
    if i - begin < least:
        return -1
    if field == FRACTION:
        for _ in range(i - begin, width):
            value *= 10
    values[field] = value
    if field == SHORT_YEAR:
        values[YEAR] = value + (2000 if value < 69 else 1900)
    return i


@section
def _moment(values):
    """The microseconds that the fields of a time say, or NO_TIME."""
    year, hour, day_of_year = values[YEAR], values[HOUR_OF_DAY], values[DAY_OF_YEAR]
    if values[HOUR_OF_HALF] >= 0:
        if not 1 <= values[HOUR_OF_HALF] <= 12:
            return NO_TIME
        hour = values[HOUR_OF_HALF] % 12 + (12 if values[HALF] == 2 else 0)
    if year < 1000 or hour > 23 or values[MINUTE] > 59 or values[SECOND_OF_MINUTE] > 59:
        return NO_TIME
    days = days_from_civil(year, values[MONTH], values[DAY_OF_MONTH])
    if days == -1 << 40:
        return NO_TIME
    if day_of_year >= 0:
        if not 1 <= day_of_year <= 365:  # the last day of a leap year is for strptime
            return NO_TIME
        days += day_of_year - 1
    minutes = (days * 24 + hour) * 60 + values[MINUTE] - values[ZONE]
    return minutes * 60_000_000 + values[SECOND_OF_MINUTE] * 1_000_000 + values[FRACTION]


@kernel
def _formatted(data, i, end, steps, names, begins, values):
    """The microseconds that a text of this format spells, or NO_TIME; ``values`` are those of the fields."""
    for k in range(len(values)):
        values[k] = 0
    values[MONTH] = values[DAY_OF_MONTH] = 1
    values[HOUR_OF_HALF] = values[DAY_OF_YEAR] = -1
    for k in range(len(steps)):
        field = steps[k] - FIELD
        if field < 0:
            if i >= end or data[i] != steps[k]:
                return NO_TIME
            i += 1
        elif field < ZONE:
            # A number that touches the next one has all of its digits: which of fewer are whose is for strptime to say.
            touches = k + 1 < len(steps) and FIELD <= steps[k + 1] < FIELD + ZONE
            i = _field(data, i, end, field, _WIDTHS[field] if field <= SHORT_YEAR or touches else 1, values)
            if i < 0:
                return NO_TIME
        elif field == ZONE:
            values[ZONE], i = _east(data, i, end)
            # Seconds of a zone are for strptime, too.
            if i < 0 or (i < end and (data[i] == 58 or 48 <= data[i] <= 57)):
                return NO_TIME
        elif field == SPACES:
            begin = i
            while i < end and (data[i] == 32 or 9 <= data[i] <= 13):
                i += 1
            if i == begin:
                return NO_TIME
        else:
            name, i = _name(data, i, end, names, begins, field - HALF)
            if name == 0:
                return NO_TIME
            values[MONTH if field in (MONTH_NAME, MONTH_SHORT) else field] = name
    return _moment(values) if i == end else NO_TIME


@kernel
def moments(data, texts, steps, names, begins, values, micros, usual):
    """Read the texts ``data[texts[n]:texts[n + 1]]`` by a format; says which are usual."""
    for n in range(len(usual)):
        micros[n] = _formatted(data, np.int64(texts[n]), np.int64(texts[n + 1]), steps, names, begins, values)
        usual[n] = micros[n] != NO_TIME
        if not usual[n]:
            micros[n] = 0
