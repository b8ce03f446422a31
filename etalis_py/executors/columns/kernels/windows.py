"""Loops over the rows of windows: the least in each, equal triples, pairs that join, and the aggregates of groups."""

from __future__ import annotations

from etalis_py.numba_cache import kernel


@kernel
def least_in_windows(numbers, firsts, lasts, held, out):
    """The least of ``numbers[firsts[i] : lasts[i]]`` for windows whose bounds never go back.

    ``held`` is scratch space for the places of rising numbers, the least first.
    """
    low = high = taken = 0
    for i in range(len(firsts)):
        while taken < lasts[i]:
            while high > low and numbers[held[high - 1]] > numbers[taken]:
                high -= 1
            held[high] = taken
            high += 1
            taken += 1
        while held[low] < firsts[i]:
            low += 1
        out[i] = numbers[held[low]]


@kernel
def last_ends(numbers, ends, last, before):
    """For each row the end of the last row before it with the same number; ``last`` has it by number, and is updated.

    Rows come in order of their ends.
    """
    for i in range(len(numbers)):
        before[i] = last[numbers[i]]
        last[numbers[i]] = ends[i]


@kernel
def arrange(numbers, bounds, places):
    """The places of the rows by their numbers: those of number n are ``places[bounds[n] : bounds[n + 1]]``.

    ``bounds`` has two entries more than there are numbers, all zero.
    """
    for i in range(len(numbers)):
        bounds[numbers[i] + 2] += 1
    for n in range(2, len(bounds)):
        bounds[n] += bounds[n - 1]
    for i in range(len(numbers)):
        places[bounds[numbers[i] + 1]] = i
        bounds[numbers[i] + 1] += 1


@kernel
def pairs(sought, bounds, places, left, right):
    """Each row with each of the arranged rows that have its number; a row with number -1 has none."""
    count = 0
    for i in range(len(sought)):
        if sought[i] >= 0:
            for at in range(bounds[sought[i]], bounds[sought[i] + 1]):
                left[count] = i
                right[count] = places[at]
                count += 1


@kernel
def add_up(groups, numbers, totals):
    """Add each number to the total of its group."""
    for i in range(len(groups)):
        totals[groups[i]] += numbers[i]


@kernel
def least_of(groups, numbers, least):
    """Lower what each group has to the least of its numbers."""
    for i in range(len(groups)):
        least[groups[i]] = min(least[groups[i]], numbers[i])
