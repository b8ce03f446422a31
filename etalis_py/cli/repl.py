"""``etalis repl``: type queries and events, see matches at once."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace

from etalis_py.cli import options as shared

EXAMPLES = """\
examples:
  etalis repl -b firms.ttl
  SELECT ?c ?x { ?c :price ?x }         a query; an empty line ends it
  :acme :sector :tools .                background
  1 :acme :price 10                     an event at 1
  exit
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "repl",
        help="type queries and events",
        description="Type queries, background and events, and see matches at once.",
        epilog=EXAMPLES,
        formatter_class=shared.Help,
    )
    shared.add_background(parser)
    shared.add_policy(parser)
    parser.set_defaults(command=repl)


def _read_line() -> str:
    """A line of standard input as ``input`` would give it, but without touching standard output."""
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.removesuffix("\n")


def repl(options: Namespace) -> int:
    from etalis_py.cli.session import Session

    session = Session(shared.background_of(options, {}), options.entailment, options.policy)
    typing = sys.stdin.isatty()
    if typing:
        import readline  # noqa: F401 - gives the lines a history and editing

        print("Type a query and an empty line, or an event such as: 1 :acme :price 10 .  (.help tells more, exit ends)")
    while not session.done:
        try:
            line = input(session.prompt) if typing else _read_line()
        except EOFError:
            if typing:
                print()
            for answer in session.end():
                shared.say(answer)
            break
        except KeyboardInterrupt:
            session.forget()
            print()
            continue
        answers = list(session.take(line))
        try:
            for answer in answers:
                shared.say(answer)
        except KeyboardInterrupt:  # enough of them
            print()
    return 0
