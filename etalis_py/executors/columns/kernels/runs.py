"""Runs of elements of one key, over elements that are arranged key by key and in order of time."""

from __future__ import annotations

import numpy as np

from etalis_py.numba_cache import kernel


@kernel
def mark_between(keys, after, before, bounds, places, ends, starts, marked):
    """Mark each row for which something of its key starts after one time and ends before another.

    The somethings of key k are at ``places[bounds[k] : bounds[k + 1]]``, in order of their ends.  Rows come key by key,
    and those of a key in order of both times.
    """
    known = np.int64(-1)
    x, last, latest = np.int64(0), np.int64(0), np.int64(0)
    some = False
    for i in range(len(keys)):
        if keys[i] != known:
            known = keys[i]
            x, last, some = bounds[known], bounds[known + 1], False
        while x < last and ends[places[x]] < before[i]:
            start = starts[places[x]]
            latest = max(latest, start) if some else start
            some = True
            x += 1
        marked[i] = some and latest > after[i]


@kernel
def reach_back(ends, starts, linked, bound, first):
    """Where the longest run that ends in each element begins: as far as elements are linked, and within the bound."""
    at = 0
    for i in range(len(ends)):
        if not linked[i]:
            at = i
        while at < i and ends[i] - starts[at] > bound:
            at += 1
        first[i] = at


@kernel
def least_in_runs(numbers, firsts, lasts, out):
    """The least of ``numbers[firsts[i] : lasts[i] + 1]``.

    A run that is one longer at its beginning than the one before it in the list costs one step.
    """
    for i in range(len(firsts)):
        first, last = firsts[i], lasts[i]
        if i > 0 and lasts[i - 1] == last and firsts[i - 1] == first + 1:
            out[i] = min(out[i - 1], numbers[first])
            continue
        least = numbers[last]
        for x in range(first, last):
            least = min(least, numbers[x])
        out[i] = least
