"""N-Triples and N-Quads in bytes → the places of terms: loops compiled by Numba.

A line is *usual* if it is a statement that ``_statement`` can cut: a large part of the grammar, but no triple terms, no
escapes in IRIs, and only the common forms of authorities, language tags and labels.  Its terms are canonical as they
stand, except that an object may have to be respelled (``\\u`` escapes, capitals in its language tag), which is marked.
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
MESSAGE = np.frombuffer(b"@message", np.uint8)


@part
def _letter(data, i):
    """The place after a character beyond ASCII that any IRI may have, or -1; the bytes are UTF-8."""
    c = data[i]
    if c < 0xE0:
        return i + 2 if c > 0xC2 or data[i + 1] >= 0xA0 else -1
    if c < 0xEE:
        return i + 3
    d, e = data[i + 1], data[i + 2]
    if c != 0xEF or d < 0xA4 or (d == 0xB7 and 0x90 <= e <= 0xAF) or (d == 0xBF and e >= 0xB0):
        return -1
    return i + 3


@kernel
def iri_end(data, i, classes):
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
        if c >= 0xC2:
            i = _letter(data, i)
            if i < 0:
                return -1
        elif c == 37 and classes[data[i + 1]] & 16 and classes[data[i + 2]] & 16:
            i += 3
        elif c == 35 and not fragment:
            fragment = True
            i += 1
        else:
            return -1


@part
def same(data, begin, end, other):
    if end - begin != len(other):
        return False
    for k in range(len(other)):  # noqa: SIM110 (compiled)
        if data[begin + k] != other[k]:
            return False
    return True


@part
def equal(data, a, a_end, b, b_end):
    if a_end - a != b_end - b:
        return False
    for k in range(a_end - a):  # noqa: SIM110 (compiled)
        if data[a + k] != data[b + k]:
            return False
    return True


@section
def _escape(data, i, classes):
    """The place after an escape with a number, or -1; surrogates are no characters."""
    width = 4 if data[i + 1] == 117 else 8
    number = 0
    for k in range(width):
        c = data[i + 2 + k]
        if not classes[c] & 16:
            return -1
        number = number * 16 + (c - 48 if c <= 57 else (c | 32) - 87)
    if 0xD800 <= number <= 0xDFFF or number > 0x10FFFF:
        return -1
    return i + 2 + width


@section
def _language(data, i, at):
    """The place after a language tag with at most a script and a region, or -1; one with capitals is marked."""
    part = length = 0
    letters = digits = True
    while True:
        c = data[i]
        if 97 <= c <= 122 or 65 <= c <= 90:
            digits = False
            if c <= 90:
                at[8] = 1
        elif 48 <= c <= 57:
            letters = False
        else:
            if part == 0:
                if not letters or not 2 <= length <= 3:
                    return -1
                part = 1
            elif part == 1 and letters and length == 4:
                part = 2
            elif part <= 2 and ((letters and length == 2) or (digits and length == 3)):
                part = 3
            else:
                return -1
            if c != 45:
                return i
            length, letters, digits = -1, True, True
        i += 1
        length += 1


@section
def literal_end(data, i, classes, string, lang, dir_lang, at):
    """The place after a literal, or -1.  Its term ends at ``at[5]``: the datatype xsd:string is not written."""
    i += 1
    while True:
        c = data[i]
        if c == 34:
            break
        if c == 92:
            c = data[i + 1]
            # t b n r f " \
            if c == 116 or c == 98 or c == 110 or c == 114 or c == 102 or c == 34 or c == 92:
                i += 2
                continue
            at[8] = 1
            if c == 39:
                i += 2
                continue
            if c != 117 and c != 85:
                return -1
            i = _escape(data, i, classes)
            if i < 0:
                return -1
        elif c < 32 or c == 127:
            return -1
        else:
            i += 1
    i += 1
    at[5] = i
    if data[i] == 94:
        if data[i + 1] != 94 or data[i + 2] != 60:
            return -1
        begin = i + 2
        i = iri_end(data, begin, classes)
        if i < 0 or same(data, begin, i, lang) or same(data, begin, i, dir_lang):
            return -1
        if not same(data, begin, i, string):
            at[5] = i
    elif data[i] == 64:
        i = _language(data, i + 1, at)
        at[5] = i
    return i


@part
def _blank(data, i, classes):
    """The place after a blank node, or -1; a label with a point or a dash is not usual."""
    if data[i + 1] != 58:
        return -1
    i += 2
    begin = i
    while classes[data[i]] & 32:
        i += 1
    return i if i > begin and (data[i] == 32 or data[i] == 9 or data[i] == 60) else -1


@part
def _gap(data, i):
    while data[i] == 32 or data[i] == 9:
        i += 1
    return i


@part
def line_end(data, i):
    while data[i] != 10:
        i += 1
    return i


@kernel
def _statement(data, i, classes, string, lang, dir_lang, at):
    """The place of the line break after a usual line, whose terms are put into ``at``, or -1.

    ``at[6]`` and ``at[7]`` are equal if there is no graph; ``at[8]`` is 1 if the object has to be respelled.
    """
    i = _gap(data, i)
    at[0] = i
    at[8] = 0
    if data[i] == 60:
        i = iri_end(data, i, classes)
    elif data[i] == 95:
        i = _blank(data, i, classes)
    else:
        return -1
    if i < 0:
        return -1
    at[1] = i
    i = _gap(data, i)
    at[2] = i
    if data[i] != 60:
        return -1
    i = iri_end(data, i, classes)
    if i < 0:
        return -1
    at[3] = i
    i = _gap(data, i)
    at[4] = i
    if data[i] == 34:
        i = literal_end(data, i, classes, string, lang, dir_lang, at)
    else:
        if data[i] == 60:
            i = iri_end(data, i, classes)
        elif data[i] == 95:
            i = _blank(data, i, classes)
        else:
            return -1
        at[5] = i
    if i < 0:
        return -1
    i = _gap(data, i)
    at[6] = i
    at[7] = i
    if data[i] == 60 or data[i] == 95:
        i = iri_end(data, i, classes) if data[i] == 60 else _blank(data, i, classes)
        if i < 0:
            return -1
        at[7] = i
        i = _gap(data, i)
    if data[i] != 46:
        return -1
    i = _gap(data, i + 1)
    if data[i] == 35:
        i = line_end(data, i)
    return i if data[i] == 10 else -1


LINE, RESPELLED, BEGIN, END, WIDTH = 8, 9, 10, 11, 12
UNUSUAL, NOTHING = -1, -2


@kernel
def cut_lines(data, classes, string, lang, dir_lang, message, at, rows, unusual):
    """Cut all lines.  ``data`` ends with a line break and some zeros; ``at`` has room for nine numbers.

    ``rows`` gets, for every line but blank ones and comments, the eight places of its terms, the number of the line
    from 0, whether the object has to be respelled (``UNUSUAL``: the line is for another reader), and where the line
    begins and ends.  ``unusual`` gets the numbers of these rows.  A comment that may delimit ``message`` is unusual.
    Returns how many there are of both.
    """
    size = len(data) - 4
    i = line = row = others = 0
    while i < size:
        begin = i
        i = _gap(data, i)
        if data[i] == 35:
            after = _gap(data, i + 1)
            delimits = True
            for k in range(len(message)):
                if data[after + k] != message[k]:
                    delimits = False
                    break
            if not delimits:
                i = line_end(data, i)
        if data[i] != 10:
            end = _statement(data, begin, classes, string, lang, dir_lang, at)
            if end < 0:
                end = line_end(data, i)
                at[8] = UNUSUAL
                unusual[others] = row
                others += 1
            for k in range(8):
                rows[row, k] = at[k]
            rows[row, LINE] = line
            rows[row, RESPELLED] = at[8]
            rows[row, BEGIN] = begin
            rows[row, END] = end
            row += 1
            i = end
        i += 1
        line += 1
    return row, others


@kernel
def scan_statements(data, ends, classes, string, lang, dir_lang, at, rows):
    """Put the eight places of the terms of each usual line into ``rows``; for any other line they stay as they are.

    Line n is ``data[ends[n]:ends[n + 1]]``, including its line break, and ``data`` ends with the last line.  ``at`` has
    room for nine numbers.  A line whose object has to be respelled is not usual here.
    """
    for n in range(len(rows)):
        if _statement(data, ends[n], classes, string, lang, dir_lang, at) == ends[n + 1] - 1 and at[8] == 0:
            for k in range(8):
                rows[n, k] = at[k]
