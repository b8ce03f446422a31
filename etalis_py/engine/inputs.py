"""What may be given where events are wanted: it is recognised and opened, or refused with what to give instead.

    path, address, frame, dicts …  ──▶ Stream
    several of these, by name      ──▶ one Stream, merged by time
    list or iterator of events     ──▶ as it is
    anything else                  ──▶ TypeError

``run``, ``Engine.push_all`` and ``Engine.push`` come here.  A list of events costs a look at the first.
"""

from __future__ import annotations

import csv
import os
import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, cast

from etalis_rules.terms import iri_value

from etalis_py.connectors.registry import is_source, open_source, other_sources
from etalis_py.events import Event
from etalis_py.events.checking import named_stream
from etalis_py.events.clock import ClockRender
from etalis_py.kernel.batch import Columns, InColumns, Records
from etalis_py.streams import Burst, Idle, Punctuation, Stream, StreamError, merge, read_stream
from etalis_py.streams.drafting import UNNAMED, Naming, named_rows, of_file, of_frame, of_records
from etalis_py.streams.lake_tables import is_lake_table, lake_table
from etalis_py.streams.objects import is_object
from etalis_py.streams.options import StreamOptions
from etalis_py.streams.records import Untyped, as_dict, how_to_read, is_record
from etalis_py.streams.sockets import is_socket

if TYPE_CHECKING:
    import pyarrow as pa

_SIGNALS = (Punctuation, Idle, Burst)
_ITEMS = (Event, *_SIGNALS)
_QUERY = re.compile(r"\b(?:SELECT|ASK|CONSTRUCT|DESCRIBE|REGISTER)\b.*\{", re.IGNORECASE | re.DOTALL)
_WANTED = (
    "give a list of event(':a :price 3', 5), the path or address of a stream, a table or frame, or a list of dicts, "
    "these with time=… and subject=…, or mapping=…; several by name, as {'clicks': clicks, 'buys': buys}"
)
_MAPPED = "a mapping is for tables, frames, dicts, CSV, JSON lines, Parquet and Arrow"


def opened(
    given: Any,
    mapping: Any = None,
    naming: Naming = UNNAMED,
    *,
    drafts: bool = True,
    prefixes: Mapping[str, str] | None = None,
    in_order: bool = True,
    revise: bool = False,
    name: str = "",
) -> Stream | Iterable[Any]:
    """What was given, as a stream or as events.

    Rows are read by the ``mapping``, or else by the columns that are named and, if there may be ``drafts``, by a draft.
    ``in_order``: what is complete is put in order of time.  ``revise``: events may be withdrawn.  ``prefixes`` are
    known in mappings and in Turtle.  ``name`` is the IRI of the stream.
    """
    if _are_streams(given):
        streams = (
            opened(one, own, naming, name=iri, drafts=drafts, prefixes=prefixes, in_order=in_order, revise=revise)
            for iri, one, own in _by_name(given, mapping)
        )
        return merge(cast(list[Stream], list(streams)))
    if isinstance(given, Stream):
        if mapping is not None or naming:
            raise TypeError(f"{_MAPPED}, not for a stream that is open: read_stream(…, mapping=…)")
        return given
    if naming and not drafts:
        check_complete(naming)
    reading: StreamOptions = {"mapping": mapping, "in_order": in_order, "prefixes": prefixes, "name": name}
    if isinstance(given, (str, os.PathLike)):
        return _of_source(given, reading, naming if drafts or naming else None, revise)
    kind = type(given)
    if not _is_column(kind) and (hasattr(kind, "__arrow_c_stream__") or hasattr(kind, "read")):
        if mapping is None and (drafts or naming) and hasattr(kind, "__arrow_c_stream__"):
            given, reading["mapping"] = of_frame(given, naming)
        elif naming:
            raise TypeError(
                "columns are named for the path of a file, not for an open one: give its path, or its rows, as "
                "csv.DictReader(file), or mapping=…"
            )
        return read_stream(given, **reading)
    alone = isinstance(given, (Event, bytes, bytearray, type)) or is_record(given) or _is_column(kind)
    if alone or not isinstance(given, Iterable):
        raise TypeError(_refusal(given))
    given = named_rows(given)
    if not isinstance(given, Collection):
        if naming:
            given, reading["mapping"] = of_records(given, naming)
            mapping = reading["mapping"] or naming
        if mapping is not None:
            return read_stream(given, **reading)
        return Unread(iter(given), reading if drafts else None)
    first = next(iter(given), None)
    if not len(given) or (isinstance(first, _ITEMS) and mapping is None and not naming):
        return given
    if is_record(first):
        if mapping is None and (drafts or naming):
            given, reading["mapping"] = of_records(given, naming)
        return read_stream(given, **reading)
    raise TypeError(_refusal_of_items(first, mapping or naming or None))


