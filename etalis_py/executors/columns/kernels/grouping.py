"""Aggregates of groups over a sliding window of solutions, first in, first out within each group."""

from __future__ import annotations

from etalis_py.numba_cache import kernel, part

ROW, GROUP, START, END, BEFORE, FIRST = range(6)
"""Fields of an answer: the row of its instant, its group, its hull, and whether it is the group's answer from before
the batch (1), or says that the group is ``GONE``; then come the fields of each aggregate."""
GONE = 2
COUNTED, TOTAL, ERRORS, LEAST, DISTINCT, FIELDS = range(6)
"""Fields of an aggregate in an answer: the number of arguments, their sum, the number of errors, the least rank, the
number of distinct arguments.  FIELDS is the number of these fields."""
HEAD, TAIL, LOW, LOWS, SEEN, TOUCHED, STATE = range(7)
"""Fields of a group: its first and last row; the first and last row in the queue of its least starts; whether it is
already answered or touched in this batch; the instant that touched it last.  Then come, for each aggregate, its fields
and the first and last row in the queue of its least ranks."""
OF_STATE = FIELDS + 2


@part
def enters(row, group, starts, arguments, members, times, groups, following, before):
    """Add a row to its group.

    A queue of least starts (or ranks) has only the rows that may become the least before they leave: a row that a later
    one undercuts is dropped from it.  So it rises, and its first row is the least.
    """
    if groups[group, TAIL] >= 0:
        following[groups[group, TAIL], 0] = row
    else:
        groups[group, HEAD] = row
    groups[group, TAIL] = row
    following[row, 0] = -1
    last = groups[group, LOWS]
    while last >= 0 and starts[last] > starts[row]:
        last = before[last, 0]
    before[row, 0] = last
    following[row, 1] = -1
    if last >= 0:
        following[last, 1] = row
    else:
        groups[group, LOW] = row
    groups[group, LOWS] = row
    for a in range(arguments.shape[0]):
        at = STATE + a * OF_STATE
        groups[group, at + ERRORS] += arguments[a, row, 3]
        if not arguments[a, row, 0]:
            continue
        groups[group, at + COUNTED] += arguments[a, row, 0]
        member = members[a, row]
        if member < 0:
            groups[group, at + TOTAL] += arguments[a, row, 1]
        else:
            times[member] += 1
            if times[member] == 1:
                groups[group, at + DISTINCT] += 1
                groups[group, at + TOTAL] += arguments[a, row, 1]
        rank = arguments[a, row, 2]
        last = groups[group, at + FIELDS + 1]
        while last >= 0 and arguments[a, last, 2] > rank:
            last = before[last, 1 + a]
        before[row, 1 + a] = last
        following[row, 2 + a] = -1
        if last >= 0:
            following[last, 2 + a] = row
        else:
            groups[group, at + FIELDS] = row
        groups[group, at + FIELDS + 1] = row


@part
def leaves(group, arguments, members, times, groups, following, before):
    """Take the first row out of a group."""
    row = groups[group, HEAD]
    groups[group, HEAD] = following[row, 0]
    if groups[group, HEAD] < 0:
        groups[group, TAIL] = -1
    if groups[group, LOW] == row:
        groups[group, LOW] = following[row, 1]
        if groups[group, LOW] < 0:
            groups[group, LOWS] = -1
        else:
            before[groups[group, LOW], 0] = -1
    for a in range(arguments.shape[0]):
        at = STATE + a * OF_STATE
        groups[group, at + ERRORS] -= arguments[a, row, 3]
        if not arguments[a, row, 0]:
            continue
        groups[group, at + COUNTED] -= arguments[a, row, 0]
        member = members[a, row]
        if member < 0:
            groups[group, at + TOTAL] -= arguments[a, row, 1]
        else:
            times[member] -= 1
            if times[member] == 0:
                groups[group, at + DISTINCT] -= 1
                groups[group, at + TOTAL] -= arguments[a, row, 1]
        if groups[group, at + FIELDS] == row:
            first = following[row, 2 + a]
            groups[group, at + FIELDS] = first
            if first < 0:
                groups[group, at + FIELDS + 1] = -1
            else:
                before[first, 1 + a] = -1


@part
def answer(count, row, group, is_before, ends, starts, arguments, groups, answers):
    """Write the row of a group; returns the number of answers."""
    answers[count, ROW], answers[count, GROUP], answers[count, BEFORE] = row, group, is_before
    answers[count, START], answers[count, END] = starts[groups[group, LOW]], ends[groups[group, TAIL]]
    for a in range(arguments.shape[0]):
        at, to = STATE + a * OF_STATE, FIRST + a * FIELDS
        for field in range(FIELDS):
            answers[count, to + field] = groups[group, at + field]
        if groups[group, at + FIELDS] >= 0:
            answers[count, to + LEAST] = arguments[a, groups[group, at + FIELDS], 2]
    return count + 1


