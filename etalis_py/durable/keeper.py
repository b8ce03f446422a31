"""Keeps a run: at the beginning it goes on from the newest checkpoint, and from time to time it writes another.

One checkpoint, between two steps of the driver:

1. everything that was read is pushed, and the matches of these steps are written to the sink;
2. ``sink.prepare()``; the dead letters are synchronised;
3. places of the sources, state of the driver, snapshot of the engine and token of the sink go into one file, which is
   on the disk (file and folder synchronised) before anything else happens;
4. ``sink.commit(token)``; the sources hear of it; older checkpoints are removed.

If the process ends before 3 is complete, the next one goes on from the checkpoint before, and everything since then is
computed again.  If it ends later, the next one commits the token again, which changes nothing if it was committed.

A snapshot and its file take a while; another checkpoint is not begun before ten times as long has passed, unless there
is to be one after every step (``every=0``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

from etalis_py.connectors.contracts import Sink
from etalis_py.durable.errors import CheckpointError
from etalis_py.durable.folder import Folder
from etalis_py.durable.identity import check, in_storage
from etalis_py.events import Event
from etalis_py.streams import DeadLetters, Punctuation, Stream
from etalis_py.streams.positions import Tracker

EVERY = 10.0
_SHARE = 10  # a checkpoint may take this part of the time
_USED = 4096  # items after which the sources hear that they have been used


class Engine(Protocol):
    """What is asked of an engine."""

    def snapshot(self) -> bytes: ...
    def restore(self, data: bytes) -> None: ...


class Steps(Protocol):
    """What is asked of a driver: its own state, as plain data."""

    def state(self) -> dict[str, Any]: ...
    def go_to(self, state: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What a run is made of.  ``counts`` are figures for people, such as the number of events.

    ``stream`` is one that gives events; ``identity`` what must be the same in the next process (``identity``).
    """

    engine: Engine
    stream: Stream | Iterable[Any]
    sink: Sink | None
    identity: Mapping[str, Any]
    letters: DeadLetters | None = None
    counts: Callable[[], Mapping[str, Any]] = dict


@dataclass(slots=True)
class Figures:
    """What a checkpoint has cost so far: how many there were, the bytes of the last, and its times.

    ``waited``: the seconds that the sink has taken to prepare and to commit, in all of them.
    """

    count: int = 0
    bytes: int = 0
    seconds: float = 0.0
    at: float | None = None
    due: float = field(default=0.0)
    waited: float = 0.0


