"""Moves a stream through an engine, step by step: what ``run``, the command line, the REPL and the server share.

    stream ──▶ batches of events, columns, signals of time ──▶ engine ──▶ steps: matches, late events, newest time

The driver decides what is pushed together, applies updates of the background between the instants where they belong,
lets time pass while a live stream is silent, and ends at ``until``.  It prints nothing and keeps no matches.

>>> from etalis_py import Engine, event
>>> engine = Engine("SELECT ?x { ?c :p ?x }")
>>> steps = Driver(engine, [event(":c :p 1", 2), event(":c :p 2", 1)]).steps()
>>> [(len(step.matches), len(step.late), step.newest) for step in steps]
[(0, 0, None), (0, 1, 2000000), (1, 0, 2000000)]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

from etalis_py.engine.engine import Engine
from etalis_py.engine.executor_choice import warn_without_numba
from etalis_py.engine.inputs import in_columns
from etalis_py.engine.unseen_names import UnseenNames
from etalis_py.events import Event, Retraction, Triple
from etalis_py.kernel.matches import Matches
from etalis_py.knowledge import KnowledgeError
from etalis_py.streams import Burst, Idle, PassingTime, Punctuation, Stream, StreamError, up_to
from etalis_py.streams.pass_through import Ending
from etalis_py.streams.updates import TimedUpdate
from etalis_py.values.errors import LimitExceeded

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 1024
LARGE = 100_000  # events for which columns would be much quicker


@dataclass(frozen=True, slots=True)
class Step:
    """What one call of the engine gave.

    ``late``: events that came after their instant was over, or that correct nothing.  ``newest``: the latest end of an
    event so far.  ``ended``: the stream has ended, and this is the last step.
    """

    matches: Matches
    late: tuple[Event, ...]
    newest: int | None
    ended: bool = False


class Interruption(Protocol):
    """A wish to stop between two steps; see ``cli.interrupt``."""

    @property
    def asked(self) -> bool: ...
    def deferred(self) -> AbstractContextManager[None]: ...


class Keeper(Protocol):
    """Keeps the run, so that another process can go on; see ``durable.keeper``."""

    @property
    def resumed(self) -> bool: ...
    @property
    def to_caller(self) -> bool: ...
    def restore(self, driver: Driver) -> None: ...
    def counted(self, items: Iterator[Any]) -> Iterator[Any]: ...
    def due(self) -> bool: ...
    def due_at(self) -> float | None: ...
    def time_passed(self) -> None: ...
    def keep(self, driver: Driver, *, ended: bool = False) -> None: ...


class Uninterrupted:
    """Nobody wishes to stop."""

    asked = False

    def deferred(self) -> AbstractContextManager[None]:
        return nullcontext()


class Driver:
    """One engine and its stream.

    ``until`` ends the run (see ``Ending``); ``updates`` of the background are applied before the first event that is
    later, by more than the lateness.  ``live``: every event is pushed as it comes, so that its matches are seen at once
    (a burst is pushed together, if the stream marks bursts), as it always is on a live stream; otherwise ``batch`` at a
    time.

    ``census`` sees all events.  ``through`` is what the items pass through on their way from the stream, such as a
    pace.  ``interrupt`` asks to stop, and is deferred from the beginning of a step until its matches have been taken.

    ``passing`` says how far time has got while nothing comes; on a live stream, its patience decides.  ``steps`` runs a
    whole stream.  Where items are handed over instead, ``take`` gives the steps for each, and ``end`` the last one.
    """

    def __init__(
        self,
        engine: Engine,
        stream: Stream | Iterable[Any] = (),
        *,
        until: int | str | datetime | None = None,
        updates: Iterable[TimedUpdate] = (),
        live: bool = False,
        batch: int = BATCH,
        census: UnseenNames | None = None,
        through: Iterable[Callable[[Iterator[Any]], Iterator[Any]]] = (),
        interrupt: Interruption | None = None,
    ) -> None:
        self.engine = engine
        self._keeper: Keeper | None = None
        self._applied = 0  # updates
        self._pushed = 0  # events
        self.newest: int | None = None
        self._stream = stream
        self._silent: Stream | None = stream if isinstance(stream, Stream) and stream.idle is not None else None
        self.passing: PassingTime | None = None
        if self._silent is not None:
            self.passing = PassingTime(idle=self._silent.idle or 0.0, lateness=engine.lateness)
        self._ending = None if until is None else Ending(until)
        self._until: int | None = None
        self._begins: int | None = None  # the time of a first event that is after the end
        self._census, self._through = census, tuple(through)
        self._interrupt = interrupt or Uninterrupted()
        self._updates = iter(updates)
        self._update: TimedUpdate | None = None
        self._waiting: list[Event] = []
        self._live = live or self._silent is not None
        self._batch = batch
        self._size = 1 if self._live else batch
        self._failure: Exception | None = None
        self._doubted = False  # it has shown that what a live stream has gives no event

    def keep_by(self, keeper: Keeper) -> None:
        """Before anything is read: write checkpoints between two steps, when nothing waits.

        A run that is asked to stop then stays open, so that it goes on later.
        """
        self._keeper = keeper
        keeper.restore(self)

    @property
    def lasts(self) -> bool:
        """Whether another process can go on with the run."""
        return self._keeper is not None

    def state(self) -> dict[str, Any]:
        """What another driver needs to go on, as plain data, when nothing waits to be pushed."""
        passing = None if self.passing is None else self.passing.state(time.time())
        return {"newest": self.newest, "until": self._until, "updates": self._applied, "passing": passing}

    def go_to(self, state: Mapping[str, Any]) -> None:
        """Go on where another driver was, before anything is read."""
        self.newest, self._until, self._applied = state["newest"], state["until"], state["updates"]
        for _ in range(self._applied):
            next(self._updates, None)
        if self.passing is not None:
            self.passing.until = self._until
            self.passing.go_to(state["passing"], time.time())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was probably not intended about the run."""
        start = self.engine.options.start
        if self._until is not None and start is not None and self._until < start:
            until, begin = map(self.engine.render, (self._until, start))
            return (f"the run ends at {until}, before it starts, at {begin}: nothing is between them",)
        if self._begins is None or self._until is None or self.newest is not None:
            return ()
        until, first = map(self.engine.render, (self._until, self._begins))
        return (f"the run ends at {until}, before the first event, which is at {first}: no event was read",)

    # --- the whole stream ---

    def steps(self) -> Iterator[Step]:
        """The steps to the end of the stream.

        An error in the input is raised after all events before it have been pushed.  The engine is not closed then,
        because what holds at the end of the stream is unknown.
        """
        self._update = next(self._updates, None)
        if self.passing is not None:
            self.passing.waits()
        keeper = self._keeper
        if keeper is None or not keeper.resumed:
            with self._interrupt.deferred():
                yield self._step(self.engine.push_all(()))  # what holds without any event
        waiting = self._waiting
        for item in self._readable():
            if type(item) is Event and len(waiting) + 1 < self._size:
                waiting.append(item)
                continue
            yield from self.take(item)
            if keeper is not None and (keeper.due() or self._interrupt.asked):
                yield from self._push_waiting()
                keeper.keep(self)
            if (self._interrupt.asked and not self._drains()) or (isinstance(item, Idle) and self._is_over()):
                break
        if keeper is not None and self._interrupt.asked:
            return
        yield from self.end()
        if keeper is not None:
            keeper.keep(self, ended=True)

    def _drains(self) -> bool:
        """Whether the stream still gives what it holds back, and then ends; a run that goes on later gets it then."""
        stream = self._stream
        if self._keeper is not None or not isinstance(stream, Stream) or not stream.holds_back:
            return False
        stream.drain()
        return True

    def _readable(self) -> Iterator[Any]:
        """The items up to one that cannot be read: a bad line, a container that is gone, an iterator that raises."""
        try:
            yield from self._items()
        except Exception as error:  # raised by ``end``
            self._failure = error

    def _items(self) -> Iterator[Any]:
        """The items of the stream, in columns where that is quicker, up to the end of the run."""
        items = iter(self._stream)
        if isinstance(self._stream, Stream):
            items = self._of_stream(self._stream)
        if self._keeper is not None:
            items = self._keeper.counted(items)
        if self._ending is not None:
            slack = max(self.engine.lateness, self.engine.options.revise)
            known = self._until is not None
            items = up_to(items, self._until or 0, slack) if known else self._up_to(self._ending, items)
        for passage in self._through:
            items = passage(items)
        return items

    def _of_stream(self, stream: Stream) -> Iterator[Any]:
        engine = self.engine
        if not (engine.lateness or engine.options.revise):
            stream.sort()
        # What it passes through looks at events; and a caller who stops within a step gets all of it again.
        by_event = bool(self._through) or (self._keeper is not None and self._keeper.to_caller)
        portions = stream.in_portions and not by_event
        ends = self._ending is None or (stream.in_bulk and self._keeper is None)
        plain = ends and self._update is None and (portions or not self._live)
        in_columns = plain and (portions or stream.in_bulk) and engine.reads_columns
        together = not by_event and any(leaf.in_portions for leaf in stream.leaves)
        if self._silent is not None and (together or engine.options.revise):
            stream.gather()  # what is there at once is one step, and the corrections in it are one replay
        if not in_columns:
            return iter(stream)
        chunks = stream.chunks(large=portions or None, as_records=engine.reads_records)
        return chain.from_iterable(chunk if isinstance(chunk, list) else (chunk,) for chunk in chunks)

    def _up_to(self, ending: Ending, items: Iterator[Any]) -> Iterator[Any]:
        """The items up to the end of the run, which is checked as soon as it is known how the stream spells times."""
        for item in items:
            if isinstance(item, Event | Punctuation) or (hasattr(item, "column") and len(item)):
                clocks = self._stream.clocks if isinstance(self._stream, Stream) else ()
                first = item.time if isinstance(item, Punctuation) else _first_end(item)
                slack = max(self.engine.lateness, self.engine.options.revise)
                until = self._ends_at(ending.time(clocks, first, slack))
                if not isinstance(item, Punctuation) and first > until:
                    self._begins = first
                yield from up_to(chain((item,), items), until, slack)
                return
            yield item

    def _ends_at(self, until: int) -> int:
        self._until = until
        if self.passing is not None:
            self.passing.until = until
        return until

    def _is_over(self) -> bool:
        """Whether a silent stream has reached the time at which the run ends."""
        return self._until is not None and self.passing is not None and self.passing.reached() == self._until

    # --- item by item ---

    def take(self, item: Any) -> Iterator[Step]:
        """The steps for one item: an event waits until the batch is full."""
        if isinstance(item, Event):
            if isinstance(item, Retraction) and not self.engine.options.revise:
                yield from self._push_before_error()
                iter(item)  # says what a correction takes
            self._waiting.append(item)
            if len(self._waiting) < self._size:
                return
        elif isinstance(item, Burst):
            self._size = 1 if self._live and not item.open else self._batch
            if item.open or not self._waiting:
                return
        with self._interrupt.deferred():
            yield from self._push_waiting()
            if isinstance(item, Punctuation):
                if self.passing is not None:
                    self.passing.arrived(item.time)
                yield from self._stepped(lambda: self.engine.advance(item.time))
            elif isinstance(item, Idle):
                if not self._doubted and self.newest is None and self._silent is not None and self._silent.warnings:
                    self._doubted = True
                    yield self._step(self.engine.push_all(()))  # whoever takes it sees that nothing has been made
                # A wait that was ended by a wish to stop is no silence.
                if self.passing is not None and not self._interrupt.asked:
                    for matches in fall_due(self.engine, self.passing):
                        yield self._step(matches)
                        if self._keeper is not None:
                            self._keeper.time_passed()
            elif isinstance(item, TimedUpdate):
                yield from self._change(item)
            elif hasattr(item, "column"):
                yield from self._push_columns(item)
            elif not isinstance(item, Event | Burst):
                yield from self._push_before_error()
                raise TypeError(
                    f"a stream has events, as event(':a :price 3', 5) or read_stream(…) gives them, but this one has "
                    f"{item!r}"
                )
            if self._silent is not None:
                self._silent.wake(self.wakes_at())

    def settle(self) -> Iterator[Step]:
        """Close the open instant: no more events of the newest time are expected."""
        if self.newest is not None:
            newest = self.newest
            yield from self._stepped(lambda: self.engine.advance(newest))

    def wakes_at(self) -> float | None:
        """The time of ``time.monotonic`` at which something falls due if nothing comes before; None: nothing does."""
        at = None if self.passing is None else self.passing.wake_at(self.engine.next_due())
        due = None if self._keeper is None else self._keeper.due_at()
        return min((time for time in (at, due) if time is not None), default=None)

    def end(self) -> Iterator[Step]:
        """The stream has ended (or cannot be read further): push what waits, close the engine."""
        with self._interrupt.deferred():
            if self._failure is not None:
                yield from self._push_before_error()
                raise self._failure
            yield from self._push_waiting()
            if self._ending is not None and self._until is None:
                self._ends_at(self._ending.time())
            while self._update is not None and not self._interrupt.asked and self._is_wanted(self._update):
                yield from self._apply(self._update)
            yield from self._stepped(lambda: self.engine.close(until=self._until), ended=True)

    def _is_wanted(self, update: TimedUpdate) -> bool:
        return self._until is None or update.time <= self._until

    def _push_before_error(self) -> Iterator[Step]:
        """Push what came before an error of the input, and close its last instant.

        A run that goes on later leaves it open: there may be more of it.
        """
        with self._interrupt.deferred():
            yield from self._push_waiting()
            if self._keeper is None:
                yield from self.settle()

    def _push_waiting(self) -> Iterator[Step]:
        """Push the events that wait; updates that belong between them are applied there."""
        if not self._waiting:
            return
        batch = self._waiting.copy()
        self._waiting.clear()
        newest = max(event.end for event in batch)
        if self.passing is not None:
            if self.newest is None:
                first = min(batch, key=attrgetter("end"))
                self.engine.start_at(min(first.start, self.passing.start(first.end)))
            self.passing.arrived(newest)
        if self._census is not None:
            self._census.see(batch)
        if self._update is not None:
            batch = yield from self._push_up_to_updates(batch)
        if self.newest is None or newest > self.newest:
            self.newest = newest
        yield from self._push(batch)

    def _push(self, batch: list[Event]) -> Iterator[Step]:
        self._count(len(batch))
        try:
            yield from self._stepped(lambda: self.engine.push_all(batch))
        except ValueError:
            if any(event.end < event.start for event in batch):  # refused alone: all others have been taken
                yield from self.settle()
            raise

    def _count(self, events: int) -> None:
        self._pushed += events
        if self._pushed >= LARGE:
            warn_without_numba()

    def _stepped(self, call: Callable[[], Matches], *, ended: bool = False) -> Iterator[Step]:
        """The step that a call of the engine gives; if a limit interrupts it, first what it has found until then."""
        try:
            matches = call()
        except LimitExceeded as error:
            if isinstance(error.matches, Matches) and len(error.matches):
                yield self._step(error.matches)
            raise
        yield self._step(matches, ended=ended)

    def _push_up_to_updates(self, batch: list[Event]) -> Generator[Step, None, list[Event]]:
        """Push what comes before each due update, and apply it; returns the events after the last."""
        begin, lateness = 0, self.engine.lateness
        for place, event in enumerate(batch):
            if self.newest is None or event.end > self.newest:
                while self._update is not None and self._update.time < event.end - lateness:
                    if begin < place:
                        yield from self._push(batch[begin:place])
                        begin = place
                    yield from self._apply(self._update)
                self.newest = event.end
        return batch[begin:]

    def _push_columns(self, batch: pa.RecordBatch) -> Iterator[Step]:
        """Push a record batch in the flat form, or of records."""
        if len(batch):
            columns = in_columns(batch)
            newest = int(columns.end.max())
            if self.passing is not None:
                self.passing.arrived(newest)
            self.newest = newest if self.newest is None else max(self.newest, newest)
            self._count(len(columns))
            if self._census is not None:
                self._census.see_columns(columns)
            yield from self._stepped(lambda: self.engine.push_all(columns))

    def _change(self, update: TimedUpdate) -> Iterator[Step]:
        """Close every instant up to the update's time; then the next version holds."""
        if self.newest is not None:
            yield from self._stepped(lambda: self.engine.advance(update.time))
        self._learn(update)

    def _learn(self, update: TimedUpdate) -> None:
        try:
            self.engine.update(update.graph, update.add, (*update.remove, *self._replaced(update)))
        except KnowledgeError as error:
            raise StreamError(error.problem, source=update.source, line=update.line, hint=error.hint) from None

    def _apply(self, update: TimedUpdate) -> Iterator[Step]:
        """The next of the updates that were given with their times."""
        yield from self._stepped(lambda: self.engine.advance(update.time))
        self._learn(update)
        self._update = next(self._updates, None)
        self._applied += 1

    def _replaced(self, update: TimedUpdate) -> Iterator[Triple]:
        """What the background states in place of what the update adds."""
        stated = self.engine.knowledge.stated(update.graph) if update.replaces else None
        if stated is not None:
            for s, p in dict.fromkeys((s, p) for s, p, _ in update.add):
                yield from stated.match(s, p, None)

    def _step(self, matches: Matches, *, ended: bool = False) -> Step:
        letters = self.engine.dead_letters
        late = tuple(letters)
        letters.clear()
        return Step(matches, late, self.newest, ended)


def _first_end(item: Event | pa.RecordBatch) -> int:
    """The end of an event, or of the first one of a batch."""
    return item.end if isinstance(item, Event) else int(item.column("end")[0].as_py())


def fall_due(engine: Engine, passing: PassingTime) -> Iterator[Matches]:
    """What falls due by the wall clock, one time after the other; the engine never gets ahead of the reports."""
    reached = passing.reached()
    while reached is not None and (due := engine.next_due()) is not None and due <= reached:
        yield engine.advance(due)
