"""The runs of a REPEAT of which a key has one at a time, and what ends them: ``MAXIMAL`` and ``UNTIL`` over a batch.

A trace of ``{?u :click ?p} REPEAT 1 OR MORE BY ?u GAP 5 s MAXIMAL``: 1, 3, 20 → [1, 8] at 8, [20, 25] at 25.
A trace of ``{?m :temp ?t} REPEAT 1 OR MORE BY ?m UNTIL {?m :batch ?b}``: temp 1, 2; batch 3 → [1, 3]; temp 4; batch 5 →
[4, 5].

An element and the one before it decide alone if the run of their key goes on, so a key has one open run, as long as
each of its elements starts after the one before it has ended.  Elements of a key that overlap, or end at the same time,
make several runs: the operator of rows takes such a batch, and columns go on after it if each key has one run again.

Cost: some steps for each element, and for each batch one for each open run.  State: the first and the last element of
each open run, how many elements it has, and its aggregates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.runs import counted

from etalis_py.executors.columns.aggregation import Reported, solutions_of, window_table
from etalis_py.executors.columns.evaluation import Given, truths
from etalis_py.executors.columns.instants import rows_by_instant, table_of_rows
from etalis_py.executors.columns.kernels.computing import TRUE
from etalis_py.executors.columns.kernels.joining import UNBOUNDED
from etalis_py.executors.columns.kernels.open_runs import NEVER, elements_before, end_runs, go_on
from etalis_py.executors.columns.open_run_totals import Elements, RunTotals
from etalis_py.executors.columns.runs import KeepsRuns
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.tables import SolutionTable
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.rows.run.maximal import MaximalRuns
from etalis_py.executors.rows.run.runs import Runs
from etalis_py.executors.rows.run.until import EndedRuns
from etalis_py.kernel.batch import Row

FIRST, LAST, COUNT, END = range(4)
"""What the columns of runs have: the numbers of their first and last element, how many these are, when they are over.
The fifth one has the key."""


class Numbered(NamedTuple):
    """The last elements of the ``held`` open runs, the first ones, then the batch; with their keys, by number."""

    ends: np.ndarray
    starts: np.ndarray
    columns: dict[str, np.ndarray]
    keys: np.ndarray
    numbering: Keys
    held: int


class OpenRunOperator(KeepsRuns):
    """What MAXIMAL and UNTIL share: the open run of each key; ``window`` has these in order of their ends.

    ``slow`` is the operator of rows, and ``advance`` its function.
    """

    def __init__(
        self,
        node: ir.Run,
        terms: Terms,
        slow: Runs,
        advance: Callable[[int, list[Row]], list[Row]],
        give: Callable[[list[Row], list[Reported]], None],
        *,
        compared: bool,
    ) -> None:
        super().__init__(node, terms, give, compared=compared)
        self.gap = UNBOUNDED if node.gap is None else node.gap.micros
        self._slow, self._advance = slow, advance
        self._totals = RunTotals(counted(node), terms)
        self.fill([], [])

    def fill(self, rows: list[Row], reported: list[Reported]) -> None:
        """Continue with these open runs: of each the last element, the first, their number, its end, its aggregates."""
        width = len(self._columns)
        rows = sorted(rows, key=lambda x: x[0])
        first = 2 + width
        self.window = window_table([(*x[:first], *x[first + 2 : -3]) for x in rows], 2 * width, self.terms)
        numbers = np.array([(x[first], x[first + 1], x[-3], NEVER if x[-2] is None else x[-2]) for x in rows], np.int64)
        first_ends, first_starts, self._counts, self._ended = (part.copy() for part in numbers.reshape(-1, 4).T)
        self._first = first_ends, first_starts
        self._totals.held = [x[-1] for x in rows]
        self.fast = True

    def rows(self) -> list[Row]:
        """These runs, as ``fill`` takes them."""
        first = 2 + len(self._columns)
        named = solutions_of(self.window, self.terms)
        numbers = zip(*(part.tolist() for part in (*self._first, self._counts, self._ended)), strict=True)
        return [
            (*x[:first], end, start, *x[first:], count, None if ended == NEVER else ended, totals)
            for x, (end, start, count, ended), totals in zip(named, numbers, self._totals.held, strict=True)
        ]

    def _is_fast(self) -> bool:
        """Whether columns take the next batch; they go on after rows as soon as each key has one run again."""
        if not self.fast and (held := self._slow.held()) is not None:
            self._slow.clear()
            self.fill(held, [])
        return self.fast

    def _with_open_runs(self, child: SolutionTable) -> Numbered:
        """The last elements of the open runs, the first ones, then those of a batch."""
        width = len(self._columns)
        own, others = self.window.columns[:width], self.window.columns[width:]
        ends = np.concatenate([self.window.end, self._first[0], child.end])
        starts = np.concatenate([self.window.start, self._first[1], child.start])
        columns = [np.concatenate(parts) for parts in zip(own, others, child.columns, strict=True)]
        keys = Keys(len(self._key))
        matrix = np.column_stack([columns[i] for i in self._key]) if self._key else np.zeros((len(ends), 0), np.int32)
        numbers = keys.numbers(matrix, create=True)
        by_name = dict(zip(self._columns, columns, strict=True))
        return Numbered(ends, starts, by_name, numbers, keys, len(self.window))

    def _goes_on(self, elements: Numbered, last: np.ndarray) -> np.ndarray:
        """Whether the WHERE lets each element of the batch follow the one of its key before it.

        ``last`` has the last elements of the open runs by their keys, or -1.
        """
        row = 2 * elements.held
        keys = elements.keys[row:]
        goes_on = np.ones(len(keys), np.bool_)
        if not self._condition:
            return goes_on
        before = np.empty(len(keys), np.int64)
        elements_before(keys, row, last, before)
        times = np.zeros(len(keys), np.int64)  # the condition reads none
        own = {name: column[row:] for name, column in elements.columns.items()}
        earlier = {f"PREVIOUS {name}": column[before] for name, column in elements.columns.items()}
        given = Given(self.terms, own | earlier, (times, times, times))
        for e in self._condition:
            tested = np.flatnonzero(goes_on & (before >= 0))
            goes_on[tested] = truths(e, given.only(e, tested)) == TRUE
        return goes_on

    def _aggregates(self, ended: np.ndarray, going: np.ndarray, elements: Numbered) -> dict[str, np.ndarray]:
        """The terms of the aggregates of the runs that are over; those of the open ones are brought up to date."""
        if not self._totals.calls:
            self._totals.held = [[] for _ in going]
            return {}
        held = elements.held
        of_batch = {name: column[2 * held :] for name, column in elements.columns.items()}
        arranged = Elements.arranged(elements.keys[2 * held :], elements.numbering.count, of_batch)
        shown = self._totals.results(ended, held, arranged)
        self._totals.held = list(self._totals.of_runs(going, held, arranged))
        return shown

    def _keep(self, runs: np.ndarray, elements: Numbered, ended: np.ndarray) -> None:
        """Remember the open runs, and when each was ended."""
        self._ended = ended
        first, last, self._counts = runs[:, FIRST], runs[:, LAST], runs[:, COUNT].copy()
        columns, ends, starts = elements.columns.values(), elements.ends, elements.starts
        both = (*(column[last] for column in columns), *(column[first] for column in columns))
        self.window = SolutionTable(ends[last], ends[last], starts[last], both)
        self._first = ends[first], starts[first]

    def _rows(self, ended: np.ndarray, elements: Numbered, aggregates: dict[str, np.ndarray]) -> SolutionTable:
        """The rows of the runs that are over: the BY variables, the aggregates, the hull with what has ended it."""
        first, last, counts, end = (np.ascontiguousarray(part) for part in ended.T[:4])
        columns = elements.columns
        shown = aggregates | {name: columns[name][last] for name in self.node.keys}
        for call in self.node.aggregates:
            if call.takes_element:
                source = alg.variable_of(call.operand)
                shown[call.variable] = columns[source][first if call.name == "FIRST" else last]
                continue
            ids = aggregates[call.variable] if call.variable in aggregates else self.terms.append_integers(counts)
            shown[call.variable] = self._identified(ids)
        return SolutionTable(end, end, elements.starts[first], tuple(shown[name] for name in self.node.head))


class MaximalRunOperator(OpenRunOperator):
    """``MAXIMAL``: a run is over when the next element does not continue it, or when a silence has ended it."""

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


class EndedRunOperator(OpenRunOperator):
    """``UNTIL {B}``: a B ends the open run of its key; ``ends`` is the function of rows that takes the B."""

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
