"""``etalis replay``: the worked examples, from events to a table and a picture."""

from __future__ import annotations

import argparse
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from etalis_rules.messages import how_many

from etalis_py.cli import options as shared
from etalis_py.cli.errors import Failure, UsageError

if TYPE_CHECKING:
    from etalis_py.engine.program import Program
    from etalis_py.knowledge import Knowledge
    from etalis_py.replays.replay import Replay, ReplayMatch, Row

Ids = Counter[tuple[str, str]]  # how often a query had a match with this id

HOW_MANY: dict[str, tuple[tuple[str, int | None, str], ...]] = {
    "stock": (
        ("companies", 200, "how many companies there are"),
        ("events", None, "how many prices and ratings (100 for each company)"),
    ),
    "delivery": (("agents", 5, "how many agents deliver"),),
    "tsunami": (("stations", 6, "how many stations the made-up sea has"), ("days", 2, "how many days are made up")),
}
ABOUT = {
    "stock": "prices and ratings of companies: drops and rises, downratings, a sliding average",
    "delivery": "agents ask for routes in a town whose roads close and open",
    "tsunami": "sea levels of buoys: predictions, alarms, and the places to warn",
}

MORE = {
    "tsunami": """\
Where the sampling interval of a station changes, the rules and a plain computation (the mean of the readings within
five minutes of a moment, each counted once, 5.25 minutes ahead) differ.  In the rules a reading stands for the time
since the reading before it, because what is published is sampled irregularly:

  15 minutes to 1   The last reading of the quarters weighs as much as 15 of the minutes, so the centre of the mean of
                    ten minutes lies early until it leaves the window.  Minutes 5 to 7 after it are predicted, and from
                    minute 11 on all; the plain computation predicts as soon as it has a reading.
  1 minute to 15    Nothing is predicted: the last mean is too old for the 5.25 minutes of the formula.
  1 minute to 15 s  All is predicted; for ten minutes the older readings weigh four times as much as the new ones.
  a gap             After more than 15 minutes nothing is concluded: there are no means over a gap, hence no predictions
                    from what lay in it one, two or three hours before.  A computation that interpolates goes on.

So first alarms may differ: by minutes after a change, and after a gap for as long as nothing is predicted.""",
}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("replay", help="run a worked example", description="Run a worked example.")
    examples = parser.add_subparsers(title="examples", metavar="EXAMPLE", required=True)
    for name, about in ABOUT.items():
        example = examples.add_parser(
            name,
            help=about,
            description=f"The {name} replay: {about}.",
            epilog=MORE.get(name),
            formatter_class=shared.Help,
        )
        for option, default, help in HOW_MANY[name]:
            shown = help if default is None else f"{help} ({default:,})"
            example.add_argument(f"--{option}", type=int, default=default, metavar="N", help=shown)
        example.add_argument("--seed", type=int, default=1, metavar="N", help="another seed makes other events (1)")
        example.add_argument(
            "--input", action="append", metavar="FILE", help="real data instead: a file, folder or pattern; repeatable"
        )
        if name == "stock":
            example.add_argument(
                "--wrong-price", action="store_true", help="one price is wrong at first, and corrected an hour later"
            )
        shared.add_policy(example)
        shared.add_output(example, "table")
        example.add_argument("--plot", metavar="FILE", help="draw the result (.png, .svg or .pdf)")
        example.add_argument("--speed", type=shared.speed, default="max", metavar="10x|real|max", help="see etalis run")
        shared.add_engine(example, both=True, checkpoint=False)
        example.set_defaults(command=run, example=name)


