"""``etalis explain`` and ``etalis check``: what a program means, and what is wrong with it."""

from __future__ import annotations

import argparse
import json
import sys
from argparse import Namespace
from itertools import islice
from typing import TYPE_CHECKING

from etalis_py.cli import options as shared
from etalis_py.cli.errors import UsageError

if TYPE_CHECKING:
    from etalis_py.engine.program import Program
    from etalis_py.knowledge import Knowledge


EXAMPLES = """\
examples:
  etalis explain rising.rq
  etalis explain rising.rq --dot | dot -Tsvg > rules.svg
  etalis explain rising.rq -b firms.ttl --engine spark --shards 8
"""
CHECKS = """\
examples:
  etalis check *.rq
  etalis check -q 'SELECT ?c { ?c :price ?x }' --json
  etalis check rising.rq --stream ticks.csv
"""

_BATCH = 1_000


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="show the rules of a program",
        description="Show the rules that a program is run by.",
        epilog=EXAMPLES,
        formatter_class=shared.Help,
        usage="etalis explain QUERY… [options]",
    )
    shared.add_queries(parser)
    shared.add_policy(parser)
    shared.add_background(parser)
    parser.add_argument(
        "--updates", action="store_true", help="with Spark: the background changes during the run (--background-stream)"
    )
    parser.add_argument(
        "--engine", choices=("local", "spark"), default="local", help="spark: also what runs in which shards there"
    )
    parser.add_argument(
        "--shards",
        type=shared.shard_count,
        metavar="N",
        help="with Spark: in how many shards (default: two for each core here)",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--code", action="store_true", help="the Python that the rules become")
    how.add_argument("--dot", action="store_true", help="the goals as a graph, for Graphviz")
    how.add_argument("--json", action="store_true", help="everything as JSON")
    parser.set_defaults(command=explain)
    parser = commands.add_parser(
        "check",
        help="find faults in queries",
        description="Find errors and doubtful things in queries; with a stream, also names and constants that none of "
        "its events has.",
        epilog=CHECKS,
        formatter_class=shared.Help,
        usage="etalis check QUERY… [options]",
    )
    shared.add_queries(parser)
    shared.add_policy(parser)
    shared.add_streams(parser)
    shared.add_reading(parser)
    shared.add_background(parser)
    parser.add_argument("--json", action="store_true", help="what was found as JSON, for editors")
    parser.set_defaults(command=check, on_error="stop")


def explain(options: Namespace) -> int:
    from etalis_py import Engine
    from etalis_py.engine.rule_plans import knowledge_of

    if options.engine == "spark" and (options.code or options.json or options.dot):
        raise UsageError("--engine spark says in words what runs where: leave --code, --dot and --json out")
    if options.updates and options.engine != "spark":
        raise UsageError("--updates says how the program runs on Spark: add --engine spark, or leave it out")
    shared.check_engine(options)
    program = shared.read_program(options)
    shared.show_warnings(program.warnings)
    given = shared.background_of(options, program.prefixes) or ([] if options.updates else None)
    knowledge = knowledge_of(given, options.entailment, shared.graph_files(program))
    if program.windowed and (options.code or options.dot):
        asked = "--code shows the Python" if options.code else "--dot draws the goals"
        raise UsageError(
            f"{asked} of rules, and {program.queries[0]} is evaluated over windows, without rules: leave it out, or "
            "ask for --json"
        )
    if options.code:
        shared.say(Engine(program, background=knowledge).source)
    else:
        explanation = program.explain()
        if knowledge is not None and not program.windowed:
            # The schema's entailments for streamed triples give other rules.
            explanation = program.explained(Engine(program, background=knowledge).rules, knowledge)
        if options.json:
            shared.say(json.dumps(explanation.to_dict(), indent=2, ensure_ascii=False))
        elif options.dot:
            shared.say(explanation.to_dot())
        else:
            shared.say(str(explanation))
    if options.engine == "spark":
        _explain_spark(program, options, knowledge)
    return 0


def _explain_spark(program: Program, options: Namespace, knowledge: Knowledge | None) -> None:
    """Print what runs where on Spark."""
    from etalis_py.cli.spark import parts_of, shards_of
    from etalis_py.spark.plan.placement import placement

    shards = shards_of(options)
    lines = placement(parts_of(program, shards, knowledge, updates=options.updates), shards)
    shared.say(f"\non Spark, with {shards} shard{'s' * (shards != 1)}\n" + "\n".join(f"  {line}" for line in lines))


def check(options: Namespace) -> int:
    """Print the errors of every file, so that all are seen at once; without any, the warnings on the whole program."""
    from etalis_compiler.diagnostics import Diagnostic, QueryError

    diagnostics: list[Diagnostic] = []
    queries = shared.read_queries(options.query, options.texts)
    names: tuple[str, ...] = ()
    unmet: tuple[str, ...] = ()
    for query in queries:
        try:
            shared.compiled([query], options.policy)
        except QueryError as error:
            diagnostics += error.diagnostics
    if not diagnostics:
        try:
            program = shared.compiled(queries, options.policy)
            diagnostics, names = list(program.check()), program.queries
            unmet = _unmet(program, options) if options.stream else ()
        except QueryError as error:
            diagnostics += error.diagnostics
    errors = sum(diagnostic.severity == "error" for diagnostic in diagnostics)
    if options.json:
        found = {"queries": names, "diagnostics": [d.to_dict() for d in diagnostics]}
        shared.say(json.dumps(found | ({"unmet": unmet} if options.stream else {}), ensure_ascii=False))
    else:
        for diagnostic in diagnostics:
            shared.say(str(diagnostic))
        for text in unmet:
            shared.say(f"warning: {text}")
        warned = len(diagnostics) - errors + len(unmet)
        counts = [f"{n} {word}{'s' * (n != 1)}" for n, word in ((errors, "error"), (warned, "warning")) if n]
        print(", ".join(counts) or f"no errors, no warnings in {', '.join(names)}", file=sys.stderr)
    return 2 if errors else 0


def _unmet(program: Program, options: Namespace) -> tuple[str, ...]:
    """What the program asks for and no event of the stream has."""
    from etalis_py.cli.sources import open_ended
    from etalis_py.engine.rule_plans import knowledge_of
    from etalis_py.engine.unseen_names import UnseenNames
    from etalis_py.events import Event

    background = shared.background_of(options, program.prefixes) or None
    knowledge = knowledge_of(background, options.entailment, shared.graph_files(program))
    census = UnseenNames(program)
    with open_ended(options, program.prefixes) as stream:
        events = (item for item in stream if isinstance(item, Event))
        while batch := list(islice(events, _BATCH)):
            census.see(batch)
        unmet = census.warnings(knowledge, subjects=stream.subjects, times=stream.times_of_rows)
        return (*stream.warnings, *unmet)
