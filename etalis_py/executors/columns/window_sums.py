"""SUM and COUNT over one sliding window, for a batch: differences of running totals.

In each instant in which a solution enters, it gives the row over the solutions in the window: those with end in (t − d,
t], or the last n in canonical order.  Integers only, as long as their totals fit in int64; with any other summand the
row operator takes over, with the same window.

Cost: a few passes over the batch and the window.  State: the solutions in the window.

A trace of ``SELECT (SUM(?p) AS ?s) … WITHIN 10 s``: 1@1 → 1 [1,1]; 2@5 → 3 [1,5]; 4@12 → 6 [5,12].
"""

from __future__ import annotations

import numpy as np
from etalis_rules import algebra as alg

from etalis_py.executors.columns.aggregation import Aggregation
from etalis_py.executors.columns.kernels.parsing import INTEGER
from etalis_py.executors.columns.kernels.windows import least_in_windows
from etalis_py.executors.columns.tables import SolutionTable
from etalis_py.executors.columns.vectors import Vector

_FITS = 2**62  # half the range of int64, since the sum that is compared with it is one of doubles, and may be rounded


class WindowedOperator(Aggregation):
    """An aggregation by running totals.

    A new row ends with a new solution, so it always differs from the rows reported before.
    """

    def advance(self, child: SolutionTable) -> SolutionTable:
        """The row of each instant in which a solution entered."""
        if not len(child):
            return SolutionTable.empty(len(self.node.head))
        child = self.in_order(child)
        summands = self._summands(child) if self.fast and child.at is child.end else None
        if summands is None:
            return self.in_rows(child)
        both = joined(self.window, child)
        held = len(self.window)
        lasts = held + np.append(np.flatnonzero(np.diff(child.at)), len(child) - 1) + 1
        ends = both.end[lasts - 1]
        assert self.node.window is not None
        if self.node.window.events:
            firsts = np.maximum(lasts - self.node.window.events, 0)
        else:
            firsts = np.searchsorted(both.end, ends - self.node.window.micros, "right")
        starts = np.empty(len(lasts), np.int64)
        least_in_windows(both.start, firsts, lasts, np.empty(len(both), np.int64), starts)
        self.window = rows_from(both, int(firsts[-1]))
        values: dict[str, np.ndarray] = {}
        for call, numbers in zip(self.node.aggregates, summands, strict=True):
            totals = np.append(0, np.cumsum(numbers))
            spelled = self.terms.append_integers(totals[lasts] - totals[firsts])
            values[call.variable] = self.terms.distinguished(spelled) if self.compared else spelled
        for name, source in alg.renamed(self.node.extends).items():
            values[name] = values[source]
        unbound = np.zeros(len(lasts), np.int32)
        return SolutionTable(ends, ends, starts, tuple(values.get(name, unbound) for name in self.node.head))

    def _summands(self, child: SolutionTable) -> list[np.ndarray] | None:
        """For each aggregate the summands of window and batch; None if some are no integers, or do not fit."""
        names = self.node.child.columns
        summands = []
        for call in self.node.aggregates:
            if call.operand is None:
                summands.append(np.ones(len(self.window) + len(child), np.int64))
                continue
            operand = alg.variable_of(call.operand)
            if operand not in names:
                return None
            place = names.index(operand)
            v = Vector.of_terms(self.terms, np.concatenate([self.window.columns[place], child.columns[place]]))
            if (v.kinds != INTEGER).any() or np.abs(v.mantissas.astype(np.float64)).sum() >= _FITS:
                return None
            summands.append(v.mantissas)
        return summands


def joined(one: SolutionTable, other: SolutionTable) -> SolutionTable:
    """A window, then the solutions that enter it."""
    end = np.concatenate([one.end, other.end])
    columns = tuple(np.concatenate(parts) for parts in zip(one.columns, other.columns, strict=True))
    return SolutionTable(end, end, np.concatenate([one.start, other.start]), columns)


def rows_from(table: SolutionTable, first: int) -> SolutionTable:
    """A copy of the rows from ``first`` on."""
    end = table.end[first:].copy()
    return SolutionTable(end, end, table.start[first:].copy(), tuple(column[first:].copy() for column in table.columns))
