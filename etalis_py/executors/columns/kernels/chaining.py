"""Chains: the latest start of the goals that a row finds before it, and what the matches of a row amount to.

``rows.generate.chains`` has the definition of goals.  A sum over all matches is computed part by part, without making
them: what the matches up to a solution of a part amount to is what those up to all goals before it do, and goals are in
order of their ends, so that is the last line of a running sum.
"""

from __future__ import annotations

from etalis_py.executors.columns.kernels.goals import AT, HIGH, LOW
from etalis_py.executors.columns.kernels.joining import first_from
from etalis_py.executors.columns.kernels.parsing import INTEGER
from etalis_py.numba_cache import kernel, part

NEVER = -(2**62)


@kernel
def latest_starts(keys, y_starts, buckets, ends, starts, latest):
    """For each row, the latest start of the goals with its key that ended before it started; NEVER without any.

    No goal starts after its end, so a search stops at the first one that ended before the latest start so far.
    """
    for j in range(len(keys)):
        key, best = keys[j], NEVER
        if key >= 0:
            low = buckets[key, AT] + buckets[key, LOW]
            x = first_from(ends, low, buckets[key, AT] + buckets[key, HIGH], y_starts[j]) - 1
            while x >= low and ends[x] > best:
                best = max(best, starts[x])
                x -= 1
        latest[j] = best


NUMBER, EARLIEST, STATE = range(3)
"""Fields of what some matches amount to: how many they are, and their earliest start; then come those of variables."""
GIVEN, TOTAL, LEAST, GREATEST, OF_VARIABLE = range(5)
"""Fields of a variable: in how many matches it is bound, the sum of its values, its least and its greatest term."""
PLACE, COLUMN, SUMMED, ORDERED = range(4)
"""What is asked of a variable: its part, its column there, whether it is summed, and whether its extremes count."""


@kernel
def reach(lasting, keys, y_ends, limits, bound, buckets, ends, terms, mantissas, ranges):
    """For each row the range of the goals with its key that may be part of its matches.

    They ended before the limit of the row, and no longer ago than the window allows.  The limit becomes the latest own
    start of these goals; NEVER without any.  ``lasting``: the last term of a goal is its own start, if it has one.
    """
    for j in range(len(keys)):
        key, latest = keys[j], NEVER
        ranges[j, 0] = ranges[j, 1] = 0
        if key >= 0 and limits[j] != NEVER:
            low, high = buckets[key, AT] + buckets[key, LOW], buckets[key, AT] + buckets[key, HIGH]
            last = first_from(ends, low, high, limits[j])
            first = first_from(ends, low, last, y_ends[j] - bound)
            ranges[j, 0], ranges[j, 1] = first, last
            x = last - 1
            while x >= first and ends[x] > latest:
                latest = max(latest, own_start(lasting, x, ends, terms, mantissas))
                x -= 1
        limits[j] = latest


@part
def own_start(lasting, x, ends, terms, mantissas):
    """The own start of a goal."""
    if lasting and terms[x, terms.shape[1] - 1] != 0:
        return mantissas[terms[x, terms.shape[1] - 1]]
    return ends[x]


@kernel
def extend(
    place, bound, rows, before_rows, before_ends, before, before_sizes, goals, variables, values, orders, state, sizes
):
    """Sum up, for each row, the matches of the parts up to ``place``, over the goals of its range in their order.

    ``state`` has for each row one line more than goals: what the goals before it amount to.  ``rows`` are the ends of
    the rows, their ranges, and their first lines; ``before_rows`` the ranges and first lines of the part before, whose
    lines are in ``before``.  For the first part that is a single line, which is one match.  ``sizes`` has doubles that
    no number or sum exceeds.  Returns whether all summands are integers.
    """
    y_ends, ranges, lines = rows
    before_ranges, before_lines = before_rows
    ends, starts, terms = goals
    exact = True
    for j in range(len(lines)):
        first, last, line = ranges[j, 0], ranges[j, 1], lines[j]
        from_, until = before_ranges[j, 0], before_ranges[j, 1]
        earlier, known = from_, NEVER
        clear(state, sizes, line)
        for x in range(first, last):
            line += 1
            for field in range(state.shape[1]):
                state[line, field] = state[line - 1, field]
            for field in range(sizes.shape[1]):
                sizes[line, field] = sizes[line - 1, field]
            if starts[x] < y_ends[j] - bound:
                continue
            source = 0
            if place == 0:
                before[0, EARLIEST] = starts[x]
            else:
                start = own_start(True, x, ends, terms, values[1])
                if start < known:
                    earlier = first_from(before_ends, from_, until, start)
                while earlier < until and before_ends[earlier] < start:
                    earlier += 1
                known = start
                source = before_lines[j] + earlier - from_
            if not add_matches(
                state, sizes, line, before, before_sizes, source, place, terms, x, variables, values, orders
            ):
                exact = False
    return exact


