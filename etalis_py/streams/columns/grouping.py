"""Statements of a document → its elements, as ``streams.documents.Document`` forms them: loops compiled by Numba.

An element is *usual* if its interval follows from one time (or from one start and one end) in a usual spelling, about
its graph or inside it, or is known because the graph is being continued.  The statements of any other are listed for
``Document``, which also answers what these loops cannot know.
"""

from __future__ import annotations

from etalis_py.numba_cache import kernel, part
from etalis_py.streams.columns.scanning import NOTHING, RESPELLED, equal
from etalis_py.streams.columns.time_kernels import span

TIMED, UNTIMED_YET, UNREADABLE = 1, 0, 2  # what a statement of time gives
# What is known about the element of a name: nothing here, its interval, that its time may come too late or does.
KNOWN, START, UNTIL, WHEN, LATE, KNOWLEDGE = 0, 1, 2, 3, 4, 5
IN_TIME, MAYBE_LATE, TOO_LATE = 0, 1, 2
# The state between two calls.
OPEN, SIZE, LOOSE, HEAD, TAIL, ABOUT, ROW, ITEMS, OUT, STATE = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
# Items: what they are, interval, where their rows begin, how many of the graph, repeated triples, after which row.
KIND, BEGINS, ENDS, FIRST, INNER, DUPLICATES, AFTER, ITEM = 0, 1, 2, 3, 4, 5, 6, 7
USUAL, GRAPH, STATEMENTS, PUNCTUATION, LATE_TIME = 0, 1, 2, 3, 4
ENDED, ASKS, FULL = 0, 1, 2


@part
def _hash(data, begin, end, mixed):
    for k in range(begin, end):
        mixed = (mixed ^ data[k]) * 1099511628211 & 0x7FFFFFFFFFFFFFF
    return mixed ^ (mixed >> 29)


@kernel
def name(data, rows, watched, watched_ends, times, slots, owners, codes, ids):
    """Number the names of elements: ``ids`` gets the number of the graph of each row, or else of its subject.

    ``codes`` gets, from 1, which of the ``watched`` predicates a row has, or 0; inside graphs only the first ``times``
    count.  ``slots`` is an empty table, with room for twice as many names as there are; ``owners`` gets a row of each
    name.  Returns how many names there are.
    """
    mask = len(slots) - 1
    names = 0
    last, last_begin, last_end = -1, 0, 0
    for r in range(len(rows)):
        codes[r] = 0
        if rows[r, RESPELLED] == NOTHING:
            continue
        there = rows[r, 7] > rows[r, 6]
        begin, end = (rows[r, 6], rows[r, 7]) if there else (rows[r, 0], rows[r, 1])
        for k in range(times if there else len(watched_ends) - 1):
            size = watched_ends[k + 1] - watched_ends[k]
            if rows[r, 3] - rows[r, 2] == size:
                equals = True
                for j in range(size):
                    if data[rows[r, 2] + j] != watched[watched_ends[k] + j]:
                        equals = False
                        break
                if equals:
                    codes[r] = k + 1
                    break
        if last < 0 or not equal(data, begin, end, last_begin, last_end):
            slot = _hash(data, begin, end, 14695981039346656) & mask
            while True:
                last = slots[slot] - 1
                if last < 0:
                    last = names
                    owners[names] = r
                    names += 1
                    slots[slot] = names
                    break
                r2 = owners[last]
                place = 6 if rows[r2, 7] > rows[r2, 6] else 0
                if equal(data, begin, end, rows[r2, place], rows[r2, place + 1]):
                    break
                slot = (slot + 1) & mask
        last_begin, last_end = begin, end
        ids[r] = last
    return names


@kernel
def read_times(data, rows, codes, times, unit, per, out, starts, ends, states):
    """Read the objects of the rows with one of the first ``times`` watched predicates; returns how many are unusual."""
    unread = 0
    for r in range(len(rows)):
        states[r] = UNTIMED_YET
        if 1 <= codes[r] <= times:
            if span(data, rows[r, 4], rows[r, 5], unit, per, out):
                starts[r], ends[r], states[r] = out[0], out[1], TIMED
            else:
                unread += 1
    return unread


