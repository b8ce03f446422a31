"""Matches as Parquet, as an Arrow file, and in an SQLite database: with native types, in columns.

The type of a column is that of its values.  If later matches need a wider one (a text among numbers), earlier rows are
written again with that type: a file only appears when it is complete.

In SQLite each query has its own table.  The key of a match is its id, so repeating a run writes nothing twice.  Times
that are dates become texts in the form that SQLite's own functions take.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc, parquet

from etalis_py.events.clock import is_date, parse_datetime, render_datetime
from etalis_py.events.errors import SinkError, resolved, sink_error
from etalis_py.streams.added_columns import bounds, free
from etalis_py.streams.columns.results import Results, concatenated, conformed, table_of, widened, wider
from etalis_py.streams.sinks import ClosedByItsBlock, Match, solution

ROWS = 1 << 16


def results_of(matches: Iterable[Match], variables: Mapping[str, Sequence[str]]) -> list[Results]:
    """Matches in columns; ``variables`` has those of each query, if known."""
    return [_results(query, list(some), variables) for query, some in groupby(matches, key=lambda match: match.query)]


def _results(query: str, matches: list[Match], variables: Mapping[str, Sequence[str]]) -> Results:
    constructs = matches[0].triples is not None
    rows = [solution(match) for match in matches]
    names = tuple(variables.get(query) or sorted({name for row in rows for name in row}))
    if any("boolean" in row for row in rows) and not any(match.bindings for match in matches):
        names = ("boolean",)
    start, end, render = _times(matches)
    return Results(
        query=query,
        variables=() if constructs else names,
        terms=() if constructs else tuple(pa.array([row.get(n) for row in rows], pa.string()) for n in names),
        start=start,
        end=end,
        ids=pa.array([match.id for match in matches], pa.string()),
        triples=[match.triples or () for match in matches] if constructs else None,
        render=render,
    )


def _times(matches: list[Match]) -> tuple[pa.Array, pa.Array, Callable[[int], int | str]]:
    """The times of matches, and how they are spelled."""
    spelled = [time for match in matches for time in (match.start, match.end)]
    if any(time is not None and is_date(time) for time in spelled):
        micros = [None if time is None else parse_datetime(str(time)) for time in spelled]
        return pa.array(micros[::2], pa.int64()), pa.array(micros[1::2], pa.int64()), render_datetime
    known: list[int | str] = [time for time in dict.fromkeys(spelled) if time is not None]
    places = {time: place for place, time in enumerate(known)}
    index = [None if time is None else places[time] for time in spelled]
    return (
        pa.array(index[::2], pa.int64()),
        pa.array(index[1::2], pa.int64()),
        lambda place: known[place] if known else 0,
    )


class _Collecting(ClosedByItsBlock):
    """Collects many matches and then writes them as tables."""

    def __init__(self, variables: Mapping[str, Sequence[str]] | None) -> None:
        self._variables = dict(variables or {})
        self._matches: list[Match] = []
        self._results: list[Results] = []
        self._held = 0
        self._closed = False

    def write(self, match: Match) -> None:
        self._matches.append(match)
        self._grow(1)

    def write_results(self, results: Results) -> bool:
        """Write matches that are in columns already."""
        self._gather()
        self._results.append(results)
        self._grow(len(results) if results.triples is None else sum(map(len, results.triples)))
        return True

    def _grow(self, rows: int) -> None:
        self._held += rows
        if self._held >= ROWS:
            self._out()

    def _gather(self) -> None:
        self._results += results_of(self._matches, self._variables)
        self._matches = []

    def _out(self) -> None:
        self._gather()
        results, self._results, self._held = self._results, [], 0
        if results:
            self._store(results)

    @abstractmethod
    def _store(self, results: Sequence[Results]) -> None: ...


class TableFile(_Collecting):
    """A Parquet or Arrow file."""

    def __init__(
        self, format: str, target: str | os.PathLike[str], variables: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        super().__init__(variables)
        self._parquet = format == "parquet"
        self.name = os.fspath(target)
        if self.name == "-" or self.name.endswith(("/", os.sep)) or os.path.isdir(self.name):
            raise SinkError(
                f"{format} is written to one file", target=self.name, hint=f"name a file, such as matches.{format}"
            )
        self._path = resolved(target)
        if self._path.exists() and not self._path.is_file():
            raise SinkError(
                f"this is a pipe or a device, and {format} is written to a file",
                target=self.name,
                hint=f"name a file, such as matches.{format}, or write jsonl",
            )
        if not self._path.parent.is_dir():
            raise SinkError("the folder does not exist", target=self.name, hint="create it or choose another place")
        self._parts = 0
        self._temporary = self._part()
        self._before: Path | None = None  # the part that is being replaced
        self._schema: pa.Schema | None = None
        self._writer: Any = None

    def _part(self) -> Path:
        self._parts += 1
        return self._path.with_name(f".{self._path.name}.{os.getpid()}.{self._parts}.tmp")

    def flush(self) -> None:
        """Do nothing: the file appears when it is complete."""

    def _store(self, results: Sequence[Results]) -> None:
        try:
            table = self._table(results)
            if self._schema is None:
                self._open(table.schema)
            elif table.schema != self._schema:
                self._widen(table)
            assert self._schema is not None
            self._writer.write_table(conformed(table, self._schema))
        except OSError as error:
            self.abandon()
            raise sink_error(error, self.name) from None

    def _table(self, results: Sequence[Results]) -> pa.Table:
        queries = len(self._variables) > 1
        try:
            tables = [table_of([one], named=queries, variables=chain(*self._variables.values())) for one in results]
        except ValueError as error:
            raise SinkError(str(error), target=self.name) from None
        forms = {"s" in one.column_names and one.column_names[:2] == ["end", "start"] for one in tables}
        if len(forms) > 1:
            raise SinkError(
                "triples and rows have no place in one table", target=self.name, hint="write them as jsonl or trig"
            )
        table = concatenated(tables)
        return table if self._parquet else conformed(table, _without_dictionaries(table.schema))

    def _nothing(self) -> list[Results]:
        """No match of each query that has variables; without any, no match of a CONSTRUCT."""
        chosen = [(query, tuple(names)) for query, names in self._variables.items() if names] or [("", ())]
        none, times = pa.array([], pa.string()), pa.array([], pa.int64())
        return [
            Results(query, names, (none,) * len(names), times, times, none, None if names else [], int)
            for query, names in chosen
        ]

    def _open(self, schema: pa.Schema) -> None:
        # A column without values has no type yet; as text it can still become anything.
        self._schema = schema
        stored = pa.schema([(f.name, pa.string() if pa.types.is_null(f.type) else f.type) for f in schema])
        self._writer = _Writer(self._temporary, stored, is_parquet=self._parquet)

    def _widen(self, table: pa.Table) -> None:
        """Start again with types that can also hold the new values."""
        assert self._schema is not None
        kinds = {field.name: field.type for field in self._schema}
        for field in table.schema:
            kinds[field.name] = wider(kinds.get(field.name, pa.null()), field.type)
        schema = pa.schema(list(kinds.items()))
        if schema == self._schema:
            return
        self._writer.close()
        nulls = [f.name for f in self._schema if pa.types.is_null(f.type)]
        before = self._before = self._temporary
        self._temporary = self._part()
        self._open(schema)
        for batch in _read(before, self._parquet):
            part = pa.Table.from_batches([batch])
            for name in nulls:
                place = part.column_names.index(name)
                part = part.set_column(place, name, pa.nulls(len(part)))
            self._writer.write_table(conformed(part, schema))
        before.unlink()

    def close(self) -> None:
        if self._closed:
            return
        try:
            self._out()
            self._closed = True
            if self._writer is None:
                self._open(self._table(self._nothing()).schema)
            self._writer.close()
            os.replace(self._temporary, self._path)
        except OSError as error:
            self.abandon()
            raise sink_error(error, self.name) from None

    def abandon(self) -> None:
        self._closed = True
        if self._writer is not None:
            with contextlib.suppress(OSError):
                self._writer.close()
        for part in (self._temporary, self._before):
            with contextlib.suppress(OSError):
                if part is not None:
                    part.unlink()


def _without_dictionaries(schema: pa.Schema) -> pa.Schema:
    """An Arrow file has one dictionary for each column, and the names of queries would come in several."""
    return pa.schema([(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in schema])


class _Writer:
    """A file of Parquet or Arrow; its name need not be UTF-8, which Arrow takes for granted of names."""

    def __init__(self, path: Path, schema: pa.Schema, *, is_parquet: bool) -> None:
        self._schema = schema
        self._file = pa.OSFile(os.fsencode(path), "wb")
        self._writer = (parquet.ParquetWriter if is_parquet else ipc.new_file)(self._file, schema)

    def write_table(self, table: pa.Table) -> None:
        self._writer.write_table(conformed(table, self._schema))

    def close(self) -> None:
        """Finish the file; it may be closed already, if it could not be finished."""
        if not self._file.closed:
            with self._file:
                self._writer.close()


def _read(path: Path, is_parquet: bool) -> Iterable[pa.RecordBatch]:
    with pa.OSFile(os.fsencode(path)) as file:
        if is_parquet:
            yield from parquet.ParquetFile(file).iter_batches()
            return
        reader = ipc.open_file(file)
        for place in range(reader.num_record_batches):
            yield reader.get_batch(place)


class Database(_Collecting):
    """An SQLite database, new or existing."""

    def __init__(self, target: str | os.PathLike[str], variables: Mapping[str, Sequence[str]] | None = None) -> None:
        super().__init__(variables)
        self.name = os.fspath(target)
        check_names(self._variables, self.name)
        self._connection = opened_database(self.name)

    def flush(self) -> None:
        """Make the written rows visible to others."""
        self._out()
        self._connection.commit()

    def _store(self, results: Sequence[Results]) -> None:
        try:
            for one in results:
                add_rows(self._connection, one.query, *rows_of(one))
        except sqlite3.Error as error:
            raise database_error(error, self.name) from None

    def close(self) -> None:
        if self._closed:
            return
        try:
            self._out()
            self._connection.commit()
        except sqlite3.Error as error:
            raise database_error(error, self.name) from None
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the database; what was not committed is not in it."""
        self._closed = True
        self._connection.close()


