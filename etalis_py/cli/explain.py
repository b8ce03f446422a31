"""``etalis explain`` and ``etalis check``: what a program means, and what is wrong with it."""

from __future__ import annotations

import argparse
import json
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from etalis_py.cli import options as shared
from etalis_py.cli.errors import UsageError

if TYPE_CHECKING:
    from etalis_py.windows import WindowProgram


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain", help="show the rules of a program", description="Show the rules that a program is run by."
    )
    shared.add_queries(parser)
    shared.add_policy(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--code", action="store_true", help="the Python that the rules become")
    how.add_argument("--dot", action="store_true", help="the goals as a graph, for Graphviz")
    how.add_argument("--json", action="store_true", help="everything as JSON")
    parser.set_defaults(command=explain)
    parser = commands.add_parser(
        "check", help="find faults in queries", description="Find errors and doubtful things in queries."
    )
    shared.add_queries(parser)
    shared.add_policy(parser)
    parser.add_argument("--json", action="store_true", help="what was found as JSON, for editors")
    parser.set_defaults(command=check)


def explain(options: Namespace) -> int:
    from etalis_py import Engine
    from etalis_py.program import Program

    program = shared.read_program(options.query, options.policy)
    shared.show_warnings(program.warnings)
    if not isinstance(program, Program):
        _explain_windows(program, options)
        return 0
    if options.code:
        shared.say(Engine(program, policy=options.policy).source)
    elif options.json:
        shared.say(json.dumps(program.explain().to_dict(), indent=2, ensure_ascii=False))
    elif options.dot:
        shared.say(program.explain().to_dot())
    else:
        shared.say(str(program.explain()))
    return 0


def _explain_windows(program: WindowProgram, options: Namespace) -> None:
    if options.code or options.dot:
        asked = "--code shows the Python" if options.code else "--dot draws the goals"
        raise UsageError(
            f"{asked} of rules, and {program.queries[0]} is evaluated over windows, without rules: leave it out, or "
            "ask for --json"
        )
    if options.json:
        shared.say(json.dumps(program.to_dict(), indent=2, ensure_ascii=False))
        return
    shared.say(program.explain())
    if program.rules is not None:
        shared.say("\n" + str(program.rules.explain()))


def check(options: Namespace) -> int:
    """The errors of every file, so that all are seen at once; without any, what is doubtful in the whole program."""
    from etalis_compiler.diagnostics import Diagnostic, QueryError

    found: list[Diagnostic] = []
    queries = shared.read_queries(options.query)
    names: tuple[str, ...] = ()
    for query in queries:
        try:
            shared.compiled([query], options.policy)
        except QueryError as error:
            found += error.diagnostics
    if not found:
        try:
            program = shared.compiled(queries, options.policy)
            found, names = list(program.check()), program.queries
        except QueryError as error:
            found += error.diagnostics
    errors = sum(diagnostic.severity == "error" for diagnostic in found)
    if options.json:
        shared.say(json.dumps({"queries": names, "diagnostics": [d.to_dict() for d in found]}, ensure_ascii=False))
    else:
        for diagnostic in found:
            shared.say(str(diagnostic))
        warned = len(found) - errors
        said = [f"{n} {word}{'s' * (n != 1)}" for n, word in ((errors, "error"), (warned, "warning")) if n]
        print(", ".join(said) or f"no faults found in {', '.join(names)}", file=sys.stderr)
    return 2 if errors else 0
