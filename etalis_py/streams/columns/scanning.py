"""N-Quads in bytes → the places of terms, and which lines form a timed graph: loops compiled by Numba.

A line is *usual* if ``quads.split_lines`` takes it as canonical and its IRIs are ASCII.  An *element* is a graph whose
lines are consecutive and include its time: all its quads, and ``g p "time"^^xsd:dateTime`` in the default graph.  An
element is complete where a usual line of another graph begins; at anything else the scan stops before the element.
"""

from __future__ import annotations

import numpy as np

from etalis_py.numba_cache import kernel, part, section

SAFE, SCHEME, ALPHA, HOST, HEX, LABEL, DIGIT = 1, 2, 4, 8, 16, 32, 64


def _classes() -> np.ndarray:
    classes = np.zeros(256, np.uint8)
    letters = [*range(65, 91), *range(97, 123)]
    digits = list(range(48, 58))
    for members, bit in (
        (letters + digits + list(b"-._~:/?@!$&'()*+,;="), SAFE),
        (letters + digits + list(b"+.-"), SCHEME),
        (letters, ALPHA),
        (letters + digits + list(b"._~-"), HOST),
        (list(b"0123456789abcdefABCDEF"), HEX),
        (letters + digits + list(b"_"), LABEL),
        (digits, DIGIT),
    ):
        classes[members] |= bit
    return classes


