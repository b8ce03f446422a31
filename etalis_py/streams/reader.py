"""``read_stream``: any source, any format → one stream of timed events; ``merge``: several in time order."""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Unpack

from etalis_rules.terms import iri

from etalis_py.events.errors import StreamError
from etalis_py.numba_cache import can_compile, compiled, ready
from etalis_py.streams.blanks import DocumentScope
from etalis_py.streams.elements import (
    Counters,
    Item,
    StreamContext,
    in_lists,
)
from etalis_py.streams.formats import (
    json_reading,
    live_items,
    looks_like_log,
    mapping_of,
    sniffed,
    source_items,
    table_chunks,
)
from etalis_py.streams.json_arrays import is_array
from etalis_py.streams.merging import LiveMerge, in_turn
from etalis_py.streams.objects import is_object
from etalis_py.streams.options import ReadOptions, StreamOptions
from etalis_py.streams.origin import Origin, origin_of
from etalis_py.streams.positions import Order
from etalis_py.streams.sockets import is_socket
from etalis_py.streams.sources import (
    OpenedInput,
    Patience,
    elapsed,
    expand,
    format_of,
    now,
)
from etalis_py.streams.stream import LARGE, LOOKED_AT, Merged, Stream, items_of
from etalis_py.streams.timing import Arrival, TimeReader
from etalis_py.values.keywords import check_keywords

if TYPE_CHECKING:
    from etalis_py.streams.columns.merge_in_order import Chunk

MAX_OPEN_FILES = 400


def read_stream(source: str | os.PathLike[str] | IO[bytes] | Any, **options: Unpack[StreamOptions]) -> Stream:
    """Read a stream; ``options`` are those of ``streams.options.Options``, each with a default that suits most sources.

    ``source``: a path, a pattern (its files are merged in time order), ``-`` for standard input, ``tcp://host:port``
    for a connection, a binary file (gzip is unpacked), a frame (anything with ``__arrow_c_stream__``, such as tables of
    pyarrow, pandas and polars), or dicts and other rows with names (``streams.records``), in a list or one by one.
    """
    check_keywords("read_stream", options, StreamOptions.__annotations__)
    return open_stream(source, ReadOptions(**options))


def open_stream(source: str | os.PathLike[str] | IO[bytes] | Any, options: ReadOptions) -> Stream:
    """The same, with the options as one value."""
    if hasattr(source, "__arrow_c_stream__"):
        return _read_frame(source, options)
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if is_socket(path):
            return _read_one(path, path, replace(options, idle=1.0 if options.idle is None else options.idle))
        if "://" in path and not is_object(path):
            raise StreamError(
                "this kind of source is not a file",
                source=path,
                hint="known here: paths, patterns, - and tcp://host:port",
            )
        paths = expand(path)
        if len(paths) > MAX_OPEN_FILES:
            raise StreamError(
                f"the pattern matches {len(paths)} files, more than {MAX_OPEN_FILES}",
                source=path,
                hint="they are read side by side to merge them by time; join them into fewer files",
            )
        if len(paths) > 1:
            return merge([_read_one(one, Path(one).name, options) for one in paths], name=options.name, source=path)
        return _read_one(paths[0], Path(paths[0]).name, options)
    if hasattr(source, "__iter__") and not hasattr(source, "read"):
        return _read_records(source, options)
    if not hasattr(source, "read"):
        raise TypeError(
            "a stream is read from a path, an open file in bytes, a table or frame, or dicts, not from "
            f"{source!r} ({type(source).__name__})"
        )
    return _read_one(source, str(getattr(source, "name", "-")), options)


