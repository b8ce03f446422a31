"""Options that several commands share, and values that are more than text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from etalis_py.cli.errors import UsageError

if TYPE_CHECKING:
    from etalis_compiler.diagnostics import Diagnostic

    from etalis_py.program import Program
    from etalis_py.windows import WindowProgram

BASE = "http://example.org/"  # what relative IRIs are resolved against
POLICIES = ("unrestricted", "chronological", "recent")
REGIMES = ("rdf", "rdfs", "owlrl")
FORMATS = ("jsonl", "json", "csv", "table", "trig")


def add_queries(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "query", nargs="+", metavar="QUERY", help="a file with queries and rules, or - for standard input"
    )


def add_policy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--policy",
        choices=POLICIES,
        default="unrestricted",
        help="which events a match uses up, for queries that do not say it themselves (default: unrestricted)",
    )


def add_background(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--background",
        action="append",
        default=[],
        metavar="FILE",
        help="background knowledge: RDF in any syntax, a pattern, or an .lp program; may be repeated",
    )
    parser.add_argument(
        "--entailment",
        choices=REGIMES,
        default="rdfs",
        help="what follows from the background and from streamed triples (default: rdfs)",
    )


def add_engine(parser: argparse.ArgumentParser, *, both: bool = False, checkpoint: bool = True) -> None:
    """What runs the rules, and where.  ``both``: the two may be compared."""
    names = ("local", "spark", "both") if both else ("local", "spark")
    parser.add_argument(
        "--engine",
        choices=names,
        default="local",
        help="what runs the rules: this process (the default), or Spark" + ("; both compares the two" if both else ""),
    )
    parser.add_argument(
        "--master",
        metavar="M",
        help="with Spark: local[2], spark://HOST:7077, yarn, … (default: as Spark is configured, else all cores here)",
    )
    parser.add_argument(
        "--shards",
        type=shard_count,
        metavar="N",
        help="with Spark: in how many shards (default: two for each core here)",
    )
    if checkpoint:
        parser.add_argument(
            "--checkpoint",
            metavar="DIR",
            help="with Spark: go on in this folder with further events of the same stream",
        )


def check_engine(options: argparse.Namespace) -> None:
    """What is for Spark only."""
    for name in ("master", "shards", "checkpoint"):
        if options.engine == "local" and getattr(options, name, None) is not None:
            raise UsageError(f"--{name} is for Spark: add --engine spark")


def add_streams(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stream",
        action="append",
        required=True,
        metavar="[NAME=]SOURCE",
        help="events: a file (.nq .nt .trig .ttl .jsonl .csv .jelly, also .gz), a pattern, - for standard input or "
        "the address of a stream container (http(s)://…) or of a topic (kafka://host:port/topic); several are merged "
        "by time.  NAME is the stream's IRI, or a word w for <http://example.org/w>",
    )


def add_reading(parser: argparse.ArgumentParser) -> None:
    """How the elements of a stream are read, and what their times are."""
    parser.add_argument(
        "--time-predicate",
        action="append",
        metavar="P",
        help="the predicate that times an element (default: prov:generatedAtTime), or arrival; may be repeated",
    )
    parser.add_argument("--start-predicate", metavar="P", help="with --end-predicate: times elements by an interval")
    parser.add_argument("--end-predicate", metavar="P", help="see --start-predicate")
    parser.add_argument(
        "--time-unit",
        choices=("ns", "us", "ms", "s", "min", "h", "d"),
        default="s",
        help="what plain numbers count as times (default: s)",
    )
    parser.add_argument("--messages", action="store_true", help="read .nq, .nt, .trig and .ttl as RDF message logs")
    parser.add_argument(
        "--close-on-message", action="store_true", help="the end of a message closes its instant: do not wait for more"
    )
    parser.add_argument(
        "--whole-document",
        action="store_true",
        help="read a .nq or .trig document to its end first, for times that are far from their graphs",
    )
    parser.add_argument("--mapping", metavar="FILE", help="for CSV: a TOML file that maps columns to triples and time")


def add_output(parser: argparse.ArgumentParser, format: str) -> None:
    parser.add_argument(
        "--format", choices=FORMATS, default=format, help=f"how matches are written (default: {format})"
    )
    parser.add_argument(
        "--sink",
        default="-",
        metavar="FILE|DIR/|URL",
        help="where matches go: a file, a folder of files, a stream container, or - (default)",
    )


def duration(text: str) -> int:
    """``10s``, ``5min``, ``PT1H`` in microseconds."""
    from etalis_py.streams import TimeError, parse_duration

    try:
        found = parse_duration(text)
    except TimeError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if found < 0:
        raise argparse.ArgumentTypeError(f"a length of time of 0 or more is wanted, found {text}")
    return found


def shard_count(text: str) -> int:
    """How many shards: 1 to 1024."""
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"from 1 to 1024 shards, about two for each core, found {text!r}")
    return int(text)


def speed(text: str) -> float | None:
    """``10x`` times as fast as the stream's own time, ``real`` as fast as it, ``max`` without waiting (None)."""
    if text == "max":
        return None
    number = "1" if text == "real" else text.removesuffix("x") if text.endswith("x") else ""
    try:
        factor = float(number)
    except ValueError:
        factor = 0.0
    if not 0 < factor < 1e12:
        raise argparse.ArgumentTypeError(f"a speed is 10x (or another number), real or max, found {text!r}")
    return factor