@part
def _interval(head, after, codes, states, starts, ends, predicates, pairs, chosen):
    """Choose the interval among statements: 1 if there is one, 0 if none gives a time, -1 if it needs care.

    ``chosen`` gets the interval, and the rows that gave it.
    """
    for k in range(pairs):
        first = last = -1
        r = head
        while r >= 0:
            if codes[r] == predicates + k + 1:
                if first >= 0:
                    return -1
                first = r
            elif codes[r] == predicates + pairs + k + 1:
                if last >= 0:
                    return -1
                last = r
            r = after[r]
        if first >= 0 or last >= 0:
            if first < 0 or last < 0 or states[first] != TIMED or states[last] != TIMED or starts[first] > ends[last]:
                return -1
            chosen[0], chosen[1], chosen[2], chosen[3] = starts[first], ends[last], first, last
            return 1
    for k in range(predicates):
        only = -1
        r = head
        while r >= 0:
            if codes[r] == k + 1:
                if only >= 0:
                    return -1
                only = r
            r = after[r]
        if only >= 0:
            if states[only] != TIMED:
                return -1
            chosen[0], chosen[1], chosen[2], chosen[3] = starts[only], ends[only], only, only
            return 1
    return 0


@kernel
def _equal_triples(data, rows, a, b):
    return (
        equal(data, rows[a, 4], rows[a, 5], rows[b, 4], rows[b, 5])
        and equal(data, rows[a, 2], rows[a, 3], rows[b, 2], rows[b, 3])
        and equal(data, rows[a, 0], rows[a, 1], rows[b, 0], rows[b, 1])
    )


@kernel
def _distinct(data, rows, first, last, out, slots):
    """Drop the repeated triples of ``out[first:last]``; returns the place after the rest.  ``slots`` is emptied."""
    kept = first
    if last - first <= 8:
        for k in range(first, last):
            again = False
            for j in range(first, kept):
                if _equal_triples(data, rows, out[k], out[j]):
                    again = True
                    break
            if not again:
                out[kept] = out[k]
                kept += 1
        return kept
    size = 16
    while size < 2 * (last - first):
        size *= 2
    for k in range(size):
        slots[k] = 0
    for k in range(first, last):
        r = out[k]
        slot = 14695981039346656
        for place in range(0, 6, 2):
            slot = _hash(data, rows[r, place], rows[r, place + 1], slot)
        slot &= size - 1
        while slots[slot] and not _equal_triples(data, rows, r, slots[slot] - 1):
            slot = (slot + 1) & (size - 1)
        if not slots[slot]:
            slots[slot] = r + 1
            out[kept] = r
            kept += 1
    return kept