def run(options: Namespace) -> int:
    shared.check_engine(options)
    if options.engine != "local" and options.speed is not None:
        raise UsageError("--speed is for the local engine, Spark takes all events at once: leave it out")
    if options.plot:
        _check_picture(options.plot)
    replay = make(options)
    for note in replay.notes:
        print(f"etalis: {note}", file=sys.stderr)
    if options.engine == "local":
        _on_local_engine(options, replay)
        return 0
    from etalis_py.cli.spark import check_replay

    knowledge = check_replay(options, replay, replay_program(options, replay))
    if options.engine == "spark":
        return _on_spark(options, replay, knowledge)
    ids: Ids = Counter()
    whole = _on_local_engine(options, replay, ids)
    return _compared(options, replay, knowledge, ids) if whole else 0


def _on_spark(options: Namespace, replay: Replay, knowledge: Knowledge) -> int:
    """Run the replay on Spark: the same table, picture or matches."""
    from etalis_py.cli.interrupt import Interrupt
    from etalis_py.cli.outputs import Outlet, open_outlet
    from etalis_py.cli.spark import SparkWork, Stopped, replayed

    matches: list[ReplayMatch] = []
    kept, shown = frozenset(replay.reads), frozenset(replay.shown)
    with ExitStack() as stack:
        work = SparkWork(options, stack.enter_context(Interrupt()))
        outlet: Outlet | None = None
        program = replay_program(options, replay)
        if options.format != "table" or options.sink != "-":
            outputs = [output for output in program.rules().outputs if output.query in shown]
            outlet = stack.enter_context(open_outlet(options, outputs, {}, False))
        try:
            for match in stack.enter_context(replayed(work, program, replay, knowledge)):
                if match.query in kept:
                    matches.append(match)  # type: ignore[arg-type]
                if outlet is not None and match.query in shown:
                    outlet.write(match)
        except Stopped:
            print("stopped before Spark was done", file=sys.stderr)
            return 0
    _tell(options, replay, matches, work.summary(), table=outlet is None)
    return 0


def _compared(options: Namespace, replay: Replay, knowledge: Knowledge, ids: Ids) -> int:
    """Compare Spark with the local engine: all matches of all queries, by their ids."""
    from etalis_py.cli.interrupt import Interrupt
    from etalis_py.cli.spark import SparkWork, Stopped, difference, replayed

    began = time.monotonic()
    where = sys.stdout if options.format == "table" and options.sink == "-" else sys.stderr
    with Interrupt() as interrupt:
        work = SparkWork(options, interrupt)
        if not work.line.shown:
            print("the same once more, on Spark", file=where, flush=True)
        try:
            with replayed(work, replay_program(options, replay), replay, knowledge) as matches:
                there: Ids = Counter((match.query, match.id) for match in matches)
        except Stopped:
            print("stopped before Spark was done: nothing was compared", file=sys.stderr)
            return 0
    if differs := difference(ids, there):
        raise Failure(f"the two engines found different matches; {differs}")
    print(
        f"Spark found the same {how_many(there.total(), 'match', 'matches')}, by their ids, in "
        f"{time.monotonic() - began:.1f} s "
        f"({work.place})",
        file=where,
    )
    return 0


def replay_program(options: Namespace, replay: Replay) -> Program:
    from etalis_py import compile

    return compile(list(replay.programs), policy=options.policy)