def check_names(variables: Mapping[str, Sequence[str]], target: str) -> None:
    """Raise SinkError if SQLite, which disregards the case of ASCII letters, would take two names for one."""
    _check_case(variables, "the queries {} and {} are one table", target)
    for query, names in variables.items():
        if query.lower().startswith("sqlite_"):
            raise SinkError(f"SQLite keeps names such as {query} to itself", target=target, hint="rename the query")
        columns = (*names, *bounds(names), free("id", names))
        _check_case(columns, f"the columns {{}} and {{}} of {query} are one", target)


def _check_case(names: Iterable[str], message: str, target: str) -> None:
    known: dict[bytes, str] = {}
    for name in names:
        other = known.setdefault(name.encode().lower(), name)  # in bytes, only ASCII letters have a case
        if other != name:
            told = message.format(other, name)
            raise SinkError(f"{told} in SQLite, where case does not count", target=target, hint="rename one of them")


def opened_database(name: str) -> sqlite3.Connection:
    """A connection to a database, new or existing; SQLite itself does not say that its folder is the reason."""
    try:
        connection = sqlite3.connect(resolved(name))
        connection.execute("PRAGMA schema_version")
    except sqlite3.Error as error:
        path = Path(name)
        if not path.parent.is_dir():
            raise sink_error(FileNotFoundError(), name) from None
        if not path.exists() and not os.access(path.parent, os.W_OK):
            raise SinkError("the folder cannot be written", target=name, hint="choose another place") from None
        raise SinkError(f"this is not a SQLite database that can be written: {error}", target=name) from None
    return connection


