"""Chooses the reader of a source by its format, and refuses options of ``read_stream`` that do not fit the format."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from etalis_rules.messages import INTO_UTF8
from etalis_rules.terms import with_blanks

from etalis_py.events.clock import TimeError
from etalis_py.events.errors import StreamError
from etalis_py.streams.blanks import DocumentScope
from etalis_py.streams.csv_mapping import RowMapping, read_mapping
from etalis_py.streams.csv_rows import csv_events
from etalis_py.streams.documents import document_events, run_events, whole_document_events
from etalis_py.streams.elements import Item, StreamContext, instant_events
from etalis_py.streams.json_arrays import array_events, is_array
from etalis_py.streams.jsonl import JsonOptions, jsonl_events, read_context
from etalis_py.streams.message_elements import log_events, message_events
from etalis_py.streams.options import ReadOptions
from etalis_py.streams.quads import MESSAGE_COMMENT, Quad, read_quads
from etalis_py.streams.sources import (
    FORMATS,
    MAPPED,
    WHOLE,
    Burst,
    OpenedInput,
    format_of,
    line_blocks,
    now,
    with_ticks,
)
from etalis_py.streams.stream import items_of
from etalis_py.streams.timing import Idle, Span
from etalis_py.streams.turtle import message_rows, split_messages, turtle_quads

if TYPE_CHECKING:
    import pyarrow as pa

    from etalis_py.streams.columns.merge_in_order import Chunk

_TERM = rb"(?:<[^<>\s]*>|_:\S+)"
_STATEMENT = re.compile(rb"^\s*" + _TERM + rb"\s+<[^<>\s]*>\s+\S.*\.\s*(?:#.*)?$")
_TURTLE_START = re.compile(rb"^\s*(?:@prefix|@base|@version|prefix\s|base\s|[\w\-.]*:[\w\-.%]*\s)", re.IGNORECASE)


MARK = 10
_ARCHIVES = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"7z\xbc\xaf", b"Rar!")
_PACKED = re.compile(rb"(?P<bzip2>BZh[1-9]1AY&SY)|(?P<xz>\xfd7zXZ)|(?P<zstd>\x28\xb5\x2f\xfd)|(?P<lz4>\x04\"M\x18)")
_TABLE = re.compile(rb"(?P<parquet>PAR1[\x00-\x1f])|(?P<arrow>ARROW1\x00)")
_UTF16 = re.compile(rb"(?:[\t\n\r -~]\x00){2}|(?:\x00[\t\n\r -~]){2}")  # without a byte order mark


def check_named(head: bytes) -> None:
    """Refuse what is not the text that its name promises; the first ``MARK`` bytes are enough."""
    check_text(head)
    if table := _TABLE.match(head):
        ending = table.lastgroup or ""
        raise StreamError(
            f"this is {FORMATS[ending]}, whatever its name says", hint=f"give it a name that ends in .{ending}"
        )


def check_text(head: bytes) -> None:
    """Refuse what is packed, or no text in UTF-8; the first ``MARK`` bytes are enough."""
    if packed := _PACKED.match(head):
        tool = packed.lastgroup
        raise StreamError(
            f"this is packed with {tool}, and only gzip is unpacked here",
            hint=f"unpack it first: {tool} -d FILE, or {tool} -dc FILE | etalis run … --stream -",
        )
    if head.startswith(_ARCHIVES):
        raise StreamError(
            "this is a workbook, or another archive",
            hint="save its sheet as CSV, or read it with pandas and give the frame: run(query, pandas.read_excel(…))",
        )
    marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and head[2:4] != head[:2]
    if marked or _UTF16.match(head):
        raise StreamError(
            "this is a text in UTF-16, as some programs of Windows write it",
            hint=INTO_UTF8,
        )


def table_batches(
    source: OpenedInput, format: str, mapping: RowMapping | None = None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns and the rows of a file of Parquet or Arrow, unless it is something else, whatever its name says."""
    from etalis_py.streams.columns.files import file_batches  # takes a while to import

    check_text(source.peek(MARK))
    return file_batches(source, format, mapping)


