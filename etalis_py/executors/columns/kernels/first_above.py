"""The first row of its key, later than a goal, with a value above that of the goal."""

from __future__ import annotations

from etalis_py.executors.columns.kernels.grouping import drop_first_of_heap, put_into_heap
from etalis_py.numba_cache import kernel


@kernel
def first_above(goals, keys, ends, values, longest, bounds, order, row_ends, row_values, heap, places):
    """Write the place of each goal's row in ``order``, -1 if there is none.

    ``goals`` are their numbers, by key and then by end; ``order`` the numbers of the rows, which are points, by key
    (from ``bounds``) and then by time.  A goal takes no row later than ``longest`` after its end; one that is NaN, or
    has no key, takes none.  The goals of a key that ended before a row are a heap, from which the row takes those below
    it.
    """
    g, count = 0, len(goals)
    while g < count:
        key, last = keys[goals[g]], g
        while last < count and keys[goals[last]] == key:
            places[goals[last]] = -1
            last += 1
        size = 0
        if key >= 0:
            for place in range(bounds[key], bounds[key + 1]):
                row = order[place]
                end, value = row_ends[row], row_values[row]
                while g < last and ends[goals[g]] < end:
                    if values[goals[g]] == values[goals[g]]:
                        put_into_heap(heap, size, values, goals[g])
                        size += 1
                    g += 1
                while size > 0 and values[heap[0]] < value:
                    if end - ends[heap[0]] <= longest:
                        places[heap[0]] = place
                    drop_first_of_heap(heap, size, values)
                    size -= 1
        g = last
