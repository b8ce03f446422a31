"""What aggregations in columns share: a window or groups, which rows take over when something unfit comes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.columns.arguments import value_ranks
from etalis_py.executors.columns.frames import Bindings, united
from etalis_py.executors.columns.instants import Advance, InstantOperator
from etalis_py.executors.columns.kernels.grouping import follow_best
from etalis_py.executors.columns.kernels.ordering import mark_ties
from etalis_py.executors.columns.supported_rules import shows_best
from etalis_py.executors.columns.tables import SolutionTable, canonical
from etalis_py.executors.columns.terms import Terms
from etalis_py.kernel.batch import Row

Reported = tuple[tuple[str, ...], Row]
"""The key of a group and its last row."""


class KeepsSolutions:
    """What keeps solutions in ``window`` between batches, and their terms with them."""

    window: SolutionTable

    @property
    def held_bytes(self) -> int:
        """About how much memory this takes, without the terms."""
        return self.window.bytes

    def mark_terms(self, marked: np.ndarray) -> None:
        """Mark the terms that are kept."""
        for column in self.window.columns:
            marked[column] = True

    def renumber(self, renumbered: np.ndarray) -> None:
        """Take over the new ids of these terms."""
        table = self.window
        columns = tuple(renumbered[column] for column in table.columns)
        self.window = SolutionTable(table.at, table.end, table.start, columns)


class Aggregation(KeepsSolutions, ABC):
    """One aggregation; ``slow`` is its row operator, and ``give`` hands that what is in the window.

    ``compared``: some rule compares the results, so equal numbers must be one term.
    """

    def __init__(
        self,
        node: ir.Group,
        terms: Terms,
        slow: Advance,
        give: Callable[[list[Row], list[Reported]], None],
        *,
        compared: bool,
    ) -> None:
        self.node = node
        self.terms = terms
        self.compared = compared
        self.slow = InstantOperator(slow, len(node.head), terms)
        self.give = give
        self.fill([], [])

    def fill(self, rows: list[Row], reported: list[Reported]) -> None:
        """Continue with these solutions in the window, and these rows reported."""
        self.window, self.fast = window_table(rows, len(self.node.child.columns), self.terms), True

    def rows(self) -> list[Row]:
        """The solutions in the window, as rows."""
        return solutions_of(self.window, self.terms)

    def reported(self) -> list[Reported]:
        """The last row of each group; none where a new solution always makes another row."""
        return []

    @abstractmethod
    def advance(self, child: SolutionTable) -> SolutionTable:
        """The rows of each instant in which a solution entered."""

    @property
    def distinguishes(self) -> bool:
        """Whether equal results must be one term: they are compared, or read again."""
        evaluated = self.node.having or not all(alg.variable_of(e) for _, e in self.node.extends)
        return self.compared or bool(evaluated) or shows_best(self.node)

    def in_order(self, child: SolutionTable) -> SolutionTable:
        """The solutions of each instant in canonical order."""
        return canonical(child, self.terms, [self.node.child.columns.index(c) for c in self.node.canonical])

    def in_rows(self, child: SolutionTable) -> SolutionTable:
        """The same by the row operator, which goes on from the window."""
        if self.fast:
            given = self.rows(), self.reported()
            self.fast = False
            self.give(*given)
            self.fill([], [])
            self.fast = False
        return self.slow.advance(child)


def let_through(node: ir.Group, frame: Bindings) -> Bindings:
    """The rows that HAVING lets through, given keys and results."""
    for e in node.having:
        frame = frame.keep(frame.holds(e))
    return frame


def calculated(node: ir.Group, frame: Bindings) -> Bindings:
    """The rows with what is calculated from keys and results."""
    for name, e in node.extends:
        bound = frame.bound(e)
        known = frame.columns.get(name)
        if known is not None:
            bound = np.where(bound != 0, bound, known)
        frame = replace(frame, columns={**frame.columns, name: bound})
    return frame


@dataclass(frozen=True, slots=True)
class Answers:
    """The groups that change in a batch, in order of the instants ``at``, and their rows.

    The ``rows`` of a group's row are its number here; a group whose row is not there has none any more.  ``same`` marks
    rows that are equal to the one before them of their group.
    """

    rows: Bindings
    at: np.ndarray
    groups: np.ndarray
    same: np.ndarray


def best_rows(node: ir.Group, before: Bindings, answers: Answers, groups: int) -> SolutionTable:
    """The rows that LIMIT and OFFSET let through and that were not in the result of the instant before.

    ``before`` are the rows as the batch begins; their ``rows`` are the numbers of their groups, of which there are
    ``groups``.  Each group has a row of its own: keys are shown.
    """
    rows = united([before, answers.rows])
    entries = np.concatenate([before.rows, groups + answers.rows.rows])
    owners = np.concatenate([np.arange(groups), answers.groups])
    places, row_of = np.full(len(owners), -1, np.int64), np.full(len(owners), -1, np.int64)
    places[entries], row_of[entries] = _places(node, rows), np.arange(len(rows))
    stop = groups if node.limit is None else min(node.offset + node.limit, groups)
    current = np.full(groups, -1, np.int64)
    current[before.rows] = before.rows
    heap = np.empty(len(owners), np.int64)
    heap[: len(before)] = before.rows[np.argsort(places[before.rows])]
    top, seen = np.empty(stop + 1, np.int64), np.zeros(len(owners), np.int64)
    shown = np.empty((4 * len(answers.at), 2), np.int64)  # a group that moves changes up to four rows of the result
    given = answers.at, answers.same, places, owners, node.offset, stop
    count = follow_best(*given, current, top, heap, len(before), seen, shown)
    chosen, at = row_of[shown[:count, 0]], answers.at[shown[:count, 1]]
    table = rows.table(node.head)
    end = table.end[chosen]
    columns = tuple(column[chosen] for column in table.columns)
    return SolutionTable(end if (end == at).all() else at, end, table.start[chosen], columns)


def _places(node: ir.Group, rows: Bindings) -> np.ndarray:
    """The place of each row in the order of the query; among equals, in canonical order."""
    numbers = []
    for key in node.order:
        ranks = value_ranks(rows.terms, rows.terms.distinguished(rows.bound(key.expression)))
        numbers.append(-ranks if key.descending else ranks)
    numbers += [rows.end, rows.start]
    order = np.lexsort(numbers[::-1])
    differ = np.zeros(len(rows), np.bool_)
    for part in numbers:
        differ[1:] |= np.diff(part[order]) != 0
    runs, tied = np.cumsum(differ), np.zeros(len(rows), np.bool_)
    if mark_ties(runs, tied):
        some, unbound = order[tied], np.zeros(len(rows), np.int32)
        spelled = [rows.terms.ranks(rows.columns.get(name, unbound)[some]) for name in (*node.shown, *node.keys)]
        order[tied] = some[np.lexsort((*spelled[::-1], runs[tied]))]
    places = np.empty(len(rows), np.int64)
    places[order] = np.arange(len(rows))
    return places


def window_table(rows: list[Row], width: int, terms: Terms) -> SolutionTable:
    """Solutions that are in a window, in order of their ends."""
    if not rows:
        return SolutionTable.empty(width)
    end, start, *parts = zip(*rows, strict=True)
    ends = np.array(end, np.int64)
    return SolutionTable(ends, ends, np.array(start, np.int64), tuple(terms.intern(list(part)) for part in parts))


def solutions_of(table: SolutionTable, terms: Terms) -> list[Row]:
    """Solutions as rows."""
    columns = [terms.spellings(column) for column in table.columns]
    return list(zip(table.end.tolist(), table.start.tolist(), *columns, strict=True))
