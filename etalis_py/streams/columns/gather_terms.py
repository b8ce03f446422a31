"""The bytes of many terms, one after another, and which literals are canonical as they stand: compiled by Numba."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from etalis_py.numba_cache import kernel


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


def gathered(data: Any, rows: Any, place: int) -> pa.StringArray:
    """The term at one place of each row of a scan."""
    count = len(rows)
    ends = np.empty(count + 1, np.int32)
    out = np.empty(lengths(rows, count, place, ends), np.uint8)
    gather(data, rows, count, place, ends, out)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(out))
