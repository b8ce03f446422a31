"""Moves a stream through an engine and hands on the matches, until the stream ends or the user wants to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from etalis_py.census import Census
from etalis_py.cli.interrupt import Interrupt
from etalis_py.engine import Engine
from etalis_py.events import Event
from etalis_py.kernel.matches import Matches
from etalis_py.knowledge import KnowledgeError
from etalis_py.running import columns_of, fall_due
from etalis_py.streams import Burst, Idle, PassingTime, Punctuation, StreamError
from etalis_py.streams.updates import Update

BATCH = 1024
LONGEST_SLEEP = 3600.0  # longer sleeps overflow on some systems
START = -(2**63)


class Drive:
    """One run.  ``take`` gets the matches of each step, ``late`` each event that came too late.

    With ``live`` every event is pushed as it comes, so that its matches are seen at once (a burst is pushed together,
    if the stream marks bursts); otherwise ``BATCH`` at a time.  ``updates`` of the background are applied between the
    instants where they belong.  ``newest`` is the event time.  ``census`` sees all events.  While a live stream is
    silent, time follows the wall clock: ``idle`` seconds make a silence, and ``wake`` is told when something falls due
    next.  The run ends at ``until``.
    """

    def __init__(
        self,
        engine: Engine,
        take: Callable[[Matches], None],
        late: Callable[[Event], None],
        *,
        live: bool = False,
        updates: Iterable[Update] = (),
        census: Census | None = None,
        idle: float = 1.0,
        until: int | None = None,
        wake: Callable[[float | None], None] | None = None,
    ) -> None:
        self.engine = engine
        self._census = census
        self.newest = START
        self._take, self._late = take, late
        self._until, self._wake = until, wake
        self._passing = PassingTime(idle=idle, lateness=engine.lateness, until=until)
        self._updates = iter(updates)
        self._update = next(self._updates, None)
        self._failure: StreamError | OSError | None = None
        self._batch = 1 if live or self._update is not None else BATCH

    def run(self, items: Iterable[Any], interrupt: Interrupt) -> None:
        """Run to the end of the stream or to a Ctrl-C; then the engine is closed and its last matches are taken.

        An error in the input is raised after all events before it have been pushed and their matches taken.  The engine
        is not closed then, because what holds at the end of the stream is unknown.
        """
        waiting: list[Event] = []
        size = self._batch
        try:
            for item in self._readable(items):
                if isinstance(item, Event):
                    waiting.append(item)
                    if len(waiting) < size:
                        continue
                elif isinstance(item, Burst):
                    size = BATCH if item.open else self._batch
                    if item.open or not waiting:
                        continue
                with interrupt.deferred():
                    if waiting:
                        batch, waiting = waiting, []
                        self._push(batch)
                    if hasattr(item, "column"):
                        self._push_columns(item)
                    elif isinstance(item, (Punctuation, Idle)):
                        self._signal(item)
                    if self._wake is not None:
                        self._wake(self._passing.wake_at(self.engine.next_due()))
                if interrupt.asked or (isinstance(item, Idle) and self._is_over()):
                    break
        except KeyboardInterrupt:
            if self.engine.broken is not None:  # a second Ctrl-C has interrupted a step
                raise
        with interrupt.deferred():
            if waiting:
                self._push(waiting)
            if self._failure is not None:
                if self.newest > START:
                    self._after(self.engine.advance(self.newest))
                raise self._failure
            while self._update is not None and not interrupt.asked and self._is_wanted(self._update):
                self._apply(self._update)
            self._after(self.engine.close(until=self._until))

    def _is_wanted(self, update: Update) -> bool:
        return self._until is None or update.time <= self._until

    def _is_over(self) -> bool:
        """Whether a silent stream has reached the time at which the run ends."""
        return self._until is not None and self._passing.reached() == self._until

    def _readable(self, items: Iterable[Any]) -> Iterator[Any]:
        """The items up to one that cannot be read: because of a bad line, or a container that is gone."""
        try:
            yield from items
        except (StreamError, OSError) as error:
            self._failure = error

    def _push(self, batch: list[Event]) -> None:
        newest = max(event.end for event in batch)
        if newest > self.newest:
            self.newest = newest
        if self._wake is not None:
            self._passing.arrived(newest)
        while self._update is not None and self._update.time < self.newest - self.engine.lateness:
            self._apply(self._update)
        if self._census is not None:
            self._census.see(batch)
        self._after(self.engine.push_all(batch))

    def _push_columns(self, batch: Any) -> None:
        """Push a record batch in the flat form."""
        if len(batch):
            columns = columns_of(batch)
            self.newest = max(self.newest, int(columns.end.max()))
            if self._census is not None:
                self._census.see_columns(columns)
            self._after(self.engine.push_all(columns))

    def _apply(self, update: Update) -> None:
        """Close every instant up to the update's time; then the next version holds."""
        self._after(self.engine.advance(update.time))
        try:
            self.engine.update(update.graph, update.add, update.remove)
        except KnowledgeError as error:
            raise StreamError(error.problem, source=update.source, line=update.line, hint=error.hint) from None
        self._update = next(self._updates, None)

    def _signal(self, item: Punctuation | Idle) -> None:
        if isinstance(item, Punctuation):
            self._passing.arrived(item.time)
            self._after(self.engine.advance(item.time))
        else:
            for matches in fall_due(self.engine, self._passing):
                self._after(matches)

    def _after(self, matches: Matches) -> None:
        self._take(matches)
        if self.engine.dead_letters:
            for event in self.engine.dead_letters:
                self._late(event)
            self.engine.dead_letters.clear()


def paced(items: Iterable[Any], factor: float, *, closing: bool = True) -> Iterator[Any]:
    """The items at the pace of their own times, ``factor`` times as fast.

    Before a wait, with ``closing``, a punctuation says that the instants before the next event are over, so their
    matches are seen at once.  (If late events are allowed, the instants are not over.)
    """
    began, first = 0.0, START
    for item in items:
        if isinstance(item, Event):
            if first == START:
                began, first = time.monotonic(), item.end
            due = began + (item.end - first) / 1e6 / factor
            if closing and due > time.monotonic():
                yield Punctuation(item.end - 1)
            while (wait := due - time.monotonic()) > 0:
                time.sleep(min(wait, LONGEST_SLEEP))
        yield item