@kernel
def finish(
    place,
    which,
    y_starts,
    before_rows,
    before_ends,
    before,
    before_sizes,
    terms,
    variables,
    values,
    orders,
    state,
    sizes,
):
    """The same for the last part: one line of ``state`` for each solution of it; ``which`` is the row that it has."""
    ranges, lines = before_rows
    exact = True
    for j in range(len(which)):
        clear(state, sizes, j)
        first, last = ranges[which[j], 0], ranges[which[j], 1]
        source = lines[which[j]] + first_from(before_ends, first, last, y_starts[j]) - first
        if not add_matches(state, sizes, j, before, before_sizes, source, place, terms, j, variables, values, orders):
            exact = False
    return exact


@part
def clear(state, sizes, line):
    """No matches."""
    for field in range(state.shape[1]):
        state[line, field] = 0
    state[line, EARLIEST] = -NEVER
    for field in range(sizes.shape[1]):
        sizes[line, field] = 0.0


@part
def add_matches(state, sizes, line, before, before_sizes, source, place, terms, x, variables, values, orders):
    """Add the matches that the solution x of a part makes of those before it; returns whether a sum stays exact."""
    if before_sizes[source, 0] == 0.0:
        return True
    kinds, mantissas = values
    number = before[source, NUMBER]
    state[line, NUMBER] += number
    state[line, EARLIEST] = min(state[line, EARLIEST], before[source, EARLIEST])
    sizes[line, 0] += before_sizes[source, 0]
    for v in range(variables.shape[0]):
        at = STATE + v * OF_VARIABLE
        if variables[v, PLACE] < place:
            state[line, at + GIVEN] += before[source, at + GIVEN]
            state[line, at + TOTAL] += before[source, at + TOTAL]
            sizes[line, 1 + v] += before_sizes[source, 1 + v]
            offer(state, line, at, before[source, at + LEAST], before[source, at + GREATEST], orders)
        elif variables[v, PLACE] == place and terms[x, variables[v, COLUMN]] != 0:
            term = terms[x, variables[v, COLUMN]]
            state[line, at + GIVEN] += number
            if variables[v, SUMMED] != 0:
                if kinds[term] != INTEGER:
                    return False
                state[line, at + TOTAL] += number * mantissas[term]
                sizes[line, 1 + v] += before_sizes[source, 0] * abs(float(mantissas[term]))
            if variables[v, ORDERED] != 0:
                offer(state, line, at, term, term, orders)
    return True


@part
def offer(state, line, at, low, high, orders):
    """Compare two terms with the extremes of a variable, if they are terms (``extremes.TermOrder``)."""
    held = state[line, at + LEAST]
    if low != 0 and (
        held == 0
        or orders[low, 0] < orders[held, 0]
        or (orders[low, 0] == orders[held, 0] and orders[low, 1] < orders[held, 1])
    ):
        state[line, at + LEAST] = low
    held = state[line, at + GREATEST]
    if high != 0 and (
        held == 0
        or orders[high, 0] > orders[held, 0]
        or (orders[high, 0] == orders[held, 0] and orders[high, 2] < orders[held, 2])
    ):
        state[line, at + GREATEST] = high
