"""``etalis run``: queries over streams, matches out."""

from __future__ import annotations

import argparse
from argparse import Namespace

from etalis_py.cli import options as shared
from etalis_py.cli.at_once import ended_at_once
from etalis_py.cli.engine_of_run import check_ties
from etalis_py.cli.errors import UsageError
from etalis_py.cli.limits import add_limits, told_as_options

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
    add_limits(engine, "goals=100000", "docs/resources.md lists them")
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
    with told_as_options():
        return run_once(options)


def run_once(options: Namespace) -> int:
    """One run, from the beginning of the streams to their end."""
    from etalis_py.cli.folder import QueryFolder, check_folder, follows_folder, is_for_folder, with_files
    from etalis_py.cli.interrupt import Hangup
    from etalis_py.cli.lasting import check_lasting
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
    with ended_at_once():
        from etalis_py.cli.local_run import LocalRun  # not for a run on Spark

    return LocalRun(options, folder, hangup).run()


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
