"""Timed RDF in, matches out.

This package turns files, standard input and other byte streams into ``Event`` (``read_stream``), and writes the matches
of a query (``open_sink``).  It may know events, term spellings, time, RDF syntaxes and the file system.  It knows no
engine, no query and no Spark: a match is anything with ``query``, ``id``, ``bindings``, ``triples``, ``start``, ``end``
and ``to_dict()``.
"""

from typing import TYPE_CHECKING

from etalis_py.lazy_imports import lazily

if TYPE_CHECKING:
    from etalis_py.events.clock import Clock, TimeError, parse_datetime, parse_duration, render_datetime
    from etalis_py.events.errors import ClosedPipe, SinkError, StreamError
    from etalis_py.streams.dead_letters import DeadLetters
    from etalis_py.streams.elements import Counters
    from etalis_py.streams.growing import Follow
    from etalis_py.streams.pass_through import PassingTime, up_to
    from etalis_py.streams.reader import merge, read_stream
    from etalis_py.streams.sinks import Match, Sink
    from etalis_py.streams.sources import Burst, Patience
    from etalis_py.streams.stream import Stream
    from etalis_py.streams.timing import Idle, Punctuation
    from etalis_py.streams.writer import open_sink
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "etalis_py.events.clock": ("Clock", "TimeError", "parse_datetime", "parse_duration", "render_datetime"),
            "etalis_py.streams.dead_letters": ("DeadLetters",),
            "etalis_py.streams.elements": ("Counters",),
            "etalis_py.events.errors": ("ClosedPipe", "SinkError", "StreamError"),
            "etalis_py.streams.pass_through": ("PassingTime", "up_to"),
            "etalis_py.streams.reader": ("merge", "read_stream"),
            "etalis_py.streams.sinks": ("Match", "Sink"),
            "etalis_py.streams.sources": ("Burst", "Patience"),
            "etalis_py.streams.growing": ("Follow",),
            "etalis_py.streams.stream": ("Stream",),
            "etalis_py.streams.timing": ("Idle", "Punctuation"),
            "etalis_py.streams.writer": ("open_sink",),
        },
    )

__all__ = [
    "Burst",
    "Clock",
    "ClosedPipe",
    "Counters",
    "DeadLetters",
    "Follow",
    "Idle",
    "Match",
    "PassingTime",
    "Patience",
    "Punctuation",
    "Sink",
    "SinkError",
    "Stream",
    "StreamError",
    "TimeError",
    "merge",
    "open_sink",
    "parse_datetime",
    "parse_duration",
    "read_stream",
    "render_datetime",
    "up_to",
]
