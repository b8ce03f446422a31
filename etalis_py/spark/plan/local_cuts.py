"""Measures a batch from files on this machine, without a Spark query, to find where to cut it and which keys are hot.

Keys are counted at the beginnings of some pieces of the files.  For a small batch, all ends are read; for a large one,
only what the files state about their pieces: the first and last end and the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from etalis_py.spark.input.arrow_filters import Test, asked_by, keys_in, looked_at
from etalis_py.spark.input.local_files import NEVER, FileReader, LocalFiles
from etalis_py.spark.plan.cut_points import ENOUGH
from etalis_py.spark.plan.parts import RoutedPart

MOST_ROWS = 1 << 18
"""In larger batches, ends are only estimated if there are enough pieces (``_PIECES`` for each slice)."""
MOST_IN_FEW = 1 << 22
"""In larger batches, ends are always estimated, however few the pieces."""
SAMPLED_ROWS = 1 << 18
"""The number of rows in which keys are counted."""
_PIECES = 2  # so many pieces per slice are enough to estimate the ends by
_SAMPLED = 64  # the number of pieces in which keys are counted
_POINTS = 64  # the number of sample times per piece, if ends are estimated


class LookedUp:
    """Measurements from the files of a batch."""

    def __init__(
        self, files: LocalFiles, parts: Sequence[RoutedPart], slices: int, keyed: Sequence[RoutedPart]
    ) -> None:
        self._reader = FileReader(files)
        self._parts = parts
        self._slices = slices
        self._keyed = keyed
        self._names = sorted({"end", *(name for routed in parts for name in looked_at(routed))})
        self._rows = sum(group.rows for group in self._reader.groups)

    def begins(self) -> list[int]:
        most = MOST_ROWS if len(self._reader.groups) >= _PIECES * self._slices else MOST_IN_FEW
        ends, weights = self._told() if self._rows > most else self._ends()
        if not len(ends):
            return []
        order = np.argsort(ends, kind="stable")
        ends, until = ends[order], np.cumsum(weights[order])
        cuts = ends[np.searchsorted(until, until[-1] * np.arange(1, self._slices) / self._slices, side="right")]
        return sorted({int(begin) for begin in cuts if begin > ends[0]})

    def hot(self, shards: int) -> set[int]:
        if not self._keyed:
            return set()
        groups = self._reader.groups[:: -(-len(self._reader.groups) // _SAMPLED) or 1]
        size = SAMPLED_ROWS // max(1, len(groups))
        found = self._reader.beginnings(groups, self._names, size)
        batches = [_filtered(rows, asked_by(rows, self._parts)) for rows in found]
        sampled = sum(map(len, batches))
        if sampled < ENOUGH:
            return set()
        return {routed.part.number for routed in self._keyed if _times(batches, routed) * shards > sampled}

    def _ends(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The end of each row that is asked for."""
        batches = self._reader.batches(self._reader.groups, self._names)
        ends = [_filtered(rows, asked_by(rows, self._parts)).column("end").drop_null().to_numpy() for rows in batches]
        every = np.concatenate(ends) if ends else np.zeros(0, np.int64)
        return every, np.ones(len(every))

    def _told(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Estimate the distribution of ends from what the files state: sample times, and the rows each stands for.

        The times of a piece (a row group) are spread evenly from its first to its last end.
        """
        known = [group for group in self._reader.groups if group.first > NEVER]
        ends = [np.linspace(group.first, group.last, _POINTS).astype(np.int64) for group in known]
        weights = [np.full(_POINTS, group.rows / _POINTS) for group in known]
        return (np.concatenate(ends), np.concatenate(weights)) if known else (np.zeros(0, np.int64), np.zeros(0))


def _filtered(rows: pa.RecordBatch, test: Test) -> pa.RecordBatch:
    return rows if test is None else rows.filter(test)


def _times(batches: Sequence[pa.RecordBatch], routed: RoutedPart) -> int:
    """The number of rows with the most frequent key of a part."""
    keys = pa.chunked_array([keys_in(rows, routed).cast(pa.string()) for rows in batches], pa.string()).drop_null()
    times: int = pc.max(pc.value_counts(keys).field("counts")).as_py() or 0
    return times


__all__ = ["LookedUp"]
