"""What one process does in a step: it gives its share to its engine, and knows what the others have been given.

All processes see the same input, so they agree without a word on what is late, on what is no event, and on how far
time has come.  A taker gives the matches of exactly those instants that the step closes in an engine of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Protocol

import numpy as np

from etalis_py.engine.cores.key_shares import KeyShare
from etalis_py.engine.cores.merging import is_timeless
from etalis_py.engine.cores.ways import ByKey, ByTime, Way
from etalis_py.events import Event
from etalis_py.kernel.batch import Batch, Columns, InColumns, Records, as_reported, count_events, extent
from etalis_py.kernel.matches import Matches
from etalis_py.kernel.position import FOREVER, NEVER, Counters

GROUP = 1 << 16
"""By time, a share is so many triples in a row, or a little more."""

Piece = Sequence[Event] | InColumns
_end = attrgetter("end")


class Base(Protocol):
    """The engine of one process, by itself."""

    counters: Counters
    dead_letters: list[Event]

    def take_own(self, events: Any) -> Matches: ...
    def pass_own(self, t: int) -> Matches: ...
    def end_own(self, until: int | None) -> Matches: ...


@dataclass(slots=True)
class Arrived:
    """What is valid and in time of some input; ``newest`` is its latest end."""

    events: Piece
    newest: int
    refused: ValueError | None = None


class Taker(ABC):
    """Gives the share of one process to its engine.  ``first``: this process answers for what is the same in all."""

    def __init__(self, base: Base, *, first: bool) -> None:
        self._base, self._first = base, first
        self._now = self._closed = NEVER
        self._events = self._instants = 0

    def push(self, events: Any) -> tuple[list[Matches], ValueError | None]:
        """The matches of the instants that these events close, and the error to raise afterwards."""
        arrived = self._arrived(events)
        count = _count(arrived.events)
        if not count:
            matches = [self._base.take_own(())]
        else:
            self._events += count
            self._instants += _instants(arrived.events, self._now)
            self._now = max(self._now, arrived.newest)
            matches = self._take(arrived.events)
            self._closed = max(self._closed, self._now - 1)
        self._tally()
        return matches, arrived.refused

    def advance(self, t: int) -> list[Matches]:
        """Time has reached ``t``."""
        self._now = max(self._now, t)
        matches = self._pass(t)
        self._closed = max(self._closed, t)
        self._tally()
        return matches

    def close(self, until: int | None) -> list[Matches]:
        """The stream has ended."""
        matches = self._end(until)
        self._closed = self._now
        self._tally()
        return matches

    @abstractmethod
    def _take(self, events: Piece) -> list[Matches]: ...
    @abstractmethod
    def _pass(self, t: int) -> list[Matches]: ...
    @abstractmethod
    def _end(self, until: int | None) -> list[Matches]: ...

    def _tally(self) -> None:
        """Count as one engine would, whatever this one has had."""
        counters = self._base.counters
        counters.events, counters.instants = self._events, self._instants - (self._now > self._closed)

    def _arrived(self, events: Any) -> Arrived:
        if isinstance(events, (Columns, Records)):
            first, last, in_order = extent(events)
            if in_order and first >= max(self._now, self._closed + 1):
                return Arrived(events, last)
            events = Batch(None, last, events).rows
        return self._one_by_one(events)

    def _one_by_one(self, events: Iterable[Event]) -> Arrived:
        """The events that the engine would take; the first process keeps those that are late."""
        now, refused, taken = self._now, None, []
        for event in events:
            if event.end < event.start:
                start, end = event.start, event.end
                refused = refused or ValueError(f"an event starts at {start} and ends before, at {end}: swap the two")
            elif event.end < now or event.end <= self._closed:
                if self._first:
                    self._base.counters.late += 1
                    self._base.dead_letters.append(event)
            else:
                now = event.end
                taken.append(event)
        return Arrived(taken, now, refused)


class KeyTaker(Taker):
    """Every process has all its keys all the time."""

    def __init__(self, base: Base, way: ByKey, number: int, count: int) -> None:
        super().__init__(base, first=not number)
        self._share = KeyShare(way, number, count)

    def _take(self, events: Piece) -> list[Matches]:
        share = self._share
        own = share.columns(events) if isinstance(events, (Columns, Records)) else list(share.events(events))
        return [*([self._base.take_own(own)] if len(own) else []), self._base.pass_own(self._now - 1)]

    def _pass(self, t: int) -> list[Matches]:
        return [self._base.pass_own(t)]

    def _end(self, until: int | None) -> list[Matches]:
        # An engine without the latest events has not got as far as the others.
        passed = [] if self._now == NEVER else [self._base.pass_own(self._now)]
        return [*passed, self._base.end_own(until)]


class TimeTaker(Taker):
    """The processes take turns; each has seen the events before its turn, as far back as these matter.

    ``_kept`` are events that the engine has not had, and may need.  ``_reached``: how far time has come in it.
    """

    def __init__(self, base: Base, way: ByTime, number: int, count: int) -> None:
        super().__init__(base, first=not number)
        self._back, self._number, self._count = way.back, number, count
        self._seen = 0
        self._kept: list[Piece] = []
        self._reached = NEVER

    def _take(self, events: Piece) -> list[Matches]:
        self._kept.append(events)
        matches = self._own(self._now - 1)
        self._seen += _triples(events)
        return matches

    def _pass(self, t: int) -> list[Matches]:
        return self._own(t)

    def _end(self, until: int | None) -> list[Matches]:
        if not self._is_own:
            ended = self._base.end_own(until)
            self._drop(ended)
            timeless = [report for report in as_reported(ended.reports, one_by_one=True) if is_timeless(report)]
            told = Matches(ended.shapes, timeless)
            self._base.counters.matches += len(told)
            return [told]
        self._fill()
        return [*self._given(FOREVER), self._base.end_own(until)]

    @property
    def _is_own(self) -> bool:
        return self._seen // GROUP % self._count == self._number

    def _own(self, through: int) -> list[Matches]:
        """The matches of the instants up to this one, if it is this process's turn."""
        if through <= self._closed:
            return []
        if not self._is_own:
            self._forget(through - self._back)
            return []
        self._fill()
        self._reached = through
        return [*self._given(through + 1), self._base.pass_own(through)]

    def _fill(self) -> None:
        """Catch up with the events before this turn; what they give, another process has reported."""
        closed = self._closed
        if self._reached >= closed:
            return
        self._forget(closed + 1 - self._back)
        triples = self._base.counters.triples
        for matches in self._given(closed + 1):
            self._drop(matches)
        self._drop(self._base.pass_own(closed))
        self._base.counters.triples = triples
        self._reached = closed

    def _given(self, end: int) -> list[Matches]:
        """Give the engine the events that end before this."""
        matches, kept = [], []
        for piece in self._kept:
            cut = _place(piece, end)
            if cut:
                matches.append(self._base.take_own(_rows(piece, 0, cut)))
            if cut < len(piece):
                kept.append(_rows(piece, cut, len(piece)))
        self._kept = kept
        return matches

    def _forget(self, end: int) -> None:
        """Events that end before this are of no use any longer."""
        self._kept = [_rows(p, cut, len(p)) for p in self._kept if (cut := _place(p, max(end, NEVER))) < len(p)]

    def _drop(self, matches: Matches) -> None:
        self._base.counters.matches -= len(matches)


