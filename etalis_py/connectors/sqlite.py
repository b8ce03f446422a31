"""An SQLite database: a row for each match in the table of its query, exactly once.

The tables are those that a run without a checkpoint writes (``streams.write_tables``).  The rows of a portion, and up
to where the run is (table ``etalis_runs``), are one transaction.  A match that is taken back is removed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from etalis_py.connectors.tokens import Numbered
from etalis_py.streams.added_columns import free
from etalis_py.streams.sinks import Match, is_retracted
from etalis_py.streams.write_tables import (
    add_rows,
    check_names,
    database_error,
    opened_database,
    quoted,
    results_of,
    rows_of,
)

_STATES = "etalis_runs"


class Database(Numbered):
    """One connection.  ``columns``: the variables of each query.  State: the matches since the last token."""

    def __init__(self, path: str, columns: Mapping[str, Sequence[str]]) -> None:
        super().__init__(path)
        self._columns = columns
        self._matches: dict[str, Match] = {}  # the last that is said of each
        check_names(columns, path)
        self._connection = opened_database(path)

    def write(self, matches: Iterable[Match]) -> None:
        self._matches |= {match.id: match for match in matches}

    def prepare(self) -> Any:
        matches, self._matches = list(self._matches.values()), {}
        self._held = [
            {"query": one.query, "removed": one.id, "key": self._key(one)} for one in matches if is_retracted(one)
        ]
        results = results_of([one for one in matches if not is_retracted(one)], self._columns)
        self._held += [{"query": one.query, "rows": rows_of(one)} for one in results]
        return super().prepare()

    def at(self) -> int:
        try:
            with self._connection as connection:
                connection.execute(f"CREATE TABLE IF NOT EXISTS {_STATES} (run TEXT PRIMARY KEY, number INTEGER)")
            return self._number()
        except sqlite3.Error as error:
            raise database_error(error, self.name) from None

    def _number(self) -> int:
        row = self._connection.execute(f"SELECT number FROM {_STATES} WHERE run = ?", (self.run,)).fetchone()
        return 0 if row is None else int(row[0])

    def put(self, records: list[dict[str, Any]], number: int) -> None:
        try:
            with self._connection as connection:  # a transaction
                connection.execute("BEGIN IMMEDIATE")  # nobody else writes from here on
                self.check_free(self._number(), number)
                for record in records:
                    if "rows" in record:
                        add_rows(connection, record["query"], *record["rows"])
                    elif self._is_table(record["query"]):
                        table, key = quoted(record["query"]), quoted(record.get("key", "id"))
                        connection.execute(f"DELETE FROM {table} WHERE {key} = ?", (record["removed"],))
                connection.execute(f"INSERT OR REPLACE INTO {_STATES} VALUES (?, ?)", (self.run, number))
        except sqlite3.Error as error:
            raise database_error(error, self.name) from None

    def _key(self, match: Match) -> str:
        """The column with the ids of the matches of its query."""
        return (
            "id" if match.triples is not None else free("id", self._columns.get(match.query) or sorted(match.bindings))
        )

    def _is_table(self, name: str) -> bool:
        asked = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return self._connection.execute(asked, (name,)).fetchone() is not None

    def abort(self) -> None:
        self._matches = {}
        super().abort()

    def close(self) -> None:
        self._connection.close()
