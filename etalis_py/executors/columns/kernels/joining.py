"""Joins of arriving rows with waiting goals: all pairs, or one goal each under a consuming policy.

A goal x and an arriving row y pair when they have the same key, stand in the temporal relation, keep the window
(max(x.end, y.end) − min(x.start, y.start) ≤ bound) and pass the conditions: x.values[c] op[c] y.values[c].

Indices of inner loops are unsigned: so no negative one need be expected.
"""

from __future__ import annotations

import numpy as np

from etalis_py.compiled import kernel
from etalis_py.executors.columns.kernels.goals import AT, HIGH, LOW, copy_goal, remove

BEFORE, ANY, UNTIL = 0, 1, 2
"""Relations: x ends before y starts; none; x ends no later than y."""
MEETS, OVERLAPS, STARTS, DURING, FINISHES, PAR = 3, 4, 5, 6, 7, 8
"""Allen's; and PAR: they share an instant."""

LESS, EQUAL, UNEQUAL = 0, 1, 2
"""Operators; the other comparisons are LESS after a change of sign or to the next double (``comparing``)."""
UNBOUNDED = 2**62
_ONE = np.uint64(1)


@kernel
def passes(values, x, others, y, ops):
    """Do all conditions hold?"""
    for c in range(np.uint64(len(ops))):
        one, other, op = values[x, c], others[y, c], ops[c]
        if op == LESS:
            if not one < other:
                return False
        elif (one == other) != (op == EQUAL):
            return False
    return True