def taker_of(base: Base, way: Way, number: int, count: int) -> Taker:
    """The taker of a process, from 0."""
    kind = KeyTaker if isinstance(way, ByKey) else TimeTaker
    return kind(base, way, number, count)  # type: ignore[arg-type]


def _count(events: Piece) -> int:
    return count_events(events) if isinstance(events, (Columns, Records)) else len(events)


def _instants(events: Piece, now: int) -> int:
    """How many instants begin with these events, after ``now``."""
    if isinstance(events, (Columns, Records)):
        ends = np.asarray(events.end)
        return 1 + int((ends[1:] != ends[:-1]).sum()) - int(ends[0] == now)
    return len({event.end for event in events} - {now})


def _triples(events: Piece) -> int:
    return events.triples if isinstance(events, (Columns, Records)) else sum(len(e.triples) for e in events)


def _place(piece: Piece, end: int) -> int:
    """How many of its rows end before a time."""
    if isinstance(piece, (Columns, Records)):
        return int(np.searchsorted(piece.end, end))
    return bisect_left(piece, end, key=_end)


def _rows(piece: Piece, first: int, last: int) -> Piece:
    return piece.rows(first, last) if isinstance(piece, (Columns, Records)) else piece[first:last]


__all__ = ["GROUP", "Taker", "taker_of"]
