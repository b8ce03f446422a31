"""``etalis run`` on the local engine: one run, from the beginning of its streams to their end."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from etalis_rules.messages import how_many

from etalis_py.cli import options as shared
from etalis_py.cli.both import Both
from etalis_py.cli.engine_of_run import (
    engine_for,
    reason_for,
    refuse_for_windows,
    report_first_late,
    report_left_out,
    report_unmet,
    report_unread,
    ties_of,
    what_allows_more,
)
from etalis_py.cli.errors import UsageError
from etalis_py.cli.farewell import Farewell, waited_for
from etalis_py.cli.folder import QueryFolder, files_in, fixed_by
from etalis_py.cli.interrupt import Hangup, Interrupt
from etalis_py.cli.lasting import drafts_of, is_lasting, keeper_of
from etalis_py.cli.limits import limits_of
from etalis_py.cli.outputs import DurableOutlet, Outlet, open_outlet
from etalis_py.cli.paced_steps import drive, paced
from etalis_py.cli.progress import Progress, on_terminal
from etalis_py.cli.refreshed import refreshed_tables
from etalis_py.cli.sources import open_streams
from etalis_py.cli.trace import Trace, check_trace
from etalis_py.engine.driver import Driver, Step
from etalis_py.engine.unseen_names import UnseenNames
from etalis_py.events.clock import ClockRender
from etalis_py.events.errors import without_password
from etalis_py.kernel.matches import Match, Matches
from etalis_py.streams import Clock, DeadLetters
from etalis_py.streams.pass_through import EndingError
from etalis_py.streams.reference import updates_from

if TYPE_CHECKING:
    from etalis_py import Engine
    from etalis_py.cli.picture import Picture
    from etalis_py.cli.telemetry import Telemetry
    from etalis_py.durable.keeper import Keeper
    from etalis_py.engine.program import Program


class LocalRun:
    """One run: what it reads, the engine, where matches go, and what is told beside them.

    ``folder`` has queries that come and go while it runs; ``hangup`` notices SIGHUP if the options name a folder.
    """

    def __init__(self, options: Namespace, folder: QueryFolder | None, hangup: Hangup | None) -> None:
        shared.check_moment(options.until)
        self.options, self.folder, self.hangup = options, folder, hangup
        self.start, self.limits = shared.start_of(options), limits_of(options)
        self.program = self._compiled()
        if self.program.windowed:
            refuse_for_windows(options)
        if options.trace is not None:
            check_trace(self.program, options.trace)
        self.timeline = _timeline(options.timeline) if options.timeline else None
        self.lasting, self.revised = is_lasting(options), bool(options.revise)
        self.started = options.start is not None
        self.make_driver: Callable[..., Driver] = Driver
        self.both: Both | None = None
        self.trace: Trace | None = None
        self.keeper: Keeper | None = None
        self.telemetry: Telemetry | None = None
        self.clock: Clock | None = None  # that of the matches, while they are written
        self.render = ClockRender(lambda: self.clock or self.stream.clock)
        self.doubts: Sequence[str] = ()  # the warnings about the stream that were told before its end

    def run(self) -> int:
        """Run to the end of the streams; returns the exit code."""
        with ExitStack() as stack:
            self._open_streams(stack)
            self._open_background()
            self._make_engine()
            self._open_outlet(stack)
            if self.keeper is not None and self.keeper.ended:
                over = f"the run in {self.options.checkpoint} has come to its end; nothing is left to do"
                print(f"etalis: {over}", file=sys.stderr)
                return 0
            stack.enter_context(self.outlet)
            self._show_progress(stack)
            self._begin_driver()
            try:
                drive(self.driver, self._take, self.interrupt)
            except EndingError as error:
                raise UsageError(f"--until {self.options.until}: {error.reason}") from None
        self._report()
        return 0

    # --- what it reads ---

    def _compiled(self) -> Program:
        """The program of the queries that are named; those of a folder that stay the same are checked, too."""
        options, folder = self.options, self.folder
        named = folder is None or options.query or options.texts
        given = shared.read_queries(options.query, options.texts) if named else []
        program = shared.compiled(given, options.policy)
        if folder is not None and not options.watch:
            files = [*options.query, *map(str, files_in(options.queries))]
            every = shared.compiled(shared.read_queries(files, options.texts), options.policy)
            shared.show_warnings(every.check())
        return program

    def _open_streams(self, stack: ExitStack) -> None:
        options, program = self.options, self.program
        self.interrupt = stack.enter_context(Interrupt(raises=not self.lasting))
        if self.hangup is not None:
            stack.enter_context(self.hangup)
        self.letters = stack.enter_context(DeadLetters(options.dead_letters)) if options.dead_letters else None
        self.drafts = drafts_of(options)
        self.stream, self.live = open_streams(options, self.letters, program.prefixes, self.drafts)
        stack.callback(self.stream.close)
        self.farewell = Farewell(self._waited_for)
        stack.callback(self.farewell.end)
        self.interrupt.heard = self._hear
        # What is held back for other parts of the stream is still given, unless it waits for its time anyway.
        self.interrupt.raises = not (self.lasting or (self.stream.holds_back and options.speed is None))
        self.ties = ties_of(options, program, self.stream)
        # Unbounded state only matters on live streams.
        shared.show_warnings(program.check() if self.live else program.warnings)

    def _hear(self) -> None:
        """The run is asked to stop: the reader waits no longer, and whoever asked is told what else does."""
        self.stream.hurry()
        self.farewell.begin()

    def _open_background(self) -> None:
        self.refreshed = refreshed_tables(self.options, self.program.prefixes)
        self.tables = () if self.refreshed is None else self.refreshed.tables
        self.background = shared.background_of(self.options, self.program.prefixes, self.tables)

    # --- the engine ---

    def _make_engine(self) -> None:
        """The engine of the executor that is asked for, or both; on several cores a share of it on each."""
        options = self.options
        self.both = Both(self._engine_by, self.program.prefixes) if options.executor == "both" else None
        if self.both is not None:
            self.engine = cast("Engine", self.both)
        elif options.trace is not None:
            self.engine = self._engine_by("rows", True)
            self.trace = Trace(self.engine, options.trace, self.program.prefixes)
        else:
            self.engine = self._engine_by(options.executor or "auto", False)
        if options.cores > 1:
            self._share_cores()
        if self.folder is not None:
            self.folder.begin(self.engine)

    def _engine_by(self, executor: str, nodes: bool) -> Engine:
        """An engine by one executor; ``nodes``: what each node does can be looked into."""
        options = self.options
        changes = options.background_stream is not None or self.refreshed is not None
        return engine_for(
            self.program,
            background=self.background or ([] if changes else None),
            entailment=options.entailment,
            named=shared.graph_files(self.program),
            explain=options.explain_matches or self.timeline is not None,
            lateness=options.lateness,
            revise=options.revise,
            ties=self.ties,
            start=self.start,
            duplicates=options.duplicates,
            render=self.render,
            changes=changes,
            executor=executor,
            limits=self.limits,
            **({"nodes": True, "sweep_every": 1} if nodes else {}),
        )

    def _share_cores(self) -> None:
        """Let the engine match on several cores, as far as input and queries allow, and tell what is not shared."""
        from etalis_py.engine.cores.choosing import driver_on_cores, engine_on_cores, sharing

        cores = self.options.cores
        share = sharing(self.engine, self.stream, cores, kept=self.lasting)
        self.engine = engine_on_cores(self.engine, share, cores, self.program)
        self.make_driver = partial(driver_on_cores, share)
        if not share.is_whole:
            print(f"etalis: --cores {cores}: {share}", file=sys.stderr)

    def _begin_driver(self) -> None:
        """The driver, which takes the items of the stream to the engine; nothing is read yet."""
        options = self.options
        changes = options.background_stream
        updates = updates_from(changes, options.time_unit, self.program.prefixes) if changes else ()
        self.census = UnseenNames(self.program, ties=self.ties)
        self.driver = self.make_driver(
            self.engine,
            self.stream,
            until=options.until,
            updates=updates,
            live=self.live or options.speed is not None or self.trace is not None,
            census=self.census,
            through=list(self._passes()),
            interrupt=self.interrupt,
        )
        if self.keeper is not None:
            self.driver.keep_by(self.keeper)

    def _passes(self) -> Iterator[Callable[[Iterator[Any]], Iterator[Any]]]:
        """What the items of the stream go through on their way to the engine."""
        options, folder, refreshed = self.options, self.folder, self.refreshed
        if self.trace is not None:
            yield self.trace.closing
        if options.speed is not None:
            yield lambda items: paced(items, options.speed, closing=not options.lateness)
        if folder is not None:
            yield lambda items: folder.between(items, self.engine)
        if refreshed is not None:
            yield lambda items: refreshed.between(items, lambda: self.driver)

    # --- what it writes ---

    def _open_outlet(self, stack: ExitStack) -> None:
        """The outlet of the matches, and the keeper of a run that lasts; events left out are reported at the end."""
        options, program, engine = self.options, self.program, self.engine
        stack.callback(self._report_left_out)
        if self.folder is None:
            stack.callback(lambda: report_unread(engine.counters.unrouted, program.inputs))
        outputs = engine.outputs if self.trace is None else self.trace.outputs
        settled = engine.settled if self.both is None else None
        self.outlet: Outlet = open_outlet(
            options, outputs, program.prefixes, options.explain_matches, self.revised, self.lasting, settled
        )
        if self.lasting and isinstance(self.outlet, DurableOutlet):
            names = (name for name in options.background if name not in self.tables)
            read = dict(zip(names, self.background, strict=True))
            self.keeper = keeper_of(options, program, engine, self.stream, self.outlet, self.letters, self.drafts, read)
            stack.callback(self.keeper.close)

    def _show_progress(self, stack: ExitStack) -> None:
        options = self.options
        live_table = options.format == "table" and options.sink == "-" and sys.stdout.isatty()
        self.progress = Progress(self.engine, self._reached, shown=on_terminal() and not live_table)
        stack.callback(self.progress.clear)
        self.flushing = self.live or options.speed is not None or sys.stdout.isatty()
        if options.metrics is not None:
            from etalis_py.cli.telemetry import Telemetry  # takes a while to import

            self.telemetry = Telemetry(options.metrics, self.engine, self.stream, self.letters)
            self.telemetry.keeper = self.keeper
            stack.callback(self.telemetry.close)

    def _reached(self) -> str:
        newest = self.driver.newest
        return "" if newest is None else str(self.render(newest))

    def _take(self, step: Step) -> None:
        """Write the matches of a step, and tell what came with it."""
        if self.live and step.newest is None and not step.ended and not self.doubts:
            self.doubts = self.stream.warnings  # who runs for months should not hear of it at the end
            report_unmet(self.doubts)
        began = time.monotonic()
        matches: Sequence[Match] = step.matches if self.trace is None else self.trace.take(step)
        if len(matches):
            self._write(matches)
        if self.folder is None and self.hangup is not None and self.hangup.taken():
            same = f"with {fixed_by(self.options)} the queries stay the same"
            print(f"etalis: {same}: the run goes on", file=sys.stderr)
        self.progress.tick()
        self._take_late(step)
        if self.telemetry is not None:
            self.telemetry.note(step, time.monotonic() - began)

    def _write(self, matches: Sequence[Match]) -> None:
        self.clock = self.stream.clock
        self.progress.clear()
        if isinstance(matches, Matches):
            self.outlet.write_all(matches)
        else:
            for match in matches:
                self.outlet.write(match)
        if self.timeline is not None:
            for match in matches:
                self.timeline.add(match)
        if self.flushing:
            self.outlet.flush()
        self.clock = None

    def _take_late(self, step: Step) -> None:
        """Keep the events that came too late, or that correct nothing; the engine counts them."""
        if step.late and self.letters is not None:
            reason = reason_for(self.options.lateness, self.options.revise)
            for event in step.late:
                self.letters.late(event, reason(event))
        first = bool(step.late) and self.engine.counters.late == len(step.late)
        if first and self.live and step.newest is not None:
            report_first_late(
                step.late[0], step.newest, self.stream.clock.render, what_allows_more(self.revised, self.started)
            )

    # --- what it tells at the end ---

    def _waited_for(self) -> str:
        outlet, progress = getattr(self, "outlet", None), getattr(self, "progress", None)
        if progress is not None:
            progress.clear()
        sink = outlet.sink if isinstance(outlet, DurableOutlet) else None
        writing = self.clock is not None or (self.keeper is not None and self.keeper.with_sink)
        named = getattr(sink, "name", "") or without_password(self.options.sink)
        name = "standard output" if self.options.sink == "-" else named
        return waited_for(sink, name, writing=writing, lasts=self.lasting)

    def _report_left_out(self) -> None:
        """Tell what was left out, however the run ends."""
        report_left_out(self.stream.counters, self.engine.counters.late, self.letters, self.revised, self.started)

    def _report(self) -> None:
        """Tell what a run that has come to its end may have been expected to do, and did not."""
        options, counters = self.options, self.engine.counters
        if not (counters.matches or self.live or self.folder):
            shared.show_why_nothing(self.program)
        unmade = (text for text in self.stream.warnings if text not in self.doubts)
        report_unmet((*self.driver.warnings, *unmade, *self.engine.warnings, *self._unmet()))
        stopped = self.interrupt.asked
        if stopped or self.progress.shown:
            print(("stopped: " if stopped else "") + self.progress.summary(), file=sys.stderr)
        if on_terminal() and not (counters.matches or stopped or self.live or self.lasting or self.folder):
            from etalis_py.cli.nothing_found import nothing_found  # only where there is nothing

            print(nothing_found(options, self.program, counters.events), file=sys.stderr)
        if self.both is not None:
            same = how_many(self.both.compared, "match", "matches")
            print(f"etalis: rows and columns gave the same {same}", file=sys.stderr)
        if self.timeline is not None:
            self.timeline.draw()

    def _unmet(self) -> Sequence[str]:
        """What the queries ask for and the stream never had; a run that goes on has not seen all of the stream."""
        if self.keeper is not None and self.keeper.resumed:
            return ()
        read = not self.engine.counters.unrouted
        subjects, times = self.stream.subjects, self.stream.times_of_rows
        return self.census.warnings(self.engine.knowledge, unread=read, subjects=subjects, times=times)


def _timeline(path: str) -> Picture:
    from etalis_py.cli.picture import Picture  # takes a while to import

    return Picture(path)
