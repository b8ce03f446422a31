"""DISTINCT, ORDER BY, LIMIT and OFFSET over plain solutions.

DISTINCT works within an instant, over the projected columns and the interval.  LIMIT and OFFSET count over the whole
run, the rows of an instant in the order of ORDER BY and then in canonical order (end, start, terms in alphabetical
order of their variables).  State: one counter.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.rows.run.grouping import sort_by
from etalis_py.values import rank_key
from etalis_py.values.expressions import term

Solution = tuple[Any, ...]
SortKey = Callable[[Solution], Any]


def canonical_key(columns: tuple[str, ...], shown: tuple[str, ...]) -> SortKey | None:
    """The sort key of the canonical order; ``shown`` has the columns that count, in order.  None: sort rows as is."""
    order = [2 + columns.index(name) for name in shown if name in columns]
    if order == list(range(2, 2 + len(columns))):
        return None
    return lambda x: (x[0], x[1], *(x[i] for i in order))


def is_arranged(output: ir.Output) -> bool:
    """Whether an output has DISTINCT, ORDER BY, LIMIT or OFFSET, so that its rows are more than sorted."""
    return bool(output.distinct or output.order or output.limit is not None or output.offset)


class Slicing:
    """The state of one slice: how many rows it has let pass."""

    def __init__(
        self,
        columns: tuple[str, ...],
        shown: tuple[str, ...],
        distinct: bool,
        order: tuple[alg.OrderKey, ...],
        limit: int | None,
        offset: int,
    ) -> None:
        self.columns = columns
        self.distinct = distinct
        self.shown = tuple(2 + columns.index(v) for v in shown if v in columns)
        self.key = canonical_key(columns, shown)
        self.order = tuple((term(k.expression), k.descending) for k in order)
        self.stop = None if limit is None else offset + limit
        self.offset = offset
        self.passed = 0
        self.now = 0

    def exists(self, pattern: alg.Pattern, mu: dict[str, str], start: int, end: int) -> bool:
        """Never called: the compiler turns an EXISTS in ORDER BY into a column."""
        raise LookupError("EXISTS in ORDER BY; bind it in the WHERE clause: BIND(EXISTS {…} AS ?found)")

    def advance(self, t: int, rows: list[Solution]) -> list[Solution]:
        """The rows of an instant that are reported, in order."""
        self.now = t
        if self.stop is not None and self.passed >= self.stop:
            return []
        if len(rows) > 1:
            rows = sorted(rows, key=self.key)
            if self.order:
                keyed = [(self._ranks(x), x) for x in rows]
                sort_by(keyed, itemgetter(0), [descending for _, descending in self.order])
                rows = [x for _, x in keyed]
            if self.distinct:
                first: dict[Any, Solution] = {}
                for x in rows:
                    first.setdefault((x[0], x[1], *(x[i] for i in self.shown)), x)
                rows = list(first.values())
        return rows[self.passing(len(rows))]

    def passing(self, count: int, counted: int | None = None) -> slice:
        """Which of the next ``count`` rows, in order, are reported; ``counted`` of them are counted, or all."""
        if self.stop is None and not self.offset:
            return slice(None)
        before = self.passed
        self.passed += count if counted is None else counted
        stop = count if self.stop is None else max(0, self.stop - before)
        return slice(max(0, self.offset - before), stop)

    def _ranks(self, x: Solution) -> tuple[Any, ...]:
        mu = {name: x[2 + i] for i, name in enumerate(self.columns) if x[2 + i]}
        return tuple(rank_key(function(mu, x[1], x[0], self)) for function, _ in self.order)


def slicing_of_output(output: ir.Output) -> Slicing:
    """The slicing by an output's DISTINCT, ORDER BY, LIMIT and OFFSET."""
    assert output.source is not None
    shown = tuple(sorted(output.variables))
    return Slicing(output.source.columns, shown, output.distinct, output.order, output.limit, output.offset)
