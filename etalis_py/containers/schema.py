"""The tables of a store, and how its connections are opened.

``members`` is the stream: ids rise with arrival, and the indexes by (container, time) and by container (the row id is
part of every index of SQLite) serve windows and the feed without reading anything else.  ``stamps`` holds the times
that a graph gives by relations other than the one that orders its container.  ``deleted`` is the id of the newest
member of a container whose retention is over: a reader that has not come so far has missed it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
from contextlib import ExitStack
from pathlib import Path
from typing import IO

VERSION = "1"

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS containers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    parent INTEGER NOT NULL,
    config BLOB NOT NULL,
    sort TEXT NOT NULL,
    version INTEGER NOT NULL DEFAULT 1,
    changes INTEGER NOT NULL DEFAULT 1,
    next INTEGER NOT NULL DEFAULT 0,
    members INTEGER NOT NULL DEFAULT 0,
    triples INTEGER NOT NULL DEFAULT 0,
    deleted INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS members (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    container INTEGER NOT NULL,
    name TEXT NOT NULL,
    time INTEGER NOT NULL,
    triples INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS members_by_name ON members (container, name);
CREATE INDEX IF NOT EXISTS members_by_time ON members (container, time);
CREATE INDEX IF NOT EXISTS members_by_arrival ON members (container);
CREATE TABLE IF NOT EXISTS stamps (
    container INTEGER NOT NULL,
    relation TEXT NOT NULL,
    time INTEGER NOT NULL,
    member INTEGER NOT NULL,
    own INTEGER NOT NULL,
    triples INTEGER NOT NULL,
    PRIMARY KEY (container, relation, time, member)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS stamps_by_member ON stamps (member);
CREATE TABLE IF NOT EXISTS programs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    container INTEGER NOT NULL,
    name TEXT NOT NULL,
    query TEXT NOT NULL,
    output TEXT NOT NULL,
    after INTEGER NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0,
    stopped TEXT NOT NULL DEFAULT '',
    many INTEGER NOT NULL DEFAULT 0,
    UNIQUE (container, name)
);
CREATE TABLE IF NOT EXISTS queries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    program INTEGER NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    client TEXT NOT NULL,
    after INTEGER NOT NULL,
    quiet INTEGER NOT NULL,
    stopped TEXT NOT NULL DEFAULT '',
    UNIQUE (program, name)
);
CREATE INDEX IF NOT EXISTS queries_by_client ON queries (client);
CREATE TABLE IF NOT EXISTS gone (id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS purges (container INTEGER PRIMARY KEY);
"""


class StoreError(RuntimeError):
    """A store that cannot be opened or written: what was found and what to do."""


def take(path: Path) -> ExitStack:
    """Take the locks of a store file: one server at a time, since a second one would not see the first one's state.

    One lies beside the file itself, wherever the links lead from that a server may be given; the other is the file's
    own, as it may have several names.  They are held until what is returned is closed: after all connections, because
    SQLite loses its own locks as soon as its process closes the file.
    """
    with ExitStack() as locks:
        lock = _locked(path, f"{os.path.realpath(path)}.lock", "w", locks)
        lock.write(str(os.getpid()))
        lock.flush()
        _locked(path, path, "a", locks)
        return locks.pop_all()


def _locked(path: Path, name: str | Path, mode: str, locks: ExitStack) -> IO[str]:
    try:
        file: IO[str] = locks.enter_context(open(name, mode))  # noqa: SIM115 - held for the life of the store
    except OSError as error:
        raise StoreError(f"cannot open {path}: {error.strerror}; name a file in a folder that can be written") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise StoreError(f"{path} is in use by another server; stop that one, or name another store") from None
    return file


def check_in_place(path: Path, file: os.stat_result) -> None:
    """Refuse to go on with an opened file that is not at its path any more: what it takes would be lost at the end."""
    try:
        if os.path.samestat(os.stat(path), file):
            return
    except FileNotFoundError:
        pass
    raise StoreError(f"{path} was moved, removed or replaced; put that file back, or start the server again")


def connect(path: Path | None, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode; transactions are begun by hand."""
    try:
        connection = sqlite3.connect(str(path or ":memory:"), isolation_level=None, check_same_thread=False, timeout=10)
        if path is not None:
            _check_own(connection, path)  # before anything is written
            connection.execute("PRAGMA journal_mode = WAL")
            # FULL: a commit is on the disk when it returns, so acknowledged changes survive a power cut.
            connection.execute("PRAGMA synchronous = FULL")
        # The system caches the pages of the file as well, and there are several connections: each caches little.
        connection.execute("PRAGMA cache_size = -2000" if read_only else "PRAGMA cache_size = -4000")
        if read_only:
            connection.execute("PRAGMA query_only = 1")
    except sqlite3.Error as error:
        said = f"cannot open the store {path}: {error}; name another file, in a folder that can be written"
        raise _unusable(path, error, said) from None
    return connection


def _unusable(path: Path | None, error: sqlite3.Error, said: str) -> StoreError:
    """Why a file is no store: as ``said``, unless it is one whose pages are damaged, which has more than a new one."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CORRUPT:
        return StoreError(said)
    return StoreError(
        f"{path} is damaged: {error}; put a backup in its place, or save what 'sqlite3 {path} .recover' finds"
    )


def _check_own(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse the database of another program: one with tables, but without ``meta``, the first that a store gets."""
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    columns = [row[1] for row in connection.execute("PRAGMA table_info(meta)")]
    if tables and columns != ["key", "value"]:
        raise StoreError(f"{path} is a database of another program, with the table {tables[0]}; name another file")


def prepare(connection: sqlite3.Connection, path: Path | None) -> str:
    """Create what is missing; returns the base of the addresses in stored graphs."""
    try:
        connection.executescript(_TABLES)
        _add_columns(connection)
        meta = dict(connection.execute("SELECT key, value FROM meta"))
        if not meta:
            meta = {"version": VERSION, "base": f"x-{secrets.token_hex(8)}://s/"}
            connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
    except sqlite3.Error as error:
        said = f"{path} is not a store of stream containers: {error}; name another file"
        raise _unusable(path, error, said) from None
    if meta.get("version") != VERSION:
        raise StoreError(
            f"{path} has the format {meta.get('version')}, this release reads {VERSION}; use the release that wrote it"
        )
    return meta["base"]  # type: ignore[no-any-return]


def _add_columns(connection: sqlite3.Connection) -> None:
    """Add the columns that later releases introduced; earlier ones can still read such a store."""
    number = "INTEGER NOT NULL DEFAULT 0"
    later = (
        ("programs", "paused", number),
        ("programs", "stopped", "TEXT NOT NULL DEFAULT ''"),
        ("programs", "many", number),
        ("containers", "deleted", number),
    )
    for table, name, kind in later:
        if name not in {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}:
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind}")