def _on_local_engine(options: Namespace, replay: Replay, ids: Ids | None = None) -> bool:
    """Run the replay on the local engine, and tell whether to its end; ``ids`` collects the id of every match."""
    from etalis_py import Engine
    from etalis_py.cli.interrupt import Interrupt
    from etalis_py.cli.outputs import Outlet, open_outlet
    from etalis_py.cli.paced_steps import drive, paced
    from etalis_py.cli.progress import Progress, on_terminal
    from etalis_py.engine.driver import Driver, Step
    from etalis_py.kernel.matches import Match

    began = time.monotonic()
    program = replay_program(options, replay)
    engine = Engine(
        program,
        policy=options.policy,
        background=list(replay.background),
        render=replay.clock.render,
        revise=replay.revise,
    )
    results: list[Match] = []
    kept, shown = frozenset(replay.reads), frozenset(replay.shown)
    late = 0
    with ExitStack() as stack:
        interrupt = stack.enter_context(Interrupt())
        outlet: Outlet | None = None
        outputs = [output for output in engine.rules.outputs if output.query in shown]
        if options.format != "table" or options.sink != "-":
            outlet = stack.enter_context(open_outlet(options, outputs, {}, False, bool(replay.revise)))
        progress = Progress(
            engine,
            lambda: "" if driver.newest is None else str(replay.clock.render(driver.newest)),
            shown=on_terminal(),
        )
        stack.callback(progress.clear)

        def take(step: Step) -> None:
            nonlocal late
            late += len(step.late)
            for match in step.matches:
                if ids is not None:
                    ids[match.query, match.id] += -1 if match.retracted else 1
                if match.query in kept:
                    results.append(match)
                if outlet is not None and match.query in shown:
                    progress.clear()
                    outlet.write(match)
            progress.tick()

        driver = Driver(
            engine,
            replay.events,
            live=options.speed is not None,
            through=() if options.speed is None else (lambda items: paced(items, options.speed),),
            interrupt=interrupt,
        )
        drive(driver, take, interrupt)
        progress.clear()
    if interrupt.asked:
        stopped = f"etalis: stopped after {how_many(engine.counters.events, 'event')}; the results cover only these"
        print(stopped, file=sys.stderr)
    if late:
        print(
            f"etalis: {how_many(late, 'event')} came out of order and {'was' if late == 1 else 'were'} left out",
            file=sys.stderr,
        )
    seconds = time.monotonic() - began
    events, matches = engine.counters.events, engine.counters.matches
    counts = f"{how_many(events, 'event')}, {how_many(matches, 'match', 'matches')} in {seconds:.1f} s"
    _tell(options, replay, results, counts, table=outlet is None)
    return not interrupt.asked


def _tell(options: Namespace, replay: Replay, matches: Sequence[ReplayMatch], counts: str, *, table: bool) -> None:
    """Print the table and the counts, if matches go nowhere else; and draw the picture."""
    if table:
        shared.say(as_table(replay.summary(matches)))
        shared.say(f"\n{counts}")
    if options.plot:
        replay.plot(matches, options.plot)
        print(f"the picture is {options.plot}", file=sys.stdout if table else sys.stderr, flush=True)


def make(options: Namespace) -> Replay:
    """The replay that the options describe."""
    from etalis_py.knowledge import KnowledgeError
    from etalis_py.replays.delivery import replay_delivery
    from etalis_py.replays.stock import replay_stock
    from etalis_py.replays.tsunami import replay_tsunami
    from etalis_py.streams import StreamError

    counts = {name: getattr(options, name) for name, _, _ in HOW_MANY[options.example]}
    if options.example == "stock":
        counts["wrong_price"] = options.wrong_price
    functions: dict[str, Callable[..., Replay]] = {
        "stock": replay_stock,
        "delivery": replay_delivery,
        "tsunami": replay_tsunami,
    }
    try:
        return functions[options.example](**counts, seed=options.seed, input=options.input)
    except (StreamError, KnowledgeError):
        raise
    except ValueError as error:
        raise UsageError(str(error)) from None


def _check_picture(name: str) -> None:
    from pathlib import Path

    from etalis_py.replays.figures import SUFFIXES

    if Path(name).suffix.lower() not in SUFFIXES:
        raise UsageError(f"--plot {name}: the name of a picture ends with {', '.join(SUFFIXES)}")
    if not Path(name).parent.is_dir():
        raise UsageError(f"--plot {name}: there is no folder {Path(name).parent}")


def as_table(rows: Sequence[Row]) -> str:
    """Rows as text: lines with borders on a terminal, aligned columns elsewhere."""
    if not rows:
        return "no matches"
    names = list(rows[0])
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        drawn = Table(*names)
        for row in rows:
            drawn.add_row(*(Text(row[name]) for name in names))
        console = Console()
        with console.capture() as capture:
            console.print(drawn)
        return capture.get()
    lines = [names, *([row[name] for name in names] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
