"""``wss://host/path``: the messages of a WebSocket, from now on; one frame is one message.

When the connection is lost it is made again, after 0.5, 1, 2, … seconds, at most five times, and not before the time in
``Retry-After`` if it is refused with one, which counts up to a minute; what was sent meanwhile is lost, and a warning
says so.  A token in ``WEBSOCKET_TOKEN`` goes along as ``Authorization: Bearer``.  Redirects are not
followed.  Needs websockets: the extra ``websocket``.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit
from warnings import warn

from etalis_py.connectors.contracts import Message, Position
from etalis_py.connectors.registry import missing
from etalis_py.events.errors import StreamError, without_password
from etalis_py.streams.retries import asked_pause, pauses

PORTION, LONGEST = 1_000, 16 * 1024 * 1024
_PATIENCE = 10.0
_REASONS = 10  # that are told
_LEAST = 0.001  # a wait of 0 seconds is no wait, in which nothing arrives


class WebSocket:
    """A connection to the server of an address, made when it is needed."""

    def __init__(self, address: str, *, sink: bool) -> None:
        try:
            import websockets.exceptions
            import websockets.sync.client as client
        except ImportError:
            missing("websockets", "websocket", address, sink=sink)
        self._connect, self.closed = client.connect, websockets.exceptions.ConnectionClosed
        self.errors = (OSError, ValueError, websockets.exceptions.WebSocketException)
        self._address, self._open = address, ExitStack()
        self.name = without_password(address).partition("?")[0]
        self._connection: Any = None

    def connection(self) -> Any:
        if self._connection is None:
            split = urlsplit(self._address)
            where = (split.hostname or "", split.port or (443 if split.scheme == "wss" else 80))
            token = os.environ.get("WEBSOCKET_TOKEN")
            headers = {"Authorization": f"Bearer {token}"} if token else None
            made = self._connect(
                self._address,
                sock=socket.create_connection(where, _PATIENCE),  # with a socket of its own it follows no redirect
                additional_headers=headers,
                open_timeout=_PATIENCE,
                close_timeout=1.0,
                max_size=LONGEST,
            )
            self._connection = self._open.enter_context(made)
        return self._connection

    @staticmethod
    def asked_pause(error: Exception) -> float:
        """The seconds that a server asks to be left alone for when it refuses a connection."""
        answer = getattr(error, "response", None)
        return 0.0 if answer is None else asked_pause(answer.headers.get("Retry-After"))

    def drop(self) -> None:
        self._connection = None
        self._open.close()


class WebSocketSource:
    """State: the connection; and when it was lost, the pauses before the next tries."""

    again = False

    def __init__(self, address: str) -> None:
        self._socket = WebSocket(address, sink=False)
        self.name = self._socket.name
        self._read = 0
        self._pauses: Iterator[float] = pauses()
        self._next_try = 0.0
        self._reason, self._told = "", set[str]()  # why the connection was lost, and what was told of it

    def open(self, position: Position | None) -> None:
        try:
            self._socket.connection()
        except self._socket.errors as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> StreamError:
        reason = f"no WebSocket is opened there: {error or type(error).__name__}"
        return StreamError(reason, source=self.name, hint="check the address, and WEBSOCKET_TOKEN")

    def read(self, seconds: float) -> Sequence[Message] | None:
        if (rest := self._next_try - time.monotonic()) > 0:
            time.sleep(min(rest, seconds))
            return []
        messages: list[Message] = []
        try:
            self._take(messages, max(seconds, _LEAST))
        except self._socket.errors as error:
            self._lost(error)
        return messages

    def _take(self, messages: list[Message], wait: float) -> None:
        """Add what has arrived, waiting for the first."""
        connection = self._socket.connection()
        self._tell_lost()
        while len(messages) < PORTION:
            try:
                value = connection.recv(timeout=wait)
            except TimeoutError:
                return
            wait = _LEAST
            value = value.encode() if isinstance(value, str) else value
            self._read += 1
            self._pauses = pauses()
            messages.append(Message(value, f"{self.name}, message {self._read}"))

    def _lost(self, error: Exception) -> None:
        """Note when to connect again; after the last try the error is one."""
        self._socket.drop()
        self._reason = str(error) or type(error).__name__
        pause = next(self._pauses, None)
        if pause is None:
            raise self._failure(error) from None
        self._next_try = time.monotonic() + max(pause, self._socket.asked_pause(error))

    def _tell_lost(self) -> None:
        """Warn, once for each reason, when the connection is there again: nobody knows how much was sent meanwhile."""
        reason, self._reason = self._reason, ""
        if reason and reason not in self._told and len(self._told) < _REASONS:
            self._told.add(reason)
            warn(
                f"{self.name}: the connection was lost and has been made again, and what was sent meanwhile is missing "
                f"({reason})",
                stacklevel=2,
            )

    def position(self) -> Position:
        return self._read

    def committed(self, position: Position) -> None:
        """Do nothing: the sender does not ask."""

    def close(self) -> None:
        self._socket.drop()


def is_address(address: str) -> bool:
    return bool(urlsplit(address).hostname) and "#" not in address


def open_source(address: str) -> WebSocketSource:
    if not is_address(address):
        raise StreamError("this is not the address of a WebSocket", source=address, hint="write wss://host/path")
    return WebSocketSource(address)
