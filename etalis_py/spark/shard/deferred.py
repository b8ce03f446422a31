"""The processor of a level as Spark gets it: it is plain data, and loads the engine only when the first rows come.

For each level of each run, Spark starts an interpreter on the driver only to ask the processor for its states.  That
takes a third of the time if the engine and pandas are not loaded.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle  # type: ignore[attr-defined]

from etalis_py.spark.state.executor_folder import executor_folder
from etalis_py.spark.state.store_layout import declared

if TYPE_CHECKING:
    import pandas as pd

    from etalis_py.spark.processes.worker_side import EnginesAsked
    from etalis_py.spark.shard.ship_background import Shipped
    from etalis_py.spark.shard.streaming import ShardProcessor


class Deferred(StatefulProcessor):
    """Makes a ``ShardProcessor`` for the first rows, or finds the engine process that has one, and calls it.

    ``work`` is an encoded ``streaming.Work``, broadcast if it is large.  It leaves out the backgrounds of the programs:
    they may be in broadcast variables, and Spark has to see those.  ``engines``: how many engine processes an
    executor has (0: its workers have the shards; None: as many as the machine has cores).
    """

    def __init__(self, work: bytes | Shipped, backgrounds: tuple[bytes | Shipped, ...], engines: int | None) -> None:
        self.work = work
        self.backgrounds = backgrounds
        self.engines = engines
        self._made: ShardProcessor | EnginesAsked | None = None

    def processor(self) -> ShardProcessor | EnginesAsked:
        executor, task = executor_folder(), TaskContext.get()
        if self.engines != 0 and executor is not None and task is not None and hasattr(socket, "AF_UNIX"):
            from etalis_py.spark.processes.starting import number_of
            from etalis_py.spark.processes.worker_side import EnginesAsked

            executor = executor.absolute()
            number = number_of(executor, task.partitionId(), self.engines or os.cpu_count() or 1)
            return EnginesAsked(self.work, self.backgrounds, executor, number)
        from etalis_py.spark.shard.ship_background import arrived
        from etalis_py.spark.shard.streaming import LevelTask, ShardProcessor

        return ShardProcessor(LevelTask.decoded(arrived(self.work), self.backgrounds))

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle, self._states = handle, declared(handle)

    def handleInitialState(self, key: Any, initialState: pd.DataFrame, timerValues: Any) -> None:
        self._opened.begin()

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        yield from self._opened.take(key, rows, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        yield from self._opened.wake(key, timerValues)

    def close(self) -> None:
        """Nothing to release: live engines stay for the next batch."""

    @property
    def _opened(self) -> ShardProcessor | EnginesAsked:
        if self._made is None:
            self._made = self.processor()
            self._made.open(self._handle, self._states)
        return self._made


__all__ = ["Deferred"]
