"""Aggregates over a sliding window, and the spelling of their results.

The rows of a window are arrays in order of their ends: the number of each row's triple (-1 if it does not count), and
whether an item ends with it.  The state of a triple is its row of ``facts``, that of a group its row of ``groups``.  A
member is a distinct value in a group; its state is a row of ``links``, by which it hangs in two pairing heaps, with the
least and the greatest member on top.  The row is found in the table ``members``, or has the number of the triple if
each triple is a member by itself.  ``at`` holds the position of the window, ``ask`` the parameters of the query.
"""

from __future__ import annotations

import numpy as np

from etalis_py.executors.columns.kernels.keys import hash_row, same_row
from etalis_py.kernel.byte_words import copy_bytes
from etalis_py.numba_cache import kernel, part, section

FIRST, ENTERED, CLOSE, EVALUATIONS, DUPLICATES, NEW, MEMBERS, FULL, NEEDED = range(9)
"""Entries of ``at``.  FIRST is the first row in the window, ENTERED the first that waits to enter, CLOSE the next
closing.  EVALUATIONS counts the evaluations, DUPLICATES the items that entered with only triples that were there
already.  NEW is the number of new triples of the item that is entering, MEMBERS the number of members.  FULL says what
ran out of room, and NEEDED how many members need room."""
ROWS, ROOM = 1, 2
"""What ``at[FULL]`` asks for: room for more rows of the answer, or for more members."""
WIDTH, STEP, THROUGH, NONEMPTY, WHOLE, KEY, SUM, MEMBER, DIRECT, LEAST, GREATEST = range(11)
"""Entries of ``ask``.  WIDTH is the length of the window, STEP its slide, THROUGH the last time.  NONEMPTY: the query
answers only when the window holds an item.  WHOLE: there is a single group, which answers even when it is empty.  KEY,
SUM and MEMBER are the triple patterns with the key, the summed value and the value of the members (-1: none).  DIRECT:
each triple is a member by itself.  LEAST and GREATEST: the least or the greatest member is asked for."""
HELD, SLOT, GROUP, SUMMAND, OPERAND, SUBJECT, FOLLOWING, PREVIOUS = range(8)
"""Columns of ``facts``: the number of rows in the window with this triple (HELD), the pattern that it matches (SLOT,
-1: none), its group, its summand, and the value of its member (OPERAND).  If there are several patterns, also its
subject, and its neighbours among the held triples with the same subject and pattern."""
COUNT, TOTAL, DISTINCT, BEST = range(4)
"""Columns of ``groups``: the number of solutions, their sum, the number of members; then the roots of the two heaps."""
CLOSING, OF_GROUP, OF_COUNT, OF_TOTAL, OF_DISTINCT, OF_BEST = range(6)
"""Fields of an answer.  OF_BEST has the least member, and the field after it the greatest."""
TIMES, VALUE, NUMBER, CHILD, SIBLING = range(5)
"""Columns of ``links``: the number of solutions with this member, its term, and that term's number in the order of
terms; then its first child and its next sibling in the first heap, followed by both for the second heap."""
APART = -2
"""The sibling of a member that is not in a heap has this value."""
_ONE = np.uint64(1)
LONGEST = 128
"""No number that is spelled here has more bytes than this."""
_AT_ONCE = 2**63 // 10**9  # a remainder below it may be multiplied by 10**9
_DIGITS = 34  # as ``values.exact.DIVISION_DIGITS``


@section
def precedes(one, other, heap, links, orders):
    """Whether one member comes before another: less in the first heap, greater in the second."""
    if links[one, NUMBER] != links[other, NUMBER]:
        return (links[one, NUMBER] < links[other, NUMBER]) == (heap == 0)
    return orders[links[one, VALUE], 1 + heap] < orders[links[other, VALUE], 1 + heap]


@part
def meld(one, other, heap, links, orders):
    """Merge two heaps: the root that comes first gets the other as its first child."""
    if precedes(other, one, heap, links, orders):
        one, other = other, one
    links[other, SIBLING + 2 * heap] = links[one, CHILD + 2 * heap]
    links[one, CHILD + 2 * heap] = other
    return one