def context_of(options: ReadOptions, source: str) -> StreamContext:
    """The context that the readers of one source share."""
    name = options.name

    def report(error: StreamError) -> None:
        error = error.at(source, 0)
        if options.on_error == "stop":
            raise error
        with context.tracker.lock:
            if context.tracker.is_repeated():
                return
            if context.dead_letters is not None:
                context.dead_letters.refused(error)
            context.counters.errors += 1

    context = StreamContext(
        stream=name if not name or name.startswith("<") else iri(name),
        timing=options.timing,
        times=TimeReader(options.time_unit, options.clock),
        arrival=arrival_of(options),
        counters=Counters(),
        report=report,
        dead_letters=options.dead_letters,
        close_on_message=options.close_on_message,
        max_pending=options.max_pending,
        patience=None if options.idle is None else Patience(options.idle),
        source=source,
    )
    return context


def arrival_of(options: ReadOptions) -> Arrival:
    """The times of arrival, by the wall clock unless another one is given."""
    return Arrival(options.now, elapsed) if options.now is now else Arrival(options.now)


def _read_frame(frame: Any, options: ReadOptions) -> Stream:
    """A frame as a stream: in columns, however it is read."""
    from etalis_py.streams.columns.frames import frame_chunks, open_frame  # takes a while to import

    context = context_of(options, "the table")
    mapping = mapping_of(options, context)
    reader = open_frame(frame)

    def chunks() -> Iterator[Chunk]:
        try:
            yield from frame_chunks(reader.schema, reader, mapping, context)
        except StreamError as error:
            raise error.at("the table", 0) from None

    return _in_columns(chunks, "the table", context, options, reader.close, Origin("given", "the table"))


def _read_records(records: Iterable[Any], options: ReadOptions) -> Stream:
    """Rows with names as a stream; those of a list are put in order if that is wanted."""
    from etalis_py.streams.records import record_events

    context = context_of(options, "the records")
    reading = json_reading(options, context)

    def items() -> Iterator[Item]:
        try:
            yield from record_events(records, context, reading)
        except StreamError as error:
            raise error.at("the records", 0) from None

    stream = Stream(
        items(),
        name=context.stream,
        source="the records",
        contexts=[context],
        close=lambda: None,
        origin=Origin("given", "the records"),
    )
    return stream.complete(options) if isinstance(records, Sequence) else stream


def _in_columns(
    chunks: Callable[[], Iterator[Chunk]],
    source: str,
    context: StreamContext,
    options: ReadOptions,
    close: Callable[[], None],
    origin: Origin,
) -> Stream:
    """A stream that only has a column reader."""
    stream = Stream(
        items_of(chunks),
        name=context.stream,
        source=source,
        contexts=[context],
        close=close,
        bulk=chunks,
        size=LARGE,
        origin=origin,
    )
    return stream.complete(options)


def _read_one(source: str | IO[bytes], document: str, options: ReadOptions) -> Stream:
    opened = OpenedInput(source, follow=options.follow)
    try:
        context = context_of(options, opened.name)
        live = options.live
        format = options.format or format_of(opened.name)
        if not format and not live:
            format = sniffed(opened, options.mapping is not None)
        if format in ("parquet", "arrow"):
            return _file(opened, format, context, options)
        if live:
            mapping_of(options, context)  # its reader comes with the first bytes, but a run asks for the ties at once
        items = (live_items if live else source_items)(opened, document, context, options)
    except StreamError as error:
        opened.close()
        raise error.at(opened.name, 0) from None

    def close() -> None:
        if options.follow is not None:
            options.follow.stop()
        guarded.close()
        opened.close()

    guarded = _guarded(items, opened)
    bulk = None if live else _bulk(opened, document, context, options)
    size = os.path.getsize(opened.path) if opened.path else 0
    if size >= LOOKED_AT and bulk is not None and format != "csv" and not (ready() if size >= LARGE else compiled()):
        size = LOOKED_AT - 1  # its column reader is not compiled yet
    items_of_bulk = None if bulk is None or size < LARGE else items_of(lambda: _guarded(bulk(), opened))
    stream = Stream(
        items_of_bulk or guarded,
        name=context.stream,
        source=opened.name,
        contexts=[context],
        close=close,
        bulk=None if bulk is None else lambda: _guarded(bulk(), opened),
        size=size,
        patience=() if context.patience is None else (context.patience,),
        origin=origin_of(opened, format, options),
    )
    return stream.complete(options) if opened.is_complete and not live else stream


