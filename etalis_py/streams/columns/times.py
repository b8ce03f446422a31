"""Times in columns: spellings and native times → int64 microseconds, exactly as ``TimeReader`` reads them one by one.

Spellings that are certainly usual are read in bulk; every other distinct spelling goes through the row reader once.  A
spelling that is not a time is marked; the row reader then refuses the row that has it.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from etalis_rules.calendar import DAY, HOUR, SECOND
from etalis_rules.durations import RATIOS

from etalis_py.events.clock import LOOSE, MAX_TIME, Clock
from etalis_py.events.errors import StreamError
from etalis_py.numba_cache import ready
from etalis_py.streams.columns.flat_form import bytes_of
from etalis_py.streams.csv_mapping import RowMapping, span_of_texts
from etalis_py.streams.elements import StreamContext

_USUAL = (
    r"^[12][0-9]{3}-[0-9]{2}-[0-9]{2}"
    r"(?:T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?Z?)?$"
)
_DIGITS = {"d": "[0-9]{2}", "m": "[0-9]{2}", "Y": "[12][0-9]{3}", "H": "[0-9]{2}", "M": "[0-9]{2}", "S": "[0-9]{2}"}
_FIELDS = {name: 256 + place for place, name in enumerate("YymdHMSfIjzpbBaA ")}  # as time_kernels numbers them
_NAMED = frozenset("pbBaA")
_ISO = ("Y", "m", "d", "H", "M", "S")
_ENGLISH = (
    "am pm jan feb mar apr may jun jul aug sep oct nov dec january february march april may june july august september "
    "october november december mon tue wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday"
)
NAMES = _ENGLISH.split()
"""The names of ``%p %b %B %a %A`` in English."""
_LETTERS = np.frombuffer("".join(NAMES).encode(), np.uint8)
_BEGINS = np.cumsum([0, *map(len, NAMES)])
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
MANY = 1024  # distinct times that are worth a compiled loop


class Times(NamedTuple):
    """Starts and ends in microseconds; ``sure`` is False for a row whose time cannot be read."""

    start: Any
    end: Any
    sure: Any


def spelled_times(texts: pa.StringArray, mapping: RowMapping, context: StreamContext) -> Times:
    """The times that distinct texts spell; the clock of the stream must be known by now."""
    clock = context.times.clock
    assert clock is not None
    if mapping.time_format:
        # Where the clock of the stream counts numbers, the row reader refuses every date.
        micros, sure = _formatted(texts, mapping) if clock.kind == "datetime" else _nothing(len(texts))
        return _one_by_one(texts, micros, micros, sure, mapping, context)
    start, end, sure = _usual(texts, clock)
    if clock.kind == "datetime" and not sure.all():
        start, end, sure = start.copy(), end.copy(), sure.copy()
        others = np.flatnonzero(~sure)
        start[others], end[others], sure[others] = _usual(in_iso(texts.take(pa.array(others))), clock)
    return _one_by_one(texts, start, end, sure, mapping, context)


def _usual(texts: pa.StringArray, clock: Clock) -> tuple[Any, Any, Any]:
    """Starts and ends in usual spellings."""
    if len(texts) >= MANY and ready():
        return spelled_spans(texts, clock)
    micros, sure = _dates(texts, _USUAL, None, None) if clock.kind == "datetime" else _numbers(texts, clock)
    return micros, micros, sure


def in_iso(texts: pa.StringArray) -> pa.StringArray:
    """Each text as ``events.clock.iso_spelling`` has it."""
    form = pc.extract_regex(texts, f"^{LOOSE}$")
    if form.null_count == len(form):
        return texts
    day, minute, second, fraction, zone = (form.field(name) for name in ("day", "minute", "second", "fraction", "zone"))
    second = pc.if_else(pc.equal(second, ""), "00", second)
    fraction = pc.if_else(pc.equal(fraction, ""), "", pc.binary_join_element_wise("", fraction, "."))
    digits = pc.replace_substring(pc.utf8_slice_codeunits(zone, 1), ":", "")
    minutes = pc.utf8_slice_codeunits(digits, 2)
    offset = pc.binary_join_element_wise(
        pc.utf8_slice_codeunits(zone, 0, 1),
        pc.utf8_slice_codeunits(digits, 0, 2),
        ":",
        pc.if_else(pc.equal(minutes, ""), "00", minutes),
        "",
    )
    is_utc = pc.is_in(zone, pa.array(["Z", "UTC"]))
    zone = pc.if_else(is_utc, "Z", pc.if_else(pc.equal(zone, ""), "", offset))
    made = pc.binary_join_element_wise(day, "T", minute, ":", second, fraction, zone, "")
    return pc.if_else(form.is_valid(), made, texts)


def _one_by_one(
    texts: pa.StringArray, start: Any, end: Any, sure: Any, mapping: RowMapping, context: StreamContext
) -> Times:
    """The times, with those that are not sure read by the row reader."""
    if not sure.all():
        start, end, sure = start.copy(), end.copy(), sure.copy()
        for place in np.flatnonzero(~sure).tolist():
            text = texts[place].as_py()
            try:
                start[place], end[place] = span_of_texts(["" if text is None else text.strip()], mapping, context)
            except StreamError:
                continue  # the row reader says so, with the line
            sure[place] = True
    return Times(start, end, sure)


def spelled_spans(texts: pa.StringArray, clock: Clock) -> tuple[Any, Any, Any]:
    """Times and intervals in usual spellings, read by a compiled loop."""
    from etalis_py.streams.columns import time_kernels  # takes a while to import

    size = len(texts)
    start, end, sure = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.bool_)
    unit, per = (0, 1) if clock.kind == "datetime" else RATIOS[clock.unit]
    time_kernels.spans(*bytes_of(texts), unit, per, np.empty(2, np.int64), start, end, sure)
    return start, end, sure


def _nothing(size: int) -> tuple[Any, Any]:
    return np.zeros(size, np.int64), np.zeros(size, bool)


def _mask(texts: pa.StringArray, pattern: str) -> Any:
    return np.asarray(pc.fill_null(pc.match_substring_regex(texts, pattern), False))


def _numbers(texts: pa.StringArray, clock: Clock) -> tuple[Any, Any]:
    times, per = RATIOS[clock.unit]
    digits = len(str(MAX_TIME // times)) - 1
    sure = _mask(texts, rf"^-?[0-9]{{1,{digits}}}$")
    numbers = pc.if_else(pa.array(sure), texts, "0").cast(pa.int64())
    micros = np.asarray(numbers) * times
    if per != 1:
        sure &= micros % per == 0
        micros = micros // per
    return micros, sure


def _dates(texts: pa.StringArray, pattern: str, rewrite: str | None, zone: ZoneInfo | None) -> tuple[Any, Any]:
    """Dates that match a pattern (and are ISO dates once it is rewritten)."""
    sure = _mask(texts, pattern)
    if not sure.any():
        return _nothing(len(texts))
    usual = pc.if_else(pa.array(sure), texts, "1970-01-01" if rewrite is None else None)
    iso = pc.utf8_rtrim(usual, "Z") if rewrite is None else pc.replace_substring_regex(usual, pattern, rewrite)
    try:
        moments = iso.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:  # a day that does not exist: read one by one
        return _nothing(len(texts))
    micros = np.asarray(pc.fill_null(moments.cast(pa.int64()), 0))
    return micros if zone is None else micros - _offsets(micros, zone), sure


def _offsets(local: Any, zone: ZoneInfo) -> Any:
    """How far local times (microseconds, as if they were UTC) are ahead of UTC.

    ``zoneinfo`` is asked, as for rows: the rules of Arrow end in 2037.  It is asked once for each day, because no zone
    changes its clocks twice within one; in a day with a change for each hour, and in an hour with one for each second.
    """
    offsets = np.empty(len(local), np.int64)
    left = np.arange(len(local))
    for unit in (DAY, HOUR, SECOND):
        parts, part = np.unique(local[left] // unit, return_inverse=True)
        known = [_offset_of(first, unit, zone) for first in (parts * unit).tolist()]
        given = np.array([offset is not None for offset in known], bool)[part]
        offsets[left[given]] = np.array([offset or 0 for offset in known], np.int64)[part[given]]
        left = left[~given]
    return offsets


@lru_cache(maxsize=1 << 16)
def _offset_of(first: int, unit: int, zone: ZoneInfo) -> int | None:
    """The offset of a zone in a day, an hour or a second of local time; None if it changes within it.

    Where the clocks are set back, the first of two moments counts.
    """
    moment = _EPOCH + timedelta(microseconds=first)
    offset = zone.utcoffset(moment)
    if offset is None or offset != zone.utcoffset(moment + timedelta(microseconds=unit - SECOND)):
        return None
    return offset // _MICROSECOND


def _formatted(texts: pa.StringArray, mapping: RowMapping) -> tuple[Any, Any]:
    steps = steps_of(mapping.time_format)
    if steps is not None and len(texts) >= MANY and ready():
        micros, sure = formatted_times(texts, steps)
        zone = None if _FIELDS["z"] in steps else mapping.time_zone
        return micros if zone is None else micros - _offsets(micros, zone), sure
    form = iso_form(mapping.time_format)
    if form is None:
        return _nothing(len(texts))
    return _dates(texts, *form, mapping.time_zone)


def formatted_times(texts: pa.StringArray, steps: Any) -> tuple[Any, Any]:
    """Times that are spelled by a format, read by a compiled loop."""
    from etalis_py.streams.columns import time_kernels  # takes a while to import

    micros, sure = np.empty(len(texts), np.int64), np.empty(len(texts), np.bool_)
    values = np.empty(len(_FIELDS), np.int64)
    time_kernels.moments(*bytes_of(texts), steps, _LETTERS, _BEGINS, values, micros, sure)
    return micros, sure


def steps_of(time_format: str) -> Any:
    """A ``strptime`` format as steps for a compiled loop (``time_kernels.FIELD``); None if it has other fields.

    >>> steps_of("%d.%Y-%m  at").tolist()
    [259, 46, 256, 45, 258, 272, 97, 116]
    """
    pieces = re.split(r"%(.)", time_format)
    names = pieces[1::2]
    if time_format != time_format.strip() or "%" in "".join(pieces[::2]) or not _is_clear(names):
        return None
    steps = [[_FIELDS[piece]] if i % 2 else _literal(piece) for i, piece in enumerate(pieces)]
    return np.array([step for part in steps for step in part], np.int64)


def _is_clear(names: list[str]) -> bool:
    """Whether fields are those of a compiled loop, and none says again, or otherwise, what another one says."""
    fields = set(names)
    if len(fields) != len(names) or not fields <= set(_FIELDS) or " " in fields:
        return False
    if len(fields & {"Y", "y"}) != 1 or {"H", "I"} <= fields:
        return False
    if len(fields & {"m", "b", "B", "j"}) > 1 or {"d", "j"} <= fields:
        return False
    return not fields & _NAMED or _is_english()


def _is_english() -> bool:
    """Whether ``strptime`` takes the names to be English: they are those of the locale, which a program may change."""
    months = [datetime(2001, month, 1) for month in range(1, 13)]
    days = [datetime(2001, 1, day) for day in range(1, 8)]  # a Monday first
    halves = [datetime(2001, 1, 1, hour) for hour in (1, 13)]
    shown = [f"{moment:%p}" for moment in halves]
    shown += [moment.strftime(form) for form in ("%b", "%B") for moment in months]
    shown += [moment.strftime(form) for form in ("%a", "%A") for moment in days]
    return [name.lower() for name in shown] == NAMES


def _literal(text: str) -> list[int]:
    """The steps of a text between fields: white space stands for one or more of it, however much there is."""
    parts = re.split(r"(\s+)", text)
    return [step for i, part in enumerate(parts) for step in ([_FIELDS[" "]] if i % 2 else part.encode())]


def iso_form(time_format: str) -> tuple[str, str] | None:
    """A pattern for a ``strptime`` format with all digits written, and the rewriting that makes an ISO date of a match.

    >>> iso_form("%d.%m.%Y %H:%M")
    ('^([0-9]{2})\\\\.([0-9]{2})\\\\.([12][0-9]{3})\\\\ ([0-9]{2}):([0-9]{2})$', '\\\\3-\\\\2-\\\\1T\\\\4:\\\\5:00')
    """
    pieces = re.split(r"%(.)", time_format)
    names = pieces[1::2]
    if len(set(names)) != len(names) or not {"Y", "m", "d"} <= set(names) or not set(names) <= set(_ISO):
        return None
    if any(c.isspace() and c != " " for c in time_format) or "  " in time_format:
        return None  # strptime lets a space match any white space
    pattern = "".join(f"({_DIGITS[piece]})" if i % 2 else re.escape(piece) for i, piece in enumerate(pieces))
    at = {name: rf"\{place + 1}" for place, name in enumerate(names)}
    rewritten = f"{at['Y']}-{at['m']}-{at['d']}T" + ":".join(at.get(name, "00") for name in "HMS")
    return f"^{pattern}$", rewritten


def native_times(column: pa.Array, context: StreamContext) -> Times | None:
    """The times of a column of timestamps, dates or integers; None if it has to be spelled and read."""
    clock = context.times.clock
    kind = column.type
    sure = np.asarray(column.is_valid())
    if pa.types.is_integer(kind) and kind != pa.uint64() and clock is not None and clock.kind == "integer":
        times, per = RATIOS[clock.unit]
        numbers = np.asarray(pc.fill_null(column, 0).cast(pa.int64()))
        sure = sure & _within(numbers, times)
        micros = np.where(sure, numbers, 0) * times
        if per != 1:
            sure = sure & (micros % per == 0)
            micros = micros // per
        return Times(micros, micros, sure)
    if clock is None or clock.kind != "datetime":
        return None
    if pa.types.is_timestamp(kind):
        numbers = np.asarray(pc.fill_null(column.cast(pa.int64()), 0))
        if kind.unit == "ns":
            return Times(numbers // 1000, numbers // 1000, sure & (numbers % 1000 == 0))
        times = {"s": 1_000_000, "ms": 1000, "us": 1}[kind.unit]
        sure = sure & _within(numbers, times)
        micros = np.where(sure, numbers, 0) * times
        return Times(micros, micros, sure)
    if pa.types.is_date32(kind):
        days = np.asarray(pc.fill_null(column.cast(pa.int32()), 0)).astype(np.int64)
        sure = sure & _within(days, DAY)
        micros = np.where(sure, days, 0) * DAY
        return Times(micros, micros, sure)
    return None


def _within(numbers: Any, times: int) -> Any:
    """Whether so many units of ``times`` microseconds are a time that an event may have."""
    most = MAX_TIME // times
    return (numbers >= -most) & (numbers <= most)
