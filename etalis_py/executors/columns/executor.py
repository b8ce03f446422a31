"""The executor of rules that runs large batches in columns, and everything else in rows.

Goals are in one of two forms: in the buckets of rows, or in the arrays of columns.  They are converted when a batch
runs in the other form, which costs time proportional to the number of goals; aggregates, paths and slices keep the
state of rows in both.  So the answers, snapshots and ids of matches are the same in both.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from etalis_rules import program as ir
from etalis_rules.operators import looks_back

from etalis_py.events import Triple
from etalis_py.executors.columns.network import RowSection
from etalis_py.executors.columns.over_rows import OverRows
from etalis_py.executors.columns.rows_or_columns import (
    Division,
    divide,
    keeps_goals_only,
    reads_only_records,
    rules_of_part,
)
from etalis_py.executors.columns.trial import MEASURED, Trial
from etalis_py.executors.rows.generate.ending import looks_at_end
from etalis_py.executors.rows.run import dump
from etalis_py.executors.rows.run.executor import RowExecutor
from etalis_py.executors.rows.run.family_relation import Families, Gathered, Member
from etalis_py.executors.rows.run.goals import rebuilt
from etalis_py.executors.rows.run.grouping import Grouping
from etalis_py.executors.rows.run.incremental_sums import IncrementalSums
from etalis_py.executors.rows.run.per_query import GroupingPerQuery
from etalis_py.executors.rows.run.rule_subset import PartialRules
from etalis_py.executors.rows.run.runs import Runs
from etalis_py.executors.rows.run.several import unpacked
from etalis_py.garbage import few_collections
from etalis_py.kernel.batch import InColumns, as_reported
from etalis_py.kernel.options import Options
from etalis_py.kernel.position import Counters
from etalis_py.kernel.protocol import Batch, Dispatch, Row, StateSize
from etalis_py.numba_cache import ready

if TYPE_CHECKING:
    from etalis_py.executors.columns.row_sections import TriplesOf
    from etalis_py.executors.columns.rules import ColumnRules

ENOUGH = 1 << 14
"""A run changes to columns once this many rows have come in batches, so that a short run never loads the kernels."""


class ColumnExecutor(OverRows[RowExecutor]):
    """Runs rules in columns if they have a columnar form and a batch is large; with ``always``, small batches too."""

    kind: Literal["rules", "windows"] = "rules"

    def __init__(self, options: Options, counters: Counters, *, always: bool) -> None:
        self.options = options
        self.counters = counters
        self.always = always
        super().__init__(RowExecutor(options, counters))
        self._followed = self.rows.rules
        self._division: Division | None = None
        self._can_tell: bool | None = None
        self._of_records: bool | None = None  # whether the rules read nothing but records
        self._noted = False  # whether changes in columns are noted, for the journal
        self._columns: ColumnRules | None = None
        self.in_columns = False
        self._taken = 0  # rows received in batches
        self._trial: Trial | None = None

    @property
    def form(self) -> Literal["rows", "columns"]:
        """The form of the goals."""
        return "columns" if self.in_columns else "rows"

    @property
    def reads(self) -> Literal["rows", "columns", "records"]:
        """The form in which this executor prefers its batches."""
        if self.reason is not None:
            return "rows"
        if self._of_records is None:
            self._of_records = self.division.is_whole and reads_only_records(self.rules)
        return "records" if self._of_records else "columns"

    # --- what the rows know ---

    @property
    def rules(self) -> ir.Rules:
        return self.rows.rules

    @property
    def given(self) -> ir.Rules:
        return self.rows.given

    @property
    def families(self) -> Families | None:
        return self.rows.families

    @property
    def source(self) -> str:
        return self.rows.source

    def report_timeless(self, t: int, queries: Container[str]) -> None:
        self.rows.report_timeless(t, queries)

    def adopt(self, others: Iterable[Mapping[str, Any]], own: Container[str]) -> None:
        self.to_rows()
        self.rows.adopt(others, own)
        self._follow()

    # --- rules ---

    def load_rules(
        self, rules: ir.Rules, knowledge: Any, makers: dict[str, Any], gathered: Gathered | None = None
    ) -> None:
        self.to_rows()
        self.rows.load_rules(rules, knowledge, makers, gathered)
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Forget what was derived from rules that the rows no longer run."""
        self._followed = self.rows.rules
        self._columns = None
        self._division = self._can_tell = self._of_records = self._trial = None

    def _follow(self) -> None:
        """Begin anew if the rows run other rules: stored goals may be those of joins instead of chains."""
        if self._followed is not self.rows.rules:
            self._begin_anew()

    @property
    def reason(self) -> str | None:
        """The reason why all of these rules run in rows; None if some run in columns."""
        reason = self.division.reason
        untold = self.rows.recording and reason is None and not self._tells
        return "a journal is kept of more than goals" if untold else reason

    @property
    def division(self) -> Division:
        """Which of these rules run in rows, and why; a journal, which may force all of them into rows, is ignored."""
        if self._division is None:
            self._division = divide(self.rules, self.rows.knowledge)
        return self._division

    @property
    def _tells(self) -> bool:
        """Whether columns can write the journal of these rules."""
        if self._can_tell is None:
            whole = self.division.is_whole and not self.division.by_row
            plain = whole and self.families is None and not looks_back(self.rules)
            self._can_tell = plain and keeps_goals_only(self.rules)
        return self._can_tell

    # --- time ---

    def dispatch(self) -> Dispatch | None:
        if self.always and self.reason is None:
            return None
        self.to_rows()
        return self.rows.dispatch()

    def take(self, batch: Batch) -> None:
        if self.families is not None and self.families.has_gone:
            self.to_rows()
            self.rows.forget_gone()
        if self._trial is None and not self.always and self.division.by_row:
            self._trial = Trial()
        trial = self._trial
        if trial is None or trial.decided is not None or self.reason is not None:
            self._take(batch)
            return
        while trial.decided is None and len(batch) > MEASURED:
            some, batch = batch.divided(MEASURED)
            self._measure(trial, some)
        self._measure(trial, batch)

    def _measure(self, trial: Trial, batch: Batch) -> None:
        """Take a batch and note how long it takes."""
        trial.begin()
        self._take(batch)
        trial.end(len(batch), columns=self.in_columns)

    def _take(self, batch: Batch) -> None:
        if not self._fits(batch) or not (len(batch) or self.in_columns):
            self.to_rows()
            self.rows.take(batch)
            return
        if not len(batch) and ((at := self.next_due()) is None or at > batch.through):
            return  # only time has passed, and nothing is due
        columns = self._in_columns()
        whole = batch.records is not None and self.reads == "records"
        given = batch.records if batch.records is not None and whole else batch.columns
        if self.rows.recording and not self._noted and len(batch):
            self._note(columns, given)
        with few_collections():
            columns.take(given, batch.through, self.reports)
        if self.feeding:
            self.reports[:] = as_reported(self.reports, one_by_one=True)
            self.rows.derive()

    def _fits(self, batch: Batch) -> bool:
        if self.reason is not None:
            return False
        if self.always or (self.in_columns and self._trial is None):
            return True
        if self.rows.reads_events and not batch.came_in_columns:
            return False  # taking events apart into columns would cost more than running them in rows
        self._taken += len(batch)
        return self._taken >= ENOUGH and (self._trial is None or self._trial.in_columns) and ready()

    def _keep_house(self, events: int, now: int) -> None:
        """After a piece of so many events: drop expired goals and count the others, if it is time.

        The cost grows with the number of goals, but they are counted once half as many events have come since the last
        time, or when they may have reached a limit; this way it stays a constant per event.
        """
        rows, house = self.rows, self.rows.house
        rows.since_sweep += events
        if rows.since_sweep < house.every[0]:
            return
        since, rows.since_sweep = rows.since_sweep, 0
        if house.is_due(since):
            columns, state = self._in_columns(), rows.state
            self.counters.pruned += columns.sweep(now)
            self.counters.pruned += sum(closure.sweep(now) for closure in state.closures.values())
            self.counters.pruned += sum(runs.expire(now) for runs in state.runs.values())
            self.counters.pruned += sum(s.expire(now) for s in state.stores.values() if s.longest is not None)
            size = columns.held_bytes() + state.estimated_bytes()
            house.note(columns.live() + state.live(), size, columns.live_by_node)
        house.plan()

    def forget_terms(self) -> None:
        """Forget the terms that no goal uses."""
        if self.in_columns and self._columns is not None:
            self._columns.forget_terms()

    def next_due(self) -> int | None:
        due = self.rows.next_due()
        if not self.in_columns or self._columns is None or (at := self._columns.next_due()) is None:
            return due
        return at if due is None else min(at, due)

    def horizon(self) -> int | None:
        """The latest time at which anything is due after the end of the stream.

        Only deadlines remain then.  Each is a batch of its own, too small to be worth columns, so the rows finish.
        """
        if self.next_due() is None:
            return None
        self.to_rows()
        return self.rows.horizon()

    # --- the two forms ---

    def _in_columns(self) -> ColumnRules:
        """The rules in columns; the goals are moved there first if rows still have them."""
        from etalis_py.executors.columns.rules import ColumnRules  # loads the compiled kernels: half a second

        if self._columns is None:
            self._columns = ColumnRules(
                self.rules,
                self._row_operator,
                self.rows.function_of_node,
                self._give,
                self.rows.runtime,
                self.division.parts,
                self._in_rows,
                self._remember if looks_back(self.rules) else None,
                self._keep_house,
            )
        if not self.in_columns:
            self.in_columns = True
            self._fill(self._columns)
            self._columns.begin(self.rows.state.log)
        return self._columns

    def _in_rows(self, part: RowSection) -> tuple[PartialRules, TriplesOf]:
        """The rules of a part in rows, and a function that makes the triples of their rows."""
        return self.rows.part(rules_of_part(self.rules, part)), self._triples_of

    def _remember(self, occurrences: Iterable[tuple[int, int, str, str, str, str]]) -> None:
        """Add occurrences (end, start, s, p, o, stream), in order of their ends, to the history."""
        for end, start, s, p, o, stream in occurrences:
            self.rows.state.history.add(start, end, ((s, p, o),), stream)

    def _triples_of(self, number: int) -> Callable[[Row], Iterable[Triple]]:
        """A function that makes the triples of a row reported under a number."""
        return self.shapes[number].triples or (lambda row: ())

    def _row_operator(self, name: str) -> Callable[[int, list[Row]], Any]:
        """The row operator of a node, for rows without decoded values; the values that it reads are decoded first."""
        node = self.rows.state.nodes[name]
        layout = self.rows.state.layouts[ir.refs(node)[0].node]
        if not layout.values:
            return self.rows.operator(name)
        advance = self.rows.operator(name)
        return lambda t, rows: advance(t, [rebuilt(layout, x) for x in rows])

    def _fill(self, columns: ColumnRules) -> None:
        """Move goals and windows from rows into columns."""
        for name, operator in columns.windows(every=True):
            group = self._windowed_group(name)
            held = group.held()
            operator.fill(held or [], group.last_rows())
            operator.fast = operator.fast and held is not None
            if operator.fast:
                group.clear()
        for node, side, waiting in columns.stores():
            store = self.rows.state.stores.get((node, side))
            if store is None:
                continue
            width = store.layout.width
            goals = [x[:width] for x in store.dump()]
            store.clear()
            if goals:
                waiting.fill(goals, columns.terms)

    def _give(self, name: str, rows: list[Row], reported: list[tuple[tuple[str, ...], Row]]) -> None:
        """Let the row operator of an aggregate continue from this window and these rows, which are already reported."""
        group = self._windowed_group(name)
        if isinstance(group, Runs):
            group.go_on(rows, self.rows.state.layouts[group.node.child.node])
            return
        if group.node.window is not None:
            layout = self.rows.state.layouts[group.node.child.node]
            rows = [unpacked(x, layout.width, partial(rebuilt, layout)) for x in rows]
        group.go_on(rows, reported)

    def _windowed_group(self, name: str) -> Grouping | IncrementalSums | Runs:
        runs = self.rows.state.runs.get(name)
        if runs is not None:
            return runs
        group = self.rows.state.groups[name]
        assert not isinstance(group, GroupingPerQuery)  # an aggregation per query has no columnar form
        return group

    def add_to_family(self, family: str, row: Member) -> None:
        if self.families is not None and self.families.has_gone:
            self.to_rows()
        self.rows.add_to_family(family, row)

    def to_rows(self) -> None:
        """Move goals and windows from columns back into rows."""
        if not self.in_columns or self._columns is None:
            return
        self._tell()
        self.in_columns = False
        for name, operator in self._columns.windows():
            self._give(name, operator.rows(), operator.reported())
        for node, side, waiting in self._columns.stores():
            self.rows.state.stores[(node, side)].insert_all(waiting.emptied(self._columns.terms))

    # --- state ---

    def close(self, t: int) -> None:
        self.reports[:] = as_reported(self.reports, one_by_one=True)  # the reports of the end follow, and are rows
        asked = any(o.late is not None or o.timeless is not None for o in self.rules.outputs)
        if self._columns is None or asked or looks_at_end(dict(self.rules.nodes)):
            self.to_rows()
            self.rows.close(t)
            return
        # Goals stay where they are: only runs report at the end, and aggregates that have one group even of nothing.
        windows = [w for w in self._columns.windows() if self._reports_at_end(w[0])] if self.in_columns else []
        for name, operator in windows:
            self._give(name, operator.rows(), operator.reported())
        self.rows.close(t)
        for name, _ in windows:
            self._windowed_group(name).clear()

    def _reports_at_end(self, name: str) -> bool:
        node = self.rows.state.nodes[name]
        return not (isinstance(node, ir.Group) and node.keys)

    def _note(self, columns: ColumnRules, batch: InColumns) -> None:
        """Record what changes in columns from this batch on."""
        from etalis_py.executors.columns import journal  # loads the compiled kernels

        journal.note(columns.stores(), batch, self.rows.state.nodes)
        self._noted = True

    def _tell(self) -> None:
        """Write the changes that were recorded in columns into the journal."""
        if self._noted and self._columns is not None:
            from etalis_py.executors.columns import journal  # loads the compiled kernels

            self.rows.state.journal.extend(journal.entries(self._columns.stores(), self._columns.terms))
        self._forget_noted()

    def _forget_noted(self) -> None:
        if self._noted and self._columns is not None:
            from etalis_py.executors.columns import journal  # loads the compiled kernels

            journal.forget(self._columns.stores())
        self._noted = False

    def journal(self) -> list[Any]:
        self._tell()
        return self.rows.journal()

    def forget_journal(self) -> None:
        self._forget_noted()
        self.rows.forget_journal()

    def journaling(self, on: bool) -> None:
        self._tell()
        self.rows.journaling(on)

    def dump(self) -> dict[str, Any]:
        columns = self._columns
        if not self.in_columns or columns is None or not self._tells:
            self.to_rows()
            return self.rows.dump()
        tables = {
            (node, side): waiting.table(waiting.store.goals(), columns.terms)
            for node, side, waiting in columns.stores()
        }
        there = self.rows.dump()
        others = [entry for entry in there["goals"] if tuple(entry[:2]) not in tables]
        return {**there, "goals": [*([*key, table, None] for key, table in tables.items()), *others]}

    def load(self, state: Mapping[str, Any]) -> None:
        self._forget_noted()
        self.to_rows()
        self.rows.fit_chains(state["goals"])
        self._follow()
        tables = [x for x in state["goals"] if not isinstance(x[2], list | tuple)]
        if not tables or not self._takes_tables([x[2] for x in tables]):
            self.rows.load(state)
            return
        dump.read(self.rows, {**state, "goals": [x for x in state["goals"] if isinstance(x[2], list | tuple)]})
        self.rows.state.journal.clear()
        columns = self._in_columns()
        there = {(node, side) for node, side, _ in columns.stores()}
        self._repeat(columns, [["=", *entry[:3]] for entry in tables if tuple(entry[:2]) in there])

    def replay(self, entries: Sequence[Any]) -> None:
        self._forget_noted()
        changes, *others = entries
        if (built := self.rows.built_for(changes)) != self.rows.built:
            self.to_rows()
            self.rows.run_as_joins(built)
            self._follow()
        of_tables = all(entry[0] in dump.OF_TABLES for entry in changes)
        if of_tables and changes and self._takes_tables([entry[3] for entry in changes]):
            self._in_columns()
        if not of_tables or not self.in_columns or self._columns is None:
            self.to_rows()
            self.rows.replay(entries)
            return
        self._repeat(self._columns, changes)
        self.rows.replay([[], *others])

    def _takes_tables(self, tables: Sequence[Any]) -> bool:
        """Whether the goals in these tables are worth loading into columns."""
        many = self.always or (sum(map(len, tables)) >= ENOUGH and not self.rows_next)
        return many and self.reason is None and self._tells and ready()

    @staticmethod
    def _repeat(columns: ColumnRules, changes: Sequence[Any]) -> None:
        from etalis_py.executors.columns import journal  # loads the compiled kernels

        journal.repeat(columns.stores(), columns.terms, changes)

    def kept(self) -> StateSize:
        kept = self.rows.kept()
        if self.in_columns and self._columns is not None:
            for node, _, waiting in self._columns.stores():
                live = waiting.store.live()
                kept.goals += live
                kept.per_rule[node] = kept.per_rule.get(node, 0) + live
            for node, operator in self._columns.windows():
                kept.goals += len(operator.window)
                kept.per_rule[node] = len(operator.window)
        return kept
