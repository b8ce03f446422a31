"""Outputs: the solutions of a query in the order in which they are reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from etalis_compiler.families import NAME
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.columns.arguments import value_ranks
from etalis_py.executors.columns.family_columns import Sources
from etalis_py.executors.columns.frames import Bindings
from etalis_py.executors.columns.instants import rows_by_instant
from etalis_py.executors.columns.kernels.ordering import distinct_numbers, mark_ties
from etalis_py.executors.columns.reports import FamilyReport, TableReport
from etalis_py.executors.columns.tables import SolutionTable, apart, canonical, firsts
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.rows.run.slicing import Slicing
from etalis_py.kernel.batch import Report, Row


class OutputOperator:
    """One output; ``number`` is its place in the program.

    Rows are in canonical order, or in that of ORDER BY.  DISTINCT applies to the shown columns within an instant.
    """

    def __init__(self, number: int, output: ir.Output, terms: Terms, slicing: Slicing | None) -> None:
        """``slicing``: the state of ORDER BY and LIMIT in rows."""
        assert output.source is not None
        self.number = number
        self.output = output
        self.source = output.source
        self.terms = terms
        columns = output.source.columns
        names = tuple(sorted(output.variables))
        self.shown = [columns.index(name) for name in names if name in columns]
        self.spelled = range(len(columns)) if output.form == "describe" else self.shown
        sliced = output.order or output.limit is not None or output.offset
        self.slicing = slicing if sliced else None

    def advance(self, solutions: SolutionTable, reports: list[Report | TableReport]) -> SolutionTable:
        """Report the solutions; returns those from which a CONSTRUCT makes its triples."""
        if not len(solutions):
            return solutions
        if self.slicing is not None:
            arranged = passed(self.slicing, self.output.order, solutions, self.terms)
        else:
            arranged = canonical(solutions, self.terms, self.shown)
            if self.output.distinct:
                kept = firsts(arranged, (arranged.end, arranged.start), self.shown)
                arranged = arranged if kept is None else arranged.take(kept)
        if len(arranged):
            reports.append(TableReport.of(self.number, arranged, self.terms, self.spelled))
        return arranged


class SliceOperator:
    """The DISTINCT, ORDER BY, LIMIT and OFFSET of a sub-SELECT."""

    def __init__(self, node: ir.Slice, slicing: Slicing, terms: Terms) -> None:
        self.node = node
        self.slicing = slicing
        self.terms = terms

    def advance(self, child: SolutionTable) -> SolutionTable:
        """The solutions that it lets through."""
        some = passed(self.slicing, self.node.order, child, self.terms) if len(child) else child
        return Bindings.of(self.terms, some, self.node.child.columns).table(self.node.head)


def passed(slicing: Slicing, order: Sequence[alg.OrderKey], solutions: SolutionTable, terms: Terms) -> SolutionTable:
    """The solutions that are reported: those of an instant in the order of the query, counted over the whole run."""
    if slicing.stop is not None and slicing.passed >= slicing.stop:
        return SolutionTable.empty(len(solutions.columns))
    shown = [place - 2 for place in slicing.shown]
    arranged = canonical(solutions, terms, shown)
    if order:
        arranged = _by_values(arranged, slicing.columns, order, terms)
    if slicing.distinct:
        kept = firsts(arranged, (arranged.end, arranged.start), shown)
        arranged = arranged if kept is None else arranged.take(kept)
    counted = None
    if slicing.stop is not None and slicing.passed + len(arranged) > slicing.stop:
        last = arranged.at[slicing.stop - slicing.passed - 1]
        counted = int(np.searchsorted(arranged.at, last, "right"))  # once LIMIT is reached, no instant is looked at
    chosen = slicing.passing(len(arranged), counted)
    return arranged.take(np.arange(*chosen.indices(len(arranged))))


def _by_values(
    table: SolutionTable, names: Sequence[str], order: Sequence[alg.OrderKey], terms: Terms
) -> SolutionTable:
    """The solutions of each instant in the order of these keys; equal ones stay as they are."""
    tied = np.zeros(len(table), np.bool_)
    if not mark_ties(table.at, tied):
        return table
    rows = np.flatnonzero(tied)
    frame = Bindings.of(terms, table, names).keep(rows)
    ranks = [value_ranks(terms, terms.distinguished(frame.bound(key.expression))) for key in order]
    numbers = [-rank if key.descending else rank for key, rank in zip(order, ranks, strict=True)]
    places = np.arange(len(table))
    places[rows] = rows[np.lexsort((*numbers[::-1], frame.at))]
    return table.take(places)


class FamilyOutput:
    """The output of a family, whose queries each show their own solutions; see ``Shapes.show``.

    ``split`` divides the rows of an instant by query if the queries do more than show them (ORDER BY, LIMIT, ASK).
    """

    def __init__(
        self,
        number: int,
        output: ir.Output,
        sources: Sources,
        show: Callable[[Sequence[Row]], None],
        split: Callable[[int, list[Row]], list[Any]] | None,
    ) -> None:
        assert output.source is not None
        self.number = number
        self.output = output
        self.source = output.source
        self.sources = sources
        self.terms = sources.terms
        self.show, self.split = show, split
        columns = output.source.columns
        self.named = columns.index(NAME)
        self.shown = [columns.index(name) for name in sorted(output.variables) if name in columns]

    def advance(self, solutions: SolutionTable, reports: list[Report | TableReport]) -> SolutionTable:
        """Report the solutions of each query; returns all of them."""
        if not len(solutions):
            return solutions
        if self.split is not None:
            for t, rows in rows_by_instant(solutions, self.terms):
                reports += [(number, t, some) for number, some in self.split(t, rows)]
            return solutions
        roster = self.sources.roster(self.output.query)
        queries = roster.of_names(solutions.columns[self.named])
        kept = solutions
        if (queries < 0).any():
            kept = solutions.take(queries >= 0)
            queries = queries[queries >= 0]
        unseen = distinct_numbers(queries[~roster.shown[queries]])
        if len(unseen):
            self.show([roster.rows[i] for i in unseen.tolist()])
            roster.shown[unseen] = True
        numbers = roster.numbered[queries]
        order = apart(kept, numbers, self.terms, self.shown)
        if order is not None:
            kept, numbers = kept.take(order), numbers[order]
        if len(kept):
            reports.append(FamilyReport(TableReport.of(self.number, kept, self.terms, self.shown), numbers))
        return solutions
