"""The processor of a level in a worker, as seen by ``shard.deferred``: everything is done by an engine process.

If that dies, the worker asks the next one, as long as nothing of the state has been written for the request.  After
that the task fails, and Spark runs it again from the state before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2s
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from etalis_py.spark.errors import SparkError
from etalis_py.spark.output.frames import as_frame
from etalis_py.spark.processes.messages import Answers, Ask, Channel, Done, Failed, Request
from etalis_py.spark.processes.starting import connected
from etalis_py.spark.shard.ship_background import Shipped, arrived
from etalis_py.spark.state.store_layout import States

if TYPE_CHECKING:
    import pandas as pd

ATTEMPTS = 2
"""How many processes are asked for the same rows."""
_READS = {"get", "work", "background"}
_OF_MANY = {"put"}


class EnginesAsked:
    """The shards of a level, in the engine process for this task's partition.

    ``work`` and ``backgrounds`` are as in ``Deferred``; ``executor``: the folder of the executor; ``number``: of the
    process.
    """

    def __init__(
        self, work: bytes | Shipped, backgrounds: Sequence[bytes | Shipped], executor: Path, number: int
    ) -> None:
        self.work = work
        self.backgrounds = {_digest(data): data for data in backgrounds if data}
        self._names = [_digest(data) if data else "" for data in backgrounds]
        self._digest = blake2s("".join([_digest(work), *self._names]).encode()).hexdigest()
        self._executor, self._number = executor, number

    def open(self, handle: Any, states: States) -> None:
        """Called before the first rows of a task."""
        self._has = {"handle": handle, "task": self, **states._asdict()}

    def begin(self) -> None:
        list(self._asked(Request(self._digest, "begin")))

    def take(self, key: Any, rows: Iterator[pd.DataFrame], timer_values: Any) -> Iterator[pd.DataFrame]:
        """Handle the rows of a group."""
        # All of them first: the process answers nobody else while it waits for rows.
        packed = [bytes(data) for frame in rows for data in frame["rows"]]
        watermark = timer_values.getCurrentWatermarkInMs()
        return map(as_frame, self._asked(Request(self._digest, "take", int(key[0]), watermark, packed)))

    def wake(self, key: Any, timer_values: Any) -> Iterator[pd.DataFrame]:
        """Handle a timer of a group."""
        watermark = timer_values.getCurrentWatermarkInMs()
        return map(as_frame, self._asked(Request(self._digest, "wake", int(key[0]), watermark)))

    # --- what the process asks ---

    def of_task(self) -> tuple[bytes, list[str]]:
        """The task of this level, and the digests of the backgrounds of its programs."""
        return arrived(self.work), self._names

    # --- requests ---

    def _asked(self, request: Request) -> list[pa.RecordBatch]:
        """The answers of the process.  They are all read at once, so that it is free for others."""
        for _ in range(ATTEMPTS):
            self._wrote = False
            try:
                with Channel(connected(self._executor, self._number)) as channel:
                    channel.send(request)
                    return list(self._served(channel))
            except (EOFError, ConnectionError):
                if self._wrote:
                    raise SparkError(self._died("after it had written some of its state")) from None
        raise SparkError(self._died(f"{ATTEMPTS} times in turn"))

    def _served(self, channel: Channel) -> Iterator[pa.RecordBatch]:
        while not isinstance(message := channel.message(), Done):
            match message:
                case Ask():
                    channel.send(self._reply(message))
                case Answers(data):
                    yield from pa.ipc.open_stream(data)
                case Failed(text, ""):
                    raise SparkError(text)
                case Failed(text, trace):
                    error = RuntimeError(text)
                    error.add_note(f"in the engine process {self._number} of this executor:\n{trace}")
                    raise error

    def _reply(self, asked: Ask) -> Any:
        if asked.of == "task":
            return self.of_task() if asked.method == "work" else arrived(self.backgrounds[asked.arguments[0]])
        self._wrote = self._wrote or asked.method not in _READS
        arguments = asked.arguments
        if asked.method in _OF_MANY:
            arguments = ([tuple(value) for value in arguments[0]],)
        elif asked.of != "handle":
            arguments = tuple(map(tuple, arguments))
        try:
            value = getattr(self._has[asked.of], asked.method)(*arguments)
            return value if value is None or isinstance(value, tuple) else list(value)
        except (EOFError, ConnectionError) as error:
            raise SparkError(
                "the connection of a worker to Spark's state is lost: Spark has ended the task, or its JVM has failed, "
                "as its log says: if it names OutOfMemoryError, raise spark.executor.memory (in local mode "
                "spark.driver.memory, before the session starts); the task can be run again, which local mode does "
                "only with a master as local[2,4]"
            ) from error

    def _died(self, when: str) -> str:
        return (
            f"the engine process {self._number} of this executor died {when}: if it was killed for lack of memory, "
            "raise spark.executor.memoryOverhead; the task can be run again"
        )


def _digest(data: bytes | Shipped) -> str:
    return data.digest if isinstance(data, Shipped) else blake2s(data).hexdigest()


__all__ = ["EnginesAsked"]
