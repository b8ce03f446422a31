"""An engine process: answers one worker after the other, and keeps the live shards between their requests.

    python -m etalis_py.spark.processes.engine_process SOCKET DAEMON READY

``SOCKET`` is where it listens, ``READY`` a descriptor to which it writes a byte once it does.  It ends with the process
``DAEMON``, which started the workers, and when nobody has asked for anything for a while.  Spark's daemon also ends
all of its process group.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from etalis_py.spark.errors import is_ours
from etalis_py.spark.processes.messages import Answers, Ask, Channel, Done, Failed, Request
from etalis_py.spark.processes.starting import locked
from etalis_py.spark.shard.ship_background import Shipped
from etalis_py.spark.shard.streaming import LevelTask, ShardProcessor
from etalis_py.spark.state.store_layout import States

IDLE = 600.0
"""Seconds without a request after which a process ends."""
MOST_TASKS = 64
"""The tasks, levels of streams, that a process remembers."""


class FromWorker(Shipped):
    """A background that the worker of the current request has, or can get from Spark."""

    __slots__ = ()

    @property
    def data(self) -> bytes:
        fetch: Callable[[str], bytes] = self.variable
        return fetch(self.digest)


class StateOfWorker:
    """A state of the current group, read and written by the worker; see ``store_layout`` for the methods of each."""

    def __init__(self, channel: Channel, name: str) -> None:
        self._channel, self._name = channel, name

    def get(self) -> Any:
        return self._asked("get")

    def update(self, value: tuple[Any, ...]) -> None:
        self._asked("update", value)

    def put(self, values: list[tuple[Any, ...]]) -> None:
        self._asked("put", values)

    def appendValue(self, value: tuple[Any, ...]) -> None:
        self._asked("appendValue", value)

    def clear(self) -> None:
        self._asked("clear")

    def registerTimer(self, milliseconds: int) -> None:
        self._asked("registerTimer", milliseconds)

    def _asked(self, method: str, *arguments: Any) -> Any:
        self._channel.send(Ask(self._name, method, arguments))
        return self._channel.value()


class Watermark:
    """The timer values of a request."""

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds

    def getCurrentWatermarkInMs(self) -> int:
        return self._milliseconds


class EngineProcess:
    """The processors of the tasks that workers have asked for."""

    def __init__(self) -> None:
        self._processors: OrderedDict[str, ShardProcessor] = OrderedDict()
        self._channel: Channel | None = None

    def answer(self, channel: Channel) -> None:
        """Answer the request of a worker.  If that one is gone, its task has failed, and its answers are for nobody."""
        self._channel = channel
        with suppress(EOFError, OSError):
            request = channel.request()
            try:
                for batch in self._batches(channel, request):
                    channel.send(Answers(_as_stream(batch)))
            except (EOFError, OSError):
                raise
            except Exception as error:
                channel.send(_failed(error))
            else:
                channel.send(Done())

    def _batches(self, channel: Channel, request: Request) -> Iterator[pa.RecordBatch]:
        processor = self._processor(channel, request.work)
        states = States(*(StateOfWorker(channel, name) for name in States._fields))
        processor.open(StateOfWorker(channel, "handle"), states)
        if request.does == "begin":
            processor.begin()
            return
        key, watermark = (request.slot,), Watermark(request.watermark)
        if request.does == "take":
            yield from processor.taken(key, request.rows, watermark)
        else:
            yield from processor.woken(key, watermark)

    def _processor(self, channel: Channel, digest: str) -> ShardProcessor:
        found = self._processors.pop(digest, None)
        if found is None:
            channel.send(Ask("task", "work"))
            data, backgrounds = channel.value()
            shipped = tuple(FromWorker(name, self._background) if name else b"" for name in backgrounds)
            found = ShardProcessor(LevelTask.decoded(data, shipped))
        self._processors[digest] = found
        if len(self._processors) > MOST_TASKS:
            self._processors.popitem(last=False)
        return found

    def _background(self, digest: str) -> bytes:
        assert self._channel is not None, "a background is only read while a request is answered"
        self._channel.send(Ask("task", "background", (digest,)))
        data: bytes = self._channel.value()
        return data


def _as_stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _failed(error: Exception) -> Failed:
    if is_ours(error):
        return Failed(str(error), "")
    return Failed(f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)))


def serve(path: Path, daemon: int, ready: int, idle: float = IDLE) -> None:
    """Answer requests at a socket until nobody needs the process any more."""
    process = EngineProcess()
    with socket.socket(socket.AF_UNIX) as listener:
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        listener.bind(str(fresh))
        listener.listen(128)
        own = fresh.stat().st_ino
        fresh.rename(path)  # nobody connects before it listens
        os.write(ready, b"+")
        os.close(ready)
        try:
            last = time.monotonic()
            while _alive(daemon) and _is_there(path, own) and time.monotonic() < last + idle:
                if select.select([listener], [], [], 1.0)[0]:
                    with Channel(listener.accept()[0]) as channel:
                        process.answer(channel)
                    last = time.monotonic()
        finally:
            _clear(path, own)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # the number belongs to another user's process by now
    return True


def _is_there(path: Path, inode: int) -> bool:
    try:
        return path.stat().st_ino == inode
    except FileNotFoundError:
        return False


def _clear(path: Path, inode: int) -> None:
    """Remove the socket, and the folder after its last one."""
    with suppress(FileNotFoundError), locked(path.parent):
        if _is_there(path, inode):
            path.unlink()
        with suppress(OSError):  # it is not empty: others are at work
            path.parent.rmdir()


def _end(signal_number: int, frame: object) -> None:
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the daemon sends it twice, and the socket is to be removed
    sys.exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, _end)
    signal.signal(signal.SIGTERM, _end)
    serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
