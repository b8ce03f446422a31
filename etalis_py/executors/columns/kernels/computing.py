"""Arithmetic and comparison of values in columns, in one pass for each operation.

A value is ``(kind, double, mantissa, scale)`` as in ``parsing``; kind FAILED is an error, and kind OTHER is a value
that ``values`` has to compute.  A column of one row stands for a constant.
"""

from __future__ import annotations

import math

import numpy as np

from etalis_py.executors.columns.kernels.parsing import DECIMAL, DOUBLE, INTEGER, OTHER, TIME
from etalis_py.numba_cache import kernel, part, section
from etalis_py.values.equality_keys import NO_KEY

FAILED = 7  # one more kind, beside those of ``parsing``
FALSE, TRUE, ERROR, ASK = 0, 1, 2, 3
"""The truth of a condition; ASK means that ``values`` has to decide."""

ADD, SUBTRACT, MULTIPLY, DIVIDE = 0, 1, 2, 3
LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, UNEQUAL = 0, 1, 2, 3, 4, 5
NUMBERS, TIMES, ODD = 1, 2, 0
"""Sorts of values: two NUMBERS, and two TIMES, compare as their doubles do.  ODD values do not."""

EXACT = 2**53
"""A mantissa below this is exactly a double; divided by 10 ** scale (at most 18) it gives the nearest double."""
DIGITS = 10**15
"""A mantissa below this has at most 15 digits; the doubles of such numbers are different and in the same order."""
CLOSE = 1e-9
"""Numbers that differ by a smaller part of the greater one are compared exactly."""
FACTOR = 2**31  # the product of two numbers below it fits in int64 …
SCALE = 18
UP = 9  # … and so does one of them times 10 ** 9, and the sum of two such products
_TENS = np.array([float(10**n) for n in range(SCALE + 1)])
_WHOLE_TENS = np.array([10**n for n in range(UP + 1)], np.int64)


@kernel
def gather_values(ids, kinds, doubles, mantissas, scales, to_kinds, to_doubles, to_mantissas, to_scales):
    """Copy the values of terms; the unbound term is an error."""
    for i in range(len(ids)):
        term = ids[i]
        to_kinds[i] = kinds[term] if term else FAILED
        to_doubles[i] = doubles[term]
        to_mantissas[i] = mantissas[term]
        to_scales[i] = scales[term]


@section
def exactly(op, mantissa, scale, other, other_scale):
    """``(mantissa, scale, right)`` of an exact sum, difference or product; ``right``: the result fits in int64."""
    fits = abs(mantissa) < FACTOR and abs(other) < FACTOR
    if op == MULTIPLY:
        both = scale + other_scale
        return mantissa * other, both, fits and both <= SCALE
    both = max(scale, other_scale)
    up, other_up = both - scale, both - other_scale
    if not fits or up > UP or other_up > UP:
        return 0, 0, False
    left, right = mantissa * _WHOLE_TENS[up], other * _WHOLE_TENS[other_up]
    return (left + right if op == ADD else left - right), both, True


@section
def in_doubles(op, one, other):
    """The result of an operation on doubles by IEEE 754, also for a division by zero."""
    if op == ADD:
        return one + other
    if op == SUBTRACT:
        return one - other
    if op == MULTIPLY:
        return one * other
    if other != 0.0:
        return one / other
    if one == 0.0 or math.isnan(one):
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1.0, other)


@kernel
def calculate(
    op,
    a_kinds,
    a_doubles,
    a_mantissas,
    a_scales,
    b_kinds,
    b_doubles,
    b_mantissas,
    b_scales,
    kinds,
    doubles,
    mantissas,
    scales,
):
    """``a op b``: exact numbers give exact results, doubles give doubles; OTHER if the result is not certain."""
    a_step, b_step = np.uint64(len(a_kinds) != 1), np.uint64(len(b_kinds) != 1)
    for row in range(np.uint64(len(kinds))):
        i, j = row * a_step, row * b_step
        a, b = a_kinds[i], b_kinds[j]
        kinds[row], doubles[row], mantissas[row], scales[row] = OTHER, math.nan, 0, 0
        if a == FAILED or b == FAILED:
            kinds[row] = FAILED
            continue
        a_exact, b_exact = a in (INTEGER, DECIMAL), b in (INTEGER, DECIMAL)
        if a_exact and b_exact:
            if op == DIVIDE:
                continue
            m, s, right = exactly(op, a_mantissas[i], np.int64(a_scales[i]), b_mantissas[j], np.int64(b_scales[j]))
            integers = a == INTEGER and b == INTEGER
            if right and (integers or m != 0):  # a decimal zero has a sign, which the mantissa cannot hold
                kinds[row] = INTEGER if integers else DECIMAL
                doubles[row], mantissas[row], scales[row] = m / _TENS[s], m, s
        elif (a == DOUBLE or (a_exact and abs(a_mantissas[i]) < EXACT)) and (
            b == DOUBLE or (b_exact and abs(b_mantissas[j]) < EXACT)
        ):
            kinds[row] = DOUBLE
            doubles[row] = in_doubles(op, a_doubles[i], b_doubles[j])


