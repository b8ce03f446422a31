"""Kernels over whole events: drop repeated ones, and choose the triples that the columns of an EVENT take."""

from __future__ import annotations

import numpy as np

from etalis_py.numba_cache import kernel, part

FEW = 16
"""For at most so many triples of one event, comparing all pairs is quicker than filling a table."""
ANYTHING, SUBJECT, GRAPH = -1, -2, -3
"""What an object has to equal: nothing, the subject, or the graph's name; any other number is an earlier column."""

# The multipliers of ``keys.hash_row``.
_FIRST = np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xD6E8FEB86659FD93)


@part
def _mixed(mixed, number):
    mixed = (mixed ^ np.uint64(number)) * _SECOND
    return mixed ^ (mixed >> np.uint64(32))


@part
def _size(triples):
    """The number of slots for the triples of an event: a power of two."""
    size = 16
    while size < 2 * triples:
        size *= 2
    return size


@kernel
def mark_doubtful(begins, at, s, p, slots, doubtful):
    """Mark the triples of events that share an instant, or have two triples with one subject and predicate.

    Only these events may equal another one, or have a triple twice.  ``slots`` has room for the largest event.
    """
    any_doubtful = False
    for e in range(len(begins) - 1):
        begin, end = begins[e], begins[e + 1]
        doubt = (e > 0 and at[begin - 1] == at[begin]) or (end < len(at) and at[end] == at[begin])
        if not doubt and end - begin <= FEW:
            for i in range(begin + 1, end):
                for j in range(begin, i):
                    doubt = doubt or (p[i] == p[j] and s[i] == s[j])
        elif not doubt:
            size = _size(end - begin)
            for k in range(size):
                slots[k] = -1
            for i in range(begin, end):
                slot = np.int64(_mixed(_mixed(_FIRST, s[i]), p[i]) & np.uint64(size - 1))
                while slots[slot] >= 0 and (s[slots[slot]] != s[i] or p[slots[slot]] != p[i]):
                    slot = (slot + 1) & (size - 1)
                doubt = doubt or slots[slot] >= 0
                slots[slot] = i
        if doubt:
            any_doubtful = True
            for i in range(begin, end):
                doubtful[i] = True
    return any_doubtful


@part
def _place(s, p, o, i, slots, size):
    """The slot of a triple, or the free one where it belongs."""
    slot = np.int64(_mixed(_mixed(_mixed(_FIRST, s[i]), p[i]), o[i]) & np.uint64(size - 1))
    while slots[slot] >= 0 and (s[slots[slot]] != s[i] or p[slots[slot]] != p[i] or o[slots[slot]] != o[i]):
        slot = (slot + 1) & (size - 1)
    return slot


@kernel
def mark_first(begins, at, start, s, p, o, stream, graph, doubtful, slots, table, hashes, sizes, kept):
    """Mark the triples to keep so that no event has a triple twice, and no instant has two equal events.

    ``slots`` is as in ``mark_doubtful``, ``table`` has at least twice as many free slots (-1) as there are events.
    """
    mask = len(table) - 1
    for e in range(len(begins) - 1):
        begin, end = begins[e], begins[e + 1]
        for i in range(begin, end):
            kept[i] = True
        if not doubtful[begin]:
            continue
        size = _size(end - begin)
        for k in range(size):
            slots[k] = -1
        sizes[e] = 0
        mixed = np.uint64(0)
        for i in range(begin, end):
            slot = _place(s, p, o, i, slots, size)
            if slots[slot] >= 0:
                kept[i] = False
                continue
            slots[slot] = i
            sizes[e] += 1
            mixed += _mixed(_mixed(_mixed(_FIRST, s[i]), p[i]), o[i])  # the order does not matter
        hashes[e] = _mixed(_mixed(_mixed(_mixed(mixed, at[begin]), start[begin]), stream[begin]), graph[begin])
        slot = np.int64(hashes[e] & np.uint64(mask))
        while table[slot] >= 0:
            other = table[slot]
            b = begins[other]
            same = hashes[other] == hashes[e] and sizes[other] == sizes[e] and at[b] == at[begin]
            same = same and start[b] == start[begin] and stream[b] == stream[begin] and graph[b] == graph[begin]
            if same:
                for i in range(b, begins[other + 1]):
                    if kept[i] and slots[_place(s, p, o, i, slots, size)] < 0:
                        same = False
                        break
            if same:
                for i in range(begin, end):
                    kept[i] = False
                break
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = e


@part
def _fits(s, p, o, graph, row, level, chosen, predicates, wanted, same, named):
    """Whether a triple may be taken for column ``level``, given the triples chosen for the columns before it."""
    if p[row] != predicates[level] or (wanted[level] >= 0 and o[row] != wanted[level]):
        return False
    if level == 0:
        if named and s[row] != graph[row]:
            return False
    elif s[row] != s[chosen[0]]:
        return False
    other = same[level]
    if other == ANYTHING:
        return True
    if other == SUBJECT:
        return o[row] == s[row]
    if other == GRAPH:
        return o[row] == graph[row]
    return o[row] == o[chosen[other]]


@part
def _link(s, begin, end, slots, heads, after):
    """Chain the triples of an event by subject.

    ``heads`` receives, for each triple, the first triple with its subject, ``after`` the next one.
    """
    size = _size(end - begin)
    for k in range(size):
        slots[k] = -1
    for i in range(end - 1, begin - 1, -1):
        slot = np.int64(_mixed(_FIRST, s[i]) & np.uint64(size - 1))
        while slots[slot] >= 0 and s[slots[slot]] != s[i]:
            slot = (slot + 1) & (size - 1)
        after[i - begin] = slots[slot] if slots[slot] >= 0 else end
        slots[slot] = i
    for i in range(begin, end):
        slot = np.int64(_mixed(_FIRST, s[i]) & np.uint64(size - 1))
        while s[slots[slot]] != s[i]:
            slot = (slot + 1) & (size - 1)
        heads[i - begin] = slots[slot]


@kernel
def choose(
    begins, s, p, o, graph, predicates, wanted, same, named, most, event, slots, heads, after, chosen, rows
):  # fmt: skip
    """Find the solutions of each event from ``event`` on: a triple for each column, all of one subject.

    Each column has a predicate, perhaps a constant in ``wanted`` (else -1), and in ``same`` what its object has to
    equal.  ``named``: the subject must be the name of the graph.  ``rows`` receives the triples, by column.  At most
    ``most`` solutions of an event are listed.

    Returns the event for which there was no room (else the number of events), and the number of solutions before it.
    """
    count = 0
    for e in range(event, len(begins) - 1):
        begin, end = begins[e], begins[e + 1]
        linked = end - begin > FEW
        if linked:
            _link(s, begin, end, slots, heads, after)
        before = count
        level, row = 0, begin
        while level >= 0:
            while row < end and not _fits(s, p, o, graph, row, level, chosen, predicates, wanted, same, named):
                row = after[row - begin] if linked and level > 0 else row + 1
            if row < end:
                chosen[level] = row
                if level + 1 < len(predicates):
                    level += 1
                    row = heads[chosen[0] - begin] if linked else begin
                    continue
                if count - before == most:
                    break
                if count == rows.shape[1]:
                    return e, before
                for k in range(len(predicates)):
                    rows[k, count] = chosen[k]
                count += 1
            else:
                level -= 1
                if level < 0:
                    break
                row = chosen[level]
            row = after[row - begin] if linked and level > 0 else row + 1
    return len(begins) - 1, count