def _file(source: OpenedInput, format: str, context: StreamContext, options: ReadOptions) -> Stream:
    """A Parquet or Arrow file."""
    mapping = mapping_of(options, context)
    origin = origin_of(source, format, options)

    def chunks() -> Iterator[Chunk]:
        yield from _guarded(table_chunks(source, format, mapping, context), source)

    return _in_columns(chunks, source.name, context, options, source.close, origin)


def _bulk(
    source: OpenedInput, document: str, context: StreamContext, options: ReadOptions
) -> Callable[[], Iterator[Chunk]] | None:
    """The column reader of a source, if there is one."""
    format = options.format or format_of(source.name)
    mapping = mapping_of(options, context)

    def whole() -> Iterator[Chunk]:
        """What no column reader can read; nobody reads it for others."""
        if not context.reads_ahead:
            yield from in_lists(source_items(source, document, context, options))

    if format == "csv" and mapping is not None:

        def chunks() -> Iterator[Chunk]:
            from etalis_py.streams.columns.delimited import csv_chunks  # takes a while to import

            yield from csv_chunks(source, mapping, context, ".tsv" in source.name.lower())

        return chunks
    if format == "jsonl" and options.context is None and not context.close_on_message and can_compile():

        def objects() -> Iterator[Chunk]:
            head = source.peek(1)  # more would split its first block
            if is_array(source.peek(len(BOM_UTF8) + 1) if BOM_UTF8.startswith(head) else head):
                yield from whole()
                return
            from etalis_py.streams.columns.json_lines import json_chunks  # takes a while to import

            yield from json_chunks(source, context, json_reading(options, context))

        return objects
    usual = options.messages is not True and options.times == "near" and options.at is None
    if format == "nq" and usual and context.timing.all and context.timing.distinct and can_compile():

        def quads() -> Iterator[Chunk]:
            if looks_like_log(source.peek()):
                yield from whole()
                return
            from etalis_py.streams.columns.nquads import nquads_chunks  # takes a while to import

            scope = DocumentScope(context.stream, document)
            yield from nquads_chunks(source, scope, context, options.messages)

        return quads
    return None


def _guarded(items: Iterator[Any], source: OpenedInput) -> Any:
    """The items; errors name the source, and the source is closed at the end, whatever it was."""
    try:
        yield from items
    except StreamError as error:
        raise error.at(source.name, 0) from None
    finally:
        source.close()


def merge(streams: Sequence[Stream], *, name: str = "", source: str = "") -> Stream:
    """Several streams as one, in the order of their ends; at equal times in the order of the streams (stable).

    A punctuation is passed on once every stream has come past it.  A silent live stream does not hold the others up:
    see ``merging.LiveMerge``.
    """
    contexts = [context for stream in streams for context in stream._contexts]
    order = Order()
    silences = [stream.idle for stream in streams if stream.idle is not None]
    if silences:
        patience = Patience(max(silences))
        live = LiveMerge(streams, patience, order)
        return Stream(
            live.items(),
            name=name,
            source=source,
            contexts=contexts,
            close=live.close,
            patience=(patience,),
            origin=Merged(streams, order, False, live.drain),
        )

    for context in contexts:
        context.among = len(contexts)

    def close() -> None:
        for stream in streams:
            stream.close()

    def bulk() -> Iterator[Chunk]:
        from etalis_py.streams.columns.merge_streams import AT_ONCE, merge_streams  # takes a while to import

        for one in chain(streams, *(stream.leaves for stream in streams)):
            if compiled() or one.origin is None or one.origin.format == "csv":  # others need loops that are compiled
                one.read_in_columns()
        return merge_streams((stream.chunks(size=AT_ONCE) for stream in streams), order)

    items = in_turn((iter(stream) for stream in streams), order)
    origin = Merged(streams, order, True)
    return Stream(items, name=name, source=source, contexts=contexts, close=close, bulk=bulk, origin=origin)
