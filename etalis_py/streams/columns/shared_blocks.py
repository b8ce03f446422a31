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
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple, replace

import msgspec
import numpy as np
import pyarrow as pa

from etalis_py.streams.columns.merge_in_order import Chunk
from etalis_py.streams.elements import Counters, StreamContext
from etalis_py.streams.line_blocks import Block

AHEAD = 6
"""The number of slots for each reader."""
_PAUSES = 0.0002, 0.004
"""The first pause of a wait, and the longest: each is twice the one before."""
_CHECKED = 0.2  # seconds between two looks at whether the others are still there

Read = Callable[[], Iterator[Chunk] | None]


class _Read(msgspec.Struct, array_like=True, gc=False):
    """What a reader says of a block: what it has counted, the latest end, and its batches; None: read it yourself."""

    counted: tuple[int, ...] = ()
    latest: int = 0
    batches: list[bytes] | None = None


_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(_Read).decode


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
        if context.times.clock is None or not self._slots:
            return read()
        if self._reader is not None:
            if number % self._readers == self._reader:
                self._hand_over(number, read, context)
            return iter(())
        self._places[self._consumer] = number
        self._wait(lambda: int(self._filled[number % len(self._slots), 0]) == number + 1)
        slot = number % len(self._slots)
        found = _DECODE(os.pread(self._slots[slot], int(self._filled[slot, 1]), 0))
        if found.batches is None:
            return read()
        counted = zip(astuple(context.counters), found.counted, strict=True)
        for name, (before, more) in zip(Counters.__slots__, counted, strict=True):
            setattr(context.counters, name, before + more)
        context.latest = max(context.latest, found.latest)
        return map(unpacked, found.batches)

    def _hand_over(self, number: int, read: Read, context: StreamContext) -> None:
        slot = number % len(self._slots)
        found = self._read(read, context)
        self._wait(lambda: int(self._places.min()) > number - len(self._slots))
        data = _ENCODE(found)
        os.ftruncate(self._slots[slot], len(data))
        written = 0
        while written < len(data):
            written += os.pwrite(self._slots[slot], memoryview(data)[written:], written)
        self._filled[slot, 1] = len(data)
        self._filled[slot, 0] = number + 1

    @staticmethod
    def _read(read: Read, context: StreamContext) -> _Read:
        """A block, if it is usual."""
        before, unmade = replace(context.counters), context.unmade
        try:
            chunks = list(read() or [[]])
        except Exception:  # the consumers raise it, after the events before it
            return _Read()
        counted = tuple(b - a for a, b in zip(astuple(before), astuple(context.counters), strict=True))
        odd = any(isinstance(chunk, list) for chunk in chunks) or context.unmade != unmade
        if odd or context.counters.errors != before.errors:
            return _Read()
        return _Read(counted, context.latest, list(map(packed, chunks)))

    def _wait(self, until: Callable[[], bool]) -> None:
        pause, longest = _PAUSES
        looked = time.monotonic()
        while not until():
            time.sleep(pause)
            pause = min(2 * pause, longest)
            if time.monotonic() - looked > _CHECKED:
                self.check()
                looked = time.monotonic()


def events_of(block: Block, read: Read, context: StreamContext) -> Iterator[Chunk] | None:
    """The events of a block, which ``read`` reads unless another process has, or None if it returns None.

    There are none at all in a process that only reads for others.
    """
    shared = context.blocks
    return read() if shared is None or block.place is None else shared.events(block.place, read, context)


def packed(batch: pa.RecordBatch) -> bytes:
    """A record batch in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpacked(data: bytes) -> pa.RecordBatch:
    """The record batch of these bytes, without a copy."""
    return pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()