@kernel
def group(
    data, rows, ids, codes, starts, ends, states, predicates, pairs, punctuations, remembered, most, state, after,
    about, known, opened, chosen, slots, items, out,
):  # fmt: skip
    """Take the rows from ``state[ROW]`` on, as ``Document`` takes quads, and list the elements that become complete.

    ``about`` has the first and the last statement about a name, ``after`` the next one; ``opened`` the rows of the open
    graph, ``known`` what is known about names.  ``items`` and ``out`` get the elements and their rows.

    Returns ``ENDED``; or ``ASKS``, if it depends on earlier elements whether the next row comes too late; or ``FULL``,
    if it would be about more than ``most`` names.  The answer to ``ASKS`` is put into ``known``.
    """
    times = predicates + 2 * pairs
    for r in range(state[ROW], len(rows)):
        state[ROW] = r
        if rows[r, RESPELLED] == NOTHING:
            continue
        this, code, inside = ids[r], codes[r], rows[r, 7] > rows[r, 6]
        close = free = punctuates = said = False
        if inside:
            close = this != state[OPEN]
            free = close and state[LOOSE] != this
        elif times < code <= times + punctuations:
            close = free = punctuates = True
        else:
            timed = 1 <= code <= times
            if timed and this != state[OPEN] and about[this, 0] < 0 and known[this, LATE] != IN_TIME:
                if known[this, LATE] == MAYBE_LATE:
                    return ASKS
                i = state[ITEMS]
                items[i, KIND], items[i, FIRST], items[i, AFTER] = LATE_TIME, state[OUT], r
                items[i, INNER] = items[i, DUPLICATES] = 0
                out[state[OUT]] = r
                state[ITEMS] += 1
                state[OUT] += 1
                known[this, LATE] = MAYBE_LATE
                continue
            said = timed or this == state[OPEN] or about[this, 0] >= 0
            if said and about[this, 0] < 0 and state[ABOUT] >= most and not (timed and this == state[OPEN]):
                return FULL
            close = free = not said and state[LOOSE] >= 0 and state[LOOSE] != this
        if close and state[OPEN] >= 0:
            graph = state[OPEN]
            i, first = state[ITEMS], state[OUT]
            items[i, FIRST], items[i, AFTER] = first, r
            items[i, INNER], items[i, DUPLICATES] = state[SIZE], 0
            head = about[graph, 0]
            answer = 0
            if head >= 0:
                answer = _interval(head, after, codes, states, starts, ends, predicates, pairs, chosen)
                k = head
                while k >= 0:
                    if codes[k] > times + punctuations:  # it is a withdrawal
                        answer = -1
                    k = after[k]
                about[graph, 0] = about[graph, 1] = -1
                state[ABOUT] -= 1
            within = answer == 0
            if within:
                chain = -1
                for k in range(state[SIZE] - 1, -1, -1):
                    if codes[opened[k]]:
                        after[opened[k]] = chain
                        chain = opened[k]
                if chain >= 0:
                    answer = _interval(chain, after, codes, states, starts, ends, predicates, pairs, chosen)
            if answer == 0 and known[graph, KNOWN] and i - known[graph, WHEN] <= remembered:
                chosen[0], chosen[1], answer = known[graph, START], known[graph, UNTIL], 1
            n = first
            for k in range(state[SIZE]):
                out[n] = opened[k]
                n += 1
            used = answer == 1 and not within
            while head >= 0:
                if not (used and (head == chosen[2] or head == chosen[3])):
                    out[n] = head
                    n += 1
                head = after[head]
            if answer == 1:
                if n - first > 1:
                    kept = _distinct(data, rows, first, n, out, slots)
                    items[i, DUPLICATES] = n - kept
                    n = kept
                items[i, KIND], items[i, BEGINS], items[i, ENDS] = USUAL, chosen[0], chosen[1]
                known[graph, KNOWN], known[graph, START], known[graph, UNTIL] = 1, chosen[0], chosen[1]
                known[graph, WHEN], known[graph, LATE] = i, IN_TIME
            else:
                items[i, KIND] = GRAPH
                known[graph, KNOWN], known[graph, LATE] = 0, MAYBE_LATE
            state[ITEMS] += 1
            state[OUT] = n
        if close:
            state[OPEN] = -1
            state[SIZE] = 0
        if free and state[LOOSE] >= 0:
            i = state[ITEMS]
            items[i, KIND], items[i, FIRST], items[i, AFTER] = STATEMENTS, state[OUT], r
            items[i, INNER] = items[i, DUPLICATES] = 0
            k = state[HEAD]
            while k >= 0:
                out[state[OUT]] = k
                state[OUT] += 1
                k = after[k]
            state[ITEMS] += 1
            state[LOOSE] = -1
        after[r] = -1
        if (inside or said) and state[LOOSE] == this and (close or not inside):
            # What was said about it before it began.
            if about[this, 0] < 0:
                about[this, 0] = state[HEAD]
                state[ABOUT] += 1
            else:
                after[about[this, 1]] = state[HEAD]
            about[this, 1] = state[TAIL]
            state[LOOSE] = -1
        if inside:
            state[OPEN] = this
            opened[state[SIZE]] = r
            state[SIZE] += 1
        elif punctuates:
            i = state[ITEMS]
            items[i, KIND], items[i, FIRST], items[i, AFTER] = PUNCTUATION, state[OUT], r
            items[i, INNER] = items[i, DUPLICATES] = 0
            out[state[OUT]] = r
            state[ITEMS] += 1
            state[OUT] += 1
        elif said:
            if about[this, 0] < 0:
                about[this, 0] = r
                state[ABOUT] += 1
            else:
                after[about[this, 1]] = r
            about[this, 1] = r
        else:
            if state[LOOSE] < 0:
                state[LOOSE] = this
                state[HEAD] = r
            else:
                after[state[TAIL]] = r
            state[TAIL] = r
    state[ROW] = len(rows)
    return ENDED
