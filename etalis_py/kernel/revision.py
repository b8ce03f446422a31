"""Corrections: an engine whose answers are those of the corrected input, within a horizon.

What an engine reports is a function of its input, so a correction needs no truth maintenance.  The input within the
horizon is kept, with occasional snapshots of the engine; a correction at t goes back to the last snapshot before t,
takes the corrected input again, and reports the difference by the ids of matches.  All corrections of one call are one
replay.

    input    1 2 3 4 │ 5 6 7 8 │ 9 10          │: a snapshot (a *point*)
    correct        6: back to the point after 4, take 5 6′ 7 8 9 10, and compare what was reported since

Cost: a correction replays the input since the point before it: what came since its own time, and at most a quarter of
the horizon (and 1,024 events) more.  Points are an eighth to a quarter of the horizon apart.  Writing one costs in
proportion to its state.  Points closer than a quarter may take a small share of the work on events taken in and, since
they save replays, a larger share of that on replayed events.  So points are sparse when nothing is corrected and close
together when much is.  They are farther apart only if a quarter of the horizon holds so few events that writing the
state takes more than a sixteenth of their time.

Memory: the events of the horizon, the matches reported in it, and the points; ``Limits.horizon`` bounds the events by
raising an error.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from operator import gt, itemgetter
from typing import Any, Protocol

from etalis_py.events import Event, Retraction, UnexpectedRetraction
from etalis_py.kernel.horizon_items import (
    BackgroundUpdate,
    Item,
    correct_items,
    event_of_fields,
    fields_of_event,
    order_of_item,
    pieces_of_items,
)
from etalis_py.kernel.matches import Match, Matches, Revised, join_matches
from etalis_py.kernel.position import FOREVER, NEVER, Counters, Position, drawn
from etalis_py.kernel.shapes import Shape
from etalis_py.kernel.steps import Refused
from etalis_py.kernel.withdraw_triples import withdraw
from etalis_py.values.errors import LimitExceeded
from etalis_py.values.limits import Limits

EIGHTH, QUARTER = 8, 4  # fractions of the horizon: the least and the greatest distance between points
WORTH = 16  # a point is due only if the events since the last one cost this many times as much as the point
FEWEST = 1024  # fewest events between two points; also how many are taken at once
BYTES = 256  # bytes of state that take about as long to write as an event takes to process
SPARE, AFTER = 1 / 64, 1 / 4  # the shares of the work on events and on replays that may be spent on points
_first, _second = itemgetter(0), itemgetter(1)


class Revisable(Protocol):
    """The part of an engine that a revision uses: it takes input in order, moves time, and saves and restores state."""

    counters: Counters
    limits: Limits
    dead_letters: list[Event]
    _at: Position

    def take_in_order(self, events: Iterable[Event]) -> Matches: ...
    def reach(self, t: int) -> Matches: ...
    def end(self, until: int | None = None) -> Matches: ...
    def change_follows(self) -> int: ...
    def change(self, graph: str, add: list[Any], remove: list[Any]) -> Any: ...
    def save(self) -> bytes: ...
    def go_back(self, data: bytes, *, fitted: bool = False) -> None: ...
    def _matches(self) -> Matches: ...


@dataclass(slots=True)
class Point:
    """The state of the engine at a time, and the input and reports after it, until the next point."""

    now: int
    state: bytes
    items: list[Item] = field(default_factory=list)
    reported: list[Matches] = field(default_factory=list)


class Revision:
    """The horizon of one engine, ``horizon`` microseconds long, with what is needed to correct the input in it."""

    def __init__(self, engine: Revisable, horizon: int, lateness: int, *, journal: bool = False) -> None:
        self.engine = engine
        self.recording = journal
        self._inputs: list[list[Any]] = []
        self.entries = 0  # the number of journal entries
        self.horizon = horizon
        self.lateness = lateness
        self.newest = NEVER
        self.buffer: list[tuple[int, int, Event]] = []
        self.arrivals = 0
        self.points: list[Point] = []
        self._credit = 0.0  # the events' worth of work that may be spent on points
        self.unreported: list[Matches] = []  # matches of updates, and of calls that raised an error, for the next call
        self.restart()

    def restart(self) -> None:
        """Start afresh because the programs have changed: nothing before now can be corrected."""
        self.points = [Point(self.engine._at.now, self.engine.save())]

    # --- input ---

    def take(self, events: Iterable[Event]) -> Matches:
        """Take events and corrections as they come; returns new matches and matches taken back.

        The error of an invalid event, or of the iterable, is raised after the others have been taken, and the next call
        returns their matches.
        """
        arrived, error = drawn(events)
        if self.recording:
            self._record("take", [fields_of_event(event) for event in arrived], len(arrived))
        if not arrived:
            matches = self._fed(())
        elif self._are_in_order(arrived):
            self.newest = max(self.newest, arrived[-1].end)
            matches = self._fed(arrived)
        else:
            matches, invalid = self._sorted_out(arrived)
            error = invalid or error
        matches = self._with_unreported(matches)
        if error is not None:
            self.unreported.append(matches)
            raise Refused(error)
        return matches

    def _with_unreported(self, matches: Matches) -> Matches:
        if not self.unreported:
            return matches
        before, self.unreported = self.unreported, []
        return join_matches([*before, matches])

    def _are_in_order(self, events: Sequence[Event]) -> bool:
        """Whether these events need no correction.  Every event pays for this check, so it has no loop in Python."""
        if self.lateness:
            return False
        try:
            ends = list(map(_second, events))
        except UnexpectedRetraction:
            return False
        at = self.engine._at
        if any(map(gt, map(_first, events), ends)):
            return False
        # If the newest event was withdrawn, the engine has gone back before it.  Events that were too old by the newest
        # one's time must stay too old all the same.
        reached = max(at.now, at.closed + 1, self.newest - self.horizon)
        return ends[0] >= reached and ends == sorted(ends)

    def _sorted_out(self, arrived: Iterable[Event]) -> tuple[Matches, Exception | None]:
        """Take events some of which are late, invalid, or corrections; also returns the error of an invalid one."""
        at = self.engine._at
        reached = max(at.now, at.closed + 1)
        ready: list[Event] = []  # in order of arrival, including late ones
        earliest: int | None = None
        inserts = False
        error: ValueError | None = None
        for event in arrived:
            if event.start > event.end:
                error = ValueError(f"an event starts at {event.start} and ends before, at {event.end}: swap the two")
                continue
            retracts = isinstance(event, Retraction)
            corrects = retracts or event.end < reached
            too_old = corrects and (event.end < self.newest - self.horizon or event.end <= self.points[0].now)
            if too_old or event.end < self.newest - max(self.horizon, self.lateness):
                self._refuse(event)
                continue
            if isinstance(event, Retraction) and self._withdraw_waiting(event):
                continue
            if corrects:
                ready.append(event)
                inserts |= not retracts
                earliest = event.end if earliest is None else min(earliest, event.end)
                continue
            self.newest = max(self.newest, event.end)
            for released in self._in_time(event):
                ready.append(released)
                reached = released.end
        return (self._fed(ready) if earliest is None else self._corrected(ready, earliest, inserts)), error

    def _in_time(self, event: Event) -> Iterator[Event]:
        """The events to take now: the event itself or, with a lateness, waiting events whose time has come by it."""
        if not self.lateness:
            yield event
            return
        self.arrivals += 1
        heapq.heappush(self.buffer, (event.end, self.arrivals, event))
        while self.buffer and self.buffer[0][0] < self.newest - self.lateness:
            yield heapq.heappop(self.buffer)[2]

    def _withdraw_waiting(self, event: Retraction) -> bool:
        """Withdraw from the lateness buffer; returns whether all of it was there."""
        kept = [(end, n, other) for end, n, other in self.buffer]
        if not any(end == event.end for end, _, _ in kept):
            return False
        waiting = [other for _, _, other in kept]
        missing = withdraw(waiting, event)
        if missing == event.triples:
            return False
        there = {n: other for (_, n, _), other in zip(kept, waiting, strict=True) if other.triples}
        self.buffer = [(end, n, there[n]) for end, n, _ in kept if n in there]
        heapq.heapify(self.buffer)
        if missing:
            self._refuse(event._replace(triples=missing))
        return True

    def _refuse(self, event: Event) -> None:
        self.engine.counters.late += 1
        self.engine.dead_letters.append(event)

    # --- going forward ---

    def _fed(self, items: Sequence[Item]) -> Matches:
        """Feed items in order to the engine, with points between them; returns the reports."""
        engine = self.engine
        every: list[Matches] = []
        if not items:
            every.append(self._recorded(engine.take_in_order(())))
        oldest = items[-1].end - self.horizon if items else NEVER
        pieces = list(pieces_of_items(items, oldest, FEWEST))
        for some, after in zip_longest(pieces, pieces[1:]):
            if isinstance(some, BackgroundUpdate):
                every.append(self._recorded(self._changed(some)[1]))
                continue
            every.append(self._recorded(engine.take_in_order(some)))
            self.points[-1].items.extend(some)
            self._credit += len(some) * SPARE
            if after is None or isinstance(after, BackgroundUpdate) or after[-1].end >= oldest:
                self._mark()  # before the horizon only the last point is needed, so a later piece makes it
        self._forget()
        return join_matches(every)

    def _changed(self, update: BackgroundUpdate) -> tuple[Any, Matches]:
        """Change the background; the instant at ``update.end`` is over first, and what it reports is returned, too."""
        engine = self.engine
        due = [engine.reach(update.end)] if update.end > engine._at.closed else []
        change = engine.change(update.graph, update.add, update.remove)
        self.points[-1].items.append(update)
        return change, join_matches([*due, engine.take_in_order(())])

    def _recorded(self, matches: Matches) -> Matches:
        if len(matches):
            self.points[-1].reported.append(matches)
        return matches

    def _mark(self) -> None:
        """Make a point if the last one is far enough away."""
        last, now = self.points[-1], self.engine._at.now
        cost = len(last.state) / BYTES
        if len(last.items) < FEWEST or now - last.now < self.horizon // EIGHTH:
            return
        due = now - last.now >= self.horizon // QUARTER and len(last.items) >= WORTH * cost
        if due or self._credit >= cost:
            self.points.append(Point(now, self.engine.save()))
            self._credit -= len(self.points[-1].state) / BYTES

    def _forget(self) -> None:
        """Drop what is before the horizon."""
        points, oldest = self.points, self.newest - self.horizon
        while len(points) > 1 and points[1].now < oldest:
            del points[0]
        kept = sum(len(point.items) for point in points)
        if kept > self.engine.limits.horizon:
            raise LimitExceeded(
                f"{kept} events lie in the revision horizon, the limit is {self.engine.limits.horizon}; make the "
                "horizon shorter, or raise Limits(horizon=…)"
            )

    # --- going back ---

    def _corrected(self, ready: Sequence[Event], earliest: int, inserts: bool) -> Matches:
        """The difference that corrections make, in one replay; ``earliest`` is the first time that one concerns."""
        place = max(i for i, point in enumerate(self.points) if point.now < earliest or i == 0)
        items = list(chain.from_iterable(point.items for point in self.points[place:]))
        corrected, missing, withdrawn = correct_items(items, ready)
        for event in missing:
            self._refuse(event)
        if not (withdrawn or inserts):
            return self._fed([event for event in ready if not isinstance(event, Retraction)])
        return self._replayed(place, corrected)

    def _replayed(self, place: int, items: Sequence[Item]) -> Matches:
        """Go back to a point, take these items from there on instead, and report the difference."""
        engine, counters = self.engine, self.engine.counters
        before = list(chain.from_iterable(chain.from_iterable(p.reported for p in self.points[place:])))
        reached = max(engine._at.now, engine._at.closed + 1) - 1
        closed = engine._at.closed
        late, replayed, corrections = counters.late, counters.replayed, counters.corrections
        del self.points[place + 1 :]
        point = self.points[place]
        point.items, point.reported = [], []
        engine.go_back(point.state)
        self._credit += len(items) * AFTER
        after = list(self._fed(items))
        at = engine._at
        if at.now <= reached or at.closed < closed:
            after += self._recorded(engine.reach(max(reached, closed)))
        counters.late = late
        counters.replayed, counters.corrections = replayed + len(items), corrections + 1
        return difference(engine._shapes, before, after)  # type: ignore[attr-defined]

    # --- time and background ---

    def advance(self, t: int) -> Matches:
        """Time has reached ``t``."""
        self._record("advance", t)
        released = self._released(t)
        return self._with_unreported(join_matches([released, self._recorded(self.engine.reach(t))]))

    def close(self, until: int | None = None) -> Matches:
        """The stream has ended."""
        self._record("close", until)
        released = self._released(FOREVER if until is None else until)
        return self._with_unreported(join_matches([released, self.engine.end(until)]))

    def _released(self, t: int) -> Matches:
        ready = []
        while self.buffer and self.buffer[0][0] <= t:
            ready.append(heapq.heappop(self.buffer)[2])
        return self._fed(ready)

    def update(self, graph: str, add: list[Any], remove: list[Any], at: int | None) -> Any:
        """Change the background now, or as of the end of the instant at ``at``; the next call reports the effect.

        If that instant is not over, it is then.
        """
        now = self.engine._at.now
        if at is not None and at < now and (at < self.newest - self.horizon or at < self.points[0].now):
            raise Refused(
                ValueError("the update is older than the revision horizon: make the horizon longer, or update now")
            )
        self._record("update", [graph, add, remove, at], 1 + len(add) + len(remove))
        if at is None or at >= now:
            end = self.engine.change_follows() if at is None else at
            self.unreported.append(self._released(end))
            change, matches = self._changed(BackgroundUpdate(end, graph, add, remove))
            self.unreported.append(self._recorded(matches))
            return change
        place = max(i for i, point in enumerate(self.points) if point.now <= at or i == 0)
        items = list(chain.from_iterable(point.items for point in self.points[place:]))
        self.unreported.append(
            self._replayed(place, sorted([*items, BackgroundUpdate(at, graph, add, remove)], key=order_of_item))
        )
        return None

    # --- state ---

    def _record(self, step: str, given: Any, size: int = 1) -> None:
        if self.recording:
            self._inputs.append([step, given])
            self.entries += size

    def journal(self) -> list[list[Any]]:
        """The input since the last call: with a horizon, the journal only has to have it taken again."""
        inputs, self._inputs, self.entries = self._inputs, [], 0
        return inputs

    def replay(self, inputs: Iterable[Sequence[Any]]) -> None:
        """Take the input of ``journal`` again; its reports have been made before and are dropped."""
        recording, self.recording = self.recording, False
        for step, given in inputs:
            if step == "take":
                with suppress(Refused):  # reported when it was taken
                    self.take([event_of_fields(fields) for fields in given])
            elif step == "update":
                graph, add, remove, at = given
                self.update(graph, [tuple(t) for t in add], [tuple(t) for t in remove], at)
            else:
                getattr(self, step)(given)
        self.recording = recording
        self.unreported.clear()
        self.engine.dead_letters.clear()

    def unread(self) -> list[Matches]:
        """The matches that the next call returns first."""
        if len(matches := self._recorded(self.engine._matches())):
            self.unreported.append(matches)
        return self.unreported

    def plain(self) -> dict[str, Any]:
        """The state to continue from: the first point, the input since then, and the time."""
        at = self.engine._at
        items = [
            [i.end, i.graph, i.add, i.remove] if isinstance(i, BackgroundUpdate) else list(i)
            for point in self.points
            for i in point.items
        ]
        return {
            "now": self.points[0].now,
            "state": self.points[0].state,
            "items": items,
            "newest": self.newest,
            "reached": [at.now, at.closed],
            "counters": [self.engine.counters.late, self.engine.counters.replayed, self.engine.counters.corrections],
            "buffer": [[end, n, list(event)] for end, n, event in sorted(self.buffer, key=itemgetter(0, 1))],
        }

    def go_on(self, plain: dict[str, Any], *, fitted: bool = False) -> None:
        """Continue from the state that ``plain`` wrote: the horizon is taken in again."""
        engine = self.engine
        engine.go_back(plain["state"], fitted=fitted)
        self.points = [Point(plain["now"], plain["state"])]
        self.unreported.clear()
        self.journal()
        self.newest = plain["newest"]
        self.buffer = [(end, n, event_of_fields(fields)) for end, n, fields in plain["buffer"]]
        self.arrivals = max((n for _, n, _ in self.buffer), default=0)
        self._fed([BackgroundUpdate(*i) if len(i) == 4 else event_of_fields(i) for i in plain["items"]])
        now, closed = plain["reached"]
        if engine._at.now < now or engine._at.closed < closed:
            self._recorded(engine.reach(max(now - 1, closed)))
        late, replayed, corrections = plain["counters"]
        counters = engine.counters
        counters.late, counters.replayed, counters.corrections = late, replayed, corrections


def difference(shapes: Sequence[Shape], before: Iterable[Match], after: Iterable[Match]) -> Matches:
    """The matches taken back, then the new ones, compared by id."""
    old, new = ({match.id: match for match in matches} for matches in (before, after))
    gone = [match.taken_back() for name, match in old.items() if name not in new]
    return Revised(shapes, [*gone, *(match for name, match in new.items() if name not in old)])
