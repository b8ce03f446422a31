"""``postgresql://user@host/database?table=matches``: a row for each match, exactly once.

The columns are those of ``match_rows``, with the id as the primary key, and bindings and triples as JSON.
A match that is taken back is removed.  The table is made if it is not there.  Passwords come from the environment
(``PGPASSWORD``) or from ``~/.pgpass``.  Needs psycopg: the extra ``postgresql``.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from etalis_py.connectors.match_rows import net
from etalis_py.connectors.registry import Request, missing
from etalis_py.connectors.tokens import Numbered
from etalis_py.events.errors import SinkError, without_password

_STATES = "etalis_runs"


class Postgres(Numbered):
    """One connection, opened again when it was lost."""

    def __init__(self, address: str, table: str) -> None:
        super().__init__(f"{without_password(address).partition('?')[0]}?table={table}")
        try:
            import psycopg
        except ImportError:
            missing("psycopg", "postgresql", self.name, sink=True)
        self._psycopg, self._address, self._table = psycopg, address, table
        self._connection: Any = None

    def _connected(self) -> Any:
        if self._connection is None or self._connection.closed:
            try:
                self._connection = self._psycopg.connect(self._address, connect_timeout=10)
                self._make()
            except self._psycopg.Error as error:
                raise self._failure(error) from None
        return self._connection

    def _make(self) -> None:
        sql = self._psycopg.sql
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute(
                sql.SQL(
                    "CREATE TABLE IF NOT EXISTS {} (id text PRIMARY KEY, query text NOT NULL, started text, "
                    "ended text, bindings jsonb, triples jsonb)"
                ).format(sql.Identifier(self._table))
            )
            cursor.execute(f"CREATE TABLE IF NOT EXISTS {_STATES} (run text PRIMARY KEY, number bigint NOT NULL)")

    def _failure(self, error: Exception) -> SinkError:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        hint = "check the address and the user; the password comes from PGPASSWORD or ~/.pgpass"
        if isinstance(error, self._psycopg.errors.UntranslatableCharacter):
            hint = r"its texts have no U+0000: let the query remove it, as (REPLACE(?x, '\u0000', '') AS ?text)"
        return SinkError(f"PostgreSQL says: {reason}", target=self.name, hint=hint)

    def at(self) -> int:
        try:
            with self._connected().transaction(), self._connection.cursor() as cursor:
                return self._number(cursor)
        except self._psycopg.Error as error:
            raise self._failure(error) from None

    def _number(self, cursor: Any) -> int:
        cursor.execute(f"SELECT number FROM {_STATES} WHERE run = %s", (self.run,))
        row = cursor.fetchone()
        return 0 if row is None else int(row[0])

    def _take(self, cursor: Any, number: int) -> None:
        """Set the number of the run, which waits until another transaction that sets it, too, is over."""
        cursor.execute(
            f"INSERT INTO {_STATES} (run, number) VALUES (%s, %s) "
            f"ON CONFLICT (run) DO UPDATE SET number = EXCLUDED.number WHERE {_STATES}.number < EXCLUDED.number",
            (self.run, number),
        )
        if not cursor.rowcount:
            self.check_free(self._number(cursor), number)

    def put(self, records: list[dict[str, Any]], number: int) -> None:
        from psycopg.types.json import Jsonb

        sql = self._psycopg.sql
        table = sql.Identifier(self._table)
        insert = sql.SQL(
            "INSERT INTO {} (id, query, started, ended, bindings, triples) VALUES (%s, %s, %s, %s, %s, %s) "
            "ON CONFLICT (id) DO NOTHING"
        ).format(table)
        delete = sql.SQL("DELETE FROM {} WHERE id = %s").format(table)
        gone, rows = net(records)
        try:
            with self._connected().transaction(), self._connection.cursor() as cursor:
                self._take(cursor, number)
                for id in gone:
                    cursor.execute(delete, (id,))
                for row in rows:
                    *texts, bindings, triples = row
                    cursor.execute(insert, (*texts, Jsonb(bindings), None if triples is None else Jsonb(triples)))
        except self._psycopg.Error as error:
            raise self._failure(error) from None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def open_sink(address: str, request: Request) -> Postgres:
    split = urlsplit(address)
    given = dict(parse_qsl(split.query))
    table = given.pop("table", "matches")
    return Postgres(urlunsplit(split._replace(query=urlencode(given))), table)