def read_program(names: Sequence[str], policy: str = "unrestricted") -> Program | WindowProgram:
    """The program that the query files form."""
    return compiled(read_queries(names), policy)


def compiled(queries: Sequence[str | Path], policy: str = "unrestricted") -> Program | WindowProgram:
    """The program that queries form: one of windows as soon as one of them has a window."""
    from etalis_compiler.parser import parse
    from etalis_compiler.windowed import is_windowed

    from etalis_py import compile
    from etalis_py.program import source_of

    sources = [source_of(query) for query in queries]
    if not any(is_windowed(query) for s in sources for query in parse(s.text, source=s.name).queries):
        return compile(queries, policy=policy)
    from etalis_py.windows import compile_windows  # takes a while to import

    if policy != "unrestricted":
        raise UsageError(
            f"--policy {policy} is for programs without windows: write USING POLICY {policy} in the queries that it is "
            "meant for"
        )
    return compile_windows(queries)


def read_queries(names: Sequence[str]) -> list[str | Path]:
    """Paths, and the text of standard input for ``-``."""
    if names.count("-") > 1:
        raise UsageError("standard input can be read as a query once only")
    found: list[str | Path] = []
    for name in names:
        if name == "-":
            # The line break says that it is a text and not the name of a file.
            found.append(_decoded(sys.stdin.buffer.read(), "standard input") + "\n")
        else:
            _decoded(_bytes(name), name)
            found.append(Path(name))
    return found


def _bytes(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except FileNotFoundError:
        hint = "; to give a query itself, write it to standard input and name it -" if set("{ ?") & set(name) else ""
        raise UsageError(f"there is no query file {name}{hint}") from None
    except OSError as error:
        raise UsageError(f"the query file {name} cannot be read: {error.strerror}") from None


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"{name}, line {line}: a query is UTF-8 text, this is not") from None


def graph_files(program: Program | WindowProgram) -> dict[str, list[str | Path]]:
    """The files that FROM and FROM NAMED name, relative to their query: by the IRI that they are known by."""
    from urllib.parse import unquote

    from etalis_rules.terms import iri_value

    from etalis_py.program import Program

    found: dict[str, list[str | Path]] = {}
    if isinstance(program, Program):
        queries = [(query.syntax, query.source) for query in program.compilation.queries]
    else:
        queries = [(query, source) for document, source in program.documents for query in document.queries]
    for query, source in queries:
        folder = Path(source.name).parent
        for clause in query.dataset:
            iri = iri_value(clause.iri.spelling)
            scheme = next((s for s in ("file://", BASE) if iri.startswith(s)), "")
            path = folder / unquote(iri.removeprefix(scheme))
            if clause.kind == "graph" and scheme and path.is_file():
                found.setdefault(clause.iri.spelling, [path])
    return found


def show_warnings(warnings: Iterable[Diagnostic]) -> None:
    for warning in warnings:
        print(warning, file=sys.stderr)


def say(text: str) -> None:
    """Print to standard output; a full disk or a closed pipe is reported as for matches."""
    from etalis_py.streams.outputs import StandardOutput

    output = StandardOutput()
    output.write(text if text.endswith("\n") else text + "\n")
    output.flush()
