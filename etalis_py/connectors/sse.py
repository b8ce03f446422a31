"""``sse+https://host/path``: server-sent events; the data of one is a message.

The position is the id of the last event.  When the connection is lost, or when a run goes on, the id is sent along
(``Last-Event-ID``), and a server that keeps its events goes on after it.  If the events have no ids, a run with a
checkpoint says so and ends, unless the address says ``?resume=no``: then it goes on with what comes.

A lost connection is made again after 0.5, 1, 2, … seconds, at most five times, and not before the time that the server
asks for: by a field ``retry``, or by ``Retry-After`` in an answer of 5xx or 429, which count up to a minute.  A server
that sends nothing for 90 seconds, not even a comment, is lost.  If its events have no ids, a warning says that some may
be missing.  An answer of 204 is the end.  A token in ``SSE_TOKEN`` goes along as ``Authorization: Bearer``.  Redirects
are not followed.
"""

from __future__ import annotations

import os
import queue
import re
import socket
import threading
import time
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit
from warnings import warn

from etalis_py.connectors.contracts import Message, Position
from etalis_py.connectors.registry import taken_from
from etalis_py.events.errors import StreamError, without_password
from etalis_py.streams.answer_encoding import unasked_encoding
from etalis_py.streams.retries import LONGEST_ASKED, asked_pause, pauses

PORTION, MOST = 1_000, 20_000
_PATIENCE, _LOOK = 10.0, 0.2
_SILENCE = 90.0  # seconds without a sign of life; servers that care send a comment each 15 to 60
_PACKED = "gzip, deflate"
_END = re.compile(rb"\r\n|\n|\r")


class ServerEvent(NamedTuple):
    """The id that holds after it ("": none so far), and its data."""

    id: str
    data: bytes


class EventParser:
    """The events of a body that comes in pieces (WHATWG HTML, server-sent events).

    ``retry``: the seconds to wait before connecting again, if the server has said so.

    >>> parser = EventParser("")
    >>> list(parser.events(b": hello\\n\\nid: 7\\ndata: a\\ndata: b\\n")), list(parser.events(b"\\r\\ndata:c\\r\\r"))
    ([], [ServerEvent(id='7', data=b'a\\nb'), ServerEvent(id='7', data=b'c')])
    """

    def __init__(self, last: str) -> None:
        self._last = last
        self._rest: list[bytes] = []  # of a line whose end has not come: joined once, however many pieces it has
        self._after_cr = False
        self._first = True  # no line has come yet
        self._data: list[bytes] = []
        self.retry: float | None = None

    def events(self, piece: bytes) -> Iterator[ServerEvent]:
        """The events that are complete with one more piece."""
        text = piece.removeprefix(b"\n") if self._after_cr else piece
        self._after_cr = text.endswith(b"\r") if text else self._after_cr and not piece
        *lines, rest = _END.split(text)
        if lines:
            lines[0] = b"".join((*self._rest, lines[0]))
            self._rest = []
        self._rest.append(rest)
        if lines and self._first:
            lines[0] = lines[0].removeprefix(BOM_UTF8)
            self._first = False
        for line in lines:
            if line:
                self._field(line)
            elif self._data:
                yield ServerEvent(self._last, b"\n".join(self._data))
                self._data = []

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"id" and b"\0" not in value:
            self._last = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():
            self.retry = min(float(value) / 1000, LONGEST_ASKED)


