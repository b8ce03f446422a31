"""``wss://host/path`` as a sink: each match a frame of plain JSON, at least once.

The matches of one portion are followed by a ping: its answer says that the server has read everything before it.
Without an answer the connection is made again and the portion is repeated, five times and ever more slowly.  A token in
``WEBSOCKET_TOKEN`` goes along as ``Authorization: Bearer``.  Needs websockets: the extra ``websocket``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from etalis_py.connectors.posting import Posting
from etalis_py.connectors.registry import Request
from etalis_py.connectors.websocket import WebSocket, is_address
from etalis_py.events.errors import SinkError
from etalis_py.streams.retries import TRIES, pauses

_PATIENCE, _LOOK = 10.0, 0.05


class WebSocketSink(Posting):
    """One connection, made when the first match leaves."""

    longest = _PATIENCE * TRIES + sum(pauses())

    def __init__(self, address: str, sleep: Callable[[float], None] = time.sleep) -> None:
        super().__init__()
        self._socket, self._sleep = WebSocket(address, sink=True), sleep
        self.name = self._socket.name

    def post(self, records: Sequence[dict[str, Any]]) -> None:
        asked, self.longest = 0.0, WebSocketSink.longest
        for pause in pauses():
            if wait := max(pause, asked):
                self._sleep(wait)
            asked = 0.0
            try:
                connection = self._socket.connection()
                for record in records:
                    connection.send(msgspec.json.encode(record).decode())
                if self._answered(connection):
                    return
                self.problem = "the server does not answer a ping"
            except self._socket.errors as error:
                self.problem = str(error) or type(error).__name__
                asked = self._socket.asked_pause(error)
                self.longest += asked
            self._socket.drop()
        raise SinkError(
            f"a match could not be sent: {self.problem}",
            target=self.name,
            hint="check the address, and WEBSOCKET_TOKEN; with --checkpoint the run goes on with this match",
        )

    def _answered(self, connection: Any) -> bool:
        """Whether the server answers a ping while the connection is open."""
        pong, end = connection.ping(), time.monotonic() + _PATIENCE
        while not pong.wait(_LOOK):
            if connection.protocol.state.name != "OPEN" or time.monotonic() > end:
                return False
        return True

    def close(self) -> None:
        self._socket.drop()


def open_sink(address: str, request: Request) -> WebSocketSink:
    if not is_address(address):
        raise SinkError("this is not the address of a WebSocket", target=address, hint="write wss://host/path")
    return WebSocketSink(address)
