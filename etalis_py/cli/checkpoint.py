"""``etalis checkpoint``: describes the folder of a run, or moves that of a run on Spark to other shards."""

from __future__ import annotations

import argparse
import tempfile
import warnings
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from etalis_py.cli import options as shared
from etalis_py.cli.errors import Failure, UsageError
from etalis_py.cli.limits import add_limits, limits_of, told_as_options

if TYPE_CHECKING:
    from etalis_py.spark.state.checkpoint_tools import Checkpoint

EXAMPLES = """\
examples:
  etalis checkpoint days/                                       what it was made by, how far it is, its bytes
  etalis checkpoint days/ rising.rq                             with Spark: also the goals of each shard
  etalis checkpoint days/ rising.rq --shards 8 --output days8/  the same for 8 shards, in a new folder
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "checkpoint",
        help="look at a checkpoint, or move one of Spark to other shards",
        description="Look at the folder of etalis run --checkpoint, or move one of a run on Spark to other shards.",
        epilog=EXAMPLES,
        formatter_class=shared.Help,
        usage="etalis checkpoint DIR [QUERY…] [options]",
    )
    parser.add_argument("folder", metavar="DIR", type=Path, help="the folder; no run on Spark may be at work in it")
    shared.add_queries(parser)
    shared.add_policy(parser)
    shared.add_background(parser)
    shared.group(parser, "streams").add_argument(
        "--lateness", type=shared.duration, default=0, metavar="D", help="as it was given to the runs"
    )
    shared.group(parser, "streams").add_argument(
        "--revise", type=shared.duration, default=0, metavar="D", help="as it was given to the runs"
    )
    moving = shared.group(parser, "moving")
    moving.add_argument("--shards", type=shared.shard_count, metavar="N", help="for how many shards")
    moving.add_argument("-o", "--output", type=Path, metavar="DIR", help="the new folder; the old one stays as it is")
    engine = shared.group(parser, "engine")
    engine.add_argument("--master", metavar="M", help="as for etalis run")
    add_limits(engine, "goals=100000000", "as it was given to the runs")
    parser.set_defaults(command=run)


def run(options: Namespace) -> int:
    from etalis_py.cli.spark import check_spark
    from etalis_py.durable.describing import described, is_of_a_run
    from etalis_py.durable.errors import CheckpointError

    given = bool(options.query or options.texts)
    if not options.folder.is_dir():
        what = "is a file" if options.folder.exists() else "does not exist"
        raise UsageError(f"{options.folder} {what}: give the folder that etalis run --checkpoint was given")
    if is_of_a_run(options.folder):
        if given or options.shards is not None or options.output is not None:
            raise UsageError(f"{options.folder} is of a run without Spark: give the folder alone; copy it as it is")
        try:
            shared.say("\n".join(described(options.folder)))
        except CheckpointError as error:
            raise Failure(str(error)) from None
        return 0
    if (options.shards is None) != (options.output is None):
        raise UsageError("a checkpoint is moved into a new folder: give --shards and --output, or neither")
    if options.shards is not None and not given:
        raise UsageError("a checkpoint does not hold its program: give the queries that it was made by as well")
    check_spark(options)
    with told_as_options():
        shared.say("\n".join(_done(options, given).lines()))
    return 0


def _done(options: Namespace, given: bool) -> Checkpoint:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from etalis_py.cli.spark import failure_of
    from etalis_py.engine.rule_plans import knowledge_of
    from etalis_py.spark.errors import SparkError
    from etalis_py.spark.pipeline import ShardWarning
    from etalis_py.spark.plan.options import JobSettings
    from etalis_py.spark.sessions import session
    from etalis_py.spark.state.checkpoint_tools import describe, move, state_of
    from etalis_py.spark.stream_runs import stopping

    program = shared.read_program(options) if given else None
    graphs, prefixes = ({}, {}) if program is None else (shared.graph_files(program), program.prefixes)
    limits = limits_of(options)
    known = knowledge_of(shared.background_of(options, prefixes) or None, options.entailment, graphs, limits)
    asked = JobSettings(background=known, lateness=options.lateness, revise=options.revise, limits=limits)
    try:
        shards = options.shards or state_of(options.folder).shards
        config = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
        with (
            tempfile.TemporaryFile() as log,
            warnings.catch_warnings(action="ignore", category=ShardWarning),
            stopping(session(options.master, shards=shards, config=config, log=log)) as spark,
        ):
            if program is None or options.shards is None:
                return describe(spark, options.folder, program, asked)
            return move(spark, options.folder, options.output, options.shards, program, asked)
    except SparkError as error:
        raise UsageError(str(error)) from None
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise Failure(failure_of(str(error))) from None
