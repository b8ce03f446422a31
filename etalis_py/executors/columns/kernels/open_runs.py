"""Runs of elements of which a key has one at a time, over a batch: what precedes each element, and which runs end."""

from __future__ import annotations

import numpy as np

from etalis_py.numba_cache import kernel


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
