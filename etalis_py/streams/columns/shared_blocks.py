"""Blocks of a file that other processes read: they hand over the events, in the flat form, in shared memory.

    file ──▶ reader 0: blocks 0, 2, 4 … ──▶ slots ──▶ consumers: block 0, 1, 2, 3 …
       └───▶ reader 1: blocks 1, 3, 5 … ──▶ slots ──┘

All processes go through the whole file, so each knows the number of every block and of its lines; only its reader takes
a block apart.  Each consumer reads by itself what is not usual: the beginning, until the clock of the stream is known,
and blocks with an error or with anything but events in columns.  So errors, and what is counted, are the same as
without readers.

Memory: a slot holds one block, and a reader waits until all consumers have had what was in its next slot.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from etalis_py.events.clock import MAX_TIME, MIN_TIME
from etalis_py.streams.columns.merge_in_order import Chunk
from etalis_py.streams.elements import StreamContext
from etalis_py.streams.line_blocks import Block

AHEAD = 6
"""The number of slots for each reader."""
_PAUSES = 0.0002, 0.004
"""The first pause of a wait, and the longest: each is twice the one before."""
_CHECKED = 0.2  # seconds between two looks at whether the others are still there

Read = Callable[[], Iterator[Chunk] | None]


@dataclass(frozen=True, slots=True)
class Taken:
    """What a reader says of a block: what it has counted, the earliest and the latest end, and its batches."""

    counted: tuple[int, ...] = ()
    earliest: int = MAX_TIME
    latest: int = MIN_TIME
    batches: Sequence[pa.RecordBatch] = ()

    def count(self, context: StreamContext) -> None:
        """Count its events as those of the stream."""
        context.counters.count(self.counted)
        context.earliest, context.latest = min(context.earliest, self.earliest), max(context.latest, self.latest)


class _Head(msgspec.Struct, array_like=True, gc=False):
    """What comes first in a slot; the sizes are those of the batches behind it.  None: read the block yourself."""

    counted: tuple[int, ...] = ()
    earliest: int = MAX_TIME
    latest: int = MIN_TIME
    sizes: list[int] | None = None


_HEAD = struct.Struct("<q")  # the size of the head
_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(_Head).decode


class SharedBlocks:
    """Made before the processes are forked; each then says what it is.

    ``check`` is called while one waits for long, and raises an error if nobody is left to wait for.
    """

    def __init__(self, readers: int, consumers: int) -> None:
        self._readers = readers
        self._reader: int | None = None
        self._consumer = 0
        self.check: Callable[[], object] = bool
        self._slots = [os.memfd_create("etalis-block") for _ in range(AHEAD * readers)]
        self._places = np.frombuffer(mmap.mmap(-1, 8 * consumers), np.int64)
        # Of each slot the number of its block plus one, and the size of what is in it.
        self._filled = np.frombuffer(mmap.mmap(-1, 16 * len(self._slots)), np.int64).reshape(-1, 2)

    @property
    def files(self) -> list[int]:
        """The open files that processes share."""
        return self._slots

    @property
    def is_reader(self) -> bool:
        """Whether this process only reads for others."""
        return self._reader is not None

    def become_reader(self, number: int, check: Callable[[], object]) -> None:
        self._reader, self.check = number, check

    def become_consumer(self, number: int, check: Callable[[], object]) -> None:
        self._consumer, self.check = number, check

    def close(self) -> None:
        for slot in self._slots:
            os.close(slot)
        self._slots = []

    def events(self, number: int, read: Read, context: StreamContext) -> Iterator[Chunk] | None:
        """The events of the block at a place, as ``events_of``."""
        taken = self.taken(number, read, context)
        if taken is None:
            return read()
        if taken.counted:
            taken.count(context)
        return iter(taken.batches)

    def taken(self, number: int, read: Read, context: StreamContext) -> Taken | None:
        """What a reader has made of the block at a place by ``read``; None if every process reads it by itself.

        In a reader it is nothing.
        """
        if context.times.clock is None or not self._slots:
            return None
        if self._reader is not None:
            if number % self._readers == self._reader:
                self._hand_over(number, read, context)
            return Taken()
        self._places[self._consumer] = number
        slot = number % len(self._slots)
        self._wait(lambda: int(self._filled[slot, 0]) == number + 1)
        return _unpacked(os.pread(self._slots[slot], int(self._filled[slot, 1]), 0))

    def _hand_over(self, number: int, read: Read, context: StreamContext) -> None:
        slot = number % len(self._slots)
        found = self._read(read, context)
        self._wait(lambda: int(self._places.min()) > number - len(self._slots))
        parts = _packed(found)
        size = sum(map(len, parts))
        os.ftruncate(self._slots[slot], size)
        written = 0
        while written < size:
            written += os.pwritev(self._slots[slot], _behind(parts, written), written)
        self._filled[slot, 1] = size
        self._filled[slot, 0] = number + 1

    @staticmethod
    def _read(read: Read, context: StreamContext) -> Taken | None:
        """A block, if it is usual."""
        before, told = replace(context.counters), _told(context)
        try:
            chunks = list(read() or [[]])
        except Exception:  # the consumers raise it, after the events before it
            return None
        counted = tuple(b - a for a, b in zip(astuple(before), astuple(context.counters), strict=True))
        odd = any(isinstance(chunk, list) for chunk in chunks) or _told(context) != told
        if odd or context.counters.errors != before.errors:
            return None
        batches = [chunk for chunk in chunks if isinstance(chunk, pa.RecordBatch)]
        return Taken(counted, context.earliest, context.latest, batches)

    def _wait(self, until: Callable[[], bool]) -> None:
        pause, longest = _PAUSES
        looked = time.monotonic()
        while not until():
            time.sleep(pause)
            pause = min(2 * pause, longest)
            if time.monotonic() - looked > _CHECKED:
                self.check()
                looked = time.monotonic()


def _told(context: StreamContext) -> tuple[str, int, int]:
    """What warnings of a stream are made of besides its counts."""
    return context.unmade, context.surplus, len(context.lists)


def events_of(block: Block, read: Read, context: StreamContext) -> Iterator[Chunk] | None:
    """The events of a block, which ``read`` reads unless another process has, or None if it returns None.

    There are none at all in a process that only reads for others.
    """
    shared = context.blocks
    return read() if shared is None or block.place is None else shared.events(block.place, read, context)


def _packed(taken: Taken | None) -> list[memoryview]:
    """The parts of what is in a slot."""
    batches = [memoryview(packed(batch)) for batch in (taken.batches if taken is not None else ())]
    head = _Head()
    if taken is not None:
        head = _Head(taken.counted, taken.earliest, taken.latest, list(map(len, batches)))
    data = _ENCODE(head)
    return [memoryview(_HEAD.pack(len(data)) + data), *batches]


def _unpacked(data: bytes) -> Taken | None:
    """What is in a slot, without another copy."""
    (size,) = _HEAD.unpack_from(data)
    place = _HEAD.size + size
    head = _DECODE(memoryview(data)[_HEAD.size : place])
    if head.sizes is None:
        return None
    whole, batches = pa.py_buffer(data), []
    for size in head.sizes:
        batches.append(unpacked(whole.slice(place, size)))
        place += size
    return Taken(head.counted, head.earliest, head.latest, batches)


def _behind(parts: Sequence[memoryview], place: int) -> list[memoryview]:
    """The parts from a place on."""
    rest = []
    for part in parts:
        if place < len(part):
            rest.append(part[place:])
        place = max(0, place - len(part))
    return rest


def packed(batch: pa.RecordBatch) -> pa.Buffer:
    """A record batch in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def unpacked(data: Any) -> pa.RecordBatch:
    """The record batch of these bytes, without a copy."""
    return pa.ipc.open_stream(data).read_next_batch()
