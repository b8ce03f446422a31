"""N-Quads → the flat form, a block of lines at a time.

The lines of elements that are not complete at the end of a block are read again with the next one, which is then at
least as long, so each line is read twice on average at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from etalis_py.events.errors import StreamError
from etalis_py.streams.blanks import DocumentScope
from etalis_py.streams.columns.elements import Elements, Watched
from etalis_py.streams.columns.lines import cut
from etalis_py.streams.columns.merge_in_order import Chunk
from etalis_py.streams.documents import Document, document_events
from etalis_py.streams.elements import StreamContext, in_lists
from etalis_py.streams.quads import Quad
from etalis_py.streams.sources import OpenedInput, byte_blocks, decoded, whole_lines

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
        self._blocks = (
            block for block in whole_lines(source, byte_blocks(source, BLOCK), returns=True) if block is not None
        )
        self._scope, self._context, self._messages = scope, context, messages
        self._document = Document(context)
        self._watched = Watched(context.timing)
        self._rest, self._number = b"", 1
        self._open: tuple[bytes, Any] = b"", np.empty(0, np.int64)
        self._few = _FEW
        self._errors: list[StreamError] = []  # in the lines of the rest

    def chunks(self) -> Iterator[Chunk]:
        """The events, to the end."""
        quads: Iterator[Quad] = iter(())
        while parts := self._next():
            held, numbers = self._open
            lines, self._number = cut((held, *parts), numbers, self._number, self._messages)
            if self._errors:
                lines.errors = sorted(lines.errors + self._errors, key=lambda error: error.line)
                before = sum(error.line < self._number for error in lines.errors)
                lines.errors, self._errors = lines.errors[:before], lines.errors[before:]
            elements = Elements(lines, self._watched, self._document, self._scope)
            yield from elements.chunks()
            self._open = elements.open_lines()
            quads = elements.open_quads()
        for error in self._errors:  # in a last line without a line break
            self._context.report(error)
        yield from in_lists(document_events(quads, self._context, self._document))

    def _next(self) -> list[bytes]:
        """The next lines, at least as many bytes as those that are read again; none at the end."""
        parts: list[bytes] = []
        size = 0
        while size <= len(self._open[0]):
            if not self._rest and not self._read():
                break
            whole = self._rest
            if self._context.times.clock is None:
                whole = whole[: self._after(self._few)]
                self._few *= 2
            self._rest = self._rest[len(whole) :]
            parts.append(whole)
            size += len(whole)
        return parts

    def _after(self, lines: int) -> int:
        """The place in the rest after some lines."""
        place = 0
        for _ in range(lines):
            place = self._rest.find(b"\n", place) + 1
            if not place:
                return len(self._rest)
        return place

    def _read(self) -> bool:
        """Read another block; returns False at the end."""
        block = next(self._blocks, None)
        if block is None:
            return False
        whole, number = block
        if b"\r" in whole:
            whole = whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if not whole.isascii():
            try:
                whole.decode()
            except UnicodeDecodeError:
                whole = "".join(text for text, _ in decoded(whole, number, self._errors.append)).encode()
        self._rest = whole
        return True