class ServerEvents:
    """A thread receives.  Beyond ``MOST`` events that nobody has read, the server must wait."""

    def __init__(self, address: str, *, again: bool) -> None:
        import httpx

        self._httpx, self._address, self.again = httpx, address, again
        self.name = without_password(address).partition("?")[0]
        self._waiting: queue.Queue[ServerEvent | None] = queue.Queue(maxsize=MOST)
        self._position = self._received = ""
        self._unnumbered = False
        self._retry = self._asked = 0.0  # what the server wants to be waited for: always, and before the next try
        self._answered = 0.0  # when the connection was made; 0: it was not
        self._goes_on = False  # whether something new has come since
        self._nameless = False  # whether the last event had no id, so that the server cannot go on after it
        self._lost = self._gap = ""  # why the last connection was lost, and why events are missing
        self._told = False
        self._connected, self._stopped = threading.Event(), threading.Event()
        self._problem = self._refused = ""
        self._socket: Any = None
        self._read = 0

    def open(self, position: Position | None) -> None:
        self._position = self._received = position or ""
        threading.Thread(target=self._listen, name="server-sent events", daemon=True).start()
        self._connected.wait(_PATIENCE)
        if self._problem or not self._connected.is_set():
            self.close()
            raise self._failure(self._problem or "the server did not answer in time")

    def _failure(self, reason: str) -> StreamError:
        hint = "check the address, and SSE_TOKEN"
        return StreamError(f"there are no server-sent events: {reason}", source=self.name, hint=hint)

    def _listen(self) -> None:
        """Receive, and connect again, until it is stopped, has ended, or does not come back."""
        left = pauses()
        while not self._stopped.is_set():
            problem, self._answered, self._goes_on, self._asked = "the server has ended the connection", 0.0, False, 0.0
            try:
                if not self._receive():
                    self._put(None)
                    return
            except Exception as error:  # whatever ends the thread is told: nobody else would know that nothing comes
                problem = str(error) or type(error).__name__
            if self._goes_on or (self._answered and time.monotonic() - self._answered > _PATIENCE):
                left = pauses()
            pause = next(left, None)
            if pause is None or self._refused or not self._connected.is_set():
                self._problem = self._refused or problem
                break
            self._lost = problem
            self._stopped.wait(max(pause or _LOOK, self._retry, self._asked))
        self._connected.set()

    def _receive(self) -> bool:
        """Hand on what comes until the connection ends; returns False if the server says that nothing more comes."""
        wanted = {"Accept": "text/event-stream", "Accept-Encoding": _PACKED, "Cache-Control": "no-store"}
        headers = self._httpx.Headers(wanted, encoding="utf-8")
        if token := os.environ.get("SSE_TOKEN"):
            headers["Authorization"] = f"Bearer {token}"
        if self._received:
            headers["Last-Event-ID"] = self._received
        timeout = self._httpx.Timeout(_PATIENCE, read=_SILENCE)
        with (
            self._httpx.Client(timeout=timeout, follow_redirects=False) as client,
            client.stream("GET", self._address, headers=headers) as answer,
        ):
            if answer.status_code == 204:
                self._connected.set()
                return False
            self._check(answer)
            self._socket = answer.extensions["network_stream"].get_extra_info("socket")
            self._answered = time.monotonic()
            self._connected.set()
            if self._nameless:
                self._gap = self._lost
            self._take(answer)
        return True

    def _check(self, answer: Any) -> None:
        """Refuse an answer that has no events; one that may have some later is an error of this try only."""
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if answer.status_code != 200 or kind != "text/event-stream":
            told = f"the answer was {answer.status_code} {answer.reason_phrase}, {kind or 'without a type'}"
            if answer.status_code < 500 and answer.status_code != 429:
                self._refused = told
            self._asked = asked_pause(answer.headers.get("retry-after"))
            raise self._httpx.HTTPError(told)
        if wrong := unasked_encoding(answer.headers.get("content-encoding", ""), _PACKED):
            self._refused = wrong
            raise self._httpx.HTTPError(wrong)

    def _take(self, answer: Any) -> None:
        """Hand on the events of an answer as they come."""
        parser, before = EventParser(self._received), self._received
        try:
            for piece in answer.iter_bytes():
                for event in parser.events(piece):
                    self._put(event)
                    self._received = event.id
                    self._nameless = not event.id
                    self._goes_on = self._goes_on or self._nameless or event.id != before
                if parser.retry is not None:
                    self._retry = parser.retry
        except self._httpx.ReadTimeout:
            raise self._httpx.HTTPError(f"nothing came for {_SILENCE:g} s") from None

    def _put(self, event: ServerEvent | None) -> None:
        while not self._stopped.is_set():
            try:
                return self._waiting.put(event, timeout=_LOOK)
            except queue.Full:
                continue

    def read(self, seconds: float) -> Sequence[Message] | None:
        messages: list[Message] = []
        if self._gap and not self._told:
            self._told = True
            warn(
                f"{self.name}: the connection was lost and has been made again, and what was sent meanwhile is "
                f"missing, as the events have no ids ({self._gap})",
                stacklevel=2,
            )
        try:
            event = self._waiting.get(timeout=seconds) if seconds else self._waiting.get_nowait()
            while event is not None:
                self._read += 1
                self._position = event.id
                self._unnumbered = self._unnumbered or not event.id
                place = f"{self.name}, event {event.id or self._read}"
                messages.append(Message(event.data, place))
                if len(messages) == PORTION:
                    return messages
                event = self._waiting.get_nowait()
            if not messages:
                return None
            self._waiting.put(None)  # the end is told by the next call
        except queue.Empty:
            if self._problem and not messages:
                raise self._failure(self._problem) from None
        return messages

    def position(self) -> Position:
        return self._position

    def committed(self, position: Position) -> None:
        if self.again and self._unnumbered:
            raise StreamError(
                "the events of this server have no ids, so a run cannot go on after the last one",
                source=self.name,
                hint="add resume=no to the address: after a crash the run goes on with what comes then",
            )

    def close(self) -> None:
        self._stopped.set()
        if self._socket is not None:
            with suppress(OSError):  # it is closed already
                self._socket.shutdown(socket.SHUT_RDWR)  # else the thread would wait in a read
            self._socket = None


def open_source(address: str) -> ServerEvents:
    split = urlsplit(address)
    resume, query = taken_from(split.query, "resume")
    if not split.hostname or resume not in (None, "yes", "no"):
        raise StreamError(
            "this is not the address of server-sent events",
            source=address,
            hint="write sse+https://host/path, perhaps with ?resume=no",
        )
    scheme = split.scheme.partition("+")[2]
    return ServerEvents(urlunsplit(split._replace(scheme=scheme, query=query)), again=resume != "no")
