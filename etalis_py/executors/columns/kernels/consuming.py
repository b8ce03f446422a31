"""Joins under a consuming policy: each arriving row takes one goal, the latest or the earliest, and retracts it.

Rows that arrive in a batch wait apart from the goals, in a separate stretch for each key.  Only those left at the end
become goals: most are taken or expire within the batch.

Where the values of goals must lie below that of a row, blocks of goals that are all above it are passed at once: a
search in vain through a whole block notes its lowest value.  A goal that has been taken leaves a gap, so that the
others stay in their blocks; gaps are closed at the end of the batch.
"""

from __future__ import annotations

import numpy as np

from etalis_py.executors.columns.kernels.goals import AT, HIGH, LOW, copy_goal, retract
from etalis_py.executors.columns.kernels.joining import (
    ANY,
    FINISHES,
    LESS,
    UNBOUNDED,
    candidates,
    fits,
    passes_first,
)
from etalis_py.numba_cache import kernel, part, section

NOTHING, OLDER = -1, -2
"""What a row has taken if it is not a row of the batch: nothing, or a goal from before the batch."""
BLOCK = 256
"""So many places have one lowest value."""
_NONE, _REFUSED = -1, -2
_GAP = -(2**63)
"""The start of a goal that has been taken."""
_ONE, _BLOCK = np.uint64(1), np.uint64(BLOCK)


@section
def passing_before(values, lowest, first, x, other, op):
    """The place after the last goal in [first, x) that passes the first condition, or ``first`` if none does."""
    column = np.uint64(0)
    if op != LESS:
        while x > first and not passes_first(values[x - _ONE, column], other, op):
            x -= _ONE
        return x
    while x > first:
        block = (x - _ONE) // _BLOCK
        stop = max(first, block * _BLOCK)
        whole = x - stop == _BLOCK
        if whole and not lowest[block] < other:
            x = stop
            continue
        least = np.inf
        while x > stop:
            value = values[x - _ONE, column]
            if value < other:
                return x
            if value < least:  # NaN is not
                least = value
            x -= _ONE
        if whole:
            lowest[block] = least
    return x


@section
def next_passing(values, lowest, x, last, other, op):
    """The first goal in [x, last) that passes the first condition, or ``last`` if none does."""
    column = np.uint64(0)
    if op != LESS:
        while x < last and not passes_first(values[x, column], other, op):
            x += _ONE
        return x
    while x < last:
        block = x // _BLOCK
        stop = min(last, (block + _ONE) * _BLOCK)
        whole = stop - x == _BLOCK
        if whole and not lowest[block] < other:
            x = stop
            continue
        least = np.inf
        while x < stop:
            value = values[x, column]
            if value < other:
                return x
            if value < least:  # NaN is not
                least = value
            x += _ONE
        if whole:
            lowest[block] = least
    return x


@part
def leave_gap(place, low, high, starts, values):
    """Mark the goal at a place of [low, high) as taken; returns the range without the gaps at its ends."""
    starts[place] = _GAP
    values[place, 0] = np.nan  # it lies below nothing
    while low < high and starts[low] == _GAP:
        low += 1
    while low < high and starts[high - 1] == _GAP:
        high -= 1
    return low, high


@part
def close_gaps(first, key, buckets, ends, starts, terms, values):
    """Move the goals of a key together; ``first`` is the place of the first gap."""
    kept = max(first, buckets[key, AT] + buckets[key, LOW])
    high = buckets[key, AT] + buckets[key, HIGH]
    for x in range(kept, high):
        if starts[x] != _GAP:
            if kept != x:
                copy_goal(ends, starts, terms, values, x, ends, starts, terms, values, kept)
            kept += 1
    buckets[key, HIGH] = min(kept, high) - buckets[key, AT]


@section
def choose(relation, latest, row, end, start, bound, ops, ends, starts, values, y_values, lowest, first, last):
    """The latest (or earliest) goal in [first, last) that pairs with a row.

    _NONE if no goal passes the first condition, which a floor can remember; _REFUSED if a goal passes it and fails
    another test.
    """
    conditions = len(ops) > 0
    least, beyond = np.uint64(first), np.uint64(last)
    x = beyond if latest else least
    failure = _NONE
    while True:
        if latest:
            if conditions:
                x = passing_before(values, lowest, least, x, y_values[row, 0], ops[0])
            if x <= least:
                return failure
            x -= _ONE
        else:
            if conditions:
                x = next_passing(values, lowest, x, beyond, y_values[row, 0], ops[0])
            if x >= beyond:
                return failure
        if fits(relation, x, row, end, start, bound, ops, ends, starts, values, y_values):
            return np.int64(x)
        failure = _REFUSED
        if not latest:
            x += _ONE


