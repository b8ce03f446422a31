"""Kernels for NOT: whether a goal lies between two times, and which goals still wait for their deadline."""

from __future__ import annotations

from etalis_py.executors.columns.kernels.goals import AT, HIGH, LOW, copy_goal
from etalis_py.executors.columns.kernels.joining import first_from
from etalis_py.numba_cache import kernel, section


@section
def agrees(own, row, places, terms, x):
    """Whether a goal is compatible with a row in the columns at these places; an unbound term (0) agrees with any."""
    for k in range(len(places)):
        one, other = own[row, k], terms[x, places[k]]
        if one != other and one != 0 and other != 0:
            return False
    return True


@kernel
def mark_present(keys, after, before, own, places, buckets, ends, starts, terms, present):
    """Mark each row for which a compatible goal of its key starts after one time and ends before another.

    ``own`` has the terms of the rows, which are compared with the columns of the goals at ``places``.
    """
    for j in range(len(keys)):
        key = keys[j]
        if key < 0:
            continue
        x, last = buckets[key, AT] + buckets[key, LOW], buckets[key, AT] + buckets[key, HIGH]
        x = first_from(ends, x, last, after[j] + 1)
        while x < last and ends[x] < before[j]:
            if starts[x] > after[j] and agrees(own, j, places, terms, x):
                present[j] = True
                break
            x += 1


@kernel
def places_between(row, n, keys, first_ends, before, buckets, ends, numbers, places):
    """Find the goals of each key that end within [first end, before).

    ``numbers`` receives the index in ``keys`` of each goal's key, ``places`` the goal's place.  The search begins at
    key ``row`` with ``n`` goals found before; it returns the key at which it ran out of room, and how many goals there
    are.
    """
    for j in range(row, len(keys)):
        key = keys[j]
        if key < 0:
            continue
        first, last = buckets[key, AT] + buckets[key, LOW], buckets[key, AT] + buckets[key, HIGH]
        first = first_from(ends, first, last, first_ends[j])
        last = first_from(ends, first, last, before[j])
        if n + last - first > len(places):
            return j, n
        for x in range(first, last):
            numbers[n] = j
            places[n] = x
            n += 1
    return len(keys), n


@kernel
def first_waiting(keys, times, buckets, ends):
    """The index of the first key with a goal that ends at the time given for it, or the number of keys."""
    for j in range(len(keys)):
        key = keys[j]
        low, high = buckets[key, AT] + buckets[key, LOW], buckets[key, AT] + buckets[key, HIGH]
        x = first_from(ends, low, high, times[j])
        if x < high and ends[x] == times[j]:
            return j
    return len(keys)


@kernel
def remove_places(keys, places, buckets, ends, starts, terms, values):
    """Retract the goals at these places, given with their keys: key by key, and ascending within each bucket.

    The first goals of a bucket cost nothing; for others the rest of the bucket moves.
    """
    i = 0
    while i < len(places):
        key = keys[i]
        at = buckets[key, AT]
        while i < len(places) and keys[i] == key and places[i] == at + buckets[key, LOW]:
            buckets[key, LOW] += 1
            i += 1
        if i == len(places) or keys[i] != key:
            continue
        kept = places[i]
        for x in range(places[i], at + buckets[key, HIGH]):
            if i < len(places) and keys[i] == key and places[i] == x:
                i += 1
            else:
                copy_goal(ends, starts, terms, values, x, ends, starts, terms, values, kept)
                kept += 1
        buckets[key, HIGH] = kept - at
