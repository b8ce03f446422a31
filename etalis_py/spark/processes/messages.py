"""What a Python worker of Spark and an engine process tell each other, over a local socket.

The worker sends a ``Request``.  The process answers with any number of ``Ask``, each of which the worker replies to
with a value, and of ``Answers``; it ends with ``Done`` or ``Failed``.  Messages are MessagePack behind their length;
rows and answers within them are Arrow streams, as Spark's rows are already packed.
"""

from __future__ import annotations

import socket
from operator import index
from struct import Struct
from types import TracebackType
from typing import Any, Literal

import msgspec

_LENGTH = Struct(">Q")


class Request(msgspec.Struct, frozen=True):
    """Rows for a shard, a timer of it, or its beginning; ``work`` is the digest of the task that it belongs to."""

    work: str
    does: Literal["begin", "take", "wake"]
    slot: int = 0
    watermark: int = 0
    rows: list[bytes] = []


class Ask(msgspec.Struct, frozen=True, tag=True):
    """A question to the worker: a method of something that it has."""

    of: str
    method: str
    arguments: tuple[Any, ...] = ()


class Answers(msgspec.Struct, frozen=True, tag=True):
    """A record batch of answers, as an Arrow stream."""

    data: bytes


class Done(msgspec.Struct, frozen=True, tag=True):
    """All answers are sent, and the state is written."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """An error, and where it happened: "" for one that says to users what is wrong."""

    message: str
    trace: str


Message = Ask | Answers | Done | Failed
_REQUESTS = msgspec.msgpack.Decoder(Request)
_MESSAGES = msgspec.msgpack.Decoder(Message)
_VALUES: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder()


class Channel:
    """One end of a connection.  ``EOFError`` or another ``OSError`` means that the other end is gone."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._file = connection.makefile("rb")

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
        self._connection.close()

    def send(self, message: Any) -> None:
        # In PySpark 4.0 the numbers of a state are NumPy's.
        data = msgspec.msgpack.encode(message, enc_hook=index)
        self._connection.sendall(_LENGTH.pack(len(data)))
        self._connection.sendall(data)

    def request(self) -> Request:
        return _REQUESTS.decode(self._received())

    def message(self) -> Message:
        message: Message = _MESSAGES.decode(self._received())
        return message

    def value(self) -> Any:
        return _VALUES.decode(self._received())

    def _received(self) -> bytes:
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return self._read(length)

    def _read(self, length: int) -> bytes:
        data = self._file.read(length)
        if len(data) < length:
            raise EOFError
        return data


__all__ = ["Answers", "Ask", "Channel", "Done", "Failed", "Message", "Request"]
