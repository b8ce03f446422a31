"""Aggregates over a window that slides, and how their results are spelled.

The rows of a window are arrays in order of their ends: the number of each one's triple (-1 where none counts), and
whether an item ends with it.  What there is of a triple stands in its row of ``facts``, what there is of a group in its
row of ``groups``.  A member is a value in a group, in two pairing heaps: a row of ``links``, found by ``members`` where
it is not the triple itself.  ``at`` holds where the window stands, ``ask`` what is asked for.
"""

from __future__ import annotations

import numpy as np

from etalis_py.compiled import kernel, part, section
from etalis_py.executors.columns.kernels.keys import hash_row, same_row
from etalis_py.kernel.words import copy_bytes

FIRST, ENTERED, CLOSE, EVALUATIONS, REPEATED, NEW, MEMBERS, FULL, NEEDED = range(9)
"""``at``: the first row that is held, the first that waits, the next closing; how many evaluations there were, how many
items came that were held already, and how many new triples the item has that is coming; how many members there are;
what there was no room for, and for how many members there must be room."""
ROWS, ROOM = 1, 2
"""``at[FULL]``: room for more rows of the answer, or for more members."""
WIDTH, STEP, THROUGH, NONEMPTY, WHOLE, KEY, SUM, MEMBER, DIRECT, LEAST, GREATEST = range(11)
"""``ask``: how long the window is, how far it slides, the last time; whether it answers only where it holds an item,
and whether the one group there is answers even of nothing; which triple pattern has the key, the summed value, and the
value of the members (-1: there are none); whether each triple is a member of its own; whether the least and the
greatest member are asked for."""
HELD, SLOT, GROUP, SUMMAND, OPERAND, SUBJECT, NEXT, PREVIOUS = range(8)
"""``facts``: how many rows have the triple, the pattern that it matches (-1: none), its group, what it adds to a sum,
the value of its member; where there are several patterns, its subject, and its neighbours among those of both."""
COUNT, TOTAL, DISTINCT, BEST = range(4)
"""``groups``: how many solutions, their sum, how many members; then the roots of the two heaps."""
CLOSING, OF_GROUP, OF_COUNT, OF_TOTAL, OF_DISTINCT, OF_BEST = range(6)
"""Rows of an answer; the last one is that of the least, and behind it stands that of the greatest."""
TIMES, VALUE, NUMBER, CHILD, SIBLING = range(5)
"""``links``: how many solutions have the member, its term and the number of that in the order of terms; its first child
and its next sibling in the first heap, then those in the second."""
APART = -2
"""The sibling of a member that is not in the heap."""
_ONE = np.uint64(1)
LONGEST = 128
"""No number that is spelled here has more bytes than this."""
_DIGITS = 34


@section
def precedes(one, other, heap, links, orders):
    """Does one member stand before another: below it in the first heap, above it in the second?"""
    if links[one, NUMBER] != links[other, NUMBER]:
        return (links[one, NUMBER] < links[other, NUMBER]) == (heap == 0)
    return orders[links[one, VALUE], 1 + heap] < orders[links[other, VALUE], 1 + heap]


@part
def meld(one, other, heap, links, orders):
    """One heap of two: the root that comes first, with the other as its first child."""
    if precedes(other, one, heap, links, orders):
        one, other = other, one
    links[other, SIBLING + 2 * heap] = links[one, CHILD + 2 * heap]
    links[one, CHILD + 2 * heap] = other
    return one


@section
def first_held(root, heap, links, orders):
    """The root of the heap when the members before the first one that is held have been taken out; -1 of none."""
    child, sibling = CHILD + 2 * heap, SIBLING + 2 * heap
    while root >= 0 and links[root, TIMES] == 0:
        node = links[root, child]
        links[root, child], links[root, sibling] = -1, APART
        root = -1
        while node >= 0:  # two by two …
            other = links[node, sibling]
            following = -1
            if other >= 0:
                following = links[other, sibling]
                node = meld(node, other, heap, links, orders)
            links[node, sibling] = root
            root = node
            node = following
        if root >= 0:  # … then all of these, the last first
            node = links[root, sibling]
            while node >= 0:
                following = links[node, sibling]
                root = meld(root, node, heap, links, orders)
                node = following
            links[root, sibling] = -1
    return root


