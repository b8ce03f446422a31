"""REPEAT … MAXIMAL over a batch: each run once, when a silence or the next element has ended it.

A trace of ``{?u :click ?p} REPEAT 1 OR MORE BY ?u GAP 5 s MAXIMAL``: 1, 3, 20 → [1, 8] at 8, [20, 25] at 25.
"""

from __future__ import annotations

import numpy as np

from etalis_py.executors.columns.instants import rows_by_instant, table_of_rows
from etalis_py.executors.columns.kernels.open_runs import NEVER, go_on
from etalis_py.executors.columns.open_runs import COUNT, END, Numbered, OpenRunOperator
from etalis_py.executors.columns.tables import SolutionTable
from etalis_py.executors.rows.run.maximal import MaximalRuns
from etalis_py.kernel.batch import Row


class MaximalRunOperator(OpenRunOperator):
    """One such REPEAT; a silence ends a run without an event."""

    _slow: MaximalRuns

    def next_due(self) -> int | None:
        """The first time at which a silence is over; that of runs in rows is known there."""
        return int(self.window.end[0]) + self.gap if len(self.window) and self.node.gap is not None else None

    def advance(self, child: SolutionTable, through: int) -> SolutionTable:
        """The runs that are over by ``through``, in order of time."""
        if not self._is_fast():
            return self._in_rows(child, through)
        elements = self._with_open_runs(child)
        runs = self._continued(elements)
        if runs is None:
            self._leave()
            return self._in_rows(child, through)
        over, going = runs
        silent = going[:, END] <= through
        ended = np.concatenate((over, going[silent]))
        ended = ended[ended[:, COUNT] >= self.node.least]
        ended = ended[np.argsort(ended[:, END], kind="stable")]
        aggregates = self._aggregates(ended, going[~silent], elements)
        self._keep(going[~silent], elements, np.full(np.count_nonzero(~silent), NEVER))
        return self._rows(ended, elements, aggregates)

    def _continued(self, elements: Numbered) -> tuple[np.ndarray, np.ndarray] | None:
        """The runs that an element of the batch ends, and those that go on, by the ends of the silence after them.

        None if a key has several runs.
        """
        held, ends = elements.held, elements.ends
        first, last, counts = (np.zeros(max(1, elements.numbering.count), np.int64) for _ in range(3))
        open_, keys = elements.keys[:held], elements.keys[2 * held :]
        first[open_], last[open_], counts[open_] = np.arange(held, 2 * held), np.arange(held), self._counts
        over = np.empty((len(keys), 5), np.int64)
        goes_on = self._goes_on(elements, np.where(counts > 0, last, -1))
        count = go_on(ends, elements.starts, keys, self.gap, goes_on, first, last, counts, over)
        if count < 0:
            return None
        key = np.flatnonzero(counts)
        going = np.column_stack([first[key], last[key], counts[key], ends[last[key]] + self.gap, key])
        return over[:count], going[np.argsort(going[:, END], kind="stable")]

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
