"""What is absent: whether something lies between two times, and which goals wait until it is certain."""

from __future__ import annotations

import numpy as np

from etalis_py.compiled import kernel
from etalis_py.executors.columns.kernels.goals import AT, HIGH, LOW, copy_goal
from etalis_py.executors.columns.kernels.joining import first_from, grown


@kernel
def agrees(own, row, places, terms, x):
    """Is a goal compatible with a row in the columns at these places?  An unbound term (0) agrees with any."""
    for k in range(len(places)):
        one, other = own[row, k], terms[x, places[k]]
        if one != other and one != 0 and other != 0:
            return False
    return True


@kernel
def present(keys, after, before, own, places, buckets, ends, starts, terms):
    """For each row: is there a goal of its key that starts after one time, ends before another and is compatible?

    ``own`` are the terms of the rows that are compared with the columns at ``places`` of the goals.
    """
    lies_between = np.zeros(len(keys), np.bool_)
    for j in range(len(keys)):
        key = keys[j]
        if key < 0:
            continue
        x, last = buckets[key, AT] + buckets[key, LOW], buckets[key, AT] + buckets[key, HIGH]
        x = first_from(ends, x, last, after[j] + 1)
        while x < last and ends[x] < before[j]:
            if starts[x] > after[j] and agrees(own, j, places, terms, x):
                lies_between[j] = True
                break
            x += 1
    return lies_between


@kernel
def places_between(keys, first_ends, before, buckets, ends):
    """The goals of each key that end within [first end, before): the number of their key among these, and where."""
    numbers = np.empty(max(16, len(keys)), np.int64)
    places = np.empty(max(16, len(keys)), np.int64)
    n = 0
    for j in range(len(keys)):
        key = keys[j]
        if key < 0:
            continue
        x, last = buckets[key, AT] + buckets[key, LOW], buckets[key, AT] + buckets[key, HIGH]
        x = first_from(ends, x, last, first_ends[j])
        while x < last and ends[x] < before[j]:
            if n == len(places):
                numbers, places = grown(numbers), grown(places)
            numbers[n] = j
            places[n] = x
            n += 1
            x += 1
    return numbers[:n], places[:n]


@kernel
def first_waiting(keys, times, buckets, ends):
    """The first of these keys that has a goal which ends at the time given with it, or their number."""
    for j in range(len(keys)):
        key = keys[j]
        low, high = buckets[key, AT] + buckets[key, LOW], buckets[key, AT] + buckets[key, HIGH]
        x = first_from(ends, low, high, times[j])
        if x < high and ends[x] == times[j]:
            return j
    return len(keys)


@kernel
def remove_places(keys, places, buckets, ends, starts, terms, values):
    """Retract the goals at these places, which are given with their keys: key by key, and upwards in each bucket.

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
