"""Spellings to numbers: a hash table over bytes, with open addressing."""

from __future__ import annotations

import numpy as np

from etalis_py.executors.columns.kernels.ahead import AHEAD, fetch
from etalis_py.kernel.byte_words import copy_bytes, load_word, same_bytes, write_number
from etalis_py.numba_cache import kernel, part, section

# The multipliers of ``keys.hash_row``.
_FIRST = np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xD6E8FEB86659FD93)
_ONE, _EIGHT = np.uint64(1), np.uint64(8)
_TAG_BITS, _HALF = 31, np.uint64(32)  # a slot is a tag of 31 bits and an id of 32: never negative, as free ones are


@section
def hash_bytes(data, begin, length):
    """A 64-bit hash of some bytes, eight at a time; the last eight may overlap the ones before.

    Indices are unsigned here and below, so that Numba need not handle negative ones.
    """
    mixed = length * _FIRST
    i, end = begin, begin + length
    while i + _EIGHT < end:
        mixed = (mixed ^ load_word(data, i)) * _SECOND
        mixed ^= mixed >> np.uint64(32)
        i += _EIGHT
    if length >= _EIGHT:
        word = load_word(data, end - _EIGHT)
    else:
        word = np.uint64(0)
        while i < end:
            word = (word << _EIGHT) | np.uint64(data[i])
            i += _ONE
    mixed = (mixed ^ word) * _FIRST
    return mixed ^ (mixed >> np.uint64(29))


@part
def unneeded_bits(table):
    """The number of bits of a tag that do not determine its slot in a table."""
    bits = np.uint64(_TAG_BITS)
    size = len(table)
    while size > 1:
        size >>= 1
        bits -= _ONE
    return bits


@kernel
def intern(data, begins, ends, arena, offsets, table, count, ids):
    """The id of every spelling ``data[begins[i]:ends[i]]``; new ones are appended.  Returns the new number of terms.

    The arrays have room for all of them.  The number of slots in ``table`` is a power of two, and some are free (-1).
    Any other slot holds, in its lower half, the id of a term and, in its upper half, a tag: the first 31 bits of the
    term's hash.  ``ids`` also holds the tags of the rows ahead, whose slots, places and bytes are prefetched.
    """
    mask, shift = np.uint64(len(table) - 1), unneeded_bits(table)
    rows = len(begins)
    for n in range(-3 * AHEAD, rows):
        soon = n + 3 * AHEAD
        if soon < rows:
            begin = np.uint64(begins[soon])
            tag = hash_bytes(data, begin, np.uint64(ends[soon]) - begin) >> np.uint64(64 - _TAG_BITS)
            ids[soon] = tag
            fetch(table, tag >> shift)
        soon = n + 2 * AHEAD
        if 0 <= soon < rows:
            held = table[np.uint64(ids[soon]) >> shift]
            if held >= 0:
                fetch(offsets, np.uint64(held & 0xFFFFFFFF))
        soon = n + AHEAD
        if 0 <= soon < rows:
            held = table[np.uint64(ids[soon]) >> shift]
            if held >= 0:
                fetch(arena, np.uint64(offsets[held & 0xFFFFFFFF]))
        if n < 0:
            continue
        begin, tag = np.uint64(begins[n]), np.uint64(ids[n])
        length = np.uint64(ends[n]) - begin
        slot = tag >> shift
        while True:
            held = table[slot]
            if held < 0:
                copy_bytes(data, begin, arena, np.uint64(offsets[count]), length)
                offsets[count + 1] = offsets[count] + np.int64(length)
                table[slot] = np.int64(tag << _HALF) | count
                ids[n] = count
                count += 1
                break
            if np.uint64(held) >> _HALF == tag:
                known = held & 0xFFFFFFFF
                at = np.uint64(offsets[known])
                if np.uint64(offsets[known + 1]) - at == length and same_bytes(data, begin, arena, at, length):
                    ids[n] = known
                    break
            slot = (slot + _ONE) & mask
    return count


@kernel
def rehash(held, renumbered, table):
    """Move the terms of one hash table into another, empty one; returns how many there are.

    ``renumbered`` has their new ids, where 0 means that a term is gone; if it is empty, all keep their ids.
    """
    mask, shift = np.uint64(len(table) - 1), unneeded_bits(table)
    found = 0
    for entry in held:
        if entry < 0:
            continue
        term = entry & 0xFFFFFFFF
        if len(renumbered) > 0 and term > 0:
            term = np.int64(renumbered[term])
            if term == 0:
                continue
        tag = np.uint64(entry) >> _HALF
        slot = tag >> shift
        while table[slot] >= 0:
            slot = (slot + _ONE) & mask
        table[slot] = np.int64(tag << _HALF) | term
        found += 1
    return found


@kernel
def lengths(offsets, ids, ends):
    """Write where each of these spellings would end if they followed each other from 0; returns the whole length."""
    total = 0
    ends[0] = 0
    for i in range(len(ids)):
        total += offsets[ids[i] + 1] - offsets[ids[i]]
        ends[i + 1] = total
    return total


@kernel
def gather(arena, offsets, ids, ends, out):
    """The bytes of these terms, one after another."""
    for i in range(len(ids)):
        if i + AHEAD < len(ids):
            fetch(arena, np.uint64(offsets[ids[i + AHEAD]]))
        begin, at = np.uint64(offsets[ids[i]]), np.uint64(ends[i])
        copy_bytes(arena, begin, out, at, np.uint64(ends[i + 1]) - at)


@kernel
def number_distinct(ids, numbers, distinct):
    """Replace ids by numbers in order of first appearance; ``distinct`` receives the ids.  Returns how many there are.

    ``numbers`` is 0 for every term, before and after.
    """
    count = 0
    for i in range(len(ids)):
        term = ids[i]
        if numbers[term] == 0:
            distinct[count] = term
            count += 1
            numbers[term] = count
        ids[i] = numbers[term] - 1
    for i in range(count):
        numbers[distinct[i]] = 0
    return count


@kernel
def spell_integers(numbers, tail, digits, arena, offsets, count):
    """Append the literals of these numbers, which end with ``tail``; returns the new number of terms.

    ``digits`` has room for the digits of any number.
    """
    at = np.uint64(offsets[count])
    for i in range(len(numbers)):
        arena[at] = 34  # a quotation mark
        at = write_number(numbers[i], digits, arena, at + _ONE)
        copy_bytes(tail, np.uint64(0), arena, at, np.uint64(len(tail)))
        at += np.uint64(len(tail))
        count += 1
        offsets[count] = at
    return count


@kernel
def is_run(ids):
    """Whether each id is one more than the one before, and none is the unbound term's."""
    for i in range(1, len(ids)):
        if ids[i] != ids[i - 1] + 1:
            return False
    return len(ids) > 0 and ids[0] > 0


@kernel
def compact(marked, renumbered, arena, offsets):
    """Keep only the marked terms: move their bytes to the front and renumber them; returns how many there are."""
    at, count = offsets[0], 0
    for term in range(len(marked)):
        if not marked[term]:
            continue
        begin, end = offsets[term], offsets[term + 1]
        renumbered[term] = count
        offsets[count] = at
        if at != begin:
            for k in range(begin, end):
                arena[np.uint64(at + k - begin)] = arena[np.uint64(k)]
        at += end - begin
        count += 1
    offsets[count] = at
    return count