@part
def search(
    relation, latest, row, end, start, bound, ops, ends, starts, values, y_values, lowest, low, high, floors, number
):
    """``choose`` among [low, high), unless the floor rules it out.

    The floor is a number below which no value of these goals lies.  A row must have a value above it to find a goal; a
    search in which no goal passes the first condition raises it.
    """
    less = len(ops) > 0 and ops[0] == LESS
    if low == high or (less and floors[number] >= y_values[row, 0]):
        return _NONE
    first, last = candidates(relation, ends, low, high, end, start)
    place = choose(relation, latest, row, end, start, bound, ops, ends, starts, values, y_values, lowest, first, last)
    if less and place == _NONE and first == low and last == high and y_values[row, 0] > floors[number]:
        floors[number] = y_values[row, 0]
    return place


@part
def number_of(key, numbers, known, count):
    """The number of a key, from 1 in order of first appearance, and how many keys have one by now."""
    if numbers[key] == 0:
        count += 1
        known[count] = key
        numbers[key] = count
    return numbers[key], count


@part
def copy_taken(ends, starts, terms, source, to_ends, to_starts, to_terms, target):
    """Copy the fields of a goal that was taken."""
    to_ends[target] = ends[source]
    to_starts[target] = starts[source]
    for c in range(terms.shape[1]):
        to_terms[target, c] = terms[source, c]


