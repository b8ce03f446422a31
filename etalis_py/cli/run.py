"""``etalis run``: queries over streams, matches out."""

from __future__ import annotations

import argparse
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from etalis_py.cli import options as shared
from etalis_py.cli.engine_of_run import (
    check_ties,
    engine_for,
    reason_for,
    refuse_for_windows,
    report_first_late,
    report_left_out,
    report_unmet,
    report_unread,
    ties_of,
)
from etalis_py.cli.errors import UsageError

if TYPE_CHECKING:
    from etalis_py import Engine
    from etalis_py.cli.picture import Picture
    from etalis_py.events import Event
    from etalis_py.kernel.matches import Match
    from etalis_py.streams import DeadLetters


EXAMPLES = """\
examples:
  etalis run rising.rq --stream ticks.jsonl --format table
  etalis run -q 'SELECT ?c ?x { ?c :price ?x } WITHIN 10 s' -s ticks.csv -m mapping.toml
  etalis run rising.rq -s prices=ticks.csv -s news=news.jsonl -m prices=mapping.toml -b firms.ttl -o matches.parquet
  etalis run rising.rq -s ticks.jsonl --follow
  etalis run rising.rq -s ticks.jsonl -f table --watch
  etalis run --queries alerts -s tcp://localhost:7000 --watch
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "run",
        help="run queries over streams",
        description="Run queries and rules over streams; matches come out.",
        epilog=EXAMPLES,
        formatter_class=shared.Help,
        usage="etalis run QUERY… --stream [NAME=]SOURCE… [options]",
    )
    shared.add_queries(parser)
    shared.group(parser, "query").add_argument(
        "--queries",
        metavar="DIR",
        help="a folder of which every file that ends in .rq is read; with --watch and a live stream they may come, "
        "change and go while it runs; without --watch when SIGHUP comes",
    )
    shared.add_streams(parser)
    shared.add_policy(parser)
    shared.add_reading(parser)
    shared.add_background(parser)
    shared.group(parser, "background knowledge").add_argument(
        "--background-stream",
        metavar="FILE",
        help="timed updates of the background: JSON lines, or a table with a time",
    )
    shared.group(parser, "background knowledge").add_argument(
        "--background-refresh",
        type=shared.duration,
        metavar="D",
        help="how often tables of PostgreSQL are read again while the run is at work, as 60s (default: never)",
    )
    shared.group(parser, "streams").add_argument(
        "--follow", action="store_true", help="the files grow: read them to the end, then whatever is added"
    )
    time = shared.group(parser, "time and order")
    time.add_argument(
        "-l",
        "--lateness",
        type=shared.duration,
        default=0,
        metavar="D",
        help="how late an event may come, as 10s or PT1M",
    )
    time.add_argument(
        "--revise",
        type=shared.duration,
        default=0,
        metavar="D",
        help="how long the input may be corrected, by retractions and late events; matches may then be taken back",
    )
    time.add_argument(
        "--ties",
        metavar="source|COLUMN",
        help="events of one time have the order of the source, or of their values in a column; without it they have "
        "none",
    )
    time.add_argument(
        "--idle",
        type=shared.seconds_of_silence,
        default=1_000_000,
        metavar="D",
        help="the silence after which the time of a live stream goes on by the wall clock (default: 1s)",
    )
    time.add_argument(
        "--start",
        metavar="T",
        help="the stream starts at this time, for START and the first window; what ends before it is late",
    )
    time.add_argument(
        "--until", metavar="T", help="end at this time: a dateTime, or a number as the stream counts its times"
    )
    time.add_argument(
        "--speed", type=shared.speed, default="max", metavar="10x|real|max", help="against the stream's own time"
    )
    time.add_argument(
        "--duplicates",
        action="store_true",
        help="windows count a triple as often as it comes; without it they are sets of triples",
    )
    shared.add_output(parser, "jsonl")
    output = shared.group(parser, "output")
    output.add_argument("--explain-matches", action="store_true", help="write with each match why it holds")
    output.add_argument("--timeline", metavar="FILE", help="draw matches and their events (.svg, .png or .pdf)")
    output.add_argument("--dead-letters", metavar="FILE", help="where late events and skipped input go, as JSON lines")
    output.add_argument(
        "--on-error", choices=("stop", "skip"), default="stop", help="what to do about unreadable input (default: stop)"
    )
    output.add_argument(
        "--metrics",
        metavar="[HOST:]PORT",
        help="show how the run is doing at http://HOST:PORT/metrics (for Prometheus) and /health (default host: "
        "127.0.0.1)",
    )
    shared.add_log(output)
    shared.add_engine(parser)
    engine = shared.group(parser, "engine")
    engine.add_argument(
        "--executor",
        choices=("rows", "columns", "both"),
        help="run one event at a time, or a batch of columns at a time (default: whichever is quicker); both runs "
        "both, and stops at the first difference",
    )
    engine.add_argument(
        "--cores",
        type=shared.core_count,
        default=1,
        metavar="N",
        help="read and match on so many cores, as far as the input and the queries allow (default: 1; on Linux)",
    )
    engine.add_argument(
        "--trace", metavar="QUERY", help="show on standard error what the nodes of a query do at each instant"
    )
    engine.add_argument(
        "-w",
        "--watch",
        action="store_true",
        help="run again whenever a query, or another file of the run, has changed; see --queries",
    )
    parser.set_defaults(command=run, parser=parser)


def run(options: Namespace) -> int:
    from etalis_py.cli.folder import follows_folder

    shared.check_streams(options)
    if options.watch and not follows_folder(options):
        from etalis_py.cli.watch import check_watch, files_of, watch

        check_watch(options)
        return watch(lambda: run_once(options), lambda: files_of(options))
    return run_once(options)


def run_once(options: Namespace) -> int:
    """One run, from the beginning of the streams to their end."""
    from etalis_py.cli.folder import (
        QueryFolder,
        check_folder,
        files_in,
        fixed_by,
        follows_folder,
        is_for_folder,
        with_files,
    )
    from etalis_py.cli.interrupt import Hangup
    from etalis_py.cli.lasting import check_lasting, drafts_of, is_lasting, keeper_of
    from etalis_py.cli.outputs import check_outputs

    options = with_files(options)
    if options.stream.count("-") + options.query.count("-") > 1:
        raise UsageError("standard input can be read once only: as one stream or one query")
    shared.check_engine(options)
    check_lasting(options)
    check_outputs(options)
    folder = None
    hangup = Hangup() if is_for_folder(options) else None
    if follows_folder(options):
        check_folder(options)
        folder = QueryFolder(
            options.queries, options.policy, asked=None if options.watch or not hangup else hangup.taken
        )
    _check_inspection(options, folder is not None)
    check_ties(options)
    if options.engine == "spark":
        if options.until is not None:
            raise UsageError("--until is for the local engine: with --engine spark give it a stream that ends there")
        if options.follow:
            raise UsageError("--follow is for the local engine: Spark begins when all events are there")
        from etalis_py.cli import spark  # takes a while to import

        return spark.run(options)
    from etalis_py.cli.both import Both
    from etalis_py.cli.interrupt import Interrupt
    from etalis_py.cli.outputs import DurableOutlet, open_outlet
    from etalis_py.cli.paced_steps import drive, paced
    from etalis_py.cli.progress import Progress, on_terminal
    from etalis_py.cli.refreshed import refreshed_tables
    from etalis_py.cli.sources import open_streams
    from etalis_py.cli.trace import Trace, check_trace
    from etalis_py.engine.driver import Driver, Step
    from etalis_py.engine.unseen_names import UnseenNames
    from etalis_py.kernel.matches import Matches
    from etalis_py.streams import Clock, DeadLetters
    from etalis_py.streams.pass_through import EndingError
    from etalis_py.streams.reference import updates_from

    shared.check_moment(options.until)
    start = shared.start_of(options)
    given = (
        shared.read_queries(options.query, options.texts) if folder is None or options.query or options.texts else []
    )
    program = shared.compiled(given, options.policy)
    if folder is not None and not options.watch:
        files = [*options.query, *map(str, files_in(options.queries))]
        shared.show_warnings(shared.compiled(shared.read_queries(files, options.texts), options.policy).check())
    if program.windowed:
        refuse_for_windows(options)
    if options.trace is not None:
        check_trace(program, options.trace)
    timeline = _timeline(options.timeline) if options.timeline else None
    with ExitStack() as stack:
        lasting = is_lasting(options)
        interrupt = stack.enter_context(Interrupt(raises=not lasting))
        if hangup is not None:
            stack.enter_context(hangup)
        letters = stack.enter_context(DeadLetters(options.dead_letters)) if options.dead_letters else None
        drafts = drafts_of(options)
        stream, live = open_streams(options, letters, program.prefixes, drafts)
        stack.callback(stream.close)
        interrupt.heard = stream.hurry
        # What is held back for other parts of the stream is still given, unless it waits for its time anyway.
        interrupt.raises = not (lasting or (stream.holds_back and options.speed is None))
        ties = ties_of(options, program, stream)
        # Unbounded state only matters on live streams.
        shared.show_warnings(program.check() if live else program.warnings)
        clock: Clock | None = None
        doubts: Sequence[str] = ()

        def render(us: int) -> int | str:
            return (clock or stream.clock).render(us)

        refreshed = refreshed_tables(options)
        tables = () if refreshed is None else refreshed.tables
        background = shared.background_of(options, without=tables)
        changes = options.background_stream is not None or refreshed is not None

        def make(executor: str, nodes: bool) -> Engine:
            return engine_for(
                program,
                background=background or ([] if changes else None),
                entailment=options.entailment,
                named=shared.graph_files(program),
                explain=options.explain_matches or timeline is not None,
                lateness=options.lateness,
                revise=options.revise,
                ties=ties,
                start=start,
                duplicates=options.duplicates,
                render=render,
                changes=changes,
                executor=executor,
                **({"nodes": True, "sweep_every": 1} if nodes else {}),
            )

        both = Both(make, program.prefixes) if options.executor == "both" else None
        trace: Trace | None = None
        if both is not None:
            engine = cast("Engine", both)
        elif options.trace is not None:
            engine = make("rows", True)
            trace = Trace(engine, options.trace, program.prefixes)
        else:
            engine = make(options.executor or "auto", False)
        make_driver: Callable[..., Driver] = Driver
        if options.cores > 1:
            from etalis_py.engine.cores.choosing import driver_on_cores, engine_on_cores, sharing

            share = sharing(engine, stream, options.cores, kept=lasting)
            engine = engine_on_cores(engine, share, options.cores, program)
            make_driver = partial(driver_on_cores, share)
            if not share.is_whole:
                print(f"etalis: --cores {options.cores}: {share}", file=sys.stderr)
        if folder is not None:
            folder.begin(engine)
        revised = bool(options.revise)
        # Reported at the very end, however the run ends.
        stack.callback(lambda: report_left_out(stream.counters.errors, engine.counters.late, letters, revised))
        if folder is None:
            stack.callback(lambda: report_unread(engine.counters.unrouted, program.inputs))
        outputs = engine.outputs if trace is None else trace.outputs
        settled = engine.settled if both is None else None
        outlet = open_outlet(options, outputs, program.prefixes, options.explain_matches, revised, lasting, settled)
        keeper = None
        if lasting and isinstance(outlet, DurableOutlet):
            read = dict(zip((name for name in options.background if name not in tables), background, strict=True))
            keeper = keeper_of(options, program, engine, stream, outlet, letters, drafts, read)
            stack.callback(keeper.close)
        if keeper is not None and keeper.ended:
            print(
                f"etalis: the run in {options.checkpoint} has come to its end; nothing is left to do", file=sys.stderr
            )
            return 0
        stack.enter_context(outlet)
        live_table = options.format == "table" and options.sink == "-" and sys.stdout.isatty()
        progress = Progress(
            engine,
            lambda: "the beginning" if driver.newest is None else str(render(driver.newest)),
            shown=on_terminal() and not live_table,
        )
        stack.callback(progress.clear)
        flushing = live or options.speed is not None or sys.stdout.isatty()

        late = _late(letters, options.lateness, options.revise)
        telemetry = None
        if options.metrics is not None:
            from etalis_py.cli.telemetry import Telemetry  # takes a while to import

            telemetry = Telemetry(options.metrics, engine, stream, letters)
            telemetry.keeper = keeper
            stack.callback(telemetry.close)

        def take(step: Step) -> None:
            nonlocal clock, doubts
            if live and step.newest is None and not step.ended and not doubts:
                report_unmet(doubts := stream.warnings)  # who runs for months should not hear of it at the end
            began = time.monotonic()
            matches: Sequence[Match] = step.matches if trace is None else trace.take(step)
            if len(matches):
                clock = stream.clock
                progress.clear()
                if isinstance(matches, Matches):
                    outlet.write_all(matches)
                for match in () if isinstance(matches, Matches) else matches:
                    outlet.write(match)
                for match in matches if timeline is not None else ():
                    timeline.add(match)  # type: ignore[union-attr]
                if flushing:
                    outlet.flush()
                clock = None
            if folder is None and hangup is not None and hangup.taken():
                print(f"etalis: with {fixed_by(options)} the queries stay the same: the run goes on", file=sys.stderr)
            progress.tick()
            for event in step.late:
                late(event)
            if step.late and live and engine.counters.late == len(step.late) and step.newest is not None:
                report_first_late(step.late[0], step.newest, stream.clock.render, revised)
            if telemetry is not None:
                telemetry.note(step, time.monotonic() - began)

        updates = updates_from(options.background_stream, options.time_unit) if options.background_stream else ()
        census = UnseenNames(program, ties=ties)
        through: list[Callable[[Iterator[Any]], Iterator[Any]]] = []
        if trace is not None:
            through.append(trace.closing)
        if options.speed is not None:
            through.append(lambda items: paced(items, options.speed, closing=not options.lateness))
        if folder is not None:
            through.append(lambda items: folder.between(items, engine))
        if refreshed is not None:
            through.append(lambda items: refreshed.between(items, lambda: driver))
        driver = make_driver(
            engine,
            stream,
            until=options.until,
            updates=updates,
            live=live or options.speed is not None or trace is not None,
            census=census,
            through=through,
            interrupt=interrupt,
        )
        if keeper is not None:
            driver.keep_by(keeper)
        try:
            drive(driver, take)
        except EndingError as error:
            raise UsageError(f"--until {options.until}: {error.reason}") from None
    resumed = keeper is not None and keeper.resumed
    unmet = (
        ()
        if resumed
        else census.warnings(engine.knowledge, unread=not engine.counters.unrouted, subjects=stream.subjects)
    )
    unmade = (text for text in stream.warnings if text not in doubts)
    report_unmet((*driver.warnings, *unmade, *engine.warnings, *unmet))
    if interrupt.asked or progress.shown:
        print(("stopped: " if interrupt.asked else "") + progress.summary(), file=sys.stderr)
    if on_terminal() and not (engine.counters.matches or interrupt.asked or live or lasting or folder):
        from etalis_py.cli.nothing_found import nothing_found  # only where there is nothing

        print(nothing_found(options, program, engine.counters.events), file=sys.stderr)
    if both is not None:
        print(f"etalis: rows and columns gave the same {both.compared:,} matches", file=sys.stderr)
    if timeline is not None:
        timeline.draw()
    return 0


def _check_inspection(options: Namespace, changing: bool) -> None:
    """Refuse to compare executors, or to look into one, where that is not possible."""
    for name in ("executor", "trace"):
        if getattr(options, name) is not None and options.engine == "spark":
            raise UsageError(f"--{name} is for the local engine: leave --engine spark out")
    if options.trace is not None and options.executor not in (None, "rows"):
        raise UsageError(f"--trace looks into rows: leave --executor {options.executor} out")
    if options.trace is not None and options.revise:
        raise UsageError("--trace shows each instant once, and --revise may repeat it: leave one of the two out")
    if options.cores > 1:
        together = {
            "--engine spark": options.engine == "spark",
            "--trace": options.trace is not None,
            "--executor both": options.executor == "both",
            "--speed": options.speed is not None,
            "--watch or --queries": changing,
        }
        if name := next((name for name, there in together.items() if there), ""):
            raise UsageError(f"--cores is for a run at full speed on this machine: leave it out, or {name}")
    if changing and (options.trace is not None or options.executor == "both"):
        name = "--trace" if options.trace is not None else "--executor both"
        raise UsageError(f"{name} is for queries that do not change: leave --watch or --queries out")


def _timeline(path: str) -> Picture:
    from etalis_py.cli.picture import Picture  # takes a while to import

    return Picture(path)


def _late(letters: DeadLetters | None, lateness: int, revise: int) -> Callable[[Event], None]:
    """Handles an event that came too late, or that corrects nothing; the engine counts it."""
    reason = reason_for(lateness, revise)

    def late(event: Event) -> None:
        if letters is not None:
            letters.late(event, reason(event))

    return late
