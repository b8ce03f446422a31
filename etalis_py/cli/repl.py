"""``etalis repl``: type queries and events, see matches at once."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace

from etalis_py.cli import options as shared


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "repl", help="type queries and events", description="Type queries and events, and see matches at once."
    )
    shared.add_background(parser)
    shared.add_policy(parser)
    parser.set_defaults(command=repl)


def _read_line() -> str:
    """A line of standard input as ``input`` gives it, which would touch standard output as well."""
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.removesuffix("\n")


def repl(options: Namespace) -> int:
    from etalis_py.cli.session import Session

    session = Session(options.background, options.entailment, options.policy)
    typing = sys.stdin.isatty()
    if typing:
        import readline  # noqa: F401 - gives the lines a history and editing

        print("Type a query and an empty line, or an event such as: 1 :acme :price 10 .  (.help tells more)")
    while not session.done:
        try:
            line = input(session.prompt) if typing else _read_line()
        except EOFError:
            if typing:
                print()
            for said in session.end():
                shared.say(said)
            break
        except KeyboardInterrupt:
            session.forget()
            print()
            continue
        for said in session.take(line):
            shared.say(said)
    return 0
