"""Messages between the server and its processes: MessagePack behind a length of four bytes, over a local socket."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import msgspec

_HEAD = 4
_ENCODER = msgspec.msgpack.Encoder()


def frame(message: object) -> bytes:
    """A message as sent over the socket."""
    body = _ENCODER.encode(message)
    return len(body).to_bytes(_HEAD, "big") + body


def receive(connection: socket.socket, decoder: msgspec.msgpack.Decoder[Any]) -> Any:
    """Wait for the next message; ``EOFError`` if the other side has gone."""
    return decoder.decode(_exactly(connection, int.from_bytes(_exactly(connection, _HEAD), "big")))


def receive_with(connection: socket.socket, decoder: msgspec.msgpack.Decoder[Any]) -> tuple[Any, socket.socket | None]:
    """Wait for the next message, and the socket that came with it, if any."""
    head, handles, _, _ = socket.recv_fds(connection, _HEAD, 1)
    if not head:
        raise EOFError
    given = socket.socket(fileno=handles[0]) if handles else None
    size = int.from_bytes(head + _exactly(connection, _HEAD - len(head)), "big")
    return decoder.decode(_exactly(connection, size)), given


def _exactly(connection: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view, filled = memoryview(data), 0
    while filled < size:
        count = connection.recv_into(view[filled:])
        if not count:
            raise EOFError
        filled += count
    return data


async def read(reader: asyncio.StreamReader, decoder: msgspec.msgpack.Decoder[Any]) -> Any:
    """The next message on the event loop; ``asyncio.IncompleteReadError`` if the other side has gone."""
    size = int.from_bytes(await reader.readexactly(_HEAD), "big")
    return decoder.decode(await reader.readexactly(size))


def split(buffer: bytearray, decoder: msgspec.msgpack.Decoder[Any]) -> list[Any]:
    """Remove and return the complete messages received so far."""
    messages = []
    while len(buffer) >= _HEAD and len(buffer) >= (end := _HEAD + int.from_bytes(buffer[:_HEAD], "big")):
        messages.append(decoder.decode(buffer[_HEAD:end]))
        del buffer[:end]
    return messages
