"""Timed RDF in, matches out.

This room turns files, standard input and other byte streams into ``Event`` (``read_stream``), and writes what a query
found (``open_sink``).  It may know events, term spellings, time, RDF syntaxes and the file system.  It knows no
engine, no query and no Spark: a match is anything with ``query``, ``id``, ``bindings``, ``triples``, ``start``,
``end`` and ``to_dict()``.
"""

from etalis_py.streams.clock import Clock, TimeError, parse_datetime, parse_duration, render_datetime
from etalis_py.streams.dead_letters import DeadLetters
from etalis_py.streams.elements import Counters
from etalis_py.streams.errors import ClosedPipe, SinkError, StreamError
from etalis_py.streams.reader import Stream, merge, read_stream
from etalis_py.streams.sinks import Match, Sink
from etalis_py.streams.sources import Follow
from etalis_py.streams.timing import Idle, Punctuation
from etalis_py.streams.writer import open_sink

__all__ = [
    "Clock",
    "ClosedPipe",
    "Counters",
    "DeadLetters",
    "Follow",
    "Idle",
    "Match",
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
]
