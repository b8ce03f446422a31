"""Events in columns that come out of order: what ``Position.ordered`` does with rows, for many at a time.

Only the events that still wait at the end of a batch become rows; those are few where the lateness is short beside the
time that a batch spans.
"""

from __future__ import annotations

import heapq

import numpy as np

from etalis_py.events import Event
from etalis_py.kernel.batch import Batch, InColumns, concat_columns, first_rows, taken
from etalis_py.kernel.position import Position


def in_order_of_time(at: Position, columns: InColumns, lateness: int) -> tuple[InColumns, list[Event]] | None:
    """Put events into the lateness buffer; returns those to take now, in order, and those that are too late.

    None, and nothing is done, if rows are better: more than half of the events would wait, one is invalid, or one that
    waits has no triple.
    """
    firsts = first_rows(columns)
    row_ends = np.asarray(columns.end)
    ends = row_ends[firsts]
    newest = np.maximum.accumulate(np.concatenate(([at.newest], ends)))
    late = (ends + lateness < newest[:-1]) | (ends < at.now) | (ends <= at.closed)
    ready = ~late & (ends + lateness < newest[-1])
    waiting = ~late & ~ready
    invalid = bool((np.asarray(columns.start) > row_ends).any())
    if invalid or 2 * waiting.sum() > len(ends) or not all(event.triples for *_, event in at.buffer):
        return None
    row_event = np.repeat(np.arange(len(ends)), np.diff(firsts, append=len(row_ends)))

    def events(chosen: np.ndarray) -> list[Event]:
        return list(Batch(None, at.now, taken(columns, np.flatnonzero(chosen[row_event]))).rows)

    arrivals = at.arrivals + np.cumsum(~late)
    come: list[Event] = []
    while at.buffer and at.buffer[0][0] + lateness < newest[-1]:
        come.append(heapq.heappop(at.buffer)[2])
    at.buffer += zip(ends[waiting].tolist(), arrivals[waiting].tolist(), events(waiting), strict=True)
    heapq.heapify(at.buffer)
    at.arrivals, at.newest = int(arrivals[-1]), int(newest[-1])
    rows = np.flatnonzero(ready[row_event])
    in_time = taken(columns, rows[np.argsort(row_ends[rows], kind="stable")])
    if come:  # they arrived before
        both = concat_columns(Batch(come, at.now).columns, in_time.flat)
        in_time = taken(both, np.argsort(both.end, kind="stable"))
    return in_time, events(late)
