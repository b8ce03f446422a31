"""Matches as rows of one table of a database or a lake, whatever their query:

| column | |
|---|---|
| `id` | of the match |
| `query` | its name |
| `started`, `ended` | its interval, as the stream spells times |
| `bindings` | plain values by name: numbers, booleans and texts |
| `triples` | of queries that construct |
"""

from __future__ import annotations

from typing import Any, NamedTuple

from etalis_py.connectors.plain import plain_bindings


class MatchRow(NamedTuple):
    id: str
    query: str
    started: str | None
    ended: str | None
    bindings: dict[str, Any]
    triples: Any | None


def row_of(record: dict[str, Any]) -> MatchRow:
    """The row of a match (``Match.to_dict``)."""
    started, ended = (None if record.get(name) is None else str(record[name]) for name in ("start", "end"))
    return MatchRow(record["id"], record["query"], started, ended, plain_bindings(record), record.get("triples"))


def net(records: list[dict[str, Any]]) -> tuple[list[str], list[MatchRow]]:
    """The ids of the matches that are taken back, and the rows to add once these are gone: the last thing said counts.

    >>> gone, rows = net([{"id": "a", "query": "q"}, {"id": "a", "query": "q", "retracted": True}])
    >>> gone, rows
    (['a'], [])
    """
    gone = list(dict.fromkeys(record["id"] for record in records if record.get("retracted")))
    last = {record["id"]: record for record in records}
    return gone, [row_of(record) for record in last.values() if not record.get("retracted")]
