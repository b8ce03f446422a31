"""Aggregates of all solutions so far, by group, for a batch: COUNT, SUM, AVG, MIN, MAX, SAMPLE, GROUP_CONCAT, DISTINCT,
HAVING, LIMIT.

In each instant in which a solution enters, it gives the rows of the groups that got one.  What is kept of each
aggregate is in ``running_aggregate``.  Values that do not fit there go on with the row operator, and so do solutions
that ended before their instant, after which a row may be one that was reported before.

With LIMIT or OFFSET, what is reported are the rows that are new in the result, for which all groups are ranked.

Cost: some steps for each solution; with LIMIT or OFFSET, for each batch a pass over the groups.  State: the numbers of
each group; for DISTINCT its terms, for GROUP_CONCAT its text and terms.

A trace of ``SELECT ?c (MAX(?p) AS ?m) … GROUP BY ?c``: a 3@1 → a 3 [1,1]; b 2@2 → b 2 [2,2]; a 1@3 → a 3 [1,3].
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from etalis_rules import algebra as alg

from etalis_py.executors.columns.aggregation import (
    Aggregation,
    Answers,
    Reported,
    best_rows,
    calculated,
    let_through,
    solutions_of,
)
from etalis_py.executors.columns.arguments import Unfit
from etalis_py.executors.columns.frames import Bindings
from etalis_py.executors.columns.group_concat import plan_of
from etalis_py.executors.columns.growable_array import GrowableArray
from etalis_py.executors.columns.kernels import grouping as k
from etalis_py.executors.columns.kernels.ordering import distinct_numbers
from etalis_py.executors.columns.running_aggregate import Prepared, RunningAggregate
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.supported_rules import shows_best
from etalis_py.executors.columns.tables import SolutionTable, SummedTable
from etalis_py.kernel.batch import Row

_FITS = 2.0**62
_NEVER, _ALWAYS = np.iinfo(np.int64).max, np.iinfo(np.int64).min


class CumulativeOperator(Aggregation):
    """One such aggregation; ``window`` has the hull and the key of each group.

    A group that gets a solution that ends now has a row that ends now, so every row that is reported is new.
    """

    _weighed: float
    """No number of solutions, arguments or errors of a group is greater."""

    def fill(self, rows: list[Row], reported: list[Reported]) -> None:
        """Continue with these groups: hull, key, number of solutions, states of the accumulators."""
        self._forget()
        width = len(self.node.keys)
        keys = np.empty((len(rows), width), np.int32)
        for i in range(width):
            keys[:, i] = self.terms.intern([x[2 + i] for x in rows])
        self._keys.numbers(keys, create=True)
        groups = self._groups_of(len(rows))
        times: Any = [(x[1], x[0], x[2 + width]) for x in rows]
        groups[:, [k.EARLIEST, k.LATEST, k.COUNT]] = np.array(times, np.int64).reshape(-1, 3)
        try:
            for place, aggregate in enumerate(self._aggregates):
                aggregate.load([x[3 + width + place] for x in rows], keys, groups)
                self._weighed = max(self._weighed, aggregate.counted(groups))
        except Unfit:
            self._forget()
            self.fast = False
        self.window = self._table()

    def _forget(self) -> None:
        self.fast = True
        self._keys = Keys(len(self.node.keys))
        self._held = GrowableArray(16, np.int64, k.SUMS + k.NUMBERS * len(self.node.aggregates))
        self._aggregates = plan_of(self.node.aggregates, len(self.node.keys), self.terms, self.node.child.columns)
        self._count = self._entered = 0
        self._weighed = 0.0

    def rows(self) -> list[Row]:
        """The same as ``fill`` takes."""
        groups = self._held.array[: self._count]
        states = [aggregate.states(groups, self._keys) for aggregate in self._aggregates]
        counts = groups[:, k.COUNT].tolist()
        every = [
            (*x, *of_group) for x, *of_group in zip(solutions_of(self.window, self.terms), counts, *states, strict=True)
        ]
        return [x for x, count in zip(every, counts, strict=True) if count]

    @property
    def held_bytes(self) -> int:
        groups = self._count * self._held.array.itemsize * self._held.array.shape[1]
        return self.window.bytes + groups + sum(aggregate.held_bytes for aggregate in self._aggregates)

    def mark_terms(self, marked: np.ndarray) -> None:
        super().mark_terms(marked)
        for aggregate in self._aggregates:
            aggregate.mark_terms(self._held.array[: self._count], marked)

    def renumber(self, renumbered: np.ndarray) -> None:
        self._keys.retain(np.ones(self._keys.count, np.bool_), renumbered)
        for aggregate in self._aggregates:
            aggregate.renumber(self._held.array[: self._count], renumbered)
        self.window = self._table()

    # --- a batch ---

    def advance(self, child: SolutionTable) -> SolutionTable:
        """The row of each group in each instant in which it got a solution."""
        if not len(child):
            return SolutionTable.empty(len(self.node.head))
        if not self.fast or child.at is not child.end:
            return self.in_rows(child)
        if any(aggregate.in_order for aggregate in self._aggregates):
            child = self.in_order(child)
        frame = Bindings.of(self.terms, child, self.node.child.columns)
        keys, numbers = self._numbered(frame)
        groups = self._groups_of(self._keys.count)
        here = np.arange(len(groups)) if shows_best(self.node) else distinct_numbers(numbers)
        try:
            batches = self._prepared(frame, child, numbers, groups, here)
        except Unfit:
            self.window = self._table()
            return self.in_rows(child)
        arguments = np.empty((len(batches), len(child), k.OF_ARGUMENT), np.int64)
        for aggregate, batch, rows in zip(self._aggregates, batches, arguments, strict=True):
            aggregate.enter(batch, rows, keys, groups, here)
        before = groups.copy() if shows_best(self.node) else None
        answers, changed = np.empty((len(child), groups.shape[1]), np.int64), np.empty((len(child), 2), np.int64)
        times = child.at, child.end, child.start
        weights = child.weights if isinstance(child, SummedTable) else np.ones(len(child), np.int64)
        extreme = np.array([aggregate.extreme for aggregate in self._aggregates], np.bool_)
        touched = np.empty(len(child), np.int64)
        given = numbers, weights, arguments, extreme
        count = k.accumulate(self._entered, *times, *given, groups, touched, answers, changed)
        self._entered += len(child)
        self._weighed += float(weights.astype(np.float64).sum())
        for aggregate, batch in zip(self._aggregates, batches, strict=True):
            aggregate.entered(batch, groups, here)
        self.window = self._table()
        at, changed = child.at[changed[:count, 0]], changed[:count, 1]
        shown = self._rows(answers[:count], at, changed, batches)
        if before is None:
            return shown.table(self.node.head)
        known = np.flatnonzero(before[:, k.COUNT])
        held = self._rows(before[known], before[known, k.LATEST], known, batches)
        same = np.zeros(count, np.bool_)  # each row of the batch has an end of its own
        return best_rows(
            self.node, replace(held, rows=known[held.rows]), Answers(shown, at, changed, same), len(before)
        )

    def takes(self, child: SummedTable) -> bool:
        """Whether these rows, which stand for several solutions, can be added here; if not, solutions must come."""
        _, numbers = self._numbered(Bindings.of(self.terms, child, self.node.child.columns), create=False)
        try:
            known = distinct_numbers(numbers[(numbers >= 0) & (numbers < self._count)])
            self._prepared_sums(child, self._held.array[: self._count], known)
        except Unfit:
            return False
        return self.fast

    def _prepared(
        self, frame: Bindings, child: SolutionTable, numbers: np.ndarray, groups: np.ndarray, here: np.ndarray
    ) -> list[Prepared]:
        if isinstance(child, SummedTable):
            return self._prepared_sums(child, groups, here)
        return [aggregate.prepared(frame, numbers, groups, here) for aggregate in self._aggregates]

    def _prepared_sums(self, child: SummedTable, groups: np.ndarray, here: np.ndarray) -> list[Prepared]:
        if self._weighed + child.weights.astype(np.float64).sum() >= _FITS:
            raise Unfit
        return [one.prepared_sums(child, place, groups, here) for place, one in enumerate(self._aggregates)]

    def _numbered(self, frame: Bindings, *, create: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """The keys of each solution's group, and its number."""
        unbound = np.zeros(len(frame), np.int32)
        keys = np.empty((len(frame), len(self.node.keys)), np.int32)
        for i, name in enumerate(self.node.keys):
            keys[:, i] = frame.columns.get(name, unbound)
        return keys, self._keys.numbers(keys, create=create)

    def _groups_of(self, count: int) -> np.ndarray:
        """The fields of so many groups, the new ones of which are empty."""
        self.window = SolutionTable.empty(len(self.node.keys))  # else a view of the fields would make growing a copy
        if count > len(self._held.array):
            self._held.grow(2 * count)
        groups = self._held.array[:count]
        new = groups[self._count :]
        new[:, k.EARLIEST], new[:, k.LATEST], new[:, k.CHANGED] = _NEVER, _ALWAYS, -1
        self._count = count
        return groups

    def _table(self) -> SolutionTable:
        groups = self._held.array[: self._count]
        keys = self._keys.rows().T if self.node.keys else ()
        return SolutionTable(groups[:, k.LATEST], groups[:, k.LATEST], groups[:, k.EARLIEST], tuple(keys))

    def _rows(self, answers: np.ndarray, at: np.ndarray, groups: np.ndarray, batches: list[Prepared]) -> Bindings:
        """The answers as rows of the node, those that HAVING lets through."""
        columns = {name: self._keys.rows()[groups, i] for i, name in enumerate(self.node.keys)}
        after = alg.texts_after_having(self.node.having, self.node.aggregates)
        pairs = list(zip(self._aggregates, batches, strict=True))
        columns |= self._results(answers, [pair for pair in pairs if pair[0].call.variable not in after])
        end, start = answers[:, k.LATEST].copy(), answers[:, k.EARLIEST].copy()
        frame = Bindings(self.terms, end if (end == at).all() else at, end, start, columns, np.arange(len(at)))
        frame = let_through(self.node, frame)
        texts = self._results(answers[frame.rows], [pair for pair in pairs if pair[0].call.variable in after])
        return calculated(self.node, replace(frame, columns={**frame.columns, **texts}))

    def _results(
        self, answers: np.ndarray, aggregates: Iterable[tuple[RunningAggregate, Prepared]]
    ) -> dict[str, np.ndarray]:
        """The terms of these aggregates in the answers, by their variables."""
        results = {aggregate.call.variable: aggregate.results(answers, batch) for aggregate, batch in aggregates}
        return {name: self.terms.distinguished(ids) for name, ids in results.items()} if self.distinguishes else results