@kernel
def consume(
    relation,
    latest,
    x_keys,
    x_rows,
    y_keys,
    y_rows,
    bound,
    ops,
    numbers,
    notes,
    lowest,
    newer,
    arena,
    taken,
    gone,
    copies,
):
    """Let each arriving row y take a goal, in order of time.

    The rows x are goals that arrive in the same batch; they wait in ``newer``, in a stretch for each key.  ``taken``
    receives for each y the row x that it took, or OLDER, or NOTHING; ``gone`` marks the x that were taken or expired;
    ``copies`` receives the ends, starts and terms of the goals taken, without gaps.  Returns how many were taken.

    ``notes`` has six entries for each key: the key, where its stretch begins and ends, the floors of the values in the
    stretch and in the bucket (``search``), and the first gap in the bucket.  ``lowest`` has a bound of the values of
    each block of ``newer`` and of the arena, at first below all.  ``numbers`` is zero for every key, before and after.
    """
    x_ends, x_starts, x_terms, x_values = x_rows
    y_ends, y_starts, y_values = y_rows
    buckets, ends, starts, terms, values = arena
    known, lows, highs, floors, older_floors, gaps = notes
    new_lowest, old_lowest = lowest
    new_ends, new_starts, new_rows, new_values = newer
    out_ends, out_starts, out_terms = copies
    together = relation in (ANY, FINISHES)
    less = len(ops) > 0 and ops[0] == LESS
    count = np.int64(0)
    for key in x_keys:
        if key >= 0:
            number, total = number_of(key, numbers, known, count)
            if total > count:
                highs[number], count = 0, total
            highs[number] += 1
    begin = 0
    for number in range(1, count + 1):
        lows[number] = begin
        begin += highs[number]
        highs[number] = lows[number]
        floors[number], older_floors[number], gaps[number] = np.inf, -np.inf, UNBOUNDED
    x = np.uint64(0)
    for i in range(len(y_keys)):
        j, key = np.uint64(i), y_keys[i]
        end, start = y_ends[j], y_starts[j]
        while x < np.uint64(len(x_keys)) and (x_ends[x] < end or (together and x_ends[x] == end)):
            if x_keys[x] >= 0:
                number = numbers[x_keys[x]]
                to = highs[number]
                new_ends[to], new_starts[to], new_rows[to, 0] = x_ends[x], x_starts[x], x
                for c in range(x_values.shape[1]):
                    new_values[to, c] = x_values[x, c]
                if len(ops) > 0 and x_values[x, 0] < floors[number]:
                    floors[number] = x_values[x, 0]
                if less and x_values[x, 0] < new_lowest[to // BLOCK]:
                    new_lowest[to // BLOCK] = x_values[x, 0]
                highs[number] += 1
            x += _ONE
        if key < 0:
            continue
        number, total = number_of(key, numbers, known, count)
        if total > count:
            lows[number] = highs[number] = 0
            floors[number], older_floors[number], gaps[number] = np.inf, -np.inf, UNBOUNDED
            count = total
        low, high = buckets[key, AT] + buckets[key, LOW], buckets[key, AT] + buckets[key, HIGH]
        new_low, new_high = lows[number], highs[number]
        if bound < UNBOUNDED:
            while low < high and ends[low] < end - bound:
                low += 1
            while new_low < new_high and new_ends[new_low] < end - bound:
                gone[new_rows[new_low, 0]] = True
                new_low += 1
        # The goals of the batch are later than those before it: they are searched first for the latest, else last.
        for step in range(2):
            if latest == (step == 0):
                place = search(
                    relation,
                    latest,
                    j,
                    end,
                    start,
                    bound,
                    ops,
                    new_ends,
                    new_starts,
                    new_values,
                    y_values,
                    new_lowest,
                    new_low,
                    new_high,
                    floors,
                    number,
                )
                if place >= 0:
                    taken[j] = new_rows[place, 0]
                    gone[new_rows[place, 0]] = True
                    if less:
                        new_low, new_high = leave_gap(place, new_low, new_high, new_starts, new_values)
                    else:
                        new_low, new_high = retract(
                            place, new_low, new_high, new_ends, new_starts, new_rows, new_values
                        )
                    break
            else:
                place = search(
                    relation,
                    latest,
                    j,
                    end,
                    start,
                    bound,
                    ops,
                    ends,
                    starts,
                    values,
                    y_values,
                    old_lowest,
                    low,
                    high,
                    older_floors,
                    number,
                )
                if place >= 0:
                    taken[j] = OLDER
                    copy_taken(ends, starts, terms, place, out_ends, out_starts, out_terms, j)
                    if less:
                        low, high = leave_gap(place, low, high, starts, values)
                        gaps[number] = min(gaps[number], place)
                    else:
                        low, high = retract(place, low, high, ends, starts, terms, values)
                    break
        buckets[key, LOW], buckets[key, HIGH] = low - buckets[key, AT], high - buckets[key, AT]
        lows[number], highs[number] = new_low, new_high
    for number in range(1, count + 1):
        if gaps[number] < UNBOUNDED:
            close_gaps(gaps[number], known[number], buckets, ends, starts, terms, values)
        numbers[known[number]] = 0
    many = np.int64(0)
    for row in range(len(taken)):
        if taken[row] == OLDER:
            copy_taken(out_ends, out_starts, out_terms, row, out_ends, out_starts, out_terms, many)
        elif taken[row] != NOTHING:
            copy_taken(x_ends, x_starts, x_terms, taken[row], out_ends, out_starts, out_terms, many)
        else:
            continue
        many += 1
    return many


@kernel
def pick(latest, goals, rows, taken, chosen):
    """Let each row take its latest (or earliest) goal that no other row has taken; pairs are ordered by row, then goal.

    ``taken`` marks places of the arena and is False everywhere; ``chosen`` receives the numbers of the pairs.
    """
    n = first = 0
    while first < len(rows):
        last = first
        while last < len(rows) and rows[last] == rows[first]:
            last += 1
        for i in range(last - first):
            pair = last - 1 - i if latest else first + i
            if not taken[goals[pair]]:
                taken[goals[pair]] = True
                chosen[n] = pair
                n += 1
                break
        first = last
    return n


@kernel
def remove_marked(keys, taken, buckets, ends, starts, terms, values):
    """Retract the marked goals in the buckets of these keys."""
    for key in keys:
        if key < 0:
            continue
        at, low, high = buckets[key, AT], buckets[key, LOW], buckets[key, HIGH]
        kept = at + low
        for x in range(at + low, at + high):
            if taken[x]:
                taken[x] = False
            else:
                if kept != x:
                    copy_goal(ends, starts, terms, values, x, ends, starts, terms, values, kept)
                kept += 1
        buckets[key, HIGH] = kept - at
