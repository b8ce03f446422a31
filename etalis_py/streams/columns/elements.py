"""Statements of a document in columns → the flat form: usual elements in bulk, any other one by ``Document``, in order.

``grouping`` forms the elements.  What it cannot read, or has to be reported, is given to ``Document`` statement by
statement; its events are put between the others, so that a batch stays one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from etalis_rules.durations import RATIOS
from etalis_rules.terms import with_blanks

from etalis_py.events.clock import TimeError
from etalis_py.events.errors import StreamError
from etalis_py.streams.blanks import DocumentScope
from etalis_py.streams.columns import grouping
from etalis_py.streams.columns.flat_form import constant, flat_batch
from etalis_py.streams.columns.gather_terms import gathered
from etalis_py.streams.columns.grouping import (
    AFTER,
    BEGINS,
    DUPLICATES,
    ENDS,
    FIRST,
    INNER,
    ITEMS,
    KIND,
    LATE,
    OUT,
    ROW,
)
from etalis_py.streams.columns.lines import StatementRows
from etalis_py.streams.columns.merge_in_order import Chunk, merge_chunks
from etalis_py.streams.columns.scanning import BEGIN, LINE
from etalis_py.streams.documents import REMEMBERED, Document, too_many
from etalis_py.streams.elements import RETRACTS, Item, StreamContext
from etalis_py.streams.quads import Quad
from etalis_py.streams.timing import Span, Statement, Timing


class Watched:
    """The predicates with a meaning, as bytes; ``times`` of them give times."""

    def __init__(self, timing: Timing) -> None:
        names = [*timing.predicates, *timing.starts, *timing.ends, *timing.punctuations, *RETRACTS]
        spelled = [name.encode() for name in names]
        self.bytes = np.frombuffer(b"".join(spelled), np.uint8)
        self.ends = np.cumsum([0, *map(len, spelled)])
        self.counts = len(timing.predicates), len(timing.starts), len(timing.punctuations)
        self.times = len(timing.predicates) + 2 * len(timing.starts)


class Elements:
    """The elements of some lines.  ``open`` are afterwards the rows of those that are not complete."""

    def __init__(self, lines: StatementRows, watched: Watched, document: Document, scope: DocumentScope) -> None:
        self._lines, self._watched, self._document, self._scope = lines, watched, document, scope
        self._context: StreamContext = document.context
        size = len(lines.rows)
        self._ids, self._codes = np.empty(size, np.int64), np.empty(size, np.int64)
        self._items, self._out = np.empty((size + 1, grouping.ITEM), np.int64), np.empty(size, np.int64)
        self._done = 0  # items that are counted
        self._errors = 0  # errors that are reported
        self._others: list[tuple[int, list[Item]]] = []  # what Document made of some items
        self.open: Any = np.empty(0, np.int64)

    def chunks(self) -> Iterator[Chunk]:
        """The events; an error is raised after those before it."""
        failure: BaseException | None = None
        try:
            self._group()
        except (Exception, KeyboardInterrupt) as error:
            failure = error
        yield from self._assembled()
        if failure is not None:
            raise failure

    # --- grouping ---

    def _group(self) -> None:
        """Form the elements, and make of each other than a usual one what ``Document`` makes of it."""
        lines, watched, context = self._lines, self._watched, self._context
        rows, size = lines.rows, len(lines.rows)
        slots = np.zeros(1 << (2 * size + 16).bit_length(), np.int64)
        owners = np.empty(size, np.int64)
        named = watched.bytes, watched.ends, watched.times
        names = grouping.name(lines.data, rows, *named, slots, owners, self._codes, self._ids)
        starts, ends, states = self._times()
        about, known = np.full((names, 2), -1), np.zeros((names, grouping.KNOWLEDGE), np.int64)
        state, after, opened = np.zeros(grouping.STATE, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
        state[[grouping.OPEN, grouping.LOOSE]] = -1
        if self._document.untimed:
            self._look_for_late(known)
        while True:
            answer = grouping.group(
                lines.data,
                rows,
                self._ids,
                self._codes,
                starts,
                ends,
                states,
                *watched.counts,
                REMEMBERED,
                context.max_pending,
                state,
                after,
                about,
                known,
                opened,
                np.empty(4, np.int64),
                slots,
                self._items,
                self._out,
            )
            count, row = int(state[ITEMS]), int(state[ROW])
            self._items[count, FIRST] = state[OUT]
            if answer == grouping.ENDED:
                self._finish(count, None)
                break
            self._finish(count, int(rows[row, LINE]))
            if answer == grouping.FULL:
                raise too_many(context, int(rows[row, LINE]))
            known[self._ids[row], LATE] = self._late(row)
        self.open = np.sort(np.concatenate((opened[: state[grouping.SIZE]], _pending(state, about, after))))

    def _times(self) -> tuple[Any, Any, Any]:
        """The intervals that statements give, and whether they give any."""
        lines, times, size = self._lines, self._context.times, len(self._lines.rows)
        starts, ends, states = np.empty(size, np.int64), np.empty(size, np.int64), np.zeros(size, np.int64)
        if times.clock is None:
            return starts, ends, states
        unit, per = (0, 1) if times.clock.kind == "datetime" else RATIOS[times.clock.unit]
        watched = self._watched.times
        given = np.empty(2, np.int64)
        if grouping.read_times(lines.data, lines.rows, self._codes, watched, unit, per, given, starts, ends, states):
            read: dict[str, Span | None] = {}
            timed = (self._codes > 0) & (self._codes <= watched) & (states != grouping.TIMED)
            for row in np.flatnonzero(timed).tolist():
                term = lines.text(row, 4)
                if term not in read:
                    try:
                        read[term] = times.of_term(term)
                    except TimeError:
                        read[term] = None  # Document says so, if it matters
                if (span := read[term]) is not None:
                    starts[row], ends[row], states[row] = *span, grouping.TIMED
        return starts, ends, states

    def _look_for_late(self, known: Any) -> None:
        """Find out of which names the time may come too late."""
        rows = self._lines.rows
        timed = (self._codes > 0) & (self._codes <= self._watched.times) & (rows[:, 6] == rows[:, 7])
        chosen, first = np.unique(self._ids[timed], return_index=True)
        for name, row in zip(chosen.tolist(), np.flatnonzero(timed)[first].tolist(), strict=True):
            known[name, LATE] = min(self._late(row), grouping.MAYBE_LATE)

    def _late(self, row: int) -> int:
        """Whether the statement in a row comes too late to time its element."""
        span = self._document.recall(self._term(row, 0), (0, 0))
        return grouping.TOO_LATE if span is None else grouping.IN_TIME

    # --- what Document does ---

    def _finish(self, count: int, line: int | None) -> None:
        """Count the items up to this one, let ``Document`` finish those that are not usual, and report the errors in
        lines before this one: each in its place.
        """
        items, done = self._items, self._done
        errors = self._lines.errors[self._errors :]
        errors = errors if line is None else [error for error in errors if error.line < line]
        after = self._lines.rows[items[done:count, AFTER], LINE]
        places = np.searchsorted(after, [error.line for error in errors]) + done
        others = np.flatnonzero(items[done:count, KIND] != grouping.USUAL) + done
        steps = [(place, error) for place, error in zip(places.tolist(), errors, strict=True)]
        for item, error in sorted([*steps, *((item, None) for item in others.tolist())], key=_errors_first):
            self._count(item)
            if error is not None:
                self._errors += 1
                self._context.report(error)
                continue
            self._done = item + 1
            made: list[Item] = []
            self._others.append((item, made))
            made.extend(self._made(item))
        self._count(count)

    def _count(self, last: int) -> None:
        """Count the usual items up to this one."""
        items, first, counters, document = self._items, self._done, self._context.counters, self._document
        self._done = last
        if first >= last:
            return
        before = counters.events
        counters.events += last - first
        repeated = int(items[first:last, DUPLICATES].sum())
        counters.triples += int(items[last, FIRST] - items[first, FIRST])
        counters.duplicates += repeated
        self._context.latest = max(self._context.latest, int(items[first:last, ENDS].max()))
        document.remember_later(partial(self._remembered, first, last, before))

    def _remembered(self, first: int, last: int, before: int) -> Iterator[tuple[str, tuple[int, Span]]]:
        items = self._items[first:last]
        graphs = self._column(self._lines.rows[self._out[items[:, FIRST]]], 6).to_pylist()
        spans = zip(items[:, BEGINS].tolist(), items[:, ENDS].tolist(), strict=True)
        return ((graph, (before + n, span)) for n, (graph, span) in enumerate(zip(graphs, spans, strict=True)))

    def _made(self, item: int) -> Iterator[Item]:
        """What ``Document`` makes of an item."""
        items, document = self._items, self._document
        kind, first, inner = items[item, [KIND, FIRST, INNER]].tolist()
        quads = [self._quad(row) for row in self._out[first : items[item + 1, FIRST]].tolist()]
        s, p, o, graph, line, _ = quads[0]
        if kind == grouping.GRAPH:
            document.graph, document.line, document.triples = graph, line, [quad[:3] for quad in quads[:inner]]
            if inner < len(quads):
                document.about[graph] = [Statement(p, o, line) for _, p, o, _, line, _ in quads[inner:]]
            yield from document.finish()
        elif kind == grouping.STATEMENTS:
            document.loose_subject, document.loose = s, [Statement(p, o, line) for _, p, o, _, line, _ in quads]
            yield from document.finish_loose()
        elif kind == grouping.PUNCTUATION:
            yield from document.punctuate(s, o, line)
        else:
            document.say(s, p, o, line)

    def _term(self, row: int, place: int) -> str:
        """A term, with its blank nodes renamed."""
        term = self._lines.text(row, place)
        return with_blanks(term, self._scope.rename) if term[:1] in "_<" else term

    def _quad(self, row: int) -> Quad:
        s, p, o, graph = (self._term(row, place) for place in (0, 2, 4, 6))
        return s, p, o, graph, int(self._lines.rows[row, LINE]), ""

    @property
    def is_usual(self) -> bool:
        """Whether none of them was left to ``Document``."""
        return not self._others

    def open_quads(self) -> Iterator[Quad]:
        """The statements of the elements that are not complete."""
        return map(self._quad, self.open.tolist())

    def open_lines(self) -> tuple[bytes, Any]:
        """Their lines, and the numbers of these."""
        rows = self._lines.rows[self.open]
        rows[:, BEGIN + 1] += 1  # with the line break
        lines = gathered(self._lines.data, rows, BEGIN)
        whole = lines.buffers()[2]
        return (whole.to_pybytes() if whole is not None and len(rows) else b""), rows[:, LINE]

    # --- the flat form ---

    def _assembled(self) -> Iterator[Chunk]:
        """The events that are counted, in order."""
        return merge_chunks(*self._usual(), self._others)

    def _usual(self) -> tuple[pa.RecordBatch, Any]:
        """The usual elements, and the number of each one's item."""
        items, lines = self._items[: self._done], self._lines
        first = self._items[: self._done + 1, FIRST] if self._done else np.zeros(1, np.int64)
        item = np.repeat(np.arange(self._done), np.diff(first))
        picked = self._out[: first[-1]]
        usual = items[:, KIND] == grouping.USUAL
        if not usual.all():
            kept = usual[item]
            picked, item = picked[kept], item[kept]
        rows = np.take(lines.rows, picked, axis=0)
        about = np.flatnonzero(rows[:, 6] == rows[:, 7])  # statements about the graph
        rows[about, 6:8] = rows[about, 0:2]
        terms = [self._column(rows, place) for place in (0, 2, 4, 6)]
        size, stream = len(item), self._context.stream
        several = size > 1 and bool((item[1:] == item[:-1]).any())
        batch = flat_batch(
            items[item, ENDS],
            items[item, BEGINS],
            terms[:3],
            stream=constant(stream, size) if stream else None,
            graph=terms[3],
            event=pa.array(item) if several else None,
        )
        return batch, item

    def _column(self, rows: Any, place: int) -> pa.StringArray:
        terms = gathered(self._lines.data, rows, place)
        if place == 2:
            return terms
        blank = pc.starts_with(terms, "_:")
        if pc.any(blank).as_py():
            terms = pc.if_else(blank, pc.replace_substring_regex(terms, "^_:", self._scope.rename("_:")), terms)
        if place == 4 and pc.any(inside := pc.starts_with(terms, "<<")).as_py():
            renamed = [with_blanks(term, self._scope.rename) for term in terms.filter(inside).to_pylist()]
            terms = pc.replace_with_mask(terms, inside, pa.array(renamed, pa.string()))
        return terms


def _errors_first(step: tuple[int, StreamError | None]) -> tuple[int, bool]:
    return step[0], step[1] is None


def _pending(state: Any, about: Any, after: Any) -> Any:
    """The rows of the statements that wait for their elements."""
    rows = []
    heads = [*about[about[:, 0] >= 0, 0].tolist()]
    if state[grouping.LOOSE] >= 0:
        heads.append(int(state[grouping.HEAD]))
    following = after.tolist() if heads else []
    for row in heads:
        while row >= 0:
            rows.append(row)
            row = following[row]
    return np.array(rows, np.int64)