@kernel
def aggregate(
    held,
    width,
    most,
    all_before,
    gone,
    ends,
    starts,
    numbers,
    arguments,
    members,
    times,
    groups,
    sizes,
    touched,
    following,
    before,
    answers,
):
    """Write an answer for each group that changes, instant by instant.

    The first ``held`` rows are in the window already.  A row leaves ``width`` after its end, or when its group has more
    than ``most`` rows (-1: never).  ``arguments`` has for each aggregate and row its number of arguments, their sum,
    the rank of the one that counts, and the number of errors; ``members`` has the number of the argument if only
    distinct ones count, else -1; ``times`` counts how often each distinct one is in the window.  ``following`` and
    ``before`` are room for the queues.  An answer also has the row before this batch of a group that something leaves,
    or with ``all_before`` of each that changes.  With ``gone``, a group that becomes empty has an answer that only says
    so.  Returns the number of answers, and the first row that has not yet left after ``width``.
    """
    rows = len(ends)
    for row in range(held):
        enters(row, numbers[row], starts, arguments, members, times, groups, following, before)
        sizes[numbers[row]] += 1
    count, oldest, row = 0, 0, held
    while row < rows:
        t, first, changed = ends[row], row, 0
        while width >= 0 and oldest < first and ends[oldest] <= t - width:
            group = numbers[oldest]
            oldest += 1
            if groups[group, SEEN] == 0:
                count = answer(count, first, group, 1, ends, starts, arguments, groups, answers)
                groups[group, SEEN] = 1
            leaves(group, arguments, members, times, groups, following, before)
            sizes[group] -= 1
            if groups[group, TOUCHED] != first:
                groups[group, TOUCHED] = first
                touched[changed] = group
                changed += 1
        while row < rows and ends[row] == t:
            group = numbers[row]
            if all_before and groups[group, SEEN] == 0 and sizes[group] > 0:
                count = answer(count, first, group, 1, ends, starts, arguments, groups, answers)
            enters(row, group, starts, arguments, members, times, groups, following, before)
            sizes[group] += 1
            groups[group, SEEN] = 1
            if most >= 0 and sizes[group] > most:
                leaves(group, arguments, members, times, groups, following, before)
                sizes[group] -= 1
            if groups[group, TOUCHED] != first:
                groups[group, TOUCHED] = first
                touched[changed] = group
                changed += 1
            row += 1
        for i in range(changed):
            if sizes[touched[i]] > 0:
                count = answer(count, first, touched[i], 0, ends, starts, arguments, groups, answers)
            elif gone:
                for field in range(answers.shape[1]):
                    answers[count, field] = 0
                answers[count, ROW], answers[count, GROUP], answers[count, BEFORE] = first, touched[i], GONE
                count += 1
    return count, oldest


@kernel
def current(ends, starts, arguments, groups, sizes, answers):
    """Write the current answer of each group that has solutions; returns how many there are."""
    count = 0
    for group in range(groups.shape[0]):
        if sizes[group] > 0:
            count = answer(count, groups[group, TAIL], group, 0, ends, starts, arguments, groups, answers)
    return count


@kernel
def mark_held(groups, following, marked):
    """Mark the rows that are in some group."""
    for group in range(groups.shape[0]):
        row = groups[group, HEAD]
        while row >= 0:
            marked[row] = True
            row = following[row, 0]


COUNT, EARLIEST, LATEST, CHANGED, SUMS = range(5)
"""Fields of a group without a window: the number of its solutions and their hull; the instant that changed it last.
Then come the fields of each aggregate."""
ARGUMENTS, FAILED, TOTALS, REST, NUMBERS = range(5)
"""Fields of an aggregate: the number of its arguments, the number of errors, the sum of the arguments and of their
lower parts.  NUMBERS is the number of these fields."""
BEST, RANK = TOTALS, REST
"""Fields of MIN, MAX and SAMPLE in place of sums: the term that counts, and its rank in this batch."""
GIVEN, MISSING, SUMMAND, LOWER, PLACE, OF_ARGUMENT = range(6)
"""What there is of an argument: how many it stands for, how many errors, the summand and its lower part, the rank.
OF_ARGUMENT is the number of these fields."""


