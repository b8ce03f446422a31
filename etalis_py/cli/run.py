"""``etalis run``: queries over streams, matches out."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from etalis_py.cli import options as shared
from etalis_py.cli.errors import UsageError

if TYPE_CHECKING:
    from etalis_py import Engine
    from etalis_py.cli.timeline import Timeline
    from etalis_py.events import Event
    from etalis_py.program import Program
    from etalis_py.streams import DeadLetters
    from etalis_py.windows import WindowEngine, WindowProgram


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "run",
        help="run queries over streams",
        description="Run queries and rules over streams; matches come out.",
        usage="etalis run QUERY… --stream [NAME=]SOURCE… [options]",
    )
    shared.add_queries(parser)
    shared.add_streams(parser)
    shared.add_background(parser)
    parser.add_argument("--background-stream", metavar="FILE", help="timed updates of the background, as JSON lines")
    shared.add_policy(parser)
    shared.add_output(parser, "jsonl")
    parser.add_argument(
        "--lateness", type=shared.duration, default=0, metavar="D", help="how late an event may come, as 10s or PT1M"
    )
    parser.add_argument("--explain-matches", action="store_true", help="write with each match why it holds")
    parser.add_argument(
        "--on-error", choices=("stop", "skip"), default="stop", help="what to do about unreadable input (default: stop)"
    )
    parser.add_argument("--dead-letters", metavar="FILE", help="where late events and skipped input go, as JSON lines")
    parser.add_argument(
        "--speed", type=shared.speed, default="max", metavar="10x|real|max", help="against the stream's own time"
    )
    shared.add_reading(parser)
    parser.add_argument("--timeline", metavar="FILE", help="draw matches and their events (.svg, .png or .pdf)")
    shared.add_engine(parser)
    parser.set_defaults(command=run)


def run(options: Namespace) -> int:
    if options.stream.count("-") + options.query.count("-") > 1:
        raise UsageError("standard input can be read once only: as one stream or one query")
    shared.check_engine(options)
    if options.engine == "spark":
        from etalis_py.cli import spark  # takes a while to import

        return spark.run(options)
    from etalis_compiler.explain import prefixes_of

    from etalis_py.cli.drive import START, Drive, paced
    from etalis_py.cli.interrupt import Interrupt
    from etalis_py.cli.outputs import open_outlet
    from etalis_py.cli.progress import Progress, on_terminal
    from etalis_py.cli.sources import open_streams
    from etalis_py.cli.updates import read_updates
    from etalis_py.engine.matches import Matches
    from etalis_py.program import Program
    from etalis_py.streams import Clock, DeadLetters

    program = shared.read_program(options.query, options.policy)
    if not isinstance(program, Program):
        refuse_for_windows(options)
    timeline = _timeline(options.timeline) if options.timeline else None
    with ExitStack() as stack:
        interrupt = stack.enter_context(Interrupt())
        letters = stack.enter_context(DeadLetters(options.dead_letters)) if options.dead_letters else None
        stream, live = open_streams(options, letters)
        stack.callback(stream.close)
        # What grows without bound matters where there is no end.
        shared.show_warnings(program.check() if live else program.warnings)
        clock: Clock | None = None

        def render(us: int) -> int | str:
            return (clock or stream.clock).render(us)

        engine = made_engine(
            program,
            **({"policy": options.policy} if isinstance(program, Program) else {}),
            background=options.background or ([] if options.background_stream else None),
            entailment=options.entailment,
            named=shared.graph_files(program),
            explain=options.explain_matches or timeline is not None,
            lateness=options.lateness,
            render=render,
            changes=options.background_stream is not None,
        )
        prefixes = prefixes_of(program.compilation) if isinstance(program, Program) else program.prefixes
        # Said at the very end, however the run ends.
        stack.callback(lambda: report_left_out(stream.counters.errors, engine.counters.late, letters is not None))
        if not isinstance(program, Program):
            stack.callback(lambda: report_unread(getattr(engine.counters, "unrouted", 0), program.inputs))
        outlet = stack.enter_context(open_outlet(options, engine.outputs, prefixes, options.explain_matches))
        live_table = options.format == "table" and options.sink == "-" and sys.stdout.isatty()
        progress = Progress(
            engine,
            lambda: "the beginning" if drive.newest == START else str(render(drive.newest)),
            shown=on_terminal() and not live_table,
        )
        stack.callback(progress.clear)
        flushing = live or options.speed is not None or sys.stdout.isatty()

        def take(matches: Matches) -> None:
            nonlocal clock
            if matches.reports:
                clock = stream.clock
                progress.clear()
                for match in matches:
                    outlet.write(match)
                    if timeline is not None:
                        timeline.add(match)
                if flushing:
                    outlet.flush()
                clock = None
            progress.tick()

        late = _late(letters, options.lateness)
        updates = read_updates(options.background_stream, options.time_unit) if options.background_stream else ()
        drive = Drive(engine, take, late, live=live or options.speed is not None, updates=updates)
        items = stream if options.speed is None else paced(stream, options.speed, closing=not options.lateness)
        drive.run(items, interrupt)
    if interrupt.asked or progress.shown:
        print(("stopped: " if interrupt.asked else "") + progress.summary(), file=sys.stderr)
    if timeline is not None:
        timeline.draw()
    return 0


def made_engine(program: Program | WindowProgram, **options: Any) -> Engine | WindowEngine:
    """The engine of a program; a graph that is missing is a fault of the query."""
    from etalis_py.program import Program
    from etalis_py.running import engine_of

    if isinstance(program, Program):
        return engine_of(program, **options)
    from etalis_py.windows import MissingGraph  # takes a while to import

    try:
        return engine_of(program, **options)
    except MissingGraph as error:
        raise UsageError(str(error)) from None


def refuse_for_windows(options: Namespace) -> None:
    """What windows have no answer to."""
    if options.timeline:
        raise UsageError(
            "--timeline draws the events of a match; a row of a windowed query has none of its own, it is made of all "
            "that its windows hold: leave --timeline out"
        )
    if options.explain_matches and options.format == "trig":
        raise UsageError("--explain-matches with windows says which windows were looked at: write jsonl")


def _timeline(path: str) -> Timeline:
    from etalis_py.cli.timeline import Timeline  # takes a while to import

    return Timeline(path)


def _late(letters: DeadLetters | None, lateness: int) -> Callable[[Event], None]:
    """What is done with an event that came too late; the engine counts it."""
    reason = late_reason(lateness)

    def late(event: Event) -> None:
        if letters is not None:
            letters.late(event, reason)

    return late


def late_reason(lateness: int) -> str:
    """Why an event is a dead letter."""
    return "came after its instant was over" + (f", later than the {lateness / 1e6:g} s allowed" if lateness else "")


def report_left_out(errors: int, late: int, kept: bool) -> None:
    """What was left out is always said."""
    where = "see the dead letters" if kept else "--dead-letters FILE keeps them"
    if errors:
        _note(errors, "part", f"of the input could not be read and was skipped; {where}")
    if late:
        _note(late, "event", f"came too late and was left out; --lateness D allows for more; {where}")


def report_unread(unrouted: int, inputs: frozenset[str]) -> None:
    """Items that no query asked for, where that may be a slip."""
    if unrouted:
        said = f"was of a stream that no query reads; they read {', '.join(sorted(inputs))}: --stream NAME=SOURCE"
        _note(unrouted, "event", said)


def _note(count: int, what: str, said: str) -> None:
    if count != 1:
        what, said = what + "s", said.replace("was ", "were ")
    print(f"etalis: {count:,} {what} {said}", file=sys.stderr)
