"""The executor of windows that runs large batches in columns where the one query has that form, else in rows.

Items are in one of two forms: in the window's content, or in arrays (``SlidingGroups``, ``WindowAnswers``).  They are
converted when a batch runs in the other form, which costs time proportional to the number of items.  So answers,
snapshots and ids of matches are the same in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from etalis_compiler.rsp import Fact, Sliding, WindowPlan
from etalis_rules import algebra as alg

from etalis_py.executors.columns.executor import ENOUGH
from etalis_py.executors.columns.over_rows import OverRows
from etalis_py.executors.columns.supported_windows import Star, sums, unsuited_at_closings
from etalis_py.executors.windows import times
from etalis_py.executors.windows.executor import WindowExecutor, too_many
from etalis_py.executors.windows.refresh import TimeVarying
from etalis_py.kernel.batch import as_reported, count_events
from etalis_py.kernel.options import Options
from etalis_py.kernel.position import NEVER, Counters
from etalis_py.kernel.protocol import Batch, StateSize, WindowedExecutor
from etalis_py.numba_cache import ready

if TYPE_CHECKING:
    from etalis_py.executors.columns.window_answers import WindowAnswers
    from etalis_py.executors.columns.window_groups import SlidingGroups
    from etalis_py.executors.columns.window_rows import WindowRows
    from etalis_py.executors.windows.item_limits import Kept

    Held = SlidingGroups | WindowAnswers

_AT_ONCE = 1 << 15
"""How many occurrences are taken at a time; then all windows that have closed are answered."""
_PATIENCE = 3
"""How many batches in rows may follow each other before the items go back into rows; converting them is costly."""


class ColumnWindowExecutor(OverRows[WindowExecutor]):
    """Runs a windowed query in columns if it can and batches are large; with ``always``, small batches too."""

    kind: Literal["rules", "windows"] = "windows"

    def __init__(
        self,
        steps: Sequence[WindowPlan | Fact],
        graphs: TimeVarying,
        options: Options,
        counters: Counters,
        *,
        alone: bool,
        always: bool,
    ) -> None:
        self.options, self.counters = options, counters
        super().__init__(WindowExecutor(steps, graphs, options, counters, alone=alone))
        self.always = always
        from etalis_py.executors.windows.item_limits import ItemLimits  # many programs have no windows

        self._limits = ItemLimits(options.limits)
        self.in_columns = False
        self._held: Held | None = None
        self._taken = 0  # rows received in batches of columns
        self._in_rows = 0  # batches in rows since the last one in columns
        self._follows = isinstance(sums(self.rows.queries[0].plan), Star)  # what enters and leaves
        self._unfit = ""  # the reason why items that arrived cannot be in columns
        self._graph_reason = self._reads_stored(graphs.has_any)

    # --- what the rows know ---

    @property
    def plans(self) -> tuple[WindowPlan, ...]:
        return self.rows.plans

    def close(self, t: int) -> None:
        self.rows.close(t)

    def dispatch(self) -> None:
        return self.rows.dispatch()

    def journal(self) -> list[Any]:
        return self.rows.journal()

    def forget_journal(self) -> None:
        self.rows.forget_journal()

    def journaling(self, on: bool) -> None:
        self.rows.journaling(on)

    # --- the form of the items ---

    @property
    def form(self) -> Literal["rows", "columns"]:
        """The form of the items."""
        return "columns" if self.in_columns else "rows"

    @property
    def reads(self) -> Literal["rows", "columns"]:
        """The form in which this executor prefers its batches."""
        return "rows" if self.reason is not None else "columns"

    @property
    def reason(self) -> str | None:
        """The reason why the windows must stay in rows; None if they may be in columns."""
        if self._graph_reason is not None:
            return self._graph_reason
        if self.rows.closure is not None:
            return "streamed triples entail others"
        return self._unfit or None

    def _reads_stored(self, stored: bool) -> str | None:
        """The reason if the pattern sees more than its window: a default graph also holds stored triples."""
        pattern = self.rows.queries[0].plan.select.pattern
        within = all(part.stream for part in alg.blocks_of_triples(pattern))
        within &= not alg.has_event(pattern)  # EVENT sees them inside WINDOW, too
        return "it reads stored graphs" if self.rows.graphs.loaders or (stored and not within) else None

    # --- time ---

    def take(self, batch: Batch) -> None:
        if not self._fits(batch):
            self.to_rows()
            self.rows.take(self._as_set(batch))
            return
        from etalis_py.executors.columns.occurrences import pieces
        from etalis_py.executors.columns.window_groups import (  # loads the compiled kernels: half a second
            NO_TRIPLES,
            NotColumnar,
        )

        done = 0
        columns = batch.columns
        try:
            if not batch.came_in_columns and count_events(columns) < len(batch):
                raise NotColumnar(NO_TRIPLES)
            held = self._in_columns()
            if self.rows.done == NEVER:
                self.rows.done = (int(columns.end[0]) if len(columns) else batch.through + 1) - 1
            for piece, through in pieces(columns, lambda: _AT_ONCE, batch.through):
                elsewhere, outside = held.push(piece.flat)
                done += len(piece)
                self.counters.outside += outside
                if self.rows.alone:
                    self.counters.unrouted += elsewhere
                self._answer(held, through)
                self._limits.compare([self._kept(held)])
        except NotColumnar as unfit:
            self.to_rows()
            rest = Batch(None, batch.through, columns.rows(done, len(columns))) if done else batch
            plan = self.rows.queries[0].plan
            if self._follows and unsuited_at_closings(plan) is None:  # such as doubles
                self._follows, self._held = False, None
                self.take(rest)
                return
            self._unfit = str(unfit)
            self.rows.take(self._as_set(rest))

    def _kept(self, held: Held) -> Kept:
        """The items in columns, and about how many bytes they take."""
        from etalis_py.executors.windows.item_limits import Kept

        rows = [window.items for window in held.windows]
        size = sum(items.bytes for items in rows) + held.terms.estimated_bytes(3 * sum(map(len, rows)))
        return Kept(self.rows.queries[0].plan.name, sum(items.number for items in rows), size)

    def _as_set(self, batch: Batch) -> Batch:
        """The batch in rows without repeated events: a batch in columns may state an item of an instant twice."""
        if self._graph_reason is not None or len(batch) < 2:
            return batch
        return Batch(list(dict.fromkeys(batch.rows)), batch.through)

    def _fits(self, batch: Batch) -> bool:
        if self.reason is not None:
            return False
        if self.always:
            return True
        if not batch.came_in_columns:
            self._in_rows += len(batch) > 0
            return self.in_columns and self._in_rows <= _PATIENCE
        self._in_rows = 0
        self._taken += len(batch)
        return self.in_columns or (self._taken >= ENOUGH and ready())

    def _answer(self, held: Held, through: int) -> None:
        """Answer at every closing up to and including ``through``."""
        from etalis_py.executors.columns.reports import count_by_instant  # loads NumPy

        query, limits = self.rows.queries[0], self.options.limits
        for answers in held.answer(self.rows.done, through, 0):
            self.counters.evaluations += answers.evaluations
            query.has_taken(answers.came)
            for report in answers.reports:
                _, most = count_by_instant(report.instants)
                if most > limits.matches:
                    raise too_many(query.plan.name, most, limits.matches)
                self.reports.append(report)
        self.rows.done = max(self.rows.done, through)
        self.rows.next_known = False

    def next_due(self) -> int | None:
        if not self.in_columns or self._held is None:
            return self.rows.next_due()
        nonempty = any(s.kind == "NC" for s in self.rows.queries[0].plan.report)
        closings = (_next_close(window, self.rows.done, nonempty) for window in self._held.windows)
        return min((close for close in closings if close is not None), default=None)

    def horizon(self) -> int | None:
        if not self.in_columns or self._held is None:
            return self.rows.horizon()
        last = ((window, window.ends()[-1:].tolist()) for window in self._held.windows)
        return max((_last_close(window, end) for window, ends in last for end in ends), default=None)

    # --- the two forms ---

    def _in_columns(self) -> Held:
        """The items in columns; they are moved there first if the window still has them."""
        from etalis_py.executors.columns.window_answers import WindowAnswers  # loads the compiled kernels
        from etalis_py.executors.columns.window_groups import SlidingGroups

        query = self.rows.queries[0]
        if self._held is None:
            steps = self.options.limits.steps
            self._held = SlidingGroups(query.plan) if self._follows else WindowAnswers(query.plan, steps)
        if not self.in_columns:
            self._held.clear()
            self._held.fill(query.items())
            self._held.remember(query.answered)
            query.go_on({})
            self.in_columns = True
        return self._held

    def to_rows(self) -> None:
        """Give the items back to the window."""
        if self.in_columns and self._held is not None:
            self.in_columns = False
            self.rows.queries[0].go_on(self._held.rows())
            self.rows.queries[0].answered = self._held.answered
            self._held.clear()
            self.reports[:] = as_reported(self.reports, one_by_one=True)
            self.rows.next_known = False

    # --- state ---

    def dump(self) -> dict[str, Any]:
        self.to_rows()
        return self.rows.dump()

    def in_rows(self) -> WindowExecutor:
        """The executor of rows, to which all items have been moved."""
        self.to_rows()
        return self.rows

    def go_on_from(self, others: Iterable[WindowedExecutor]) -> None:
        self.in_rows().go_on_from(others)

    def load(self, state: Mapping[str, Any]) -> None:
        self.to_rows()
        self.rows.load(state)

    def replay(self, entries: Sequence[Any]) -> None:
        self.to_rows()
        self.rows.replay(entries)

    def kept(self) -> StateSize:
        kept = self.rows.kept()
        if self.in_columns and self._held is not None:
            kept.items += sum(window.number for window in self._held.windows)
        return kept


def _next_close(window: SlidingGroups | WindowRows, after: int, nonempty: bool) -> int | None:
    """The next closing by the clock; ``nonempty``: of a window that holds an item."""
    shape = window.shape
    if not isinstance(shape, Sliding):
        return None
    if not nonempty:
        return times.next_close(shape, after)
    closings = (times.next_close_of(shape, int(end), after) for end in window.ends())
    return next((close for close in closings if close is not None), None)


def _last_close(window: SlidingGroups | WindowRows, end: int) -> int:
    """The last time at which a window reports an item with this end."""
    return times.last_close_of(window.shape, end) if isinstance(window.shape, Sliding) else end
