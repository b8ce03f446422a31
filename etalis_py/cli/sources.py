"""``--stream [NAME=]SOURCE``: files, patterns, standard input, stream containers and topics, merged by time."""

from __future__ import annotations

import io
import os
import stat
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from etalis_rules.terms import iri

from etalis_py.cli.errors import UsageError
from etalis_py.streams import DeadLetters, Idle, Stream, merge, read_stream
from etalis_py.streams.kafka import parse_topic, read_kafka
from etalis_py.streams.sources import format_of, now

IDLE_SECONDS = 1.0
DEFAULT_NAMESPACE = "http://example.org/"


def split_name(text: str) -> tuple[str, str]:
    """The IRI of the stream (or ``""``) and its source.

    >>> split_name("prices=ticks.nq"), split_name("http://h/s=a.nq"), split_name("http://h/s/?after=3")
    (('<http://example.org/prices>', 'ticks.nq'), ('<http://h/s>', 'a.nq'), ('', 'http://h/s/?after=3'))
    """
    if not text:
        raise UsageError("--stream is empty: name a file, a pattern, -, http(s)://… or kafka://…")
    name, equals, source = text.partition("=")
    if not equals or os.path.exists(text) or "?" in name or ("/" in name and ":" not in name):
        return "", text
    if not name or not source:
        raise UsageError(f"--stream {text}: write NAME=SOURCE, or the source alone")
    if name.startswith("<") and name.endswith(">"):
        name = name[1:-1]
    return iri(name if ":" in name else DEFAULT_NAMESPACE + name), source


def is_container(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def is_topic(source: str) -> bool:
    return source.startswith("kafka://")


def is_live(source: str) -> bool:
    """May there be nothing yet to read, and more later?"""
    if is_topic(source):
        return not parse_topic(source).until_now
    return is_container(source) or (source == "-" and not _is_file(sys.stdin.fileno()))


def _is_file(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def open_streams(options: Namespace, dead_letters: DeadLetters | None) -> tuple[Stream, bool]:
    """The merged stream of a run, and whether it is live."""
    named = [split_name(text) for text in options.stream]
    sources = [source for _, source in named]
    for source in sources:
        if "://" in source and not is_container(source) and not is_topic(source):
            raise UsageError(f"--stream {source}: known are files, patterns, -, http(s):// and kafka://")
    live = any(map(is_live, sources))
    streams = [_open(name, source, options, dead_letters, live, len(sources)) for name, source in named]
    return (streams[0] if len(streams) == 1 else merge(streams)), live


def _open(name: str, source: str, options: Namespace, dead_letters: DeadLetters | None, live: bool, of: int) -> Stream:
    if is_container(source):
        return follow(source, name)
    if is_topic(source):
        return read_kafka(
            source,
            name=name,
            on_error=options.on_error,
            dead_letters=dead_letters,
            idle=IDLE_SECONDS if live else None,
            time_predicate=options.time_predicate or None,
            start_predicate=options.start_predicate,
            end_predicate=options.end_predicate,
            time_unit=options.time_unit,
        )
    known = format_of(source)
    mapped = options.mapping is not None and (known == "csv" or (of == 1 and not known))
    if known == "csv" and options.mapping is None:
        raise UsageError(f"--stream {source}: a CSV stream needs --mapping FILE, which says what its columns mean")
    if options.mapping is not None and of == 1 and not mapped:
        raise UsageError(f"--mapping is for CSV, {source} is none")
    return read_stream(
        _unbuffered_input() if live and source == "-" else source,
        name=name,
        format="csv" if mapped and not known else "",
        time_predicate=options.time_predicate or None,
        start_predicate=options.start_predicate,
        end_predicate=options.end_predicate,
        time_unit=options.time_unit,
        messages=True if options.messages else None,
        close_on_message=options.close_on_message,
        times="anywhere" if options.whole_document else "near",
        mapping=Path(options.mapping) if mapped else None,
        on_error=options.on_error,
        dead_letters=dead_letters,
        idle=IDLE_SECONDS if live else None,
    )


def _unbuffered_input() -> io.FileIO:
    """Standard input without a buffer: a thread that waits in its read does not keep the interpreter from ending."""
    raw = io.FileIO(sys.stdin.fileno(), closefd=False)
    raw.name = "standard input"
    return raw


def follow(url: str, name: str = "") -> Stream:
    """A stream container: what it holds, then what comes."""
    from etalis_py.containers.client import Follower  # takes a while to import

    follower = Follower(url)

    def items() -> Iterator[Any]:
        for event in follower.items(IDLE_SECONDS):
            if event is None:
                yield Idle(now())
            else:
                yield event._replace(stream=name) if name else event

    return Stream(items(), name=name or iri(url), source=url, contexts=[], close=follower.close)
