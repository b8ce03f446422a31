"""Whole events in columns, for EVENT.

An event is a set of triples, and an instant is a set of events.  So a triple that an event states twice counts once,
and so do equal events of an instant.

Cost: the triples of an event are compared with each other, or put into a table if there are many; events that share an
instant are looked up by a hash.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from etalis_rules import program as ir

from etalis_py.executors.columns.constructs import stated
from etalis_py.executors.columns.kernels import records
from etalis_py.executors.columns.occurrences import Occurrences
from etalis_py.executors.columns.tables import NO_TIMES, SolutionTable
from etalis_py.executors.columns.terms import Terms

WIDTH = 5
_BEGIN = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True)
class Events:
    """Events in order of their instants: a table with one triple per row, where the rows of an event are neighbours.

    ``begins`` has the first row of each event and, as its last item, the number of rows.  ``triples`` has the columns
    s, p, o, stream and graph.
    """

    begins: np.ndarray
    triples: SolutionTable

    def __len__(self) -> int:
        return len(self.begins) - 1

    def take(self, kept: np.ndarray) -> Events:
        """Some of the events, by mask or by number."""
        chosen = np.flatnonzero(kept) if kept.dtype == np.bool_ else kept
        first, sizes = self.begins[chosen], np.diff(self.begins)[chosen]
        begins = np.concatenate((_BEGIN, np.cumsum(sizes)))
        rows = np.arange(begins[-1]) + np.repeat(first - begins[:-1], sizes)
        return Events(begins, self.triples.take(rows))

    def without(self, kept: np.ndarray) -> Events:
        """The events with only the marked triples; an event that has none of them is left out."""
        counts = np.concatenate((_BEGIN, np.cumsum(kept)))[self.begins]
        left = np.append(True, counts[1:] != counts[:-1])
        return Events(counts[left], self.triples.take(np.flatnonzero(kept)))

    @property
    def occurrences(self) -> SolutionTable:
        """The triples as occurrences: with s, p, o and stream."""
        return replace(self.triples, columns=self.triples.columns[:4])

    @property
    def firsts(self) -> np.ndarray:
        """The first row of each event."""
        return self.begins[:-1]

    @staticmethod
    def none() -> Events:
        return Events(_BEGIN, SolutionTable(NO_TIMES, NO_TIMES, NO_TIMES, (np.zeros(0, np.int32),) * WIDTH))


def events_of(piece: Occurrences, terms: Terms, loose: Collection[int]) -> Events:
    """The events of a piece of a batch."""
    nameless = np.zeros(len(piece), np.int32)
    graph = nameless if piece.graph is None else piece.graph
    table = SolutionTable(piece.end, piece.end, piece.start, (piece.s, piece.p, piece.o, piece.stream, graph))
    if piece.event is None:
        begins = np.arange(len(piece) + 1)
    else:
        begins = np.append(np.flatnonzero(np.diff(piece.event, prepend=piece.event[:1] - 1)), len(piece))
    return once(Events(begins, table), terms, loose)


def once(events: Events, terms: Terms, loose: Collection[int] = ()) -> Events:
    """Drop repeated triples of an event, and repeated events of an instant.

    At ``loose`` places equal terms may have different ids.  They are looked up only for events that may be equal to
    another one or have a triple twice.
    """
    table, begins = events.triples, events.begins
    if not len(events):
        return events
    s, p, o, stream, graph = table.columns
    doubtful = np.zeros(len(table), np.bool_)
    slots = np.empty(_slots_of(events), np.int64)
    if not records.mark_doubtful(begins, table.at, s, p, slots, doubtful):
        return events
    if 2 in loose:
        rows = np.flatnonzero(doubtful)
        o = o.copy()
        o[rows] = terms.distinguished(o[rows])
    kept = np.empty(len(table), np.bool_)
    hashes, sizes = np.empty(len(events), np.uint64), np.empty(len(events), np.int64)
    found = np.full(1 << (2 * len(events)).bit_length(), -1, np.int64)
    records.mark_first(
        begins, table.at, table.start, s, p, o, stream, graph, doubtful, slots, found, hashes, sizes, kept
    )
    events = Events(begins, replace(table, columns=(s, p, o, stream, graph)))
    return events if kept.all() else events.without(kept)


def _slots_of(events: Events) -> int:
    """The slots that a kernel needs for the triples of the largest event."""
    return 1 << int(4 * np.diff(events.begins).max(initial=4)).bit_length()


def derived_events(output: ir.Output, solutions: SolutionTable, columns: dict[str, np.ndarray], terms: Terms) -> Events:
    """The events that a CONSTRUCT derives, one for each solution; ``columns`` are those of ``with_nodes``."""
    numbers, parts = [], []
    for template in output.template:
        triple, kept = stated(output, template, solutions, columns, terms)
        rows = np.flatnonzero(kept)
        numbers.append(rows)
        parts.append([column[rows] for column in triple])
    if not any(map(len, numbers)):
        return Events.none()
    number = np.concatenate(numbers)
    order = np.argsort(number, kind="stable")
    number = number[order]
    stated_columns = (np.concatenate(some)[order] for some in zip(*parts, strict=True))
    end = solutions.end[number]
    table = SolutionTable(end, end, solutions.start[number], (*stated_columns, np.zeros(len(number), np.int32)))
    begins = np.append(np.flatnonzero(np.diff(number, prepend=-1)), len(number))
    return Events(begins, table)


def united(arrived: Events, derived: Sequence[Events], terms: Terms) -> Events:
    """The events that arrived and the events that rules derived, in order of their instants, each once."""
    if not any(map(len, derived)):
        return arrived
    return once(in_order((arrived, *derived)), terms)


def in_order(some: Sequence[Events]) -> Events:
    """The events of all these tables, in order of their instants."""
    filled = [events for events in some if len(events)]
    if len(filled) < 2:
        return filled[0] if filled else Events.none()
    at, start = (np.concatenate([getattr(e.triples, name) for e in filled]) for name in ("at", "start"))
    columns = zip(*(events.triples.columns for events in filled), strict=True)
    table = SolutionTable(at, at, start, tuple(np.concatenate(parts) for parts in columns))
    shifts = np.cumsum([0, *(events.begins[-1] for events in filled)])
    begins = np.append(
        np.concatenate([e.firsts + shift for e, shift in zip(filled, shifts[:-1], strict=True)]), len(table)
    )
    events = Events(begins, table)
    return events.take(np.argsort(table.at[events.firsts], kind="stable"))
