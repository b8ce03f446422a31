"""Programs inside a server of stream containers: an engine behind the protocol that the server knows."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from operator import attrgetter

from etalis_py.containers.withdrawals import Remembered
from etalis_py.engine import Engine
from etalis_py.events import Event, Retraction
from etalis_py.kernel.matches import Match, Matches
from etalis_py.knowledge import Knowledge, load
from etalis_py.notebook import rule_graph
from etalis_py.program import Program, compile
from etalis_py.running import fall_due
from etalis_py.streams import PassingTime
from etalis_py.streams.clock import Clock, render_datetime
from etalis_py.whynot import Report

_LOG = logging.getLogger("etalis.containers")
# Microseconds.  An event that is stored may take a moment to arrive here; event time stays behind by this much.
_MARGIN = 50_000
_LIVE = 60_000_000


class EngineRunner:
    """One program at work.  Events that come too late are logged."""

    def __init__(self, program: Program, background: Knowledge | None, stream: str, revise: int = 0) -> None:
        self.program, self.stream = program, stream
        self._background, self._revise = background, revise
        self._engine = Engine(program, background=background, explain=True, render=render_datetime, revise=revise)
        self._remembered = Remembered()  # for corrections by name, and for why not
        self._newest: int | None = None
        self._lag = 0
        self._passing = PassingTime(idle=0.0, lateness=_MARGIN)

    def push(self, event: Event) -> list[Match]:
        if self._revise:
            taken = self._remembered.take(event)
            if isinstance(taken[0], Retraction):
                return self._found(self._engine.push_all(taken))
        else:
            self._remembered.events.append(event)
        self._newest = event.end if self._newest is None else max(self._newest, event.end)
        self._lag = _now() - event.end
        self._passing.arrived(event.end)
        return self._found(self._engine.push(event))

    def why_not(self, where: str, at: str) -> Report:
        """Why there is no such match, over the last events."""
        events = sorted(self._remembered.events, key=attrgetter("end"))
        clock = Clock("datetime")
        return self.program.why_not(events, where=where, at=at or None, clock=clock, background=self._background)

    def idle(self) -> list[Match]:
        """The open instant is over.  On a stream that keeps up with the clock, time goes on by the clock."""
        if self._newest is None:
            return []
        matches = self._found(self._engine.advance(self._newest))
        if self._is_live():
            for due in fall_due(self._engine, self._passing):
                matches += self._found(due)
        return matches

    def waits(self) -> float | None:
        at = self._passing.wake_at(self._engine.next_due()) if self._is_live() else None
        return None if at is None else max(0.0, at - time.monotonic())

    def _is_live(self) -> bool:
        """Was the last event there within a minute of its time?  Recorded streams only move with their events."""
        return self._newest is not None and abs(self._lag) < _LIVE

    def graph(self) -> dict[str, object]:
        return rule_graph(self._engine.rules, self.program.prefixes, self.program.plans)

    def warnings(self) -> list[str]:
        return [str(warning) for warning in self.program.warnings]

    def goals(self) -> int:
        return self._engine.count().goals

    def close(self) -> None:
        self._engine.close()

    def _found(self, matches: Matches) -> list[Match]:
        for event in self._engine.dead_letters:
            _LOG.warning("%s: an event of %s came too late and was left out", self.stream, render_datetime(event.end))
        self._engine.dead_letters.clear()
        return list(matches)


def _now() -> int:
    return time.time_ns() // 1000


def runner_factory(
    background: list[str], entailment: str, policy: str, revise: int = 0
) -> Callable[[str, str], EngineRunner]:
    """Makes programs runnable: called once in the process from which those of the programs are forked.

    So the background is loaded once, and yet each program has knowledge of its own, which it may change.
    """
    knowledge = load(background, entailment=entailment) if background else None
    # The line break says that this is the text of a query and not the name of a file.
    return lambda query, stream: EngineRunner(compile(query + "\n", policy=policy), knowledge, stream, revise)
