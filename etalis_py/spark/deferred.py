"""The processor of a level as Spark gets it: packed until the first rows come.

For each level of each run Spark starts an interpreter on the driver that asks the processor for its states and for
nothing else.  Without the engine and pandas, which it has no use for, that takes a third of the time.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle  # type: ignore[attr-defined]

from etalis_py.spark.states import declared

if TYPE_CHECKING:
    import pandas as pd

    from etalis_py.spark.streaming import ShardProcessor


class Deferred(StatefulProcessor):
    """Calls a ``ShardProcessor``, which may be packed."""

    def __init__(self, processor: ShardProcessor | bytes) -> None:
        self._given = processor
        self._unpacked: ShardProcessor | None = None

    def __reduce__(self) -> tuple[type[Deferred], tuple[bytes]]:
        # Packed no sooner than Spark packs the rest, which is when it notes the broadcast variables that are used.
        return Deferred, (self._given if isinstance(self._given, bytes) else cloudpickle.dumps(self._given),)  # type: ignore[no-untyped-call]

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle, self._states = handle, declared(handle)

    def handleInitialState(self, key: Any, initialState: pd.DataFrame, timerValues: Any) -> None:
        self._processor.begin()

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        yield from self._processor.take(key, rows, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        yield from self._processor.wake(key, timerValues)

    def close(self) -> None:
        """Nothing to give back: live engines stay for the next batch."""

    @property
    def _processor(self) -> ShardProcessor:
        if self._unpacked is None:
            given = self._given
            self._unpacked = pickle.loads(given) if isinstance(given, bytes) else given
            self._unpacked.open(self._handle, self._states)
        return self._unpacked


__all__ = ["Deferred"]
