"""The answers of a shard on their way to Spark: single rows, and tables of matches that are written column by column.

Making a separate row of a match costs as much as finding it.  All matches of a SELECT have the same fields, so they
stay together as a ``MatchTable`` until they are written into a frame or an Arrow batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from etalis_py.kernel.shapes import Shape
from etalis_py.spark.input.schema import ARROW_MATCHES, COLUMNS
from etalis_py.streams.columns.results import Results
from etalis_py.values.time import TIMELESS_END

Row = tuple[Any, ...]  # the columns of schema.MATCHES
CHUNK = 50_000
FEW = 16
"""For at most so many matches of a query, a table would cost more than single rows."""


@dataclass(frozen=True, slots=True)
class MatchTable:
    """Matches of one SELECT, none of them timeless: its shape, the engine's rows and their ordinals."""

    program: str
    shard: int
    shape: Shape
    solutions: Sequence[tuple[Any, ...]]
    ordinals: Sequence[int]

    def __len__(self) -> int:
        return len(self.solutions)

    def _column(self, place: int) -> list[Any]:
        """One field of every row: 0 is the end, 1 the start, then terms."""
        return list(map(itemgetter(place), self.solutions))

    def _ids(self) -> list[str]:
        return list(map(self.shape.identify, self.solutions, self.ordinals))

    def rows(self) -> Iterator[Row]:
        """The same as single rows."""
        name, query, shard = self.program, self.shape.query, self.shard
        places = [(v, i) for v, i in zip(self.shape.variables, self.shape.places, strict=True) if i > 0]
        for row, identifier in zip(self.solutions, self._ids(), strict=True):
            bound = {v: row[i] for v, i in places if row[i]}
            yield (
                "match", name, query, identifier, bound, None, None, row[1], row[0], None, self.shape.retracted,
                shard, None,
            )  # fmt: skip

    def pieces(self) -> Iterator[ColumnTable]:
        """The matches in columns, in tables of a limited size."""
        for i in range(0, len(self.solutions), CHUNK):
            rows, ordinals = self.solutions[i : i + CHUNK], self.ordinals[i : i + CHUNK]
            yield MatchTable(self.program, self.shard, self.shape, rows, ordinals).in_columns()

    def in_columns(self) -> ColumnTable:
        """All matches as one table in columns."""
        places = dict(zip(self.shape.variables, self.shape.places, strict=True))
        nothing = pa.nulls(len(self.solutions), pa.string())
        results = Results(
            query=self.shape.query,
            variables=self.shape.output.variables,
            terms=tuple(self._terms(places[v]) if places[v] > 0 else nothing for v in self.shape.output.variables),
            start=pa.array(self._column(1), pa.int64()),
            end=pa.array(self._column(0), pa.int64()),
            ids=pa.array(self._ids(), pa.string()),
            triples=None,
            render=self.shape.render,
            retracted=self.shape.retracted,
        )
        return ColumnTable(self.program, self.shard, results)

    def _terms(self, place: int) -> pa.StringArray:
        terms = self._column(place)
        return pa.array(terms if all(terms) else [term or None for term in terms], pa.string())


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """Matches of one SELECT that an engine reported in columns; ``places`` are their places in the embedded order."""

    program: str
    shard: int
    results: Results
    places: pa.StringArray | None = None

    def __len__(self) -> int:
        return len(self.results)

    def rows(self) -> Iterator[Row]:
        """The same as single rows."""
        batch = self.record_batch()
        for row in batch.to_pylist():
            yield tuple(dict(row[name]) if name == "bindings" else row[name] for name in COLUMNS)

    def pieces(self) -> Iterator[ColumnTable]:
        """The table as it is: reports in columns come in batches of a limited size already."""
        yield self

    def record_batch(self) -> pa.RecordBatch:
        results, size = self.results, len(self.results)
        columns = {
            "kind": pa.repeat(pa.scalar("match"), size),
            "program": pa.repeat(pa.scalar(self.program), size),
            "query": pa.repeat(pa.scalar(results.query), size),
            "id": results.ids,
            "bindings": _map_of(results),
            "start": results.start,
            "end": results.end,
            "retracted": pa.repeat(pa.scalar(results.retracted), size),
            "shard": pa.repeat(pa.scalar(self.shard, pa.int32()), size),
            "detail": self.places,
        }
        return _record_batch(columns, size)


def _record_batch(columns: Mapping[str, Any], size: int) -> pa.RecordBatch:
    """The columns of MATCHES; those that are not given are nulls."""
    given = [(columns.get(field.name), field.type) for field in ARROW_MATCHES]
    arrays = [pa.nulls(size, kind) if column is None else column for column, kind in given]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_MATCHES)


Answer: TypeAlias = Row | MatchTable | ColumnTable


def _map_of(results: Results) -> pa.MapArray:
    """The bound variables with their terms, match by match."""
    size, width = len(results), len(results.variables)
    if not width:
        return pa.array([[]] * size, ARROW_MATCHES.field("bindings").type)
    columns = pa.concat_arrays([terms.cast(pa.string()) for terms in results.terms])
    terms = columns.take(pa.array(np.arange(size * width).reshape(width, size).T.ravel()))
    names = pa.array(results.variables, pa.string()).take(pa.array(np.tile(np.arange(width), size)))
    offsets = np.arange(0, size * width + 1, width)
    if terms.null_count:
        bound = terms.is_valid()
        offsets = np.concatenate([[0], np.cumsum(np.asarray(bound))])[offsets]
        terms, names = terms.filter(bound), names.filter(bound)
    return pa.MapArray.from_arrays(pa.array(offsets.astype(np.int32)), names, terms)


def are_timed(rows: Sequence[tuple[Any, ...]]) -> bool:
    """Whether each of an engine's rows has an interval."""
    return TIMELESS_END not in map(itemgetter(0), rows)


def row_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """Single rows as Arrow."""
    data = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    data["bindings"] = [None if b is None else list(b.items()) for b in data["bindings"]]
    data["triples"] = [structs(triples) for triples in data["triples"]]
    return _record_batch({field.name: pa.array(data[field.name], field.type) for field in ARROW_MATCHES}, len(rows))


def single(rows: Iterable[Answer]) -> list[Row]:
    """All answers as single rows."""
    return [row for item in rows for row in ((item,) if isinstance(item, tuple) else item.rows())]


def pieces(rows: Iterable[Answer]) -> Iterator[ColumnTable | list[Row]]:
    """Tables as they come, and the single rows between them in one list."""
    waiting: list[Row] = []
    for item in rows:
        if not isinstance(item, tuple) and len(item) > FEW:
            yield from item.pieces()
            continue
        waiting += (item,) if isinstance(item, tuple) else item.rows()
        if len(waiting) >= CHUNK:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def structs(triples: Any) -> list[dict[str, str]] | None:
    return None if triples is None else [{"s": s, "p": p, "o": o} for s, p, o in triples]


__all__ = ["Answer", "ColumnTable", "MatchTable", "Row", "are_timed", "pieces", "row_batch", "single", "structs"]
