"""``etalis map``: drafts a mapping for a file, from its columns or keys and its first rows, and a query over them."""

from __future__ import annotations

import argparse
import shlex
from argparse import Namespace

from etalis_py.cli import options as shared

EXAMPLES = """\
examples:
  etalis map ticks.csv > mapping.toml
  etalis run rising.rq -s ticks.csv -m mapping.toml
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "map",
        help="draft a mapping for a CSV, JSON, Parquet or Arrow file",
        description="Draft a mapping from the columns of a file to triples, by its header and first rows.  Read it, "
        "correct it, and give it to --mapping.",
        epilog=EXAMPLES,
        formatter_class=shared.Help,
        usage="etalis map FILE > mapping.toml",
    )
    parser.add_argument("file", metavar="FILE", help="a file: .csv, .tsv, .jsonl, .json, .parquet or .arrow, also .gz")
    parser.add_argument(
        "--background",
        action="store_true",
        help="the table is background, to be given to run --background and --background-mapping: it has no times",
    )
    parser.set_defaults(command=run)


def run(options: Namespace) -> int:
    from etalis_py.events.errors import StreamError
    from etalis_py.streams.draft import draft, draft_of_things, example_query, toml
    from etalis_py.streams.drafting import doubts
    from etalis_py.streams.samples import file_samples

    name = options.file
    samples = file_samples(name)
    try:
        made = draft_of_things(samples.cells) if options.background else draft(samples.cells, samples.moments)
    except StreamError as error:
        raise error.at(name, 0) from None
    if options.background:
        text = toml(samples.dialect() | made)
        shared.say(f"# Draft for {name} as background. Check it: only you know what the columns mean.\n{text}")
        return 0
    mapping = made | samples.dialect()
    query = example_query(mapping, samples.cells)
    timeless = "" if "time" in mapping else "# No column has a time, so a row has that of its arrival.\n"
    lists = (f"{name} is a list and left out: name an element, as {{{name}[]}}" for name in samples.lists)
    remarks = "".join(
        f"# Note: {remark}.\n" for remark in (*samples.remarks, *samples.refused, *doubts(mapping, samples), *lists)
    )
    shared.say(
        f"# Draft for {name}. Check it: only you know what the columns mean.\n{timeless}{remarks}{toml(mapping)}\n"
        f"# A query over these columns:\n# etalis run -q {shlex.quote(query)} -s {shlex.quote(name)} -m mapping.toml"
    )
    return 0
