"""Programs inside a server of stream containers: an engine behind the protocol that the server knows."""

from __future__ import annotations

import logging
from collections.abc import Callable

from etalis_compiler.explain import prefixes_of

from etalis_py.engine.engine import Engine
from etalis_py.engine.matches import Match, Matches
from etalis_py.events import Event
from etalis_py.knowledge import Knowledge
from etalis_py.notebook import rule_graph
from etalis_py.program import Program, compile
from etalis_py.streams.clock import render_datetime

_LOG = logging.getLogger("etalis.containers")


class EngineRunner:
    """One program at work.  Events that come too late are logged."""

    def __init__(self, program: Program, background: Knowledge | None, stream: str) -> None:
        self.program, self.stream = program, stream
        self._engine = Engine(
            program, background=background, policy=program.policy, explain=True, render=render_datetime
        )
        self._newest: int | None = None

    def push(self, event: Event) -> list[Match]:
        self._newest = event.end if self._newest is None else max(self._newest, event.end)
        return self._found(self._engine.push(event))

    def idle(self) -> list[Match]:
        return [] if self._newest is None else self._found(self._engine.advance(self._newest))

    def graph(self) -> dict[str, object]:
        return rule_graph(self._engine.rules, prefixes_of(self.program.compilation))

    def close(self) -> None:
        self._engine.close()

    def _found(self, matches: Matches) -> list[Match]:
        for event in self._engine.dead_letters:
            _LOG.warning("%s: an event of %s came too late and was left out", self.stream, render_datetime(event.end))
        self._engine.dead_letters.clear()
        return list(matches)


def runner_factory(background: Callable[[], Knowledge | None], policy: str) -> Callable[[str, str], EngineRunner]:
    """Makes programs runnable; each gets knowledge of its own, since a program may change it."""
    # The line break says that this is the text of a query and not the name of a file.
    return lambda query, stream: EngineRunner(compile(query + "\n", policy=policy), background(), stream)
