"""Solutions of many instants as columns, and their canonical order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from etalis_py.executors.columns.kernels.keys import first_of_equal_rows
from etalis_py.executors.columns.kernels.ordering import mark_ties, order_state, rises
from etalis_py.executors.columns.terms import Terms

NO_TIMES = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class SolutionTable:
    """The solutions of a node, ordered by the instant in which they are known.

    ``at`` is that instant: the solution's end, except for rows of an aggregate.  ``columns`` are ids, in the order of
    the node's head.
    """

    at: np.ndarray
    end: np.ndarray
    start: np.ndarray
    columns: tuple[np.ndarray, ...]

    def __len__(self) -> int:
        return len(self.at)

    @property
    def bytes(self) -> int:
        """The size of its arrays."""
        return len(self.at) * row_bytes(len(self.columns))

    def take(self, rows: np.ndarray) -> SolutionTable:
        """These rows, by number or by mask."""
        end = self.end[rows]
        at = end if self.at is self.end else self.at[rows]
        return SolutionTable(at, end, self.start[rows], tuple(column[rows] for column in self.columns))

    def in_time(self) -> SolutionTable:
        """Those that became known in the instant in which they end."""
        if self.at is self.end or (in_time := self.at == self.end).all():
            return self
        return self.take(np.flatnonzero(in_time))

    def matrix(self, columns: Sequence[int] | None = None) -> np.ndarray:
        """Columns side by side, one row per solution."""
        chosen = self.columns if columns is None else [self.columns[i] for i in columns]
        rows = np.empty((len(self), len(chosen)), np.int32)
        for i, column in enumerate(chosen):
            rows[:, i] = column
        return rows

    @staticmethod
    def empty(width: int) -> SolutionTable:
        return SolutionTable(NO_TIMES, NO_TIMES, NO_TIMES, tuple(np.zeros(0, np.int32) for _ in range(width)))


@dataclass(frozen=True, slots=True)
class SummedTable(SolutionTable):
    """Solutions that stand for several each, as an aggregate sees them.

    ``weights`` says for how many.  ``given`` has for each aggregate and row how many of these have an argument,
    ``summands`` the sum of the arguments, and ``extremes`` the one that MIN, MAX or SAMPLE takes.
    """

    weights: np.ndarray
    given: np.ndarray
    summands: np.ndarray
    extremes: np.ndarray


def row_bytes(columns: int) -> int:
    """The size of a solution with so many columns."""
    return 24 + 4 * columns


def concat_tables(tables: Sequence[SolutionTable], width: int) -> SolutionTable:
    """The rows of all tables in order of their instants; within an instant, in the order of the tables."""
    filled = [table for table in tables if len(table)]
    if not filled:
        return SolutionTable.empty(width)
    if len(filled) == 1:
        return filled[0]
    end = np.concatenate([table.end for table in filled])
    on_time = all(table.at is table.end for table in filled)
    at = end if on_time else np.concatenate([table.at for table in filled])
    start = np.concatenate([table.start for table in filled])
    columns = tuple(np.concatenate(parts) for parts in zip(*(table.columns for table in filled), strict=True))
    return in_order(SolutionTable(at, end, start, columns))


def in_order(table: SolutionTable) -> SolutionTable:
    """The rows by instant."""
    if len(table) and (table.at[1:] < table.at[:-1]).any():
        return table.take(np.argsort(table.at, kind="stable"))
    return table


def distinct(table: SolutionTable) -> SolutionTable:
    """Drop repeated solutions: of those of an instant with the same start and columns, the first stays."""
    kept = firsts(table, (table.start,))
    return table if kept is None else table.take(kept)


def first_end(*tables: SolutionTable) -> int:
    """The earliest end in these tables; 0 if all are empty."""
    return min((int(table.end.min()) for table in tables if len(table)), default=0)


def firsts(
    table: SolutionTable, times: tuple[np.ndarray, ...], columns: Sequence[int] | None = None
) -> np.ndarray | None:
    """A mask of the rows that are the first of their instant with these times and columns; None if all rows are.

    Without ``columns``, all columns of the table count.
    """
    if rises(table.at):
        return None
    tied = np.zeros(len(table), np.bool_)
    mark_ties(table.at, tied)
    rows = np.flatnonzero(tied)
    chosen = table.columns if columns is None else [table.columns[i] for i in columns]
    matrix = np.empty((len(rows), 1 + len(times) + len(chosen)), np.int64)
    for i, column in enumerate((table.at, *times, *chosen)):
        matrix[:, i] = column[rows]
    first = np.empty(len(rows), np.bool_)
    first_of_equal_rows(matrix, np.full(1 << (2 * len(rows)).bit_length(), -1, np.int64), first)
    if first.all():
        return None
    kept = np.ones(len(table), np.bool_)
    kept[rows] = first
    return kept


def apart(table: SolutionTable, numbers: np.ndarray, terms: Terms, order: Sequence[int]) -> np.ndarray | None:
    """The order of the rows by instant, number, end, start and the spellings of these columns.

    None if no two rows share an instant, so that they are in order already.
    """
    tied = np.zeros(len(table), np.bool_)
    if not mark_ties(table.at, tied):
        return None
    rows = np.flatnonzero(tied)
    ranks = [terms.ranks(table.columns[i][rows]) for i in reversed(order)]
    times = (table.start[rows], table.end[rows], numbers[rows], table.at[rows])
    permuted = np.arange(len(table))
    permuted[rows] = rows[np.lexsort((*ranks, *times))]
    return permuted


def canonical(table: SolutionTable, terms: Terms, order: Sequence[int] | None = None) -> SolutionTable:
    """Order rows by instant, end, start and the spellings of these columns (without ``order``: of all columns)."""
    tied = np.zeros(len(table), np.bool_)
    state = order_state(table.at, table.end, table.start, tied)
    if state == 0:
        return table
    if state == 2:
        table = table.take(np.lexsort((table.start, table.end, table.at)))
        tied[:] = False
        if order_state(table.at, table.end, table.start, tied) == 0:
            return table
    columns = table.columns if order is None else [table.columns[i] for i in order]
    rows = np.flatnonzero(tied)
    ranks = [terms.ranks(column[rows]) for column in reversed(columns)]
    times = (table.start[rows], table.end[rows], table.at[rows])
    permuted = np.arange(len(table))
    permuted[rows] = rows[np.lexsort((*ranks, *times))]
    return table.take(permuted)


def ranges(first: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The numbers of several ranges, one after another; each range begins at its ``first`` and has its count."""
    begins = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(first - begins, counts)


def doubled(array: np.ndarray) -> np.ndarray:
    """A new array of twice the length that begins with the same items."""
    return np.concatenate((array, np.empty_like(array)))
