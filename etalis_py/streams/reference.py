"""Tables without times → triples: reference tables, which are background beside a stream.

A row is about its key, if one column has a different name in every row, and the key is a property of the row as well:
so events find the row whether they are about the key or mention it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from etalis_py.events import Event, Triple
from etalis_py.streams.csv_mapping import read_mapping
from etalis_py.streams.draft import Samples, draft_of_things, subject_in_words
from etalis_py.streams.drafting import Naming, named_rows, naming_of, of_file, of_frame, of_records
from etalis_py.streams.errors import StreamError
from etalis_py.streams.reader import read_stream
from etalis_py.streams.records import is_record
from etalis_py.streams.samples import first_object
from etalis_py.streams.sources import MAPPED, format_of
from etalis_py.streams.stream import Stream
from etalis_py.streams.templates import text_template

_AT = text_template("0")
"""The time of all rows: it is not seen, but names their blank nodes, which have to be the same in every run."""

_LARGE = 1 << 20


class _Key(Naming):
    """The column that says what a row of a table without times is about."""

    def drafted(self, samples: Samples) -> dict[str, Any]:
        return draft_of_things(samples.cells, self.subject)

    def told(self, made: dict[str, Any]) -> str:
        return "" if self.subject != "" else subject_in_words(made)


def reference_table(
    source: Any, *, subject: str | None = "", mapping: Any = None, notice: Callable[[str], None] | None = None
) -> list[Triple]:
    """The triples of a table, to be given as ``background``.

    A table is a file of CSV, JSON, Parquet or Arrow, a frame, a list of dicts, or a cursor of SQL.  ``subject`` is the
    column that says what a row is about, None if each row is a node of its own; a ``mapping`` has no time.  Without
    either, a mapping is drafted, and a warning (or ``notice``) says how.

    >>> reference_table([{"sku": "p1", "limit": 5}], subject="sku")[0]
    ('<http://example.org/p1>', '<http://example.org/sku>', '"p1"')
    """
    key = _Key("", naming_of("", subject, mapping).subject)
    with _opened(source, key, mapping, notice) as stream:
        return list(_triples(stream, large=_is_large(source) or None))


def _opened(source: Any, key: _Key, mapping: Any, notice: Callable[[str], None] | None) -> Stream:
    drafts = mapping is None
    if isinstance(source, (str, os.PathLike)):
        if not is_table(source):
            raise StreamError(
                "this is no table", source=os.fspath(source), hint="tables are CSV, JSON, Parquet and Arrow"
            )
        if drafts and (os.path.isfile(source) or key):
            mapping = of_file(source, key, notice)
    elif hasattr(source, "__arrow_c_stream__"):
        if drafts:
            source, mapping = of_frame(source, key, notice)
    elif is_table(source):
        source = named_rows(source)
        if drafts:
            source, mapping = of_records(source, key, notice)
    else:
        raise TypeError(f"a table is a file, a frame, a list of dicts or a cursor of SQL, not {source!r}")
    return read_stream(source, mapping=None if mapping is None else _without_times(mapping), in_order=False)


def is_table(given: Any) -> bool:
    """Whether it is a table, not triples: rows with names, or a file of them."""
    if isinstance(given, (str, os.PathLike)):
        name = os.fspath(given)
        return isinstance(name, str) and (format_of(name) in MAPPED or _has_plain_json(name))
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


def _without_times(mapping: Any) -> Any:
    read = read_mapping(mapping)
    if read.times:
        name = str(mapping) if isinstance(mapping, (str, Path)) else ""
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


def with_tables(background: Any) -> Any:
    """A background whose tables are triples; a list may have several sources, tables among them."""
    if is_table(background):
        return reference_table(background)
    if isinstance(background, (list, tuple)) and not (background and isinstance(background[0], tuple)):
        return [reference_table(source) if is_table(source) else source for source in background]
    if isinstance(background, Iterator):
        return _first_seen(background)
    return background


def _first_seen(items: Iterator[Any]) -> Iterable[Any]:
    """The items of an iterator, which may be records or triples."""
    every = list(items)
    return reference_table(every) if is_table(every) else every


__all__ = ["is_table", "reference_table", "with_tables"]
