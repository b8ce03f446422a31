"""The occurrences of many instants as columns of numbers: a batch of the kernel, with its terms looked up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from etalis_py.executors.columns.kernels.ordering import mark_ties
from etalis_py.executors.columns.terms import Terms
from etalis_py.kernel.batch import Columns, InColumns


@dataclass(frozen=True, slots=True)
class Occurrences:
    """One occurrence a row, ordered by ``end``; an instant is never cut in two.

    ``end`` and ``start`` are int64 microseconds; ``s``, ``p``, ``o`` and ``stream`` ids (int32) of the engine's
    ``Terms``; the default stream is 0, as the unbound term is.  ``event`` and ``graph`` are as in the batch, where
    rules read whole events.
    """

    end: np.ndarray
    start: np.ndarray
    s: np.ndarray
    p: np.ndarray
    o: np.ndarray
    stream: np.ndarray
    event: np.ndarray | None = None
    graph: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.end)

    @classmethod
    def of_columns(
        cls,
        terms: Terms,
        columns: Columns,
        loose: Collection[int] = (),
        unread: Collection[int] = (),
        *,
        whole: bool = False,
    ) -> Occurrences:
        """Turn the terms of a batch into ids.

        Terms at ``loose`` positions are not looked up; each gets an id of its own.  Terms at ``unread`` positions are
        looked up only in instants with several occurrences, to tell these apart.  ``whole``: events and graphs are
        kept, too.
        """
        end, start = _times(columns.end), _times(columns.start)
        stream = np.zeros(len(end), np.int32) if columns.stream is None else terms.intern(columns.stream)

        def ids(place: int, column: Any) -> np.ndarray:
            if place in unread:
                return _where_tied(terms, column, end)
            return terms.append(column) if place in loose else terms.intern(column)

        spo = (ids(place, column) for place, column in enumerate((columns.s, columns.p, columns.o)))
        event = None if columns.event is None or not whole else np.array(columns.event, np.int64)
        graph = None if columns.graph is None or not whole else terms.intern(columns.graph)
        return cls(end, start, *spo, stream, event, graph)  # type: ignore[call-arg]


def with_predicates(columns: InColumns, predicates: Collection[str] | None) -> InColumns:
    """The rows that have one of these predicates, so that the terms of the others are not looked up; None is any.

    Rows are left out of the flat form alone, and only if its predicates come as a dictionary.  The dictionaries of the
    other terms are cut down to what is left, since all of a dictionary is looked up.
    """
    if predicates is None or not isinstance(columns, Columns) or not isinstance(columns.p, pa.DictionaryArray):
        return columns
    wanted = pc.is_in(columns.p.dictionary, pa.array(sorted(predicates), pa.string()))
    if columns.p.null_count or pc.all(wanted).as_py() is not False:
        return columns
    rows = np.flatnonzero(np.asarray(wanted)[np.asarray(columns.p.indices)])
    if len(rows) == len(columns):
        return columns
    at = pa.array(rows)
    s, p, o = (_used(column.take(at)) for column in (columns.s, columns.p, columns.o))
    event, stream, graph = (
        None if column is None else column.take(at) if isinstance(column, pa.Array) else column[rows]
        for column in (columns.event, columns.stream, columns.graph)
    )
    return Columns(np.asarray(columns.end)[rows], np.asarray(columns.start)[rows], s, p, o, stream, event, graph)


def _used(column: Any) -> Any:
    """The column with a dictionary of no more terms than it has rows."""
    if not pa.types.is_dictionary(column.type) or len(column.dictionary) <= len(column):
        return column
    return column.dictionary_decode().dictionary_encode()


def pieces(columns: InColumns, rows: Callable[[], int], through: int) -> Iterator[tuple[InColumns, int]]:
    """Cut a batch into pieces of about ``rows()`` rows, asked before each, with the time that each completes.

    There is at least one piece.  The rows of an instant stay together; the last piece completes ``through``.
    """
    end = np.asarray(columns.end)
    first = 0
    while True:
        last = min(first + rows(), len(end))
        if last < len(end):
            last = int(np.searchsorted(end, end[last - 1], "right"))
        if last == len(end):
            yield columns.rows(first, last), through
            return
        yield columns.rows(first, last), int(end[last - 1])
        first = last


def _where_tied(terms: Terms, column: Any, end: np.ndarray) -> np.ndarray:
    """The ids of terms in instants with several occurrences; elsewhere 0."""
    ids, tied = np.zeros(len(end), np.int32), np.zeros(len(end), np.bool_)
    if mark_ties(end, tied):
        rows = np.flatnonzero(tied)
        ids[rows] = terms.intern(pa.array(column).take(pa.array(rows)))
    return ids


def _times(column: Any) -> np.ndarray:
    """Times from NumPy or Arrow, copied: read-only arrays would make the kernels compile once more."""
    return np.array(column, np.int64)
