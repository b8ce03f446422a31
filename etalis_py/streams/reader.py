"""``read_stream``: any source, any format → one stream of timed events; ``merge``: several in time order."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal

from etalis_rules.terms import iri

from etalis_py.streams.blanks import DocumentScope
from etalis_py.streams.clock import Clock, TimeError
from etalis_py.streams.csv_mapping import csv_events, read_mapping
from etalis_py.streams.dead_letters import DeadLetters
from etalis_py.streams.elements import (
    Context,
    Counters,
    Item,
    document_events,
    instant_events,
    log_events,
    message_events,
    run_events,
    whole_document_events,
)
from etalis_py.streams.errors import StreamError
from etalis_py.streams.jelly import jelly_frames
from etalis_py.streams.jsonl import jsonl_events
from etalis_py.streams.quads import MESSAGE_COMMENT, Quad, read_quads
from etalis_py.streams.sources import (
    FORMATS,
    Follow,
    Source,
    expand,
    format_of,
    line_blocks,
    now,
    sniff,
    with_ticks,
)
from etalis_py.streams.timing import (
    ARRIVAL,
    PUNCTUATE,
    Arrival,
    Idle,
    Punctuation,
    Span,
    TimeReader,
    Timing,
    predicate_iris,
)
from etalis_py.streams.turtle import message_rows, split_messages, turtle_quads

MAX_OPEN_FILES = 400


class Stream:
    """An iterator of ``Event``, ``Punctuation`` and (for live sources) ``Idle``; its clock; what it has counted.

    ``clock`` is known after the first timed element; before that it is the dateTime clock.
    """

    def __init__(
        self, items: Iterator[Item], *, name: str, source: str, contexts: Sequence[Context], close: Callable[[], None]
    ) -> None:
        self._items = items
        self._contexts = contexts
        self._close = close
        self.name = name
        self.source = source

    def __iter__(self) -> Iterator[Item]:
        return self._items

    def __next__(self) -> Item:
        return next(self._items)

    @property
    def clock(self) -> Clock:
        """How the stream spells its times; the dateTime clock where its parts differ."""
        clocks = {context.times.clock for context in self._contexts if context.times.clock}
        return clocks.pop() if len(clocks) == 1 else Clock("datetime")

    @property
    def counters(self) -> Counters:
        return sum((context.counters for context in self._contexts), Counters())

    def close(self) -> None:
        """Give back files and threads; counting and clock stay."""
        self._close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_stream(
    source: str | os.PathLike[str] | IO[bytes],
    *,
    name: str = "",
    format: str = "",
    time_predicate: str | Iterable[str] | None = None,
    start_predicate: str | Iterable[str] | None = None,
    end_predicate: str | Iterable[str] | None = None,
    time_unit: str = "s",
    clock: Clock | None = None,
    at: int | str | None = None,
    times: Literal["near", "anywhere"] = "near",
    messages: bool | None = None,
    close_on_message: bool = False,
    punctuation_predicate: str | Iterable[str] | None = None,
    mapping: str | Path | Mapping[str, Any] | None = None,
    on_error: Literal["stop", "skip"] = "stop",
    dead_letters: DeadLetters | None = None,
    idle: float | None = None,
    follow: Follow | None = None,
    max_pending: int = 1_000_000,
    now: Callable[[], int] = now,
) -> Stream:
    """Read a stream; every argument but the source has a default that fits most.

    ``source``: a path, a pattern (its files are merged in time order), ``-`` for standard input, or a binary file;
    gzip is unpacked.  ``name``: the IRI of the stream.  ``format``: one of nq, nt, trig, ttl, jsonl, csv, jelly;
    by default from the file name, else from the first bytes.

    Time: ``time_predicate`` one or several in order of preference (default prov:generatedAtTime; "arrival": none),
    ``start_predicate`` with ``end_predicate`` for intervals; ``time_unit`` of plain numbers; ``clock`` to insist
    on one; ``at`` the one time of all triples of a .ttl or .nt file; ``times="anywhere"`` holds a whole
    document, for times far from their graphs; ``now`` the clock for arrival.

    ``messages``: read .nq, .nt, .trig, .ttl as a message log (None: if the first 64 kB say so), and the frames of
    Jelly as messages (None: if the stream is a grouped one);
    ``close_on_message``: the end of a message is a punctuation.  ``mapping``: for CSV (see csv_mapping).

    ``on_error="skip"`` counts what cannot be read and hands it to ``dead_letters``; "stop" raises StreamError.
    ``idle``: seconds of silence until an ``Idle`` is yielded; ``follow``: wait for a file to grow.
    """
    if on_error not in ("stop", "skip"):
        raise StreamError(f"unknown on_error={on_error!r}", hint="'stop' or 'skip'")
    if times not in ("near", "anywhere"):
        raise StreamError(f"unknown times={times!r}", hint="'near' or 'anywhere'")
    if format and format not in FORMATS:
        raise StreamError(f"unknown stream format {format!r}", hint=f"known formats: {', '.join(FORMATS)}")
    options = {key: value for key, value in locals().items() if key not in ("source",)}
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if "://" in path:
            raise StreamError(
                "this kind of source is not a file", source=path, hint="known here: paths, patterns and -"
            )
        paths = expand(path)
        if len(paths) > MAX_OPEN_FILES:
            raise StreamError(
                f"the pattern matches {len(paths)} files, more than {MAX_OPEN_FILES}",
                source=path,
                hint="they are read side by side to merge them by time; join them into fewer files",
            )
        if len(paths) > 1:
            return merge([_read_one(one, Path(one).name, options) for one in paths], name=name, source=path)
        return _read_one(paths[0], Path(paths[0]).name, options)
    return _read_one(source, str(getattr(source, "name", "-")), options)


def _read_one(source: str | IO[bytes], document: str, options: Mapping[str, Any]) -> Stream:
    name = options["name"]
    stream = name if not name or name.startswith("<") else iri(name)
    opened = Source(source, follow=options["follow"])
    dead_letters: DeadLetters | None = options["dead_letters"]

    def report(error: StreamError) -> None:
        error = error.at(opened.name, 0)
        if options["on_error"] == "stop":
            raise error
        context.counters.errors += 1
        if dead_letters is not None:
            dead_letters.refused(error)

    try:
        context = Context(
            stream=stream,
            timing=timing_of(options),
            times=TimeReader(_checked_unit(options["time_unit"]), options["clock"]),
            arrival=Arrival(options["now"]),
            counters=Counters(),
            report=report,
            close_on_message=options["close_on_message"],
            max_pending=options["max_pending"],
        )
        live = options["idle"] is not None or options["follow"] is not None
        items = (_live_items if live else _items)(opened, document, context, options)
    except StreamError as error:
        opened.close()
        raise error.at(opened.name, 0) from None

    def close() -> None:
        if options["follow"] is not None:
            options["follow"].stop()
        guarded.close()
        opened.close()

    guarded = _guarded(items, opened)
    return Stream(guarded, name=stream, source=opened.name, contexts=[context], close=close)


def _guarded(items: Iterator[Item], source: Source) -> Any:
    """The items; errors name the source, and the source is closed at the end, whatever it was."""
    try:
        yield from items
    except StreamError as error:
        raise error.at(source.name, 0) from None
    finally:
        source.close()


def _live_items(source: Source, document: str, context: Context, options: Mapping[str, Any]) -> Iterator[Item]:
    """The same for a source that may have nothing yet: silence counts from the beginning."""
    for head in with_ticks(map(Source.peek, [source]), options["idle"]):
        if head is None:
            yield Idle(now())
    yield from _items(source, document, context, options)


def timing_of(options: Mapping[str, Any]) -> Timing:
    """The predicates that time an element, of the options of ``read_stream``."""
    punctuations = predicate_iris(options.get("punctuation_predicate")) or (PUNCTUATE,)
    if options.get("time_predicate") == ARRIVAL:
        return Timing((), (), (), punctuations)
    starts, ends = predicate_iris(options.get("start_predicate")), predicate_iris(options.get("end_predicate"))
    predicates = predicate_iris(options.get("time_predicate"))
    return Timing(predicates or Timing().predicates, starts, ends, punctuations)


def _checked_unit(unit: str) -> str:
    try:
        return Clock("integer", unit).unit
    except TimeError as error:
        raise StreamError(str(error)) from None


def _items(source: Source, document: str, context: Context, options: Mapping[str, Any]) -> Iterator[Item]:
    format = options["format"] or format_of(source.name) or _sniffed(source)
    idle: float | None = options["idle"]
    if options["mapping"] is not None and format != "csv":
        raise StreamError(f"a mapping is for CSV, this is {FORMATS[format]}", hint="leave the mapping out")
    at = _instant(options["at"], context, format)
    if format == "jsonl":
        return jsonl_events(line_blocks(source, idle, context.report), context)
    if format == "csv":
        if options["mapping"] is None:
            raise StreamError(
                "a CSV stream needs a mapping from columns to triples",
                hint='in TOML: subject = "<http://example.org/{Name}>", predicate, object, time, time_format',
            )
        rows = read_mapping(options["mapping"])
        return csv_events(line_blocks(source, idle, context.report), rows, context, ".tsv" in source.name.lower())
    scope = DocumentScope(context.stream, document)
    if format == "jelly":
        return _jelly_items(source, context, scope, options["messages"], idle)
    messages = options["messages"] if options["messages"] is not None else looks_like_log(source.peek())
    graphs = format in ("nq", "trig")
    if messages and at is not None:
        raise StreamError(
            "one time for all triples (at) is not for a message log", hint="its messages carry their times"
        )
    if messages:
        blocks = line_blocks(source, idle, context.report)
        if format in ("nq", "nt"):
            return log_events(read_quads(blocks, graphs=graphs, messages=True, on_error=context.report), context)
        return _log_items(
            message_rows(split_messages(blocks, context.report), graphs=graphs, on_error=context.report), context
        )
    if format in ("nq", "nt"):
        blocks = line_blocks(source, idle, context.report)
        quads = read_quads(
            blocks,
            graphs=graphs,
            messages=options["messages"],
            on_error=context.report,
            rename=scope.rename,
            time_predicate=context.timing.after_graph if graphs and options["times"] == "near" else "",
        )
    else:
        quads = turtle_quads(
            source,
            graphs=graphs,
            rename=scope.rename_parsed,
            idle=idle,
            refuse_delimiters=options["messages"] is None,
            on_error=context.report,
        )
    if not graphs:
        named = options["time_predicate"] not in (None, ARRIVAL) or options["start_predicate"]
        return run_events(quads, context) if named and at is None else instant_events(quads, context, at)
    return (whole_document_events if options["times"] == "anywhere" else document_events)(quads, context)


def _sniffed(source: Source) -> str:
    format = sniff(source.peek())
    if not format and source.peek():
        raise StreamError(
            "cannot tell the format from the name or the first line",
            source=source.name,
            hint=f"name it: one of {', '.join(FORMATS)}",
        )
    return format or "nq"


def _instant(at: int | str | None, context: Context, format: str) -> Span | None:
    if at is None:
        return None
    if format not in ("ttl", "nt"):
        raise StreamError(
            f"one time for all triples (at={at!r}) is for .ttl and .nt, this is {FORMATS[format]}",
            hint="leave it out: the elements of this format carry their times",
        )
    try:
        return context.times.of_value(at)
    except TimeError as error:
        raise StreamError(f"the given time cannot be read: {error}") from None


def looks_like_log(head: bytes) -> bool:
    """Do the first bytes announce a message log, in either spelling?"""
    for line in head.decode("utf-8", "replace").splitlines():
        text = line.lstrip()
        if MESSAGE_COMMENT.match(text) or (text[:8].lower() in ("version ", "@version") and "-messages" in text):
            return True
    return False


def _log_items(messages: Iterable[tuple[list[Any], int] | None], context: Context) -> Iterator[Item]:
    for message in messages:
        if message is None:
            yield Idle(now())
        else:
            yield from message_events(message[0], context, message[1])


def _jelly_items(
    source: Source, context: Context, scope: DocumentScope, messages: bool | None, idle: float | None
) -> Iterator[Item]:
    grouped, frames = jelly_frames(source)
    ticking = with_ticks(frames, idle)
    if grouped if messages is None else messages:
        yield from _log_items((None if rows is None else (rows, 0) for rows in ticking), context)
    else:
        yield from document_events(_flat(ticking, scope), context)


def _flat(frames: Iterable[list[Any] | None], scope: DocumentScope) -> Iterator[Quad | None]:
    for rows in frames:
        if rows is None:
            yield None
            continue
        for s, p, o, g in rows:
            yield *(scope.rename(term) if term[:2] == "_:" else term for term in (s, p, o, g)), 0, ""  # type: ignore[misc]


def merge(streams: Sequence[Stream], *, name: str = "", source: str = "") -> Stream:
    """Several streams as one, in the order of their ends; at equal times in the order of the streams (stable).

    A silent live stream holds nobody up.  A punctuation is passed on when every stream has come past it; while
    a stream is silent there is no telling, and punctuations of the others are left out (they only save waiting).
    """

    def close() -> None:
        for stream in streams:
            stream.close()

    contexts = [context for stream in streams for context in stream._contexts]
    return Stream(_merged(streams), name=name, source=source, contexts=contexts, close=close)


def _merged(streams: Sequence[Stream]) -> Iterator[Item]:
    heap: list[tuple[int, bool, int, Item]] = []
    waiting = list(range(len(streams)))
    silent: set[int] = set()
    while heap or waiting:
        for index in waiting:
            item = next(streams[index]._items, None)
            if item is None:
                silent.discard(index)
            elif isinstance(item, Idle):
                silent.add(index)
            else:
                silent.discard(index)
                closing = isinstance(item, Punctuation)
                heapq.heappush(heap, (item.time if isinstance(item, Punctuation) else item.end, closing, index, item))
        if not heap:
            if silent:
                yield Idle(now())
            waiting = sorted(silent)
            continue
        _, closing, index, item = heapq.heappop(heap)
        if not (closing and silent):
            yield item
        waiting = sorted({index, *silent})
