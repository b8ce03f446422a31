"""Aggregates of groups over a sliding window, for a batch: COUNT, SUM, AVG, MIN, MAX, SAMPLE, GROUP_CONCAT,
DISTINCT, HAVING.

In each instant in which a solution enters, it gives the rows that changed over the solutions in the window: those with
end in (t − d, t], or the last n of each group in canonical order.  Operands, HAVING and what is calculated with the
results are expressions over columns.  Sums are exact sums of integers, of decimals or of doubles (``arguments``), as
long as they fit; with any other summand the row operator takes over, with the same window.

Cost: some steps for each solution that enters or leaves, and one pass over the window for each batch.  State: the
solutions in the window.

A trace of ``SELECT ?c (MAX(?p) AS ?m) … WITHIN 10 s GROUP BY ?c``: a 3@1 → a 3 [1,1]; a 2@5 → a 3 [1,5]; b 4@12 →
a 2 [5,5], b 4 [12,12].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

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
from etalis_py.executors.columns.arguments import (
    Arguments,
    Ranks,
    Summands,
    Unfit,
    added_apart,
    ranks_of,
    results_of,
    summands_of,
)
from etalis_py.executors.columns.frames import Bindings
from etalis_py.executors.columns.group_concat import Members, joined_texts
from etalis_py.executors.columns.kernels import grouping as k
from etalis_py.executors.columns.running_aggregate import solutions_apart
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.supported_rules import shows_best
from etalis_py.executors.columns.tables import SolutionTable
from etalis_py.executors.columns.window_sums import joined, rows_from
from etalis_py.kernel.batch import Row


class GroupedOperator(Aggregation):
    """One such aggregation."""

    def fill(self, rows: list[Row], reported: list[Reported]) -> None:
        super().fill(rows, reported)
        self._reported: list[Reported] | None = reported  # by rows, until solutions come in columns

    def reported(self) -> list[Reported]:
        """The last row of each group: that of the solutions in the window, unless HAVING refuses it."""
        if self._reported is not None:
            return self._reported
        table, keys, _ = self._answers(SolutionTable.empty(len(self.node.child.columns)))
        columns = [self.terms.spellings(column) for column in keys.T]
        named = zip(*columns, strict=True) if columns else [()] * len(table)
        return list(zip(named, solutions_of(table, self.terms), strict=True))

    def advance(self, child: SolutionTable) -> SolutionTable:
        """The rows of each instant in which a solution entered."""
        if not len(child):
            return SolutionTable.empty(len(self.node.head))
        child = self.in_order(child)
        if self.fast and child.at is child.end:
            try:
                answers, _, self.window = self._answers(child)
            except Unfit:
                pass
            else:
                self._reported = None
                return answers
        return self.in_rows(child)

    def _answers(self, child: SolutionTable) -> tuple[SolutionTable, np.ndarray, SolutionTable]:
        """The rows that change as these solutions enter, their keys, and the window after them.

        Without new solutions, these are the rows of all groups as they are.
        """
        both, held = joined(self.window, child), len(self.window)
        frame = Bindings.of(self.terms, both, self.node.child.columns)
        calls = [self._arguments(call, frame) for call in self.node.aggregates]
        added = [one for of_call in calls for one in added_apart(of_call)]
        numbers, keys = self._groups(frame)
        groups = np.zeros((len(keys), k.STATE + len(added) * k.OF_STATE), np.int64)
        groups[:, [k.HEAD, k.TAIL, k.LOW, k.LOWS, k.TOUCHED]] = -1
        for at in range(k.STATE, groups.shape[1], k.OF_STATE):
            groups[:, at + k.FIELDS : at + k.OF_STATE] = -1
        arguments = np.zeros((len(added), len(both), 4), np.int64)
        members = np.full((len(added), len(both)), -1, np.int64)
        most_members = 0
        for a, of_call in enumerate(added):
            arguments[a, :, 0], arguments[a, :, 1] = of_call.given, of_call.summands.numbers
            arguments[a, :, 2], arguments[a, :, 3] = of_call.ranks.numbers, of_call.errors
            if of_call.distinct is not None:
                pairs = Keys(2, np.int64)
                members[a] = pairs.numbers(np.column_stack([numbers, of_call.distinct]), create=True) + most_members
                most_members += pairs.count
        following = np.empty((len(both), 2 + len(added)), np.int64)
        before = np.empty((len(both), 1 + len(added)), np.int64)
        answers = np.empty((2 * len(both) + 2 * len(keys), k.FIRST + len(added) * k.FIELDS), np.int64)
        window = self.node.window
        assert window is not None
        before_batch = None
        if len(child) and shows_best(self.node):
            before_batch = _as_held(held, both, numbers, arguments, members, most_members, groups.copy())
        sizes, touched = (np.zeros(len(keys), np.int64) for _ in range(2))
        count, oldest = k.aggregate(
            held,
            -1 if window.events else window.micros,
            window.events or -1,
            self.node.hides_keys and not window.events,
            before_batch is not None,
            both.end,
            both.start,
            numbers,
            arguments,
            members,
            np.zeros(most_members, np.int64),
            groups,
            sizes,
            touched,
            following,
            before,
            answers,
        )
        if not len(child):
            count = k.current(both.end, both.start, arguments, groups, sizes, answers)
        answers = answers[:count]
        frame = self._finished(answers, both, numbers, keys, calls)
        result, changed = self._changed(frame, answers)
        if before_batch is not None:
            held_rows = self._finished(before_batch, both, numbers, keys, calls)
            held_rows = replace(held_rows, rows=before_batch[held_rows.rows, k.GROUP])
            result = self._best(held_rows, frame, answers, both.end, len(keys))
        if not window.events:
            return result, keys[changed], rows_from(both, oldest)
        marked = np.zeros(len(both), np.bool_)
        k.mark_held(groups, following, marked)
        return result, keys[changed], both.take(marked)

    def _groups(self, frame: Bindings) -> tuple[np.ndarray, np.ndarray]:
        """The number of each solution's group, and the key of each group."""
        keys = Keys(len(self.node.keys))
        unbound = np.zeros(len(frame), np.int32)
        columns = [frame.columns.get(name, unbound) for name in self.node.keys]
        if not columns:
            return np.zeros(len(frame), np.int64), np.zeros((1, 0), np.int32)
        numbers = keys.numbers(np.column_stack(columns), create=True)
        return numbers, keys.rows()

    # --- arguments ---

    def _arguments(self, call: alg.AggregateCall, frame: Bindings) -> Arguments:
        rows = len(frame)
        nothing = np.zeros(rows, np.int64)
        if call.operand is None:
            distinct = None
            if call.distinct:
                names = self.node.child.columns
                distinct = Keys(len(names)).numbers(solutions_apart(frame, names), create=True)
            return Arguments(np.ones(rows, np.bool_), Summands(nothing), Ranks(nothing), distinct)
        ids = frame.bound(call.operand)
        given = ids != 0
        summands = summands_of(self.terms, ids, given) if call.name in ("SUM", "AVG") else Summands(nothing)
        ranks = Ranks(nothing)
        if call.name in ("MIN", "MAX", "SAMPLE"):
            ranks = ranks_of(self.terms, ids, call.name == "MAX")
        if call.name == "GROUP_CONCAT":
            given &= self.terms.first_bytes(ids) != ord("_")
            return Arguments(given, summands, ranks, None, ids)
        distinct = ids if call.distinct and call.name in ("COUNT", "SUM", "AVG") else None
        return Arguments(given, summands, ranks, distinct)

    # --- rows ---

    def _finished(
        self,
        answers: np.ndarray,
        both: SolutionTable,
        numbers: np.ndarray,
        keys: np.ndarray,
        calls: Sequence[Arguments],
    ) -> Bindings:
        """The answers that HAVING lets through, with all that the rows of the node show."""
        at, group = both.end[answers[:, k.ROW]], answers[:, k.GROUP]
        columns = {name: keys[group, i] for i, name in enumerate(self.node.keys)}
        first = k.FIRST
        after = alg.texts_after_having(self.node.having, self.node.aggregates)
        waiting: dict[str, Callable[[np.ndarray], np.ndarray]] = {}
        for call, of_call in zip(self.node.aggregates, calls, strict=True):
            width = len(added_apart(of_call)) * k.FIELDS
            fields = answers[:, first : first + width]
            if of_call.terms is None:
                columns[call.variable] = self._results(call, fields, of_call)
            else:
                texts = partial(self._texts, call, of_call.terms, fields, both, numbers, len(keys), at, group)
                if call.variable in after:
                    waiting[call.variable] = texts
                else:
                    columns[call.variable] = texts(np.arange(len(answers)))
            first += width
        rows = np.arange(len(answers))
        end, start = answers[:, k.END].copy(), answers[:, k.START].copy()
        frame = Bindings(self.terms, at, end, start, columns, rows)
        frame = let_through(self.node, frame.keep(answers[:, k.BEFORE] != k.GONE))
        columns = {**frame.columns, **{name: texts(frame.rows) for name, texts in waiting.items()}}
        return calculated(self.node, replace(frame, columns=columns))

    def _texts(
        self,
        call: alg.AggregateCall,
        ids: np.ndarray,
        fields: np.ndarray,
        both: SolutionTable,
        numbers: np.ndarray,
        groups: int,
        at: np.ndarray,
        group: np.ndarray,
        rows: np.ndarray,
    ) -> np.ndarray:
        """The results of a GROUP_CONCAT in these answers; ``ids`` are the terms that the solutions give it."""
        counted, errors = fields[rows, k.COUNTED], fields[rows, k.ERRORS]
        members = Members.of(numbers, groups, both.end, at[rows], group[rows], counted + errors)
        texts = self._distinguished(joined_texts(self.terms, ids, members, call.separator))
        return np.where(errors > 0, np.int32(0), texts)

    def _changed(self, frame: Bindings, answers: np.ndarray) -> tuple[SolutionTable, np.ndarray]:
        """The rows of these answers that are new, and their groups."""
        table, group = frame.table(self.node.head), answers[:, k.GROUP]
        if self.node.hides_keys:
            repeats = self._repeats_any(table, answers, frame.rows)
        else:
            repeats = self._repeats(table, group, frame.rows)
        new = (answers[frame.rows, k.BEFORE] == 0) & ~repeats
        return table.take(new), group[frame.rows][new]

    def _best(
        self, held: Bindings, frame: Bindings, answers: np.ndarray, ends: np.ndarray, groups: int
    ) -> SolutionTable:
        """The rows that are new in the result that LIMIT and OFFSET let through, given those of the held solutions."""
        table = frame.table(self.node.head)
        same = np.zeros(len(answers), np.bool_)
        same[frame.rows] = self._repeats(table, answers[:, k.GROUP], frame.rows)
        later = answers[:, k.BEFORE] != 1
        number = np.cumsum(later) - 1
        rows = frame.keep(later[frame.rows])
        rows = replace(rows, rows=number[rows.rows])
        at, group = ends[answers[later, k.ROW]], answers[later, k.GROUP]
        return best_rows(self.node, held, Answers(rows, at, group, same[later]), groups)

    def _repeats(self, table: SolutionTable, group: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Which rows are equal to the one before them of the same group, if that was not refused."""
        repeats = np.zeros(len(table), np.bool_)
        before = np.empty(len(rows), np.int64)
        k.follow_in_group(group, rows, np.full(int(group.max(initial=-1)) + 1, -1), before)
        other = np.flatnonzero(before >= 0)
        one = before[other]
        near = (table.end[one] == table.end[other]) & (table.start[one] == table.start[other])
        one, other = one[near], other[near]
        if len(one):
            same = np.ones(len(one), np.bool_)
            for column in table.columns:
                same &= self.terms.distinguished(column[one]) == self.terms.distinguished(column[other])
            repeats[other] = same
        return repeats

    def _repeats_any(self, table: SolutionTable, answers: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Which rows are equal to one that some group had before their instant, each of them to a different one."""
        repeats = np.zeros(len(table), np.bool_)
        after = answers[rows, k.BEFORE] == 0
        if not (after & (table.end < table.at)).any():  # any other row ends now, as none did before
            return repeats
        order = np.argsort(answers[:, k.GROUP], kind="stable")
        until = np.full(len(answers), -1, np.int64)
        followed = answers[order[:-1], k.GROUP] == answers[order[1:], k.GROUP]
        until[order[:-1][followed]] = answers[order[1:][followed], k.ROW]
        terms = [self.terms.distinguished(column) for column in table.columns]
        now, old = np.flatnonzero(after), np.flatnonzero(until[rows] >= 0)
        keys = Keys(3 + len(terms), np.int64)
        before, current = (
            keys.numbers(
                np.column_stack([instants, table.end[some], table.start[some], *(column[some] for column in terms)]),
                create=True,
            )
            for some, instants in ((old, until[rows[old]]), (now, answers[rows[now], k.ROW]))
        )
        # The first of equal rows stand for those that were there.
        arranged = np.argsort(current, kind="stable")
        counted = current[arranged]
        place = np.arange(len(counted)) - np.searchsorted(counted, counted)
        repeats[now[arranged]] = place < np.bincount(before, minlength=keys.count)[counted]
        return repeats

    def _results(self, call: alg.AggregateCall, answers: np.ndarray, of_call: Arguments) -> np.ndarray:
        """The terms of an aggregate; an error is unbound."""
        counted, ranked = answers[:, k.COUNTED if of_call.distinct is None else k.DISTINCT], of_call.ranks.terms
        if call.name == "COUNT":
            return self._distinguished(self.terms.append_integers(np.ascontiguousarray(counted)))
        if call.name in ("MIN", "MAX", "SAMPLE"):
            failed = answers[:, k.COUNTED] == 0
            if call.name != "SAMPLE":
                failed |= answers[:, k.ERRORS] > 0
            best = ranked[np.where(failed, 0, answers[:, k.LEAST])] if len(ranked) else np.zeros(len(answers), np.int32)
            return np.where(failed, np.int32(0), best.astype(np.int32))
        totals = [np.ascontiguousarray(answers[:, at]) for at in range(k.TOTAL, answers.shape[1], k.FIELDS)]
        spelled = results_of(of_call.summands, totals, np.maximum(counted, 1), call.name == "AVG")
        ids = self._distinguished(self.terms.append(spelled))
        return np.where(answers[:, k.ERRORS] > 0, np.int32(0), ids)

    def _distinguished(self, ids: np.ndarray) -> np.ndarray:
        """Ids that are equal where the terms are, if that matters."""
        return self.terms.distinguished(ids) if self.distinguishes else ids


def _as_held(
    held: int,
    both: SolutionTable,
    numbers: np.ndarray,
    arguments: np.ndarray,
    members: np.ndarray,
    most_members: int,
    groups: np.ndarray,
) -> np.ndarray:
    """The answers of the groups while only the first ``held`` solutions are there; ``groups`` are empty."""
    aggregates = len(arguments)
    ends, starts, numbers = both.end[:held], both.start[:held], numbers[:held]
    arguments, members = np.ascontiguousarray(arguments[:, :held]), np.ascontiguousarray(members[:, :held])
    following, before = np.empty((held, 2 + aggregates), np.int64), np.empty((held, 1 + aggregates), np.int64)
    sizes, touched = (np.zeros(len(groups), np.int64) for _ in range(2))
    answers = np.empty((len(groups), k.FIRST + aggregates * k.FIELDS), np.int64)
    times = np.zeros(most_members, np.int64)
    given = ends, starts, numbers, arguments, members, times, groups, sizes, touched, following, before, answers
    k.aggregate(held, -1, -1, False, False, *given)
    return answers[: k.current(ends, starts, arguments, groups, sizes, answers)]
