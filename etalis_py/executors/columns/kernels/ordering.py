"""The canonical order of rows: by instant, end and start, and by terms where these are equal."""

from __future__ import annotations

import numpy as np

from etalis_py.numba_cache import kernel


def distinct_numbers(numbers: np.ndarray) -> np.ndarray:
    """The numbers in ascending order, each once, as ``np.unique`` gives them.

    That goes by a hash table, which takes up to a hundred times as long for numbers that follow each other.

    >>> distinct_numbers(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(numbers, axis=None)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]


@kernel
def rises(numbers):
    """Whether each number is greater than the one before."""
    for i in range(1, len(numbers)):
        if numbers[i] <= numbers[i - 1]:
            return False
    return True


@kernel
def order_state(instants, ends, starts, tied):
    """Test whether rows are in order of instant, end and start, and mark the rows that equal a neighbour in all three.

    Returns 0 (in order), 1 (in order, but the terms of marked rows still have to be compared) or 2 (not in order).
    """
    state = 0
    for i in range(1, len(instants)):
        if instants[i] != instants[i - 1]:
            if instants[i] < instants[i - 1]:
                return 2
            continue
        if ends[i] == ends[i - 1] and starts[i] == starts[i - 1]:
            tied[i] = tied[i - 1] = True
            state = 1
        elif ends[i] < ends[i - 1] or (ends[i] == ends[i - 1] and starts[i] < starts[i - 1]):
            return 2
    return state


@kernel
def mark_ties(numbers, tied):
    """Mark rows whose number equals that of a neighbour; returns whether there are any."""
    any_tied = False
    for i in range(1, len(numbers)):
        if numbers[i] == numbers[i - 1]:
            tied[i] = tied[i - 1] = True
            any_tied = True
    return any_tied
