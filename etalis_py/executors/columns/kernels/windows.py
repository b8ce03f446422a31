"""The least number in each of many sliding windows over a column."""

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
