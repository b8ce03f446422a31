"""Rewrites the shortest decimals of doubles, as Arrow spells them, as canonical literals: ``12.5`` as ``"1.25E1"``."""

from __future__ import annotations

import numpy as np

from etalis_py.kernel.byte_words import copy_bytes
from etalis_py.numba_cache import kernel, part, section

LONGEST = 32
"""No number that is spelled here has more bytes than this, with its quotation mark."""
_QUOTE, _MINUS, _POINT, _ZERO, _E, _SMALL_E, _INFINITE = (np.uint8(ord(c)) for c in '"-.0Eei')
_START = np.uint64(0)


@section
def significant_digits(texts, read, end, digits):
    """How many significant digits a number without a sign has, and the power of ten of the first; 0 has one digit."""
    read_digits, size, power, behind = 0, 1, 0, False
    digits[0] = _ZERO
    while read < end and texts[read] != _SMALL_E:
        byte = texts[read]
        read += 1
        if byte == _POINT:
            behind = True
        elif read_digits == 0 and byte == _ZERO:
            power -= behind
        else:
            digits[read_digits] = byte
            power += read_digits > 0 and not behind
            power -= read_digits == 0 and behind
            read_digits += 1
            if byte != _ZERO:
                size = read_digits
    if read_digits == 0:
        power = 0
    if read < end:
        negative = texts[read + 1] == _MINUS
        exponent = 0
        for at in range(read + 1, end):
            if texts[at] >= _ZERO:
                exponent = 10 * exponent + texts[at] - _ZERO
        power += -exponent if negative else exponent
    return size, power


@part
def write_integer(number, out, at):
    """Write a number of at most three digits; the place behind it."""
    if number < 0:
        out[at] = _MINUS
        at += 1
        number = -number
    for unit in (100, 10, 1):
        if number >= unit or unit == 1:
            out[at] = _ZERO + number // unit % 10
            at += 1
    return at


@kernel
def spell_doubles(texts, starts, infinite, tail, digits, ends, out):
    """Write a literal for each number in ``texts``, which is not NaN; ``digits`` has room for the LONGEST."""
    at = 0
    ends[0] = 0
    for i in range(len(ends) - 1):
        read, end = starts[i], starts[i + 1]
        out[at] = _QUOTE
        at += 1
        if texts[read] == _MINUS:
            out[at] = _MINUS
            at += 1
            read += 1
        if texts[read] == _INFINITE:
            copy_bytes(infinite, _START, out, np.uint64(at), np.uint64(len(infinite)))
            at += len(infinite)
        else:
            size, power = significant_digits(texts, read, end, digits)
            out[at], out[at + 1], out[at + 2] = digits[0], _POINT, _ZERO
            for k in range(1, size):
                out[at + 1 + k] = digits[k]
            at += 1 + max(size, 2)
            out[at] = _E
            at = write_integer(power, out, at + 1)
        copy_bytes(tail, _START, out, np.uint64(at), np.uint64(len(tail)))
        at += len(tail)
        ends[i + 1] = at
