"""``etalis init``: a small starter project, whose test passes as it is."""

from __future__ import annotations

import argparse
import shlex
from argparse import Namespace
from importlib.resources import files
from pathlib import Path

from etalis_py.cli import options as shared
from etalis_py.cli.errors import UsageError

EXAMPLES = """\
examples:
  etalis init prices && cd prices
  etalis run rising.rq --stream ticks.csv --mapping mapping.toml --format table
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "init",
        help="write a small project: query, stream, mapping, test",
        description="Write a small project into a folder: a query, a stream with its mapping, a test and a README.",
        epilog=EXAMPLES,
        formatter_class=shared.Help,
    )
    parser.add_argument("folder", metavar="DIR", help="where to; it is made if need be, and no file is overwritten")
    parser.set_defaults(command=init)


def init(options: Namespace) -> int:
    if not options.folder:
        raise UsageError("DIR is empty: name a folder, or write . for this one")
    folder = Path(options.folder)
    project = files("etalis_py.cli").joinpath("project")
    # An installed package has its compiled files there as well.
    texts = {file.name: file.read_text(encoding="utf-8") for file in project.iterdir() if file.is_file()}
    if taken := sorted(name for name in texts if (folder / name).exists()):
        raise UsageError(f"{folder} has {', '.join(taken)} already: name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    shared.say(
        f"wrote {', '.join(sorted(texts))} to {folder}; next:\n"
        f"  cd {shlex.quote(str(folder))}\n"
        "  etalis run rising.rq --stream ticks.csv --mapping mapping.toml --format table"
    )
    return 0
