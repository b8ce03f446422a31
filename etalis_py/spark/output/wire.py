"""Defines how rows leave an operator: matches of a SELECT in flat columns, all other rows whole.

Spark copies all output of an operator, row by row, before it knows which columns a query asks for.  So a match has only
what distinguishes it from others: its terms are columns ``term_0``, ``term_1``, … in the order of its query's
variables, and ``table`` is the number of that query.  The names and the map of bindings are made from constants in
Spark's plan, if they are asked for.  Any other row is in the column ``row`` alone.  In a batch it is there as it is, in
a list of one, because a null list takes no room for the fields of a row.  In a stream it is JSON, because PySpark
converts pandas columns value by value, unless they hold strings or numbers that are Arrow already.  There ``table`` is
METRIC for rows of metrics, so that they can be recognized without reading JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from etalis_py.spark.input.expressions import text
from etalis_py.spark.input.schema import ARROW_MATCHES, COLUMNS, MATCHES
from etalis_py.spark.output.answers import Answer, ColumnTable, Row, pieces, row_batch, structs
from etalis_py.spark.plan.parts import ShardPart

MOST = 100
"""The most queries whose matches travel in columns: Spark's plan has a branch for each."""
_OWN = {"id": pa.string(), "start": pa.int64(), "end": pa.int64(), "retracted": pa.bool_(), "shard": pa.int32()}
"""The columns of MATCHES that may differ among the matches of a table."""
_PLACES = {"detail": pa.string()}
"""The further columns of matches that state their place in the order, if that is asked for."""
METRIC = -1
_ROW = "of_row"
_LISTS = pa.list_(pa.struct(list(ARROW_MATCHES)))


@dataclass(frozen=True, slots=True)
class Selected:
    """A SELECT query and its variables; its matches may travel in columns."""

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
        """The schema of ``record_batches``."""
        return self._columns(f"array<struct<{MATCHES}>>")

    @property
    def stream_schema(self) -> str:
        """The schema of ``stream_batches``."""
        return self._columns("string")

    def _columns(self, row: str) -> str:
        own = "id string, start long, end long, retracted boolean, shard int, detail string"
        return ", ".join([f"row {row}", own, "table int", *[f"{name} string" for name in self._terms()]])

    def _terms(self) -> list[str]:
        return [f"term_{n}" for n in range(self.width)]

    # --- in the worker ---

    def record_batches(self, rows: Iterable[Answer]) -> Iterator[pa.RecordBatch]:
        """Rows for Spark as Arrow, in pieces of a limited size."""
        for piece in pieces(rows):
            if isinstance(piece, ColumnTable):
                columns = self._table(piece) if self._knows(piece) else {"row": _in_lists(piece.record_batch())}
            else:
                columns = {"row": _in_lists(row_batch(piece))}
            arrays = self._filled(columns, len(piece), _LISTS)
            yield pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))

    def stream_batches(self, rows: Iterable[Answer]) -> Iterator[pa.RecordBatch]:
        """Rows for the frames of Spark's stateful operator, in pieces of a limited size."""
        for piece in pieces(rows):
            if isinstance(piece, ColumnTable):
                columns = self._table(piece) if self._knows(piece) else _in_json(list(piece.rows()))
            else:
                columns = _in_json(piece)
            arrays = self._filled(columns, len(piece), pa.string())
            yield pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))

    def _knows(self, table: ColumnTable) -> bool:
        """Whether a table's matches can travel in columns; those of a family cannot, as no part names its queries."""
        return (table.program, table.results.query) in self._numbers

    def _table(self, table: ColumnTable) -> dict[str, pa.Array]:
        results, size = table.results, len(table)
        number = self._numbers[table.program, results.query]
        columns: dict[str, pa.Array] = {
            "id": results.ids,
            "start": results.start,
            "end": results.end,
            "retracted": pa.repeat(pa.scalar(results.retracted), size),
            "shard": pa.repeat(pa.scalar(table.shard, pa.int32()), size),
            "table": pa.repeat(pa.scalar(number, pa.int32()), size),
        }
        if table.places is not None:
            columns["detail"] = table.places
        terms = dict(zip(results.variables, results.terms, strict=True))
        for name, variable in zip(self._terms(), self.tables[number].variables, strict=False):
            columns[name] = terms[variable].cast(pa.string())
        return columns

    def _filled(self, columns: Mapping[str, pa.Array], size: int, row: pa.DataType) -> dict[str, pa.Array]:
        """The columns of the schema; those that are not given are nulls."""
        terms = dict.fromkeys(self._terms(), pa.string())
        kinds = {"row": row, **_OWN, **_PLACES, "table": pa.int32(), **terms}
        return {name: columns[name] if name in columns else pa.nulls(size, kind) for name, kind in kinds.items()}

    # --- in Spark's plan ---

    def read(self, out: DataFrame) -> DataFrame:
        """The output of the operator with the columns of MATCHES."""
        in_json = out.schema["row"].dataType == StringType()
        rows, whole = out, "get(row, 0)"
        if in_json:
            # Spark generates code for this expression; from_json would copy every match once more.
            parsed = f"variant_get(parse_json(row), '$', 'struct<{MATCHES}>')"
            rows, whole = out.withColumn(_ROW, F.expr(parsed)), _ROW
        columns = {
            "kind": "'match'",
            "program": self._chosen([text(t.program) for t in self.tables]),
            "query": self._chosen([text(t.query) for t in self.tables]),
            "bindings": self._chosen([_bindings(t.variables) for t in self.tables]),
            **{name: f"`{name}`" for name in (*_OWN, *_PLACES)},
        }
        chosen = {c: f"CASE WHEN table >= 0 THEN {columns[c]} ELSE {whole}.`{c}` END" for c in columns if self.tables}
        return rows.selectExpr(*[f"{chosen.get(c, f'{whole}.`{c}`')} AS `{c}`" for c in COLUMNS])

    def _chosen(self, values: Sequence[str]) -> str:
        """The value for the query of a row; queries with the same value share a case, as Spark compiles each."""
        tables: dict[str, list[str]] = {}
        for n, value in enumerate(values):
            tables.setdefault(value, []).append(str(n))
        cases = " ".join(f"WHEN table IN ({', '.join(some)}) THEN {value}" for value, some in tables.items())
        return f"CASE {cases} END"


