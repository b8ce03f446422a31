"""SUM and COUNT over one sliding window, for a batch: differences of running totals.

In each instant in which a solution enters, it gives the row over the solutions in the window: those with end in (t − d,
t], or the last n in canonical order.  Integers only, as long as their totals fit in int64; with any other summand the
row operator takes over, with the same window.

Cost: a few passes over the batch and the window.  State: the solutions in the window.

A trace of ``SELECT (SUM(?p) AS ?s) … WITHIN 10 s``: 1@1 → 1 [1,1]; 2@5 → 3 [1,5]; 4@12 → 6 [5,12].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.columns.instants import Advance, InstantOperator
from etalis_py.executors.columns.kernels.parsing import INTEGER
from etalis_py.executors.columns.kernels.windows import least_in_windows
from etalis_py.executors.columns.tables import Table, canonical
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.columns.vectors import Vector
from etalis_py.kernel.batch import Row

_FITS = 2**62


def is_windowed(node: ir.Group) -> bool:
    """Whether this aggregation can be computed from running totals."""
    window = node.window
    if window is None or window.months or node.keys or node.background is not None:
        return False
    if node.having or node.order or node.distinct or node.limit is not None or node.offset:
        return False
    names = {call.variable for call in node.aggregates}
    if not all(isinstance(e, alg.Var) and e.name in names for _, e in node.extends):
        return False
    return all(_is_simple(call) for call in node.aggregates)


def _is_simple(call: alg.AggregateCall) -> bool:
    if call.distinct:
        return False
    counted = call.operand is None and call.name == "COUNT"
    return counted or (call.name == "SUM" and isinstance(call.operand, alg.Var))


class WindowedOperator:
    """One such aggregation; ``slow`` is the row operator, and ``give`` hands it the solutions in the window.

    ``compared``: some rule compares its results, so equal numbers must be one term.
    """

    def __init__(
        self, node: ir.Group, terms: Terms, slow: Advance, give: Callable[[list[Row]], None], *, compared: bool
    ) -> None:
        self.node = node
        self.terms = terms
        self.compared = compared
        self.slow = InstantOperator(slow, len(node.head), terms)
        self.give = give
        self.window = Table.empty(len(node.child.columns))
        self.fast = True

    def fill(self, rows: list[Row]) -> None:
        """Continue with these solutions in the window."""
        self.window = Table.empty(len(self.node.child.columns))
        self.fast = True
        if rows:
            end, start, *parts = zip(*rows, strict=True)
            ends = np.array(end, np.int64)
            columns = tuple(self.terms.intern(list(part)) for part in parts)
            self.window = Table(ends, ends, np.array(start, np.int64), columns)

    def rows(self) -> list[Row]:
        """The solutions in the window, as rows."""
        columns = [self.terms.spellings(column) for column in self.window.columns]
        return list(zip(self.window.end.tolist(), self.window.start.tolist(), *columns, strict=True))

    def advance(self, child: Table) -> Table:
        """The row of each instant in which a solution entered."""
        if not len(child):
            return Table.empty(len(self.node.head))
        child = canonical(child, self.terms, [self.node.child.columns.index(c) for c in self.node.canonical])
        summands = self._summands(child) if self.fast and child.at is child.end else None
        if summands is None:
            if self.fast:
                self.fast = False
                self.give(self.rows())
                self.window = Table.empty(len(self.node.child.columns))
            return self.slow.advance(child)
        both = _joined(self.window, child)
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
        self.window = _rows_from(both, int(firsts[-1]))
        values: dict[str, np.ndarray] = {}
        for call, numbers in zip(self.node.aggregates, summands, strict=True):
            totals = np.append(0, np.cumsum(numbers))
            spelled = self.terms.append_integers(totals[lasts] - totals[firsts])
            values[call.variable] = self.terms.distinguished(spelled) if self.compared else spelled
        for name, e in self.node.extends:
            assert isinstance(e, alg.Var)
            values[name] = values[e.name]
        unbound = np.zeros(len(lasts), np.int32)
        return Table(ends, ends, starts, tuple(values.get(name, unbound) for name in self.node.head))

    def _summands(self, child: Table) -> list[np.ndarray] | None:
        """For each aggregate the summands of window and batch; None where they are not integers that fit."""
        names = self.node.child.columns
        summands = []
        for call in self.node.aggregates:
            if call.operand is None:
                summands.append(np.ones(len(self.window) + len(child), np.int64))
                continue
            assert isinstance(call.operand, alg.Var)
            if call.operand.name not in names:
                return None
            place = names.index(call.operand.name)
            v = Vector.of_terms(self.terms, np.concatenate([self.window.columns[place], child.columns[place]]))
            if (v.kinds != INTEGER).any() or np.abs(v.mantissas.astype(np.float64)).sum() >= _FITS:
                return None
            summands.append(v.mantissas)
        return summands


def _joined(one: Table, other: Table) -> Table:
    end = np.concatenate([one.end, other.end])
    columns = tuple(np.concatenate(parts) for parts in zip(one.columns, other.columns, strict=True))
    return Table(end, end, np.concatenate([one.start, other.start]), columns)


def _rows_from(table: Table, first: int) -> Table:
    end = table.end[first:].copy()
    return Table(end, end, table.start[first:].copy(), tuple(column[first:].copy() for column in table.columns))


def window_of(snapshot: Any) -> list[Row]:
    """The solutions in the window of the one group of a snapshot of ``Running``."""
    groups = snapshot[0]
    return [tuple(row) for row in groups[0][1]] if groups else []
