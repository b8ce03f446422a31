"""``open_sink``: matches out, in one of the formats, to standard output, a file or a folder.

| format | a SELECT match | a CONSTRUCT match |
|---|---|---|
| `jsonl` | one object a line, as SPARQL results JSON binds terms | one object a line, with N-Triples |
| `json` | SPARQL 1.1 results JSON, one document | refused |
| `csv` | SPARQL 1.1 results CSV | refused |
| `table` | a table for people, live on a terminal | its triples in one cell |
| `trig` | a named graph that holds the solution | a named graph, timed as the reader expects |
| `parquet`, `arrow` | a row with native types | a row for each triple, which can be read again |
| `sqlite` | a row in the table of its query | a row for each triple |

Times are written as in the match, which is as the stream spells them.  In `json` and `csv` they are two more columns.
The answer of an ASK query is a column `boolean`; in `json` it is the whole document.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any

from etalis_py.events.errors import SinkError
from etalis_py.streams.outputs import open_output
from etalis_py.streams.sinks import Format, NetSink, Sink, TextSink
from etalis_py.streams.write_rows import JsonLines, ResultsCsv, ResultsJson
from etalis_py.streams.write_table import LiveTable, PlainTable, wants_live
from etalis_py.streams.write_trig import Constituent, Trig, explained

SUFFIXES = {"jsonl": "jsonl", "json": "srj", "csv": "csv", "table": "txt", "trig": "trig"}
TABLES = ("parquet", "arrow", "sqlite")
ENDINGS = {
    "jsonl": "jsonl", "ndjson": "jsonl", "json": "json", "srj": "json", "csv": "csv", "txt": "table", "trig": "trig",
    "parquet": "parquet", "pq": "parquet", "arrow": "arrow", "feather": "arrow", "ipc": "arrow",
    "sqlite": "sqlite", "sqlite3": "sqlite", "db": "sqlite",
}  # fmt: skip


def format_by_ending(target: str) -> str:
    """The format that the name of a sink implies, or "".

    >>> format_by_ending("out/matches.parquet"), format_by_ending("-")
    ('parquet', '')
    """
    name = os.path.basename(target).lower()
    return ENDINGS.get(name.rpartition(".")[2], "") if "." in name else ""


def open_sink(
    format: str = "jsonl",
    target: str | os.PathLike[str] | IO[str] = "-",
    *,
    variables: Sequence[str] | None = None,
    columns: Mapping[str, Sequence[str]] | None = None,
    prefixes: Mapping[str, str] | None = None,
    explain: bool = False,
    constituents: Callable[[Any], Iterable[Constituent]] | None = None,
    live: bool = False,
    revised: bool = False,
) -> Sink:
    """A sink for matches.

    ``target``: ``-`` for standard output, a file (it appears when it is complete), or a folder (a name ending with
    ``/``) of rolling files.  ``variables``: the columns of `csv`, `json` and `table`, in order; without them the first
    match decides.  ``columns``: the variables of each query, for `parquet`, `arrow` and `sqlite`; if there are several
    queries, `csv` and `json` have a column that names them.  ``prefixes``: to shorten IRIs in tables.  ``explain``:
    with `jsonl` add why a match holds, with `trig` links to the events it is made of (or those that ``constituents``
    gives).  ``live``: write a file in place, so that others can follow it, instead of all at once at the end.
    ``revised``: matches may be taken back; `csv` and `table` have a column that says so, and `json`, `parquet`, `arrow`
    and `sqlite` are written at the end, without the matches that were taken back.
    """
    if revised and (format == "json" or format in TABLES):
        sink = open_sink(format, target, variables=variables, columns=columns, prefixes=prefixes, live=live)
        return NetSink(sink)
    if format not in SUFFIXES and format not in TABLES:
        raise SinkError(f"unknown output format {format!r}", hint=f"known formats: {', '.join((*SUFFIXES, *TABLES))}")
    if explain and format not in ("jsonl", "trig"):
        raise SinkError(f"explanations have no place in {format}", hint="write them as jsonl or trig")
    if format in TABLES:
        return _table_sink(format, target, columns)
    if format == "table" and wants_live(target):
        return LiveTable(variables, prefixes or {})
    output = open_output(target, SUFFIXES[format], live=live)
    if format == "trig" and constituents is not None:
        return TextSink(Trig(constituents), output)
    texts = text_format(
        format, variables=variables, columns=columns, prefixes=prefixes, explain=explain, revised=revised
    )
    return TextSink(texts, output)


def text_format(
    format: str,
    *,
    variables: Sequence[str] | None = None,
    columns: Mapping[str, Sequence[str]] | None = None,
    prefixes: Mapping[str, str] | None = None,
    explain: bool = False,
    revised: bool = False,
) -> Format:
    """A format of text; the options are those of ``open_sink``."""
    several = columns is not None and len(columns) > 1
    match format:
        case "jsonl":
            return JsonLines(explain)
        case "json":
            return ResultsJson(variables, named=several)
        case "csv":
            return ResultsCsv(variables, named=several, revised=revised)
        case "table":
            return PlainTable(variables, prefixes or {}, revised=revised)
        case _:
            return Trig(explained if explain else None)


def _table_sink(
    format: str, target: str | os.PathLike[str] | IO[str], columns: Mapping[str, Sequence[str]] | None
) -> Sink:
    from etalis_py.streams.write_tables import Database, TableFile  # takes a while to import

    if not isinstance(target, (str, os.PathLike)):
        raise SinkError(f"{format} is written to a file that has a name")
    if format != "sqlite":
        return TableFile(format, target, columns)
    if os.fspath(target) == "-":
        raise SinkError("an SQLite database is a file", target="-", hint="as --sink matches.sqlite")
    return Database(target, columns)
