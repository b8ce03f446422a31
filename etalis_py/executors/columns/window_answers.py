"""A windowed query over columns: whatever SPARQL asks of its windows, at many evaluation times at once.

It keeps the items of windows that slide by the clock, or of one that counts, as rows of numbers (``window_rows``).
Whenever a window closes, it evaluates the pattern over what they hold (``window_solutions``).

Cost: that of ``window_solutions``.  State: the items in the windows and those that wait, with their terms and triples
and these of some earlier items; with ISTREAM and DSTREAM the last answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
from etalis_compiler.rsp import Count, WindowPlan

from etalis_py.executors.columns.arguments import Unfit
from etalis_py.executors.columns.counted_rows import CountedRows
from etalis_py.executors.columns.frames import Bindings
from etalis_py.executors.columns.kernels.ordering import distinct_numbers
from etalis_py.executors.columns.reports import TableReport
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.columns.window_groups import ClosingAnswers, NotColumnar
from etalis_py.executors.columns.window_items import rows_of
from etalis_py.executors.columns.window_rows import SlidingRows, WindowRows
from etalis_py.executors.columns.window_solutions import Evaluations, TooWide, each
from etalis_py.executors.windows.groups import incremental
from etalis_py.executors.windows.state import HeldItems
from etalis_py.kernel.batch import Columns

_AT_ONCE = 1 << 18
"""How many rows, each counted at every evaluation that sees it, are looked at together."""
_UNFIT = "values are not all integers, all decimals or all doubles, or many texts are compared"
Shown = np.ndarray
"""The rows of an answer: the ids of the variables that are shown."""


class WindowAnswers:
    """The windows of one query: items go in, the answers of all evaluations come out."""

    def __init__(self, plan: WindowPlan, steps: int) -> None:
        """``steps``: how many triples and pairs one evaluation may look at."""
        self.plan, self._steps = plan, steps
        self._nonempty = any(s.kind == "NC" for s in plan.report)
        followed = incremental(plan, stored=False)
        self.windows: list[WindowRows] = [
            CountedRows(use, followed) if isinstance(use.shape, Count) else SlidingRows(use, followed)
            for use in plan.windows
        ]
        self.clear()

    def clear(self) -> None:
        """Forget all items."""
        self.terms = Terms()
        for window in self.windows:
            window.clear(self.terms)
        self._answered: Shown = np.zeros((0, len(self._shown)), np.int32)

    @property
    def _shown(self) -> tuple[str, ...]:
        return self.plan.variables or ("",)

    # --- items ---

    def fill(self, items: Mapping[str, HeldItems]) -> None:
        """Continue with these items in each window, and those that wait for it."""
        for window in self.windows:
            window.fill(items[window.use.name])

    def rows(self) -> dict[str, HeldItems]:
        """The items in each window, and those that wait for it."""
        return {window.use.name: window.held() for window in self.windows}

    def push(self, columns: Columns) -> tuple[int, int]:
        """Take the items of the windows' streams.

        Returns how many items were on other streams, and how many no window will hold.
        """
        fields, stream = rows_of(self.terms, columns)
        read, kept = (np.zeros(len(stream), np.bool_) for _ in range(2))
        for window in self.windows:
            own, taken = window.push(fields, stream)
            read |= own
            kept |= taken
        last = fields["last"]
        return int(np.count_nonzero(last & ~read)), int(np.count_nonzero(last & read & ~kept))

    # --- evaluations ---

    def answer(self, after: int, through: int, output: int) -> Iterator[ClosingAnswers]:
        """The answers of all evaluations later than ``after`` and until ``through``, in portions."""
        closings = [w.closings(after, through, nonempty=self._nonempty) for w in self.windows]
        moments = closings[0] if len(closings) == 1 else distinct_numbers(np.concatenate(closings))
        answered = self._answered
        try:
            reports = list(self._reports(moments, output)) if len(moments) else []
        except Unfit as unfit:
            self._answered = answered
            raise NotColumnar(str(unfit) or _UNFIT) from None
        if len(moments):
            came = {window.use.name: window.move(moments) for window in self.windows}
            yield ClosingAnswers(len(moments), came, reports)
        for window in self.windows:
            window.counted(through)
        if any(window.is_large for window in self.windows):
            self._forget()

    def _reports(self, moments: np.ndarray, output: int) -> Iterator[TableReport]:
        """The reports of these evaluations, in portions of about ``_AT_ONCE`` rows."""
        portions = np.cumsum(sum(w.sizes(moments) for w in self.windows) + 1) // _AT_ONCE
        waiting = np.split(moments, np.flatnonzero(np.diff(portions)) + 1)[::-1]
        while waiting:
            some = waiting.pop()
            try:
                report = self._report(some, output)
            except TooWide:
                middle = len(some) // 2
                waiting += [some[middle:], some[:middle]]
                continue
            if report is not None:
                yield report

    def _report(self, moments: np.ndarray, output: int) -> TableReport | None:
        """The report of the evaluations at these times."""
        seen = {window.use.name: window.seen(moments) for window in self.windows}
        for window in self.windows:
            if window.use.default:
                seen[""] = seen[window.use.name]
        found = each(Evaluations(self.terms, len(moments), seen, self._steps).answers(self.plan.select))
        at, rows = self._rows(found, len(moments))
        if self.plan.r2s != "RSTREAM":
            at, rows = self._changes(at, rows, len(moments))
        if not len(at):
            return None
        of_rows = moments[at]
        end = self.windows[0].times(of_rows)
        openings = np.minimum.reduce([window.openings(of_rows) for window in self.windows])
        return TableReport(output, end, end, openings, [self.terms.dictionary(column) for column in rows.T])

    def _rows(self, found: Bindings, number: int) -> tuple[np.ndarray, Shown]:
        """The evaluation of each row and what it shows, in the order of the answer."""
        if self.plan.form == "ask":
            holds = np.zeros(number, np.bool_)
            holds[found.at] = True
            return np.arange(number), self.terms.intern(["false", "true"])[holds.astype(np.int64)][:, None]
        rows = np.zeros((len(found), len(self._shown)), np.int32)
        for place, name in enumerate(self.plan.variables):
            rows[:, place] = found.columns[name]
        return (found.at, rows) if self.plan.ordered else self._in_order(found.at, rows)

    def _in_order(self, at: np.ndarray, rows: Shown) -> tuple[np.ndarray, Shown]:
        """The rows by evaluation, and then by their terms."""
        ranks = [self.terms.ranks(column) for column in rows.T[::-1]] if len(rows) else []
        order = np.lexsort((*ranks, at))
        return at[order], rows[order]

    # --- ISTREAM and DSTREAM ---

    def _changes(self, at: np.ndarray, rows: Shown, number: int) -> tuple[np.ndarray, Shown]:
        """The rows that the answer before did not have, or had and this one has not ([RSPQL] Definitions 21, 22)."""
        at = np.concatenate([np.zeros(len(self._answered), np.int64), at + 1])
        rows = np.concatenate([self._answered, rows])
        keys = Keys(rows.shape[1])
        row = keys.numbers(rows, create=True)
        self._answered = keys.rows()[distinct_numbers(row[at == number])]
        there = distinct_numbers(row * (number + 1) + at)
        if self.plan.r2s == "ISTREAM":
            new = (at > 0) & ~np.isin(row * (number + 1) + at - 1, there)
            return at[new] - 1, rows[new]
        rest, at = np.divmod(there, number + 1)
        gone = (at < number) & ~np.isin(there + 1, there)
        return self._in_order(at[gone], keys.rows()[rest[gone]])

    @property
    def answered(self) -> frozenset[tuple[str, ...]]:
        """The last answer as ISTREAM and DSTREAM remember it."""
        return frozenset(zip(*(self.terms.spellings(column) for column in self._answered.T), strict=True))

    def remember(self, answered: Collection[tuple[str, ...]]) -> None:
        """Continue after this answer."""
        columns = [self.terms.intern(list(column)) for column in zip(*answered, strict=True)]
        if columns:
            self._answered = np.column_stack(columns)

    def _forget(self) -> None:
        """Forget terms and triples that no item has any more."""
        answered, self.terms = self.answered, Terms()
        for window in self.windows:
            window.renumber(self.terms)
        self.remember(answered)