CLASSES = _classes()
STRING = np.frombuffer(b"<http://www.w3.org/2001/XMLSchema#string>", np.uint8)
LANG_STRING = np.frombuffer(b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>", np.uint8)
DIR_LANG_STRING = np.frombuffer(b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString>", np.uint8)
DATE_TIME = np.frombuffer(b"<http://www.w3.org/2001/XMLSchema#dateTime>", np.uint8)
INTEGER = np.frombuffer(b"<http://www.w3.org/2001/XMLSchema#integer>", np.uint8)


@kernel
def _iri(data, i, classes):
    """The place after an IRI, or -1."""
    i += 1
    if not classes[data[i]] & 4:
        return -1
    i += 1
    while classes[data[i]] & 2:
        i += 1
    if data[i] != 58:
        return -1
    i += 1
    if data[i] == 47 and data[i + 1] == 47:
        i += 2
        begin = i
        while classes[data[i]] & 8:
            i += 1
        if i == begin:
            return -1
        if data[i] == 58:
            i += 1
            begin = i
            while classes[data[i]] & 64:
                i += 1
            if not 1 <= i - begin <= 4:
                return -1
        c = data[i]
        if c != 47 and c != 63 and c != 35 and c != 62:
            return -1
    fragment = False
    while True:
        while classes[data[i]] & 1:
            i += 1
        c = data[i]
        if c == 62:
            return i + 1
        if c == 37 and classes[data[i + 1]] & 16 and classes[data[i + 2]] & 16:
            i += 3
        elif c == 35 and not fragment:
            fragment = True
            i += 1
        else:
            return -1


@part
def _same(data, begin, end, other):
    if end - begin != len(other):
        return False
    for k in range(len(other)):  # noqa: SIM110 (compiled)
        if data[begin + k] != other[k]:
            return False
    return True


@part
def _equal(data, a, a_end, b, b_end):
    if a_end - a != b_end - b:
        return False
    for k in range(a_end - a):  # noqa: SIM110 (compiled)
        if data[a + k] != data[b + k]:
            return False
    return True


@section
def _literal(data, i, classes, string, lang, dir_lang):
    """The place after a literal, or -1."""
    i += 1
    while True:
        c = data[i]
        if c == 34:
            break
        if c == 92:
            c = data[i + 1]
            # t b n r f " \
            if c != 116 and c != 98 and c != 110 and c != 114 and c != 102 and c != 34 and c != 92:
                return -1
            i += 2
        elif c < 32 or c == 127:
            return -1
        else:
            i += 1
    i += 1
    if data[i] == 94:
        if data[i + 1] != 94 or data[i + 2] != 60:
            return -1
        begin = i + 2
        i = _iri(data, begin, classes)
        if i < 0 or _same(data, begin, i, string) or _same(data, begin, i, lang) or _same(data, begin, i, dir_lang):
            return -1
        return i
    if data[i] == 64:
        i += 1
        begin = i
        while 97 <= data[i] <= 122:
            i += 1
        if not 2 <= i - begin <= 3:
            return -1
        if data[i] == 45:
            i += 1
            begin = i
            while 97 <= data[i] <= 122:
                i += 1
            if i - begin != 2:
                return -1
        if data[i] != 32 and data[i] != 9:
            return -1
    return i


@part
def _blank(data, i, classes):
    """The place after a blank node, or -1."""
    if data[i + 1] != 58:
        return -1
    i += 2
    begin = i
    while classes[data[i]] & 32:
        i += 1
    return i if i > begin else -1


@part
def _gap(data, i):
    while data[i] == 32 or data[i] == 9:
        i += 1
    return i


@kernel
def _statement(data, i, classes, string, lang, dir_lang, at):
    """The place of the line break after a usual line, whose terms are put into ``at``, or -1; the last two places are
    equal if there is no graph.
    """
    at[0] = i
    if data[i] == 60:
        i = _iri(data, i, classes)
    elif data[i] == 95:
        i = _blank(data, i, classes)
    else:
        return -1
    if i < 0 or (data[i] != 32 and data[i] != 9):
        return -1
    at[1] = i
    i = _gap(data, i)
    at[2] = i
    if data[i] != 60:
        return -1
    i = _iri(data, i, classes)
    if i < 0 or (data[i] != 32 and data[i] != 9):
        return -1
    at[3] = i
    i = _gap(data, i)
    at[4] = i
    if data[i] == 60:
        i = _iri(data, i, classes)
    elif data[i] == 34:
        i = _literal(data, i, classes, string, lang, dir_lang)
    elif data[i] == 95:
        i = _blank(data, i, classes)
    else:
        return -1
    if i < 0:
        return -1
    at[5] = i
    after = _gap(data, i)
    at[6] = after
    at[7] = after
    if after > i and (data[after] == 60 or data[after] == 95):
        i = _iri(data, after, classes) if data[after] == 60 else _blank(data, after, classes)
        if i < 0:
            return -1
        at[7] = i
        after = _gap(data, i)
    if data[after] != 46:
        return -1
    after = _gap(data, after + 1)
    return after if data[after] == 10 else -1


@part
def _digits(data, i, count):
    """The number with ``count`` digits, or -1."""
    number = 0
    for k in range(count):
        digit = data[i + k] - 48
        if digit < 0 or digit > 9:
            return -1
        number = number * 10 + digit
    return number


@section
def days_from_civil(year, month, day):
    """Days since 1970-01-01; -1 << 40 if there is no such day."""
    longest = 31
    if month == 4 or month == 6 or month == 9 or month == 11:
        longest = 30
    elif month == 2:
        longest = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    if not 1 <= month <= 12 or not 1 <= day <= longest:
        return -1 << 40
    if month <= 2:
        year -= 1
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + (9 if month <= 2 else -3)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


NO_TIME = -(2**63)


@kernel
def date_time(data, i, end, date_time_type):
    """Microseconds of a dateTime literal in the usual spelling, or NO_TIME."""
    if end - i < 23 + len(date_time_type) or data[i] != 34:
        return NO_TIME
    i += 1
    year, month, day = _digits(data, i, 4), _digits(data, i + 5, 2), _digits(data, i + 8, 2)
    hour, minute, second = _digits(data, i + 11, 2), _digits(data, i + 14, 2), _digits(data, i + 17, 2)
    if year < 0 or month < 0 or day < 0 or hour < 0 or hour > 23:
        return NO_TIME
    if minute < 0 or minute > 59 or second < 0 or second > 59:
        return NO_TIME
    if data[i + 4] != 45 or data[i + 7] != 45 or data[i + 10] != 84 or data[i + 13] != 58 or data[i + 16] != 58:
        return NO_TIME
    days = days_from_civil(year, month, day)
    if days == -1 << 40:
        return NO_TIME
    i += 19
    micros = 0
    if data[i] == 46:
        i += 1
        scale = 100_000
        while 48 <= data[i] <= 57 and scale > 0:
            micros += (data[i] - 48) * scale
            scale //= 10
            i += 1
        if scale == 100_000:
            return NO_TIME
    if data[i] != 90 or data[i + 1] != 34 or data[i + 2] != 94 or data[i + 3] != 94:
        return NO_TIME
    if not _same(data, i + 4, end, date_time_type):
        return NO_TIME
    return ((days * 24 + hour) * 60 + minute) * 60_000_000 + second * 1_000_000 + micros


@section
def whole_number(data, i, end, times, integer_type):
    """Microseconds of an integer literal that counts units of ``times`` microseconds, or NO_TIME."""
    tail = len(integer_type) + 3
    count = end - i - 1 - tail
    if data[i] != 34 or not 1 <= count <= 18 or times > 1_000_000 or not _same(data, end - tail + 3, end, integer_type):
        return NO_TIME
    number = _digits(data, i + 1, count)
    if number < 0 or number > 9_000_000_000_000_000_000 // times:
        return NO_TIME
    return number * times


@kernel
def scan(data, i, classes, string, lang, dir_lang, predicate, times, time_type, at, rows, elements):
    """Scan elements from place ``i`` on.  ``data`` ends with a line break and some zeros.

    ``times`` is 0 in a stream of dates, otherwise the microseconds in a unit.  ``at`` has room for the eight places of
    a line.  ``rows`` gets the places of the terms and the number of the element for each triple, ``elements`` the times
    of the elements.  Returns how many of both are complete, the place and the number of the first line that is not,
    whether the end was reached, and how many triples were left out because their element has them already.
    """
    size = len(data) - 4
    row = element = row_done = repeated = repeated_done = 0
    open_at = i
    line = open_line = 0
    graph, graph_end, time = np.int64(0), np.int64(0), NO_TIME
    while i < size:
        if data[i] == 10:
            i += 1
            line += 1
            continue
        end = _statement(data, i, classes, string, lang, dir_lang, at)
        if end < 0:
            return row_done, element, open_at, open_line, False, repeated_done
        if at[7] > at[6]:
            if graph_end == 0 or not _equal(data, graph, graph_end, at[6], at[7]):
                if graph_end:
                    if time == NO_TIME:
                        return row_done, element, open_at, open_line, False, repeated_done
                    elements[element] = time
                    element += 1
                    row_done, repeated_done = row, repeated
                open_at, open_line = i, line
                graph, graph_end, time = at[6], at[7], NO_TIME
            again = False
            for earlier in range(row_done, row):
                if (
                    _equal(data, rows[earlier, 4], rows[earlier, 5], at[4], at[5])
                    and _equal(data, rows[earlier, 2], rows[earlier, 3], at[2], at[3])
                    and _equal(data, rows[earlier, 0], rows[earlier, 1], at[0], at[1])
                ):
                    again = True
                    break
            if again:
                repeated += 1
            else:
                if row - row_done >= 64:
                    return row_done, element, open_at, open_line, False, repeated_done
                for k in range(8):
                    rows[row, k] = at[k]
                rows[row, 8] = element
                row += 1
        else:
            if not graph_end or time != NO_TIME or not _equal(data, graph, graph_end, at[0], at[1]):
                return row_done, element, open_at, open_line, False, repeated_done
            if not _same(data, at[2], at[3], predicate):
                return row_done, element, open_at, open_line, False, repeated_done
            if times == 0:
                time = date_time(data, at[4], at[5], time_type)
            else:
                time = whole_number(data, at[4], at[5], times, time_type)
            if time == NO_TIME:
                return row_done, element, open_at, open_line, False, repeated_done
        i = end + 1
        line += 1
    return row_done, element, open_at, open_line, True, repeated_done


@kernel
def scan_triples(data, i, line, classes, string, lang, dir_lang, lines, at, rows, row, repeated):
    """Scan usual triples without blank nodes, from place ``i`` in line ``line``; ``lines`` has the record of each line.

    ``at`` has room for the eight places of a line.  ``rows`` gets, from number ``row`` on, the places of the terms and
    the number of the record for each triple; ``repeated`` counts the triples that a record has already.  Returns how
    many triples there are afterwards, and the first line that is not usual, or -1 at the end.
    """
    size = len(data) - 4
    first, record = row, -1
    while i < size:
        if data[i] == 10:
            i += 1
            line += 1
            continue
        end = _statement(data, i, classes, string, lang, dir_lang, at)
        if lines[line] != record:
            first, record = row, lines[line]
        if end < 0 or at[7] > at[6] or data[at[0]] == 95 or data[at[4]] == 95 or row - first >= 64:
            return first, line
        again = False
        for earlier in range(first, row):
            if (
                _equal(data, rows[earlier, 4], rows[earlier, 5], at[4], at[5])
                and _equal(data, rows[earlier, 2], rows[earlier, 3], at[2], at[3])
                and _equal(data, rows[earlier, 0], rows[earlier, 1], at[0], at[1])
            ):
                again = True
                break
        if again:
            repeated[record] += 1
        else:
            for k in range(8):
                rows[row, k] = at[k]
            rows[row, 8] = record
            row += 1
        i = end + 1
        line += 1
    return row, -1


@kernel
def scan_statements(data, ends, classes, string, lang, dir_lang, at, rows):
    """Put the eight places of the terms of each usual line into ``rows``; for any other line they stay as they are.

    Line n is ``data[ends[n]:ends[n + 1]]``, including its line break, and ``data`` ends with the last line.  ``at`` has
    room for the eight places of a line.
    """
    for n in range(len(rows)):
        if _statement(data, ends[n], classes, string, lang, dir_lang, at) == ends[n + 1] - 1:
            for k in range(8):
                rows[n, k] = at[k]


@kernel
def lengths(rows, count, place, ends):
    """The running total of the lengths of a term, from 0."""
    total = 0
    ends[0] = 0
    for i in range(count):
        total += rows[i, place + 1] - rows[i, place]
        ends[i + 1] = total
    return total


@kernel
def gather(data, rows, count, place, ends, out):
    """The bytes of one term of each row, one after another."""
    for i in range(count):
        to, begin = ends[i], rows[i, place]
        for k in range(ends[i + 1] - to):
            out[to + k] = data[begin + k]


# --- literals that are canonical as they stand ---

_TYPES = tuple(
    f"^^<http://www.w3.org/2001/XMLSchema#{name}>".encode()
    for name in ("integer", "decimal", "double", "dateTime", "boolean", "date", "float")
)
TYPES = np.frombuffer(b"".join(_TYPES), np.uint8)
TYPE_ENDS = np.cumsum([0, *map(len, _TYPES)])


@kernel
def mark_plain_literals(data, ends, types, type_ends, plain):
    """Mark ``data[ends[i]:ends[i + 1]]`` if it is a printable text without escapes, plain or of one of ``types``."""
    for i in range(len(plain)):
        at, end = ends[i], ends[i + 1]
        plain[i] = False
        if end - at < 2 or data[at] != 34:
            continue
        at += 1
        while at < end and data[at] >= 32 and data[at] <= 126 and data[at] != 34 and data[at] != 92:
            at += 1
        if at == end or data[at] != 34:
            continue
        at += 1
        for k in range(len(type_ends) - 1):
            first, last = type_ends[k], type_ends[k + 1]
            same = end - at == last - first
            while same and first < last:
                same = types[first] == data[at + first - type_ends[k]]
                first += 1
            plain[i] = plain[i] or same
        plain[i] = plain[i] or at == end
