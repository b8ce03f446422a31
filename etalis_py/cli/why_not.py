"""``etalis why-not``: why an expected match did not occur."""

from __future__ import annotations

import argparse
import json
from argparse import Namespace

from etalis_py.cli import options as shared
from etalis_py.cli.errors import UsageError

EXAMPLES = """\
examples:
  etalis why-not spread.rq --stream ticks.nq
  etalis why-not spread.rq --stream ticks.nq --where '?c = :acme' --at 2024-03-01T13:00:00Z/PT1H

It names the conditions that refused an answer alone, with the nearest misses and by how much they missed, and prints
the plan with the number of solutions of each part.
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "why-not",
        help="explain why a match did not come",
        description="Explain why a query has no match, or not the expected one, over streams that end.",
        epilog=EXAMPLES,
        formatter_class=shared.Help,
        usage="etalis why-not QUERY… --stream [NAME=]SOURCE… [--where CONDITION] [--at T1/T2] [options]",
    )
    shared.add_queries(parser)
    shared.add_streams(parser)
    parser.add_argument(
        "--where", default="", metavar="CONDITION", help="which match was expected, as '?c = :acme && ?x > 3'"
    )
    parser.add_argument(
        "--at", default="", metavar="T1/T2", help="when it should have ended: a time of the stream, or two"
    )
    parser.add_argument("--name", default="", metavar="NAME", help="the query that is meant, of several")
    parser.add_argument("--json", action="store_true", help="everything as JSON")
    shared.add_background(parser)
    shared.add_policy(parser)
    parser.add_argument(
        "--lateness", type=shared.duration, default=0, metavar="D", help="how late an event may come, as 10s or PT1M"
    )
    shared.add_reading(parser)
    parser.set_defaults(command=why_not, on_error="stop")


def why_not(options: Namespace) -> int:
    from etalis_py.cli.sources import open_ended
    from etalis_py.engine.rule_plans import knowledge_of
    from etalis_py.whynot.question import WrongQuestion

    shared.check_streams(options)
    program = shared.read_program(options)
    named = shared.graph_files(program)
    knowledge = knowledge_of(shared.background_of(options, program.prefixes) or None, options.entailment, named)
    with open_ended(options, program.prefixes) as stream:
        try:
            report = program.why_not(
                stream,
                query=options.name,
                where=options.where,
                at=options.at,
                background=knowledge,
                lateness=options.lateness,
            )
        except WrongQuestion as error:
            raise UsageError(f"--{error.argument} {error.reason}") from None
        except ValueError as error:
            raise UsageError(str(error)) from None
    shared.say(json.dumps(report.to_dict(), indent=2, ensure_ascii=False) if options.json else str(report))
    return 0