_ADVICE = {
    sqlite3.SQLITE_BUSY: "end what else writes it, or name another file",
    sqlite3.SQLITE_FULL: "make room on its disk",
    sqlite3.SQLITE_READONLY: "let this user write the file and its folder, or name another file",
}


def database_error(error: sqlite3.Error, name: str) -> SinkError:
    """What is wrong with a database that cannot be written, and what to do."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_READONLY_DBMOVED:
        return SinkError("its file was moved or removed while the run wrote it", target=name, hint="put it back")
    code &= 0xFF  # without what more a code may tell, as SQLITE_BUSY_SNAPSHOT
    return SinkError(f"cannot be written: {error}", target=name, hint=_ADVICE.get(code, ""))


Rows = tuple[list[str], list[str], list[list[Any]]]


def rows_of(one: Results) -> Rows:
    """The names of the columns, those of the key, and the rows, as SQLite stores them."""
    table = table_of([one])
    if one.triples is not None:
        table = table.append_column("number", pa.array(_numbers(one), pa.int64()))
    names = table.column_names
    key = names[-1:] if one.triples is None else ["id", "number"]
    columns = [map(_plain, _listed(column)) for column in table.columns]
    return names, key, [list(row) for row in zip(*columns, strict=True)]


def add_rows(
    connection: sqlite3.Connection, query: str, names: Sequence[str], key: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
    """Add rows to the table of a query, which is made if it is not there; those with the same key are replaced."""
    columns, keys = (", ".join(map(quoted, some)) for some in (names, key))
    connection.execute(f"CREATE TABLE IF NOT EXISTS {quoted(query)} ({columns}, PRIMARY KEY ({keys}))")
    places = ", ".join("?" * len(names))
    connection.executemany(f"INSERT OR REPLACE INTO {quoted(query)} ({columns}) VALUES ({places})", rows)


def _numbers(one: Results) -> list[int]:
    return [number for triples in one.triples or () for number in range(len(triples))]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _listed(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; times before the year 1 and after 9999, which Python's do not have, as texts."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        texts = widened(column, pa.string()).to_pylist()
        return [_value_or(text, value) for text, value in zip(texts, column, strict=True)]


def _value_or(text: str | None, value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return text


def _plain(value: Any) -> Any:
    """A value in the form that SQLite stores."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() and abs(value) < 2**63 else float(value)
    if value is None or isinstance(value, (int, float, str)):
        return value
    return value.isoformat().replace("+00:00", "Z")
