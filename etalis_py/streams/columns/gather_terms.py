"""The bytes of many terms, one after another, which literals are canonical as they stand, the canonical spelling of
others, and which texts look like numbers: compiled by Numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from etalis_py.numba_cache import kernel, part, section
from etalis_py.streams.columns.flat_form import bytes_of


@kernel
def lengths(rows, count, place, ends):
    """The running total of the lengths of a term, from 0."""
    total = 0
    ends[0] = 0
    for i in range(count):
        total += rows[i, place + 1] - rows[i, place]
        ends[i + 1] = total
    return total


@kernel
def gather(data, rows, count, place, ends, out):
    """The bytes of one term of each row, one after another."""
    for i in range(count):
        to, begin = ends[i], rows[i, place]
        for k in range(ends[i + 1] - to):
            out[to + k] = data[begin + k]


_TYPES = tuple(
    f"^^<http://www.w3.org/2001/XMLSchema#{name}>".encode()
    for name in ("integer", "decimal", "double", "dateTime", "boolean", "date", "float")
)
TYPES = np.frombuffer(b"".join(_TYPES), np.uint8)
TYPE_ENDS = np.cumsum([0, *map(len, _TYPES)])


@kernel
def mark_plain_literals(data, ends, types, type_ends, plain):
    """Mark ``data[ends[i]:ends[i + 1]]`` if it is a printable text without escapes, plain or of one of ``types``."""
    for i in range(len(plain)):
        at, end = ends[i], ends[i + 1]
        plain[i] = False
        if end - at < 2 or data[at] != 34:
            continue
        at += 1
        while at < end and data[at] >= 32 and data[at] <= 126 and data[at] != 34 and data[at] != 92:
            at += 1
        if at == end or data[at] != 34:
            continue
        at += 1
        for k in range(len(type_ends) - 1):
            first, last = type_ends[k], type_ends[k + 1]
            same = end - at == last - first
            while same and first < last:
                same = types[first] == data[at + first - type_ends[k]]
                first += 1
            plain[i] = plain[i] or same
        plain[i] = plain[i] or at == end


@section
def _write_character(number, out, to):
    """Write a character as a canonical literal has it; returns the place after it."""
    short = 0
    if number == 8:
        short = 98
    elif number == 9:
        short = 116
    elif number == 10:
        short = 110
    elif number == 12:
        short = 102
    elif number == 13:
        short = 114
    elif number == 34 or number == 92:
        short = number
    if short:
        out[to], out[to + 1] = 92, short
        return to + 2
    if number < 32 or number == 127:
        low = number & 15
        out[to], out[to + 1], out[to + 2], out[to + 3] = 92, 117, 48, 48
        out[to + 4], out[to + 5] = 48 + (number >> 4), low + (48 if low < 10 else 55)
        return to + 6
    if number < 0x80:
        out[to] = number
        return to + 1
    more, first = 1, 0xC0
    if number >= 0x10000:
        more, first = 3, 0xF0
    elif number >= 0x800:
        more, first = 2, 0xE0
    out[to] = first | number >> 6 * more
    for k in range(more):
        out[to + 1 + k] = 0x80 | number >> 6 * (more - 1 - k) & 0x3F
    return to + 1 + more


@kernel
def respell(data, ends, out, places):
    """Write the literals ``data[ends[n]:ends[n + 1]]`` in canonical spelling; ``places`` gets where each begins.

    They are usual as ``scanning`` has it, but may have any escapes, and capitals in a language tag.  None gets longer.
    """
    to = 0
    for n in range(len(places) - 1):
        places[n] = to
        i, end = np.int64(ends[n]), np.int64(ends[n + 1])
        out[to] = 34
        i, to = i + 1, to + 1
        while data[i] != 34:
            c, following = data[i], data[i + 1]
            if c != 92:
                out[to] = c
                i, to = i + 1, to + 1
            elif following == 39:
                out[to] = 39
                i, to = i + 2, to + 1
            elif following != 117 and following != 85:
                out[to], out[to + 1] = 92, following
                i, to = i + 2, to + 2
            else:
                number, i = 0, i + 2
                for _ in range(4 if following == 117 else 8):
                    number = number * 16 + (data[i] - 48 if data[i] <= 57 else (data[i] | 32) - 87)
                    i += 1
                to = _write_character(number, out, to)
        tagged = i + 1 < end and data[i + 1] == 64
        while i < end:
            out[to] = data[i] + 32 if tagged and 65 <= data[i] <= 90 else data[i]
            i, to = i + 1, to + 1
    places[len(places) - 1] = to


ODD, TEXT, WHOLE, POINT, EXPONENT = 0, 1, 2, 3, 4
_SUFFIXES = (b'"', *(f'"^^<http://www.w3.org/2001/XMLSchema#{n}>'.encode() for n in ("integer", "decimal", "double")))
SUFFIXES = np.frombuffer(b"".join(_SUFFIXES), np.uint8)
SUFFIX_ENDS = np.cumsum([0, 0, *map(len, _SUFFIXES)])  # of each kind, from ODD, which has none


@part
def _after_digits(data, i, end):
    while i < end and 48 <= data[i] <= 57:
        i += 1
    return i


@kernel
def _number(data, i, end):
    """The kind of number that a text without blanks around it is, or TEXT."""
    if data[i] == 43 or data[i] == 45:
        i += 1
    whole = _after_digits(data, i, end)
    digits, after, point = whole - i, whole, False
    if after < end and data[after] == 46:
        point = True
        after = _after_digits(data, after + 1, end)
        digits += after - whole - 1
    if digits == 0:
        return TEXT
    if after == end:
        return WHOLE if not point else POINT if after > whole + 1 else TEXT
    if data[after] != 69 and data[after] != 101:
        return TEXT
    after += 1
    if after < end and (data[after] == 43 or data[after] == 45):
        after += 1
    last = _after_digits(data, after, end)
    return EXPONENT if last == end and last > after else TEXT


@kernel
def look_at(data, ends, suffix_ends, kinds, places):
    """The kinds of printable texts without quotes, backslashes and blanks around them (others are ODD), and the places
    of their literals one after another; returns where the last one ends.
    """
    places[0] = total = 0
    for n in range(len(kinds)):
        first, end = np.int64(ends[n]), np.int64(ends[n + 1])
        i = first
        while i < end and data[i] >= 32 and data[i] <= 126 and data[i] != 34 and data[i] != 92:
            i += 1
        kinds[n] = ODD
        if i == end and first < end and data[first] != 32 and data[end - 1] != 32:
            kinds[n] = _number(data, first, end)
            total += 1 + end - first + suffix_ends[kinds[n] + 1] - suffix_ends[kinds[n]]
        places[n + 1] = total
    return total


@kernel
def write_guesses(data, ends, kinds, suffixes, suffix_ends, places, out):
    """Write the literal of each text from ``places`` on; nothing for an ODD one."""
    for n in range(len(kinds)):
        to = np.int64(places[n])
        if kinds[n] == ODD:
            continue
        out[to] = 34
        to += 1
        for i in range(np.int64(ends[n]), np.int64(ends[n + 1])):
            out[to] = data[i]
            to += 1
        for i in range(suffix_ends[kinds[n]], suffix_ends[kinds[n] + 1]):
            out[to] = suffixes[i]
            to += 1


def respelled(literals: pa.StringArray) -> pa.StringArray:
    """Usual literals in canonical spelling.

    >>> respelled(pa.array(['"caf\\u00E9"@en-GB', '"\\U00000041\\u0009"'])).to_pylist()
    ['"café"@en-gb', '"A\\t"']
    """
    data, ends = bytes_of(literals)
    out, places = np.empty(int(ends[-1]) - int(ends[0]), np.uint8), np.empty(len(literals) + 1, np.int32)
    respell(data, ends, out, places)
    return pa.StringArray.from_buffers(len(literals), pa.py_buffer(places), pa.py_buffer(out))


def guesses(texts: pa.StringArray) -> tuple[pa.StringArray, Any]:
    """Texts as the literals that they look like, and for which of them that is sure."""
    data, ends = bytes_of(texts)
    kinds, places = np.empty(len(texts), np.uint8), np.empty(len(texts) + 1, np.int32)
    out = np.empty(look_at(data, ends, SUFFIX_ENDS, kinds, places), np.uint8)
    write_guesses(data, ends, kinds, SUFFIXES, SUFFIX_ENDS, places, out)
    literals = pa.StringArray.from_buffers(len(texts), pa.py_buffer(places), pa.py_buffer(out))
    return literals, pa.array(kinds != ODD)


def gathered(data: Any, rows: Any, place: int) -> pa.StringArray:
    """The term at one place of each row of a scan."""
    count = len(rows)
    ends = np.empty(count + 1, np.int32)
    out = np.empty(lengths(rows, count, place, ends), np.uint8)
    gather(data, rows, count, place, ends, out)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(out))
