"""Parses numbers from the bytes of literals, if XML Schema allows them and an int64 or a double holds them exactly.

Everything that is not such a number, or might not be one, is left to the parsers of ``values``.  Bytes are written as
numbers: 34 is a quotation mark, 43 and 45 are signs, 46 is the point, 48 to 57 are digits, 62 is >, 69 and 101 are e.
"""

from __future__ import annotations

import numpy as np

from etalis_py.executors.columns.kernels.rounding import FAILED_TO_ROUND, round_decimal
from etalis_py.kernel.byte_words import load_word
from etalis_py.numba_cache import kernel, section

OTHER, INTEGER, DECIMAL, DOUBLE, TIME, UNDECIDED, LONG_DOUBLE = 0, 1, 2, 3, 4, 5, 6
"""The kinds of a term.  The last two are only given by ``decode``, for terms that it leaves to other parsers.

A term of kind OTHER has NaN as its double.  Only a decimal with more digits than an int64 holds, such as most averages,
has a near one, at most a part in 10 ** 14 away.
"""


def _word(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text, "little"))


_XSD = b'"^^<http://www.w3.org/2001/XMLSchema#'
_XSD_LENGTH = len(_XSD)
_XSD_LAST = np.uint64(_XSD_LENGTH - 8)
_XSD_WORDS = tuple(_word(_XSD[i : i + 8]) for i in (0, 8, 16, 24, _XSD_LENGTH - 8))
_INTEGER, _DECIMAL, _DOUBLE = _word(b"integer>"), _word(b"decimal>"), _word(b"#double>")
_TENS = np.array([float(10**n) for n in range(23)])  # greater powers of ten are no exact doubles
_MOST = 10**17  # one more digit still fits in int64
_EXACT = 2**53  # greater integers may not be exact doubles


@section
def is_xsd(data, begin):
    """Whether these bytes are a closing quote and the namespace of XML Schema; the caller has checked the length."""
    at = np.uint64(begin)
    return (
        load_word(data, at + _XSD_LAST) == _XSD_WORDS[4]
        and load_word(data, at) == _XSD_WORDS[0]
        and load_word(data, at + np.uint64(8)) == _XSD_WORDS[1]
        and load_word(data, at + np.uint64(16)) == _XSD_WORDS[2]
        and load_word(data, at + np.uint64(24)) == _XSD_WORDS[3]
    )


@section
def datatype_of(data, begin, end):
    """The kind by the datatype, and the place of the closing quote.

    INTEGER, DECIMAL or DOUBLE for these types of XML Schema, UNDECIDED for other literals with a type, else OTHER.
    """
    if end - begin < 2 or data[begin] != 34 or data[end - 1] != 62:
        return OTHER, end
    if end - begin < _XSD_LENGTH + 8:
        return UNDECIDED, end
    last = load_word(data, np.uint64(end - 8))
    if last == _INTEGER:
        kind, close = INTEGER, end - 8 - _XSD_LENGTH
    elif last == _DECIMAL:
        kind, close = DECIMAL, end - 8 - _XSD_LENGTH
    elif last == _DOUBLE:
        kind, close = DOUBLE, end - 7 - _XSD_LENGTH
    else:
        return UNDECIDED, end
    if close > begin and is_xsd(data, close):
        return kind, close
    return UNDECIDED, end


@section
def parse_number(data, begin, end, kind):
    """``(kind, double, mantissa, scale)`` of a lexical form; ``mantissa / 10**scale`` is the exact value.

    A decimal that is too long is OTHER, and its double a near one.
    """
    i = begin
    negative = False
    if i < end and (data[i] == 43 or data[i] == 45):
        negative = data[i] == 45
        i += 1
    mantissa = 0
    digits = 0
    scale = 0
    point = False
    fits = True
    whole = 0  # digits before the point that the mantissa has no room for
    rest = 0  # their sum, and that of the later ones
    while i < end:
        c = data[i]
        if 48 <= c <= 57:
            digits += 1
            if mantissa < _MOST:
                mantissa = mantissa * 10 + (c - 48)
                if point:
                    scale += 1
            else:
                fits = False
                rest += c - 48
                if not point:
                    whole += 1
        elif c == 46 and not point and kind != INTEGER:
            point = True
        else:
            break
        i += 1
    if digits == 0:
        return UNDECIDED, 0.0, 0, 0
    exponent = 0
    if kind == DOUBLE and i < end and (data[i] == 69 or data[i] == 101):
        i += 1
        downward = False
        if i < end and (data[i] == 43 or data[i] == 45):
            downward = data[i] == 45
            i += 1
        first = i
        while i < end and 48 <= data[i] <= 57:
            if exponent < 100_000:  # any greater exponent is out of range as well, and would overflow
                exponent = exponent * 10 + (data[i] - 48)
            i += 1
        if i == first:
            return UNDECIDED, 0.0, 0, 0
        if downward:
            exponent = -exponent
    if i != end:
        return UNDECIDED, 0.0, 0, 0
    if not fits:
        if kind == DECIMAL and rest:
            near = float(mantissa) * 10.0 ** float(whole - scale)
            return OTHER, (-near if negative else near), 0, 0
        return (LONG_DOUBLE if kind == DOUBLE else UNDECIDED), 0.0, 0, 0
    power = exponent - scale
    if mantissa > _EXACT or power > 22 or power < -22:
        if kind == DOUBLE:
            number = round_decimal(mantissa, power) if mantissa else FAILED_TO_ROUND
            if number == FAILED_TO_ROUND:
                return LONG_DOUBLE, 0.0, 0, 0
            return DOUBLE, (-number if negative else number), 0, 0
        if scale > 18:
            return UNDECIDED, 0.0, 0, 0
    number = float(mantissa)
    if power < 0:
        number = number / _TENS[min(-power, 22)]
    elif power > 0:
        number = number * _TENS[power]
    if negative and (mantissa or kind != INTEGER):
        return kind, -number, -mantissa, scale
    return kind, number, mantissa, scale


@kernel
def decode(arena, offsets, first, last, kinds, numbers, mantissas, scales):
    """The values of the terms from ``first`` to ``last``; returns how many are LONG_DOUBLE, and UNDECIDED."""
    long = undecided = 0
    for term in range(first, last):
        begin, end = offsets[term], offsets[term + 1]
        kind, close = datatype_of(arena, begin, end)
        number, mantissa, scale = np.nan, 0, 0
        if INTEGER <= kind <= DOUBLE:
            kind, number, mantissa, scale = parse_number(arena, begin + 1, close, kind)
        numbers[term] = number
        mantissas[term] = mantissa
        scales[term] = scale
        kinds[term] = kind
        if kind == LONG_DOUBLE:
            long += 1
        elif kind == UNDECIDED:
            undecided += 1
    return long, undecided


@kernel
def lexical_forms(arena, offsets, terms, tail, ends, out):
    """Write the lexical forms of doubles one after another, without plus signs.

    ``tail`` is the length of what follows the form in a spelling: the closing quote and the datatype.
    """
    at = 0
    ends[0] = 0
    for n in range(len(terms)):
        begin, end = offsets[terms[n]] + 1, offsets[terms[n] + 1] - tail
        if arena[begin] == 43:
            begin += 1
        for i in range(begin, end):
            out[at] = arena[i]
            at += 1
        ends[n + 1] = at
