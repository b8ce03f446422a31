"""COUNT, SUM and AVG of all solutions so far, by group, for a batch.

In each instant in which a solution enters, it gives the rows of the groups that got one.  Integers only, as long as
their totals fit in int64; with any other summand the row operator takes over.

Cost: some steps for each solution, and one for each group and batch.  State: the numbers of each group.

A trace of ``SELECT ?c (SUM(?p) AS ?s) … GROUP BY ?c``: a 1@1 → a 1 [1,1]; b 2@2 → b 2 [2,2]; a 4@3 → a 5 [1,3].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from etalis_rules import algebra as alg

from etalis_py.executors.columns.aggregation import Aggregation, Reported, solutions_of, window_table
from etalis_py.executors.columns.frames import Bindings
from etalis_py.executors.columns.kernels import grouping as k
from etalis_py.executors.columns.kernels.parsing import DECIMAL, INTEGER
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.tables import SolutionTable, SummedTable
from etalis_py.executors.columns.window_groups import spelled_results
from etalis_py.kernel.batch import Row

Arguments = tuple[np.ndarray, np.ndarray, np.ndarray]
"""For how many solutions each row stands; for each aggregate, how many of these have an argument, and their sum."""
_FITS = 2.0**62
_NEVER, _ALWAYS = np.iinfo(np.int64).max, np.iinfo(np.int64).min


class CumulativeOperator(Aggregation):
    """One such aggregation; ``window`` has the hull and the key of each group.

    Every row that is reported is new, as its group got a solution.
    """

    def fill(self, rows: list[Row], reported: list[Reported]) -> None:
        """Continue with these groups: their hulls, keys and numbers."""
        width = len(self.node.keys)
        self.window = window_table([x[: 2 + width] for x in rows], width, self.terms)
        numbers: Any = [x[2 + width :] for x in rows]
        fields = 1 + k.NUMBERS * len(self.node.aggregates)
        self._numbers = np.array(numbers, np.int64).reshape(-1, fields)
        self.fast = True

    def rows(self) -> list[Row]:
        """The hull, key and numbers of each group."""
        named = solutions_of(self.window, self.terms)
        return [(*x, *numbers) for x, numbers in zip(named, self._numbers.tolist(), strict=True)]

    def advance(self, child: SolutionTable) -> SolutionTable:
        """The row of each group in each instant in which it got a solution."""
        if not len(child):
            return SolutionTable.empty(len(self.node.head))
        frame = Bindings.of(self.terms, child, self.node.child.columns)
        if isinstance(child, SummedTable):
            arguments: Arguments | None = (child.weights, child.given, child.summands)
        else:
            arguments = self._arguments(frame) if self.fast else None
        if arguments is None:
            return self.in_rows(child)
        numbers, keys = self._groups(frame)
        held, new = len(self.window), len(keys) - len(self.window)
        groups = np.zeros((len(keys), k.SUMS + k.NUMBERS * len(self.node.aggregates)), np.int64)
        groups[:held, k.COUNT], groups[:held, k.SUMS :] = self._numbers[:, 0], self._numbers[:, 1:]
        groups[:, k.EARLIEST] = np.append(self.window.start, np.full(new, _NEVER))
        groups[:, k.LATEST] = np.append(self.window.end, np.full(new, _ALWAYS))
        answers, changed = np.empty((len(child), groups.shape[1]), np.int64), np.empty((len(child), 2), np.int64)
        last, touched = np.full(len(keys), -1, np.int64), np.empty(len(keys), np.int64)
        times = child.at, child.end, child.start
        count = k.accumulate(*times, numbers, *arguments, groups, last, touched, answers, changed)
        hull = groups[:, k.LATEST].copy(), groups[:, k.EARLIEST].copy()
        self.window = SolutionTable(hull[0], *hull, tuple(column.copy() for column in keys.T))
        self._numbers = np.column_stack([groups[:, k.COUNT], groups[:, k.SUMS :]])
        return self._rows(answers[:count], child.at[changed[:count, 0]], keys[changed[:count, 1]])

    def takes(self, child: SummedTable) -> bool:
        """Whether these rows, which stand for several solutions, can be added here; if not, solutions must come."""
        return self.fast and all(self._fits(a, summands) for a, summands in enumerate(child.summands))

    def _fits(self, a: int, summands: np.ndarray) -> bool:
        """Whether no total of an aggregate is too large for int64 with these summands."""
        totals = np.append(self._numbers[:, 1 + a * k.NUMBERS + k.SUMMED], summands)
        return bool(np.abs(totals.astype(np.float64)).sum() < _FITS)

    def _arguments(self, frame: Bindings) -> Arguments | None:
        """The weights, which arguments are no errors, and the summands; None where these are no integers that fit."""
        calls = self.node.aggregates
        given = np.ones((len(calls), len(frame)), np.int64)
        summands = np.zeros((len(calls), len(frame)), np.int64)
        for a, call in enumerate(calls):
            if call.operand is None:
                continue
            ids = frame.bound(call.operand)
            given[a] = ids != 0
            if call.name == "COUNT":
                continue
            kinds, _, mantissas, _ = self.terms.values(ids)
            if (kinds[ids != 0] != INTEGER).any():
                return None
            summands[a] = np.where(ids != 0, mantissas, 0)
            if not self._fits(a, summands[a]):
                return None
        return np.ones(len(frame), np.int64), given, summands

    def _groups(self, frame: Bindings) -> tuple[np.ndarray, np.ndarray]:
        """The number of each solution's group, and the keys of all groups, those that are known first."""
        names, unbound = self.node.keys, np.zeros(len(frame), np.int32)
        if not names:
            return np.zeros(len(frame), np.int64), np.zeros((1, 0), np.int32)
        keys = Keys(len(names))
        keys.numbers(self.window.matrix(), create=True)
        columns = [frame.columns.get(name, unbound) for name in names]
        return keys.numbers(np.column_stack(columns), create=True), keys.rows()

    def _rows(self, answers: np.ndarray, at: np.ndarray, keys: np.ndarray) -> SolutionTable:
        """The answers as rows of the node."""
        columns = {name: keys[:, i].copy() for i, name in enumerate(self.node.keys)}
        for a, call in enumerate(self.node.aggregates):
            first = k.SUMS + a * k.NUMBERS
            counts, totals, failed = (np.ascontiguousarray(answers[:, first + i]) for i in range(k.NUMBERS))
            if call.name == "COUNT":
                ids = self.terms.append_integers(counts)
            elif call.name == "SUM":
                ids = self.terms.append_integers(totals)
            else:
                ids = self.terms.append(spelled_results(totals, counts, True, 0, DECIMAL))
            if self.compared:
                ids = self.terms.distinguished(ids)
            columns[call.variable] = ids if call.name == "COUNT" else np.where(failed > 0, np.int32(0), ids)
        for name, source in alg.renamed(self.node.extends).items():
            columns[name] = columns[source]
        unbound = np.zeros(len(answers), np.int32)
        end, start = answers[:, k.LATEST].copy(), answers[:, k.EARLIEST].copy()
        return SolutionTable(at, end, start, tuple(columns.get(name, unbound) for name in self.node.head))
