"""Outputs: the solutions of a query in the order in which they are reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from etalis_rules import program as ir

from etalis_py.executors.columns.instants import Advance, rows_by_instant, rows_of, table_of_rows
from etalis_py.executors.columns.reports import TableReport
from etalis_py.executors.columns.tables import Table, canonical, firsts
from etalis_py.executors.columns.terms import Terms
from etalis_py.kernel.batch import Report, Row


class OutputOperator:
    """One output; ``number`` is its place in the program.

    Rows are in canonical order.  DISTINCT is a set over what is shown, within an instant; ORDER BY and LIMIT work on
    rows, as a query with them gives few.
    """

    def __init__(self, number: int, output: ir.Output, terms: Terms, arrangement: Advance | None) -> None:
        """``arrangement``: what ORDER BY or LIMIT does to the rows of an instant."""
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

    def advance(self, solutions: Table, reports: list[Report | TableReport]) -> Table:
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

    def _sliced(self, solutions: Table, slicing: Advance, reports: list[Report | TableReport]) -> Table:
        instants, kept = [], []
        for t, rows in rows_by_instant(solutions, self.terms):
            some = slicing(t, rows)
            if some:
                reports.append((self.number, t, some))
            instants += [t] * len(some)
            kept += some
        return table_of_rows(instants, kept, len(solutions.columns), self.terms)


class FamilyOutput:
    """The output of a family: ``split`` parts the rows of an instant by query, each as that shows them.

    ``single`` does so for rows that are alone in their instants, where a query does nothing to its rows but show them.
    """

    def __init__(
        self,
        output: ir.Output,
        terms: Terms,
        split: Callable[[int, list[Row]], list[Any]],
        single: Callable[[Sequence[int], Sequence[Row]], list[Report]] | None,
    ) -> None:
        assert output.source is not None
        self.output = output
        self.source = output.source
        self.terms = terms
        self.split = split
        self.single = single

    def advance(self, solutions: Table, reports: list[Report | TableReport]) -> Table:
        """Report the solutions of each query; returns all of them."""
        rest = solutions
        if self.single is not None and len(solutions):
            ends = np.append(np.diff(solutions.at) != 0, True)
            alone = ends & np.insert(ends[:-1], 0, True)
            some, rest = solutions.take(alone), solutions.take(~alone)
            reports += self.single(some.at.tolist(), rows_of(some, self.terms))
        for t, rows in rows_by_instant(rest, self.terms):
            reports += [(number, t, some) for number, some in self.split(t, rows)]
        return solutions
