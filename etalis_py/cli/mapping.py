"""``etalis map``: drafts a mapping for a file, from its columns or keys and its first rows."""

from __future__ import annotations

import argparse
import csv
import io
from argparse import Namespace
from typing import Any

from etalis_py.cli import options as shared
from etalis_py.cli.errors import Failure

ROWS = 50
DELIMITERS = ",;\t|"


EXAMPLES = """\
examples:
  etalis map ticks.csv > mapping.toml
  etalis run rising.rq -s ticks.csv -m mapping.toml
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "map",
        help="draft a mapping for a CSV, JSON lines, Parquet or Arrow file",
        description="Draft a mapping from the columns of a file to triples, by its header and first rows.  Read it, "
        "correct it, and give it to --mapping.",
        epilog=EXAMPLES,
        formatter_class=shared.Help,
        usage="etalis map FILE > mapping.toml",
    )
    parser.add_argument("file", metavar="FILE", help="a file: .csv, .tsv, .jsonl, .parquet or .arrow, also .gz")
    parser.set_defaults(command=run)


def run(options: Namespace) -> int:
    from etalis_py.streams.draft import toml

    shared.say(f"# A draft for {options.file}: what the columns mean you know better.\n" + toml(draft_of(options.file)))
    return 0


def draft_of(name: str) -> dict[str, Any]:
    """The draft for a file."""
    from etalis_py.streams.draft import draft
    from etalis_py.streams.errors import StreamError
    from etalis_py.streams.sources import MAPPED, Source, format_of, sniff

    source = Source(name)
    try:
        head = source.peek(1 << 16)
        format = format_of(name) or sniff(head)
        if format not in MAPPED:
            format = "csv" if not format_of(name) else format
        if format in ("parquet", "arrow"):
            from etalis_py.streams.columns.checked import checked, checked_names
            from etalis_py.streams.columns.files import file_batches
            from etalis_py.streams.columns.frames import frame_draft

            schema, batches = file_batches(source, format, None)
            batch = next(checked(batches, checked_names(schema)), None)
            if batch is None:
                raise Failure(f"{name}: the file has no rows to judge by")
            return frame_draft(batch)
        text = head.decode("utf-8", "replace")
        lines = text.splitlines(keepends=True)[: ROWS + 1]
        if format == "jsonl":
            return draft(_keys(lines, name))
        if format != "csv" or (not format_of(name) and not _is_table(text)):
            raise Failure(f"{name}: a mapping is for CSV, JSON lines, Parquet and Arrow")
        return _of_csv("".join(lines), name)
    except StreamError as error:
        raise error.at(name, 0) from None
    finally:
        source.close()


def _is_table(text: str) -> bool:
    """Does a text without a telling name begin with a header of several columns?"""
    return any(mark in text.partition("\n")[0] for mark in DELIMITERS)


def _of_csv(text: str, name: str) -> dict[str, Any]:
    from etalis_py.streams.csv_mapping import header_columns
    from etalis_py.streams.draft import draft

    first = text.partition("\n")[0]
    delimiter = max(DELIMITERS, key=lambda mark: (first.count(mark), mark == ","))
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    if not rows:
        raise Failure(f"{name}: the file is empty")
    columns = header_columns(rows[0])
    if not rows[1:]:
        raise Failure(f"{name}: the file has no rows to judge by")
    usual = delimiter == ("\t" if ".tsv" in name.lower() else ",")
    cells = {column: [row[i] for row in rows[1:] if len(row) == len(columns)] for i, column in enumerate(columns)}
    return draft(cells) | ({} if usual else {"delimiter": delimiter})


def _keys(lines: list[str], name: str) -> dict[str, list[str]]:
    """The keys of objects, with dots for nested ones, and their values as texts."""
    import msgspec

    from etalis_py.streams.jsonl import Number

    decode = msgspec.json.Decoder(float_hook=Number).decode
    values: dict[str, list[str]] = {}

    def look(record: dict[str, Any], before: str) -> None:
        for key, value in record.items():
            if isinstance(value, dict):
                look(value, f"{before}{key}.")
            elif value is not None and not isinstance(value, list):
                values.setdefault(before + key, []).append(str(value))

    for line in lines:
        try:
            record = decode(line)
        except msgspec.DecodeError:
            continue  # the last line may be cut off
        if isinstance(record, dict):
            look(record, "")
    if not values:
        raise Failure(f"{name}: found no JSON object to judge by")
    if "triples" in values:
        raise Failure(f"{name}: these lines have their triples: they need no mapping")
    return values
