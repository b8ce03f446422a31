"""The reports of a batch for one output, in columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from etalis_py.executors.columns.tables import SolutionTable
from etalis_py.executors.columns.terms import Terms
from etalis_py.kernel.batch import Report, Row
from etalis_py.kernel.goals import texts_of


class TableReport:
    """The solutions of many instants; a ``ColumnReport``.

    An unbound term is null in ``terms``, and so are all terms of a column that is not shown.
    """

    __slots__ = ("end", "instants", "output", "start", "terms")

    def __init__(
        self, output: int, instants: np.ndarray, end: np.ndarray, start: np.ndarray, terms: Sequence[Any]
    ) -> None:
        self.output, self.instants, self.end, self.start, self.terms = output, instants, end, start, terms

    @staticmethod
    def of(output: int, table: SolutionTable, terms: Terms, shown: Collection[int]) -> TableReport:
        """The solutions of a table; only the columns ``shown`` are spelled."""
        spelled = [
            terms.spelled(column) if place in shown else pa.nulls(len(table), pa.large_string())
            for place, column in enumerate(table.columns)
        ]
        return TableReport(output, table.at, table.end, table.start, spelled)

    def __len__(self) -> int:
        return len(self.end)

    def reports(self) -> list[Report]:
        """The solutions as tuples, in one report for each instant and query."""
        rows = list(self._rows())
        cuts = np.flatnonzero(self._breaks()) + 1
        ends = [*cuts.tolist(), len(rows)]
        begins = [0, *ends[:-1]]
        instants = self.instants[begins].tolist() if rows else []
        return [
            (number, t, rows[begin:end])
            for number, t, begin, end in zip(self._numbers(begins), instants, begins, ends, strict=False)
            if end > begin
        ]

    @property
    def outputs(self) -> set[int]:
        """The numbers of the queries that have solutions here."""
        return {self.output}

    def _breaks(self) -> np.ndarray:
        """A mask of the rows, except the last, after which a new report begins."""
        return np.diff(self.instants) != 0

    def _numbers(self, begins: list[int]) -> Iterable[int]:
        """The numbers of the queries whose reports begin with these rows."""
        return [self.output] * len(begins)

    def _rows(self) -> Iterator[Row]:
        columns = map(texts_of, self.terms)
        return zip(self.end.tolist(), self.start.tolist(), *columns, strict=True)


class FamilyReport(TableReport):
    """The solutions of many instants for the queries of a family; ``numbers`` has the query of each solution.

    Solutions are ordered by instant and query; those of one query in an instant are in the query's own order.
    """

    __slots__ = ("numbers",)

    def __init__(self, report: TableReport, numbers: np.ndarray) -> None:
        super().__init__(report.output, report.instants, report.end, report.start, report.terms)
        self.numbers = numbers

    @property
    def outputs(self) -> set[int]:
        return set(self.numbers.tolist())

    def _breaks(self) -> np.ndarray:
        return (np.diff(self.instants) != 0) | (np.diff(self.numbers) != 0)

    def _numbers(self, begins: list[int]) -> Iterable[int]:
        return self.numbers[begins].tolist() if len(self) else ()


def count_by_instant(instants: np.ndarray) -> tuple[int, int]:
    """The instant with the most rows, and how many it has."""
    moments, counts = np.unique(instants, return_counts=True)
    most = int(np.argmax(counts))
    return int(moments[most]), int(counts[most])
