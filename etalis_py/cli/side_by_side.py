"""Engines side by side that take the same events, and look like one: each runs some of many queries.

Queries of a new kind change the code that an engine has generated for all its queries.  In one engine that would take
longer the more kinds there are, and everything would wait for it.  So an engine takes new kinds only while it is small;
after that a new one is made for them, beside the others, and joins them when it is ready.

    engine 1   kinds a b c d     full
    engine 2   kinds e f         takes the next kind in some milliseconds
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from etalis_compiler.diagnostics import Source

from etalis_py.engine.engine import Engine
from etalis_py.engine.program import Program
from etalis_py.events import Event
from etalis_py.kernel.matches import Match

ROOM = 32
"""The rules and goals up to which an engine takes new kinds."""


@dataclass(slots=True)
class Engines:
    """The engines, and what one that joins them must know: the open instant with its events."""

    make: Callable[[], Engine]
    engines: list[Engine] = field(default_factory=list)
    dead_letters: list[Event] = field(default_factory=list)
    _instant: list[Event] = field(default_factory=list)
    _reached: int | None = None

    def holder(self, name: str) -> Engine | None:
        """The engine that runs the program of this name."""
        return next((engine for engine in self.engines if name in engine.programs), None)

    def kin(self, text: Source) -> Engine | None:
        """The engine that runs a query of the same kind, so that adding this one compiles nothing."""
        return next((engine for engine in self.engines if engine.knows(text)), None)

    def roomy(self, size: int) -> Engine | None:
        """An engine that takes a new kind of this size."""
        return next((engine for engine in self.engines if len(engine.rules.nodes) + size <= ROOM), None)

    def rules(self) -> int:
        return sum(len(engine.rules.nodes) for engine in self.engines)

    def goals(self) -> int:
        return sum(engine.count().goals for engine in self.engines)

    def made_for(self, program: Program, name: str) -> Engine:
        """An engine that runs this program and has yet to join; this may run in another thread."""
        engine = self.make()
        engine.add(program, name=name)
        return engine

    def join(self, engine: Engine) -> None:
        """Let an engine take part; it is given what has arrived of an instant that is still open."""
        if self._reached is not None:
            engine.advance(self._reached)
        for event in self._instant:
            engine.push(event)
        self.engines.append(engine)

    def remove(self, name: str) -> None:
        """Stop a program, and the engine if it was its last."""
        engine = self.holder(name)
        if engine is not None:
            engine.remove(name)
            if not engine.programs:
                self.engines.remove(engine)

    # -- as one engine --------------------------------------------------------------------------------------------

    lateness: ClassVar[int] = 0

    def start_at(self, t: int) -> None:
        for engine in self.engines:
            engine.start_at(t)

    def push_all(self, events: Iterable[Event]) -> list[Match]:
        return [match for event in events for match in self.push(event)]

    def push(self, event: Event) -> list[Match]:
        if self._instant and event.end == self._instant[0].end:
            self._instant.append(event)
        elif (not self._instant or event.end > self._instant[0].end) and not self._is_late(event):
            self._reached = event.end - 1
            self._instant = [event]
        return self._together(engine.push(event) for engine in self.engines)

    def _is_late(self, event: Event) -> bool:
        return self._reached is not None and event.end <= self._reached

    def advance(self, time: int) -> list[Match]:
        self._reached = time if self._reached is None else max(self._reached, time)
        if self._instant and self._instant[0].end <= time:
            self._instant = []
        return self._together(engine.advance(time) for engine in self.engines)

    def _together(self, found: Iterable[Iterable[Match]]) -> list[Match]:
        matches = [match for some in found for match in some]
        for number, engine in enumerate(self.engines):
            if not number:
                self.dead_letters += engine.dead_letters  # what is late for one is late for all
            engine.dead_letters.clear()
        return matches

    def next_due(self) -> int | None:
        return min((due for engine in self.engines if (due := engine.next_due()) is not None), default=None)

    def close(self) -> None:
        for engine in self.engines:
            engine.close()
