"""Outputs: the solutions of a query in the order in which they are reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from etalis_compiler.families import NAME
from etalis_rules import program as ir

from etalis_py.executors.columns.family_columns import Sources
from etalis_py.executors.columns.instants import Advance, rows_by_instant, table_of_rows
from etalis_py.executors.columns.reports import FamilyReport, TableReport
from etalis_py.executors.columns.tables import SolutionTable, apart, canonical, firsts
from etalis_py.executors.columns.terms import Terms
from etalis_py.kernel.batch import Report, Row


class OutputOperator:
    """One output; ``number`` is its place in the program.

    Rows are in canonical order.  DISTINCT applies to the shown columns within an instant; ORDER BY and LIMIT work on
    row tuples, as queries with them give few.
    """

    def __init__(self, number: int, output: ir.Output, terms: Terms, arrangement: Advance | None) -> None:
        """``arrangement``: a function that applies ORDER BY and LIMIT to the rows of an instant."""
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
        self.slicing = arrangement if sliced else None

    def advance(self, solutions: SolutionTable, reports: list[Report | TableReport]) -> SolutionTable:
        """Report the solutions; returns those from which a CONSTRUCT makes its triples."""
        if not len(solutions):
            return solutions
        if self.slicing is not None:
            return self._sliced(solutions, self.slicing, reports)
        arranged = canonical(solutions, self.terms, self.shown)
        if self.output.distinct:
            kept = firsts(arranged, (arranged.end, arranged.start), self.shown)
            arranged = arranged if kept is None else arranged.take(kept)
        reports.append(TableReport.of(self.number, arranged, self.terms, self.spelled))
        return arranged

    def _sliced(self, solutions: SolutionTable, slicing: Advance, reports: list[Report | TableReport]) -> SolutionTable:
        instants, kept = [], []
        for t, rows in rows_by_instant(solutions, self.terms):
            some = slicing(t, rows)
            if some:
                reports.append((self.number, t, some))
            instants += [t] * len(some)
            kept += some
        return table_of_rows(instants, kept, len(solutions.columns), self.terms)


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
        unseen = np.unique(queries[~roster.shown[queries]])
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
