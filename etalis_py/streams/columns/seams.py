"""Blocks of N-Quads that another process has read by itself, and the seams between them.

    … <a> :p 1 <g7> .   │ <g7> :time 7 .            │ <b> :p 2 <g8> . …
      open lines        │ the head of the block     │ what its reader has read
      of the block before

An element may begin in one block and end in the next.  So the reader of a block leaves out its head, the lines about
the first name, and says which lines are open at its end.  Whoever has the block before puts the open lines and the head
together; they must give complete elements, whose names do not occur later in the block.  If they do not, that process
reads the block by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from etalis_rules.terms import with_blanks

from etalis_py.events import Event
from etalis_py.events.errors import StreamError
from etalis_py.streams.blanks import DocumentScope
from etalis_py.streams.columns.elements import Elements, Watched
from etalis_py.streams.columns.lines import StatementRows, cut, usual_lines
from etalis_py.streams.columns.merge_in_order import Chunk, merge_chunks
from etalis_py.streams.columns.scanning import BEGIN, NOTHING, RESPELLED
from etalis_py.streams.columns.shared_blocks import Taken
from etalis_py.streams.documents import Document, document_events
from etalis_py.streams.elements import Counters, StreamContext
from etalis_py.streams.quads import Quad, read_line
from etalis_py.streams.timing import Span, Timing

_LONGEST_HEAD = 4096
"""Statements: a longer head is dearer than reading the block again."""
_SEAM = pa.schema(
    {
        "lines": pa.int64(),
        "head": pa.binary(),
        "open": pa.binary(),
        "numbers": pa.list_(pa.int64()),
        "names": pa.list_(pa.string()),
    }
)
OpenLines = tuple[bytes, Any]
"""The lines of elements that are not complete, and the numbers of these lines."""


@dataclass(frozen=True, slots=True)
class Joined:
    """The events of a block, the number of its lines, and its open lines, whose numbers count from its first one."""

    chunks: Iterator[Chunk]
    lines: int
    open: OpenLines


def read_by_itself(
    block: bytes, watched: Watched, scope: DocumentScope, context: StreamContext, messages: bool | None
) -> Iterator[Chunk]:
    """The seam of a block in a batch of one row, and its events; an empty list if they depend on other blocks."""
    errors: list[StreamError] = []
    lines, after = cut((usual_lines(block, 1, errors.append),), np.empty(0, np.int64), 1, messages)
    first = _second_name(lines)
    if errors or lines.errors or not first:
        yield []
        return
    head = lines.data[: lines.rows[first, BEGIN]].tobytes()
    document = Document(context)
    elements = Elements(StatementRows(lines.data, lines.rows[first:], []), watched, document, scope)
    chunks = list(elements.chunks())
    document.earlier.clear()  # it refers to the elements and they to it, so that all of it would wait for the collector
    if len(chunks) != 1 or not elements.is_usual:
        yield []
        return
    held, numbers = elements.open_lines()
    names = sorted({graph or subject for subject, _, _, graph, _, _ in elements.open_quads()})
    seam = {"lines": after - 1, "head": head, "open": held, "numbers": numbers.tolist(), "names": names}
    yield pa.RecordBatch.from_pylist([seam], _SEAM)
    yield from chunks


def _second_name(lines: StatementRows) -> int:
    """The first row about another name than the rows before it; 0 if there is none soon."""
    first = ""
    for row in range(min(len(lines.rows), _LONGEST_HEAD)):
        if lines.rows[row, RESPELLED] != NOTHING:
            name = lines.text(row, 6) or lines.text(row, 0)
            if first and name != first:
                return row
            first = name
    return 0


def joined(taken: Taken, held: bytes, document: Document, scope: DocumentScope, messages: bool | None) -> Joined | None:
    """The events of a block that another process has taken, after the open lines ``held``; None: read it yourself."""
    seam_batch, batch = taken.batches
    (seam,) = seam_batch.to_pylist()
    context = document.context
    try:
        quads = list(_quads(held + seam["head"], scope, messages))
        names = {graph or subject for subject, _, _, graph, _, _ in quads}
        if not _are_complete(quads, context.timing) or names & {*seam["names"]}:
            return None
        if pc.any(pc.is_in(batch.column("graph"), pa.array(sorted(names), pa.string()))).as_py():
            return None
        # Elements with a time of their own depend on no others; what is odd is left to whoever reads the whole block.
        apart = replace(context, counters=Counters(), report=_refuse, arrival=_no_arrival)
        items = list(document_events(quads, apart))
    except (StreamError, _Odd):
        return None
    events = [item for item in items if type(item) is Event]
    if len(events) != len(items):
        return None
    before = context.counters.events
    context.counters.count(astuple(apart.counters))
    context.latest = max(context.latest, apart.latest)
    taken.count(context)
    place = np.arange(len(batch)) if "event" not in batch.schema.names else batch.column("event").to_numpy()
    document.remember_later(partial(_remembered, events, batch, place, before))
    return Joined(
        merge_chunks(batch, place, [(-1, events)] if events else []),
        seam["lines"],
        (seam["open"], np.array(seam["numbers"], np.int64)),
    )


class _Odd(Exception):
    """An element of the seam is not usual."""


def _refuse(error: StreamError) -> NoReturn:
    raise _Odd from error


def _no_arrival() -> Span:
    raise _Odd


def _quads(lines: bytes, scope: DocumentScope, messages: bool | None) -> Iterator[Quad]:
    for number, line in enumerate(lines.decode().split("\n"), 1):
        if quad := read_line(line, messages=messages):
            s, p, o, graph = (with_blanks(term, scope.rename) for term in quad)
            yield s, p, o, graph, number, ""


def _are_complete(quads: list[Quad], timing: Timing) -> bool:
    """Whether nothing but the last graph is open after these quads, as ``Document`` takes them."""
    graph, pending = "", set()
    for subject, predicate, _, name, _, _ in quads:
        if name:
            if name != graph:
                pending.discard(graph)
                graph = name
        elif predicate in timing.punctuations:
            return False
        elif predicate in timing.all or subject == graph or subject in pending:
            pending.add(subject)
        else:
            return False
    return pending <= {graph}


def _remembered(
    events: list[Event], batch: pa.RecordBatch, place: Any, before: int
) -> Iterator[tuple[str, tuple[int, Span]]]:
    """The intervals of the elements, each with the number of events before it."""
    for number, event in enumerate(events, before):
        yield event.graph, (number, (event.start, event.end))
    rows = np.flatnonzero(np.diff(place, prepend=-1))
    names, starts, ends = (batch.column(name).take(pa.array(rows)).to_pylist() for name in ("graph", "start", "end"))
    for number, (name, start, end) in enumerate(zip(names, starts, ends, strict=True), before + len(events)):
        yield name, (number, (start, end))


__all__ = ["Joined", "OpenLines", "joined", "read_by_itself"]
