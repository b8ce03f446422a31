"""Operators that work an instant at a time on rows: any aggregate, property paths, ORDER BY and LIMIT.

They call the operators of the row executor with the solutions of one instant as tuples.  So they cost the same as in
rows, a microsecond or two for each solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from etalis_rules import program as ir

from etalis_py.executors.columns.kernels.ordering import distinct_numbers
from etalis_py.executors.columns.tables import SolutionTable, SummedTable
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.rows.generate.single_node import NodeFunction
from etalis_py.executors.rows.run.several import Amount, Several
from etalis_py.kernel.batch import Row
from etalis_py.values import decode

Advance = Callable[[int, list[Row]], list[Row]]


class InstantOperator:
    """Calls ``advance`` of a row operator for each instant of a batch."""

    def __init__(self, advance: Advance, width: int, terms: Terms) -> None:
        self._advance = advance
        self._width = width
        self._terms = terms

    def advance(self, child: SolutionTable) -> SolutionTable:
        """The results of the operator, instant by instant."""
        instants: list[int] = []
        rows: list[Row] = []
        for t, solutions in rows_by_instant(child, self._terms):
            given = self._advance(t, solutions)
            instants += [t] * len(given)
            rows += given
        return table_of_rows(instants, rows, self._width, self._terms)


class SummingOperator:
    """An aggregation in rows that takes sums in place of solutions, where they come."""

    fast = True

    def __init__(self, of_solutions: InstantOperator, of_sums: Advance, width: int, terms: Terms) -> None:
        self._of_solutions = of_solutions
        self._of_sums = of_sums
        self._width = width
        self._terms = terms

    def takes(self, child: SummedTable) -> bool:
        """Rows take any sums."""
        return True

    def advance(self, child: SolutionTable) -> SolutionTable:
        """The results of the operator, instant by instant."""
        if not isinstance(child, SummedTable):
            return self._of_solutions.advance(child)
        instants: list[int] = []
        rows: list[Row] = []
        for t, sums in by_instant(self._sums(child), child.at):
            given = self._of_sums(t, sums)
            instants += [t] * len(given)
            rows += given
        return table_of_rows(instants, rows, self._width, self._terms)

    def _sums(self, child: SummedTable) -> list[Row]:
        distinct, which = np.unique(child.extremes, return_inverse=True)
        decoded: list[tuple[Any, str] | None] = [
            (decode(text), text) if text else None for text in self._terms.spellings(distinct)
        ]
        extremes: Any = which.reshape(child.extremes.shape).T.tolist()
        given: Any = child.given.T.tolist()
        summands: Any = child.summands.T.tolist()
        rows: list[Row] = []
        for x, weight, *of_row in zip(
            rows_of(child, self._terms), child.weights.tolist(), given, summands, extremes, strict=True
        ):
            amounts: list[Amount] = [(n, whole, decoded[i]) for n, whole, i in zip(*of_row, strict=True)]
            rows.append(Several.of(x, weight, amounts))
        return rows


class NodeOperator:
    """Calls the row function of a node, once per instant, with the solutions of the nodes that it reads."""

    def __init__(self, node: ir.Node, function: NodeFunction, terms: Terms) -> None:
        names = [ref.node for ref in ir.refs(node)]
        self._chosen = [names.index(name) for name in dict.fromkeys(names)]
        self._function = function
        self._width = len(node.head)
        self._terms = terms

    def advance(self, *tables: SolutionTable) -> SolutionTable:
        """The results of the node, instant by instant."""
        chosen = [tables[i] for i in self._chosen]
        times = distinct_numbers(np.concatenate([table.at for table in chosen]))
        parts = []
        for table, rebuild in zip(chosen, self._function.rebuild, strict=True):
            rows = rows_of(table, self._terms)
            parts.append(_cut(rows if rebuild is None else list(map(rebuild, rows)), table.at, times))
        instants: list[int] = []
        given: list[Row] = []
        every = times.tolist()
        for t, some in zip(every, map(self._function.advance, every, *parts), strict=True):
            if some:
                instants += [t] * len(some)
                given += some
        return table_of_rows(instants, given, self._width, self._terms)


def _cut(rows: list[Any], at: np.ndarray, times: np.ndarray) -> Iterator[list[Any]]:
    """Split rows by time: a list for each of ``times``, which may be empty; ``at`` has the time of each row."""
    begins, ends = (np.searchsorted(at, times, side).tolist() for side in ("left", "right"))
    return (rows[begin:end] for begin, end in zip(begins, ends, strict=True))


def by_instant(rows: list[Any], at: np.ndarray) -> Iterator[tuple[int, list[Any]]]:
    """Split rows by instant: each instant with its rows; ``at`` has the instant of each row."""
    if not rows:
        return
    begins = np.flatnonzero(np.diff(at, prepend=at[0] - 1)).tolist()
    ends = [*begins[1:], len(rows)]
    for t, begin, end in zip(at[begins].tolist(), begins, ends, strict=True):
        yield t, rows[begin:end]


def rows_by_instant(table: SolutionTable, terms: Terms) -> Iterator[tuple[int, list[Row]]]:
    """The solutions of each instant as tuples: end, start and terms."""
    return by_instant(rows_of(table, terms), table.at)


def rows_of(table: SolutionTable, terms: Terms) -> list[Row]:
    """The solutions as tuples: end, start and terms."""
    columns = [terms.spellings(column) for column in table.columns]
    return list(zip(table.end.tolist(), table.start.tolist(), *columns, strict=True))


def table_of_rows(instants: Sequence[int], rows: Sequence[Row], width: int, terms: Terms) -> SolutionTable:
    """Tuples as a table; items after the columns are left out."""
    if not rows:
        return SolutionTable.empty(width)
    end, start, *columns = list(zip(*rows, strict=True))[: 2 + width]
    ends = np.array(end, np.int64)
    ids = tuple(terms.intern(list(column)) for column in columns)
    return SolutionTable(np.array(instants, np.int64), ends, np.array(start, np.int64), ids)
