"""Limits on connections before their first request: how many from one address, and how long they may wait.

uvicorn only limits the total number of connections, and closes those idle between requests; a request whose head never
ends keeps its place for ever.  These protocols add what is missing.

They also refuse requests that another reader of HTTP could cut elsewhere (``strict_http``), because a proxy in front
would then see other requests than the server does.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from functools import partial
from http import HTTPStatus
from typing import Any

import msgspec
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from .handshakes import Handshakes
from .limits import Limits
from .problems import Problem
from .strict_http import HeadLines


class Places:
    """The open connections of each address."""

    def __init__(self, limits: Limits, handshakes: Handshakes) -> None:
        self.limits, self.handshakes = limits, handshakes
        self._taken: Counter[str] = Counter()

    def take(self, address: str) -> bool:
        """Count one more, unless the limit is reached."""
        if self._taken[address] >= self.limits.connections_per_address:
            return False
        self._taken[address] += 1
        return True

    def leave(self, address: str) -> None:
        self._taken[address] -= 1
        if self._taken[address] <= 0:
            del self._taken[address]


class _Http(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, with a place for each connection, and a time for each head of a request."""

    def __init__(self, places: Places, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._places = places
        self._address: str | None = None
        self._head_timer: asyncio.TimerHandle | None = None
        self._lines = self.conn._receive_buffer = HeadLines()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        limits = self._places.limits
        self._places.handshakes.end(transport.get_extra_info("peername"))
        address = _address(transport)
        if self._places.take(address):
            self._address = address
            self._await_head()
        else:
            detail = f"{limits.connections_per_address} connections from {address} are open (connections_per_address)"
            self._refuse(Problem("limit", detail))

    def data_received(self, data: bytes) -> None:
        if self._address is None or self.transport.is_closing():
            return
        super().data_received(data)
        if self.transport.get_protocol() is not self:  # a WebSocket by now, which gives the place back
            self._address = None
            self._stop_timer()
        elif self._is_asked():
            self._stop_timer()
        elif self._head_timer is None and not self.transport.is_closing():
            self._await_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_asked() and self._head_timer is None and self.conn.trailing_data[0]:
            self._await_head()  # the next head has begun already

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._address is not None:
            self._places.leave(self._address)
            self._address = None
        super().connection_lost(exc)

    def _is_asked(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self._places.limits.header_seconds, self._out_of_time)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _out_of_time(self) -> None:
        self._head_timer = None
        if not self._is_asked() and not self.transport.is_closing():
            seconds = self._places.limits.header_seconds
            self._refuse(Problem("timeout", f"no request arrived within {seconds:g} s (header_seconds)"))

    def send_400_response(self, msg: str) -> None:
        """A request that cannot be read: what follows it cannot be read either, so the connection ends."""
        self._stop_timer()
        if self._is_asked() and self.cycle.response_started:
            self.transport.close()
            return
        found = self._lines.fault or f"the request is not HTTP/1.1: {sys.exc_info()[1] or msg}"
        self._refuse(Problem("bad-request", found))

    def _refuse(self, problem: Problem) -> None:
        body = msgspec.json.encode(problem.document("/"))
        head = (
            f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n"
            "content-type: application/problem+json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


class _WebSocket(WebSocketsSansIOProtocol):
    """A WebSocket as uvicorn speaks it; its connection keeps its place until it is lost."""

    def __init__(self, places: Places, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._places = places
        self._address: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._address = _address(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._address is not None:
            self._places.leave(self._address)
            self._address = None
        super().connection_lost(exc)


def _address(transport: asyncio.Transport) -> str:
    peer = transport.get_extra_info("peername")
    return str(peer[0]) if peer else ""


def guard(config: Config, limits: Limits, handshakes: Handshakes) -> None:
    """Make a server use these protocols, which end the ``handshakes``."""
    places = Places(limits, handshakes)
    config.load()
    config.http_protocol_class = partial(_Http, places)  # type: ignore[assignment]
    config.ws_protocol_class = partial(_WebSocket, places)  # type: ignore[assignment]
