"""The first row of its key, later than a goal, with a value above that of the goal."""

from __future__ import annotations

from etalis_py.numba_cache import kernel, section


@section
def push(heap, size, values, goal):
    """Add a goal to a heap with the least value on top."""
    place = size
    while place > 0:
        above = (place - 1) >> 1
        if values[heap[above]] <= values[goal]:
            break
        heap[place] = heap[above]
        place = above
    heap[place] = goal


@section
def pop(heap, size, values):
    """Take the top off a heap of this size."""
    goal, place = heap[size - 1], 0
    while True:
        below = 2 * place + 1
        if below >= size - 1:
            break
        if below + 1 < size - 1 and values[heap[below + 1]] < values[heap[below]]:
            below += 1
        if values[heap[below]] >= values[goal]:
            break
        heap[place] = heap[below]
        place = below
    heap[place] = goal


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
                        push(heap, size, values, goals[g])
                        size += 1
                    g += 1
                while size > 0 and values[heap[0]] < value:
                    if end - ends[heap[0]] <= longest:
                        places[heap[0]] = place
                    pop(heap, size, values)
                    size -= 1
        g = last
