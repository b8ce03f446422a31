"""Blocks of whole lines of a file: one after the other, or, if processes share them, each where it is wanted.

    0 ─────────── 4 MB ─────────── 8 MB ──▶       block 1 begins with the first line that begins at 4 MB or later
    a line⏎ a li│ne⏎ a line⏎ …

A block that nobody looks at is not read: neither its lines, nor their numbers, which another process knows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from etalis_py.streams.sources import LONGEST_LINE, OpenedInput, byte_blocks, count_lines, long_line, whole_lines

HELD = 1 << 25
"""The bytes of blocks of all sources that are merged: with what is made of it, each block takes ten times its size."""
LEAST = 1 << 18
"""The least bytes of a block, however many sources there are."""
_LOOK = 1 << 14
_COUNTED = 1 << 22
_MARK = b"\xef\xbb\xbf"

Lines = tuple[bytes, int]
"""The bytes of some lines, and the number of the first."""


class Block:
    """A block, which is read on demand.  ``place`` is its place in the file, or None for a part of a block."""

    __slots__ = ("_lines", "_read", "place")

    def __init__(self, read: Callable[[], Lines], place: int | None = None) -> None:
        self._read, self.place = read, place
        self._lines: Lines | None = None

    @staticmethod
    def of(lines: Lines, place: int | None = None) -> Block:
        """A block of lines that have been read."""
        return Block(lambda: lines, place)

    @property
    def lines(self) -> Lines:
        if self._lines is None:
            self._lines = self._read()
        return self._lines


def line_blocks(
    source: OpenedInput, size: int, *, apart: bool, among: int = 1, numbered: bool = True, returns: bool = False
) -> Iterator[Block]:
    """The blocks of a source; ``apart``: it is a file, and each block is read on demand.

    ``among``: how many sources are merged; those of many have smaller blocks, as each source holds one.

    ``numbered``: the numbers of lines are wanted, for which one has to count all lines before.  ``returns``: a carriage
    return alone ends a line, too.
    """
    if apart:
        yield from _Apart(source, size, numbered, returns).blocks()
        return
    size = min(size, max(HELD // among, LEAST))
    for place, lines in enumerate(whole_lines(source, byte_blocks(source, size), returns=returns)):
        if lines is not None:
            yield Block.of(lines, place)


class _Apart:
    """The blocks of a file by their places."""

    def __init__(self, source: OpenedInput, size: int, numbered: bool, returns: bool) -> None:
        self._name, self._size, self._numbered, self._returns = source.name, size, numbered, returns
        self._file = os.open(source.path, os.O_RDONLY)
        self._known = 0, 1  # the number of the line that begins at this place

    def blocks(self) -> Iterator[Block]:
        try:
            total = os.fstat(self._file).st_size
            begin = 0
            for place in range(-(-total // self._size)):
                end = self._next_line((place + 1) * self._size, total)
                if end > begin:
                    yield Block(lambda begin=begin, end=end: self._lines(begin, end), place)  # type: ignore[misc]
                    begin = end
        finally:
            os.close(self._file)

    def _next_line(self, place: int, total: int) -> int:
        """Where the first line begins that begins at this place or later."""
        at = place - 1
        while at < total:
            if at - place > LONGEST_LINE:
                raise long_line(self._name, self._number(place))
            data = os.pread(self._file, _LOOK, at)
            if (cut := data.find(b"\n")) >= 0:
                return at + cut + 1
            at += len(data)
        return total

    def _lines(self, begin: int, end: int) -> Lines:
        data = self._read(begin, end)
        number = self._number(begin) if self._numbered else 1
        return data[len(_MARK) :] if not begin and data.startswith(_MARK) else data, number

    def _number(self, place: int) -> int:
        """The number of the line that begins at a place."""
        at, number = self._known
        if place < at:
            at, number = 0, 1
        while at < place:
            data = self._read(at, min(place, at + _COUNTED))
            number += count_lines(data, returns=self._returns)
            at += len(data)
        self._known = place, number
        return number

    def _read(self, begin: int, end: int) -> bytes:
        parts = []
        while begin < end and (data := os.pread(self._file, end - begin, begin)):
            parts.append(data)
            begin += len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)
