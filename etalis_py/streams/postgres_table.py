"""``postgresql://user@host/database?table=limits``: the rows of a table of PostgreSQL, as background.

``table=schema.name`` names one in another schema.  The password comes from ``PGPASSWORD`` or from ``~/.pgpass``, never
from the address.  Needs psycopg: the extra ``postgresql``.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from uuid import UUID

from etalis_py.events import Triple
from etalis_py.events.errors import StreamError, check_no_password

SCHEMES = ("postgresql", "postgres")
_EXAMPLE = "write postgresql://user@host/database?table=NAME; the password comes from PGPASSWORD or ~/.pgpass"


def is_postgres(name: str) -> bool:
    """
    >>> is_postgres("postgresql://localhost/shop?table=limits"), is_postgres("limits.csv")
    (True, False)
    """
    return name.partition("://")[0].lower() in SCHEMES


def rows_of(address: str) -> list[dict[str, Any]]:
    """All rows of the table, each by the names of its columns, as one transaction sees them.

    It is a single statement, so no change of others is seen in part.
    """
    name, table, connect_to = _parsed(address)
    try:
        import psycopg
        from psycopg import sql
        from psycopg.rows import dict_row
    except ImportError:
        raise StreamError(
            "PostgreSQL needs the package psycopg, which is not installed",
            source=name,
            hint="install it with: pip install 'etalis-py[postgresql]'",
        ) from None
    statement = sql.SQL("SELECT * FROM {}").format(sql.Identifier(*table.split(".")))
    try:
        with psycopg.connect(connect_to, connect_timeout=10) as connection:
            connection.read_only = True
            rows = connection.cursor(row_factory=dict_row).execute(statement).fetchall()
    except psycopg.Error as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise StreamError(f"PostgreSQL says: {reason}", source=name, hint=_EXAMPLE) from None
    return [{column: _plain(value) for column, value in row.items()} for row in rows]


def triples_digest(triples: Iterable[Triple]) -> str:
    """Of what was read, whatever the order of the rows."""
    return blake2b("\n".join(sorted(map(" ".join, triples))).encode(), digest_size=16).hexdigest()


def name_of(address: str) -> str:
    """The address as messages show it."""
    return _parsed(address)[0]


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value


def _parsed(address: str) -> tuple[str, str, str]:
    """The address for messages, the table, and the address for the client."""
    split = urlsplit(address)
    given = dict(parse_qsl(split.query))
    table = given.pop("table", "")
    host = split.hostname or ""
    name = f"{split.scheme}://{host}{f':{split.port}' if split.port else ''}{split.path}?table={table}"
    check_no_password(address)
    if not all(table.split(".")):
        raise StreamError("this address names no table", source=name, hint=_EXAMPLE)
    return name, table, urlunsplit(split._replace(query=urlencode(given)))