@section
def first_held(root, heap, links, orders):
    """The root of the heap, after removing members until one is held; -1 if none is."""
    child, sibling = CHILD + 2 * heap, SIBLING + 2 * heap
    while root >= 0 and links[root, TIMES] == 0:
        node = links[root, child]
        links[root, child], links[root, sibling] = -1, APART
        root = -1
        while node >= 0:  # in pairs …
            other = links[node, sibling]
            following = -1
            if other >= 0:
                following = links[other, sibling]
                node = meld(node, other, heap, links, orders)
            links[node, sibling] = root
            root = node
            node = following
        if root >= 0:  # … then all pairs, the last first
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
    """Count a solution with this member that comes or goes; a new member is put into the heaps."""
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
    """Count the solutions that a triple forms with held triples of the other patterns about the same subject."""
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
                cursor[i] = facts[cursor[i], FOLLOWING]
                if cursor[i] >= 0:
                    break
                cursor[i] = lists[first + i, 0]
            i += 1


@section
def put_in(triple, facts, lists, patterns):
    """Hold the triple, as the first of its subject and pattern."""
    place = facts[triple, SUBJECT] * patterns + facts[triple, SLOT]
    following = lists[place, 0]
    facts[triple, FOLLOWING], facts[triple, PREVIOUS] = following, -1
    if following >= 0:
        facts[following, PREVIOUS] = triple
    lists[place, 0] = triple
    lists[place, 1] += 1


@section
def take_out(triple, facts, lists, patterns):
    """Remove a triple that ``put_in`` added."""
    place = facts[triple, SUBJECT] * patterns + facts[triple, SLOT]
    following, before = facts[triple, FOLLOWING], facts[triple, PREVIOUS]
    if following >= 0:
        facts[following, PREVIOUS] = before
    if before >= 0:
        facts[before, FOLLOWING] = following
    else:
        lists[place, 0] = following
    lists[place, 1] -= 1


@section
def room_needed(triple, facts, lists, patterns):
    """How many solutions the triple will form; it cannot add more members than that."""
    needed = 1
    for i in range(patterns):
        if i != facts[triple, SLOT]:
            needed *= lists[facts[triple, SUBJECT] * patterns + i, 1]
    return needed


@kernel
def slide(
    at, ask, ends, triples, closes, facts, lists, groups, members, slots, links, orders, cursor, order, answer
):  # fmt: skip
    """Move the window to the last time, and answer at every closing with a row for each group, in ``order``.

    Returns the number of rows.  It stops when there may be no room for the next answer, or for the members of the next
    triple; then it sets ``at[FULL]`` and must be called again.
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
                    at[DUPLICATES] += new == 0
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


@part
def size_of(number):
    """How many decimal digits a non-negative number has; none for 0."""
    size, power = 0, 1
    while size < 18 and power <= number:
        power *= 10
        size += 1
    return size + (size == 18 and power <= number)


@part
def digits_of(number, digits):
    """The decimal digits of a non-negative number, most significant first; none for 0."""
    size = size_of(number)
    left = number
    for i in range(size - 1, -1, -1):
        digits[i] = left % 10
        left //= 10
    return size


@section
def quotient(total, count, scale, digits):
    """The digits of total ÷ (count · 10**scale), rounded half to even as ``values.exact.quotient`` does.

    Returns how many there are, and how many stand before the point (negative: the number of zeros after it).
    """
    power = size_of(total) - scale - size_of(count)
    whole = total // count
    size = digits_of(whole, digits)
    point = size - scale
    most = _DIGITS + max(0, power)
    left = total - whole * count
    significant = size
    while 0 < left < _AT_ONCE and significant > 0 and significant + 9 <= most:
        left *= 1_000_000_000
        nine = left // count
        left -= nine * count
        for i in range(size + 8, size - 1, -1):
            digits[i] = nine % 10
            nine //= 10
        size += 9
        significant += 9
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
        else:  # 9.99… was rounded up to 10, which has one digit more before the point
            digits[0] = 1
            point += 1
    while size > max(point, 0) and digits[size - 1] == 0:
        size -= 1
    return size, point


@kernel
def spell_results(totals, counts, divide, scale, tail, integer_tail, digits, ends, out):
    """Write the literals of totals · 10**-scale, divided by counts if ``divide``; an empty group gives the integer 0.

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
