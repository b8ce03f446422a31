"""What the matches of a chain amount to, without making them: one row for each solution of the last part.

For a solution of the last part, the goals of each part within the window are gone through once, from the first part on
(``kernels.chaining``).  Sums are of integers that fit in int64; extremes are compared by ``extremes.TermOrder``.  Where
that is not enough, the chain lists its matches.

Cost: for each solution of the last part, some nanoseconds for each goal with its key in the window; without a window,
for each batch, some nanoseconds for each goal.  State: none but the goals.

A trace of ``SELECT (COUNT(*) AS ?n) …`` over ``{?a :a 1} SEQ {?b :b 1} SEQ {?c :c 1}`` within 10: a@1, a@2, b@3 and b@4
wait; c@5 gives one row that counts for four matches, [1, 5].
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np
from etalis_rules import program as ir

from etalis_py.executors.columns.extremes import TermOrder, TooMany
from etalis_py.executors.columns.kernels import chaining as k
from etalis_py.executors.columns.kernels.joining import UNBOUNDED
from etalis_py.executors.columns.kernels.ordering import distinct_numbers
from etalis_py.executors.columns.store import ColumnGoalStore
from etalis_py.executors.columns.tables import SolutionTable, SummedTable
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.rows.generate.summed_chains import EXTREME, SummedChain, places_of

_FITS = 2.0**62
FEW = 6
"""So many matches for each solution of the last part are listed faster than summed up."""
_PAIRED = 16
"""The pairs of goals of several parts are about so many times the matches, as not all are in sequence."""
_AT_ONCE = 1 << 16
"""Solutions of the last part are taken in portions that reach about this many goals of a part."""
_NO_KINDS, _NO_VALUES = np.zeros(0, np.int8), np.zeros(0, np.int64)
Sums = tuple[np.ndarray, np.ndarray]
"""Lines of numbers, and of the doubles that bound them (``kernels.chaining``)."""

Walks = tuple[np.ndarray, np.ndarray, np.ndarray, list[np.ndarray]]
"""A solution that has the key of each walk, the walk of each solution, the end of each walk's window, and for each part
the range of the goals that a walk reaches."""


class Reader(Protocol):
    """An aggregation that takes sums in place of solutions."""

    @property
    def fast(self) -> bool:
        """Whether it takes any at all."""
        ...

    def takes(self, child: SummedTable) -> bool:
        """Whether it takes these."""
        ...


class ChainSums:
    """The sums of one chain; ``reader`` is the aggregation that reads them, if they are not just solutions."""

    def __init__(
        self, node: ir.Chain, plan: SummedChain, calls: Sequence[str], terms: Terms, reader: Reader | None
    ) -> None:
        """``calls`` are the names of the aggregates."""
        self.node = node
        self.plan = plan
        self.terms = terms
        self.few = True
        """Whether there were few matches the last time, or no time, so that it is worth trying to list them."""
        self._reader = reader
        self._calls = tuple(calls)
        places = list(dict.fromkeys(place for place in plan.arguments if place is not None))
        self._numbers = [None if place is None else places.index(place) for place in plan.arguments]
        self._variables = np.zeros((len(places), 4), np.int64)
        for call, v in zip(self._calls, self._numbers, strict=True):
            if v is not None:
                self._variables[v, [k.PLACE, k.COLUMN]] = places[v]
                self._variables[v, k.SUMMED] |= call in ("SUM", "AVG")
                self._variables[v, k.ORDERED] |= call in EXTREME

    def table(
        self, last: SolutionTable, goals: Sequence[ColumnGoalStore], keys: Sequence[np.ndarray], bound: int
    ) -> SolutionTable | None:
        """A row for each solution of the last part that completes a match; None if the matches have to be listed.

        ``keys`` has, for each part before it, the numbers of its keys there.
        """
        if self._reader is not None and not self._reader.fast:
            return None
        walks = self._walked(last, goals, keys, bound)
        sums = None if self._lists(walks) else self._sums(last, goals, bound, walks)
        if sums is None or not (sums[1] < _FITS).all():
            return None
        self.note(len(last), sums[1][:, 0].sum())
        some = sums[1][:, 0] > 0
        table, state = self._rows(last.take(some), sums[0][some]), sums[0][some]
        if self._reader is None:
            return self._with_extremes(table, state)
        weights = np.ascontiguousarray(state[:, k.NUMBER])
        given = np.empty((len(self._calls), len(table)), np.int64)
        summands, extremes = np.zeros_like(given), np.zeros(given.shape, np.int32)
        for a, v in enumerate(self._numbers):
            at = k.STATE if v is None else k.STATE + v * k.OF_VARIABLE
            given[a] = weights if v is None else state[:, at + k.GIVEN]
            if self._calls[a] in EXTREME:
                extremes[a] = state[:, at + (k.GREATEST if self._calls[a] == "MAX" else k.LEAST)]
            elif self._calls[a] != "COUNT":
                summands[a] = state[:, at + k.TOTAL]
        times = table.at, table.end, table.start
        summed = SummedTable(*times, table.columns, weights, given, summands, extremes)
        return summed if self._reader.takes(summed) else None

    # --- rows ---

    def _rows(self, last: SolutionTable, state: np.ndarray) -> SolutionTable:
        """Rows with the variables of the last part, over the interval of all matches of each."""
        unbound, shown = np.zeros(len(last), np.int32), places_of(self.node)
        columns = tuple(
            last.columns[shown[name][1]] if shown[name][0] == len(self.node.parts) - 1 else unbound
            for name in self.node.head
        )
        return SolutionTable(last.end, last.end, np.ascontiguousarray(state[:, k.EARLIEST]), columns)

    def _with_extremes(self, table: SolutionTable, state: np.ndarray) -> SolutionTable:
        """Rows with the least terms of each variable, with the greatest ones, and with none where one is unbound."""
        shown, rows = places_of(self.node), np.arange(len(table))
        chosen, columns = [], []
        for field in (k.LEAST, k.GREATEST, None):
            changed = list(table.columns)
            missing = np.zeros(len(table), np.bool_)
            for v, (place, column) in enumerate(self._variables[:, [k.PLACE, k.COLUMN]].tolist()):
                at = k.STATE + v * k.OF_VARIABLE
                unbound = state[:, at + k.GIVEN] < state[:, k.NUMBER]
                ids = state[:, at + (k.LEAST if field is None else field)].astype(np.int32)
                missing |= unbound
                for i, name in enumerate(self.node.head):
                    if shown[name] == (place, column):
                        changed[i] = np.where(unbound, np.int32(0), ids) if field is None else ids
            if field != k.GREATEST or "MAX" in self._calls:
                some = rows[missing] if field is None else rows
                chosen.append(some)
                columns.append([column[some] for column in changed])
        every = np.concatenate(chosen)
        order = np.argsort(every, kind="stable")
        every, end = every[order], table.end[every[order]]
        united = tuple(np.concatenate(parts)[order] for parts in zip(*columns, strict=True))
        return SolutionTable(end, end, table.start[every], united)

    # --- sums ---

    def _walked(
        self, last: SolutionTable, goals: Sequence[ColumnGoalStore], keys: Sequence[np.ndarray], bound: int
    ) -> Walks:
        """The walks through the goals, and the goals of each part that they reach."""
        _, mantissas = self._values(goals)
        asked, which, ends, limits = _walks(last, keys[-1], bound)
        ranges = [np.empty((len(asked), 2), np.int64) for _ in goals]
        for place in reversed(range(len(goals))):
            store = goals[place]
            store.fit()
            stored = store.buckets, store.ends, store.terms
            k.reach(place > 0, keys[place][asked], ends, limits, bound, *stored, mantissas, ranges[place])
        return asked, which, ends, ranges

    def note(self, solutions: int, matches: float) -> None:
        """Remember how many matches so many solutions of the last part completed."""
        self.few = bool(matches <= FEW * solutions)

    def _lists(self, walks: Walks) -> bool:
        """Whether it is worth listing the matches: they were few the last time, and cannot be very many now."""
        sizes = [(reached[:, 1] - reached[:, 0]).astype(np.float64) for reached in walks[3]]
        most = np.prod(sizes, axis=0)[walks[1]].sum()
        return self.few and bool(most <= FEW * _PAIRED * len(walks[1]))

    def _sums(self, last: SolutionTable, goals: Sequence[ColumnGoalStore], bound: int, walks: Walks) -> Sums | None:
        """What the matches of each solution amount to; None if a summand is no integer, or extremes are too many."""
        asked, which, ends, ranges = walks
        try:
            orders = self._orders(last, goals)
        except TooMany:
            return None
        values = self._values(goals)
        room = np.max([reached[:, 1] - reached[:, 0] for reached in ranges], axis=0) + 1
        cuts = np.flatnonzero(np.diff(np.cumsum(room) // _AT_ONCE)) + 1
        order = np.argsort(which, kind="stable")
        begins = np.searchsorted(which[order], np.arange(len(asked) + 1))
        state, sizes = self._lines(len(last))
        for first, beyond in pairwise([0, *cuts.tolist(), len(asked)]):
            there = [np.ascontiguousarray(reached[first:beyond]) for reached in ranges]
            rows = order[begins[first] : begins[beyond]]
            some = last.take(rows)
            added = self._add(ends[first:beyond], there, some, which[rows] - first, goals, bound, values, orders)
            if added is None:
                return None
            state[rows], sizes[rows] = added
        return state, sizes

    def _add(
        self,
        ends: np.ndarray,
        ranges: Sequence[np.ndarray],
        last: SolutionTable,
        which: np.ndarray,
        goals: Sequence[ColumnGoalStore],
        bound: int,
        values: tuple[np.ndarray, np.ndarray],
        orders: np.ndarray,
    ) -> Sums | None:
        """The sums of some solutions of the last part; None if a summand is no integer."""
        before, before_sizes = self._lines(1)
        before[0, k.NUMBER] = before_sizes[0, 0] = 1
        before_rows, before_ends = (ranges[0], np.zeros(len(ends), np.int64)), goals[0].ends
        asked = self._variables, values, orders
        for place, (store, reached) in enumerate(zip(goals, ranges, strict=True)):
            room = reached[:, 1] - reached[:, 0] + 1
            lines = np.cumsum(room) - room
            sums = self._lines(int(room.sum()))
            earlier = before_rows, before_ends, before, before_sizes
            stored = store.ends, store.starts, store.terms
            if not k.extend(place, bound, (ends, reached, lines), *earlier, stored, *asked, *sums):
                return None
            (before, before_sizes), before_rows, before_ends = sums, (reached, lines), store.ends
        sums = self._lines(len(last))
        earlier = before_rows, before_ends, before, before_sizes
        return sums if k.finish(len(goals), which, last.start, *earlier, last.matrix(), *asked, *sums) else None

    def _values(self, goals: Sequence[ColumnGoalStore]) -> tuple[np.ndarray, np.ndarray]:
        """The kinds and values of all terms, if some are summed up or goals that last carry their own start."""
        lasting = any(store.terms[: store.used, -1].any() for store in goals[1:])
        if not lasting and not self._variables[:, k.SUMMED].any():
            return _NO_KINDS, _NO_VALUES
        kinds, _, mantissas, _ = self.terms.decoded()
        return kinds, mantissas

    def _lines(self, count: int) -> Sums:
        variables = len(self._variables)
        return np.zeros((count, k.STATE + variables * k.OF_VARIABLE), np.int64), np.zeros((count, 1 + variables))

    def _orders(self, last: SolutionTable, goals: Sequence[ColumnGoalStore]) -> np.ndarray:
        """The order of all terms that may be compared."""
        order = self.terms.remembered.get(TermOrder)
        if order is None:
            order = self.terms.remembered[TermOrder] = TermOrder()
        for place, column, _, ordered in self._variables.tolist():
            if ordered:
                ids = last.columns[column] if place == len(goals) else goals[place].goals()[2][:, column]
                distinct = distinct_numbers(ids)
                order.add(self.terms, distinct[distinct != 0])
        return order.table


def _walks(last: SolutionTable, keys: np.ndarray, bound: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The walks through the goals for some solutions of the last part: one for each.

    Without a window, what goals amount to is the same for all solutions with their key, which share a walk.  Gives for
    each walk the number of a solution that has its key, for each solution its walk, and for each walk an end of its
    window, and a time before which goals must have ended.
    """
    if bound < UNBOUNDED:
        every = np.arange(len(last))
        return every, every, last.end, last.start.copy()
    _, asked, which = np.unique(keys, return_index=True, return_inverse=True)
    limits = last.start[asked]
    np.maximum.at(limits, which, last.start)
    return asked, which, limits.copy(), limits
