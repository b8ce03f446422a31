"""N-Quads → the flat form: graphs with their time on the next line are cut in bulk, everything else row by row.

The row reader takes over where the scan stops, at the beginning of a graph, and hands back where a graph begins while
nothing is known about later graphs: no time, no statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from etalis_rules.durations import RATIOS

from etalis_py.streams.blanks import DocumentScope
from etalis_py.streams.columns import scanning
from etalis_py.streams.columns.flat import constant, flat_batch
from etalis_py.streams.columns.mapped import Chunk
from etalis_py.streams.elements import REMEMBERED, Context, Document, Item, document_events, in_lists
from etalis_py.streams.quads import Quad, read_quads
from etalis_py.streams.sources import Source, byte_blocks, decoded, whole_lines

BLOCK = 1 << 22
LONGEST = 1 << 24  # most bytes of an element that is waited for
SHORTEST = 16  # least bytes of a quad
_FEW = 64  # lines that the row reader gets at first


def nquads_chunks(source: Source, scope: DocumentScope, context: Context, messages: bool | None) -> Iterator[Chunk]:
    """The events of an N-Quads document, in order."""
    return _Reader(source, scope, context, messages).chunks()


def _utf8(source: Source, context: Context) -> Iterator[tuple[bytes, int]]:
    """Blocks of whole lines that are UTF-8, with the number of the first."""
    for block in whole_lines(source, byte_blocks(source, BLOCK), returns=True):
        assert block is not None
        whole, number = block
        if b"\r" in whole:
            whole = whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        try:
            whole.decode()
        except UnicodeDecodeError:
            for text, first in decoded(whole, number, context.report, returns=True):
                yield text.encode(), first
        else:
            yield whole, number


class _Reader:
    """One document.  ``lines`` are bytes that have been read but not cut, from line ``number`` on."""

    def __init__(self, source: Source, scope: DocumentScope, context: Context, messages: bool | None) -> None:
        self._blocks = _utf8(source, context)
        self._scope, self._context, self._messages = scope, context, messages
        self._document = Document(context)
        self._predicate = context.timing.after_graph
        self._lines, self._number, self._ended = b"", 1, False
        self._event = 0

    def chunks(self) -> Iterator[Chunk]:
        """Bulk and rows in turn, to the end."""
        while self._more() or self._lines:
            if self._context.times.clock is not None:
                batch = self._scanned()
                if batch is not None:
                    yield batch
                if not self._stopped and not self._ended and len(self._lines) < LONGEST:
                    continue
            if self._lines:
                yield from in_lists(self._by_rows())

    def _more(self) -> bool:
        """Read another block after what is left; returns False at the end."""
        if self._ended:
            return False
        block = next(self._blocks, None)
        if block is None:
            self._ended = True
            return False
        whole, number = block
        if not self._lines:
            self._number = number
        self._lines += whole
        return True

    # --- in bulk ---

    _stopped = False

    def _scanned(self) -> pa.RecordBatch | None:
        """Cut the usual lines off the front."""
        lines = self._lines
        clock = self._context.times.clock
        assert clock is not None
        dates = clock.kind == "datetime"
        times, per = RATIOS[clock.unit]
        if not self._predicate or (not dates and per != 1):
            self._stopped = True
            return None
        tail = b"" if lines.endswith(b"\n") else b"\n"
        data = np.frombuffer(lines + tail + b"\0\0\0\0", np.uint8)
        rows = np.empty((len(lines) // SHORTEST + 1, 9), np.int64)
        elements = np.empty(len(rows), np.int64)
        count, complete, place, line, ended, repeated = scanning.scan(
            data,
            0,
            scanning.CLASSES,
            scanning.STRING,
            scanning.LANG_STRING,
            scanning.DIR_LANG_STRING,
            np.frombuffer(self._predicate.encode(), np.uint8),
            0 if dates else times,
            scanning.DATE_TIME if dates else scanning.INTEGER,
            np.empty(8, np.int64),
            rows,
            elements,
        )
        self._stopped = not ended
        if not count:
            return None
        self._number += line
        self._lines = lines[place:]
        return self._batch(data, rows[:count], elements[:complete], repeated)

    def _batch(self, data: Any, rows: Any, elements: Any, repeated: int) -> pa.RecordBatch:
        count = len(rows)
        terms = [self._terms(data, rows, place) for place in (0, 2, 4, 6)]
        times = elements[rows[:, 8]]
        context = self._context
        context.counters.events += len(elements)
        context.counters.triples += count
        context.counters.duplicates += repeated
        context.latest = max(context.latest, int(elements.max()))
        first = np.flatnonzero(np.diff(rows[:, 8], prepend=-1))
        graphs = terms[3].take(pa.array(first))
        earlier = self._document.earlier
        earlier.append(lambda: ((g, (t, t)) for g, t in zip(graphs.to_pylist(), elements.tolist(), strict=True)))
        del earlier[: -1 - REMEMBERED // len(elements)]
        event = rows[:, 8] + self._event
        self._event += len(elements)
        return flat_batch(
            times,
            times,
            terms[:3],
            stream=constant(context.stream, count) if context.stream else None,
            graph=terms[3],
            event=pa.array(event) if len(elements) < count else None,
        )

    def _terms(self, data: Any, rows: Any, place: int) -> pa.StringArray:
        terms = gathered(data, rows, place)
        if place == 2:
            return terms
        blank = pc.starts_with(terms, "_:")
        if not pc.any(blank).as_py():
            return terms
        renamed = [self._scope.rename(term) for term in terms.filter(blank).to_pylist()]
        return pc.replace_with_mask(terms, blank, pa.array(renamed, pa.string()))

    # --- row by row ---

    def _by_rows(self) -> Iterator[Item]:
        """Read on with the row reader until it can hand back."""
        document, context = self._document, self._context
        quads = read_quads(
            self._pieces(),
            graphs=True,
            messages=self._messages,
            on_error=context.report,
            rename=self._scope.rename,
            time_predicate=self._predicate,
        )
        yield from document_events(self._until_clean(quads), context, document)

    def _pieces(self) -> Iterator[tuple[str, int] | None]:
        """The remaining lines, a few at first; lines that have been handed out are dropped."""
        size = _FEW
        while self._lines or self._more():
            place = 0
            for _ in range(size):
                place = self._lines.find(b"\n", place) + 1
                if not place:
                    place = len(self._lines)
                    break
            piece, number = self._lines[:place], self._number
            self._lines = self._lines[place:]
            self._number += piece.count(b"\n")
            self._piece = piece, number
            size = min(2 * size, 1 << 16)
            yield piece.decode(), number

    def _until_clean(self, quads: Iterator[Quad | None]) -> Iterator[Quad | None]:
        """The quads up to a graph that begins while nothing is known about later graphs."""
        document, times = self._document, self._context.times
        first, last = self._number, ""
        for quad in quads:
            assert quad is not None
            graph = quad[3]
            if (
                graph
                and graph != last
                and quad[4] > first
                and times.clock is not None
                and (not document.loose or document.loose_subject != graph)
                and document.about.keys() <= {last}
            ):
                self._give_back(quad[4])
                return
            last = graph or last
            yield quad

    def _give_back(self, line: int) -> None:
        """Put back the lines of the last piece from this one on, which have not been read."""
        piece, number = self._piece
        place = 0
        for _ in range(line - number):
            place = piece.index(b"\n", place) + 1
        self._lines = piece[place:] + self._lines
        self._number = line


def gathered(data: Any, rows: Any, place: int) -> pa.StringArray:
    """The term at one place of each row of a scan."""
    count = len(rows)
    ends = np.empty(count + 1, np.int32)
    out = np.empty(scanning.lengths(rows, count, place, ends), np.uint8)
    scanning.gather(data, rows, count, place, ends, out)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(out))
