"""``open_sink``: matches out, in one of the formats, to standard output, a file or a folder.

| format | a SELECT match | a CONSTRUCT match |
|---|---|---|
| `jsonl` | one object a line, as SPARQL results JSON binds terms | one object a line, with N-Triples |
| `json` | SPARQL 1.1 results JSON, one document | refused |
| `csv` | SPARQL 1.1 results CSV | refused |
| `table` | a table for people, live on a terminal | its triples in one cell |
| `trig` | a named graph that holds the solution | a named graph, timed as the reader expects |

Times are written as the match has them, which is as the stream spells them.  In `json` and `csv` they are two more
columns.  The answer of an ASK query is a column `boolean`, in `json` the document.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any

from etalis_py.streams.errors import SinkError
from etalis_py.streams.outputs import open_output
from etalis_py.streams.sinks import Sink, TextSink
from etalis_py.streams.write_rows import JsonLines, ResultsCsv, ResultsJson
from etalis_py.streams.write_table import LiveTable, PlainTable, wants_live
from etalis_py.streams.write_trig import Constituent, Trig, explained

SUFFIXES = {"jsonl": "jsonl", "json": "srj", "csv": "csv", "table": "txt", "trig": "trig"}


def open_sink(
    format: str = "jsonl",
    target: str | os.PathLike[str] | IO[str] = "-",
    *,
    variables: Sequence[str] | None = None,
    prefixes: Mapping[str, str] | None = None,
    explain: bool = False,
    constituents: Callable[[Any], Iterable[Constituent]] | None = None,
    live: bool = False,
) -> Sink:
    """A sink for matches.

    ``target``: ``-`` for standard output, a file (it appears when it is complete), or a folder (a name ending
    with ``/``) of rolling files.  ``variables``: the columns of `csv`, `json` and `table`, in order; without them
    the first match decides.  ``prefixes``: to shorten IRIs in tables.  ``explain``: with `jsonl` why a match
    holds, with `trig` links to the events it is made of (or those that ``constituents`` gives).  ``live``: write
    a file in place, so that others can follow it, rather than at once at the end.
    """
    if format not in SUFFIXES:
        raise SinkError(f"unknown output format {format!r}", hint=f"known formats: {', '.join(SUFFIXES)}")
    if explain and format not in ("jsonl", "trig"):
        raise SinkError(f"explanations have no place in {format}", hint="write them as jsonl or trig")
    if format == "table" and wants_live(target):
        return LiveTable(variables, prefixes or {})
    output = open_output(target, SUFFIXES[format], live=live)
    match format:
        case "jsonl":
            return TextSink(JsonLines(explain), output)
        case "json":
            return TextSink(ResultsJson(variables), output)
        case "csv":
            return TextSink(ResultsCsv(variables), output)
        case "table":
            return TextSink(PlainTable(variables, prefixes or {}), output)
        case _:
            return TextSink(Trig(constituents or (explained if explain else None)), output)
