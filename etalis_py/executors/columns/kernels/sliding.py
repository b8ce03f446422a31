"""Aggregates over a window that slides, and how their results are spelled.

The items of a window are arrays in order of their ends: the number of each one's group and of its triple (-1 where it
does not match the pattern), and what it adds to a sum.  ``at`` holds where the window stands in them.
"""

from __future__ import annotations

import numpy as np

from etalis_py.compiled import kernel, part
from etalis_py.kernel.words import copy_bytes

FIRST, ENTERED, CLOSE, EVALUATIONS, REPEATED, FULL = range(6)
"""The first item that is held, the first that waits, the next closing; how many evaluations there were and how many
items came that were held already; whether there was no room for more rows."""
_ONE = np.uint64(1)
LONGEST = 128
"""No number that is spelled here has more bytes than this."""
_DIGITS = 34


@part
def enter(item, groups, triples, summands, held, counts, totals):
    """An item enters; 1 if the window holds its triple already."""
    triple = triples[item]
    if triple < 0:
        return 0
    held[triple] += 1
    if held[triple] > 1:
        return 1
    counts[groups[item]] += 1
    totals[groups[item]] += summands[item]
    return 0


@kernel
def enter_all(items, groups, triples, summands, held, counts, totals):
    """The first items are in the window."""
    for item in range(items):
        enter(item, groups, triples, summands, held, counts, totals)


@part
def leave_until(low, first, entered, ends, groups, triples, summands, held, counts, totals):
    """What ends at or before ``low`` leaves; returns the first item that stays."""
    while first < entered and ends[first] <= low:
        triple = triples[first]
        if triple >= 0:
            held[triple] -= 1
            if held[triple] == 0:
                counts[groups[first]] -= 1
                totals[groups[first]] -= summands[first]
        first += 1
    return first


@kernel
def slide(
    at,
    ends,
    groups,
    triples,
    summands,
    width,
    step,
    through,
    nonempty,
    whole,
    held,
    counts,
    totals,
    order,
    closings,
    of_groups,
    of_counts,
    of_totals,
):
    """Answer at every closing up to ``through``: a row for each group, in this order; returns how many rows there are.

    ``nonempty``: only where the window holds an item; ``whole``: the one group there is answers even of nothing.
    It stops where there may be no room for the next answer; then ``at[FULL]`` is set.
    """
    first, entered, close = at[FIRST], at[ENTERED], at[CLOSE]
    rows = 0
    at[FULL] = 0
    while close <= through:
        first = leave_until(close - width, first, entered, ends, groups, triples, summands, held, counts, totals)
        while entered < len(ends) and ends[entered] <= close:
            if ends[entered] > close - width:
                at[REPEATED] += enter(entered, groups, triples, summands, held, counts, totals)
            else:
                first += 1  # nothing is held while such items come
            entered += 1
        if nonempty and first == entered:
            if entered == len(ends):
                break
            close += (ends[entered] - close + step - 1) // step * step
            continue
        if rows + len(order) > len(closings):
            at[FULL] = 1
            break
        at[EVALUATIONS] += 1
        for group in order:
            if counts[group] > 0 or whole:
                closings[rows] = close
                of_groups[rows] = group
                of_counts[rows] = counts[group]
                of_totals[rows] = totals[group]
                rows += 1
        close += step
        first = leave_until(close - width, first, entered, ends, groups, triples, summands, held, counts, totals)
    at[FIRST], at[ENTERED], at[CLOSE] = first, entered, close
    return rows


@kernel
def digits_of(number, digits):
    """The decimal digits of a number that is not negative, the first one first; none of 0."""
    size = 0
    left = number
    while left > 0:
        left //= 10
        size += 1
    left = number
    for i in range(size - 1, -1, -1):
        digits[i] = left % 10
        left //= 10
    return size


@kernel
def quotient(total, count, scale, digits):
    """The digits of total ÷ (count · 10**scale), rounded half to even as ``values.exact.quotient`` does.

    Returns how many there are, and how many of them stand before the point (negative: so many zeros follow it).
    """
    size = digits_of(total, digits)
    power = size - scale - digits_of(count, digits)
    size = digits_of(total // count, digits)
    point = size - scale
    most = _DIGITS + max(0, power)
    left = total % count
    significant = size
    while left > 0 and significant < most:
        left *= 10
        digits[size] = left // count
        left %= count
        if significant > 0 or digits[size] > 0:
            significant += 1
        size += 1
    if 2 * left > count or (2 * left == count and digits[size - 1] % 2 == 1):
        i = size - 1
        while i >= 0 and digits[i] == 9:
            digits[i] = 0
            i -= 1
        if i >= 0:
            digits[i] += 1
        else:  # 9.99… is 10
            digits[0] = 1
            point += 1
    while size > max(point, 0) and digits[size - 1] == 0:
        size -= 1
    return size, point


@kernel
def spell_results(totals, counts, divide, scale, tail, integer_tail, digits, ends, out):
    """The literals of totals · 10**-scale, or with ``divide`` of that ÷ counts; of nothing it is the integer 0.

    ``digits`` has room for the LONGEST.
    """
    at = np.uint64(0)
    ends[0] = 0
    for i in range(len(totals)):
        out[at] = 34
        at += _ONE
        if totals[i] == 0:
            out[at] = 48
            at += _ONE
        else:
            if totals[i] < 0:
                out[at] = 45
                at += _ONE
            size, point = quotient(abs(totals[i]), counts[i] if divide else 1, scale, digits)
            if point <= 0:
                out[at] = 48
                at += _ONE
            for k in range(min(point, 0), size):
                if k == point:
                    out[at] = 46
                    at += _ONE
                out[at] = 48 + (digits[k] if k >= 0 else 0)
                at += _ONE
        end = integer_tail if counts[i] == 0 else tail
        copy_bytes(end, np.uint64(0), out, at, np.uint64(len(end)))
        at += np.uint64(len(end))
        ends[i + 1] = at