def sniff(head: bytes) -> str:
    """The format that the first bytes look like, or ``""``; StreamError for a workbook, or what is packed otherwise."""
    check_text(head)
    head = head.removeprefix(codecs.BOM_UTF8)
    if re.match(rb"\s*(?:\[\s*)?\{\s*\"|\s*\[\s*\]\s*$", head):
        return "jsonl"  # or an array of objects
    if head.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")):
        return "parquet" if head.startswith(b"PAR1") else "arrow"
    if b"\x00" in head[:512] or any(byte < 9 for byte in head[:16]):
        return "jelly"
    for line in head.splitlines():
        if not line.strip() or line.lstrip().startswith(b"#") or re.match(rb"\s*(?:VERSION\s|MESSAGE\b)", line):
            continue
        if _STATEMENT.match(line):
            return "nq"
        # TriG covers Turtle and similar syntaxes as well.
        return "trig" if _TURTLE_START.match(line) or re.match(rb"\s*[<{\[(]", line) else ""
    return "nq" if head.strip() else ""


def source_items(source: OpenedInput, document: str, context: StreamContext, options: ReadOptions) -> Iterator[Item]:
    """The items of a source, in rows, from the reader of its format."""
    format = options.format or format_of(source.name) or sniffed(source, options.mapping is not None)
    patience = context.patience
    if options.mapping is not None and format not in MAPPED:
        known = ", ".join(FORMATS[name] for name in MAPPED)
        raise StreamError(f"a mapping is for {known}; this is {FORMATS[format]}", hint="leave the mapping out")
    if options.context is not None and format != "jsonl":
        raise StreamError(f"a context is for JSON lines; this is {FORMATS[format]}", hint="leave the context out")
    at = _instant(options.at, context, format)
    if format not in (*WHOLE, "jelly") and patience is None:  # else this would wait for the first line
        check_named(source.peek(MARK))
    if format == "jsonl":
        return _json_items(source, context, json_reading(options, context))
    if format == "csv":
        rows = mapping_of(options, context)
        if rows is None:
            raise StreamError(
                "a CSV stream needs a mapping from columns to triples",
                hint='in TOML: subject = "<http://example.org/{Name}>", predicate, object, time, time_format\n'
                "etalis map FILE drafts one, and so does run(query, FILE) with the name of a file alone",
            )
        lines = line_blocks(
            source, patience, context.report, returns=True, tracker=context.tracker, returns_to_marks=False
        )
        return csv_events(lines, rows, context, ".tsv" in source.name.lower())
    if format in WHOLE:
        return items_of(partial(table_chunks, source, format, mapping_of(options, context), context))
    scope = DocumentScope(context.stream, document)
    if format == "jelly":
        return _jelly_items(source, context, scope, options.messages)
    messages = options.messages if options.messages is not None else looks_like_log(source.peek())
    graphs = format in ("nq", "trig")
    if messages and at is not None:
        raise StreamError(
            "one time for all triples (at) is not for a message log", hint="its messages carry their times"
        )
    if messages:
        blocks = line_blocks(source, patience, context.report, returns=format in ("nq", "nt"))
        if format in ("nq", "nt"):
            return log_events(read_quads(blocks, graphs=graphs, messages=True, on_error=context.report), context)
        return _log_items(
            message_rows(split_messages(blocks, context.report), graphs=graphs, on_error=context.report), context
        )
    if format in ("nq", "nt"):
        blocks = line_blocks(source, patience, context.report, returns=True)
        quads = read_quads(
            blocks,
            graphs=graphs,
            messages=options.messages,
            on_error=context.report,
            rename=scope.rename,
            time_predicate=context.timing.after_graph if graphs and options.times == "near" else "",
        )
    else:
        quads = turtle_quads(
            source,
            graphs=graphs,
            rename=scope.rename_parsed,
            patience=patience,
            refuse_delimiters=options.messages is None,
            on_error=context.report,
        )
    if not graphs:
        named = (options.time_predicate is not None and context.timing.predicates) or options.start_predicate
        return run_events(quads, context) if named and at is None else instant_events(quads, context, at)
    return (whole_document_events if options.times == "anywhere" else document_events)(quads, context)


