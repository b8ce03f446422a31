"""Rounds mantissa × 10 ** power to the nearest double, ties to even.

The method is that of D. Lemire, "Number parsing at a gigabyte per second": the mantissa is multiplied by the 128
leading bits of the power of five.  That decides everything but a few products, subnormal numbers and infinities, which
are left to Python's own parser.
"""

from __future__ import annotations

import numpy as np

from etalis_py.numba_cache import part, section

LEAST, MOST = -342, 308  # with a power beyond these, every mantissa below 2 ** 64 gives zero or infinity
FAILED_TO_ROUND = -1.0
_HALF = np.uint64(0xFFFFFFFF)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ZERO, _ONE, _TWO, _32 = (np.uint64(n) for n in (0, 1, 2, 32))
_UNSURE = np.uint64(0x1FF)  # the bits of a product below the 53 of a double and two for rounding
_BIAS = 1023  # of the exponent of a double
_LEAST_EXPONENT, _MOST_EXPONENT = -1074, 971  # of a double whose mantissa is read as an integer of 53 bits


def _leading_bits(power: int) -> int:
    """The 128 leading bits of 5 ** power; for a negative power, those of a quotient that is rounded up."""
    if power >= 0:
        five = 5**power
        return five << 128 - five.bit_length() if five.bit_length() <= 128 else five >> five.bit_length() - 128
    five = 5**-power
    bits = (five - 1).bit_length()
    quotient = (1 << (bits + 127 if power >= -27 else 2 * bits + 128)) // five + 1
    return quotient >> max(0, quotient.bit_length() - 128)


def _powers() -> tuple[np.ndarray, np.ndarray]:
    bits = [_leading_bits(power) for power in range(LEAST, MOST + 1)]
    return np.array([b >> 64 for b in bits], np.uint64), np.array([b & (1 << 64) - 1 for b in bits], np.uint64)


_HIGH, _LOW = _powers()
_TWOS = np.array([2.0**n for n in range(_LEAST_EXPONENT, _MOST_EXPONENT + 1)])


@part
def multiply(a, b):
    """The upper and the lower half of the product of two 64-bit numbers."""
    a_low, a_high, b_low, b_high = a & _HALF, a >> _32, b & _HALF, b >> _32
    low = a_low * b_low
    middle = a_high * b_low + (low >> _32)
    other = a_low * b_high + (middle & _HALF)
    return a_high * b_high + (middle >> _32) + (other >> _32), (other << _32) | (low & _HALF)


@section
def round_decimal(mantissa, power):
    """The double nearest to a positive mantissa (at most 2 ** 63) × 10 ** power, or ``FAILED_TO_ROUND``."""
    if power < LEAST or power > MOST:
        return FAILED_TO_ROUND
    w = np.uint64(mantissa)
    leading = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - step) == _ZERO:
            w <<= np.uint64(step)
            leading += step
    high, low = multiply(w, _HIGH[power - LEAST])
    if high & _UNSURE == _UNSURE:
        more, _ = multiply(w, _LOW[power - LEAST])
        low += more
        if more > low:
            high += _ONE
        if low == _ALL:
            return FAILED_TO_ROUND
    upper = high >> np.uint64(63)
    shift = upper + np.uint64(9)
    bits = high >> shift
    # 152170 + 65536 is log2(10) in units of 1 / 65536: the number is about 2 ** (power · log2(10)) times the mantissa.
    exponent = ((152170 + 65536) * power >> 16) + 63 + np.int64(upper) - leading + _BIAS
    if exponent <= 0:
        return FAILED_TO_ROUND
    # With these powers the decimal may lie exactly halfway between two doubles; then the even one is taken.
    if low <= _ONE and -4 <= power <= 23 and bits & np.uint64(3) == _ONE and bits << shift == high:
        bits &= ~_ONE
    bits = (bits + (bits & _ONE)) >> _ONE
    exponent -= _BIAS + 52
    if exponent > _MOST_EXPONENT - 1:
        return FAILED_TO_ROUND
    return np.float64(np.int64(bits)) * _TWOS[exponent - _LEAST_EXPONENT]
