"""Reports of matches as bytes, and back: from the engine of one process to that of another.

Each is a stream of one record batch in Arrow's format, with the instants, ends and starts of solutions and their terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from etalis_py.executors.columns.reports import TableReport
from etalis_py.kernel.batch import Report
from etalis_py.streams.columns.shared_blocks import packed, unpacked

TIMES = ("instants", "end", "start")

Packed = tuple[int, bool, bytes]
"""The number of the output, whether its solutions are in columns, and the record batch."""


def pack(reports: Sequence[Any]) -> Iterator[Packed]:
    """The reports as bytes: those in columns one by one, the others together for each output."""
    rows = []
    for report in reports:
        if isinstance(report, tuple):
            rows.append(report)
        else:
            times = [getattr(report, name) for name in TIMES]
            yield report.output, True, _bytes([*map(pa.array, times), *map(plain, report.terms)])
    for number, some in groupby(sorted(rows, key=itemgetter(0)), key=itemgetter(0)):
        yield number, False, _bytes(_columns(list(some)))


def unpack(parts: Iterable[Packed]) -> list[Any]:
    """The reports; those in rows in the order of time and output."""
    reports: list[Any] = []
    rows: list[Report] = []
    for number, in_columns, data in parts:
        batch = unpacked(data)
        times, terms = [column.to_numpy() for column in batch.columns[:3]], batch.columns[3:]
        if in_columns:
            reports.append(TableReport(number, times[0], times[1], times[2], terms))
            continue
        solutions = zip(*(times[n].tolist() for n in (1, 2)), *(column.to_pylist() for column in terms), strict=True)
        known = groupby(zip(times[0].tolist(), solutions, strict=True), key=itemgetter(0))
        rows += [(number, t, [solution for _, solution in some]) for t, some in known]
    return reports + sorted(rows, key=lambda report: (report[1], report[0]))


def plain(terms: pa.Array) -> pa.Array:
    """A column of terms without a dictionary."""
    return terms if terms.type == pa.large_string() else terms.cast(pa.large_string())


def _columns(reports: Sequence[Report]) -> list[pa.Array]:
    known = np.repeat([t for _, t, _ in reports], [len(rows) for _, _, rows in reports])
    end, start, *terms = zip(*(row for _, _, rows in reports for row in rows), strict=True)
    times = [pa.array(column, pa.int64()) for column in (known, end, start)]
    return [*times, *(pa.array(column, pa.large_string()) for column in terms)]


def _bytes(columns: Sequence[pa.Array]) -> bytes:
    data: bytes = packed(pa.RecordBatch.from_arrays(columns, [str(n) for n in range(len(columns))])).to_pybytes()
    return data
