"""Runs an instant through the stages of a program, one after the other, and collects their reports in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from etalis_rules.durations import seconds

from etalis_py.events import Event
from etalis_py.kernel.batch import Batch, Report, as_reported
from etalis_py.kernel.late_events import LateEvents
from etalis_py.kernel.matches import Matches, join_matches
from etalis_py.kernel.options import Options
from etalis_py.kernel.position import NEVER, Counters, Position, StateSize
from etalis_py.kernel.protocol import Dispatch, Executor
from etalis_py.kernel.reports import check_matches, drop_reports, first_answers
from etalis_py.kernel.revision import Revision
from etalis_py.kernel.shapes import LazyShapes, Shape
from etalis_py.kernel.steps import Steps
from etalis_py.values.errors import LimitExceeded


@dataclass(frozen=True, slots=True)
class Stage:
    """An executor, and the numbers that its outputs have in the whole program."""

    executor: Executor
    numbers: tuple[int, ...]


class Instants(Steps):
    """Runs complete instants through stages of executors, and numbers and orders their reports.

    A program with one stage whose executor has functions for an instant calls them directly; otherwise complete
    instants go from stage to stage in batches.
    """

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.options = options
        self.lateness = options.lateness
        self.limits = options.limits
        self.render = options.render or seconds
        self.counters = Counters(kept=self._kept)
        self.dead_letters: list[Event] = LateEvents()
        start = NEVER if options.start is None else options.start - 1
        self._at = Position(now=start, closed=start, start=options.start)
        self._since_house = 0
        self._reports: list[tuple[int, int, Report]] = []  # only with several stages: each with its instant and stage
        self._unread: list[Matches] = []  # matches for the next call that were taken out of the stages
        self._revision: Revision | None = None
        self._dispatch: Dispatch | None = None
        self._quick: Dispatch | None = None  # the functions of an instant, if ``push`` may call them at once
        self._arrange((), [])

    def _arrange(
        self, stages: Sequence[Stage], shapes: Sequence[Shape], *, unnamed: str = "", lockstep: bool = False
    ) -> None:
        """Run these stages from now on.

        ``unnamed`` is the stream of events that name none.  ``lockstep``: every stage sees an instant before any sees
        the next, because the background that they read changes from one instant to the next.
        """
        if self._dispatch is not None and (
            self.counters.instants if self._at.start is None else self._at.now > self._at.start - 1
        ):
            self._at.begun = True  # programs that come later have missed the start
        self._stages = tuple(stages)
        self._tell_start()
        self._shapes = shapes
        self._unnamed = unnamed
        self._lockstep = lockstep
        self._dispatch = stages[0].executor.dispatch() if len(stages) == 1 else None
        self._keep_unread(self._unread)
        there = shapes.ordinary if isinstance(shapes, LazyShapes) else dict(enumerate(shapes))
        own = {number: shape.query for number, shape in there.items() if shape.once}
        self._once = shapes.once if isinstance(shapes, LazyShapes) else own
        self._hidden = frozenset(number for number, shape in there.items() if shape.hidden)
        # The fast loop keeps the events of the open instant as plain tuples; they become events again here.
        self._at.pending = [Event._make((*e[:3], e[3] or unnamed, e[4])) for e in self._at.pending]

    def _renew_functions(self) -> None:
        """Use the functions that the executor has now: goals that were stored may ask for others."""
        if self._dispatch is not None and self._stages[0].executor.form == "rows":
            self._dispatch = self._stages[0].executor.dispatch()

    def _set_aside(self) -> None:
        """Take the reports out of the stages, and keep them for the next call."""
        matches = self._matches()
        self._keep_unread([matches] if len(matches) else [])

    def _keep_unread(self, unread: list[Matches]) -> None:
        """Let the next call return these matches first."""
        self._unread = unread
        self._waits = bool(self.lateness) or self.options.eager or bool(unread)

    def _settle(self) -> None:
        at = self._at
        plain = at.started and not at.finished and not self._waits and self._revision is None
        self._quick = self._dispatch if plain else None

    @property
    def closed_at(self) -> int:
        """The time up to which every instant is over."""
        at = self._at
        return at.closed if at.now == NEVER else max(at.closed, at.now - 1)

    @property
    def finished(self) -> bool:
        """Whether the stream has ended."""
        return self._at.finished

    # --- the start of the stream ---

    def start_at(self, t: int) -> None:
        """The stream starts at ``t``, if no start was given and no instant is over: a live source has waited since."""
        at = self._at
        if at.start is None and not at.begun:
            at.start = t
            self._tell_start()
            if self._revision is not None:
                self._revision.restart()

    def _tell_start(self) -> None:
        """Tell the executors when the stream starts, if that is known, and that it has started if it has."""
        at = self._at
        for stage in self._stages if at.start is not None or at.begun else ():
            stage.executor.started(None if at.begun else at.start)

    def _begin_with(self, batch: Batch) -> None:
        """The first instant starts the stream, unless a time was given: with the least start of its events."""
        at = self._at
        if at.start is None and (first := batch.first_start()) is not None:
            at.start = first
            self._tell_start()
        at.begun = at.start is not None and batch.through >= at.start - 1

    # --- instants ---

    def _run_instant(self, dispatch: Dispatch, now: int, events: Sequence[Any]) -> None:
        """Pass all events of an instant to its functions."""
        try:
            self._call(dispatch, now, events)
        except LimitExceeded:
            drop_reports(self._stages[0].executor.reports, now)
            raise

    def _call(self, dispatch: Dispatch, now: int, events: Sequence[Any]) -> None:
        if dispatch.due is not None and dispatch.alarm[0] < now:
            dispatch.due(now - 1)  # a restored engine has not yet checked what is due before its open instant
        if len(events) == 1 and len(events[0][2]) == 1:
            start, _, ((s, p, o),), stream, _ = events[0]
            dispatch.single.get(p, dispatch.other)(s, o, start, now, stream, p)
            self.counters.triples += 1
        else:
            occurrences = [(s, p, o, start, stream) for start, _, triples, stream, _ in events for s, p, o in triples]
            if not occurrences:
                return
            dispatch.instant(now, occurrences)
            self.counters.triples += len(occurrences)
        self.counters.instants += 1

    def _keep_house(self, dispatch: Dispatch, events: int, now: int) -> None:
        self.counters.events += events
        self._since_house += events
        if self._since_house >= dispatch.every[0]:
            dispatch.keep(self._since_house, now)
            self._since_house = 0

    def _close_instant(self, through: int | None = None) -> None:
        """Close the open instant, whose events are complete; ``through``: time has reached this point."""
        at = self._at
        pending, at.pending = at.pending, []
        if self._dispatch is not None and self._stages[0].executor.form == "rows":
            if pending:
                self._run_instant(self._dispatch, at.now, pending)
            if self._dispatch.due is not None and through is not None:
                self._dispatch.due(through)
        else:
            self._pass(Batch(pending, at.now if through is None else through))

    def _pass(self, batch: Batch) -> None:
        """Pass complete instants through all stages; later stages see what earlier ones derive."""
        if not self._at.begun:
            self._begin_with(batch)
        instants, triples = batch.count()
        self.counters.instants += instants
        self.counters.triples += triples
        if not self._lockstep or len(self._stages) == 1:
            self._pass_together(batch)
            return
        for end, events in groupby(batch.rows, key=itemgetter(1)):
            self._pass_due(end - 1)
            self._pass_together(Batch(list(events), end))
        self._pass_due(batch.through)
        self._pass_together(Batch((), batch.through))

    def _pass_due(self, t: int) -> None:
        """Pass the due times without events up to ``t`` through the stages, one after the other."""
        while (due := self._due()) is not None and due <= t:
            self._pass_together(Batch((), due))

    def _pass_together(self, batch: Batch) -> None:
        begun = len(self._reports)
        for number, stage in enumerate(self._stages):
            try:
                stage.executor.take(batch)
            except LimitExceeded:
                del self._reports[
                    begun:
                ]  # other stages have not seen these instants, so their answers are not complete
                raise
            batch = batch.with_derived(stage.executor.derived)
            self._collect(number, stage)

    def _due(self) -> int | None:
        """The first time at which a stage has something due."""
        return min((t for s in self._stages if (t := s.executor.next_due()) is not None), default=None)

    def _collect(self, number: int, stage: Stage) -> None:
        """Collect the reports of a stage; if there is only one stage, they stay with it until they are read."""
        executor = stage.executor
        executor.derived.clear()
        if len(self._stages) > 1:
            numbers, reports = stage.numbers, as_reported(executor.reports, one_by_one=True)
            self._reports += [(t, number, (numbers[output], t, rows)) for output, t, rows in reports]
            executor.reports.clear()

    # --- reports ---

    def _matches(self) -> Matches:
        """The matches reported since the last call, ordered by instant and stage."""
        if len(self._stages) == 1:
            waiting = self._stages[0].executor.reports
            reports = as_reported(waiting, one_by_one=bool(self._once or self._hidden))
            waiting.clear()
        else:
            reports = [report for _, _, report in sorted(self._reports, key=itemgetter(0, 1))]
            self._reports.clear()
        if self._once:
            reports = first_answers(reports, self._once, self._at.answered)
        if self._hidden:
            reports = [report for report in reports if report[0] not in self._hidden]
        matches = Matches(self._shapes, reports)
        if reports:
            if len(matches) > self.limits.matches and (many := check_matches(reports, self.limits, self.render)):
                before, error = many
                self.counters.matches += sum(len(rows) for _, _, rows in before)
                self._keep_unread([*self._unread, Matches(self._shapes, before)])
                raise error
            self.counters.matches += len(matches)
        if self._unread:
            matches = join_matches([*self._unread, matches])
            self._keep_unread([])
        return matches

    def _interrupt(self, step: str, error: BaseException) -> None:
        """If a limit interrupts a step, its error has the matches of the instants that were over before."""
        super()._interrupt(step, error)
        if not isinstance(error, LimitExceeded) or self._revision is not None or self._replanning:
            return
        if len(self._stages) > 1:
            for stage in self._stages:
                stage.executor.reports.clear()
        try:
            error.matches = self._matches()
        except LimitExceeded:  # an earlier instant had too many matches
            error.matches = join_matches(self._unread)

    def _forget_reports(self) -> None:
        """Drop reports that nobody has read, because the state that gave them is being replaced."""
        for stage in self._stages:
            stage.executor.reports.clear()
            stage.executor.derived.clear()
        self._reports.clear()
        self._keep_unread([])

    # --- what is kept ---

    def _kept(self) -> StateSize:
        at = self._at
        total = StateSize(items=len(at.buffer) + len(at.pending) if self._dispatch is None else 0)
        for stage in self._stages:
            kept = stage.executor.kept()
            total.goals += kept.goals
            total.items += kept.items
            total.per_rule |= kept.per_rule
        return total

    def count(self) -> Counters:
        """The counters, including those of the state that is kept now."""
        return self.counters