@section
def member_of(group, value, at, members, slots):
    """The member with this value in the group, a new one where there is none yet."""
    count = at[MEMBERS]
    members[count, 0], members[count, 1] = group, value
    mask = np.uint64(len(slots) - 1)
    slot = hash_row(members, count) & mask
    while slots[slot] >= 0 and not same_row(members, count, members, slots[slot]):
        slot = (slot + _ONE) & mask
    if slots[slot] < 0:
        slots[slot] = count
        at[MEMBERS] += 1
    return slots[slot]


@section
def count_member(member, group, value, sign, ask, groups, links, orders):
    """A solution with this member comes or goes."""
    links[member, TIMES] += sign
    if sign < 0:
        groups[group, DISTINCT] -= links[member, TIMES] == 0
    elif links[member, TIMES] == 1:
        groups[group, DISTINCT] += 1
        for heap in range(2):
            if ask[LEAST + heap] and links[member, SIBLING + 2 * heap] == APART:
                links[member, VALUE], links[member, NUMBER] = value, orders[value, 0]
                links[member, SIBLING + 2 * heap] = -1
                root = groups[group, BEST + heap]
                groups[group, BEST + heap] = member if root < 0 else meld(root, member, heap, links, orders)


@section
def count_solutions(triple, sign, at, ask, facts, lists, groups, members, slots, links, orders, cursor):
    """The solutions of a triple with those that are held of the other patterns and have its subject."""
    place, patterns = facts[triple, SLOT], len(cursor)
    key, summed, member_at = ask[KEY], ask[SUM], ask[MEMBER]
    first = facts[triple, SUBJECT] * patterns if patterns > 1 else 0
    for i in range(patterns):
        cursor[i] = triple if i == place else lists[first + i, 0]
        if cursor[i] < 0:
            return
    i = 0
    while i < patterns:
        group = facts[cursor[key], GROUP]
        groups[group, COUNT] += sign
        groups[group, TOTAL] += sign * facts[cursor[summed], SUMMAND]
        if member_at >= 0:
            value = facts[cursor[member_at], OPERAND]
            member = triple if ask[DIRECT] else member_of(group, value, at, members, slots)
            count_member(member, group, value, sign, ask, groups, links, orders)
        i = 0
        while i < patterns:
            if i != place:
                cursor[i] = facts[cursor[i], NEXT]
                if cursor[i] >= 0:
                    break
                cursor[i] = lists[first + i, 0]
            i += 1


@section
def put_in(triple, facts, lists, patterns):
    """The triple is held: the first of its subject and pattern."""
    place = facts[triple, SUBJECT] * patterns + facts[triple, SLOT]
    following = lists[place, 0]
    facts[triple, NEXT], facts[triple, PREVIOUS] = following, -1
    if following >= 0:
        facts[following, PREVIOUS] = triple
    lists[place, 0] = triple
    lists[place, 1] += 1


@section
def take_out(triple, facts, lists, patterns):
    """The contrary."""
    place = facts[triple, SUBJECT] * patterns + facts[triple, SLOT]
    following, before = facts[triple, NEXT], facts[triple, PREVIOUS]
    if following >= 0:
        facts[following, PREVIOUS] = before
    if before >= 0:
        facts[before, NEXT] = following
    else:
        lists[place, 0] = following
    lists[place, 1] -= 1


@section
def room_needed(triple, facts, lists, patterns):
    """How many solutions the triple will make, and so how many members at most."""
    needed = 1
    for i in range(patterns):
        if i != facts[triple, SLOT]:
            needed *= lists[facts[triple, SUBJECT] * patterns + i, 1]
    return needed


