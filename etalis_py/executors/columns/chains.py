"""Chain: a SEQ of several parts over a batch, without solutions of only some parts.

The definition, and the goals that are kept, are those of rows (``rows.generate.chains``): a solution of a part is kept
with the latest start of what it completes, and its own start is a column.  All parts of a batch are reduced and
inserted first, in order.  The solutions of the last part are completed afterwards, part by part backwards, in portions:
each of these joins has as many pairs as lead to matches, at most.  Matches that an aggregate only sums up are not made
(``chain_sums``), unless they are few.

Cost: for each solution, a look-up of its key and a copy; for each match, some nanoseconds per part.  State: the
solutions of all parts but the last, as ``ColumnGoalStore``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from etalis_rules import program as ir
from etalis_rules.operators import chain_sides

from etalis_py.executors.columns.chain_sums import ChainSums
from etalis_py.executors.columns.equal_sides import KeyOfSide
from etalis_py.executors.columns.family_columns import Sources
from etalis_py.executors.columns.frames import Bindings, RuleSteps
from etalis_py.executors.columns.instants import InstantOperator, SummingOperator
from etalis_py.executors.columns.join_comparisons import Side
from etalis_py.executors.columns.joins import MANY_AT_ONCE, NO_OPERATORS, Waiting
from etalis_py.executors.columns.kernels.chaining import NEVER, latest_starts
from etalis_py.executors.columns.kernels.joining import BEFORE, UNBOUNDED
from etalis_py.executors.columns.store import ColumnGoalStore, Keys
from etalis_py.executors.columns.tables import SolutionTable, concat_tables, first_end
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.rows.generate.chains import OWN
from etalis_py.executors.rows.generate.summed_chains import SummedChain
from etalis_py.executors.rows.run.grouping import Grouping

Pairs = tuple[np.ndarray, np.ndarray]
"""The places of goals, and for each of them the number of the solution that it precedes."""
_NOTHING_COMPARED = Side((), (), ())


class ChainOperator:
    """One chain and its goals."""

    def __init__(
        self, node: ir.Chain, terms: Terms, sources: Sources, watch: Callable[[list[SolutionTable]], None]
    ) -> None:
        """``watch`` is called with the matches so far, between portions; it raises if they are too many."""
        self.node = node
        self.terms = terms
        self.steps = RuleSteps(node.steps, sources)
        self._watch = watch
        self.most = MANY_AT_ONCE
        """How many pairs of each two parts are in a portion."""
        self._listed = self._watched = 0  # how many matches of a batch there are, and were when ``watch`` was called
        self.sums: ChainSums | None = None
        """What its reader gets in place of matches, if it only sums them up."""
        self._longest = None if node.bound is None else node.bound.micros
        self._bound = UNBOUNDED if self._longest is None else self._longest
        # By which columns a part finds those before it, and is found itself.
        after, before = node.parts[1:], node.parts[:-1]
        self._seeks = [_places(ref, key) for ref, key in zip(after, node.keys, strict=True)]
        self._found = [_places(ref, key) for ref, key in zip(before, node.keys, strict=True)]
        wanted = {name for ref in node.parts for name in ref.columns} if node.steps else set(node.head)
        self._shown = {
            name: (place, column)
            for place, ref in enumerate(node.parts)
            for column, name in enumerate(ref.columns)
            if name in wanted
        }
        self.clear()

    def clear(self) -> None:
        """Forget all goals."""
        self._keys = [Keys(len(key)) for key in self.node.keys]
        widths = (len(ref.columns) + bool(place) for place, ref in enumerate(self.node.parts[:-1]))
        self.goals = [
            ColumnGoalStore(keys, width, 0, self._longest) for keys, width in zip(self._keys, widths, strict=True)
        ]

    def sides(self) -> dict[str, Waiting]:
        """The waiting goals, by part."""
        waiting = {}
        for place, (side, ref) in enumerate(zip(chain_sides(self.node), self.node.parts, strict=False)):
            names = (*ref.columns, OWN) if place else ref.columns
            key = KeyOfSide(names, self._found[place])
            waiting[side] = Waiting(self.goals[place], self._keys[place], key, _NOTHING_COMPARED)
        return waiting

    def advance(self, *parts: SolutionTable) -> SolutionTable:
        """The new matches."""
        width = len(self.node.head)
        if not any(map(len, parts)):
            return SolutionTable.empty(width)
        now = first_end(*parts)
        for place, table in enumerate(parts[:-1]):
            if len(table):
                self._insert(place, table, now)
        last = parts[-1]
        if not len(last):
            return SolutionTable.empty(width)
        sought = last.matrix(self._seeks[-1])
        if self.sums is not None:
            numbers = [keys.numbers(sought, create=False) for keys in self._keys]
            summed = self.sums.table(last, self.goals, numbers, self._bound)
            if summed is not None:
                return summed
        matches: list[SolutionTable] = []
        self._listed = self._watched = 0
        self._complete(len(parts) - 2, last.end, last.start, sought, last, [], matches)
        listed = concat_tables(matches, width)
        if self.sums is not None:
            self.sums.note(len(last), len(listed))
        return listed

    def _insert(self, place: int, table: SolutionTable, now: int) -> None:
        """Insert the solutions of a part, if what they complete exists."""
        start = table.start
        if place:
            sought = self._keys[place - 1].numbers(table.matrix(self._seeks[place - 1]), create=False)
            before, start = self.goals[place - 1], np.empty(len(table), np.int64)
            before.fit()
            latest_starts(sought, table.start, before.buckets, before.ends, before.starts, start)
            kept = (start != NEVER) & (table.end - start <= self._bound)
            table, start = table.take(kept), start[kept]
            own = np.zeros(len(table), np.int32)
            lasting = np.flatnonzero(table.start != table.end)
            if len(lasting):
                own[lasting] = self.terms.append_integers(table.start[lasting])
            table = SolutionTable(table.at, table.end, table.start, (*table.columns, own))
        keys = self._keys[place].numbers(table.matrix(self._found[place]), create=True)
        self.goals[place].insert(keys, table.end, start, table.matrix(), np.empty((len(table), 0)), now)

    def _complete(
        self,
        place: int,
        end: np.ndarray,
        start: np.ndarray,
        keys: np.ndarray,
        last: SolutionTable,
        chosen: list[Pairs],
        matches: list[SolutionTable],
    ) -> None:
        """Complete solutions whose first part is the one after ``place``: their ends, own starts, and keys there.

        ``chosen`` has the pairs of the parts after it, from the last one on.
        """
        store = self.goals[place]
        sought = self._keys[place].numbers(keys, create=False)
        asking = end, start, np.empty((len(end), 0))
        for some, goals, rows in store.pairs(BEFORE, sought, asking, self._bound, NO_OPERATORS, self.most):
            if not len(goals):
                continue
            rows = rows + some.start
            pairs = [*chosen, (goals, rows)]
            if place:
                before = store.terms[goals][:, self._seeks[place - 1]]
                self._complete(place - 1, end[rows], self._own_starts(store, goals), before, last, pairs, matches)
                continue
            matches.append(self._shown_of(pairs, last).table(self.node.head))
            self._listed += len(matches[-1])
            if 4 * self._listed > 5 * self._watched:  # all matches are weighed each time
                self._watched = self._listed
                self._watch(matches)

    def _own_starts(self, store: ColumnGoalStore, goals: np.ndarray) -> np.ndarray:
        start, own = store.ends[goals], store.terms[goals, -1]
        lasting = np.flatnonzero(own)
        if len(lasting):
            start[lasting] = self.terms.values(own[lasting])[2]
        return start

    def _shown_of(self, chosen: list[Pairs], last: SolutionTable) -> Bindings:
        """The complete solutions, after the steps; ``chosen`` leads from the last part to the first."""
        goals, rows = chosen[-1]
        first = self.goals[0].starts[goals]
        terms = [self.goals[0].terms[goals]]
        for place, (earlier, later) in enumerate(reversed(chosen[:-1]), 1):
            terms.append(self.goals[place].terms[earlier[rows]])
            rows = later[rows]
        columns = {
            name: terms[place][:, column].copy() if place < len(terms) else last.columns[column][rows]
            for name, (place, column) in self._shown.items()
        }
        end = last.end[rows]
        return self.steps.applied(Bindings(self.terms, end, end, first, columns, np.arange(len(rows))))


def _places(ref: ir.Ref, names: tuple[str, ...]) -> list[int]:
    return [ref.columns.index(name) for name in names]


def sum_up_chains(
    plans: Mapping[str, SummedChain],
    operators: dict[str, Any],
    groups: Mapping[str, object],
    terms: Terms,
) -> None:
    """Let each chain with a plan hand on sums in place of matches; ``groups`` aggregate in rows."""
    for name, plan in plans.items():
        chain = operators[name]
        if not isinstance(chain, ChainOperator):
            continue
        reader, in_rows = operators[plan.group], groups.get(plan.group)
        if isinstance(reader, InstantOperator) and isinstance(in_rows, Grouping) and not plan.extreme:
            reader = operators[plan.group] = SummingOperator(reader, in_rows.advance, len(plan.reader.head), terms)
        calls = [call.name for call in plan.reader.aggregates]
        chain.sums = ChainSums(chain.node, plan, calls, terms, None if plan.extreme else reader)
