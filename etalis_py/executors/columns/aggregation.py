"""What aggregations in columns share: a window or groups, which rows take over when something unfit comes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.columns.frames import Bindings
from etalis_py.executors.columns.instants import Advance, InstantOperator
from etalis_py.executors.columns.tables import SolutionTable, canonical
from etalis_py.executors.columns.terms import Terms
from etalis_py.kernel.batch import Row

Reported = tuple[tuple[str, ...], Row]
"""The key of a group and its last row."""


class KeepsSolutions:
    """What keeps solutions in ``window`` between batches, and their terms with them."""

    window: SolutionTable

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
        return self.compared or bool(self.node.having) or not all(alg.variable_of(e) for _, e in self.node.extends)

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


def finished(node: ir.Group, frame: Bindings) -> Bindings:
    """The rows that HAVING lets through, given keys and results, with what is calculated from these."""
    for e in node.having:
        frame = frame.keep(frame.holds(e))
    for name, e in node.extends:
        bound = frame.bound(e)
        known = frame.columns.get(name)
        if known is not None:
            bound = np.where(bound != 0, bound, known)
        frame = replace(frame, columns={**frame.columns, name: bound})
    return frame


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