@kernel
def accumulate(before, at, ends, starts, numbers, weights, arguments, extreme, groups, touched, answers, changed):
    """Add rows to groups without a window, and write each group that changes in an instant as it is after it.

    A row stands for as many solutions as its weight.  ``before`` rows came in earlier batches.  ``extreme`` says which
    aggregates keep the least rank, not sums.  ``changed`` receives for each answer the first row of its instant, and
    its group.  Returns the number of answers.
    """
    count, row = 0, 0
    while row < len(at):
        first, t, groups_touched = row, at[row], 0
        while row < len(at) and at[row] == t:
            group = numbers[row]
            groups[group, COUNT] += weights[row]
            groups[group, EARLIEST] = min(groups[group, EARLIEST], starts[row])
            groups[group, LATEST] = max(groups[group, LATEST], ends[row])
            for a in range(arguments.shape[0]):
                field = SUMS + a * NUMBERS
                groups[group, field + ARGUMENTS] += arguments[a, row, GIVEN]
                groups[group, field + FAILED] += arguments[a, row, MISSING]
                if extreme[a]:
                    groups[group, field + RANK] = min(groups[group, field + RANK], arguments[a, row, PLACE])
                else:
                    groups[group, field + TOTALS] += arguments[a, row, SUMMAND]
                    groups[group, field + REST] += arguments[a, row, LOWER]
            if groups[group, CHANGED] != before + first:
                groups[group, CHANGED] = before + first
                touched[groups_touched] = group
                groups_touched += 1
            row += 1
        for i in range(groups_touched):
            changed[count, 0], changed[count, 1] = first, touched[i]
            for field in range(groups.shape[1]):
                answers[count, field] = groups[touched[i], field]
            count += 1
    return count


# --- the best groups ---


@part
def put_into_heap(heap, size, places, entry):
    """Add an entry to a heap of ``size`` entries, of which the first has the least place."""
    at = size
    while at > 0 and places[heap[(at - 1) // 2]] > places[entry]:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = entry


@part
def drop_first_of_heap(heap, size, places):
    """Take the first entry out of a heap of ``size`` entries."""
    last, at = heap[size - 1], 0
    while 2 * at + 1 < size - 1:
        below = 2 * at + 1
        if below + 1 < size - 1 and places[heap[below + 1]] < places[heap[below]]:
            below += 1
        if places[heap[below]] >= places[last]:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = last


@part
def move_up(top, count, stop, heap, size, places, owners, current):
    """Move entries from the heap to the top while they belong there; returns how many are in each.

    An entry in the heap that is no longer its group's is dropped when it comes first.
    """
    while size > 0 and stop > 0:
        entry = heap[0]
        is_current = current[owners[entry]] == entry
        if is_current and count == stop and places[entry] > places[top[count - 1]]:
            break
        drop_first_of_heap(heap, size, places)
        size -= 1
        if not is_current:
            continue
        at = count
        while at > 0 and places[top[at - 1]] > places[entry]:
            top[at] = top[at - 1]
            at -= 1
        top[at] = entry
        if count < stop:
            count += 1
        else:
            put_into_heap(heap, size, places, top[stop])
            size += 1
    return count, size


@part
def take_from_top(top, count, places, entry):
    """Take an entry out of the top if it is there; returns how many are left."""
    if count == 0 or places[entry] > places[top[count - 1]]:
        return count
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if places[top[middle]] < places[entry]:
            low = middle + 1
        else:
            high = middle
    if top[low] != entry:
        return count
    for at in range(low, count - 1):
        top[at] = top[at + 1]
    return count - 1


@kernel
def follow_best(at, same, places, owners, offset, stop, current, top, heap, size, seen, shown):
    """Follow which groups have the places from ``offset`` to ``stop``; write the entries that are new there.

    An entry is a row of a group.  The first ones, as many as there are groups, are those from before, of which
    ``current`` has each group's or -1, and ``heap`` all in the order of their places.  Then come the entries of this
    batch by their instants ``at``.  A place of -1 is that of no row: the group has none from then on.  ``same`` marks
    an entry that is equal to the one of its group before it, and so is not new.  ``top`` has room for one more than
    ``stop``; ``seen`` has zeros.  ``shown`` receives entries, each with the first entry of its instant.  Returns how
    many there are.
    """
    before = len(places) - len(at)
    count, size = move_up(top, 0, stop, heap, size, places, owners, current)
    for i in range(offset, count):
        seen[top[i]] = 1
    instant, written, row = 1, 0, 0
    while row < len(at):
        first = row
        instant += 1
        while row < len(at) and at[row] == at[first]:
            entry = before + row
            group = owners[entry]
            old = current[group]
            if old >= 0:
                count = take_from_top(top, count, places, old)
            current[group] = -1
            if places[entry] >= 0:
                current[group] = entry
                put_into_heap(heap, size, places, entry)
                size += 1
                if same[row] and old >= 0:
                    seen[entry] = seen[old]
            row += 1
        count, size = move_up(top, count, stop, heap, size, places, owners, current)
        for i in range(offset, count):
            if seen[top[i]] != instant - 1:
                shown[written, 0], shown[written, 1] = top[i], first
                written += 1
            seen[top[i]] = instant
    return written


@kernel
def follow_in_group(groups, rows, last, before):
    """For each of the ``rows``, ascending places in ``groups``, the number of the one that is next before it there.

    That is the one at the last place before it that has the same group; -1 if this place is not one of the rows.
    ``last`` is -1 for each group.
    """
    n = 0
    for place in range(len(groups)):
        group = groups[place]
        if n < len(rows) and rows[n] == place:
            before[n] = last[group]
            last[group] = n
            n += 1
        else:
            last[group] = -1
