"""Texts of triples, in N-Triples or short Turtle → the pieces that canonical terms are made of: compiled by Numba.

A text is *usual* if it consists of absolute IRIs, names with a known prefix, ``a``, numbers, booleans and literals in
double quotes (as far as ``scanning`` takes them), with ``;`` and ``,``.  Names are letters, digits, ``_`` and ``-``.

A term is written as an opening, a piece of the text, and an ending, the latter two by the number of its *form*.  An
object has a second piece, for a datatype with a prefix.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from etalis_rules.terms import RDF, XSD

from etalis_py.events.statement_lines import parse_line
from etalis_py.numba_cache import kernel, part, section
from etalis_py.streams.columns.flat_form import bytes_of
from etalis_py.streams.columns.gather_terms import respelled
from etalis_py.streams.columns.lines import CONSTANTS
from etalis_py.streams.columns.scanning import iri_end, line_end, literal_end

PLAIN, INTEGER, DECIMAL, DOUBLE, BOOLEAN, TYPE, NAMES = 0, 1, 2, 3, 4, 5, 6
"""Forms of terms; those of names with a prefix are in pairs from NAMES on: a term, and a datatype."""

SUBJECT, PREDICATE, OBJECT, DATATYPE, RECORD, SPELLED, PIECES = 0, 3, 6, 9, 12, 13, 14
"""Columns: begin, end and form of each piece; the number of the text; whether the object has to be respelled."""


@part
def _space(data, i, end):
    """The place after white space and comments."""
    while i < end:
        c = data[i]
        if c == 35:
            i = line_end(data, i)
        elif c != 32 and c != 9 and c != 10 and c != 13:
            break
        else:
            i += 1
    return min(i, end)


@part
def _ends(data, i, end):
    """Whether a name or a number may end here: before white space, ``,`` or ``;``, or the end of a statement."""
    if i >= end:
        return True
    c = data[i]
    if c == 46:
        return i + 1 >= end or data[i + 1] == 32 or data[i + 1] == 9 or data[i + 1] == 10 or data[i + 1] == 13
    return c == 32 or c == 9 or c == 10 or c == 13 or c == 44 or c == 59


@section
def _name(data, i, end, classes, labels, label_ends, put):
    """The place after a name with a known prefix, or -1; ``put`` gets where its local part begins and its prefix."""
    begin = i
    while classes[data[i]] & 32:
        i += 1
    if data[i] != 58:
        return -1
    prefix = -1
    for k in range(len(label_ends) - 1):
        if label_ends[k + 1] - label_ends[k] == i - begin:
            equals = True
            for j in range(i - begin):
                if data[begin + j] != labels[label_ends[k] + j]:
                    equals = False
                    break
            if equals:
                prefix = k
                break
    i += 1
    put[0], put[1] = i, prefix
    first = i
    while classes[data[i]] & 32 or data[i] == 45:
        i += 1
    if prefix < 0 or i == first or data[first] == 45 or i > end or not _ends(data, i, end):
        return -1
    return i


@section
def _number(data, i, end, put):
    """The place after a number, or -1; ``put`` gets its form."""
    if data[i] == 43 or data[i] == 45:
        i += 1
    begin = i
    while 48 <= data[i] <= 57:
        i += 1
    whole = i - begin
    form = INTEGER
    if data[i] == 46 and 48 <= data[i + 1] <= 57:
        form = DECIMAL
        i += 1
        while 48 <= data[i] <= 57:
            i += 1
    elif not whole:
        return -1
    if data[i] == 69 or data[i] == 101:
        form = DOUBLE
        i += 1
        if data[i] == 43 or data[i] == 45:
            i += 1
        begin = i
        while 48 <= data[i] <= 57:
            i += 1
        if i == begin:
            return -1
    put[1] = form
    return i if i <= end and _ends(data, i, end) else -1


@part
def _word(data, i, end, word):
    """The place after a word, or -1."""
    for k in range(len(word)):
        if data[i + k] != word[k]:
            return -1
    i += len(word)
    return i if i <= end and _ends(data, i, end) else -1


@part
def _spells(data, begin, end, affixes, opening, opened, other):
    """Whether a datatype with a prefix is ``other``; its opening begins with ``^^``."""
    space = opened - opening - 2
    if space + end - begin + 1 != len(other):
        return False
    for k in range(space):
        if affixes[opening + 2 + k] != other[k]:
            return False
    for k in range(end - begin):  # noqa: SIM110 (compiled)
        if data[begin + k] != other[space + k]:
            return False
    return True


@section
def _term(
    data, i, end, classes, string, lang, dir_lang, labels, label_ends, affixes, openings, true, false, role, at, put,
    rows, row,
):  # fmt: skip
    """The place after a term, or -1; its pieces are put into a row, from column ``role`` on."""
    c = data[i]
    begin, last, form = i, i, PLAIN
    if c == 60:
        i = iri_end(data, i, classes)
        last = i
    elif c == 34 and role == OBJECT:
        at[5], at[8] = begin, 0
        i = literal_end(data, i, classes, string, lang, dir_lang, at)
        last = at[5]
        if i < 0 and last > begin and data[last] == 94 and data[last + 1] == 94 and data[last + 2] != 60:
            i = _name(data, last + 2, end, classes, labels, label_ends, put)
            if i >= 0:
                first, form = put[0], NAMES + 2 * put[1] + 1
                opening, opened = openings[form], openings[form + 1]
                if _spells(data, first, i, affixes, opening, opened, lang) or _spells(
                    data, first, i, affixes, opening, opened, dir_lang
                ):
                    return -1
                if not _spells(data, first, i, affixes, opening, opened, string):
                    rows[row, DATATYPE], rows[row, DATATYPE + 1], rows[row, DATATYPE + 2] = first, i, form
                form = PLAIN
        rows[row, SPELLED] = at[8]
    elif role == OBJECT and (48 <= c <= 57 or c == 43 or c == 45 or c == 46):
        i = _number(data, i, end, put)
        last, form = i, put[1]
    else:
        i = -1
        if role == OBJECT and c == 116:
            i = _word(data, begin, end, true)
            form = BOOLEAN
        elif role == OBJECT and c == 102:
            i = _word(data, begin, end, false)
            form = BOOLEAN
        elif role == PREDICATE and c == 97:
            following = data[begin + 1]
            if following == 32 or following == 9 or following == 10 or following == 13:
                i = begin + 1
                form = TYPE
        last = begin if form == TYPE else i
        if i < 0:
            i = _name(data, begin, end, classes, labels, label_ends, put)
            begin, last, form = put[0], i, NAMES + 2 * put[1]
    if i < 0 or i > end:
        return -1
    rows[row, role], rows[row, role + 1], rows[row, role + 2] = begin, last, form
    return i


@kernel
def scan(
    data, starts, odd, classes, string, lang, dir_lang, labels, label_ends, affixes, openings, true, false, at, put,
    rows,
):  # fmt: skip
    """Scan the texts ``data[starts[n]:starts[n + 1] - 1]``, each of which is followed by a line break.

    ``rows`` gets the pieces of each triple.  Texts that are not usual are marked ``odd``, and those marked already are
    left out.  Returns how many triples there are, or -1 if there is no room for all.
    """
    row = 0
    for n in range(len(odd)):
        if odd[n]:
            continue
        i, end, first = starts[n], starts[n + 1] - 1, row
        good = True
        while good:
            i = _space(data, i, end)
            if i >= end:
                break
            good = False
            role = SUBJECT
            while True:
                if row >= len(rows):
                    return -1
                if role == OBJECT:
                    rows[row, DATATYPE] = rows[row, DATATYPE + 1] = rows[row, DATATYPE + 2] = rows[row, SPELLED] = 0
                i = _term(
                    data, i, end, classes, string, lang, dir_lang, labels, label_ends, affixes, openings, true, false,
                    role, at, put, rows, row,
                )  # fmt: skip
                if i < 0:
                    break
                i = _space(data, i, end)
                if i >= end:
                    break
                if role != OBJECT:
                    role += 3
                    continue
                rows[row, RECORD] = n
                row += 1
                c = data[i]
                i += 1
                if c == 46:
                    good = True
                    break
                if c != 44 and c != 59:
                    break
                if row >= len(rows):
                    return -1
                for k in range(OBJECT):
                    rows[row, k] = rows[row - 1, k]
                role = OBJECT if c == 44 else PREDICATE
                i = _space(data, i, end)
                if i >= end:
                    break
        if not good:
            odd[n] = True
            row = first
    return row


@kernel
def lengths(rows, place, pieces, openings, endings, ends):
    """The running total of the lengths of terms made of ``pieces`` pieces from column ``place`` on."""
    total = 0
    ends[0] = 0
    for r in range(len(rows)):
        for k in range(place, place + 3 * pieces, 3):
            form = rows[r, k + 2]
            total += rows[r, k + 1] - rows[r, k]
            total += openings[form + 1] - openings[form] + endings[form + 1] - endings[form]
        ends[r + 1] = total
    return total


@kernel
def write(data, rows, place, pieces, affixes, openings, endings, out):
    """Write terms, one after another."""
    to = 0
    for r in range(len(rows)):
        for k in range(place, place + 3 * pieces, 3):
            form = rows[r, k + 2]
            for j in range(openings[form], openings[form + 1]):
                out[to] = affixes[j]
                to += 1
            for j in range(rows[r, k], rows[r, k + 1]):
                out[to] = data[j]
                to += 1
            for j in range(endings[form], endings[form + 1]):
                out[to] = affixes[j]
                to += 1


@part
def _hash(data, begin, end, mixed):
    for k in range(begin, end):
        mixed = (mixed ^ data[k]) * 1099511628211 & 0x7FFFFFFFFFFFFFF
    return mixed ^ (mixed >> 29)


@part
def _same(ends, data, a, b):
    if ends[a + 1] - ends[a] != ends[b + 1] - ends[b]:
        return False
    for k in range(ends[a + 1] - ends[a]):  # noqa: SIM110 (compiled)
        if data[ends[a] + k] != data[ends[b] + k]:
            return False
    return True


@kernel
def mark_repeated(record, s_ends, p_ends, o_ends, s, p, o, slots, again):
    """Mark the triples that an earlier one of the same record equals; ``slots`` is an empty table with room for the
    largest record, and is emptied again.
    """
    first = 0
    while first < len(record):
        last = first + 1
        while last < len(record) and record[last] == record[first]:
            last += 1
        if last - first > 1:
            size = 2
            while size < 2 * (last - first):
                size *= 2
            for r in range(first, last):
                slot = _hash(s, s_ends[r], s_ends[r + 1], 14695981039346656)
                slot = _hash(p, p_ends[r], p_ends[r + 1], slot)
                slot = _hash(o, o_ends[r], o_ends[r + 1], slot) & (size - 1)
                while slots[slot]:
                    other = slots[slot] - 1
                    if _same(o_ends, o, r, other) and _same(s_ends, s, r, other) and _same(p_ends, p, r, other):
                        again[r] = True
                        break
                    slot = (slot + 1) & (size - 1)
                if not again[r]:
                    slots[slot] = r + 1
            for k in range(size):
                slots[k] = 0
        first = last


# --- in Python ---

_TRUE, _FALSE = (np.frombuffer(word, np.uint8) for word in (b"true", b"false"))
_TAIL = b"\n" + bytes(16)
_SHORTEST = 8  # bytes of a triple; there may be shorter ones


@dataclass(frozen=True, slots=True)
class Forms:
    """The prefixes that are known, and how terms begin and end; ``known`` is False where Turtle cannot be read."""

    labels: Any
    label_ends: Any
    affixes: Any
    openings: Any
    endings: Any
    known: bool


def forms_of(prefixes: Mapping[str, str], known: bool) -> Forms:
    """The forms for some prefixes; names with a namespace of an unusual form are left to the parser of Turtle."""
    usual = {label: space for label, space in prefixes.items() if _usual(label, space)}
    numbers = (f'"^^<{XSD}{name}>' for name in ("integer", "decimal", "double", "boolean"))
    pairs = [("", ""), *(('"', ending) for ending in numbers), (f"<{RDF}type>", "")]
    for space in usual.values():
        pairs += [(f"<{space}", ">"), (f"^^<{space}", ">")]
    opening, ending = ([text.encode() for text in texts] for texts in zip(*pairs, strict=True))
    openings = np.cumsum([0, *map(len, opening)])
    endings = np.cumsum([openings[-1], *map(len, ending)])
    labels = [label.encode() for label in usual]
    return Forms(
        np.frombuffer(b"".join((*labels, b"\0")), np.uint8),
        np.cumsum([0, *map(len, labels)]),
        np.frombuffer(b"".join((*opening, *ending)), np.uint8),
        openings,
        endings,
        known,
    )


def _usual(label: str, space: str) -> bool:
    """Whether a namespace with any name behind it is an IRI."""
    if not re.fullmatch(r"(?:[A-Za-z][A-Za-z0-9_]*)?", label):
        return False
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:(?://[A-Za-z0-9.-]+(?:/[!-~]*)?[/#]|[^/][!-~]*[/#:]|)", space):
        return False
    try:
        return parse_line(f"<urn:s> <urn:p> <{space}a> .")[2] == f"<{space}a>"
    except (SyntaxError, ValueError):
        return False


@dataclass(slots=True)
class TurtleTriples:
    """The triples of usual texts: terms in canonical spelling, and the number of the text.  ``repeated`` counts those
    that were left out of each text because it has them already; ``usual`` says which texts are.
    """

    terms: list[pa.StringArray]
    record: Any
    repeated: Any
    usual: Any


def triples_of(texts: Sequence[str], odd: Any, forms: Forms) -> TurtleTriples:
    """The triples of texts, but those that are ``odd``."""
    whole = "\n".join(texts)
    data = np.frombuffer(b"".join((whole.encode(), _TAIL)), np.uint8)
    sizes = map(len, texts) if whole.isascii() else (len(text.encode()) for text in texts)
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(sizes, np.int64, len(texts)) + 1, out=starts[1:])
    odd = odd.copy() if forms.known else np.ones(len(texts), np.bool_)
    scratch = np.empty(9, np.int64), np.empty(2, np.int64)
    before, count, room = odd, -1, len(data) // _SHORTEST + 16
    while count < 0:
        odd, rows = before.copy(), np.empty((room, PIECES), np.int64)
        known = forms.labels, forms.label_ends, forms.affixes, forms.openings
        count = scan(data, starts, odd, *CONSTANTS, *known, _TRUE, _FALSE, *scratch, rows)
        room *= 4
    rows = rows[:count]
    terms = [_written(data, rows, place, forms) for place in (SUBJECT, PREDICATE, OBJECT)]
    marked = rows[:, SPELLED] == 1
    if marked.any():
        mask = pa.array(marked)
        terms[2] = pc.replace_with_mask(terms[2], mask, respelled(terms[2].filter(mask)))
    record = np.ascontiguousarray(rows[:, RECORD])
    repeated = np.zeros(len(texts), np.int64)
    if count > 1 and (record[1:] == record[:-1]).any():
        again = np.zeros(count, np.bool_)
        (s, s_ends), (p, p_ends), (o, o_ends) = map(bytes_of, terms)
        slots = np.zeros(1 << (2 * int(np.bincount(record).max()) + 16).bit_length(), np.int64)
        mark_repeated(record, s_ends, p_ends, o_ends, s, p, o, slots, again)
        if again.any():
            np.add.at(repeated, record[again], 1)
            kept = pa.array(~again)
            terms, record = [term.filter(kept) for term in terms], record[~again]
    return TurtleTriples(terms, record, repeated, ~odd)


def _written(data: Any, rows: Any, place: int, forms: Forms) -> pa.StringArray:
    """The terms in one position, in canonical spelling."""
    pieces, affixes = 2 if place == OBJECT else 1, (forms.openings, forms.endings)
    ends = np.empty(len(rows) + 1, np.int32)
    out = np.empty(lengths(rows, place, pieces, *affixes, ends), np.uint8)
    write(data, rows, place, pieces, forms.affixes, *affixes, out)
    return pa.StringArray.from_buffers(len(rows), pa.py_buffer(ends), pa.py_buffer(out))
