"""Joins of arriving rows with waiting goals: all pairs, and the nearest.

A goal x and an arriving row y pair when they have the same key, stand in the temporal relation, keep the window
(max(x.end, y.end) − min(x.start, y.start) ≤ bound) and pass the conditions: x.values[c] op[c] y.values[c].

Indices of inner loops are unsigned, so that Numba need not handle negative ones.
"""

from __future__ import annotations

import numpy as np

from etalis_py.executors.columns.kernels.goals import AT, HIGH, LOW, copy_goal
from etalis_py.numba_cache import kernel, part, section

BEFORE, ANY, UNTIL = 0, 1, 2
"""Relations: x ends before y starts; no condition; x ends no later than y."""
MEETS, OVERLAPS, STARTS, DURING, FINISHES, PAR = 3, 4, 5, 6, 7, 8
"""Allen's relations; and PAR: x and y share an instant."""

LESS, EQUAL, UNEQUAL = 0, 1, 2
"""Comparisons; others become LESS by a change of sign or a step to the next double (``join_comparisons``)."""
UNBOUNDED = 2**62  # longer than any solution lasts
_ONE = np.uint64(1)


@section
def passes(values, x, others, y, ops):
    """Whether all conditions hold."""
    for c in range(np.uint64(len(ops))):
        one, other, op = values[x, c], others[y, c], ops[c]
        if op == LESS:
            if not one < other:
                return False
        elif (one == other) != (op == EQUAL):
            return False
    return True


@part
def first_from(ends, low, high, time):
    """The first place in [low, high) whose end is not before ``time``, or ``high``."""
    # Usually all goals ended earlier, so the last one is looked at before the search.
    if high > low and ends[high - 1] < time:
        return high
    while low < high:
        middle = (low + high) >> 1
        if ends[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@part
def candidates(relation, ends, first, last, end, start):
    """The range of goals that may stand in the relation to a row, as far as their ends tell."""
    if relation == BEFORE:
        return first, first_from(ends, first, last, start)
    if relation == UNTIL:
        return first, first_from(ends, first, last, end + 1)
    if relation >= MEETS and relation <= DURING:
        first = first_from(ends, first, last, start)
        return first, first_from(ends, first, last, end)
    return first, last


@section
def related(relation, x_end, x_start, y_end, y_start):
    """Whether a candidate and a row stand in the relation."""
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


@part
def passes_first(one, other, op):
    """Whether the first condition holds."""
    return one < other if op == LESS else (one == other) == (op == EQUAL)


@part
def fits(relation, x, row, end, start, bound, ops, ends, starts, values, y_values):
    """Whether a candidate and a row pair: conditions, window and relation hold."""
    return (
        passes(values, x, y_values, row, ops)
        and max(ends[x], end) - min(starts[x], start) <= bound
        and related(relation, ends[x], starts[x], end, start)
    )


@kernel
def probe(relation, j, n, keys, y_ends, y_starts, y_values, since, bound, ops, numbers, notes, arena, goals, rows):
    """Find all pairs of a goal and an arriving row, row by row.

    ``goals`` receives the place of the goal of each pair, ``rows`` the number of its row.  Rows come in order of time;
    goals that ended too early for the window of a row are dropped.  The search begins at row j with n pairs found
    before; it returns the row at which it ran out of room, and the number of pairs by then.

    ``notes`` has three entries for each key: the key, the place up to which its goals have been seen, and a floor.  No
    value of the seen goals lies below the floor, so a row whose value is no greater is skipped.  Any other row is
    compared with all goals without a branch, as the processor could not predict which of them pass.  ``numbers`` is
    zero for every key, before and after.  ``since`` may have a time for each row: goals that ended before it are left
    out.
    """
    buckets, ends, starts, _, values = arena
    known, seen, floors = notes
    less = len(ops) > 0 and ops[0] == LESS
    by_time = relation in (BEFORE, UNTIL)
    more = len(ops) > 1 or bound < UNBOUNDED or relation >= MEETS
    count = 0
    while j < len(keys):
        key = keys[j]
        if key < 0:
            j += 1
            continue
        number = numbers[key]
        first, high = buckets[key, AT] + buckets[key, LOW], buckets[key, AT] + buckets[key, HIGH]
        if number == 0:
            count += 1
            numbers[key] = number = count
            known[number], seen[number], floors[number] = key, first, np.inf if by_time else -np.inf
        end, start = y_ends[j], y_starts[j]
        if bound < UNBOUNDED:
            while first < high and ends[first] < end - bound:
                first += 1
            buckets[key, LOW] = first - buckets[key, AT]
        last = high
        if by_time:
            time = start if relation == BEFORE else end + 1
            last = max(seen[number], first)
            if last > first and ends[last - 1] >= time:
                last = first_from(ends, first, last, time)
            while last < high and ends[last] < time:
                if less and values[last, 0] < floors[number]:
                    floors[number] = values[last, 0]
                last += 1
            seen[number] = max(seen[number], last)
        elif relation >= MEETS:
            first, last = candidates(relation, ends, first, high, end, start)
        if first == last or (less and floors[number] >= y_values[j, 0]):
            j += 1
            continue
        if len(since) > 0:
            first = first_from(ends, first, last, since[j])
        if n + last - first > len(goals):
            break
        row, passed = np.uint64(j), np.uint64(n)
        if len(ops) > 0:
            for x in range(np.uint64(first), np.uint64(last)):
                goals[passed] = x
                passed += np.uint64(passes_first(values[x, np.uint64(0)], y_values[row, 0], ops[0]))
        else:
            for x in range(np.uint64(first), np.uint64(last)):
                goals[passed] = x
                passed += _ONE
        whole = len(since) == 0 and last == seen[number]
        if less and passed == n and whole and y_values[j, 0] > floors[number]:
            floors[number] = y_values[j, 0]
        kept = np.uint64(n)
        for pair in range(np.uint64(n), passed):
            goal = np.uint64(goals[pair])
            goals[kept], rows[kept] = goal, j
            kept += np.uint64(
                not more or fits(relation, goal, row, end, start, bound, ops, ends, starts, values, y_values)
            )
        n = np.int64(kept)
        j += 1
    for number in range(1, count + 1):
        numbers[known[number]] = 0
    return j, n


@kernel
def follow(i, j, n, x_keys, x_ends, x_starts, x_terms, x_values, keys, y_ends, y_starts, arena, goals, rows):
    """Find the pairs of a nearest relation: each arriving row with the goals that end before it starts.

    These goals are dropped when the instant of the row is over.  Rows and new goals x come in order of time, and the
    buckets have room for the new goals, which enter as time goes on.  ``goals`` receives the places of the goals of the
    pairs, ``rows`` the numbers of the rows.  The search begins at goal i and row j with n pairs found before; it
    returns where it ran out of room, and the number of pairs by then.
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
