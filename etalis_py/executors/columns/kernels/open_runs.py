"""Runs of elements of which a key has one at a time, over a batch: what precedes each element, and which runs end."""

from __future__ import annotations

import numpy as np

from etalis_py.numba_cache import kernel

NEVER = 2**62
"""When a run that may go on was ended."""


@kernel
def elements_before(keys, row, last, before):
    """The row before each row of a batch that has the same key; ``row`` is the number of the first one.

    ``last`` has the last row of each key, -1 if there is none, and is brought up to date.
    """
    for i in range(np.uint64(len(keys))):
        before[i] = last[keys[i]]
        last[keys[i]] = row + i


@kernel
def go_on(ends, starts, keys, gap, goes_on, first, last, counts, over):
    """Continue the open run of each key by the rows of a batch, in order of their ends.

    The rows of the batch are the last ones of ``ends`` and ``starts``; the others are elements of open runs.  A key has
    the numbers of the first and of the last element of its run, and how many elements that has; 0 if none is open.  A
    row ends the run of its key if it comes after the silence, or if ``goes_on`` is false of it.  Writes first, last,
    count, end and key of the runs that are over.  Returns how many these are; -1 if a row does not follow the last
    element of its key, which makes several runs.
    """
    before, n = len(ends) - len(keys), 0
    for i in range(np.uint64(len(keys))):
        row, key = before + i, keys[i]
        if counts[key]:
            ended = ends[last[key]]
            if ends[row] <= ended + gap:
                if starts[row] <= ended:
                    return -1
                if goes_on[i]:
                    last[key] = row
                    counts[key] += 1
                    continue
            over[n, 0], over[n, 1], over[n, 2] = first[key], last[key], counts[key]
            over[n, 3], over[n, 4] = min(ends[row], ended + gap), key
            n += 1
        first[key] = last[key] = row
        counts[key] = 1
    return n


@kernel
def end_runs(
    ends, starts, keys, gap, goes_on, first, last, counts, blocked, b_keys, b_places, b_starts, b_ends, over, beside
):  # fmt: skip
    """The same for runs that something else ends, a B; in order of their ends, these come before row ``b_places``.

    ``blocked`` says when a B has ended the run of a key: a row that starts later begins a new one.  Writes first, last,
    count, end and key of the runs, and which B; ``beside`` counts those that come with an element of their key.
    """
    before, n, b = len(ends) - len(keys), 0, 0
    for i in range(len(keys) + 1):
        while b < len(b_keys) and b_places[b] == i:
            key = b_keys[b]
            if key >= 0 and counts[key] and ends[last[key]] < b_starts[b] and blocked[key] >= b_ends[b]:
                over[n, 0], over[n, 1], over[n, 2] = first[key], last[key], counts[key]
                over[n, 3], over[n, 4], over[n, 5] = b_ends[b], key, b
                blocked[key] = b_ends[b]
                n += 1
            elif key >= 0 and counts[key] and ends[last[key]] == b_ends[b]:
                beside[0] += 1
            b += 1
        if i == len(keys):
            break
        row, key = before + i, keys[i]
        if counts[key]:
            ended = ends[last[key]]
            if starts[row] <= ended:
                return -1
            if goes_on[i] and starts[row] <= ended + gap and starts[row] <= blocked[key]:
                last[key] = row
                counts[key] += 1
                blocked[key] = NEVER
                continue
        first[key] = last[key] = row
        counts[key] = 1
        blocked[key] = NEVER
    return n
