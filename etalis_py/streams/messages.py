"""Messages that come one by one, from a topic or a table: each a JSON line, or a whole document.

``read_stream`` reads one input from its beginning to its end; here each message is read separately, and comes with its
time of arrival, which applies to everything without a time.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from etalis_rules.terms import iri

from etalis_py.events import Event
from etalis_py.events.errors import StreamError
from etalis_py.numba_cache import can_compile, ready
from etalis_py.streams.elements import Counters, StreamContext, withdrawn
from etalis_py.streams.formats import json_reading
from etalis_py.streams.framed import RegistryUnavailable
from etalis_py.streams.jsonl import jsonl_events
from etalis_py.streams.options import ReadOptions
from etalis_py.streams.reader import arrival_of, open_stream
from etalis_py.streams.timing import TimeReader

if TYPE_CHECKING:
    from etalis_py.streams.columns.json_messages import JsonMessages

_LEAVE_OUT = "on_error='skip' (--on-error skip) leaves it out"


class Named(io.BytesIO):
    """Bytes with a name, which determines their format and keeps their blank nodes apart from those of others."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


class Messages:
    """A reader of messages in one format, given in ``options``.

    A message that cannot be read raises ``StreamError``; with ``on_error="skip"`` it is left out whole, counted, and
    handed to ``dead_letters``.  ``context`` has the clock and the counters.  ``decode`` gives the text of a message.
    """

    def __init__(self, options: ReadOptions, decode: Callable[[bytes], bytes] | None = None) -> None:
        self._options, self._decode = options, decode
        self._arrival = arrival_of(options)
        stream = options.name
        self.context = StreamContext(
            stream=stream if not stream or stream.startswith("<") else iri(stream),
            timing=options.timing,
            times=TimeReader(options.time_unit, options.clock),
            arrival=self._arrival,
            counters=Counters(),
            report=_refuse,
        )
        self._json = json_reading(options, self.context)
        # Statements are read by compiled loops, which may have to be compiled first; a mapping needs none.
        self._in_columns = options.format == "jsonl" and (can_compile() if options.mapping is not None else ready())
        self._columns: JsonMessages | None = None

    def events(
        self, data: bytes, *, place: str, name: str = "", arrival: int | None = None, retract: bool = False
    ) -> Iterator[Event]:
        """The events of one message.  ``place`` is for errors, ``name`` is that of a document (default: by content).

        ``arrival``: as given, even if two messages came at once, as they must have the same times when they are read
        again; None: by the clock.  ``retract``: the message withdraws them.
        """
        self._arrival.given = arrival
        skip = self._options.on_error == "skip"
        as_line = self._options.format == "jsonl" and not name
        try:
            data = data if self._decode is None else self._decode(data)
            events = self._line(data) if as_line else self._document(data, name)
            if retract:
                events = withdrawn(events)  # type: ignore[assignment]
            yield from list(events) if skip else events
        except StreamError as error:
            unavailable = isinstance(error, RegistryUnavailable)
            hint = f"{error.hint}; {_LEAVE_OUT}".removeprefix("; ") if as_line and not unavailable else error.hint
            placed = StreamError(error.reason, source=place, line=error.line, hint=hint, text=error.text)
            if not skip or unavailable:
                raise placed from None
            with self.context.tracker.lock:
                if self.context.tracker.is_repeated():
                    return
                if self._options.dead_letters is not None:
                    self._options.dead_letters.refused(placed)
                self.context.counters.errors += 1

    def decoded(self, values: Sequence[bytes]) -> tuple[list[bytes], list[int]]:
        """The texts of messages, and the places of those without one, which are read alone to say why."""
        if self._decode is None:
            return list(values), []
        texts, without = [], []
        for place, value in enumerate(values):
            try:
                texts.append(self._decode(value) if value else value)
            except RegistryUnavailable:
                raise
            except StreamError:
                texts.append(b"")
                without.append(place)
        return texts, without

    def columns(self) -> JsonMessages | None:
        """The reader of many messages at once; None where they are read one by one, or not yet in columns."""
        if self._columns is None and self._in_columns and self.context.times.clock is not None:
            from etalis_py.streams.columns.json_messages import JsonMessages, can_read  # takes a while to import

            if can_read(self.context, self._json):
                self._columns = JsonMessages(self.context, self._json)
        return self._columns

    def _line(self, data: bytes) -> Iterator[Event]:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            shown = data.decode("utf-8", "backslashreplace")
            raise StreamError(f"byte {error.start + 1} is not UTF-8", line=1, text=shown) from None
        items = jsonl_events([(text, 1)], self.context, self._json)
        return (item for item in items if isinstance(item, Event))

    def _document(self, data: bytes, name: str) -> Iterator[Event]:
        named = Named(data, name or blake2b(data, digest_size=8).hexdigest())
        context = self.context
        options = replace(self._options, name=context.stream, on_error="stop", dead_letters=None, idle=None)
        options = replace(options, now=lambda: self._arrival()[0])
        with open_stream(named, options) as items:
            yield from (item for item in items if isinstance(item, Event))
        context.times.clock = context.times.clock or items.clock
        context.counters += items.counters


def _refuse(error: StreamError) -> None:
    raise error
