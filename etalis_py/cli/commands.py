"""The commands of ``etalis`` and their options: chooses the command, and refuses what is misspelt."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

from etalis_py.cli import checkpoint, completion, explain, init, lsp, mapping, oracle, repl, replay, run, serve, why_not
from etalis_py.cli.options import Help, settle_format
from etalis_py.cli.standard_streams import stand_in_for_closed, write_unicode

COMMANDS = {
    "to run queries": ("run", "replay", "repl", "serve"),
    "to understand them": ("explain", "check", "why-not", "oracle", "checkpoint"),
    "to get started": ("init", "map", "completion", "lsp"),
}
EXAMPLES = """\
examples:
  etalis init prices                                 a small project: query, stream, mapping, test
  etalis run rising.rq --stream ticks.jsonl          matches as JSON lines
  etalis run -q 'SELECT ?c { ?c :price ?x }' -s ticks.jsonl -f table
  etalis explain rising.rq                           the rules that the query compiles to
  etalis replay stock                                a worked example

etalis COMMAND --help shows the options of a command.
"""


class _Version(argparse.Action):
    """Reads the version on demand: that takes longer than all the rest of ``--help``."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"etalis-py {version('etalis-py')}")
        parser.exit()


class _Once(argparse._StoreAction):
    """An option with one value: a second value is refused, as the first one would be ignored."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *more: Any) -> None:
        given = vars(namespace).setdefault("values_of_options", {})
        if self.option_strings and given.setdefault(self.dest, values) != values:
            parser.error(f"{self.option_strings[-1]} is given twice, and takes one value: leave one of them out")
        super().__call__(parser, namespace, values, *more)


class _Parser(argparse.ArgumentParser):
    """A parser that refuses options given twice with different values; those of its commands do, too."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for action in (None, "store"):
            self.register("action", action, _Once)


def parser() -> argparse.ArgumentParser:
    top: argparse.ArgumentParser = _Parser(
        prog="etalis",
        description="Complex event processing and stream reasoning with EP-SPARQL.",
        formatter_class=Help,
        usage="etalis [-h] [-V] COMMAND …",
    )
    top.add_argument("-V", "--version", action=_Version, nargs=0, help="show the version and exit")
    commands = top.add_subparsers(prog="etalis", metavar="COMMAND", required=True, help=argparse.SUPPRESS)
    for module in (run, explain, why_not, mapping, oracle, checkpoint, replay, serve, repl, init, completion, lsp):
        module.add(commands)
    top.epilog = f"{_grouped(commands)}\n{EXAMPLES}"
    return top


def _grouped(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> str:
    """The commands with their descriptions, grouped by purpose."""
    helps = {action.dest: action.help for action in commands._get_subactions()}
    groups = (
        "\n".join((f"commands {what}:", *(f"  {name:<12} {helps[name]}" for name in names)))
        for what, names in COMMANDS.items()
    )
    return "\n\n".join(groups) + "\n"


def parsed(top: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; queries may be anywhere, also after the options, which argparse leaves to its caller."""
    given = sys.argv[1:] if arguments is None else arguments
    _check_command(top, given[0] if given else "")
    options, rest = top.parse_known_args(given)
    unknown = [text for text in rest if text.startswith("-") and text != "-"]
    if unknown:
        _refuse_option(_of_command(top, given), unknown[0].partition("=")[0])
    if rest and not hasattr(options, "texts"):
        _of_command(top, given).error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.query = [*options.query, *rest]
    options.given = list(given)
    return options


def carried_out(options: argparse.Namespace) -> int | None:
    """Carry out the chosen command; returns its exit code."""
    if hasattr(options, "usual_format"):
        settle_format(options)
    done: int | None = options.command(options)
    return done


def _of_command(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of the command that these words begin with."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and words and words[0] in action.choices:
            return _of_command(action.choices[words[0]], words[1:])
    return parser


def _refuse_option(parser: argparse.ArgumentParser, option: str) -> NoReturn:
    """Refuse an option that a command does not have, with the one that it is near to."""
    from etalis_rules.messages import closest  # only where something is wrong

    near = closest(option, [name for action in parser._actions for name in action.option_strings if len(name) > 2])
    hint = f"did you mean {near}?" if near and len(option) > 2 else f"{parser.prog} --help lists its options"
    parser.error(f"there is no option {option}; {hint}")


def _check_command(top: argparse.ArgumentParser, word: str) -> None:
    """Refuse a word that is not a command, and suggest the closest command."""
    names = [name for some in COMMANDS.values() for name in some]
    if word.startswith("-") or not word or word in names:
        return
    from etalis_rules.messages import closest  # only needed for errors

    near = closest(word, names)
    hint = f"did you mean {near}?" if near else f"there are {', '.join(names)}"
    top.error(f"there is no command {word!r}; {hint}")


def chosen(arguments: Sequence[str] | None) -> argparse.Namespace | None:
    """The command, as ``command`` of its options; None if there is none: then the help is printed."""
    stand_in_for_closed()
    write_unicode()
    top = parser()
    if "_ARGCOMPLETE" in os.environ:  # the shell asks for completions
        from argcomplete import autocomplete

        autocomplete(top)
    if not (sys.argv[1:] if arguments is None else arguments):
        top.print_help()
        return None
    options = parsed(top, arguments)
    warnings.formatwarning = lambda message, *_, **__: f"etalis: warning: {message}\n"
    return options
