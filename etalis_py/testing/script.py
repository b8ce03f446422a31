"""A script: events and what happens between them, played through an engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from etalis_py.engine.engine import Engine
from etalis_py.engine.program import Program
from etalis_py.events import Event, event
from etalis_py.kernel.matches import Match, Matches
from etalis_py.testing.clock import MovableClock


class Sentinel(Enum):
    """What may stand between the events of a script."""

    ABORT = "the process is lost; another goes on from the last snapshot, and reads again what came after it"
    SNAPSHOT = "a snapshot is taken"
    EOF = "the stream ends; a script that ends without leaves the last instant open"


ABORT, SNAPSHOT, EOF = Sentinel.ABORT, Sentinel.SNAPSHOT, Sentinel.EOF


@dataclass(frozen=True, slots=True)
class Wait:
    """The clock moves by this much, and the instants before are over."""

    length: int | str


def wait(length: int | str) -> Wait:
    """Silence for some seconds, or a duration such as ``5min``."""
    return Wait(length)


Step = Event | str | Wait | Sentinel


@dataclass(slots=True)
class Played:
    """The results of a script.

    ``matches`` has each match once, in the order in which they were first found; ``repeated`` counts those found again
    after an ABORT, with the same id; ``late`` are the events that came too late.
    """

    engine: Engine
    matches: list[Match] = field(default_factory=list)
    repeated: int = 0
    late: list[Event] = field(default_factory=list)


def play(
    program: Program,
    script: Iterable[Step],
    *,
    clock: MovableClock | None = None,
    snapshot_every: int = 0,
    **options: Any,
) -> Played:
    """Play a script through ``Engine(program, **options)``.

    A step is an event, the Turtle of an event that happens at the clock's time (it starts at 0), ``wait(…)``,
    ``SNAPSHOT``, ``ABORT`` or ``EOF``.  With ``snapshot_every=n`` a snapshot is taken after every n events too.
    """
    return _Player(program, clock or MovableClock(), snapshot_every, options).play(script)


class _Player:
    """State: the engine, the last snapshot, the steps after it, and the ids of the matches found."""

    def __init__(self, program: Program, clock: MovableClock, every: int, options: dict[str, Any]) -> None:
        self._options = options
        self._program, self._clock, self._every = program, clock, every
        self._played = Played(self._engine())
        self._snapshot: bytes | None = None
        self._since: list[Event | int] = []
        self._events = 0
        self._found: set[str] = set()

    def _engine(self) -> Engine:
        return Engine(self._program, **self._options)

    def play(self, script: Iterable[Step]) -> Played:
        for step in script:
            if self._played.engine.finished:
                raise ValueError(f"{step!r} stands after EOF: nothing happens any more")
            match step:
                case Sentinel.ABORT:
                    self._abort()
                case Sentinel.SNAPSHOT:
                    self._keep()
                case Sentinel.EOF:
                    self._take(self._played.engine.close())
                case Wait(length):
                    self._clock.move(length)
                    # Events at this very moment may still come.
                    self._do(self._clock() - 1)
                case str():
                    self._do(event(step, 0)._replace(start=self._clock(), end=self._clock()))
                case Event():
                    self._do(step)
                case _:
                    raise ValueError(f"{step!r} is not a step: an event, Turtle, wait(…), SNAPSHOT, ABORT or EOF")
        return self._played

    def _do(self, step: Event | int) -> None:
        self._since.append(step)
        self._push(step)
        if isinstance(step, Event):
            self._events += 1
            if self._every and self._events % self._every == 0:
                self._keep()

    def _push(self, step: Event | int) -> None:
        engine = self._played.engine
        self._take(engine.advance(step) if isinstance(step, int) else engine.push(step))

    def _keep(self) -> None:
        self._snapshot = self._played.engine.snapshot()
        self._since.clear()

    def _abort(self) -> None:
        """Start a new engine from the snapshot; the source repeats the events after it."""
        self._played.engine = self._engine()
        if self._snapshot is not None:
            self._played.engine.restore(self._snapshot)
        for step in self._since:
            self._push(step)

    def _take(self, matches: Matches) -> None:
        for match in matches:
            if match.id in self._found:
                self._played.repeated += 1
            else:
                self._found.add(match.id)
                self._played.matches.append(match)
        self._played.late += [e for e in self._played.engine.dead_letters if e not in self._played.late]
        self._played.engine.dead_letters.clear()
