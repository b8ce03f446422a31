"""``etalis completion``: prints what a shell needs to complete commands, options and files."""

from __future__ import annotations

import argparse
from argparse import Namespace

from etalis_py.cli import options as shared

SHELLS = ("bash", "zsh", "fish")
EXAMPLES = """\
examples:
  eval "$(etalis completion bash)"                   in ~/.bashrc
  eval "$(etalis completion zsh)"                    in ~/.zshrc, after compinit
  etalis completion fish | source                    in ~/.config/fish/config.fish
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "completion",
        help="let the shell complete commands and options",
        description="Print what a shell runs to complete the commands, options and files of etalis.",
        epilog=EXAMPLES,
        formatter_class=shared.Help,
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell that it is for")
    parser.set_defaults(command=completion)


def completion(options: Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    shared.say(shellcode(["etalis"], shell=options.shell))
    return 0
