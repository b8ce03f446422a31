"""The last line of a run without a match: how much was read, what refused most, and how to ask why."""

from __future__ import annotations

import argparse
import shlex
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from io import StringIO

from etalis_py.cli import options as shared
from etalis_py.cli import why_not
from etalis_py.engine.program import Program

FEW = 10_000
"""The most events that are read a second time for this line."""
STEPS, SECONDS = 20_000, 0.2
"""Limits on one evaluation of a part of the plan, lower than those of ``why-not``."""


def nothing_found(options: Namespace, program: Program, events: int) -> str:
    """The line, for options of ``etalis run`` and a program, of several queries about the first."""
    name = program.queries[0] if len(program.queries) > 1 else ""
    words = [
        "etalis",
        "why-not",
        *(["--name", name] if name else []),
        *kept(options.given[1:], options.parser, _asker()),
    ]
    read = f"{events:,} event{'s' * (events != 1)} read"
    refused = _refused(options, program, name) if 0 < events <= FEW else ""
    return f"etalis: no matches, {read}{refused}; why: {shlex.join(words)}"


def _asker() -> argparse.ArgumentParser:
    """The parser of ``etalis why-not``."""
    commands = argparse.ArgumentParser().add_subparsers()
    why_not.add(commands)
    return commands.choices["why-not"]


def _refused(options: Namespace, program: Program, name: str) -> str:
    """The condition that refused most, from reading the streams a second time."""
    from etalis_py.cli.sources import open_streams
    from etalis_py.engine.rule_plans import knowledge_of
    from etalis_py.whynot.search import Work

    if "-" in (source.partition("=")[2] or source for source in options.stream):
        return ""
    background = shared.background_of(options, program.prefixes) or None
    knowledge = knowledge_of(background, options.entailment, shared.graph_files(program))
    with redirect_stderr(StringIO()):  # what there is to say of the sources was said when they were read first
        stream, _ = open_streams(options, None, program.prefixes)
    with stream:
        try:
            report = program.why_not(
                stream,
                query=name,
                background=knowledge,
                lateness=options.lateness,
                work=Work(steps=STEPS, seconds=SECONDS),
            )
        except ValueError:  # what why-not does not follow, such as corrections of EVENT: the command will say so
            return ""
    blame = max((b for b in report.blames if b.likely), key=lambda b: b.refused, default=None)
    return "" if blame is None else f", most refused by {' and '.join(blame.conditions)}"


def kept(words: Sequence[str], given: argparse.ArgumentParser, asker: argparse.ArgumentParser) -> list[str]:
    """The words of a command that another command understands, too.

    >>> run, ask = argparse.ArgumentParser(), argparse.ArgumentParser()
    >>> for parser in (run, ask): _ = parser.add_argument("-s", "--stream")
    >>> _ = run.add_argument("-f", "--format"), run.add_argument("--follow", action="store_true")
    >>> kept(["q.rq", "-s", "a.csv", "--follow", "--format=table", "-ftable"], run, ask)
    ['q.rq', '-s', 'a.csv']
    """
    return list(_kept(words, given, asker))


def _kept(words: Sequence[str], given: argparse.ArgumentParser, asker: argparse.ArgumentParser) -> Iterator[str]:
    theirs = {name for action in asker._actions for name in action.option_strings}
    ours = {name: action for action in given._actions for name in action.option_strings}
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word == "-":
            yield word
            continue
        name, equals, _ = word.partition("=")
        action = ours.get(name)
        attached = bool(equals)
        if action is None and (action := ours.get(word[:2])) is not None:
            name, attached = word[:2], True
        wanted = name in theirs
        if wanted:
            yield word
        if action is not None and action.nargs != 0 and not attached:
            value = next(rest, "")
            if wanted:
                yield value


__all__ = ["nothing_found"]