def table_chunks(
    source: OpenedInput, format: str, mapping: RowMapping | None, context: StreamContext
) -> Iterator[Chunk]:
    """The rows of a Parquet or Arrow file, or of an Arrow stream."""
    from etalis_py.streams.columns.frames import frame_chunks

    schema, batches = table_batches(source, format, mapping)
    yield from frame_chunks(schema, batches, mapping, context, source.path or "FILE")


def live_items(source: OpenedInput, document: str, context: StreamContext, options: ReadOptions) -> Iterator[Item]:
    """The items of a source that may have no data yet: silence counts from the beginning."""
    beginning = [source] if context.tracker.start is None else []
    for head in with_ticks(map(OpenedInput.peek, beginning), context.patience):
        if head is None:
            yield Idle(now())
    yield from source_items(source, document, context, options)


def sniffed(source: OpenedInput, mapped: bool) -> str:
    """The format that the first bytes look like; ``mapped``: there is a mapping, so it is a format that takes one."""
    format = sniff(source.peek())
    if mapped and format not in MAPPED:
        return "csv"  # CSV has no typical beginning
    if not format and source.peek():
        raise StreamError(
            "cannot tell the format from the name or the first line",
            source=source.name,
            hint=f"give it an ending that tells: {', '.join(f'.{name}' for name in FORMATS)}; CSV on standard input "
            "needs a mapping",
        )
    return format or "nq"


def _json_items(source: OpenedInput, context: StreamContext, reading: JsonOptions) -> Iterator[Item]:
    if context.tracker.start is None and is_array(source.peek()):
        blocks = line_blocks(source, context.patience, context.report, tracker=context.tracker, returns_to_marks=False)
        yield from array_events(blocks, context, reading)
        return
    # What is not live may be put in order before it is given, so a place in the file says nothing.
    live = context.patience is not None
    blocks = line_blocks(source, context.patience, context.report, tracker=context.tracker, returns_to_marks=live)
    yield from jsonl_events(blocks, context, reading)


def _instant(at: int | str | None, context: StreamContext, format: str) -> Span | None:
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
    """Whether the first bytes announce a message log, in either spelling."""
    for line in head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace").splitlines():
        text = line.lstrip()
        if MESSAGE_COMMENT.match(text) or (text[:8].lower() in ("version ", "@version") and "-messages" in text):
            return True
    return False


def _log_items(messages: Iterable[tuple[list[Any], int] | Burst | None], context: StreamContext) -> Iterator[Item]:
    for message in messages:
        if message is None or isinstance(message, Burst):
            yield message or Idle(now())
        else:
            yield from message_events(message[0], context, message[1])


def _jelly_items(
    source: OpenedInput, context: StreamContext, scope: DocumentScope, messages: bool | None
) -> Iterator[Item]:
    from etalis_py.streams.jelly import jelly_frames  # few streams are binary

    grouped, frames = jelly_frames(source)
    ticking = with_ticks(frames, context.patience)
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
            yield *(with_blanks(term, scope.rename) for term in (s, p, o, g)), 0, ""  # type: ignore[misc]


def mapping_of(options: ReadOptions, context: StreamContext) -> RowMapping | None:
    """The mapping, if there is one; it may set the unit of times."""
    if options.mapping is None:
        return None
    mapping = read_mapping(options.mapping, options.prefixes)
    if mapping.time_unit:
        context.times.unit = mapping.time_unit
    context.subjects, context.properties = mapping.subjects, mapping.properties
    context.times_of_rows, context.ties = mapping.times_of_rows, mapping.ties
    return mapping


def json_reading(options: ReadOptions, context: StreamContext) -> JsonOptions:
    """How to read the objects of JSON lines."""
    mapping = mapping_of(options, context)
    if mapping is not None and options.context is not None:
        raise StreamError("a mapping and a context at once", hint="leave one of them out")
    known = {"": "http://example.org/", **(options.prefixes or {})}
    return JsonOptions(
        mapping,
        "" if options.context is None else read_context(options.context),
        known,
    )
