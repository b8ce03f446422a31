"""An engine whose work several processes share; the first of them gives the matches of all, in order.

Until ``start`` it is an engine as any other.  Afterwards each of its steps (``push_all``, ``advance``, ``close``) is
taken by all processes, one of which is this one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import numpy as np

from etalis_py.engine.cores.crew import Answer, Crew, Sender, failure
from etalis_py.engine.cores.merging import merged
from etalis_py.engine.cores.takers import Taker, taker_of
from etalis_py.engine.cores.ways import Way
from etalis_py.engine.cores.wire import pack, unpack
from etalis_py.engine.engine import Engine
from etalis_py.engine.program import Given
from etalis_py.kernel.batch import as_reported
from etalis_py.kernel.matches import Matches, join_matches
from etalis_py.kernel.options import EngineOptions
from etalis_py.kernel.reports import check_matches
from etalis_py.values.errors import LimitExceeded
from etalis_py.values.limits import Limits
from etalis_py.values.time import TIMELESS_END


class SharedEngine(Engine):
    """An engine for ``count`` processes; its limits of memory are shared out among them."""

    def __init__(self, program: Given, way: Way, count: int, **options: Unpack[EngineOptions]) -> None:
        self.way, self.processes = way, count
        self._crew: Crew | None = None
        self._sender: Sender | None = None
        self._taker: Taker | None = None
        self._left = False
        self._step_number = 0
        options["limits"] = shared_out(options.get("limits", Limits()), count)
        super().__init__(program, **options)

    # --- processes ---

    def start(self, crew: Crew, work: Callable[[int], object]) -> None:
        """Fork the other processes; each does this work, which must take the same steps as this one does."""
        self._reads = super().reads_columns, super().reads_records  # the same in all, whatever is compiled meanwhile
        self._taker = taker_of(self, self.way, 0, self.processes)
        crew.fork(self.processes - 1, partial(self._work, work))
        self._crew = crew

    def _work(self, work: Callable[[int], object], number: int, sender: Sender) -> None:
        self._sender = sender
        self._taker = taker_of(self, self.way, number, self.processes)
        work(number)

    def leave(self) -> None:
        """The run ends before its stream does: the last complete step was the last."""
        if self._crew is not None:
            self._crew.end()
            self._left = True

    @property
    def reads_columns(self) -> bool:
        return super().reads_columns if self._taker is None else self._reads[0]

    @property
    def reads_records(self) -> bool:
        return super().reads_records if self._taker is None else self._reads[1]

    # --- steps ---

    def push_all(self, events: Any, *, mapping: Any = None, time: str = "", subject: str | None = "") -> Matches:
        """As ``Engine.push_all``; once it is started, only of events, in rows or in columns."""
        taker = self._taker
        if taker is None:
            return super().push_all(events, mapping=mapping, time=time, subject=subject)
        return self._shared("push", lambda: taker.push(events))

    def advance(self, t: int) -> Matches:
        taker = self._taker
        return super().advance(t) if taker is None else self._shared("advance", lambda: (taker.advance(t), None))

    def close(self, *, until: int | None = None) -> Matches:
        taker = self._taker
        if taker is None:
            return super().close(until=until)
        return self._shared("close", lambda: (taker.close(until), None))

    def take_own(self, events: Any) -> Matches:
        """Push events into this process's engine."""
        return super().push_all(events)

    def pass_own(self, t: int) -> Matches:
        """Let time pass in this process's engine."""
        return super().advance(t)

    def end_own(self, until: int | None) -> Matches:
        """Close this process's engine."""
        return super().close(until=until)

    def _shared(self, at: str, take: Callable[[], tuple[list[Matches], ValueError | None]]) -> Matches:
        """Take a step together with the other processes."""
        self._step_number += 1
        nothing = Matches(self._shapes, [])
        triples = self.counters.triples
        if self._left:
            parts, _ = take()
            self.counters.matches -= sum(map(len, parts))
            return nothing
        try:
            parts, refused = take()
        except Exception as error:
            if self._sender is not None:
                self._sender.send(failure(self._step_number, at, error))
            elif isinstance(error, LimitExceeded):
                error.matches = ()  # only those of this process: no instant of the step is complete
            raise
        own = join_matches(parts).reports if parts else []
        if self._sender is not None:
            reports = list(pack(without_timeless(own)))
            self._sender.send(Answer(self._step_number, at, reports, self.counters.triples - triples))
            matches = nothing
        else:
            matches = self._joined(at, own)
        if refused is not None:
            raise refused
        return matches

    def _joined(self, at: str, own: list[Any]) -> Matches:
        """The matches of all processes."""
        assert self._crew is not None
        answers = self._crew.answers(self._step_number, at)
        counted = len(Matches(self._shapes, own))
        matches = Matches(self._shapes, merged(self._shapes, [own, *(unpack(answer.reports) for answer in answers)]))
        self.counters.matches += len(matches) - counted
        self.counters.triples += sum(answer.triples for answer in answers)
        if len(matches) > self.limits.matches and (many := check_matches(matches.reports, self.limits, self.render)):
            before, error = many
            error.matches = Matches(self._shapes, before)
            raise error
        return matches


def shared_out(limits: Limits, count: int) -> Limits:
    """The limits of one of several processes, for what they keep in memory."""
    return replace(limits, goals=max(1, limits.goals // count), bytes=max(1, limits.bytes // count))


def without_timeless(reports: list[Any]) -> list[Any]:
    """The reports without solutions that hold at all times: every process has these, and the first reports them."""
    timed: list[Any] = []
    for report in reports:
        if isinstance(report, tuple):
            rows = [row for row in report[2] if row[0] != TIMELESS_END]
            timed += [(*report[:2], rows)] if rows else []
        elif len(report):
            some = (np.asarray(report.end) == TIMELESS_END).any()
            timed += without_timeless(as_reported([report], one_by_one=True)) if some else [report]
    return timed