@kernel
def first_from(ends, low, high, time):
    """The first place from ``low`` on whose end is not before ``time``; searched from behind, where goals are new."""
    if high > low and ends[high - 1] < time:
        return high
    while low < high:
        middle = (low + high) >> 1
        if ends[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def candidates(relation, ends, first, last, end, start):
    """The goals among which those are that stand in a relation with a row: those that end within certain times."""
    if relation == BEFORE:
        return first, first_from(ends, first, last, start)
    if relation == UNTIL:
        return first, first_from(ends, first, last, end + 1)
    if relation >= MEETS and relation <= DURING:
        first = first_from(ends, first, last, start)
        return first, first_from(ends, first, last, end)
    return first, last


@kernel
def related(relation, x_end, x_start, y_end, y_start):
    """Do a candidate and a row stand in the relation?"""
    if relation < MEETS:
        return True
    if relation == MEETS:
        return x_end == y_start and x_start < y_start and y_start < y_end
    if relation == OVERLAPS:
        return x_start < y_start and y_start < x_end and x_end < y_end
    if relation == STARTS:
        return x_start == y_start and x_end < y_end
    if relation == DURING:
        return y_start < x_start and x_end < y_end
    if relation == FINISHES:
        return y_start < x_start and x_end == y_end
    return x_start <= y_end and y_start <= x_end


@kernel
def passes_first(one, other, op):
    """Does the first condition hold?"""
    return one < other if op == LESS else (one == other) == (op == EQUAL)


@kernel
def next_passing(values, x, last, other, op):
    """The first of the goals from ``x`` on that passes the first condition, or ``last``.

    It is a loop with nothing else in it, as most goals that are looked at are refused.
    """
    column = np.uint64(0)
    if op == LESS:
        while x < last and not values[x, column] < other:
            x += _ONE
    else:
        while x < last and not passes_first(values[x, column], other, op):
            x += _ONE
    return x


@kernel
def passing_before(values, first, x, other, op):
    """The end of the goals up to ``x`` of which the last passes the first condition, or ``first`` where none does."""
    column = np.uint64(0)
    if op == LESS:
        while x > first and not values[x - _ONE, column] < other:
            x -= _ONE
    else:
        while x > first and not passes_first(values[x - _ONE, column], other, op):
            x -= _ONE
    return x


@kernel
def fits(relation, x, row, end, start, bound, ops, ends, starts, values, y_values):
    """Do a candidate and a row pair?"""
    return (
        passes(values, x, y_values, row, ops)
        and max(ends[x], end) - min(starts[x], start) <= bound
        and related(relation, ends[x], starts[x], end, start)
    )


@kernel
def probe(relation, j, n, keys, y_ends, y_starts, y_values, bound, ops, buckets, ends, starts, values, goals, rows):
    """All pairs of a goal and an arriving row, row by row: where the goal stands, and the row's number.

    Rows come in order of time, and goals that are out of the window of one are let go.  It begins at the row j with n
    pairs before it; returns where it stopped for want of room, and how many pairs there are then.
    """
    conditions = len(ops) > 0
    while j < len(keys):
        key = keys[j]
        if key < 0:
            j += 1
            continue
        at, low, high = buckets[key, AT], buckets[key, LOW], buckets[key, HIGH]
        end, start = y_ends[j], y_starts[j]
        first, last = at + low, at + high
        if bound < UNBOUNDED:
            while first < last and ends[first] < end - bound:
                first += 1
            buckets[key, LOW] = first - at
        first, last = candidates(relation, ends, first, last, end, start)
        row, x, beyond = np.uint64(j), np.uint64(first), np.uint64(last)
        count = n
        while True:
            if conditions:
                x = next_passing(values, x, beyond, y_values[row, 0], ops[0])
            if x >= beyond:
                break
            if fits(relation, x, row, end, start, bound, ops, ends, starts, values, y_values):
                if count == len(goals):
                    return j, n
                goals[count] = x
                rows[count] = j
                count += 1
            x += _ONE
        n = count
        j += 1
    return j, n


@kernel
def count_candidates(relation, keys, y_ends, y_starts, bound, buckets, ends, counts):
    """How many goals each arriving row would look at."""
    for j in range(len(keys)):
        key = keys[j]
        counts[j] = 0
        if key >= 0:
            first, last = buckets[key, AT] + buckets[key, LOW], buckets[key, AT] + buckets[key, HIGH]
            if bound < UNBOUNDED:
                first = first_from(ends, first, last, y_ends[j] - bound)
            first, last = candidates(relation, ends, first, last, y_ends[j], y_starts[j])
            counts[j] = last - first


@kernel
def consume(
    relation,
    latest,
    x_keys,
    x_ends,
    x_starts,
    x_terms,
    x_values,
    keys,
    y_ends,
    y_starts,
    y_values,
    bound,
    ops,
    buckets,
    ends,
    starts,
    terms,
    values,
    out_rows,
    out_ends,
    out_starts,
    out_terms,
):
    """Each arriving row takes its latest (or earliest) goal, in order of time; new goals x enter as time goes on.

    Both come in order; the buckets have room for the new goals.  A taken goal is retracted; it is written to ``out_…``
    with the number of the row that took it.  Returns how many were taken.
    """
    together = relation in (ANY, FINISHES)
    conditions = len(ops) > 0
    n = i = 0
    for j in range(len(keys)):
        end, start, key = y_ends[j], y_starts[j], keys[j]
        while i < len(x_keys) and (x_ends[i] < end or (together and x_ends[i] == end)):
            if x_keys[i] >= 0:
                at = buckets[x_keys[i], AT] + buckets[x_keys[i], HIGH]
                copy_goal(x_ends, x_starts, x_terms, x_values, i, ends, starts, terms, values, at)
                buckets[x_keys[i], HIGH] += 1
            i += 1
        if key < 0:
            continue
        at = buckets[key, AT]
        first, last = at + buckets[key, LOW], at + buckets[key, HIGH]
        if bound < UNBOUNDED:
            while first < last and ends[first] < end - bound:
                first += 1
            buckets[key, LOW] = first - at
        first, last = candidates(relation, ends, first, last, end, start)
        taken = -1
        row, least, beyond = np.uint64(j), np.uint64(first), np.uint64(last)
        x = beyond if latest else least
        while True:
            if latest:
                if conditions:
                    x = passing_before(values, least, x, y_values[row, 0], ops[0])
                if x <= least:
                    break
                x -= _ONE
            else:
                if conditions:
                    x = next_passing(values, x, beyond, y_values[row, 0], ops[0])
                if x >= beyond:
                    break
            if fits(relation, x, row, end, start, bound, ops, ends, starts, values, y_values):
                taken = np.int64(x)  # type: ignore[assignment]
                break
            if not latest:
                x += _ONE
        if taken >= 0:
            out_rows[n] = j
            out_ends[n] = ends[taken]
            out_starts[n] = starts[taken]
            for k in range(terms.shape[1]):
                out_terms[n, k] = terms[taken, k]
            remove(buckets, key, taken - at, ends, starts, terms, values)
            n += 1
    while i < len(x_keys):
        if x_keys[i] >= 0:
            at = buckets[x_keys[i], AT] + buckets[x_keys[i], HIGH]
            copy_goal(x_ends, x_starts, x_terms, x_values, i, ends, starts, terms, values, at)
            buckets[x_keys[i], HIGH] += 1
        i += 1
    return n


@kernel
def follow(i, j, n, x_keys, x_ends, x_starts, x_terms, x_values, keys, y_ends, y_starts, arena, goals, rows):
    """NEXT: each arriving row with the goals that end before it starts, which are let go when its instant is over.

    Both come in order; the buckets have room for the new goals x, which enter as time goes on.  ``goals`` receives
    where the goals of the pairs stand, ``rows`` the numbers of the rows.  It begins at the goal i and the row j with n
    pairs before them; returns where it stopped for want of room, and how many pairs there are then.
    """
    buckets, ends, starts, terms, values = arena
    while j < len(keys) or i < len(x_keys):
        while i < len(x_keys) and (j == len(keys) or x_ends[i] < y_ends[j]):
            if x_keys[i] >= 0:
                at = buckets[x_keys[i], AT] + buckets[x_keys[i], HIGH]
                copy_goal(x_ends, x_starts, x_terms, x_values, i, ends, starts, terms, values, at)
                buckets[x_keys[i], HIGH] += 1
            i += 1
        beyond, needed = j, 0
        while beyond < len(keys) and y_ends[beyond] == y_ends[j]:
            key = keys[beyond]
            if key >= 0:
                low, high = buckets[key, AT] + buckets[key, LOW], buckets[key, AT] + buckets[key, HIGH]
                needed += first_from(ends, low, high, y_starts[beyond]) - low
            beyond += 1
        if n + needed > len(goals):
            return i, j, n
        for row in range(j, beyond):
            key = keys[row]
            if key >= 0:
                low, high = buckets[key, AT] + buckets[key, LOW], buckets[key, AT] + buckets[key, HIGH]
                for x in range(low, first_from(ends, low, high, y_starts[row])):
                    goals[n] = x
                    rows[n] = row
                    n += 1
        for row in range(j, beyond):
            key = keys[row]
            if key >= 0:
                at = buckets[key, AT]
                low, high = at + buckets[key, LOW], at + buckets[key, HIGH]
                buckets[key, LOW] = first_from(ends, low, high, y_starts[row]) - at
        j = beyond
    return i, j, n


@kernel
def pick(latest, goals, rows, taken, chosen):
    """Of pairs that are ordered by row and then by goal: each row takes its latest (or earliest) goal that is left.

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
