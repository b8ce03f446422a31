"""Everything that all executors share: the order of input, the stages of an instant, and the order of matches.

Events of one end form an instant, which closes when time moves on.  Everything is decided at instant close, so the
order in which simultaneous events arrive does not matter.  An event that arrives after its instant has closed is late:
within the allowed lateness a buffer puts it in order; beyond that it goes to the dead letters and is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypedDict, Unpack

from etalis_py.events import SOURCE_ORDER, Event, Triple
from etalis_py.events.clock import time_in_micros
from etalis_py.garbage import few_collections
from etalis_py.kernel.batch import Batch, InColumns, concat_columns, count_events, cut_last_instant, extent, on_stream
from etalis_py.kernel.instants import Instants
from etalis_py.kernel.matches import Match, Matches
from etalis_py.kernel.position import FOREVER, NEVER, drawn
from etalis_py.kernel.protocol import Dispatch
from etalis_py.kernel.reports import drop_reports
from etalis_py.kernel.steps import Refused, step
from etalis_py.values.errors import LimitExceeded


class RecordOptions(TypedDict, total=False):
    """How a record is read, each as for ``run``."""

    mapping: Any
    time: str
    subject: str | None


class Kernel(Instants):
    """Puts events in order and runs them through stages of executors.

    A program with one stage whose executor has functions for an instant runs in one loop that calls them; otherwise
    complete instants go from stage to stage in batches.
    """

    # --- input ---

    def push(self, event: Event | Any, **options: Unpack[RecordOptions]) -> Matches:
        """Take one event; returns the matches of the instants that it closed.

        A record is taken as well: a dict, or a row that has names, with a ``mapping``, or with the names of the columns
        that have its ``time`` and its ``subject``, as for ``run``.
        """
        if type(event) is not Event or options:
            taken = self._take_other(event, options)
            if taken is not None:
                return taken
        if not self._idle:
            raise self._unusable()
        dispatch, at, end = self._quick, self._at, event.end
        now = at.now
        if dispatch is None or end < now or event[0] > end or (end == now and now <= at.closed):
            return self._push(event)
        self._idle = False
        try:
            # This does for a single event what ``_feed`` does for each event of its loop.
            if end == now:
                at.pending.append(event)
            else:
                if at.pending:
                    self._run_instant(dispatch, now, at.pending)
                if dispatch.due is not None and dispatch.alarm[0] < end:
                    dispatch.due(end - 1)
                at.now, at.pending = end, [event]
            self.counters.events += 1
            self._since_house += 1
            if self._since_house >= dispatch.every[0]:
                self._keep_house(dispatch, 0, at.now)
            some = bool(self._stages[0].executor.reports)
            matches = self._matches() if some else Matches(self._shapes, [])
        except BaseException as error:
            self._interrupt("push", error)
            raise
        self._idle = True
        if some and self._listeners:
            self._tell(matches)
        return matches

    def on_match(self, function: Callable[[Match], Any]) -> Callable[[Match], Any]:
        """Call a function with each match from now on, besides returning it; also as a decorator.

        It is called after the step that gave the match, so it may push more.  If it raises an error, the call raises
        it, and passes on none of the matches after this one.
        """
        if not callable(function):
            raise TypeError(f"on_match takes a function of a match, not {function!r}")
        self._listeners.append(function)
        return function

    def _tell(self, result: Any) -> None:
        if isinstance(result, Matches):
            for match in result:
                for listener in self._listeners:
                    listener(match)

    def _take_other(self, given: Any, options: RecordOptions) -> Matches | None:
        """Take input that is not simply an event, as ``Taking`` can; returns None if it is an event after all."""
        return None

    @step
    def _push(self, event: Event) -> Matches:
        """Take one event that the short way in ``push`` cannot take.

        It does without the preparations of ``push_all``, which pay only for many events.
        """
        self._check_open()
        if self._revision is not None:
            return self._revision.take((event,))
        self._begin()
        if (error := self._take((event,))) is not None:
            raise Refused(error)
        return self._matches()

    @step
    def push_all(self, events: Iterable[Event] | InColumns) -> Matches:
        """Take events in order, or columns of them; returns the matches of the instants that they closed.

        If the iterable raises an error, the events before it have been taken, and the next call returns their matches.
        """
        self._check_open()
        if self._revision is not None:
            rows = Batch(None, extent(events)[1], events).rows if isinstance(events, InColumns) else events
            return self._revision.take(rows)
        self._begin()
        error: Exception | None = None
        if isinstance(events, InColumns):
            error = self._take_columns(events)
        else:
            with few_collections(events):
                error = self._take(events)
        if error is not None:
            raise Refused(error)
        return self._matches()

    def settled(self) -> tuple[int, int]:
        """The time before which no report changes any more, and the newest time at which there may have been one."""
        at, revision = self._at, self._revision
        newest = at.newest if revision is None else revision.newest
        reached = max(at.now, at.closed, newest)
        return (reached if revision is None else newest - max(revision.horizon, revision.lateness)), reached

    def take_in_order(self, events: Iterable[Event]) -> Matches:
        """Take valid events none of which is late, whatever the lateness."""
        self._begin()
        with few_collections(events):
            self._take_ordered(events)
        return self._matches()

    def _take_columns(self, columns: InColumns) -> Exception | None:
        """Take events in columns; they are taken one by one if they are out of order, or no executor takes columns.

        It returns the error to raise after the others have been taken, as ``_take`` does.
        """
        if self.lateness and len(columns):
            from etalis_py.kernel.late_columns import in_order_of_time  # few runs need it

            found = in_order_of_time(self._at, columns, self.lateness) if self._in_columns() else None
            if found is None:
                return self._take(Batch(None, self._at.now, columns).rows)
            columns, late = found
            for event in late:
                self._refuse(event)
        return self._take_columns_in_order(columns) if len(columns) else None

    def _take_columns_in_order(self, columns: InColumns) -> Exception | None:
        at = self._at
        first, last, in_order = extent(columns)
        begun = max(at.now, at.closed + 1)
        if not in_order or first < begun or not self._in_columns():
            return self._take_ordered(Batch(None, last, columns).rows)
        if self._unnamed:
            columns = on_stream(columns, self._unnamed)
        self.counters.events += count_events(columns)
        if at.pending and first == at.now:
            columns = concat_columns(Batch(at.pending, at.now).columns, columns.flat)
        elif at.pending:
            self._pass(Batch(at.pending, at.now))
        closed, opened = cut_last_instant(columns)
        moved = last > at.now
        at.now, at.pending = last, list(dict.fromkeys(Batch(None, last, opened).rows))
        self.counters.triples += opened.triples - sum(len(event.triples) for event in at.pending)
        if moved:
            self._pass(Batch(None, last - 1, closed))
        return None

    @property
    def reads_records(self) -> bool:
        """Whether a table of records is best left as it is."""
        return self._in_columns() and self._stages[0].executor.reads == "records"

    @property
    def reads_columns(self) -> bool:
        """Whether a batch of columns is worth making for it."""
        return self._in_columns()

    def _in_columns(self) -> bool:
        """Whether a batch of columns can go through as it is."""
        alone = len(self._stages) == 1 and self._stages[0].executor.reads != "rows"
        return alone and not self.options.eager

    def _take(self, events: Iterable[Event]) -> Exception | None:
        """Take events in order of arrival; returns the error to raise after the others have been taken."""
        if not self.lateness:
            return self._take_ordered(events)
        ready, late, error = self._at.ordered(events, self.lateness)
        for event in late:
            self._refuse(event)
        return self._take_ordered(ready) or error

    def _take_ordered(self, events: Iterable[Event]) -> Exception | None:
        """Take events in the order of their ends, except for late ones."""
        if self._dispatch is not None and self._stages[0].executor.form == "columns":
            self._dispatch = self._stages[0].executor.dispatch()  # its goals move back into rows
        if not self.options.eager:
            return self._pass_on(events)
        there, error = drawn(events)
        for event in there:
            error = self._pass_on((event,)) or error
            self._close_instant()
        return error

    def _pass_on(self, events: Iterable[Event]) -> Exception | None:
        """Pass events to the functions of an instant, or on as batches."""
        return self._gather(events) if self._dispatch is None else self._feed(self._dispatch, events)

    def _feed(self, dispatch: Dispatch, events: Iterable[Event]) -> Exception | None:
        """Pass events in order of their ends to the functions of an instant, one call per instant.

        Every event pays for this loop, so an instant of a single event is handed over without a list.  An error of the
        iterable or of an invalid event is returned, after all events before it were taken.
        """
        at = self._at
        now, closed, pending = at.now, at.closed, at.pending
        get, other, instant, due = dispatch.single.get, dispatch.other, dispatch.instant, dispatch.due
        alarm, every = dispatch.alarm, dispatch.every[0] - self._since_house
        count = instants = more = 0
        error: Exception | None = None
        begun, source, named = 0, "", ""
        held: tuple[Triple, ...] = ()  # the triples of the instant's first event, while it is the only one
        before, run = "", get("", other)  # the last predicate of an event alone, and its function
        between = True  # whether an error now comes from the iterable, and not from taking an event
        try:
            for start, end, triples, stream, graph in events:
                if end > now and start <= end:
                    between = False
                    if held:
                        if len(held) == 1:
                            s, p, o = held[0]
                            if p is not before:
                                before, run = p, get(p, other)
                            run(s, o, begun, now, source, p)
                        else:
                            instant(now, [(s, p, o, begun, source) for s, p, o in held])
                            more += len(held) - 1
                        instants += 1
                    elif pending:
                        self._run_instant(dispatch, now, pending)
                        pending = []
                    now, begun, held, source, named = end, start, triples, stream, graph
                    if due is not None and alarm[0] < end:
                        due(end - 1)
                    count += 1
                    if count >= every:
                        self._keep_house(dispatch, count, now)
                        count, every = 0, dispatch.every[0]
                    between = True
                elif end == now and end > closed and start <= end:
                    if held:
                        pending.append((begun, now, held, source, named))
                        held = ()
                    pending.append((start, end, triples, stream, graph))
                    count += 1
                else:
                    error = self._refuse(Event._make((start, end, triples, stream, graph))) or error
        except Exception as failure:
            if not between or isinstance(failure, MemoryError):
                if isinstance(failure, LimitExceeded):
                    drop_reports(self._stages[0].executor.reports, now)
                raise
            error = failure
        if held:
            pending.append((begun, now, held, source, named))
        at.now, at.pending = now, pending
        self.counters.instants += instants
        self.counters.triples += instants + more
        self._keep_house(dispatch, count, now)
        return error

    def _gather(self, events: Iterable[Event]) -> Exception | None:
        """Pass events in order of their ends on as batches of complete instants; the stream is a set of occurrences."""
        at = self._at
        now, closed, unnamed = at.now, at.closed, self._unnamed
        all_differ = self.options.ties == SOURCE_ORDER
        rows: list[Event] = list(at.pending)
        opened = 0  # where the open instant begins in ``rows``
        there: set[Event] | None = None  # the events of the open instant, once a second one has come
        count = 0
        error: Exception | None = None
        try:
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
                    if event not in there or all_differ:
                        there.add(event)
                        rows.append(event)
                    else:
                        self.counters.triples += len(event[2])
                else:
                    error = self._refuse(given) or error
        except MemoryError:
            raise
        except Exception as failure:
            error = failure
        moved = now > at.now
        at.now, at.pending = now, rows[opened:]
        self.counters.events += count
        if moved:
            del rows[opened:]
            self._pass(Batch(rows, now - 1))
        return error

    def _refuse(self, event: Event) -> ValueError | None:
        """Put a late event aside; for an invalid one, return the error to raise after the others have been taken."""
        if event.start > event.end:
            return ValueError(f"an event starts at {event.start} and ends before, at {event.end}: swap the two")
        self.counters.late += 1
        self.dead_letters.append(event)
        return None

    def _release(self, t: int) -> None:
        """Take the waiting events up to ``t`` out of the lateness buffer, and run them."""
        if ready := self._at.release(t):
            if self._dispatch is None:
                self._gather(ready)
            else:
                self._feed(self._dispatch, ready)

    # --- time ---

    @step
    def advance(self, t: int) -> Matches:
        """Time has reached ``t``: every instant up to and including it is over."""
        self._check_open()
        try:
            t = time_in_micros("advance(t)", t)
        except TypeError as error:
            raise Refused(error) from None
        return self.reach(t) if self._revision is None else self._revision.advance(t)

    def reach(self, t: int) -> Matches:
        """Let time reach ``t``, as ``advance`` does, in an engine without corrections or inside its revision."""
        self._begin()
        self._release(t)
        at = self._at
        if at.now <= t:
            self._close_instant(t)
            at.now = t
        at.closed = max(at.closed, t)
        return self._matches()

    @step
    def close(self, *, until: int | None = None) -> Matches:
        """The stream has ended: the open instant closes, and what is only known at the end is reported.

        ``until``: it has ended at this time, and what would fall due later is left out.
        """
        self._check_open()
        return self.end(until) if self._revision is None else self._revision.close(until)

    def end(self, until: int | None = None) -> Matches:
        """End the stream, as ``close`` does, in an engine without corrections or inside its revision."""
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
        """Let time run on after the stream's end while an executor has something to report; returns the last time."""
        furthest, rounds = NEVER, 0
        while True:
            last = max((h for s in self._stages if (h := s.executor.horizon()) is not None), default=None)
            due = self._due()
            if last is None or due is None or due > last:
                return t
            if last > furthest:  # what was reported after the end made a later stage wait again
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

    def _check_open(self) -> None:
        if self._at.finished:
            raise Refused(ValueError("this engine is closed; make a new one for another stream"))

    def _begin(self) -> None:
        at = self._at
        if not at.started:
            at.started = True
            for number, stage in enumerate(self._stages):
                stage.executor.begin(at.now)
                self._collect(number, stage)
