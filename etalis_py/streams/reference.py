"""Tables without times → triples: reference tables, which are background beside a stream.

A row is about its key, if one column has a different name in every row, and the key is a property of the row as well:
so events find the row whether they are about the key or mention it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from etalis_py.events import Event, Retraction, Triple
from etalis_py.events.errors import StreamError
from etalis_py.streams.csv_mapping import read_mapping
from etalis_py.streams.draft import ROW, Samples, draft, draft_of_things, subject_in_words
from etalis_py.streams.drafting import Naming, named_rows, naming_of, of_file, of_frame, of_records
from etalis_py.streams.postgres_table import is_postgres, name_of, rows_of
from etalis_py.streams.reader import read_stream
from etalis_py.streams.records import as_dict, is_record
from etalis_py.streams.samples import first_object, needs_mapping
from etalis_py.streams.sources import MAPPED, format_of
from etalis_py.streams.stream import Stream
from etalis_py.streams.templates import HOLE, text_template
from etalis_py.streams.updates import FIELDS, TimedUpdate, Updates, updates_of

_AT = text_template("0")
"""The time of all rows: it is not seen, but names their blank nodes, which have to be the same in every run."""

_LARGE = 1 << 20


class _Key(Naming):
    """The column that says what a row of a table without times is about."""

    def drafted(self, samples: Samples) -> dict[str, Any]:
        return draft_of_things(samples.cells, self.subject)

    def told(self, made: dict[str, Any]) -> str:
        return "" if self.subject != "" else subject_in_words(made)


class _Changes(Naming):
    """The columns of updates: without a subject that comes again, an update would replace nothing."""

    def drafted(self, samples: Samples) -> dict[str, Any]:
        made = super().drafted(samples)
        if self.subject != "" or made["triple"][0]["subject"] != ROW:
            return made
        times = HOLE.findall(str(made.get("time", "")))
        things = {name: cells for name, cells in samples.cells.items() if name not in times}
        subject = draft_of_things(things)["triple"][0]["subject"] if things else ROW
        if subject == ROW:
            raise StreamError(
                "no column is known to say what a row is about, and an update replaces what its subject had",
                hint="name it: updates=table_updates(rows, time=…, subject=…)",
            )
        return draft(samples.cells, samples.moments, time=self.time, subject=HOLE.findall(subject)[0])


def reference_table(
    source: Any,
    *,
    subject: str | None = "",
    mapping: Any = None,
    notice: Callable[[str], None] | None = None,
    prefixes: Mapping[str, str] | None = None,
) -> list[Triple]:
    """The triples of a table, to be given as ``background``.

    A table is a file of CSV, JSON, Parquet or Arrow, a table of PostgreSQL by its address, a frame, a list of dicts, or
    a cursor of SQL.  ``subject`` is the column that says what a row is about, None if each row is a node of its own; a
    ``mapping`` has no time.  Without either, a mapping is drafted, and a warning (or ``notice``) says how.
    ``prefixes`` are known in the mapping, and the empty one begins names: for a query that declares its own, give
    ``compile(query).prefixes``.

    >>> reference_table([{"sku": "p1", "limit": 5}], subject="sku")[0]
    ('<http://example.org/p1>', '<http://example.org/sku>', '"p1"')
    """
    key = _Key("", naming_of("", subject, mapping).subject)
    with _read(source, key, mapping, notice, prefixes) as stream:
        return list(_triples(stream, large=_is_large(source) or None))


def table_updates(
    source: Any,
    *,
    time: str = "",
    subject: str | None = "",
    mapping: Any = None,
    notice: Callable[[str], None] | None = None,
    prefixes: Mapping[str, str] | None = None,
) -> Iterator[TimedUpdate]:
    """The rows of a table as updates of the background: a row replaces what its subject had in these columns.

    A row holds from the first instant after its ``time``; a column without a value stays as it was.  A table, and what
    is drafted of it, are as for ``run``, except that a row is no node of its own unless ``subject`` is None;
    ``prefixes`` as for ``reference_table``.
    """
    naming = _Changes(*naming_of(time, subject, mapping))
    with _read(source, naming, mapping, notice, prefixes) as stream:
        for number, item in enumerate(stream, 1):
            if isinstance(item, Retraction):
                yield TimedUpdate(item.end, (), tuple(item.triples), "", stream.source, number)
            elif isinstance(item, Event):
                yield TimedUpdate(item.end, tuple(item.triples), (), "", stream.source, number, replaces=True)


def _read(
    source: Any,
    naming: Naming,
    mapping: Any,
    notice: Callable[[str], None] | None,
    prefixes: Mapping[str, str] | None,
) -> Stream:
    """The rows of a table, by the mapping or else by one that is drafted."""
    drafts = mapping is None
    if isinstance(source, str) and is_postgres(source):
        rows: Any = rows_of(source)
        if drafts:
            rows, mapping = of_records(rows, naming, notice, name_of(source))
        source = rows
    elif isinstance(source, (str, os.PathLike)):
        if not is_table(source):
            hint = "tables are files of CSV, JSON, Parquet and Arrow"
            raise StreamError("this is no table", source=os.fspath(source), hint=hint)
        if drafts and (os.path.isfile(source) or naming):
            mapping = of_file(source, naming, notice)
    elif hasattr(source, "__arrow_c_stream__"):
        if drafts:
            source, mapping = of_frame(source, naming, notice)
    elif is_table(source):
        source = named_rows(source)
        if drafts:
            source, mapping = of_records(source, naming, notice)
    else:
        raise TypeError(f"a table is a file, a frame, a list of dicts or a cursor of SQL, not {source!r}")
    if isinstance(naming, _Key) and mapping is not None:
        mapping = _without_times(mapping, prefixes)
    return read_stream(source, mapping=mapping, in_order=notice or True, prefixes=prefixes)


def is_table(given: Any) -> bool:
    """Whether it is a table, not triples: rows with names, or a file of them."""
    if isinstance(given, (str, os.PathLike)):
        name = os.fspath(given)
        return isinstance(name, str) and (is_postgres(name) or format_of(name) in MAPPED or _has_plain_json(name))
    if hasattr(type(given), "__arrow_c_stream__") or getattr(given, "description", None):
        return True
    return isinstance(given, (list, tuple)) and bool(given) and is_record(given[0])


def _has_plain_json(name: str) -> bool:
    """Whether a file of JSON has plain objects: those of JSON-LD have keys that begin with @."""
    if not name.lower().removesuffix(".gz").endswith(".json") or not os.path.isfile(name):
        return False
    try:
        first = first_object(name)
    except StreamError:
        return False  # whoever reads it as JSON-LD says what is wrong
    return first is not None and not any(key.startswith("@") or ":" in key for key in first)


def _without_times(mapping: Any, prefixes: Mapping[str, str] | None) -> Any:
    read = read_mapping(mapping, prefixes)
    name = str(mapping) if isinstance(mapping, (str, Path)) else ""
    if read.ties:
        raise StreamError("a background has no order in time", source=name, hint="leave ties out of the mapping")
    if read.times:
        raise StreamError(
            "a background has no times",
            source=name,
            hint="leave time out of the mapping; a column of times is a property like the others",
        )
    return replace(read, times=(_AT,), time_format="")


def _is_large(source: Any) -> bool:
    """Whether a table is worth the time in which the readers of columns are loaded."""
    return isinstance(source, (str, os.PathLike)) and os.path.isfile(source) and os.path.getsize(source) >= _LARGE


def _triples(stream: Stream, *, large: bool | None) -> Iterator[Triple]:
    for chunk in stream.chunks(large=large):
        if isinstance(chunk, list):
            for item in chunk:
                if isinstance(item, Event):
                    yield from item.triples
        else:
            yield from zip(*(chunk.column(name).to_pylist() for name in "spo"), strict=True)


def with_tables(background: Any, prefixes: Callable[[], Mapping[str, str]] = dict) -> Any:
    """A background whose tables are triples; a list may have several sources, tables among them.

    ``prefixes`` makes those by which tables are read.
    """
    if isinstance(background, Iterator) and not is_table(background):  # a cursor of SQL is both
        background = list(background)
    if is_table(background):
        return reference_table(background, prefixes=prefixes())
    if isinstance(background, (list, tuple)) and not (background and isinstance(background[0], tuple)):
        return [reference_table(source, prefixes=prefixes()) if is_table(source) else source for source in background]
    return background


def updates_from(given: Updates, unit: str, prefixes: Mapping[str, str]) -> Iterator[TimedUpdate]:
    """The updates of a table, or those that are given as Turtle."""
    return table_updates(given, prefixes=prefixes) if _is_table_of_updates(given) else updates_of(given, unit)


def _is_table_of_updates(given: Any) -> bool:
    if isinstance(given, (str, os.PathLike)):
        return (
            os.path.isfile(given) and is_table(given) and needs_mapping(given) and not _says_turtle(first_object(given))
        )
    return is_table(given) and not (isinstance(given, (list, tuple)) and _says_turtle(as_dict(given[0])))


def _says_turtle(record: Any) -> bool:
    return record is not None and (bool({"add", "remove"} & set(record)) or set(record) <= set(FIELDS))


__all__ = ["is_table", "reference_table", "table_updates", "updates_from", "with_tables"]