@kernel
def slide(
    at, ask, ends, triples, closes, facts, lists, groups, members, slots, links, orders, cursor, order, answer
):  # fmt: skip
    """Answer at every closing up to the last time: a row for each group, in this order; returns how many there are.

    It stops where there may be no room for the next answer, or for the members of the next triple; then ``at[FULL]``
    says so, and it is to be called again.
    """
    first, entered, close, new, patterns = at[FIRST], at[ENTERED], at[CLOSE], at[NEW], len(cursor)
    width, step, through = ask[WIDTH], ask[STEP], ask[THROUGH]
    looked_up = ask[MEMBER] >= 0 and not ask[DIRECT]
    rows = at[FULL] = 0
    while True:
        while True:
            if first < entered and ends[first] <= close - width:
                triple, sign = triples[first], -1
                first += 1
                if triple < 0:
                    continue
                facts[triple, HELD] -= 1
                if facts[triple, HELD] > 0 or facts[triple, SLOT] < 0:
                    continue
                if patterns > 1:
                    take_out(triple, facts, lists, patterns)
            elif entered < len(ends) and ends[entered] <= close <= through:
                triple, sign = triples[entered], 1
                if looked_up and triple >= 0 and facts[triple, HELD] == 0 and facts[triple, SLOT] >= 0:
                    at[NEEDED] = at[MEMBERS] + room_needed(triple, facts, lists, patterns)
                    if at[NEEDED] >= len(members):
                        at[FULL] = ROOM
                        break
                if triple >= 0:
                    facts[triple, HELD] += 1
                    new += facts[triple, HELD] == 1
                if closes[entered]:
                    at[REPEATED] += new == 0
                    new = 0
                entered += 1
                if triple < 0 or facts[triple, HELD] > 1 or facts[triple, SLOT] < 0:
                    continue
            else:
                break
            count_solutions(triple, sign, at, ask, facts, lists, groups, members, slots, links, orders, cursor)
            if sign > 0 and patterns > 1:
                put_in(triple, facts, lists, patterns)
        if close > through or at[FULL]:
            break
        if ask[NONEMPTY] and first == entered:
            if entered == len(ends):
                break
            close += (ends[entered] - close + step - 1) // step * step
            continue
        if rows + len(order) > answer.shape[1]:
            at[FULL] = ROWS
            break
        at[EVALUATIONS] += 1
        for group in order:
            if groups[group, COUNT] > 0 or ask[WHOLE]:
                answer[CLOSING, rows], answer[OF_GROUP, rows] = close, group
                for i in range(3):
                    answer[OF_COUNT + i, rows] = groups[group, COUNT + i]
                for heap in range(2):
                    root = groups[group, BEST + heap]
                    if ask[LEAST + heap]:
                        root = groups[group, BEST + heap] = first_held(root, heap, links, orders)
                    answer[OF_BEST + heap, rows] = links[root, VALUE] if root >= 0 else 0
                rows += 1
        close += step
    at[FIRST], at[ENTERED], at[CLOSE], at[NEW] = first, entered, close, new
    return rows


@kernel
def digits_of(number, digits):
    """The decimal digits of a number that is not negative, the first one first; none of 0."""
    size = 0
    left = number
    while left > 0:
        left //= 10
        size += 1
    left = number
    for i in range(size - 1, -1, -1):
        digits[i] = left % 10
        left //= 10
    return size


@section
def quotient(total, count, scale, digits):
    """The digits of total ÷ (count · 10**scale), rounded half to even as ``values.exact.quotient`` does.

    Returns how many there are, and how many of them stand before the point (negative: so many zeros follow it).
    """
    size = digits_of(total, digits)
    power = size - scale - digits_of(count, digits)
    size = digits_of(total // count, digits)
    point = size - scale
    most = _DIGITS + max(0, power)
    left = total % count
    significant = size
    while left > 0 and significant < most:
        left *= 10
        digits[size] = left // count
        left %= count
        if significant > 0 or digits[size] > 0:
            significant += 1
        size += 1
    if 2 * left > count or (2 * left == count and digits[size - 1] % 2 == 1):
        i = size - 1
        while i >= 0 and digits[i] == 9:
            digits[i] = 0
            i -= 1
        if i >= 0:
            digits[i] += 1
        else:  # 9.99… is 10
            digits[0] = 1
            point += 1
    while size > max(point, 0) and digits[size - 1] == 0:
        size -= 1
    return size, point


@kernel
def spell_results(totals, counts, divide, scale, tail, integer_tail, digits, ends, out):
    """The literals of totals · 10**-scale, or with ``divide`` of that ÷ counts; of nothing it is the integer 0.

    ``digits`` has room for the LONGEST.
    """
    at = np.uint64(0)
    ends[0] = 0
    for i in range(len(totals)):
        out[at] = 34
        at += _ONE
        if totals[i] == 0:
            out[at] = 48
            at += _ONE
        else:
            if totals[i] < 0:
                out[at] = 45
                at += _ONE
            size, point = quotient(abs(totals[i]), counts[i] if divide else 1, scale, digits)
            if point <= 0:
                out[at] = 48
                at += _ONE
            for k in range(min(point, 0), size):
                if k == point:
                    out[at] = 46
                    at += _ONE
                out[at] = 48 + (digits[k] if k >= 0 else 0)
                at += _ONE
        end = integer_tail if counts[i] == 0 else tail
        copy_bytes(end, np.uint64(0), out, at, np.uint64(len(end)))
        at += np.uint64(len(end))
        ends[i + 1] = at
