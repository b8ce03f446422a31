"""Merges finite streams in columns: their items in the same order as ``merging.in_turn`` gives them in rows.

Each stream has a head: what it has given and has not been merged yet.  The heads are sure up to the end of the one
that ends first; only then its stream is asked for more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from etalis_py.events import Event
from etalis_py.streams.columns.flat_form import batch_of, event_starts, events_of
from etalis_py.streams.columns.merge_in_order import Chunk
from etalis_py.streams.columns.same_columns import (
    one_after_another,
    with_all_columns,
    without_idle_columns,
    without_unused_terms,
)
from etalis_py.streams.elements import Item, in_lists
from etalis_py.streams.merging import in_turn
from etalis_py.streams.positions import Order

AT_ONCE = 1 << 14
"""The events of a stream that is read in rows which are merged together."""
_FEW = 4
"""A dictionary with so many times the terms that a piece has rows is made anew for the piece."""


def merge_streams(given: Iterable[Iterator[Chunk]], order: Order) -> Iterator[Chunk]:
    """The items of the streams; from the first punctuation or correction on in rows, where these have their places."""
    heads = [_Head(chunks) for chunks in given]
    while True:
        for head in heads:
            head.fill()
        if any(head.signals for head in heads):
            yield from in_lists(in_turn((head.items() for head in heads), order))
            return
        if all(head.is_over for head in heads):
            return
        yield _sure(heads, order)


class _Head:
    """What one stream gives next.  State: a batch, of which the first rows are given; or ``signals``, items of which
    one has no form in columns.

    An event that is earlier than the one before it comes right after that one, so ``times`` never fall.
    """

    def __init__(self, chunks: Iterator[Chunk]) -> None:
        self.signals: list[Item] = []
        self.is_over = False
        self.times = np.zeros(0, np.int64)
        self._chunks = chunks
        self._batch: pa.RecordBatch | None = None
        self._given = 0

    def fill(self) -> None:
        """Ask the stream for more, if nothing is left of what it gave."""
        while self._given == len(self.times) and not self.is_over and not self.signals:
            chunk = next(self._chunks, None)
            if chunk is None:
                self.is_over = True
            elif not isinstance(chunk, list):
                self._hold(chunk)
            elif all(type(item) is Event and item.triples for item in chunk):
                self._hold(batch_of(chunk))  # type: ignore[arg-type]
            else:
                self.signals = chunk

    def _hold(self, batch: pa.RecordBatch) -> None:
        if not len(batch):
            return
        ends = np.asarray(batch.column("end"))
        latest = self.times[-1] if self.times.size else ends[0]
        self.times = np.maximum(np.maximum.accumulate(ends), latest)
        self._batch, self._given = with_all_columns(batch), 0

    def take(self, up_to: int, *, with_ties: bool) -> tuple[pa.RecordBatch, object] | None:
        """The rows up to a time, and their times; ``with_ties``: also those of that time.  None if there are none."""
        end = int(np.searchsorted(self.times, up_to, "right" if with_ties else "left"))
        begin, self._given = self._given, max(end, self._given)
        if end <= begin:
            return None
        assert self._batch is not None
        piece = self._batch.slice(begin, end - begin)
        if any(_FEW * len(piece) < len(column.dictionary) for column in piece.columns[2:-1]):
            piece = without_unused_terms(piece)
        return piece, self.times[begin:end]

    def items(self) -> Iterator[Item]:
        """Everything that is left, one by one."""
        if self._batch is not None:
            yield from events_of(self._batch.slice(self._given))
        yield from self.signals
        for chunk in self._chunks:
            yield from chunk if isinstance(chunk, list) else events_of(chunk)


def _sure(heads: Sequence[_Head], order: Order) -> pa.RecordBatch:
    """The rows before which nothing can come any more, in order."""
    up_to, first = min((int(head.times[-1]), number) for number, head in enumerate(heads) if not head.is_over)
    taken = [(number, head.take(up_to, with_ties=number <= first)) for number, head in enumerate(heads)]
    parts = [(number, *piece) for number, piece in taken if piece is not None]
    batch = one_after_another([piece for _, piece, _ in parts])
    numbers = np.repeat([number for number, *_ in parts], [len(piece) for _, piece, _ in parts])
    if len(parts) > 1:
        places = np.argsort(np.concatenate([times for *_, times in parts]), kind="stable")
        batch, numbers = batch.take(pa.array(places)), numbers[places]
    starts = event_starts(batch)
    if order.active:
        for number in numbers[starts].tolist():
            order.given(number)
    return without_idle_columns(batch, bool(starts.all()))
