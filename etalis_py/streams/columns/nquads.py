"""N-Quads → the flat form, a block of lines at a time.

The lines of elements that are not complete at the end of a block are read again with the next one, which is then at
least as long, so each line is read twice on average at most.  Blocks that another process has read: see ``seams``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from etalis_py.events.errors import StreamError
from etalis_py.streams.blanks import DocumentScope
from etalis_py.streams.columns.elements import Elements, Watched
from etalis_py.streams.columns.lines import cut, usual_lines
from etalis_py.streams.columns.merge_in_order import Chunk
from etalis_py.streams.columns.seams import OpenLines, joined, read_by_itself
from etalis_py.streams.documents import Document, document_events
from etalis_py.streams.elements import StreamContext, in_lists
from etalis_py.streams.line_blocks import Block, line_blocks
from etalis_py.streams.quads import Quad
from etalis_py.streams.sources import OpenedInput

BLOCK = 1 << 22
_FEW = 64  # lines of the first block, which decides the clock of the stream


def nquads_chunks(
    source: OpenedInput, scope: DocumentScope, context: StreamContext, messages: bool | None
) -> Iterator[Chunk]:
    """The events of an N-Quads document, in order."""
    return _Reader(source, scope, context, messages).chunks()


class _Reader:
    """One document.  ``rest`` has been read but not cut, from line ``number`` on; ``open`` waits for more lines."""

    def __init__(
        self, source: OpenedInput, scope: DocumentScope, context: StreamContext, messages: bool | None
    ) -> None:
        apart, among = context.blocks is not None, context.among
        self._blocks = line_blocks(source, BLOCK, apart=apart, among=among, numbered=False, returns=True)
        self._scope, self._context, self._messages = scope, context, messages
        self._document = Document(context)
        self._watched = Watched(context.timing)
        self._parts: list[bytes] = []  # of the rest, to be cut next
        self._number = 1
        self._open: OpenLines = b"", np.empty(0, np.int64)
        self._quads: Iterator[Quad] = iter(())  # of the open lines, unless another process has told of these
        self._is_handed_over = False
        self._few = _FEW
        self._errors: list[StreamError] = []  # in lines that are not cut yet

    def chunks(self) -> Iterator[Chunk]:
        """The events, to the end."""
        for block in self._blocks:
            chunks = self._handed_over(block)
            yield from self._own(block) if chunks is None else chunks
        if self._context.reads_ahead:
            return
        if self._parts or self._is_handed_over:
            yield from self._grouped()
        for error in self._errors:  # in a last line without a line break
            self._context.report(error)
        yield from in_lists(document_events(self._quads, self._context, self._document))

    # --- blocks that this process reads ---

    def _own(self, block: Block) -> Iterator[Chunk]:
        """The events of a block: at least as many bytes are cut as those that are read again."""
        number = self._number + sum(part.count(b"\n") for part in self._parts)
        rest = usual_lines(block.lines[0], number, self._errors.append)
        while rest:
            size = len(rest)
            if self._context.times.clock is None:
                size = _after(rest, self._few)
                self._few *= 2
            self._parts.append(rest[:size])
            rest = rest[size:]
            if sum(map(len, self._parts)) > len(self._open[0]):
                yield from self._grouped()

    def _grouped(self) -> Iterator[Chunk]:
        """The events of the parts."""
        held, numbers = self._open
        lines, self._number = cut((held, *self._parts), numbers, self._number, self._messages)
        self._parts = []
        if self._errors:
            lines.errors = sorted(lines.errors + self._errors, key=lambda error: error.line)
            before = sum(error.line < self._number for error in lines.errors)
            lines.errors, self._errors = lines.errors[:before], lines.errors[before:]
        elements = Elements(lines, self._watched, self._document, self._scope)
        yield from elements.chunks()
        self._open = elements.open_lines()
        self._quads = elements.open_quads()
        self._is_handed_over = False

    # --- blocks that other processes read ---

    def _handed_over(self, block: Block) -> Iterator[Chunk] | None:
        """The events of a block that another process has read, or None."""
        context = self._context
        if context.blocks is None or block.place is None:
            return None
        taken = context.blocks.taken(block.place, lambda: self._by_itself(block), context)
        if taken is None or self._parts or self._document.untimed:
            return None
        if context.reads_ahead:
            return iter(())
        block_after = joined(taken, self._open[0], self._document, self._scope, self._messages)
        if block_after is None:
            return None
        held, numbers = block_after.open
        self._open, self._is_handed_over = (held, numbers + (self._number - 1)), True
        self._number += block_after.lines
        return block_after.chunks

    def _by_itself(self, block: Block) -> Iterator[Chunk]:
        """What other processes get of a block."""
        return read_by_itself(block.lines[0], self._watched, self._scope, self._context, self._messages)


def _after(lines: bytes, count: int) -> int:
    """The place after some lines."""
    place = 0
    for _ in range(count):
        place = lines.find(b"\n", place) + 1
        if not place:
            return len(lines)
    return place
