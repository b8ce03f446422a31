"""A rule that feeds one of its own leaves through one join, instant by instant, semi-naively.

Each row that arrives in an instant is processed once: it meets the earlier rows of the other side, then waits for later
ones.  Each pair makes a new row of the leaf, which arrives in the same instant.  Rows of the batch are kept in a list
for each key, in order of arrival; rows of earlier batches are in the goal store.

Nothing is allocated here, as that would take many seconds to compile; when room runs out the caller starts again with
more.
"""

from __future__ import annotations

import numpy as np

from etalis_py.executors.columns.kernels.goals import AT, HIGH, LOW
from etalis_py.executors.columns.kernels.joining import BEFORE, first_from
from etalis_py.executors.columns.kernels.keys import hash_row, same_row
from etalis_py.numba_cache import kernel, part, section

_MIX = np.uint64(0xD6E8FEB86659FD93)
NO_ROWS, NO_KEYS, NO_SEEN = -1, -2, -3
FIXED, OF_LEFT, OF_RIGHT = 0, 1, 2
"""Where a term of a new row comes from: a constant, or a column of the left or the right."""


@part
def known_key(wanted, keys, slots):
    """The number of a key, or −1 − the free slot for it."""
    mask = np.uint64(len(slots) - 1)
    slot = hash_row(wanted, np.int64(0)) & mask
    while True:
        number = np.int64(slots[slot])
        if number < 0:
            return -1 - np.int64(slot)
        if same_row(wanted, np.int64(0), keys, number):
            return number
        slot = (slot + np.uint64(1)) & mask


@section
def row_hash(terms, row, start):
    """A hash of a row's terms and start."""
    return (hash_row(terms, row) ^ np.uint64(start)) * _MIX


@kernel
def is_new(terms, starts, row, first, slots):
    """Add a row to the set of rows from ``first`` on; false if it is there already.

    Rows before ``first`` belong to earlier instants; their slots count as free, so the table need not be cleared.
    """
    mask = np.uint64(len(slots) - 1)
    slot = (row_hash(terms, row, starts[row]) >> np.uint64(7)) & mask
    while slots[slot] >= first:
        other = slots[slot]
        if starts[other] == starts[row] and same_row(terms, row, terms, other):
            return False
        slot = (slot + np.uint64(1)) & mask
    slots[slot] = row
    return True


@section
def met(relation, bound, end, start, first, stored, side, buckets, old_ends, old_starts, ends, starts, after, goals):
    """Find the partners of a row on the other side: goals of its key in the store, and rows of the list from ``first``.

    ``goals`` receives the number of each row, or −1 − the place of each goal, with its start.  Returns how many there
    are, or −1 if there is no room for them.
    """
    n = 0
    if stored >= 0 and stored < len(buckets):
        low, high = buckets[stored, AT] + buckets[stored, LOW], buckets[stored, AT] + buckets[stored, HIGH]
        for place in range(first_from(old_ends, low, high, end - bound), high):
            if relation == BEFORE and old_ends[place] >= start:
                break
            if end - min(old_starts[place], start) <= bound:
                if n == len(goals):
                    return -1
                goals[n, 0], goals[n, 1] = -1 - place, old_starts[place]
                n += 1
    row = first
    while row >= 0 and not (relation == BEFORE and ends[row] >= start):
        if end - min(starts[row], start) <= bound:
            if n == len(goals):
                return -1
            goals[n, 0], goals[n, 1] = row, starts[row]
            n += 1
        row = after[row, 1 - side]
    return n


@section
def make_row(row, left, right, sources, allowed, terms, left_terms, right_terms):
    """Write the row that a pair makes; returns whether it makes one."""
    for k in range(len(sources)):
        where, which, wanted, column = sources[k, 0], sources[k, 1], sources[k, 2], sources[k, 3]
        term = which
        if where == OF_LEFT:
            term = np.int64(terms[left, which] if left >= 0 else left_terms[-1 - left, which])
        elif where == OF_RIGHT:
            term = np.int64(terms[right, which] if right >= 0 else right_terms[-1 - right, which])
        if term == 0 or (wanted >= 0 and term != wanted) or (k == 0 and len(allowed) > 0 and not allowed[term]):
            return False
        if column >= 0:
            terms[row, column] = term
    return True


@section
def key_number(key, count, keys, slots, stored, heads, tails, stored_keys, stored_slots):
    """The number of a key, which is added if it is new; ``stored`` receives its number in the goal store."""
    number = known_key(key, keys, slots)
    if number >= 0:
        return number
    slots[-1 - number] = count
    for k in range(keys.shape[1]):
        keys[count, k] = key[0, k]
    stored[count] = known_key(key, stored_keys, stored_slots) if keys.shape[1] else 0
    for side in range(2):
        heads[count, side] = tails[count, side] = -1
    return count