@part
def sort_of(kind, mantissa):
    """NUMBERS, TIMES, ODD or FAILED."""
    if kind == DOUBLE or (kind in (INTEGER, DECIMAL) and abs(mantissa) < DIGITS):
        return NUMBERS
    if kind == TIME and abs(mantissa) < EXACT:
        return TIMES
    return FAILED if kind == FAILED else ODD


@kernel
def prepare_side(kinds, doubles, mantissas, sign, nextafter, place, values, failed, sort):
    """Write the doubles of one side of a comparison into column ``place`` of ``values``.

    They are negated if ``sign`` is negative, then replaced by the next double if ``nextafter``.  Marks the rows with
    errors.  Returns the sort of the other rows, given that of earlier ones (ODD if there were none), and whether any of
    them is odd or of a different sort.
    """
    step = np.uint64(len(kinds) != 1)
    odd = False
    for row in range(np.uint64(len(failed))):
        i = row * step
        one = sort_of(kinds[i], mantissas[i])
        number = doubles[i] if sign > 0 else -doubles[i]
        if nextafter:
            if math.isinf(number) and one != FAILED:  # there is no next double
                one = ODD
            number = np.nextafter(number, np.inf)
        values[row, place] = number
        if one == FAILED:
            failed[row] = True
            continue
        if sort == ODD:
            sort = one
        odd = odd or one != sort or sort == ODD
    return sort, odd


@kernel
def number_keys_of(kinds, doubles, mantissas, singles, keys, asked):
    """The numbers of the keys of values, as ``values.equality_keys`` defines them; an error has ``no key``.

    ``singles`` and ``keys`` are the same bytes, as numbers of 32 bits.  ``asked`` marks the values that the function of
    ``values`` has to be asked about.  Returns whether there are any.
    """
    some = False
    for row in range(np.uint64(len(kinds))):
        kind = kinds[row]
        asked[row] = False
        if kind in (DOUBLE, INTEGER) or (kind == DECIMAL and abs(mantissas[row]) < EXACT):
            number = np.float32(doubles[row]) + np.float32(0.0)  # the sum has no negative zero
            singles[row] = number if number == number else np.float32(np.nan)  # which has a sign, too
        elif kind == TIME:
            keys[row] = (mantissas[row] ^ mantissas[row] >> 32) & 0x7FFFFFFF
        elif kind == FAILED:
            keys[row] = NO_KEY
        else:
            some = asked[row] = True
    return some


@part
def holds(op, one, other):
    """The comparison of two doubles."""
    if op == LESS:
        return one < other
    if op == LESS_EQUAL:
        return one <= other
    if op == GREATER:
        return one > other
    if op == GREATER_EQUAL:
        return one >= other
    return (one == other) == (op == EQUAL)


@part
def are_apart(one, other):
    """Whether two numbers differ so much that doubles near them differ alike; NaN is apart from nothing."""
    return abs(one - other) > CLOSE * max(abs(one), abs(other)) and math.isfinite(one) and math.isfinite(other)


@kernel
def compare(op, a_kinds, a_doubles, a_mantissas, b_kinds, b_doubles, b_mantissas, truth):
    """FALSE, TRUE, ERROR or ASK for each row."""
    a_step, b_step = np.uint64(len(a_kinds) != 1), np.uint64(len(b_kinds) != 1)
    for row in range(np.uint64(len(truth))):
        i, j = row * a_step, row * b_step
        a, b = sort_of(a_kinds[i], a_mantissas[i]), sort_of(b_kinds[j], b_mantissas[j])
        if a == FAILED or b == FAILED:
            truth[row] = ERROR
        elif a != b or a == ODD:
            apart = a_kinds[i] != TIME and b_kinds[j] != TIME and are_apart(a_doubles[i], b_doubles[j])
            truth[row] = (TRUE if holds(op, a_doubles[i], b_doubles[j]) else FALSE) if apart else ASK
        else:
            truth[row] = TRUE if holds(op, a_doubles[i], b_doubles[j]) else FALSE
