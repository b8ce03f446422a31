"""Messages that come one by one, out of a topic or a table: each a JSON line, or a whole document.

``read_stream`` reads one input from its beginning to its end; here each message is read for itself, and each brings
the time of its arrival along, which is the time of what has none.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from etalis_rules.terms import iri

from etalis_py.events import Event
from etalis_py.streams.dead_letters import DeadLetters
from etalis_py.streams.elements import Context, Counters
from etalis_py.streams.errors import StreamError
from etalis_py.streams.jsonl import jsonl_events
from etalis_py.streams.reader import read_stream, timing_of
from etalis_py.streams.sources import now
from etalis_py.streams.timing import Idle, Punctuation, Span, TimeReader


class Named(io.BytesIO):
    """Bytes with a name, by which their format is known and their blank nodes are told from those of others."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


class Messages:
    """A reader of messages in one format; ``options`` are those of ``read_stream``.

    A message that cannot be read raises ``StreamError``; with ``skip`` it is left out whole, counted, and handed to
    ``dead_letters``.  ``context`` has the clock and the counters.
    """

    def __init__(
        self,
        format: str,
        stream: str = "",
        options: Mapping[str, Any] | None = None,
        *,
        skip: bool = False,
        dead_letters: DeadLetters | None = None,
    ) -> None:
        self.format, self._options = format, dict(options or {})
        self._skip, self._dead_letters = skip, dead_letters
        self._arrival: int | None = None
        self.context = Context(
            stream=stream if not stream or stream.startswith("<") else iri(stream),
            timing=timing_of(self._options),
            times=TimeReader(self._options.get("time_unit", "s")),
            arrival=self._arrived,  # type: ignore[arg-type]
            counters=Counters(),
            report=_refuse,
        )

    def _arrived(self) -> Span:
        # As given, also where two messages came at once: read again they must have the same times.
        time = now() if self._arrival is None else self._arrival
        return time, time

    def events(self, data: bytes, *, place: str, name: str = "", arrival: int | None = None) -> Iterator[Event]:
        """The events of one message.  ``place`` is said in errors; ``name``: of a document, else its content is."""
        self._arrival = arrival
        try:
            found = self._line(data) if self.format == "jsonl" and not name else self._document(data, name)
            yield from list(found) if self._skip else found
        except StreamError as error:
            placed = StreamError(error.reason, source=place, line=error.line, hint=error.hint, text=error.text)
            if not self._skip:
                raise placed from None
            self.context.counters.errors += 1
            if self._dead_letters is not None:
                self._dead_letters.refused(placed)

    def _line(self, data: bytes) -> Iterator[Event]:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            shown = data.decode("utf-8", "backslashreplace")
            raise StreamError(f"byte {error.start + 1} is not UTF-8", line=1, text=shown) from None
        items = jsonl_events([(text, 1)], self.context)
        return (item for item in items if not isinstance(item, (Idle, Punctuation)))

    def _document(self, data: bytes, name: str) -> Iterator[Event]:
        named = Named(data, name or blake2b(data, digest_size=8).hexdigest())
        clock = {} if self._arrival is None else {"now": lambda arrival=self._arrival: arrival}
        context = self.context
        with read_stream(named, format=self.format, name=context.stream, **self._options, **clock) as items:
            yield from (item for item in items if not isinstance(item, (Idle, Punctuation)))
        context.times.clock = context.times.clock or items.clock
        context.counters += items.counters


def _refuse(error: StreamError) -> None:
    raise error