def _by_name(given: Mapping[Any, Any], mapping: Any) -> Iterator[tuple[str, Any, Any]]:
    """The IRI of each of several streams, what was given for it, and its mapping: its own, or the one for all."""
    mappings = mapping if isinstance(mapping, Mapping) and mapping.keys() <= given.keys() else None
    for name, one in given.items():
        if not isinstance(name, str) or not name or not (isinstance(one, str) or _has_rows(one)):
            raise TypeError(
                f"{name!r}: {shown(one)}: a dict of streams has tables, paths and lists of rows by the names of their "
                "streams"
            )
        yield iri_value(named_stream(name)), one, mapping if mappings is None else mappings.get(name)


def _are_streams(given: Any) -> bool:
    """Whether it is a dict of tables, paths or lists of rows by the names of their streams, and not a record."""
    if not isinstance(given, Mapping) or not given:
        return False
    values = given.values()
    return any(map(_is_table, values)) or all(
        os.path.exists(one) if isinstance(one, str) else _has_rows(one) for one in values
    )


def _has_rows(given: Any) -> bool:
    """Whether it is a table, a path or a list of rows."""
    rows = isinstance(given, (list, tuple)) and bool(given) and is_record(given[0])
    return rows or _is_table(given)


def _is_table(given: Any) -> bool:
    """Whether it is a table or a path, which no record has for a value."""
    table = hasattr(type(given), "__arrow_c_stream__") and not _is_column(type(given))
    return table or isinstance(given, os.PathLike)


def _is_column(kind: type) -> bool:
    """Whether it is a class of arrays: of NumPy, Arrow, a series of pandas or polars."""
    array = hasattr(kind, "__arrow_c_array__") and not hasattr(kind, "schema")
    return array or any(hasattr(kind, name) for name in ("dtype", "to_frame", "num_chunks"))


def _of_source(given: str | os.PathLike[str], reading: StreamOptions, naming: Naming | None, revise: bool) -> Stream:
    """A path, a pattern, or an address; without a ``naming`` no mapping is drafted."""
    source = os.fspath(given)
    if not isinstance(source, str):
        raise TypeError(f"a path is a text or a Path, not {source!r}")
    if _QUERY.search(source):
        raise TypeError("expected a stream, found a query; the query comes first: run(query, stream)")
    if not source.strip() or (re.search(r"\s", source) and not os.path.exists(source) and "*" not in source):
        raise TypeError(
            f"{reprlib.repr(source)} is no file: a stream is given by the name of its file; statements become an event "
            "by event(':a :price 3', 5), and the text of a file is read by read_stream(io.BytesIO(text.encode()))"
        )
    if source.startswith(("http://", "https://")):
        if reading.get("mapping") is not None or naming:
            raise StreamError(f"a container has graphs, and {_MAPPED}", source=source, hint="leave the mapping out")
        from etalis_py.containers.follow_container import container_stream  # takes a while to import

        return container_stream(source, revise=revise)
    if naming and reading.get("mapping") is None and _is_live(source):
        reading["mapping"] = naming.undrafted(source)
    if source.startswith("kafka://"):
        from etalis_py.streams.kafka import read_kafka  # takes a while to import

        return read_kafka(source, **reading)
    if is_source(source):
        from etalis_py.connectors.reading import connect  # takes a while to import

        reading.pop("in_order", None)
        return connect(open_source(source), source, **reading)
    if is_lake_table(source):
        table = lake_table(source)
        if reading.get("mapping") is None and naming is not None:
            table, reading["mapping"] = of_frame(table, naming)
        return read_stream(table, **reading)
    if "://" in source and not (is_socket(source) or is_object(source)):
        raise StreamError(
            "this kind of address is not known",
            source=source,
            hint=other_sources(source),
        )
    if reading.get("mapping") is None and naming is not None and not is_socket(source):
        reading["mapping"] = of_file(source, naming)
    return read_stream(source, **reading)


def _is_live(source: str) -> bool:
    """Whether its rows have yet to come."""
    return source.startswith("kafka://") or is_socket(source) or is_source(source)


class Unread:
    """The items of an iterator that nobody has touched yet: events, or, if ``reading`` is given, records to be drafted.

    The first item is looked at when it comes, the others of events cost nothing.  ``show`` is told how records spell
    their times.
    """

    source = "an iterator"

    def __init__(self, items: Iterator[Any], reading: StreamOptions | None) -> None:
        self._items, self._reading = items, reading
        self.show: Callable[[Callable[[int], int | str]], None] = lambda render: None

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self._parts())

    def _parts(self) -> Iterator[Iterable[Any]]:
        for first in self._items:
            if self._reading is not None and is_record(first) and not isinstance(first, _ITEMS):
                yield self._records(chain((first,), self._items), self._reading)
                return
            if not isinstance(first, _ITEMS):
                raise TypeError(_refusal_of_items(first, None))
            yield (first,)
            break
        yield self._items

    def _records(self, records: Iterator[Any], reading: StreamOptions) -> Stream:
        untyped = isinstance(self._items, csv.DictReader)
        given, mapping = of_records(Untyped(records) if untyped else records, UNNAMED)
        reading["mapping"] = mapping
        stream = read_stream(given, **reading)
        self.show(ClockRender(lambda: stream.clock))
        return stream


