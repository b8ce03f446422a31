"""Programs inside a server of stream containers: an engine behind the server's protocol for programs."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import cast

from etalis_compiler.diagnostics import Source
from etalis_rules.messages import how_many

from etalis_py.cli.log import LogKind
from etalis_py.cli.options import BASE
from etalis_py.cli.server_log import write_log
from etalis_py.cli.server_query_sets import Queries
from etalis_py.containers.withdrawals import REMEMBERED, Remembered
from etalis_py.engine.driver import Driver, Step
from etalis_py.engine.engine import Engine
from etalis_py.engine.program import Program, compile
from etalis_py.engine.unseen_names import UnseenNames
from etalis_py.events import Event, Retraction
from etalis_py.events.clock import Clock, render_datetime
from etalis_py.kernel.matches import Match
from etalis_py.knowledge import Knowledge, load
from etalis_py.notebook import rule_graph
from etalis_py.streams import Burst, Idle, PassingTime
from etalis_py.whynot import Report

_LOG = logging.getLogger("etalis.containers")
# Microseconds.  A stored event may take a moment to arrive here, so event time stays this far behind.
_MARGIN = 50_000
_LIVE = 60_000_000
_NAMED = (
    f"names in posted rows, and in Turtle that does not declare the prefix, begin with {BASE}, and in this query with "
    "{}: declare no other : in the query, or give the container a mapping that says which names it makes"
)


class EventRunner:
    """An engine that takes the members of a container.  Events that come too late are logged, and counted."""

    _remedy = "post graphs in order of time, or start the server with --revise D, which lets them be late"

    def __init__(self, engine: Engine, stream: str) -> None:
        self._engine, self.stream = engine, stream
        self._lag = self._late = 0
        self._driver = Driver(engine, live=True, batch=REMEMBERED)
        self._driver.passing = PassingTime(idle=0.0, lateness=_MARGIN)

    def push(self, event: Event) -> list[Match]:
        self._lag = _now() - event.end
        return self._found(self._driver.take(event))

    def idle(self) -> list[Match]:
        """Close the open instant.  On a stream that keeps up with the clock, time follows the clock."""
        matches = self._found(self._driver.settle())
        return matches + self._found(self._driver.take(Idle(_now()))) if self._is_live() else matches

    def waits(self) -> float | None:
        at = self._driver.wakes_at() if self._is_live() else None
        return None if at is None else max(0.0, at - time.monotonic())

    def _is_live(self) -> bool:
        """Whether the last event arrived within a minute of its time.  Recorded streams only move with their events."""
        return self._driver.newest is not None and abs(self._lag) < _LIVE

    def goals(self) -> int:
        return self._engine.count().goals

    def unseen(self) -> list[str]:
        """How many events came too late."""
        if not self._late:
            return []
        were = "was" if self._late == 1 else "were"
        return [f"{how_many(self._late, 'event')} came too late and {were} left out; {self._remedy}"]

    def close(self) -> None:
        self._engine.close()

    def _found(self, steps: Iterable[Step]) -> list[Match]:
        matches: list[Match] = []
        for step in steps:
            self._late += len(step.late)
            for event in step.late:
                late = render_datetime(event.end)
                _LOG.warning("%s: an event of %s came too late and was left out", self.stream, late)
            matches += step.matches
        return matches


class EngineRunner(EventRunner):
    """One program at work."""

    def __init__(self, program: Program, background: Knowledge | None, stream: str, revise: int = 0) -> None:
        self.program = program
        self._background, self._revise = background, revise
        engine = Engine(program, background=background, explain=True, render=render_datetime, revise=revise)
        super().__init__(engine, stream)
        if revise:
            self._remedy = "start the server with a longer --revise, which lets them be later"
        self._remembered = Remembered()  # for corrections by name, and for why-not
        self._census = UnseenNames(program)

    @property
    def gathers(self) -> bool:
        return bool(self._revise)

    @property
    def writes(self) -> bool:
        return any(output.form in ("construct", "describe") for output in self._engine.outputs)

    def settled(self) -> tuple[int, int]:
        return self._engine.settled()

    def push(self, event: Event) -> list[Match]:
        if self._revise:
            return self.push_all([event])
        self._remembered.add(event)
        self._census.see((event,))
        return super().push(event)

    def push_all(self, events: Sequence[Event]) -> list[Match]:
        """Take events some of which may withdraw others, or come late; together they are one replay."""
        taken = [one for event in events for one in self._remembered.take(event)]
        if arrived := [one for one in taken if not isinstance(one, Retraction)]:
            self._lag = _now() - arrived[-1].end
            self._census.see(arrived)
        burst = (Burst(True), *taken, Burst(False))
        return self._found(step for item in burst for step in self._driver.take(item))

    def why_not(self, where: str, at: str) -> Report:
        """Why there is no such match, over the last events."""
        events = sorted(self._remembered.events(), key=attrgetter("end"))
        clock = Clock("datetime")
        return self.program.why_not(events, where=where, at=at or None, clock=clock, background=self._background)

    def graph(self) -> dict[str, object]:
        return rule_graph(self._engine.rules, self.program.prefixes, self.program.plans)

    def warnings(self) -> list[str]:
        return [str(warning) for warning in self.program.warnings]

    def unseen(self) -> list[str]:
        unmet = self._census.warnings(self._engine.knowledge, unread=False)
        own = self.program.prefixes.get("", BASE)
        named = any(f"did you mean <{BASE}" in text for text in unmet)
        return [*super().unseen(), *unmet, *([_NAMED.format(own)] if own != BASE and named else [])]


class StandingQueries(EventRunner):
    """Many queries of several clients, each named by the server."""

    def __init__(self, background: Knowledge | None, stream: str, policy: str) -> None:
        self._queries, self._background = Queries(background, policy), background
        self.knows, self.prepare, self.is_ready = self._queries.knows, self._queries.prepare, self._queries.is_ready
        self.add, self.remove, self.rules = self._queries.add, self._queries.remove, self._queries.rules
        super().__init__(cast("Engine", self._queries.engines), stream)  # as far as events go, they are one engine

    def goals(self) -> int:
        return self._queries.engines.goals()

    def push(self, event: Event) -> list[Match]:
        self._queries.census.see((event,))
        return super().push(event)

    def unseen(self) -> list[str]:
        return [*super().unseen(), *self._queries.census.warnings(self._background)]

    def close(self) -> None:
        self._queries.close()


def _now() -> int:
    return time.time_ns() // 1000


class Runners:
    """Makes runners for programs over one background, which is loaded once."""

    def __init__(self, background: Knowledge | None, policy: str, revise: int) -> None:
        self._background, self._policy, self._revise = background, policy, revise

    def __call__(self, query: str, stream: str, name: str = "") -> EngineRunner:
        text = Source(query, f"{name}.rq", named=True) if name else Source(query)
        return EngineRunner(compile(text, policy=self._policy), self._background, stream, self._revise)

    def queries(self, stream: str) -> StandingQueries:
        if self._revise:
            raise ValueError(
                "a program of many queries takes no corrections, and this server does (--revise): use one without, or "
                "register each query as a program of its own"
            )
        return StandingQueries(self._background, stream, self._policy)


def runner_factory(
    background: list[str], entailment: str, policy: str, revise: int = 0, log: LogKind = "text"
) -> Runners:
    """Make the runners: called once, in the process from which those of the programs are forked.

    So the background is loaded only once, but each program has its own copy, which it may change.  ``log`` says how
    this process and the programs write what they log.
    """
    write_log(log)
    knowledge = load(background, entailment=entailment) if background else None
    return Runners(knowledge, policy, revise)
