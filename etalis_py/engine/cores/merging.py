"""The reports of several engines for the same step, put together in the order of one engine.

Every solution is in one of them, and each has its own in order: by instant and output, and within these in canonical
order (end, start, terms).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from etalis_py.engine.cores.wire import plain
from etalis_py.executors.columns.reports import TableReport
from etalis_py.executors.rows.run.slicing import canonical_key
from etalis_py.kernel.batch import Report, Row, as_reported
from etalis_py.kernel.shapes import Shape
from etalis_py.values.time import TIMELESS_END

Key = Callable[[Row], Any] | None


def merged(shapes: Sequence[Shape], parts: Sequence[list[Any]]) -> list[Any]:
    """The reports of one step."""
    some = [reports for reports in parts if reports]
    if len(some) < 2:
        return some[0] if some else []
    every = [report for reports in some for report in reports]
    if all(type(report) is TableReport for report in every) and len({report.output for report in every}) == 1:
        return [_columns(every, order_of(shapes[every[0].output]))]
    rows = [report for reports in some for report in as_reported(reports, one_by_one=True)]
    timed = sorted((report for report in rows if not is_timeless(report)), key=_place)
    # What holds at all times is told when the other matches of the step are.
    last = [report for report in rows if is_timeless(report)]
    return [*(_joined(shapes, list(same)) for _, same in groupby(timed, key=_place)), *last]


def order_of(shape: Shape) -> Key:
    """The key of the canonical order of a query's rows."""
    output = shape.output
    return None if output.source is None else canonical_key(output.source.columns, tuple(sorted(output.variables)))


def _place(report: Report) -> tuple[int, int]:
    return report[1], report[0]


def is_timeless(report: Report) -> bool:
    """Whether its solutions hold at all times."""
    return bool(report[2][0][0] == TIMELESS_END)


def _joined(shapes: Sequence[Shape], reports: list[Report]) -> Report:
    """The rows of an output in an instant."""
    if len(reports) == 1:
        return reports[0]
    number, t, _ = reports[0]
    return number, t, sorted((row for _, _, rows in reports for row in rows), key=order_of(shapes[number]))


def _columns(reports: Sequence[TableReport], key: Key) -> TableReport:
    instants, end, start = (
        np.concatenate([getattr(report, name) for report in reports]) for name in ("instants", "end", "start")
    )
    by_column = zip(*(report.terms for report in reports), strict=True)
    terms = [pa.concat_arrays(list(map(plain, same))) for same in by_column]
    order = np.argsort(instants, kind="stable")
    parts = np.repeat(np.arange(len(reports)), list(map(len, reports)))
    for first, last in _shared(instants[order], parts[order]):
        places = order[first:last].tolist()
        rows = {n: (int(end[n]), int(start[n]), *(column[n].as_py() or "" for column in terms)) for n in places}
        order[first:last] = sorted(places, key=partial(_rank, rows, key))
    taken = pa.array(order)
    return TableReport(
        reports[0].output, instants[order], end[order], start[order], [column.take(taken) for column in terms]
    )


def _rank(rows: dict[int, Row], key: Key, n: int) -> Any:
    return rows[n] if key is None else key(rows[n])


def _shared(instants: np.ndarray, part: np.ndarray) -> list[tuple[int, int]]:
    """The stretches of rows of the instants that several parts have."""
    between = instants[1:] == instants[:-1]
    mixed = np.flatnonzero(between & (part[1:] != part[:-1]))
    shared = np.unique(instants[mixed])
    firsts, lasts = np.searchsorted(instants, shared), np.searchsorted(instants, shared, "right")
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
