"""The goal store: the goals of a key are stored together, ordered by end, in one bucket of an arena.

A row of ``buckets`` is the bucket of one key: AT is where it begins in the arena; from there on, its goals are at LOW
up to, but without, HIGH (goals before LOW have expired); ROOM is its capacity.  The arena consists of ``ends``,
``starts``, ``terms`` (a row of ids per goal) and ``values`` (a row of doubles per goal, for conditions to compare).
"""

from __future__ import annotations

import numpy as np

from etalis_py.numba_cache import kernel, part

AT, LOW, HIGH, ROOM = 0, 1, 2, 3


@part
def room_for(live, new):
    """The capacity of a bucket that moves: a new bucket gets exactly what it needs, a growing one twice that."""
    return 2 * (live + new) if live else new


@kernel
def space_needed(keys, buckets, counts):
    """Count the new goals of each key; returns the space needed by the buckets that have to move."""
    for key in keys:
        if key >= 0:
            counts[key] += 1
    space = 0
    for key in keys:
        if key >= 0 and counts[key] > 0:
            live = buckets[key, HIGH] - buckets[key, LOW]
            if buckets[key, HIGH] + counts[key] > buckets[key, ROOM]:
                space += room_for(live, counts[key])
            counts[key] = -counts[key]
    for key in keys:
        if key >= 0 and counts[key] < 0:
            counts[key] = -counts[key]
    return space


@kernel
def make_room(keys, buckets, counts, used, ends, starts, terms, values):
    """Move the buckets that are too small for their new goals to the end of the arena; returns where it now ends.

    ``counts`` are zero afterwards.
    """
    for key in keys:
        if key < 0 or counts[key] == 0:
            continue
        low, high = buckets[key, LOW], buckets[key, HIGH]
        live = high - low
        if high + counts[key] > buckets[key, ROOM]:
            source = buckets[key, AT] + low
            needed = live + counts[key]
            if low > 0 and 2 * needed <= buckets[key, ROOM]:
                target = buckets[key, AT]  # half of the bucket is enough: its goals move to its beginning
            else:
                target = used
                buckets[key, ROOM] = room_for(live, counts[key])
                used += buckets[key, ROOM]
            for i in range(live):
                copy_goal(ends, starts, terms, values, source + i, ends, starts, terms, values, target + i)
            buckets[key, AT] = target
            buckets[key, LOW] = 0
            buckets[key, HIGH] = live
        counts[key] = 0
    return used


@part
def copy_goal(ends, starts, terms, values, source, to_ends, to_starts, to_terms, to_values, target):
    """Copy one goal within an arena or between two."""
    x, y = np.uint64(source), np.uint64(target)
    to_ends[y] = ends[x]
    to_starts[y] = starts[x]
    for k in range(np.uint64(terms.shape[1])):
        to_terms[y, k] = terms[x, k]
    for k in range(np.uint64(values.shape[1])):
        to_values[y, k] = values[x, k]


@kernel
def live_space(buckets, count):
    """The number of goals in all buckets, and the space that ``repack`` needs for them."""
    live = space = 0
    for key in range(count):
        goals = buckets[key, HIGH] - buckets[key, LOW]
        live += goals
        space += goals + (goals >> 1)
    return live, space


@kernel
def expire_all(buckets, count, ends, oldest):
    """Drop all goals that ended before ``oldest``; returns how many."""
    dropped = 0
    for key in range(count):
        at, low, high = buckets[key, AT], buckets[key, LOW], buckets[key, HIGH]
        first = low
        while low < high and ends[at + low] < oldest:
            low += 1
        dropped += low - first
        buckets[key, LOW] = low
    return dropped


@kernel
def repack(buckets, count, ends, starts, terms, values, to_ends, to_starts, to_terms, to_values):
    """Copy all buckets into another arena, each with room for half as many goals again; returns where it ends."""
    used = 0
    for key in range(count):
        source = buckets[key, AT] + buckets[key, LOW]
        live = buckets[key, HIGH] - buckets[key, LOW]
        for i in range(live):
            copy_goal(ends, starts, terms, values, source + i, to_ends, to_starts, to_terms, to_values, used + i)
        buckets[key, AT] = used
        buckets[key, LOW] = 0
        buckets[key, HIGH] = live
        buckets[key, ROOM] = live + (live >> 1)
        used += live + (live >> 1)
    return used


@kernel
def append(keys, new_ends, new_starts, new_terms, new_values, buckets, ends, starts, terms, values):
    """Insert goals in order; their buckets must have room."""
    for i in range(len(keys)):
        key = keys[i]
        if key >= 0:
            at = buckets[key, AT] + buckets[key, HIGH]
            copy_goal(new_ends, new_starts, new_terms, new_values, i, ends, starts, terms, values, at)
            buckets[key, HIGH] += 1


@part
def retract(place, low, high, ends, starts, terms, values):
    """Remove a goal from [low, high), moving the shorter part by one; returns the range that is left."""
    if place - low < high - 1 - place:
        for i in range(place, low, -1):
            copy_goal(ends, starts, terms, values, i - 1, ends, starts, terms, values, i)
        return low + 1, high
    for i in range(place, high - 1):
        copy_goal(ends, starts, terms, values, i + 1, ends, starts, terms, values, i)
    return low, high - 1


@kernel
def places_of_all(buckets, count, places):
    """The places of all goals in the arena, key by key."""
    n = 0
    for key in range(count):
        for i in range(buckets[key, LOW], buckets[key, HIGH]):
            places[n] = buckets[key, AT] + i
            n += 1
    return n


@kernel
def mark_terms(buckets, count, terms, marked):
    """Mark the terms of all goals."""
    for key in range(count):
        at = buckets[key, AT]
        for i in range(buckets[key, LOW], buckets[key, HIGH]):
            for k in range(terms.shape[1]):
                marked[terms[at + i, k]] = True


@kernel
def renumber_terms(buckets, count, terms, renumbered):
    """Give the terms of all goals their new numbers."""
    for key in range(count):
        at = buckets[key, AT]
        for i in range(buckets[key, LOW], buckets[key, HIGH]):
            for k in range(terms.shape[1]):
                terms[at + i, k] = renumbered[terms[at + i, k]]
