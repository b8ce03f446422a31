"""Nodes without memory: Map (steps, projection, DISTINCT within an instant), Union, and START."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from etalis_rules import program as ir

from etalis_py.executors.columns.family_columns import Sources
from etalis_py.executors.columns.frames import Bindings, RuleSteps
from etalis_py.executors.columns.joins import Waiting
from etalis_py.executors.columns.leaves import OnceEach
from etalis_py.executors.columns.tables import SolutionTable, concat_tables
from etalis_py.executors.columns.terms import Terms


class MapOperator:
    """One body goal, then steps.  Distinct: the solutions of an instant form a set over all columns of the child."""

    def __init__(self, node: ir.Map, terms: Terms, sources: Sources, lateness: int) -> None:
        self.once = OnceEach(len(node.child.columns), lateness, terms) if node.distinct else None
        self.node = node
        self.terms = terms
        self.steps = RuleSteps(node.steps, sources)

    def advance(self, child: SolutionTable) -> SolutionTable:
        """The solutions that pass."""
        if self.once is not None:
            child = self.once.of(child)
        frame = self.steps.applied(Bindings.of(self.terms, child, self.node.child.columns))
        return (replace(frame, start=frame.end) if self.node.at_end else frame).table(self.node.head)

    def sides(self) -> dict[str, Waiting]:
        """What is remembered of solutions that may become known again."""
        return {} if self.once is None else self.once.sides()


class StartOperator:
    """START: one solution, in the piece that time reaches it with.  ``begins`` says, once, when it is over."""

    def __init__(self, begins: Callable[[int], int | None]) -> None:
        self.begins = begins

    def advance(self, through: int) -> SolutionTable:
        """The solution, if the instant before the stream's start is reached."""
        at = self.begins(through)
        if at is None:
            return SolutionTable.empty(0)
        end = np.array([at], np.int64)
        return SolutionTable(end, end, end + 1, ())


class UnionOperator:
    """The solutions of all branches.  Distinct: those of an instant form a set."""

    def __init__(self, node: ir.Union, terms: Terms, lateness: int) -> None:
        self.node = node
        self.once = OnceEach(len(node.head), lateness, terms) if node.distinct else None

    def advance(self, branches: Sequence[SolutionTable]) -> SolutionTable:
        """The solutions of all branches, with the columns of the node's head."""
        head = self.node.head
        tables = [_with_head(table, ref.columns, head) for table, ref in zip(branches, self.node.branches, strict=True)]
        united = concat_tables(tables, len(head))
        return united if self.once is None else self.once.of(united)

    def sides(self) -> dict[str, Waiting]:
        """What is remembered of solutions that may become known again."""
        return {} if self.once is None else self.once.sides()


def _with_head(table: SolutionTable, names: tuple[str, ...], head: tuple[str, ...]) -> SolutionTable:
    unbound = np.zeros(len(table), np.int32)
    columns = dict(zip(names, table.columns, strict=True))
    return SolutionTable(table.at, table.end, table.start, tuple(columns.get(name, unbound) for name in head))
