"""Numbers distinct rows of a matrix, by a hash table with open addressing."""

from __future__ import annotations

import numpy as np

from etalis_py.executors.columns.kernels.ahead import AHEAD, fetch
from etalis_py.numba_cache import kernel, part

# Odd multipliers, which spread the bits of a hash; the first is 2 ** 64 divided by the golden ratio.
_FIRST = np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xD6E8FEB86659FD93)
FULL = 5 / 8
"""The largest share of a table's slots that may be taken."""


def slots_for(count: int) -> int:
    """The number of slots in a table for ``count`` keys: a power of two."""
    return max(64, 1 << int(count / FULL).bit_length())


@part
def hash_row(rows, i):
    """A 64-bit hash of row ``i``."""
    mixed, row = _FIRST, np.uint64(i)
    for k in range(np.uint64(rows.shape[1])):
        mixed = (mixed ^ np.uint64(rows[row, k])) * _SECOND
        mixed ^= mixed >> np.uint64(32)
    return mixed


@part
def same_row(rows, i, others, j):
    """Whether the two rows are equal."""
    one, other = np.uint64(i), np.uint64(j)
    for k in range(np.uint64(rows.shape[1])):
        if rows[one, k] != others[other, k]:
            return False
    return True


@kernel
def number_keys(rows, keys, slots, count, create, numbers):
    """Write the number of each row's key; an unknown key is added if ``create``, else its number is -1.

    Returns the number of keys.  ``keys`` and ``slots`` (``slots_for``) have room for all; a free slot is -1.
    ``numbers`` also holds the slots of the rows ahead, which are prefetched with their keys.
    """
    mask = np.uint64(len(slots) - 1)
    for i in range(-2 * AHEAD, rows.shape[0]):
        soon = i + 2 * AHEAD
        if soon < rows.shape[0]:
            slot = hash_row(rows, soon) & mask
            numbers[soon] = slot
            fetch(slots, slot)
        soon = i + AHEAD
        if 0 <= soon < rows.shape[0]:
            number = slots[np.uint64(numbers[soon])]
            if number >= 0:
                fetch(keys, np.uint64(number))
        if i < 0:
            continue
        slot = np.uint64(numbers[i])
        while True:
            number = np.int64(slots[slot])
            if number < 0:
                if not create:
                    numbers[i] = -1
                    break
                for k in range(rows.shape[1]):
                    keys[count, k] = rows[i, k]
                slots[slot] = count
                numbers[i] = count
                count += 1
                break
            if same_row(rows, i, keys, number):
                numbers[i] = number
                break
            slot = (slot + np.uint64(1)) & mask
    return count


@kernel
def rehash_keys(keys, count, slots):
    """Fill empty slots with the existing keys."""
    mask = np.uint64(len(slots) - 1)
    for number in range(count):
        slot = hash_row(keys, number) & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number


@kernel
def first_of_equal_rows(rows, slots, first):
    """Mark the first of each set of equal rows; ``slots`` is as in ``number_keys``, and empty."""
    mask = np.uint64(len(slots) - 1)
    for i in range(rows.shape[0]):
        slot = hash_row(rows, i) & mask
        first[i] = True
        while True:
            other = slots[slot]
            if other < 0:
                slots[slot] = i
                break
            if same_row(rows, i, rows, other):
                first[i] = False
                break
            slot = (slot + np.uint64(1)) & mask
