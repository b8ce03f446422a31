"""Aggregates of groups over a sliding window whose solutions may stand for several matches of a chain each.

All matches that a solution of the last part completes end with it, so they enter and leave the window together: it has
one row for them, with what they amount to (``chain_sums``).  Matches that had to be listed have a row each.  The rest
is that of ``grouped``.

State: a row for each solution of the last part in the window, with three numbers and a term for each aggregate.

A trace of ``SELECT (COUNT(*) AS ?n) …`` over ``{?a :a 1} SEQ {?b :b 1} SEQ {?c :c 1}`` with WITHIN 10 s after it: a@1,
a@2 and b@3 wait; c@5 → 2 [1, 5]; c@9 → 4 [1, 9]; c@16 → 4 [1, 16], as what ended at 5 has left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from etalis_rules import algebra as alg

from etalis_py.executors.columns.aggregation import Reported
from etalis_py.executors.columns.arguments import Arguments, Ranks, Summands, Unfit, ranks_of
from etalis_py.executors.columns.frames import Bindings
from etalis_py.executors.columns.grouped import GroupedOperator
from etalis_py.executors.columns.kernels.parsing import INTEGER
from etalis_py.executors.columns.running_aggregate import EXTREME
from etalis_py.executors.columns.tables import SolutionTable, SummedTable
from etalis_py.executors.columns.window_sums import joined
from etalis_py.kernel.batch import Row
from etalis_py.values.functions import unpack_int

_FITS = 2.0**62


@dataclass(frozen=True, slots=True)
class Amounts:
    """For how many matches each row of a window stands, 0 for a plain solution, and what they amount to.

    The others have a line for each aggregate, as in ``SummedTable``.
    """

    weights: np.ndarray
    given: np.ndarray
    summands: np.ndarray
    extremes: np.ndarray

    @classmethod
    def none(cls, rows: int, aggregates: int) -> Amounts:
        """Those of plain solutions."""
        numbers = np.zeros((aggregates, rows), np.int64)
        return cls(np.zeros(rows, np.int64), numbers, numbers.copy(), np.zeros((aggregates, rows), np.int32))

    def then(self, child: SolutionTable) -> Amounts:
        """Those of a window, then of the solutions that enter it."""
        aggregates = len(self.given)
        if isinstance(child, SummedTable):
            new = Amounts(child.weights, child.given, child.summands, child.extremes)
        else:
            new = Amounts.none(len(child), aggregates)
        return Amounts(
            np.concatenate([self.weights, new.weights]),
            np.concatenate([self.given, new.given], axis=1),
            np.concatenate([self.summands, new.summands], axis=1),
            np.concatenate([self.extremes, new.extremes], axis=1),
        )

    def last(self, rows: int) -> Amounts:
        """Those of the last rows."""
        first = len(self.weights) - rows
        lines = (self.given[:, first:], self.summands[:, first:], self.extremes[:, first:])
        return Amounts(self.weights[first:].copy(), *(line.copy() for line in lines))


class SummedGroups(GroupedOperator):
    """One such aggregation over a window of time."""

    def fill(self, rows: list[Row], reported: list[Reported]) -> None:
        """Continue with these solutions; those that stand for several have their number and amounts at the end."""
        width = 2 + len(self.node.child.columns)
        super().fill([x[:width] for x in rows], reported)
        try:
            self._amounts = self._together = self._read([x[width:] for x in rows])
        except Unfit:
            self.fill([], [])
            self.fast = False

    def _read(self, stored: list[Row]) -> Amounts:
        """The amounts that solutions have at the end; fails if they do not fit."""
        read = Amounts.none(len(stored), len(self.node.aggregates))
        for i, some in enumerate(stored):
            if not some:
                continue
            weight, amounts = unpack_int(some[0]), cast("Sequence[tuple[int, int, str]]", some[1])
            if weight >= _FITS:
                raise Unfit
            read.weights[i] = weight
            for a, (given, packed, term) in enumerate(amounts):
                whole = unpack_int(packed)
                if abs(whole) >= _FITS:
                    raise Unfit
                read.given[a, i], read.summands[a, i] = given, whole
                read.extremes[a, i] = self.terms.intern([term])[0] if term else 0
        return read

    def rows(self) -> list[Row]:
        """The same as ``fill`` takes."""
        amounts, weights = self._amounts, self._amounts.weights.tolist()
        terms = [self.terms.spellings(line) for line in amounts.extremes]
        lines = [
            list(zip(given, whole, term, strict=True))
            for given, whole, term in zip(amounts.given.tolist(), amounts.summands.tolist(), terms, strict=True)
        ]
        by_row: list[Any] = [list(map(list, of_row)) for of_row in zip(*lines, strict=True)] or [[]] * len(weights)
        return [
            (*x, weight, some) if weight else x for x, weight, some in zip(super().rows(), weights, by_row, strict=True)
        ]

    def mark_terms(self, marked: np.ndarray) -> None:
        super().mark_terms(marked)
        marked[self._amounts.extremes.ravel()] = True

    def renumber(self, renumbered: np.ndarray) -> None:
        super().renumber(renumbered)
        amounts = self._amounts
        self._amounts = Amounts(amounts.weights, amounts.given, amounts.summands, renumbered[amounts.extremes])

    # --- a batch ---

    def takes(self, child: SummedTable) -> bool:
        """Whether these rows, which stand for several solutions, can be added here; if not, solutions must come."""
        both = joined(self.window, child)
        self._together = self._amounts.then(child)
        frame = Bindings.of(self.terms, both, self.node.child.columns)
        try:
            for call in self.node.aggregates:
                self._arguments(call, frame)
        except Unfit:
            return False
        return self.fast

    def in_order(self, child: SolutionTable) -> SolutionTable:
        """As they are: no aggregate here depends on the order of simultaneous solutions."""
        return child

    def advance(self, child: SolutionTable) -> SolutionTable:
        rows = super().advance(child)
        if len(child) and self.fast:
            self._amounts = self._together.last(len(self.window))
        return rows

    def _answers(self, child: SolutionTable) -> tuple[SolutionTable, np.ndarray, SolutionTable]:
        self._together = self._amounts.then(child)
        return super()._answers(child)

    def _arguments(self, call: alg.AggregateCall, frame: Bindings) -> Arguments:
        """Those of the plain solutions, and the amounts of the others."""
        amounts, a = self._together, self.node.aggregates.index(call)
        if not amounts.weights.any():
            return super()._arguments(call, frame)
        plain = np.flatnonzero(amounts.weights == 0)
        own = super()._arguments(call, frame.keep(plain))
        if own.summands.kind != INTEGER and own.given.any():
            raise Unfit
        given, summands = amounts.given[a].copy(), amounts.summands[a].copy()
        given[plain], summands[plain] = own.given, own.summands.numbers
        missing = amounts.weights - amounts.given[a]
        missing[plain] = ~own.given
        if max(np.abs(part.astype(np.float64)).sum() for part in (given, missing, summands)) >= _FITS:
            raise Unfit
        ranks = Ranks(np.zeros(len(given), np.int64))
        if call.name in EXTREME:
            ids = amounts.extremes[a].copy()
            assert call.operand is not None
            ids[plain] = frame.bound(call.operand)[plain]
            ranks = ranks_of(self.terms, ids, call.name == "MAX")
        return Arguments(given, Summands(summands), ranks, None, missing=missing)
