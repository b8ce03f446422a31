"""What a shard gives, on its way to Spark: single rows, and tables of matches that are written column by column.

A match as a row of its own costs as much as finding it.  The matches of a SELECT need nothing that their query's other
matches do not have too, so they stay together as a ``Table`` until there is a frame or an Arrow batch to fill.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from etalis_py.kernel.matches import Shape
from etalis_py.spark.schema import ARROW_MATCHES, COLUMNS
from etalis_py.streams.columns.results import Results
from etalis_py.values.time import TIMELESS_END

Row = tuple[Any, ...]  # the columns of schema.MATCHES
CHUNK = 50_000
FEW = 16
"""Matches of one query, which cost more as a table of their own."""


@dataclass(frozen=True, slots=True)
class Table:
    """Matches of one SELECT, none of them timeless: its shape, the engine's rows and their ordinals."""

    program: str
    shard: int
    shape: Shape
    solutions: Sequence[tuple[Any, ...]]
    ordinals: Sequence[int]

    def column(self, place: int) -> list[Any]:
        """One field of every row: 0 is the end, 1 the start, then terms."""
        return list(map(itemgetter(place), self.solutions))

    def ids(self) -> list[str]:
        return list(map(self.shape.identify, self.solutions, self.ordinals))

    def bindings(self) -> list[list[tuple[str, str]]]:
        """The variables that are bound, with their terms."""
        places = self._places()
        return [[(v, row[i]) for v, i in places if row[i]] for row in self.solutions]

    def _places(self) -> list[tuple[str, int]]:
        return [(v, i) for v, i in zip(self.shape.variables, self.shape.places, strict=True) if i > 0]

    def rows(self) -> Iterator[Row]:
        """The same as single rows."""
        name, query, shard = self.program, self.shape.query, self.shard
        for row, identifier, bound in zip(self.solutions, self.ids(), self.bindings(), strict=True):
            yield (
                "match", name, query, identifier, dict(bound), None, None, row[1], row[0], None, self.shape.retracted,
                shard, None,
            )  # fmt: skip

    def pieces(self) -> Iterator[Table]:
        """Tables of a bearable size."""
        for i in range(0, len(self.solutions), CHUNK):
            rows, ordinals = self.solutions[i : i + CHUNK], self.ordinals[i : i + CHUNK]
            yield Table(self.program, self.shard, self.shape, rows, ordinals)

    def record_batch(self) -> pa.RecordBatch:
        size = len(self.solutions)
        columns = {
            "kind": pa.repeat(pa.scalar("match"), size),
            "program": pa.repeat(pa.scalar(self.program), size),
            "query": pa.repeat(pa.scalar(self.shape.query), size),
            "id": pa.array(self.ids(), pa.string()),
            "bindings": self._map(),
            "start": pa.array(self.column(1), pa.int64()),
            "end": pa.array(self.column(0), pa.int64()),
            "retracted": pa.repeat(pa.scalar(self.shape.retracted), size),
            "shard": pa.repeat(pa.scalar(self.shard, pa.int32()), size),
        }
        arrays = [columns.get(f.name) if f.name in columns else pa.nulls(size, f.type) for f in ARROW_MATCHES]
        return pa.RecordBatch.from_arrays(arrays, schema=ARROW_MATCHES)

    def _map(self) -> pa.MapArray:
        places = self._places()
        size, width = len(self.solutions), len(places)
        columns = [self.column(i) for _, i in places]
        if not width or not all(map(all, columns)):
            return pa.array(self.bindings(), ARROW_MATCHES.field("bindings").type)
        terms = pa.array(list(chain.from_iterable(zip(*columns, strict=True))), pa.string())
        names = pa.array([v for v, _ in places], pa.string()).take(pa.array(np.tile(np.arange(width), size)))
        offsets = pa.array(np.arange(0, size * width + 1, width, dtype=np.int32))
        return pa.MapArray.from_arrays(offsets, names, terms)


def in_columns(program: str, shard: int, results: Results) -> pa.RecordBatch:
    """Matches of one SELECT that the engine reported in columns, none of them timeless."""
    size = len(results)
    columns = {
        "kind": pa.repeat(pa.scalar("match"), size),
        "program": pa.repeat(pa.scalar(program), size),
        "query": pa.repeat(pa.scalar(results.query), size),
        "id": results.ids,
        "bindings": _map_of(results),
        "start": results.start,
        "end": results.end,
        "retracted": pa.repeat(pa.scalar(value=False), size),
        "shard": pa.repeat(pa.scalar(shard, pa.int32()), size),
    }
    arrays = [columns[f.name] if f.name in columns else pa.nulls(size, f.type) for f in ARROW_MATCHES]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_MATCHES)


def _map_of(results: Results) -> pa.MapArray:
    """The variables that are bound, with their terms: those of a match stand together."""
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
    """Has each of an engine's rows an interval?"""
    return TIMELESS_END not in map(itemgetter(0), rows)


def record_batches(rows: Iterable[Row | Table]) -> Iterator[pa.RecordBatch]:
    """Rows for Spark as Arrow, in pieces of a bearable size."""
    for piece in pieces(rows):
        if isinstance(piece, Table):
            yield piece.record_batch()
            continue
        data = dict(zip(COLUMNS, map(list, zip(*piece, strict=True)), strict=True))
        data["bindings"] = [None if b is None else list(b.items()) for b in data["bindings"]]
        data["triples"] = [structs(triples) for triples in data["triples"]]
        arrays = [pa.array(data[field.name], field.type) for field in ARROW_MATCHES]
        yield pa.RecordBatch.from_arrays(arrays, schema=ARROW_MATCHES)


def single(rows: Iterable[Row | Table]) -> list[Row]:
    """All as single rows."""
    return [row for item in rows for row in (item.rows() if isinstance(item, Table) else (item,))]


def pieces(rows: Iterable[Row | Table]) -> Iterator[Table | list[Row]]:
    """Tables as they come, and the single rows between them together."""
    waiting: list[Row] = []
    for item in rows:
        if isinstance(item, Table) and len(item.solutions) > FEW:
            yield from item.pieces()
            continue
        waiting += item.rows() if isinstance(item, Table) else (item,)
        if len(waiting) >= CHUNK:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def structs(triples: Any) -> list[dict[str, str]] | None:
    return None if triples is None else [{"s": s, "p": p, "o": o} for s, p, o in triples]


__all__ = ["Row", "Table", "are_timed", "in_columns", "pieces", "record_batches", "single", "structs"]
