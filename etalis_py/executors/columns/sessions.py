"""REPEAT … BY … GAP d MAXIMAL over a batch: each run once, when a silence of d has ended it.

Here every element may continue the run of its key, so a key has one open run, as long as each of its elements starts
after the one before it has ended.  Elements of a key that overlap, or end at the same time, make several runs: the
operator of rows goes on from there (``MaximalRuns``).

Cost: some steps for each element, and for each batch one for each open run.  State: the first and the last element of
each open run, and how many elements it has.

A trace of ``{?u :click ?p} REPEAT 1 OR MORE BY ?u GAP 5 s MAXIMAL``: 1, 3, 20 → [1, 8] at 8, [20, 25] at 25.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.columns.aggregation import KeepsSolutions, Reported, solutions_of, window_table
from etalis_py.executors.columns.instants import rows_by_instant, table_of_rows
from etalis_py.executors.columns.kernels.sessions import go_on
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.tables import SolutionTable
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.rows.run.maximal import MaximalRuns
from etalis_py.kernel.batch import Row


class SessionOperator(KeepsSolutions):
    """One such REPEAT.

    ``slow`` is the operator of rows, ``advance`` its function, and ``give`` hands it the open runs.  ``window`` has
    the last elements of the open runs, in order of their ends, with the columns of the first elements after their own.
    ``compared``: some rule compares the counts, so equal numbers must be one term.
    """

    def __init__(
        self,
        node: ir.Run,
        terms: Terms,
        slow: MaximalRuns,
        advance: Callable[[int, list[Row]], list[Row]],
        give: Callable[[list[Row], list[Reported]], None],
        *,
        compared: bool,
    ) -> None:
        assert node.gap is not None
        self.node, self.gap = node, node.gap.micros
        self.terms = terms
        self.compared = compared
        self.give = give
        self._slow, self._advance = slow, advance
        self._columns = node.child.columns
        self._key = [self._columns.index(name) for name in node.keys]
        self.fill([], [])

    def fill(self, rows: list[Row], reported: list[Reported]) -> None:
        """Continue with these open runs: the last element of each, then the first, then the number of elements."""
        width = len(self._columns)
        rows = sorted(rows, key=lambda x: x[0])
        first = 2 + width
        self.window = window_table([(*x[:first], *x[first + 2 : -1]) for x in rows], 2 * width, self.terms)
        numbers = np.array([(x[first], x[first + 1], x[-1]) for x in rows], np.int64).reshape(-1, 3)
        self._first = numbers[:, 0].copy(), numbers[:, 1].copy()
        self._counts = numbers[:, 2].copy()
        self.fast = True

    def rows(self) -> list[Row]:
        """The open runs."""
        first = 2 + len(self._columns)
        named = solutions_of(self.window, self.terms)
        numbers = zip(*(part.tolist() for part in (*self._first, self._counts)), strict=True)
        return [
            (*x[:first], end, start, *x[first:], count) for x, (end, start, count) in zip(named, numbers, strict=True)
        ]

    def reported(self) -> list[Reported]:
        """A run is reported once."""
        return []

    def next_due(self) -> int | None:
        """The first time at which a silence is over; that of runs in rows is known there."""
        return int(self.window.end[0]) + self.gap if len(self.window) else None

    def advance(self, child: SolutionTable, through: int) -> SolutionTable:
        """The runs that are over by ``through``, in order of time."""
        if not self.fast:
            return self._in_rows(child, through)
        width = len(self._columns)
        held = len(self.window)
        own, others = self.window.columns[:width], self.window.columns[width:]
        ends = np.concatenate([self.window.end, self._first[0], child.end])
        starts = np.concatenate([self.window.start, self._first[1], child.start])
        columns = [np.concatenate(parts) for parts in zip(own, others, child.columns, strict=True)]
        keys = Keys(len(self._key))
        matrix = np.column_stack([columns[i] for i in self._key]) if self._key else np.zeros((len(ends), 0), np.int32)
        numbers = keys.numbers(matrix, create=True)
        first, last, counts = (np.zeros(max(1, keys.count), np.int64) for _ in range(3))
        open_ = numbers[:held]
        first[open_], last[open_], counts[open_] = np.arange(held, 2 * held), np.arange(held), self._counts
        over = np.empty((len(child), 3), np.int64)
        count = go_on(ends, starts, numbers[2 * held :], self.gap, first, last, counts, over)
        if count < 0:
            self.give(self.rows(), [])
            self.fill([], [])
            self.fast = False
            return self._in_rows(child, through)
        runs = np.column_stack([first, last, counts])[counts > 0]
        runs = runs[np.argsort(ends[runs[:, 1]], kind="stable")]
        silent = ends[runs[:, 1]] + self.gap <= through
        self._keep(runs[~silent], ends, starts, columns)
        ended = np.concatenate((over[:count], runs[silent]))
        ended = ended[ended[:, 2] >= self.node.least]
        ended = ended[np.argsort(ends[ended[:, 1]], kind="stable")]
        return self._rows(ended, ends, starts, columns)

    def _keep(self, runs: np.ndarray, ends: np.ndarray, starts: np.ndarray, columns: list[np.ndarray]) -> None:
        """Remember the open runs."""
        first, last, self._counts = runs[:, 0], runs[:, 1], runs[:, 2].copy()
        both = (*(column[last] for column in columns), *(column[first] for column in columns))
        self.window = SolutionTable(ends[last], ends[last], starts[last], both)
        self._first = ends[first], starts[first]

    def _rows(
        self, ended: np.ndarray, ends: np.ndarray, starts: np.ndarray, columns: list[np.ndarray]
    ) -> SolutionTable:
        """The rows of the runs that are over: the BY variables, the aggregates, the hull with the silence."""
        first, last, counts = (np.ascontiguousarray(part) for part in ended.T)
        by_name = dict(zip(self._columns, columns, strict=True))
        shown = {name: by_name[name][last] for name in self.node.keys}
        for call in self.node.aggregates:
            if source := alg.variable_of(call.operand):
                shown[call.variable] = by_name[source][first if call.name == "FIRST" else last]
            else:
                ids = self.terms.append_integers(counts)
                shown[call.variable] = self.terms.distinguished(ids) if self.compared else ids
        end = ends[last] + self.gap
        return SolutionTable(end, end, starts[first], tuple(shown[name] for name in self.node.head))

    def _in_rows(self, child: SolutionTable, through: int) -> SolutionTable:
        """The same by the operator of rows: each instant, and each time at which a silence is over before it."""
        instants: list[int] = []
        rows: list[Row] = []

        def take(t: int, elements: list[Row]) -> None:
            given = self._advance(t, elements)
            instants.extend([t] * len(given))
            rows.extend(given)

        for t, elements in rows_by_instant(child, self.terms):
            while (due := self._slow.next()) is not None and due < t:
                take(due, [])
            take(t, elements)
        while (due := self._slow.next()) is not None and due <= through:
            take(due, [])
        return table_of_rows(instants, rows, len(self.node.head), self.terms)
