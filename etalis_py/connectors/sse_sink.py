"""``sse://host:port/path`` as a sink: matches as server-sent events for whoever listens, such as a page in a browser.

The run itself answers there; without a host only this machine can ask.  Each match is an event of the type ``match`` or
``retracted`` with an id and plain JSON.  A new reader first gets the newest matches (``?keep=1000``); one that comes
back with the id of its last event (browsers do) gets what came after, also if the run was started again meanwhile: the
kept events are in the checkpoint.  A reader that has fallen behind further than that gets what is kept, after
a comment that says how many it missed.

With a secret in ``SSE_TOKEN``, readers need ``Authorization: Bearer``.  ``?origin=https://host`` lets the pages of
another site read (CORS).
"""

from __future__ import annotations

import hmac
import os
import threading
import uuid
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from warnings import warn

import msgspec

from etalis_py.connectors.http_server import Handler, Server
from etalis_py.connectors.plain import plain_record
from etalis_py.connectors.registry import Request
from etalis_py.events.errors import SinkError
from etalis_py.streams.sinks import Match

KEPT, READERS = 1_000, 100
_BEAT = 15.0  # seconds after which a reader hears that the connection is alive
_PIECE = 65_536  # characters that a reader is given at once: it may take nothing of them
_FAREWELL = 2.0  # seconds for readers to get the last events


class Feed:
    """The newest events, numbered over all processes of a run; readers wait for what comes after their number.

    State: the run, the number of the first event that is kept, and those that are kept.
    """

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._news = threading.Condition()
        self.run, self._first, self._events = uuid.uuid4().hex[:8], 1, list[tuple[str, str]]()
        self._ended = False
        self._behind: dict[object, int] = {}  # the number of the last event that each reader got

    def after(self, events: list[tuple[str, str]]) -> list[Any]:
        """The state after more events, as plain data."""
        first, kept = self._first, [*self._events, *events]
        over = max(0, len(kept) - self._keep)
        return [self.run, first + over, [list(one) for one in kept[over:]]]

    def go_to(self, state: list[Any]) -> None:
        with self._news:
            self.run, self._first = state[0], state[1]
            self._events = [(kind, data) for kind, data in state[2]]
            self._news.notify_all()

    def number_of(self, last: str) -> int:
        """The number after which a reader with this id goes on."""
        run, _, number = last.partition("-")
        return int(number) if run == self.run and number.isdecimal() else 0

    def wait(self, reader: object, number: int) -> tuple[str, int] | None:
        """What comes after a number, as much as a reader is given at once, and the number of its last event.

        It is a comment if nothing comes for a while, and None at the end.
        """
        with self._news:
            self._behind[reader] = number
            self._news.notify_all()
            if not self._news.wait_for(lambda: self._ended or self._last() > number, _BEAT):
                return ": nothing new\n\n", number
            if self._last() <= number:
                return None
            begin = max(number + 1, self._first)
            waiting = self._events[begin - self._first :]
        events = _at_once(waiting)
        name = f"id: {self.run}-"
        texts = [f"{name}{at}\nevent: {kind}\ndata: {data}\n\n" for at, (kind, data) in enumerate(events, begin)]
        if number and (missed := begin - number - 1):
            warn(
                f"a reader has missed {missed:,} of the events, which are no longer kept; ?keep=N keeps more",
                stacklevel=2,
            )
            texts.insert(0, f": missed {missed} of the events, which are no longer kept\n\n")
        return "".join(texts), begin + len(events) - 1

    def _last(self) -> int:
        return self._first + len(self._events) - 1

    def leave(self, reader: object) -> None:
        with self._news:
            self._behind.pop(reader, None)
            self._news.notify_all()

    def end(self) -> None:
        """Wait a little until the readers have everything, and send them home."""
        with self._news:
            self._news.wait_for(lambda: all(got >= self._last() for got in self._behind.values()), _FAREWELL)
            self._ended = True
            self._news.notify_all()


def _at_once(events: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The first events, as many as a reader is given at once, and one in any case."""
    size = 0
    for count, (_, data) in enumerate(events):
        size += len(data)
        if count and size > _PIECE:
            return events[:count]
    return events


class SseSink:
    """A server with a thread for each reader, from the first call of ``recover`` to the end of the run."""

    guarantee = "at least once"

    def __init__(self, address: str, host: str, port: int, path: str, *, keep: int = KEPT, origin: str = "") -> None:
        self.name, self._place, self._path, self._origin = address, (host, port), path or "/", origin
        self.feed = Feed(keep)
        self._token = os.environ.get("SSE_TOKEN", "")
        self._server: Server | None = None
        self._held: list[tuple[str, str]] = []
        self._readers = threading.BoundedSemaphore(READERS)

    @property
    def port(self) -> int:
        return 0 if self._server is None else self._server.server_address[1]

    def recover(self, token: Any | None) -> None:
        if token is not None:
            self.feed.go_to(token)
        try:
            self._server = Server(self._place, self._handler())
        except OSError as error:
            reason = f"nobody can listen there: {error.strerror or error}"
            raise SinkError(reason, target=self.name, hint="name another port") from None
        threading.Thread(target=self._server.serve_forever, name="server-sent events", daemon=True).start()

    def write(self, matches: Iterable[Match]) -> None:
        for match in matches:
            record = plain_record(match.to_dict())
            kind = "retracted" if record.get("retracted") else "match"
            self._held.append((kind, msgspec.json.encode(record).decode()))

    def prepare(self) -> Any:
        held, self._held = self._held, []
        return self.feed.after(held)

    def commit(self, token: Any) -> None:
        self.feed.go_to(token)

    def abort(self) -> None:
        self._held = []

    def close(self) -> None:
        self.abort()
        if self._server is not None:
            self.feed.end()
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _handler(self) -> type[Handler]:
        sink, feed = self, self.feed

        class Events(Handler):
            def do_GET(self) -> None:
                if self.path.partition("?")[0] != sink._path:
                    return self.answer(404, "text/plain", f"the events are at {sink._path}\n")
                if sink._token and not hmac.compare_digest(
                    self.headers.get("authorization", "").encode(), f"Bearer {sink._token}".encode()
                ):
                    return self.answer(401, "text/plain", "this needs Authorization: Bearer\n")
                if not sink._readers.acquire(blocking=False):
                    return self.answer(503, "text/plain", f"there are {READERS} readers already\n")
                try:
                    self._send()
                except OSError:
                    self.close_connection = True  # the reader has gone
                finally:
                    feed.leave(self)
                    sink._readers.release()

            def _send(self) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("cache-control", "no-store")
                if sink._origin:
                    self.send_header("access-control-allow-origin", sink._origin)
                self.end_headers()
                if self.command == "HEAD":
                    return
                number = feed.number_of(self.headers.get("last-event-id", ""))
                while (news := feed.wait(self, number)) is not None:
                    text, number = news
                    self.wfile.write(text.encode())

        return Events


def open_sink(address: str, request: Request) -> SseSink:
    split = urlsplit(address)
    given = dict(parse_qsl(split.query))
    keep, origin = given.pop("keep", str(KEPT)), given.pop("origin", "")
    try:
        port = split.port
    except ValueError:
        port = None
    if port is None or given or not keep.isdecimal() or not int(keep):
        raise SinkError(
            "this is not an address at which a run can send events",
            target=address,
            hint="write sse://localhost:8090/alerts, perhaps with ?keep=1000&origin=https://host",
        )
    return SseSink(address, split.hostname or "127.0.0.1", port, split.path, keep=int(keep), origin=origin)
