"""How rows leave the operator of a stream: matches in columns that need no conversion, everything else as JSON.

PySpark converts maps and structs value by value; a column of strings or numbers that is Arrow already it takes as it
is.  So the terms of a match are columns ``term_0``, ``term_1``, … in the order of its query's variables, and ``table``
is the number of that query.  Spark makes the map of bindings, and the names, from constants.  Any other row is a JSON
object in the column ``row``, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import msgspec
import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from etalis_py.spark.answers import Answer, ColumnTable, Row, pieces, structs
from etalis_py.spark.parts import Part
from etalis_py.spark.schema import COLUMNS, MATCHES

_OWN = {"id": pa.string(), "start": pa.int64(), "end": pa.int64(), "retracted": pa.bool_(), "shard": pa.int32()}
"""The columns of MATCHES that differ among the matches of a table, or may;"""
_PLACES = {"detail": pa.string()}
"""and their places in the order, where these are asked for."""
_ROW = "of_row"


@dataclass(frozen=True, slots=True)
class Selected:
    """A SELECT query and what it selects; its matches may travel in columns."""

    program: str
    query: str
    variables: tuple[str, ...]


class Wire:
    """The columns between the operator and Spark for some queries."""

    def __init__(self, tables: Sequence[Selected]) -> None:
        self.tables = tuple(tables)
        self.width = max((len(t.variables) for t in self.tables), default=0)
        self._numbers = {(t.program, t.query): n for n, t in enumerate(self.tables)}

    @property
    def schema(self) -> str:
        own = "id string, start long, end long, retracted boolean, shard int, detail string"
        return ", ".join(["row string", own, "table int", *[f"{name} string" for name in self._terms()]])

    def _terms(self) -> list[str]:
        return [f"term_{n}" for n in range(self.width)]

    # --- in the worker ---

    def frames(self, rows: Iterable[Answer]) -> Iterator[pd.DataFrame]:
        """Rows for Spark as pandas, in pieces of a bearable size."""
        for piece in pieces(rows):
            if isinstance(piece, ColumnTable):
                known = (piece.program, piece.results.query) in self._numbers  # a query of a family is not
                yield self._table(piece) if known else self._rows(list(piece.rows()))
            else:
                yield self._rows(piece)

    def _table(self, table: ColumnTable) -> pd.DataFrame:
        results, size = table.results, len(table)
        number = self._numbers[table.program, results.query]
        filled: dict[str, pa.Array] = {
            "id": results.ids,
            "start": results.start,
            "end": results.end,
            "retracted": pa.repeat(pa.scalar(results.retracted), size),
            "shard": pa.repeat(pa.scalar(table.shard, pa.int32()), size),
            "table": pa.repeat(pa.scalar(number, pa.int32()), size),
        }
        if table.places is not None:
            filled["detail"] = table.places
        terms = dict(zip(results.variables, results.terms, strict=True))
        for name, variable in zip(self._terms(), self.tables[number].variables, strict=False):
            filled[name] = terms[variable].cast(pa.string())
        return self._frame(filled, size)

    def _rows(self, rows: list[Row]) -> pd.DataFrame:
        texts = [msgspec.json.encode(dict(zip(COLUMNS, _plain(row), strict=True))).decode() for row in rows]
        return self._frame({"row": pa.array(texts, pa.string())}, len(rows))

    def _frame(self, filled: Mapping[str, pa.Array], size: int) -> pd.DataFrame:
        """The columns of ``schema``, those that are not filled as nulls."""
        terms = dict.fromkeys(self._terms(), pa.string())
        kinds = {"row": pa.string(), **_OWN, **_PLACES, "table": pa.int32(), **terms}
        nulls = {name: pa.nulls(size, kind) for name, kind in kinds.items() if name not in filled}
        return pd.DataFrame({name: _as_it_is(filled.get(name, nulls.get(name))) for name in kinds})

    # --- in Spark's plan ---

    def read(self, out: DataFrame) -> DataFrame:
        """What comes from the operator with the columns of MATCHES."""
        rows = out.withColumn(_ROW, F.from_json("row", MATCHES, {"mode": "FAILFAST"}))
        if not self.tables:
            return rows.select(f"{_ROW}.*")
        columns = {
            "kind": F.lit("match"),
            "program": self._chosen([F.lit(t.program) for t in self.tables]),
            "query": self._chosen([F.lit(t.query) for t in self.tables]),
            "bindings": self._chosen([_bindings(t.variables) for t in self.tables]),
            **{name: F.col(name) for name in (*_OWN, *_PLACES)},
        }
        in_table = F.col("table").isNotNull()
        return rows.select(
            *[
                F.when(in_table, columns[c]).otherwise(F.col(_ROW)[c]).alias(c)
                if c in columns
                else F.col(_ROW)[c].alias(c)
                for c in COLUMNS
            ]
        )

    def _chosen(self, values: Sequence[Column]) -> Column:
        """The value for the query that a row is of."""
        *others, last = enumerate(values)
        return reduce(lambda rest, one: F.when(F.col("table") == one[0], one[1]).otherwise(rest), others, last[1])


def wire_of(parts: Iterable[Part], programs: Sequence[str]) -> Wire:
    """The wire for what some parts report; ``programs``: the names of programs by number."""
    return Wire([Selected(programs[part.program], query, names) for part in parts for query, names in part.selects])


def _bindings(variables: Sequence[str]) -> Column:
    """The map of what is bound."""
    terms = [F.col(f"term_{n}") for n in range(len(variables))]
    whole = F.create_map(*[c for v, term in zip(variables, terms, strict=True) for c in (F.lit(v), term)])
    if not variables:
        return whole.cast("map<string, string>")
    all_bound = reduce(lambda a, b: a & b, [term.isNotNull() for term in terms])
    nothing = F.create_map().cast("map<string, string>")
    bound = [
        F.when(term.isNotNull(), F.create_map(F.lit(v), term)).otherwise(nothing)
        for v, term in zip(variables, terms, strict=True)
    ]
    # Spark compiles this one; a filter of the map it would not, nor anything beside it.
    return F.when(all_bound, whole).otherwise(F.map_concat(*bound))


def _plain(row: Row) -> Row:
    """The row with triples as structs."""
    return tuple(structs(value) if name == "triples" else value for name, value in zip(COLUMNS, row, strict=True))


def _as_it_is(column: pa.Array) -> pd.Series:
    return pd.Series(pd.arrays.ArrowExtensionArray(column))


__all__ = ["Selected", "Wire", "wire_of"]
