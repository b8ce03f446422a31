"""``etalis lsp``: the language server, which editors start."""

from __future__ import annotations

import argparse
from argparse import Namespace

from etalis_py.cli import options as shared
from etalis_py.cli.errors import UsageError

EXAMPLES = """\
examples:
  etalis lsp                             an editor speaks with it on standard input and output
  pip install 'etalis-py[editor]'        what it needs
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "lsp",
        help="the language server for editors: diagnostics, hover, completion, formatting",
        description="A language server for query files, for editors that speak the Language Server Protocol.",
        epilog=EXAMPLES,
        formatter_class=shared.Help,
    )
    parser.set_defaults(command=lsp)


def lsp(options: Namespace) -> int:
    try:
        from etalis_py.editor.server import make_server
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed: pip install 'etalis-py[editor]'") from None
    from importlib.metadata import version

    make_server(version("etalis-py")).start_io()
    return 0
