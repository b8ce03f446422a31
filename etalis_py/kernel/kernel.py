"""Everything that all executors share: the order of input, the stages of an instant, and the order of matches.

Events of one end form an instant, which closes when time moves on.  Everything is decided at instant close, so the
order in which simultaneous events arrive does not matter.  An event that arrives after its instant has closed is late:
within the allowed lateness a buffer puts it in order; beyond that it goes to the dead letters and is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from etalis_py.events import Event, Triple
from etalis_py.kernel.batch import (
    Batch,
    Columns,
    Report,
    as_reported,
    count_events,
    cut_last_instant,
    extent,
    on_stream,
    together,
)
from etalis_py.kernel.garbage import few_collections
from etalis_py.kernel.matches import LazyShapes, Matches, Shape
from etalis_py.kernel.options import Options, seconds
from etalis_py.kernel.position import FOREVER, NEVER, Counters, Kept, Position
from etalis_py.kernel.protocol import Dispatch, Executor
from etalis_py.kernel.reports import check_matches, first_answers
from etalis_py.kernel.revision import Revision, as_one
from etalis_py.values.errors import LimitExceeded


@dataclass(frozen=True, slots=True)
class Stage:
    """An executor, and the numbers that its outputs have in the whole program."""

    executor: Executor
    numbers: tuple[int, ...]


class Kernel:
    """Puts events in order and runs them through stages of executors.

    A program with one stage whose executor has functions for an instant runs in one loop that calls them; otherwise
    complete instants go from stage to stage in batches.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.lateness = options.lateness
        self.limits = options.limits
        self.render = options.render or seconds
        self.counters = Counters(kept=self._kept)
        self.dead_letters: list[Event] = []
        start = NEVER if options.start is None else options.start - 1
        self._at = Position(now=start, closed=start)
        self._since_house = 0
        self._reports: list[tuple[int, int, Report]] = []  # with several stages: instant, stage, report
        self._unread: list[Matches] = []  # matches of replaced stages, for the next call
        self._revision: Revision | None = None
        self._arrange((), [])

    def _arrange(
        self, stages: Sequence[Stage], shapes: Sequence[Shape], *, unnamed: str = "", lockstep: bool = False
    ) -> None:
        """Run these stages from now on.

        ``unnamed`` is the stream of events that name none.  ``lockstep``: every stage sees an instant before any sees
        the next, because the background that they read changes from one instant to the next.
        """
        self._stages = tuple(stages)
        self._shapes = shapes
        self._unnamed = unnamed
        self._lockstep = lockstep
        self._dispatch: Dispatch | None = stages[0].executor.dispatch() if len(stages) == 1 else None
        self._waits = bool(self.lateness) or self.options.eager or bool(self._unread)
        there = shapes.ordinary if isinstance(shapes, LazyShapes) else dict(enumerate(shapes))
        own = {number: shape.query for number, shape in there.items() if shape.once}
        self._once = shapes.once if isinstance(shapes, LazyShapes) else own
        self._hidden = frozenset(number for number, shape in there.items() if shape.hidden)
        # The fast loop keeps the open instant as plain tuples.
        self._at.pending = [Event._make((*e[:3], e[3] or unnamed, e[4])) for e in self._at.pending]

    def _set_aside(self) -> None:
        """Keep what has been reported for the next call: other stages will number their outputs differently."""
        matches = self._matches()
        self._unread = [matches] if len(matches) else []

    # --- input ---

    def push(self, event: Event, *, mapping: Any = None) -> Matches:
        """Take one event; returns the matches of the instants that it closed."""
        unusual = type(event) is not Event or mapping is not None
        if unusual and (taken := self._take_other(event, mapping)) is not None:
            return taken
        if self._revision is not None:
            return self._revision.take((event,))
        dispatch, at, end = self._dispatch, self._at, event.end
        if dispatch is None or self._waits or end <= at.now or event[0] > end or not at.started or at.finished:
            self._begin()
            self._take((event,))
            return self._matches()
        # Does what ``_feed`` does for the first event of an instant, without the loop around it.
        if at.pending:
            self._run_instant(dispatch, at.now, at.pending)
        if dispatch.due is not None and dispatch.alarm[0] < end:
            dispatch.due(end - 1)
        at.now, at.pending = end, [event]
        self.counters.events += 1
        self._since_house += 1
        if self._since_house >= self.options.sweep_every:
            self._keep_house(dispatch, 0, at.now)
        return self._matches() if self._stages[0].executor.reports else Matches(self._shapes, [])

    def _take_other(self, given: Any, mapping: Any) -> Matches | None:
        """Take what is not simply an event (``Taking`` does); None: it is one after all."""
        return None

    def push_all(self, events: Iterable[Event] | Columns) -> Matches:
        """Take events in order, or columns of them; returns the matches of the instants that they closed."""
        if self._revision is not None:
            rows = Batch(None, extent(events)[1], events).rows if isinstance(events, Columns) else events
            return self._revision.take(rows)
        self._begin()
        if isinstance(events, Columns):
            self._take_columns(events)
            return self._matches()
        with few_collections(events):
            self._take(events)
        return self._matches()

    def take_in_order(self, events: Iterable[Event]) -> Matches:
        """Take events none of which is late, whatever the lateness."""
        self._begin()
        with few_collections(events):
            self._take_ordered(events)
        return self._matches()

    def _take_columns(self, columns: Columns) -> None:
        """Take events in columns; one by one if something is out of order or nothing runs in columns."""
        at = self._at
        first, last, in_order = extent(columns)
        begun = max(at.now, at.closed + 1)
        if not in_order or first < begun or not self._in_columns():
            self._take(Batch(None, last, columns).rows)
            return
        if self._unnamed:
            columns = on_stream(columns, self._unnamed)
        self.counters.events += count_events(columns)
        if at.pending and first == at.now:
            columns = together(Batch(at.pending, at.now).columns, columns)
        elif at.pending:
            self._pass(Batch(at.pending, at.now))
        closed, opened = cut_last_instant(columns)
        moved = last > at.now
        at.now, at.pending = last, list(dict.fromkeys(Batch(None, last, opened).rows))
        self.counters.triples += len(opened) - sum(len(event.triples) for event in at.pending)
        if moved:
            self._pass(Batch(None, last - 1, closed))

    @property
    def reads_columns(self) -> bool:
        """Whether a batch of columns is worth making for it."""
        return self._in_columns()

    def _in_columns(self) -> bool:
        """Whether a batch of columns can go through as it is."""
        alone = len(self._stages) == 1 and self._stages[0].executor.reads == "columns"
        return alone and not (self.lateness or self.options.eager)

    def _take(self, events: Iterable[Event]) -> None:
        """Take events in order of arrival."""
        self._take_ordered(self._at.ordered(events, self.lateness) if self.lateness else events)

    def _take_ordered(self, events: Iterable[Event]) -> None:
        """Take events in the order of their ends, except for late ones."""
        if self._dispatch is not None and self._stages[0].executor.form == "columns":
            self._dispatch = self._stages[0].executor.dispatch()  # its goals move back into rows
        if self._dispatch is None:
            self._gather(events)
        elif self.options.eager:
            for event in events:
                self._feed(self._dispatch, (event,))
                self._close_instant()
        else:
            self._feed(self._dispatch, events)

    def _feed(self, dispatch: Dispatch, events: Iterable[Event]) -> None:
        """Pass events in order of their ends to the functions of an instant, one call per instant.

        Every event pays for this loop, so an instant of one event is handed over without being collected.
        """
        at = self._at
        now, closed, pending = at.now, at.closed, at.pending
        get, other, instant, due = dispatch.single.get, dispatch.other, dispatch.instant, dispatch.due
        alarm, every = dispatch.alarm, self.options.sweep_every
        count = instants = more = 0
        error: ValueError | None = None
        begun, source, named = 0, "", ""
        held: tuple[Triple, ...] = ()  # the first event of the instant, while it is the only one
        for start, end, triples, stream, graph in events:
            if end > now and start <= end:
                if held:
                    if len(held) == 1:
                        s, p, o = held[0]
                        get(p, other)(s, o, begun, now, source, p)
                    else:
                        instant(now, [(s, p, o, begun, source) for s, p, o in held])
                        more += len(held) - 1
                    instants += 1
                elif pending:
                    self._run_instant(dispatch, now, pending)
                    pending = []
                now, begun, held, source, named = end, start, triples, stream, graph
                if due is not None and alarm[0] <= end and due(end - 1) == end:
                    pending, held = [(start, end, triples, stream, graph)], ()
                count += 1
                if count >= every:
                    self._keep_house(dispatch, count, now)
                    count = 0
            elif end == now and end > closed and start <= end:
                if held:
                    pending.append((begun, now, held, source, named))
                    held = ()
                pending.append((start, end, triples, stream, graph))
                count += 1
            else:
                error = self._refuse(Event._make((start, end, triples, stream, graph))) or error
        if held:
            pending.append((begun, now, held, source, named))
        at.now, at.pending = now, pending
        self.counters.instants += instants
        self.counters.triples += instants + more
        self._keep_house(dispatch, count, now)
        if error is not None:
            raise error

    def _run_instant(self, dispatch: Dispatch, now: int, events: Sequence[Any]) -> None:
        """Pass all events of an instant to its functions."""
        if len(events) == 1 and len(events[0][2]) == 1 and dispatch.due is None:
            start, _, ((s, p, o),), stream, _ = events[0]
            dispatch.single.get(p, dispatch.other)(s, o, start, now, stream, p)
            self.counters.triples += 1
        else:
            occurrences = [(s, p, o, start, stream) for start, _, triples, stream, _ in events for s, p, o in triples]
            if not occurrences:
                return
            if dispatch.due is not None and dispatch.alarm[0] <= now:
                dispatch.due(now - 1)  # a restored engine has not yet checked what is due before its open instant
            dispatch.instant(now, occurrences)
            self.counters.triples += len(occurrences)
        self.counters.instants += 1

    def _keep_house(self, dispatch: Dispatch, events: int, now: int) -> None:
        self.counters.events += events
        self._since_house += events
        if self._since_house >= self.options.sweep_every:
            dispatch.keep(self._since_house, now)
            self._since_house = 0

    def _gather(self, events: Iterable[Event]) -> None:
        """Pass events in order of their ends on as batches of complete instants; the stream is a set of occurrences."""
        at = self._at
        now, closed, unnamed = at.now, at.closed, self._unnamed
        rows: list[Event] = list(at.pending)
        opened = 0  # place where the open instant begins
        there: set[Event] | None = None  # its events, when there are several
        count = 0
        error: ValueError | None = None
        for given in events:
            event = given if given[3] or not unnamed else Event._make((*given[:3], unnamed, given[4]))
            end = event[1]  # a retraction cannot be indexed, so it is refused here
            if end > now and event[0] <= end:
                opened, there, now = len(rows), None, end
                rows.append(event)
                count += 1
            elif end == now and end > closed and event[0] <= end:
                count += 1
                if there is None:
                    there = set(rows[opened:])
                if event not in there:
                    there.add(event)
                    rows.append(event)
                else:
                    self.counters.triples += len(event[2])
            else:
                error = self._refuse(given) or error
        moved = now > at.now
        at.now, at.pending = now, rows[opened:]
        self.counters.events += count
        if moved:
            del rows[opened:]
            self._pass(Batch(rows, now - 1))
        if error is not None:
            raise error

    def _refuse(self, event: Event) -> ValueError | None:
        """Put a late event aside; for an invalid one, return the error to raise after the others have been taken."""
        if event.start > event.end:
            return ValueError(f"an event starts at {event.start} and ends before, at {event.end}: swap the two")
        self.counters.late += 1
        self.dead_letters.append(event)
        return None

    def _release(self, t: int) -> None:
        """Take what the buffer holds up to ``t``."""
        if ready := self._at.release(t):
            if self._dispatch is None:
                self._gather(ready)
            else:
                self._feed(self._dispatch, ready)

    # --- time ---

    def advance(self, t: int) -> Matches:
        """Time has reached ``t``: every instant up to and including it is over."""
        return self.reach(t) if self._revision is None else self._revision.advance(t)

    def reach(self, t: int) -> Matches:
        """The same as ``advance``, regardless of corrections."""
        self._begin()
        self._release(t)
        at = self._at
        if at.now <= t:
            self._close_instant(t)
            at.now = t
        at.closed = max(at.closed, t)
        return self._matches()

    def close(self, *, until: int | None = None) -> Matches:
        """The stream has ended: the open instant closes, and what is only known at the end is reported.

        ``until``: it has ended at this time, and what would fall due later is left out.
        """
        return self.end(until) if self._revision is None else self._revision.close(until)

    def end(self, until: int | None = None) -> Matches:
        """The same as ``close``, regardless of corrections."""
        self._begin()
        self._release(FOREVER if until is None else until)
        at = self._at
        reached = at.now
        if at.now != NEVER:
            self._close_instant(at.now if until is None else max(at.now, until))
            reached = self._run_out(at.now) if until is None else max(at.now, until)
        for number, stage in enumerate(self._stages):
            stage.executor.close(reached)
            self._collect(number, stage)
        at.finished = True
        return self._matches()

    def _run_out(self, t: int) -> int:
        """Let time run on after the end while an executor has something to report; returns where it stops."""
        furthest, rounds = NEVER, 0
        while True:
            last = max((h for s in self._stages if (h := s.executor.horizon()) is not None), default=None)
            due = self._due()
            if last is None or due is None or due > last:
                return t
            if last > furthest:  # a report after the end has started something new
                furthest, rounds = last, rounds + 1
            if rounds > self.limits.rounds:
                raise LimitExceeded(
                    f"the stream has ended, and what is reported after it has started something new {rounds} times; "
                    "end that chain with another condition, or raise Limits(rounds=…)"
                )
            self._pass(Batch((), due))
            t = due

    def next_due(self) -> int | None:
        """The next time at which there may be something to report without a further event, as far as is known now.

        Call ``advance`` when it has come.  None: nothing happens until the next event.
        """
        at = self._at
        if at.finished:
            return None
        buffer = at.buffer if self._revision is None else self._revision.buffer
        times = self._due(), at.now if at.pending else None, buffer[0][0] if buffer else None
        return min((t for t in times if t is not None), default=None)

    def _due(self) -> int | None:
        """The first time at which a stage has something due."""
        return min((t for s in self._stages if (t := s.executor.next_due()) is not None), default=None)

    @property
    def closed_at(self) -> int:
        """The time up to which every instant is over."""
        at = self._at
        return at.closed if at.now == NEVER else max(at.closed, at.now - 1)

    @property
    def finished(self) -> bool:
        """Whether the stream has ended."""
        return self._at.finished

    def _begin(self) -> None:
        at = self._at
        if at.finished:
            raise ValueError("this engine is closed; make a new one for another stream")
        if not at.started:
            at.started = True
            for number, stage in enumerate(self._stages):
                stage.executor.begin(at.now)
                self._collect(number, stage)

    # --- instants ---

    def _close_instant(self, through: int | None = None) -> None:
        """Close the open instant, whose events are complete; ``through``: time has reached this point."""
        at = self._at
        pending, at.pending = at.pending, []
        if self._dispatch is not None and self._stages[0].executor.form == "rows":
            if pending:
                self._run_instant(self._dispatch, at.now, pending)
            if self._dispatch.due is not None and through is not None:
                self._dispatch.due(through)
        else:
            self._pass(Batch(pending, at.now if through is None else through))

    def _pass(self, batch: Batch) -> None:
        """Pass complete instants through all stages; later stages see what earlier ones derive."""
        instants, triples = batch.count()
        self.counters.instants += instants
        self.counters.triples += triples
        if not self._lockstep or len(self._stages) == 1:
            self._pass_together(batch)
            return
        for end, events in groupby(batch.rows, key=itemgetter(1)):
            self._pass_due(end - 1)
            self._pass_together(Batch(list(events), end))
        self._pass_due(batch.through)
        self._pass_together(Batch((), batch.through))

    def _pass_due(self, t: int) -> None:
        """Pass the due times without events up to ``t`` through the stages, one after the other."""
        while (due := self._due()) is not None and due <= t:
            self._pass_together(Batch((), due))

    def _pass_together(self, batch: Batch) -> None:
        for number, stage in enumerate(self._stages):
            stage.executor.take(batch)
            batch = batch.with_derived(stage.executor.derived)
            self._collect(number, stage)

    def _collect(self, number: int, stage: Stage) -> None:
        """Collect what a stage has reported; the reports of a single stage stay with it until they are read."""
        executor = stage.executor
        executor.derived.clear()
        if len(self._stages) > 1:
            numbers, reports = stage.numbers, as_reported(executor.reports, one_by_one=True)
            self._reports += [(t, number, (numbers[output], t, rows)) for output, t, rows in reports]
            executor.reports.clear()

    # --- reports ---

    def _matches(self) -> Matches:
        """What has been reported since the last call, by instant and stage."""
        if len(self._stages) == 1:
            waiting = self._stages[0].executor.reports
            reports = as_reported(waiting, one_by_one=bool(self._once or self._hidden))
            waiting.clear()
        else:
            reports = [report for _, _, report in sorted(self._reports, key=itemgetter(0, 1))]
            self._reports.clear()
        if self._once:
            reports = first_answers(reports, self._once, self._at.answered)
        if self._hidden:
            reports = [report for report in reports if report[0] not in self._hidden]
        matches = Matches(self._shapes, reports)
        if reports:
            count = len(matches)
            if count > self.limits.matches:
                check_matches(reports, self.limits, self.render)
            self.counters.matches += count
        if self._unread:
            matches, self._unread = as_one([*self._unread, matches]), []
            self._waits = bool(self.lateness) or self.options.eager
        return matches

    # --- what is kept ---

    def _kept(self) -> Kept:
        at = self._at
        total = Kept(items=len(at.buffer) + len(at.pending) if self._dispatch is None else 0)
        for stage in self._stages:
            kept = stage.executor.kept()
            total.goals += kept.goals
            total.items += kept.items
            total.per_rule |= kept.per_rule
        return total

    def count(self) -> Counters:
        """The counters, which also say what is kept now."""
        return self.counters