def without_metrics(out: DataFrame) -> DataFrame:
    """The output of the operator of a stream, before ``read``, without the rows of metrics."""
    return out.where(F.coalesce(F.col("table"), F.lit(0)) != METRIC)


def wire_of(parts: Iterable[ShardPart], programs: Sequence[str]) -> Wire:
    """The wire for the reports of some parts; ``programs``: the names of programs by number."""
    selected = [Selected(programs[part.program], query, names) for part in parts for query, names in part.selects]
    return Wire(selected[:MOST])


def _bindings(variables: Sequence[str]) -> str:
    """The map of the bound variables."""
    nothing = "CAST(map() AS map<string, string>)"
    if not variables:
        return nothing
    pairs = [f"{text(variable)}, term_{n}" for n, variable in enumerate(variables)]
    all_bound = " AND ".join(f"term_{n} IS NOT NULL" for n in range(len(variables)))
    bound = [f"CASE WHEN term_{n} IS NOT NULL THEN map({pair}) ELSE {nothing} END" for n, pair in enumerate(pairs)]
    # Spark generates code for this expression.  For a filter of the map it could not, nor for expressions beside it.
    return f"CASE WHEN {all_bound} THEN map({', '.join(pairs)}) ELSE map_concat({', '.join(bound)}) END"


def _in_lists(batch: pa.RecordBatch) -> pa.ListArray:
    """Each row in a list of its own."""
    return pa.ListArray.from_arrays(pa.array(range(len(batch) + 1), pa.int32()), batch.to_struct_array())


def _in_json(rows: Iterable[Row]) -> dict[str, pa.Array]:
    plain = [dict(zip(COLUMNS, _plain(row), strict=True)) for row in rows]
    tables = [METRIC if row["kind"] == "metric" else None for row in plain]
    return {
        "row": pa.array([msgspec.json.encode(row).decode() for row in plain], pa.string()),
        "table": pa.array(tables, pa.int32()),
    }


def _plain(row: Row) -> Row:
    """The row with triples as structs."""
    return tuple(structs(value) if name == "triples" else value for name, value in zip(COLUMNS, row, strict=True))


__all__ = ["METRIC", "Selected", "Wire", "wire_of", "without_metrics"]
