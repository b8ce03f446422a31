"""The executor of rows over events of one time in an order: its rules run by the clock of ``etalis_rules.places``.

The kernel hands over instants of the source, with the events of each in the order of their places, and is told what
they give at the times of the source.  In between each event has an instant of its own.

    kernel:  a@10  b@10  c@11        matches [10, 10], [10, 11]
    rules:   a@10·1  b@10·2  c@11·1  rows    [10·1, 10·2], [10·2, 11·1]

Where the values of a predicate order them, events with equal values have one place, and so one instant.

Cost: a few operations on integers for each event and each row.  State: goals with ticks of that clock.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from etalis_rules import places
from etalis_rules import program as ir
from etalis_rules.clock import is_start_by_itself
from etalis_rules.durations import seconds

from etalis_py.events import SOURCE_ORDER, Event
from etalis_py.executors.rows.run.executor import RowExecutor
from etalis_py.executors.rows.run.family_relation import Gathered
from etalis_py.kernel.batch import Batch, Report, Row
from etalis_py.kernel.options import TiesError
from etalis_py.kernel.protocol import Dispatch
from etalis_py.kernel.shapes import Shape
from etalis_py.values.errors import LimitExceeded
from etalis_py.values.ordering import OrderKey, rank_key

_end = attrgetter("end")
_AFTER_ALL_VALUES: OrderKey = (9,)


class PlacesExecutor(RowExecutor):
    """Runs rules over events of one time in an order."""

    def load_rules(
        self, rules: ir.Rules, knowledge: Any, makers: dict[str, Any], gathered: Gathered | None = None
    ) -> None:
        check_rules(rules, knowledge)
        super().load_rules(places.in_places(rules), knowledge, makers, gathered)

    def _shape(self, output: ir.Output) -> Shape:
        # Equal matches of one time may come at several places, so they need not be neighbours.
        shape = replace(super()._shape(output), adjacent=False)
        make = shape.triples
        return shape if make is None else replace(shape, triples=lambda row: make((*row[-2:], *row[2:-2])))

    # --- time ---

    def started(self, t: int | None) -> None:
        super().started(None if t is None else places.tick(t, 0))

    def report_timeless(self, t: int, queries: Container[str]) -> None:
        with self._reporting():
            super().report_timeless(places.last_tick(t), queries)

    def take(self, batch: Batch) -> None:
        placed, refused = self._placed(batch.rows)
        with self._reporting():
            if refused is None:
                super().take(Batch(placed, places.last_tick(batch.through)))
            elif placed:
                super().take(Batch(placed, placed[-1].end))
        if refused is not None:
            raise refused

    def _placed(self, events: Sequence[Event]) -> tuple[list[Event], LimitExceeded | None]:
        """The events with the ticks of their places; one that lasts on starts after all events of its time.

        If a time has an event without a place, its error is returned, and the events before that time.
        """
        placed: list[Event] = []
        for end, tied in groupby(events, key=_end):
            begun = len(placed)
            for place, (start, _, triples, stream, graph) in self._in_order(tied):
                if place == places.LAST or not -places.FURTHEST < start <= end < places.FURTHEST:
                    del placed[begun:]
                    return placed, self._without_place(place, end)
                at = places.tick(end, place)
                start = at if start == end else places.last_tick(start)
                placed.append(Event._make((start, at, triples, stream, graph)))
        return placed, None

    def _in_order(self, tied: Iterable[Event]) -> Iterable[tuple[int, Event]]:
        """The events of one time with their places, from 1."""
        if self.options.ties == SOURCE_ORDER:
            return enumerate(tied, 1)
        return by_value(list(tied), self.options.ties or "")

    def _without_place(self, place: int, end: int) -> LimitExceeded:
        shown = (self.options.render or seconds)(end)
        if place == places.LAST:
            return LimitExceeded(
                f"more than {places.LAST - 1:,} events have the time {shown}; with ties, so many can be told apart: "
                "use a finer clock, or leave ties out"
            )
        return LimitExceeded(
            f"an event is at {shown}; with ties, times lie between 1899 and 2041: leave ties out, or shift the times"
        )

    def next_due(self) -> int | None:
        due = super().next_due()
        return None if due is None else places.source_time(due)

    def horizon(self) -> int | None:
        last = super().horizon()
        return None if last is None else places.source_time(last)

    def close(self, t: int) -> None:
        with self._reporting():
            super().close(places.last_tick(t))

    def dispatch(self) -> Dispatch | None:
        return None  # the kernel's fast loop knows no places

    # --- reports ---

    def _reporting(self) -> _Reporting:
        return _Reporting(self.reports, self.shapes)


def by_value(tied: Sequence[Event], predicate: str) -> Iterator[tuple[int, Event]]:
    """Events of one time in the order of their values, as ORDER BY has it; equal values have the same place.

    Of several values of an event the least counts.  One that has none comes after all others.
    """
    if len(tied) == 1:
        yield 1, tied[0]
        return
    keys = [
        min((rank_key(o) for _, p, o in event.triples if p == predicate), default=_AFTER_ALL_VALUES) for event in tied
    ]
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys)), 1)}
    for key, event in sorted(zip(keys, tied, strict=True), key=itemgetter(0)):
        yield ranks[key], event


class _Reporting:
    """While it is open, reports are made at ticks; then they are at times of the source, one for a query and time.

    What nobody has read yet is put aside meanwhile: a limit that interrupts an instant drops reports by their ticks.
    """

    def __init__(self, reports: list[Any], shapes: Sequence[Shape]) -> None:
        self.reports, self.shapes = reports, shapes
        self.unread = list(reports)

    def __enter__(self) -> None:
        self.reports.clear()

    def __exit__(self, *_: object) -> None:
        self.reports[:] = [*self.unread, *_joined(self.reports, self.shapes)]


def _joined(reports: Sequence[Report], shapes: Sequence[Shape]) -> Iterator[Report]:
    """The reports at times of the source, the queries of each in their order, with the rows in the order of places."""
    times: dict[int, dict[int, list[Row]]] = {}
    for number, ticks, rows in reports:
        at = times.setdefault(places.source_time(ticks), {})
        # Two matches of one time may make two blank nodes, so what makes triples is given the ticks.
        told = rows if shapes[number].triples is None else [(*row, row[0], row[1]) for row in rows]
        at.setdefault(number, []).extend(map(_in_source_times, told))
    for time, queries in times.items():
        for number in sorted(queries):
            yield number, time, queries[number]


def _in_source_times(row: Row) -> Row:
    return (places.source_time(row[0]), places.source_time(row[1]), *row[2:])


def check_rules(rules: ir.Rules, knowledge: Any) -> None:
    """Refuse rules that cannot put events of one time in order."""
    if not all(places.skips_by_place(node) for _, node in rules.nodes):
        raise TiesError(
            "with ties, SKIP goes by the place of a match: write SKIP PAST or TO (getENDTIME()) or (getSTARTTIME()), "
            "or DISJOINT, instead of another time"
        )
    if any(is_start_by_itself(node) for _, node in rules.nodes):
        raise TiesError(
            "with ties, START by itself has no place among the events of its time: leave ties out, or write what comes "
            "after it, as { START } SEQ { … }"
        )
    if knowledge is not None and knowledge.programs:
        raise TiesError("answer-set programs that read events have no order within a time: leave ties out, or them")
