"""Writes the text behind each match id of a whole batch; ``kernel.hashing`` then hashes them (``kernel.match_id``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from etalis_py.kernel.byte_words import copy_bytes, same_bytes, write_number
from etalis_py.kernel.hashing import fixed
from etalis_py.numba_cache import kernel, section

_NUMBERS = 3 * 20 + 2
"""The most bytes of an interval and an ordinal: three numbers of up to 20 characters, and two spaces."""
_ONE = np.uint64(1)


def texts_of_ids(columns: Sequence[Any], starts: Any, ends: Any, instants: Any) -> pa.LargeStringArray:
    """For each match its terms, one per line, and "start end ordinal" (from 0, among equal matches of an instant).

    ``columns`` are spellings, null where unbound, ``starts``, ``ends`` and ``instants`` numbers (int64).  Equal matches
    are neighbours.
    """
    size, width = len(starts), len(columns)
    plain = [pc.fill_null(c, "") if c.null_count else c for c in (x.cast(pa.large_string()) for x in columns)]
    spelled = pa.concat_arrays(plain) if plain else pa.array([], pa.large_string())
    _, places, data = spelled.buffers()
    begins = np.frombuffer(places, np.int64)[spelled.offset : spelled.offset + width * size + 1]
    room = int(begins[-1] - begins[0]) + size * (width + _NUMBERS)
    texts, offsets = np.empty(room, np.uint8), np.zeros(size + 1, np.int64)
    bytes_ = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    start, end, instant = (fixed(np.ascontiguousarray(column, np.int64)) for column in (starts, ends, instants))
    digits = np.empty(20, np.uint8)
    _compose(fixed(bytes_), fixed(begins), width, start, end, instant, digits, texts, offsets)
    return pa.LargeStringArray.from_buffers(size, pa.py_buffer(offsets), pa.py_buffer(texts[: offsets[size]]))


@kernel
def _compose(data, begins, width, starts, ends, instants, digits, texts, offsets):
    """Write all texts; ``begins`` are the places of the terms, column by column."""
    rows = len(starts)
    at, ordinal = np.uint64(0), 0
    for n in range(rows):
        again = _is_again(data, begins, width, starts, ends, instants, n)
        ordinal = ordinal + 1 if again else 0
        for k in range(width):
            place = np.uint64(k * rows + n)
            begin = np.uint64(begins[place])
            length = np.uint64(begins[place + _ONE]) - begin
            copy_bytes(data, begin, texts, at, length)
            at += length
            texts[at] = 10
            at += _ONE
        at = write_number(starts[n], digits, texts, at)
        texts[at] = 32
        at = write_number(ends[n], digits, texts, at + _ONE)
        texts[at] = 32
        at = write_number(ordinal, digits, texts, at + _ONE)
        offsets[n + 1] = at


@section
def _is_again(data, begins, width, starts, ends, instants, n):
    """Whether a match equals the one before, and was known in the same instant."""
    if n == 0 or instants[n] != instants[n - 1] or starts[n] != starts[n - 1] or ends[n] != ends[n - 1]:
        return False
    for k in range(width):
        place = np.uint64(k * len(starts) + n)
        begin, before = np.uint64(begins[place]), np.uint64(begins[place - _ONE])
        length = np.uint64(begins[place + _ONE]) - begin
        if begin - before != length or not same_bytes(data, before, data, begin, length):
            return False
    return True


__all__ = ["texts_of_ids"]