def check_complete(naming: Naming) -> None:
    """Raise TypeError if a column is not named, and nobody drafts it."""
    if not naming.time or naming.subject == "":
        raise TypeError("name both columns, as time='at', subject='sensor'; subject=None makes a node of each row")


def check_items(items: Iterable[Any]) -> None:
    """Raise TypeError for the first of these items that is no event."""
    for number, item in enumerate(items, 1):
        if isinstance(item, _SIGNALS):
            raise TypeError(
                f"item {number} of the events is a {type(item).__name__}: tell the engine with advance(time)"
            )
        if not isinstance(item, Event):
            raise TypeError(f"item {number} of the events is none: {_refusal_of_items(item, None)}")


# --- what to give instead ---


def shown(given: object) -> str:
    """What was given, in a few characters on one line."""
    return f"{' '.join(reprlib.repr(given).split())} ({type(given).__name__})"


def _refusal(given: Any) -> str:
    """What to give instead of something that is no stream."""
    if isinstance(given, Event):
        return f"{shown(given)} is a single event, not a stream: put it into a list, [event(…)]"
    if isinstance(given, (bytes, bytearray)):
        return "bytes are not read as they are; give them as a file: read_stream(io.BytesIO(data), format=…)"
    if is_record(given) and isinstance(given, dict):
        if given and all(isinstance(values, (list, tuple)) or _is_column(type(values)) for values in given.values()):
            return (
                "this is a dict, and its values are lists, so it has columns: make a table of it, "
                "pyarrow.table(columns) or pandas.DataFrame(columns), and give it in place of the dict"
            )
        return f"a single dict is one record: put it into a list, [record], with {how_to_read([given])}"
    if _is_column(type(given)):
        return f"{type(given).__name__} is no table: make a frame of it, with names for its columns, and give mapping=…"
    if type(given).__name__ == "LazyFrame":
        return "a LazyFrame of polars has no rows yet: give frame.collect(), with time=… and subject=…, or mapping=…"
    if hasattr(given, "queries") and hasattr(given, "explain"):
        return "expected a stream, found a program; the program comes first: run(program, stream)"
    return f"expected a stream of events, found {shown(given)}: {_WANTED}"


def _refusal_of_items(item: Any, mapping: Any) -> str:
    """What to give instead of a list or iterator of such items."""
    if isinstance(item, _ITEMS):
        return f"{_MAPPED}; events are taken as they are: leave the mapping out"
    if isinstance(item, str):
        return (
            f"{reprlib.repr(item)} is a text, not an event: event(':a :price 3', 5) makes one of statements; a file is "
            "given by its name alone, several by a pattern or as merge([read_stream(…), read_stream(…)])"
        )
    if is_record(item):
        return f"{shown(item)} is a record, not an event: give records with {how_to_read([as_dict(item)])}"
    if isinstance(item, Stream):
        return "several streams are merged by time: from etalis_py.streams import merge; merge([…])"
    if hasattr(type(item), "__arrow_c_stream__") and not _is_column(type(item)):
        return "give one table alone, several by the names of their streams: {'clicks': clicks, 'buys': buys}"
    if isinstance(item, (tuple, list)):
        return (
            f"{shown(item)} is no event: give event(':a :price 3', 5), or rows with names and a mapping, "
            "[dict(zip(names, row)) for row in rows]"
        )
    if mapping is not None:
        return f"{shown(item)} has no values by name: a mapping is for rows with names, such as dicts"
    return f"{shown(item)} is no event: {_WANTED}"


# --- whole streams at once ---


def parts_of(stream: Stream, *, as_records: bool = False) -> Iterator[list[Event] | InColumns | Punctuation]:
    """What a stream with an end has, many events at a time; ``as_records``: tables of records stay as they are."""
    if stream.idle is not None:
        stream.close()
        raise TypeError(f"{stream.source} is a live stream, which need not end: run(query, stream) gives its matches")
    for chunk in stream.chunks(as_records=as_records):
        if not isinstance(chunk, list):
            if len(chunk):
                yield in_columns(chunk)
            continue
        for events, items in groupby(chunk, key=lambda item: isinstance(item, Event)):
            if events:
                yield list(items)
            else:
                yield from (item for item in items if isinstance(item, Punctuation))


def in_columns(batch: pa.RecordBatch) -> InColumns:
    """A batch of a stream, in the flat form or of records."""
    from etalis_py.streams.columns.wide import is_wide, objects_of  # loads Arrow, which is loaded

    if not is_wide(batch):
        return columns_of(batch)
    end, start = (batch.column(name).to_numpy() for name in ("end", "start"))
    stream, graph = (batch.column(name) if name in batch.schema.names else None for name in ("stream", "graph"))
    return Records(end, start, batch.column("s"), objects_of(batch), stream, graph)


def columns_of(batch: pa.RecordBatch) -> Columns:
    """A batch in the flat form as columns of events."""
    times = (batch.column(name).to_numpy() for name in ("end", "start"))
    there = batch.schema.names
    more = (batch.column(name) if name in there else None for name in ("stream", "event", "graph"))
    return Columns(*times, *(batch.column(name) for name in "spo"), *more)