@kernel
def recur(
    relation,
    bound,
    most,
    loops,
    x_ends,
    x_starts,
    x_terms,
    x_of_leaf,
    key_columns,
    sources,
    allowed,
    stored_keys,
    stored_slots,
    l_buckets,
    l_ends,
    l_starts,
    l_terms,
    r_buckets,
    r_ends,
    r_starts,
    r_terms,
    ends,
    starts,
    terms,
    of_leaf,
    after,
    key,
    keys,
    slots,
    stored,
    heads,
    tails,
    seen,
    goals,
    pairs,
    times,
):
    """Compute all pairs of the join and all rows of its sides, until no pair makes a new row of the leaf.

    ``loops``: whether the left is the leaf, and whether the right is.  The rows x come from elsewhere: for the leaf
    (``x_of_leaf``) and for the other side, ordered by time and then by side.  ``key_columns``: of the left, of the
    right.  ``sources``: for subject and object of the derived triple, the origin of the term, which term it is there,
    the term that it has to be (or −1), and its column in the leaf (or −1).  ``allowed``: a mask of the terms that may
    be a subject, empty if no test is needed.  ``l_…`` and ``r_…`` are goals of earlier batches, of the left and of the
    right.  Evaluation stops after an instant with more pairs than ``most``.

    Writes the rows (``ends`` to ``of_leaf``), and for each pair its left and right (the number of a row, or −1 − the
    place of a goal), its end and start.  ``after`` to ``goals`` are scratch space; ``slots`` and ``seen`` are empty
    (−1).  Returns the numbers of pairs and rows; if room ran out, NO_ROWS, NO_KEYS or NO_SEEN in place of the first.
    """
    joined = count = arrived = first = first_pair = i = known = np.int64(0)
    while i < len(x_ends):
        t, leaf = x_ends[i], x_of_leaf[i]
        if i > 0 and x_ends[i - 1] != t:
            first, first_pair = count, joined
        while i < len(x_ends) and x_ends[i] == t and x_of_leaf[i] == leaf:
            if count == len(ends):
                return NO_ROWS, 0
            if 2 * (count - first) >= len(seen):
                return NO_SEEN, 0
            ends[count], starts[count], of_leaf[count] = t, x_starts[i], leaf
            for k in range(terms.shape[1]):
                terms[count, k] = x_terms[i, k]
            if not leaf or is_new(terms, starts, count, first, seen):
                count += 1
            i += 1
        while arrived < count:
            row = arrived
            start = starts[row]
            arrived += 1
            for side in range(2):
                if loops[side] != of_leaf[row]:
                    continue
                for k in range(key_columns.shape[1]):
                    key[0, k] = terms[row, key_columns[side, k]]
                if known == len(keys):
                    return NO_KEYS, 0
                number = key_number(key, known, keys, slots, stored, heads, tails, stored_keys, stored_slots)
                known = max(known, number + 1)
                n = 0
                # In a SEQ, a left that arrives now has not ended before any right that is there already.
                if side == 1 or relation != BEFORE:
                    if side == 1:
                        buckets, old_ends, old_starts = l_buckets, l_ends, l_starts
                    else:
                        buckets, old_ends, old_starts = r_buckets, r_ends, r_starts
                    n = met(relation, bound, t, start, heads[number, 1 - side], stored[number], side,
                            buckets, old_ends, old_starts, ends, starts, after, goals)  # fmt: skip
                if n < 0 or joined + n > len(pairs) or count + n >= len(ends):
                    return NO_ROWS, 0
                if 2 * (count + n - first) >= len(seen):
                    return NO_SEEN, 0
                after[row, side] = -1
                if tails[number, side] < 0:
                    heads[number, side] = row
                else:
                    after[tails[number, side], side] = row
                tails[number, side] = row
                for g in range(n):
                    left, right = (goals[g, 0], row) if side == 1 else (row, goals[g, 0])
                    begun = min(goals[g, 1], start)
                    pairs[joined, 0], pairs[joined, 1], times[joined, 0], times[joined, 1] = left, right, t, begun
                    joined += 1
                    if make_row(count, left, right, sources, allowed, terms, l_terms, r_terms):
                        ends[count], starts[count], of_leaf[count] = t, begun, True
                        if is_new(terms, starts, count, first, seen):
                            count += 1
                if joined - first_pair > most:
                    return joined, count
    return joined, count
