"""The queries of programs of many in the store: reading and changing them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .catalogue import ProgramRow, QueryRow
from .problems import Problem
from .store import Store
from .transaction import Transaction

_COLUMNS = "id, program, name, text, client, after, quiet, stopped"


def _row(values: Any) -> QueryRow:
    return replace(QueryRow(*values), quiet=bool(values[6]))


def query_tag(row: QueryRow) -> str:
    """The state of a query as a tag; a query that is registered again has a new one."""
    return f"q{row.id}"


def find_query(store: Store, program: int, name: str) -> QueryRow | None:
    with store.reading() as db:
        sql = f"SELECT {_COLUMNS} FROM queries WHERE program = ? AND name = ?"
        values = db.execute(sql, (program, name)).fetchone()
    return None if values is None else _row(values)


def all_queries(store: Store, program: int) -> list[QueryRow]:
    """The queries of a program, in the order in which they begin."""
    with store.reading() as db:
        sql = f"SELECT {_COLUMNS} FROM queries WHERE program = ? ORDER BY after, id"
        return [_row(values) for values in db.execute(sql, (program,))]


def names_after(store: Store, program: int, name: str, limit: int) -> list[str]:
    """The names of a program's queries after this one, at most ``limit`` of them."""
    with store.reading() as db:
        sql = "SELECT name FROM queries WHERE program = ? AND name > ? ORDER BY name LIMIT ?"
        return [row[0] for row in db.execute(sql, (program, name, limit))]


def count_clients(store: Store) -> Counter[str]:
    """How many queries each client has."""
    with store.reading() as db:
        return Counter(dict(db.execute("SELECT client, count(*) FROM queries GROUP BY client")))


def newest_member(store: Store, program: ProgramRow) -> int:
    """The number of the member that arrived last in the container of a program."""
    with store.reading() as db:
        sql = "SELECT max(id) FROM members INDEXED BY members_by_arrival WHERE container = ?"
        return int(db.execute(sql, (program.container,)).fetchone()[0] or 0)


def before_instant(store: Store, program: ProgramRow, member: int) -> int:
    """The number of the last member before the newest instant among those up to this member."""
    seen = "container = ? AND id <= ?"
    with store.reading() as db:
        sql = f"SELECT time FROM members INDEXED BY members_by_time WHERE {seen} ORDER BY time DESC LIMIT 1"
        newest = db.execute(sql, (program.container, member)).fetchone()
        if newest is None:
            return member
        sql = f"SELECT min(id) FROM members INDEXED BY members_by_time WHERE {seen} AND time = ?"
        return int(db.execute(sql, (program.container, member, *newest)).fetchone()[0]) - 1


def put_query(row: QueryRow) -> Callable[[Transaction], QueryRow]:
    """Store a query, replacing the one of this name."""

    def change(transaction: Transaction) -> QueryRow:
        if not any(program.id == row.program for program in transaction.catalogue.programs.values()):
            raise Problem("gone", "the program was deleted")
        transaction.db.execute("DELETE FROM queries WHERE program = ? AND name = ?", (row.program, row.name))
        (number,) = transaction.db.execute(
            "INSERT INTO queries (program, name, text, client, after, quiet) VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
            (row.program, row.name, row.text, row.client, row.after, row.quiet),
        ).fetchone()
        return replace(row, id=number)

    return change


def delete_query(row: QueryRow) -> Callable[[Transaction], None]:
    def change(transaction: Transaction) -> None:
        if not transaction.db.execute("DELETE FROM queries WHERE id = ?", (row.id,)).rowcount:
            raise Problem("not-found", f"there is no query {row.name}")

    return change


def end_query(program: int, name: str, reason: str) -> Callable[[Transaction], None]:
    """Record over restarts that a query does not run, and why."""

    def change(transaction: Transaction) -> None:
        sql = "UPDATE queries SET stopped = ? WHERE program = ? AND name = ?"
        transaction.db.execute(sql, (reason, program, name))

    return change