class Keeper:
    """``every`` seconds there is a checkpoint.  ``resumed``: the run goes on; ``ended``: it has come to its end.

    ``with_sink``: the sink is preparing or committing a checkpoint.
    ``begin`` before anything is read, ``close`` at the end, whatever happened.
    """

    def __init__(
        self,
        folder: Folder,
        parts: Parts,
        *,
        every: float = EVERY,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.folder, self._parts, self._every = folder, parts, every
        self._clock, self._wall = clock, wall
        self._identity = in_storage(parts.identity)
        self.figures = Figures()
        self.resumed = self.ended = self.with_sink = False
        self._number = 0
        self._run = ""
        self._pulled = 0
        self._wrote = 0.0  # the time of the last checkpoint
        self._took = 0.0  # for its snapshot and its file, without the sink
        self._pressing = [leaf.origin.pressing for leaf in self._leaves() if leaf.origin and leaf.origin.pressing]
        self._dirty = False  # something has happened since the last checkpoint
        self._given = Tracker()  # for events that no stream of ours gives
        self._marks: list[dict[str, Any]] = []
        self._state: Mapping[str, Any] | None = None

    # --- the beginning ---

    def begin(self) -> None:
        """Go on from the newest checkpoint, or write the first one."""
        for leaf in self._leaves():
            if leaf.origin is None:
                raise CheckpointError(
                    f"{leaf.source} does not tell its position, so a run that reads it cannot go on: leave the "
                    f"checkpoint out"
                )
            leaf.origin.check_trackable()
        self.folder.open()
        last = self.folder.newest()
        if last is None:
            self._begin_anew()
        else:
            self._go_on(last)
        self.figures.due = self._clock() + self._every

    def _begin_anew(self) -> None:
        self._run = os.urandom(16).hex()
        self._track(None)
        self._marks = [leaf.origin.mark(0) for leaf in self._leaves() if leaf.origin]
        if self._parts.sink is not None:
            self._parts.sink.recover(None)
        if self._parts.letters is not None:
            self._parts.letters.begin()
        self._keep({}, ended=False)

    def _go_on(self, last: Mapping[str, Any]) -> None:
        check(self.folder.path, self._identity, last["identity"])
        for leaf, mark in zip(self._leaves(), last["marks"], strict=True):
            assert leaf.origin is not None
            leaf.origin.check_same(mark)
        self.resumed, self.ended = True, last["ended"]
        self._number, self._run, self._marks = last["number"], last["run"], list(last["marks"])
        if self._parts.sink is not None:
            self._parts.sink.recover(last["token"])
        if self._parts.letters is not None:
            self._parts.letters.go_on(last["letters"])
        self._track(last["places"])
        if not self.ended:
            self._parts.engine.restore(last["engine"])
        self._state = last["driver"]

    def _leaves(self) -> tuple[Stream, ...]:
        stream = self._parts.stream
        return stream.leaves if isinstance(stream, Stream) else ()

    def _track(self, places: list[Any] | None) -> None:
        stream = self._parts.stream
        if isinstance(stream, Stream):
            stream.track(places)
        else:
            self._given.begin(None if places is None else places[0])

    @property
    def to_caller(self) -> bool:
        """Whether the matches go to the caller, one by one, and to no sink."""
        return self._parts.sink is None

    def restore(self, driver: Steps) -> None:
        """Give the driver the state that it had."""
        if self._state:
            driver.go_to(self._state)

    # --- while it runs ---

    def counted(self, items: Iterator[Any]) -> Iterator[Any]:
        """The items on their way to the driver."""
        stream = self._parts.stream
        for item in items if isinstance(stream, Stream) else self._given.tracked(items):
            if self._pulled >= _USED:
                self._confirm()
            count = _count(item)
            self._pulled += count
            self._dirty = self._dirty or count > 0
            yield item

    def _confirm(self) -> None:
        pulled, self._pulled = self._pulled, 0
        stream = self._parts.stream
        (stream if isinstance(stream, Stream) else self._given).confirm(pulled)

    def write(self, matches: Iterable[Any]) -> None:
        """Write the matches of a step to the sink."""
        self._dirty = True
        if self._parts.sink is not None:
            self._parts.sink.write(matches)

    def time_passed(self) -> None:
        """The engine has gone on without an event, as an absence does in a silence."""
        self._dirty = True

    def due(self) -> bool:
        """Whether it is time for a checkpoint; without anything new there is none."""
        pressed = self._is_pressed()
        if self._clock() < self._due(pressed):
            return False
        if not self._dirty and not pressed:
            self.figures.due = self._clock() + self._every
        return self._dirty or pressed

    def _is_pressed(self) -> bool:
        """Whether a source gets nothing more before the next checkpoint."""
        return any(pressing() for pressing in self._pressing)

    def _due(self, pressed: bool) -> float:
        """When the next checkpoint is due: sooner if a source waits for it, but still within its share of the time."""
        return min(self.figures.due, self._wrote + _SHARE * self._took) if pressed else self.figures.due

    def due_at(self) -> float | None:
        """The time of the clock at which there will be a checkpoint if nothing comes before."""
        pressed = self._is_pressed()
        return self._due(pressed) if self._dirty or pressed else None

    def overdue(self) -> float:
        """For how many seconds a checkpoint has been due that is not there."""
        return max(0.0, self._clock() - self.figures.due) if self._dirty else 0.0

    def keep(self, driver: Steps, *, ended: bool = False) -> None:
        """Write a checkpoint: everything that was read has been pushed, its matches have been written."""
        self._keep(driver.state(), ended=ended)

    def _keep(self, state: Mapping[str, Any], *, ended: bool) -> None:
        from importlib.metadata import version  # takes a while to import

        parts, began = self._parts, self._clock()
        self._confirm()
        number = self._number + 1
        with self._waiting_for_sink():
            if ended and (finish := getattr(parts.sink, "finish", None)) is not None:
                finish()
            token = None if parts.sink is None else parts.sink.prepare()
        prepared = self._clock()
        with parts.stream.reports_waiting() if isinstance(parts.stream, Stream) else nullcontext():
            letters = None if parts.letters is None else parts.letters.synchronised()
            places = parts.stream.places() if isinstance(parts.stream, Stream) else [self._given.place()]
        self._mark()
        self.figures.bytes = self.folder.write(
            {
                "number": number,
                "run": self._run,
                "at": self._wall(),
                "version": version("etalis-py"),
                "identity": self._identity,
                "ended": ended,
                "engine": b"" if ended else parts.engine.snapshot(),
                "driver": dict(state),
                "places": places,
                "marks": self._marks,
                "letters": letters,
                "token": token,
                "counts": dict(parts.counts()),
            }
        )
        took = self._clock() - prepared
        self._number = number
        if parts.sink is not None:
            with self._waiting_for_sink():
                parts.sink.commit(token)
        self._dirty = False  # only now: while the sink does not take the matches, the checkpoint is overdue
        for leaf, place in zip(self._leaves(), places, strict=False):
            leaf.committed(place)
        self.folder.forget_before(number)
        now = self._clock()
        figures = self.figures
        figures.count += 1
        figures.seconds, figures.at, self._wrote = now - began, self._wall(), now
        figures.waited += figures.seconds - took
        # A sink takes longer the more there is to write: if its time counted, a slow one would get ever more at a time.
        self._took = took
        figures.due = now + (self._every and max(self._every, _SHARE * took))

    @contextmanager
    def _waiting_for_sink(self) -> Iterator[None]:
        self.with_sink = True
        yield
        self.with_sink = False

    def _mark(self) -> None:
        """How to know followed files again: by what was read of them, used or not, as long as they are the same."""
        for number, leaf in enumerate(self._leaves()):
            if leaf.origin is not None and leaf.origin.kind == "followed":
                leaf.origin.check_same(self._marks[number])
                self._marks[number] = leaf.origin.mark(max(leaf.read_to, self._marks[number].get("size", 0)))

    def close(self) -> None:
        if self._parts.sink is not None:
            self._parts.sink.close()
        self.folder.close()


def _count(item: Any) -> int:
    """The number of events that an item is counted as."""
    if isinstance(item, Event | Punctuation):
        return 1
    if hasattr(item, "column"):
        from etalis_py.streams.columns.flat_form import event_count  # takes a while to import

        return event_count(item)
    return 0
