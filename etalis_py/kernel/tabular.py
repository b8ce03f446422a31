"""Matches as tables: the rows of a ``Matches`` as columns, from which ``streams`` makes Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from etalis_rules.terms import FALSE, TRUE

from etalis_py.kernel.frames import Look
from etalis_py.kernel.match_id import beginning
from etalis_py.streams.columns.results import Results, concatenated, table_of
from etalis_py.values.time import TIMELESS_END

if TYPE_CHECKING:
    from etalis_py.kernel.batch import ColumnReport, Report, Row
    from etalis_py.kernel.shapes import Shape

_FULL = Look()
PIECE = 1 << 14
"""Matches in columns are cut into tables of at least so many, which bounds the memory that a table takes."""


class Reported(Protocol):
    """What tables are made from: the reports of the queries of these shapes."""

    shapes: Sequence[Shape]
    reports: list[Report]

    def tables(self) -> Iterable[tuple[Shape, list[Row], list[int]]]: ...


def results(matches: Reported, query: str | None = None) -> list[Results]:
    """The matches of each query that has some, or of the named query, in columns."""
    whole = of_columns(matches)
    if whole is not None:
        return [whole] if query in (None, whole.query) else []
    return [_results(*table) for table in matches.tables() if query in (None, table[0].query)]


def arrow_table(parts: Iterable[Reported], query: str | None = None, look: Look = _FULL) -> pa.Table:
    """The matches of some steps of a run as one table; without matches it has only the columns."""
    shapes: dict[str, Shape] = {}
    queries: set[str] = set()
    tables = []
    for matches in parts:
        shapes |= {shape.query: shape for shape in matches.shapes}
        if rows := results(matches, query):
            queries |= {one.query for one in rows}
            tables.append(table_of(rows, look, named=True, variables=_variables(shapes, query)))
    if query is not None and query not in shapes:
        raise KeyError(f"there is no query {query}; there are {', '.join(shapes) or 'none'}")
    if not tables:
        return table_of([_results(shape, [], []) for name, shape in shapes.items() if query in (None, name)], look)
    table = tables[0] if len(tables) == 1 else concatenated(tables)
    return table if len(queries) > 1 else table.drop_columns(table.column_names[:1])


def _variables(shapes: Mapping[str, Shape], query: str | None) -> set[str]:
    """Those that have a column, whether or not their query has matches."""
    asked = (shape.output for name, shape in shapes.items() if query in (None, name) and shape.triples is None)
    return {name for output in asked for name in output.variables}


def _results(shape: Shape, rows: list[Row], ordinals: list[int]) -> Results:
    output = shape.output
    variables: tuple[str, ...] = ()
    columns: list[Any] = []
    if output.form == "ask":
        variables, columns = ("boolean",), [[TRUE if row[2] == "true" else FALSE for row in rows]]
    elif shape.triples is None:
        variables = tuple(output.variables)
        places = dict(zip(shape.variables, shape.places, strict=True))
        columns = [[row[places[name]] or None if places[name] > 0 else None for row in rows] for name in variables]
    start, end = ([None if row[0] == TIMELESS_END else row[i] for row in rows] for i in (1, 0))
    return Results(
        query=output.query,
        variables=variables,
        terms=tuple(pa.array(column, pa.string()) for column in columns),
        start=pa.array(start, pa.int64()),
        end=pa.array(end, pa.int64()),
        ids=pa.array(map(shape.identify, rows, ordinals), pa.string()),
        triples=None if shape.triples is None else [shape.triples(row) for row in rows],
        render=shape.render,
        prefixes=shape.prefixes,
        retracted=shape.retracted,
    )


# --- reports in columns ---


def of_columns(matches: Reported) -> Results | None:
    """The matches of one SELECT, if all were reported in columns: no rows are made."""
    known = _reported(matches)
    return None if known is None else _table(*known)


def pieces_of_columns(matches: Reported) -> Iterator[tuple[Results, Any]]:
    """The matches of one SELECT in tables of at least PIECE rows, each with the instants in which they became known.

    So a consumer needs memory for one piece at a time, and can use it again for the next.
    """
    known = _reported(matches)
    if known is None:
        return
    shape, reports = known
    piece: list[ColumnReport] = []
    size = 0
    for report, following in zip_longest(reports, reports[1:]):
        piece.append(report)
        size += len(report)
        # Equal matches of an instant are numbered to tell them apart, so they have to stay together.
        if following is None or (size >= PIECE and following.instants[0] != report.instants[-1]):
            yield _table(shape, piece), _times(piece, "instants")
            piece, size = [], 0


def _reported(matches: Reported) -> tuple[Shape, list[ColumnReport]] | None:
    """The one SELECT that has matches, and its reports, if all of them are in columns."""
    reports: list[Any] = [report for report in matches.reports if not isinstance(report, tuple)]
    if not reports or len(reports) < len(matches.reports):
        return None
    number, *others = set().union(*(report.outputs for report in reports))
    if others:
        return None
    shape = matches.shapes[number]
    if shape.output.form != "select" or shape.output.order or not shape.adjacent or shape.retracted:
        return None
    filled = [report for report in reports if len(report)]
    if not filled or any((np.asarray(report.end) == TIMELESS_END).any() for report in filled):
        return None
    return shape, filled


def _table(shape: Shape, reports: Sequence[ColumnReport]) -> Results:
    start, end, instants = (_times(reports, name) for name in ("start", "end", "instants"))
    columns = {
        place: _one_column([report.terms[place - 2] for report in reports]) for place in shape.places if place > 0
    }
    places = dict(zip(shape.variables, shape.places, strict=True))
    nothing = pa.nulls(len(end), pa.string())
    return Results(
        query=shape.query,
        variables=tuple(shape.output.variables),
        terms=tuple(columns.get(places[name], nothing) for name in shape.output.variables),
        start=pa.array(start, pa.int64()),
        end=pa.array(end, pa.int64()),
        ids=_ids(shape, [columns[place] for place in shape.places if place > 0], start, end, instants),
        triples=None,
        render=shape.render,
        prefixes=shape.prefixes,
    )


def _times(reports: Sequence[ColumnReport], name: str) -> Any:
    return np.concatenate([np.asarray(getattr(report, name)) for report in reports])


def _one_column(parts: list[Any]) -> Any:
    if len(parts) == 1 and not parts[0].null_count:
        # A column with unbound terms is not passed on as it is: its dictionary may contain the empty term.
        return parts[0]
    return pa.concat_arrays([part.cast(pa.large_string()) for part in parts])


def _ids(shape: Shape, columns: list[Any], start: Any, end: Any, instants: Any) -> pa.StringArray:
    """The ids that ``shape.identify`` gives for each row, computed for all rows at once."""
    from etalis_py.kernel.hashing import hexadecimal_digests
    from etalis_py.kernel.match_id_text import texts_of_ids  # loads Numba, which column rules have loaded already

    # Rows are sorted, so equal ones are neighbours.
    return hexadecimal_digests(beginning(shape), texts_of_ids(columns, start, end, instants))
