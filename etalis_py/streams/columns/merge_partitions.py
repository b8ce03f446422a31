"""Merges the partitions of a topic in order of time, in columns: in the same order as ``streams.waiting`` in rows.

An event that is earlier than the one before it in its partition comes right after that one, so the events lie in the
order of the latest time so far among those that wait in their partition.

>>> from etalis_py.events import event
>>> from etalis_py.streams.columns.flat_form import batch_of
>>> held = HeldColumns()
>>> held.add(batch_of(event(":a :p 1", n) for n in (1, 3, 2)), [(0, n, 0) for n in range(3)])
>>> held.add(batch_of([event(":a :p 2", 3)]), [(1, 0, 0)])
>>> held.take({0, 1})[1].tolist(), len(held)
([[0, 0, 0], [0, 1, 0], [0, 2, 0]], 1)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa

from etalis_py.streams.columns.flat_form import event_starts
from etalis_py.streams.columns.same_columns import (
    one_after_another,
    with_all_columns,
    without_idle_columns,
    without_unused_terms,
)
from etalis_py.streams.partitions import Places


class HeldColumns:
    """Events that wait for those of other partitions.  State: their columns, and the place behind each of them."""

    def __init__(self) -> None:
        self._batch: pa.RecordBatch | None = None
        self._places = np.zeros((0, 3), np.int64)  # of each row: partition, offset, how many events of the message
        self._key = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._key)

    def counts(self) -> Counter[int]:
        """The number of triples that wait, by partition."""
        numbers, counts = np.unique(self._places[:, 0], return_counts=True)
        return Counter(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))

    def add(self, batch: pa.RecordBatch, places: Places) -> None:
        """Hold events of a batch in the flat form; ``places`` has the place behind each event."""
        if not len(batch):
            return
        starts = event_starts(batch)
        rows = np.array(places, np.int64)[np.cumsum(starts) - 1]
        key = np.asarray(batch.column("end")).copy()
        for number in np.unique(rows[:, 0]):
            own = rows[:, 0] == number
            before = self._key[self._places[:, 0] == number]
            least = before[-1:] if len(before) else key[own][:1]
            key[own] = np.maximum(np.maximum.accumulate(key[own]), least)
        batch = with_all_columns(batch)
        self._batch = batch if self._batch is None else one_after_another((self._batch, batch))
        self._places, self._key = np.concatenate((self._places, rows)), np.concatenate((self._key, key))

    def take(
        self, open: Collection[int], at_end: Collection[int] = (), up_to: int = 0
    ) -> tuple[pa.RecordBatch, Any] | None:
        """The events that come next, while more may come in the ``open`` partitions.

        Those ``at_end`` are open for what comes after the time ``up_to``.
        """
        if self._batch is None:
            return None
        number, key = self._places[:, 0], self._key
        sure = np.ones(len(key), np.bool_)
        for one in (*open, *at_end):
            own = np.flatnonzero(number == one)
            if not len(own) and one not in at_end:
                return None
            before = key <= up_to if one in at_end else np.zeros(len(key), np.bool_)
            if len(own):
                last = key[own[-1]]
                before |= (key < last) | ((key == last) & (number <= one))
            sure &= before
        chosen = np.flatnonzero(sure)
        if not len(chosen):
            return None
        return self._given(chosen[np.lexsort((number[chosen], key[chosen]))], np.flatnonzero(~sure))

    def take_all(self) -> tuple[pa.RecordBatch, Any]:
        """All events, of which there are some, as they came."""
        return self._given(np.arange(len(self)), np.zeros(0, np.int64))

    def _given(self, chosen: Any, rest: Any) -> tuple[pa.RecordBatch, Any]:
        batch, places = self._batch, self._places
        assert batch is not None
        given = batch.take(pa.array(chosen)) if len(rest) or (np.diff(chosen) != 1).any() else batch
        starts = event_starts(given)
        behind = places[chosen[starts]]
        self._batch = without_unused_terms(batch.take(pa.array(rest))) if len(rest) else None
        self._places, self._key = places[rest], self._key[rest]
        return without_idle_columns(given, bool(starts.all())), behind


__all__ = ["HeldColumns"]
