"""Finds the time of a table: which column has it, and how it is spelled.

A name helps (``at``, ``timestamp``, ``t``), but the values decide: ``2026-03-02 08:00:00``, ``Jan 1 2000`` and
``1769853600000`` are times under any name, and ``response_time`` with 12, 7, 30 is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import chain, pairwise
from typing import Any, NamedTuple

from etalis_py.events.clock import TimeError, is_number, iso_spelling, parse_datetime

_TIMES = (
    "time", "timestamp", "datetime", "date_time", "date", "at", "when", "ts", "created", "created_at", "t", "epoch",
    "day", "month", "year", "end",
)  # fmt: skip
_FORMATS = (
    "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y/%m/%d",
    "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%Y",
    "%d/%m/%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%d/%m/%Y", "%m/%d/%Y %I:%M:%S %p", "%m/%d/%Y %I:%M %p",
    "%m/%d/%y %H:%M", "%m/%d/%y", "%d.%m.%y", "%Y-%m-%d %H:%M:%S %Z", "%d-%b-%Y", "%d-%b-%Y %H:%M:%S", "%d %b %Y",
    "%d %b %Y %H:%M:%S", "%b %d, %Y", "%b %d %Y", "%b %d %Y %H:%M", "%b %d %Y %H:%M:%S", "%b %d, %Y %H:%M:%S",
    "%d %B %Y", "%B %d, %Y", "%B %d %Y", "%a %b %d %Y", "%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S %z",
    "%d/%b/%Y:%H:%M:%S %z", "%b %Y", "%B %Y", "%Y-%m", "%Y/%m", "%m/%Y",
)  # fmt: skip
_CALENDAR = {8: "%Y%m%d", 14: "%Y%m%d%H%M%S"}
_OF_DAY = ("%H:%M:%S", "%H:%M:%S.%f", "%H:%M")
_WHOLE_YEAR = re.compile(r"[12]\d{3}\.0")  # as a column of floats has it
_CLOCK = re.compile(r"\d{1,2}:\d{2}.*")
# A number below the limit is a count of this unit since the epoch: in seconds that is the year 5138, and 100 times
# as far in the past of the next unit is 1973.
_EPOCHS = ((10**11, "s"), (10**14, "ms"), (10**17, "us"))
_SECONDS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_2000, _2100 = 946_684_800, 4_102_444_800
_LOOKED_AT = 1000
_LEAST_DIGITS = 4  # 1/2/26, Jan 2000
_FEW = 4  # a quarter of the cells of a column, or less, may be no times though the others are
_FEW_OF_TIMES = 2  # half of them, if the column is called a time
_AT_FIRST = 20


_ENDS = (
    ("start", "end"), ("begin", "end"), ("start", "stop"), ("started", "ended"), ("started", "finished"),
    ("from", "to"), ("from", "until"), ("since", "until"),
)  # fmt: skip
_COUNTED = (("start", "end"), ("begin", "end"))  # also of small numbers; from 17 to 4 may be a payment


class FoundTime(NamedTuple):
    """The time of a table as a mapping says it, and the columns that it uses."""

    mapping: dict[str, Any]
    columns: frozenset[str]


def find_time(cells: Mapping[str, Sequence[str]], moments: Sequence[str]) -> FoundTime | None:
    """The time of a table, given the cells of its columns that are not empty; None if no column has it.

    ``moments`` are the columns with a type of time.

    >>> find_time({"response_time": ["12", "7"], "logged": ["02.03.2026 08:00"]}, ()).mapping
    {'time': '{logged}', 'time_format': '%d.%m.%Y %H:%M'}
    """
    for name in moments:
        return FoundTime({"time": f"{{{name}}}"}, frozenset((name,)))
    for name, form in _candidates({name: column[:_LOOKED_AT] for name, column in cells.items() if column}):
        clock = _partner(name, cells)
        if clock is None:
            if form is not None:
                return FoundTime({"time": f"{{{name}}}", **form}, frozenset((name,)))
            continue
        texts = [f"{day} {hour}" for day, hour in zip(cells[name], cells[clock], strict=False)][:_LOOKED_AT]
        joined = time_format(texts)
        if joined is not None:
            return FoundTime({"time": f"{{{name}}} {{{clock}}}", **joined}, frozenset((name, clock)))
    return None


def find_interval(columns: Mapping[str, Sequence[str]]) -> FoundTime | None:
    """Two columns with the start and the end of each row, given their cells row by row; None if there are none.

    >>> find_interval({"start_time": ["09:00"], "end_time": ["10:00"]})  # without a day
    >>> find_interval({"from": ["2026-03-02 09:00"], "to": ["2026-03-02 10:00"]}).mapping
    {'time': ['{from}', '{to}']}
    """
    times = {name for name in columns if name.lower() in _TIMES}
    for first, last, ends in _ends_called(columns):
        if times - {first, last}:
            continue
        starts, stops = columns[first][:_LOOKED_AT], columns[last][:_LOOKED_AT]
        if all(starts) and all(stops) and (form := _form_of_intervals(starts, stops, ends in _COUNTED)) is not None:
            return FoundTime({"time": [f"{{{first}}}", f"{{{last}}}"], **form}, frozenset((first, last)))
    return None


def _ends_called(columns: Iterable[str]) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """A start, an end, and the words in which their names differ: ``start_time`` and ``end_time``."""
    words = {name: tuple(words_of(name)) for name in columns}
    order = {name: number for number, name in enumerate(words)}
    called: dict[tuple[str, ...], list[str]] = {}
    for name, own in words.items():
        called.setdefault(own, []).append(name)
    for first, own in words.items():
        pairs = [
            (first, last, ends)
            for place, word in enumerate(own)
            for ends in _ENDS
            if ends[0] == word
            for last in called.get((*own[:place], ends[1], *own[place + 1 :]), ())
        ]
        yield from sorted(pairs, key=lambda pair: order[pair[1]])


def _form_of_intervals(starts: Sequence[str], stops: Sequence[str], counted: bool) -> dict[str, str] | None:
    """How the times of intervals are spelled; None if these are none."""
    texts = [*starts, *stops]
    form = time_format(texts)
    if not texts or form is None:
        return None
    if "time_format" in form:
        ordered = all(_is_in_order(pair, form["time_format"]) for pair in zip(starts, stops, strict=True))
    elif all(map(is_number, texts)):
        rising = all(Decimal(a) <= Decimal(b) for a, b in zip(starts, stops, strict=True))
        ordered = rising and (counted or _is_epoch(texts))
    else:
        moments = (map(parse_datetime, map(iso_spelling, pair)) for pair in zip(starts, stops, strict=True))
        ordered = all(start <= stop for start, stop in moments)
    return form if ordered else None


def _candidates(cells: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, dict[str, str] | None]]:
    """Columns that may be the time, the likeliest first, and how they spell it (None: not by themselves)."""
    numbers = {name for name, column in cells.items() if all(map(is_number, column))}
    called = (name for name in cells if _last_part(name) in _TIMES)
    exact = sorted(called, key=lambda name: _TIMES.index(_last_part(name)))
    partly = [name for name in cells if name not in exact and words_of(name)[-1:] and words_of(name)[-1] in _TIMES]
    others = [name for name in cells if name not in exact and name not in partly]
    for name in exact:
        column = cells[name]
        if name not in numbers or _counts(column) or _is_epoch(column) or calendar_format(column, name) is not None:
            yield name, time_format(column, name)
    for name in (*partly, *others):
        if name not in numbers:
            yield name, time_format(cells[name], name)
    for name in (*partly, *others):
        years = "year" in words_of(name) and calendar_format(cells[name], name) is not None
        if name in numbers and (years or (_is_epoch(cells[name]) and (name in partly or _rises(cells[name], name)))):
            yield name, time_format(cells[name], name)
    for name in (*exact, *partly):
        if name not in numbers and all(map(_CLOCK.fullmatch, cells[name])):
            yield name, _first_form(cells[name], _OF_DAY)


def _last_part(name: str) -> str:
    """The name of a column, or of a key inside another: readings[].at is called at."""
    return name.rpartition(".")[2].lower()


def words_of(name: str) -> list[str]:
    """The words of a column's name: ``sensorId`` and ``Sensor ID`` are sensor and id."""
    return [word for word in re.split(r"[\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()) if word]


def is_called_a_time(name: str) -> bool:
    """Whether a name is one of times: ``time``, ``created_at``."""
    return words_of(name)[-1:] != [] and words_of(name)[-1] in _TIMES


def _counts(column: Sequence[str]) -> bool:
    """Whether numbers may count time: whole ones, or ones that only rise (a temperature named ``t`` does neither)."""
    if not any("." in cell for cell in column):
        return True
    values = list(map(float, column))
    return len(values) > 1 and all(one <= other for one, other in pairwise(values))


def _is_epoch(column: Sequence[str]) -> bool:
    """Whether all of these numbers are times from 2000 to 2100 in one unit."""
    per = _SECONDS[_unit(column)]
    return all(_2000 * per <= float(cell) <= _2100 * per for cell in column)


def _rises(column: Sequence[str], name: str) -> bool:
    """Whether numbers under any name only rise, as times do; so do the numbers of things, but these are called so."""
    return words_of(name)[-1:] not in (["id"], ["no"]) and all(a <= b for a, b in pairwise(map(float, column)))


def _unit(column: Sequence[str]) -> str:
    most = max((abs(float(cell)) for cell in column), default=0)
    return next((unit for limit, unit in _EPOCHS if most < limit), "ns")


def _partner(name: str, cells: Mapping[str, Sequence[str]]) -> str | None:
    """The column with the time of day that belongs to a column of days."""
    if "date" not in name.lower() and "day" not in name.lower():
        return None
    others = (other for other in cells if other != name and "time" in other.lower() and cells[other])
    return next((other for other in others if all(map(_CLOCK.fullmatch, cells[other]))), None)


def calendar_format(texts: Sequence[str], name: str = "") -> str | None:
    """The format of numbers that are dates: 20260302, 20260302080000, and 1995 in a column of years."""
    if texts and {"year", "yr"} & set(words_of(name)) and all(_WHOLE_YEAR.fullmatch(text.strip()) for text in texts):
        return "%Y.0"
    sizes = {len(text.strip()) for text in texts}
    if sizes == {4} and {"year", "yr", "jahr", "date"} & set(words_of(name)):
        return "%Y" if all(text.strip().isdigit() and 1000 <= int(text) < 3000 for text in texts) else None
    form = _CALENDAR.get(next(iter(sizes))) if len(sizes) == 1 else None
    if form is None or not all(text.strip()[:2] in ("19", "20") for text in texts):
        return None
    return form if _is_spelled(texts, form) else None


def time_format(texts: Sequence[str], name: str = "") -> dict[str, str] | None:
    """What a mapping must say about times spelled like these; None if they are not times.

    >>> time_format(["2026-01-31T10:00:00Z"]), time_format(["1769853600000"]), time_format(["soon"])
    ({}, {'time_unit': 'ms'}, None)
    >>> time_format(["Jan 1 2000"]), time_format(["13/02/2026", "01/03/2026"])
    ({'time_format': '%b %d %Y'}, {'time_format': '%d/%m/%Y'})
    """
    texts = list(dict.fromkeys(texts))
    if texts and all(map(is_number, texts)):
        form = calendar_format(texts, name)
        if form is not None:
            return {"time_format": form}
        unit = _unit(texts)
        return {} if unit == "s" else {"time_unit": unit}
    try:
        for text in texts:
            parse_datetime(iso_spelling(text.strip()))
        return {}
    except TimeError:
        # Each of the formats has a year, a month and perhaps a day: to try them all takes a millisecond.
        digits = min(sum(map(str.isdigit, text)) for text in texts)
        return _first_form(texts, _FORMATS) if digits >= _LEAST_DIGITS else None


def _first_form(texts: Sequence[str], forms: Sequence[str]) -> dict[str, str] | None:
    """The format that reads all of the texts; of several (is 1/2 in January?) one in which they are in order."""
    fitting = (form for form in forms if _is_spelled(texts, form))
    first = next(fitting, None)
    if first is None:
        return None
    return {"time_format": next((form for form in chain((first,), fitting) if _is_in_order(texts, form)), first)}


def exceptions_to_times(cells: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Remarks on the columns whose cells are times but for few, or times that are not all spelled alike.

    >>> list(exceptions_to_times({"when": ["2026-01-31", "2026-02-01", "unknown"], "n": ["1", "2", ""]}))
    ["the cells of when are times, but 'unknown' is none: correct it, and when is the time"]
    """
    for name, column in cells.items():
        texts = list(dict.fromkeys(text for cell in column[:_LOOKED_AT] if (text := cell.strip())))
        share = _FEW if _last_part(name) not in _TIMES else _FEW_OF_TIMES
        counted = share == _FEW_OF_TIMES and _counts([text for text in texts if is_number(text)])
        for some in (texts[:_AT_FIRST], texts):  # to look at a thousand notes would take a second
            others = [text for text in some if not (counted if is_number(text) else time_format([text]) is not None)]
            if share * len(others) > len(some):
                break
        else:
            times = [text for text in texts if text not in others]
            if others and time_format(times) is not None:
                yield f"the cells of {name} are times, but {others[0]!r} is none: correct it, and {name} is the time"
            elif not others and (odd := next((t for t in times if time_format([times[0], t]) is None), "")):
                yield (
                    f"the times of {name} are spelled in different ways, as {times[0]!r} and {odd!r}: "
                    f"spell them alike, and {name} is the time"
                )


def doubtful_days(texts: Sequence[str], form: str) -> str:
    """A remark if these times, which the format reads, might have the day where it has the month, or ""."""
    swapped = {"%m/%d": "%d/%m", "%d/%m": "%m/%d"}
    other = swapped.get(form[:5], "") + form[5:]
    texts = [text.strip() for text in texts if text.strip()]
    if form[:5] not in swapped or not texts or not _is_spelled(texts, other) or not _is_in_order(texts, other):
        return ""
    first, second = ("month", "day") if form.startswith("%m") else ("day", "month")
    return (
        f"{texts[0]} is read with the {first} before the {second}; if that is wrong, give a mapping with "
        f'time_format = "{other}"'
    )


def _is_spelled(texts: Sequence[str], form: str) -> bool:
    try:
        for text in texts:
            datetime.strptime(text.strip(), form)
    except ValueError:
        return False
    return True


def _is_in_order(texts: Sequence[str], form: str) -> bool:
    times = [datetime.strptime(text.strip(), form) for text in texts]
    return len({time.tzinfo is None for time in times}) == 1 and all(one <= other for one, other in pairwise(times))
