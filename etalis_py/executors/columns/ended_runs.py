"""REPEAT … UNTIL {B} over a batch: the open run of a key when a B comes.

A trace of ``{?m :temp ?t} REPEAT 1 OR MORE BY ?m UNTIL {?m :batch ?b}``: temp 1, 2; batch 3 → [1, 3]; temp 4; batch 5 →
[4, 5].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from etalis_py.executors.columns.instants import rows_by_instant, table_of_rows
from etalis_py.executors.columns.kernels.open_runs import NEVER, end_runs
from etalis_py.executors.columns.open_runs import COUNT, Numbered, OpenRunOperator
from etalis_py.executors.columns.tables import SolutionTable
from etalis_py.executors.rows.run.until import EndedRuns
from etalis_py.kernel.batch import Row


class EndedRunOperator(OpenRunOperator):
    """One such REPEAT; ``ends`` is the function of rows that takes what ends runs."""

    _slow: EndedRuns

    def __init__(self, *args: Any, ends: Callable[[int, list[Row]], list[Row]], compared: bool) -> None:
        super().__init__(*args, compared=compared)
        assert self.node.until is not None
        self._ends = ends
        self._until = self.node.until.columns
        self._until_key = [self._until.index(name) for name in self.node.keys]

    def advance(self, child: SolutionTable, until: SolutionTable) -> SolutionTable:
        """The runs that are ended, in order of time."""
        if not self._is_fast():
            return self._in_rows(child, until)
        elements = self._with_open_runs(child)
        ended = self._ended_by(elements, until)
        if ended is None:
            self._leave()
            return self._in_rows(child, until)
        return ended

    def _ended_by(self, elements: Numbered, until: SolutionTable) -> SolutionTable | None:
        """The rows of the runs that these B end; None if a key has several runs, or a BY variable is unbound."""
        held, ends = elements.held, elements.ends
        of_b = until.matrix(self._until_key)
        if self._key and len(until) and not (of_b.all() and elements.numbering.rows().all()):
            return None  # an unbound term agrees with any
        first, last, counts = (np.zeros(max(1, elements.numbering.count), np.int64) for _ in range(3))
        blocked = np.full(len(counts), NEVER)
        open_, keys = elements.keys[:held], elements.keys[2 * held :]
        first[open_], last[open_], counts[open_] = np.arange(held, 2 * held), np.arange(held), self._counts
        blocked[open_] = self._ended
        goes_on = self._goes_on(elements, np.where(counts > 0, last, -1))
        times = np.searchsorted(ends[2 * held :], until.end, "right"), until.start, until.end
        over = np.empty((len(until), 6), np.int64)
        state = first, last, counts, blocked
        b_keys = elements.numbering.numbers(of_b, create=False)
        beside = np.zeros(1, np.int64)
        count = end_runs(ends, elements.starts, keys, self.gap, goes_on, *state, b_keys, *times, over, beside)
        if count < 0:
            return None
        self._slow.note(count, int(beside[0]))
        over = over[:count]
        over = over[over[:, COUNT] >= self.node.least]
        key = np.flatnonzero(counts)
        going = np.column_stack([first[key], last[key], counts[key], ends[last[key]], key])
        aggregates = self._aggregates(over, going, elements)
        chosen = until.take(over[:, -1])
        aggregates |= dict(zip(self._until, chosen.columns, strict=True))
        self._keep(going, elements, blocked[key])
        return self._rows(over, elements, aggregates)

    def _in_rows(self, child: SolutionTable, until: SolutionTable) -> SolutionTable:
        """The same by the operator of rows: of each instant the elements, then the B."""
        elements, enders = (dict(rows_by_instant(table, self.terms)) for table in (child, until))
        instants: list[int] = []
        rows: list[Row] = []
        for t in sorted(elements.keys() | enders.keys()):
            if some := elements.get(t):
                self._advance(t, some)
            given = self._ends(t, enders.get(t, []))
            instants += [t] * len(given)
            rows += given
        return table_of_rows(instants, rows, len(self.node.head), self.terms)
