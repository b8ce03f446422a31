"""What may be given where events are wanted: it is recognised and opened, or refused with what to give instead.

    path, address, frame, dicts …  ──▶ Stream
    several of these, by name      ──▶ one Stream, merged by time
    list or iterator of events     ──▶ as it is
    anything else                  ──▶ TypeError

``run``, ``Engine.push_all`` and ``Engine.push`` come here.  A list of events costs a look at the first.
"""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from types import GeneratorType
from typing import TYPE_CHECKING, Any, cast

from etalis_rules.terms import iri_value

from etalis_py.connectors.registry import is_source, open_source, other_sources
from etalis_py.events import Event
from etalis_py.events.checking import named_stream
from etalis_py.events.errors import warn_caller
from etalis_py.kernel.batch import Columns, InColumns, Records
from etalis_py.streams import Punctuation, Stream, StreamError, merge, read_stream
from etalis_py.streams.drafting import UNNAMED, Naming, named_rows, of_file, of_frame, of_records
from etalis_py.streams.lake_tables import is_lake_table, lake_table
from etalis_py.streams.objects import is_object
from etalis_py.streams.options import StreamOptions
from etalis_py.streams.records import is_record
from etalis_py.streams.refusals import ITEMS, MAPPED, check_complete, is_column, refusal, refusal_of_items, shown
from etalis_py.streams.sockets import is_socket
from etalis_py.streams.unread import Unread

if TYPE_CHECKING:
    import pyarrow as pa

_QUERY = re.compile(r"\b(?:SELECT|ASK|CONSTRUCT|DESCRIBE|REGISTER)\b.*\{", re.IGNORECASE | re.DOTALL)


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
            raise TypeError(f"{MAPPED}, not for a stream that is open: read_stream(…, mapping=…)")
        return given
    if naming and not drafts:
        check_complete(naming)
    reading: StreamOptions = {"mapping": mapping, "in_order": in_order, "prefixes": prefixes, "name": name}
    if isinstance(given, (str, os.PathLike)):
        return _of_source(given, reading, naming if drafts or naming else None, revise)
    kind = type(given)
    if not is_column(kind) and (hasattr(kind, "__arrow_c_stream__") or hasattr(kind, "read")):
        if mapping is None and (drafts or naming) and hasattr(kind, "__arrow_c_stream__"):
            given, reading["mapping"] = of_frame(given, naming)
        elif naming:
            raise TypeError(
                "columns are named for the path of a file, not for an open one: give its path, or its rows, as "
                "csv.DictReader(file), or mapping=…"
            )
        return read_stream(given, **reading)
    alone = isinstance(given, (Event, bytes, bytearray, type)) or is_record(given) or is_column(kind)
    if alone or not isinstance(given, Iterable):
        raise TypeError(refusal(given))
    given = named_rows(given)
    if not isinstance(given, Collection):
        _tell_if_used_up(given)
        if naming:
            given, reading["mapping"] = of_records(given, naming)
            mapping = reading["mapping"] or naming
        if mapping is not None:
            return read_stream(given, **reading)
        return Unread(iter(given), reading if drafts else None)
    first = next(iter(given), None)
    if not len(given) or (isinstance(first, ITEMS) and mapping is None and not naming):
        return given
    if is_record(first):
        if mapping is None and (drafts or naming):
            given, reading["mapping"] = of_records(given, naming)
        return read_stream(given, **reading)
    raise TypeError(refusal_of_items(first, mapping or naming or None))


def _tell_if_used_up(given: Iterable[Any]) -> None:
    """Warn of a generator that has ended: it gives nothing, which no caller wants."""
    if isinstance(given, GeneratorType) and given.gi_frame is None:
        name = given.__name__
        again = (
            "make a list of it first" if name.startswith("<") else f"call {name}(…) again, or make a list of it first"
        )
        warn_caller(f"the generator {name} is used up already, so there is no event: {again}")


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
    table = hasattr(type(given), "__arrow_c_stream__") and not is_column(type(given))
    return table or isinstance(given, os.PathLike)


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
            raise StreamError(f"a container has graphs, and {MAPPED}", source=source, hint="leave the mapping out")
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
