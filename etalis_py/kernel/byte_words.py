"""Copying and comparing texts inside Numba kernels, eight bytes per step.

Byte counts and indices are unsigned, so that Numba need not handle negative ones.
"""

from __future__ import annotations

import numpy as np

from etalis_py.numba_cache import part

_ONE, _EIGHT = np.uint64(1), np.uint64(8)


@part
def load_word(data, i):
    """Eight bytes as one number, the first one lowest; ``i`` is unsigned, so that this is one load."""
    return (
        np.uint64(data[i])
        | np.uint64(data[i + np.uint64(1)]) << np.uint64(8)
        | np.uint64(data[i + np.uint64(2)]) << np.uint64(16)
        | np.uint64(data[i + np.uint64(3)]) << np.uint64(24)
        | np.uint64(data[i + np.uint64(4)]) << np.uint64(32)
        | np.uint64(data[i + np.uint64(5)]) << np.uint64(40)
        | np.uint64(data[i + np.uint64(6)]) << np.uint64(48)
        | np.uint64(data[i + np.uint64(7)]) << np.uint64(56)
    )


@part
def store_word(word, target, at):
    """Write a number as eight bytes, the lowest one first; this is one store."""
    target[at] = np.uint8(word)
    target[at + np.uint64(1)] = np.uint8(word >> np.uint64(8))
    target[at + np.uint64(2)] = np.uint8(word >> np.uint64(16))
    target[at + np.uint64(3)] = np.uint8(word >> np.uint64(24))
    target[at + np.uint64(4)] = np.uint8(word >> np.uint64(32))
    target[at + np.uint64(5)] = np.uint8(word >> np.uint64(40))
    target[at + np.uint64(6)] = np.uint8(word >> np.uint64(48))
    target[at + np.uint64(7)] = np.uint8(word >> np.uint64(56))


@part
def copy_bytes(source, begin, target, at, length):
    """Copy bytes to another array, eight at a time; the last eight may overlap the ones before."""
    i = np.uint64(0)
    if length < _EIGHT:
        while i < length:
            target[at + i] = source[begin + i]
            i += _ONE
    else:
        while i + _EIGHT < length:
            store_word(load_word(source, begin + i), target, at + i)
            i += _EIGHT
        last = length - _EIGHT
        store_word(load_word(source, begin + last), target, at + last)


@part
def same_bytes(one, begin, other, at, length):
    """Whether these bytes are equal, compared eight at a time; the last eight may overlap the ones before."""
    i = np.uint64(0)
    if length < _EIGHT:
        while i < length:
            if one[begin + i] != other[at + i]:
                return False
            i += _ONE
        return True
    while i + _EIGHT < length:
        if load_word(one, begin + i) != load_word(other, at + i):
            return False
        i += _EIGHT
    last = length - _EIGHT
    return load_word(one, begin + last) == load_word(other, at + last)


@part
def write_number(number, digits, target, at):
    """Write a number in decimal digits; returns where it ends.  ``digits`` has room for those of any number."""
    left = number
    if left < 0:
        target[at] = 45
        at += _ONE
    n = np.uint64(0)
    while True:
        rest = left // 10 if left >= 0 else -(-left // 10)
        digits[n] = np.uint8(48 + abs(left - rest * 10))
        n += _ONE
        left = rest
        if left == 0:
            break
    while n > 0:
        n -= _ONE
        target[at] = digits[n]
        at += _ONE
    return at
