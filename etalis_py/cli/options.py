"""Options that several commands share, and values that are more than text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etalis_py.cli.errors import UsageError
from etalis_py.cli.query_files import decoded, refuse_stream, text_of

if TYPE_CHECKING:
    from etalis_compiler.diagnostics import Diagnostic, Source

    from etalis_py.engine.program import Program

BASE = "http://example.org/"  # base for relative IRIs
POLICIES = ("unrestricted", "chronological", "recent")
REGIMES = ("rdf", "rdfs", "rdfs-full", "owlrl")
FORMATS = ("jsonl", "json", "csv", "table", "trig", "parquet", "arrow", "sqlite")


class Help(argparse.HelpFormatter):
    """Wraps descriptions; an epilog of several lines, such as examples, stays as it is."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text.rstrip("\n") if "\n" in text else super()._fill_text(text, width, indent)


def group(parser: argparse.ArgumentParser, title: str) -> argparse._ArgumentGroup:
    """The group of options with this title, in which ``--help`` shows them."""
    groups = (group for group in parser._action_groups if group.title == title)
    return next(groups, None) or parser.add_argument_group(title)


def add_queries(parser: argparse.ArgumentParser) -> None:
    queries = group(parser, "query")
    queries.add_argument(
        "query",
        nargs="*",
        default=[],  # else argparse says that it is required
        metavar="QUERY",
        help="a file with queries and rules, or - for standard input; several form one program",
    )
    queries.add_argument(
        "-q",
        "--query",
        action="append",
        default=[],
        dest="texts",
        metavar="TEXT",
        help="a query itself, as -q 'SELECT …'; may be repeated, and used beside files",
    )


def add_policy(parser: argparse.ArgumentParser) -> None:
    group(parser, "query").add_argument(
        "-p",
        "--policy",
        choices=POLICIES,
        default="unrestricted",
        metavar="POLICY",
        help="which events a match uses up, for queries that do not say it themselves: unrestricted (the default), "
        "chronological or recent",
    )


def add_background(parser: argparse.ArgumentParser, *, mapped: bool = True) -> None:
    """Add the options for background knowledge; ``mapped``: its tables may have mappings."""
    background = group(parser, "background knowledge")
    background.add_argument(
        "-b",
        "--background",
        type=address,
        action="append",
        default=[],
        metavar="FILE",
        help="background knowledge: RDF in any syntax, a pattern, a table (.csv, .json, .parquet, …, or "
        "postgresql://…?table=NAME), or an .lp program; may be repeated",
    )
    if mapped:
        background.add_argument(
            "--background-mapping",
            action="append",
            default=[],
            metavar="[TABLE=]FILE",
            help="a TOML file that maps the columns of the tables, or of the table that is named, to triples (default: "
            "drafted, and told; etalis map --background TABLE prints the draft)",
        )
    background.add_argument(
        "--entailment",
        choices=REGIMES,
        default="rdfs",
        help="what follows from the background and from streamed triples (default: rdfs)",
    )


def table_mappings(options: argparse.Namespace) -> dict[str, str]:
    """The files of ``--background-mapping [TABLE=]FILE`` by their table; ``""`` has the one for all others."""
    mappings: dict[str, str] = {}
    for text in options.background_mapping:
        table, _, file = text.rpartition("=")
        if table and table not in options.background:
            raise UsageError(f"--background-mapping {text}: there is no --background {table}")
        mappings[table] = file
    return mappings


def background_of(options: argparse.Namespace, prefixes: Mapping[str, str], without: Collection[str] = ()) -> list[Any]:
    """The background, its tables as triples, but for the sources ``without``; ``prefixes`` are those of the queries."""
    from etalis_py.streams.reference import is_table, reference_table, with_tables

    mappings = table_mappings(options)
    if mappings and not any(map(is_table, options.background)):
        raise UsageError("--background-mapping is for tables: name one after --background, as -b limits.csv")
    found: list[Any] = []
    for source in options.background:
        if source in without:
            continue
        file = mappings.get(source, mappings.get("")) if is_table(source) else None
        found.append(source if file is None else reference_table(source, mapping=Path(file), prefixes=prefixes))
    return list(with_tables(found, lambda: prefixes))


def add_engine(parser: argparse.ArgumentParser, *, both: bool = False, checkpoint: bool = True) -> None:
    """Add the options for what runs the rules, and where.  ``both``: the two engines may be compared."""
    names = ("local", "spark", "both") if both else ("local", "spark")
    engine = group(parser, "engine")
    engine.add_argument(
        "--engine",
        choices=names,
        default="local",
        help="what runs the rules: this process (the default), or Spark" + ("; both compares the two" if both else ""),
    )
    engine.add_argument(
        "--master",
        metavar="M",
        help="with Spark: local[2], spark://HOST:7077, yarn, … (default: as Spark is configured, else all cores here)",
    )
    engine.add_argument(
        "--shards",
        type=shard_count,
        metavar="N",
        help="with Spark: in how many shards (default: two for each core here)",
    )
    if checkpoint:
        engine.add_argument(
            "--checkpoint",
            metavar="DIR",
            help="keep the run in this folder: started again with the same command, it goes on where it was",
        )
        engine.add_argument(
            "--checkpoint-every",
            type=duration,
            metavar="D",
            help="how often, without Spark (default: 10s); at the end there is always a checkpoint",
        )


def check_engine(options: argparse.Namespace) -> None:
    """Refuse options that are only for Spark."""
    for name in ("master", "shards"):
        if options.engine == "local" and getattr(options, name, None) is not None:
            raise UsageError(f"--{name} is for Spark: add --engine spark")


def add_streams(parser: argparse.ArgumentParser) -> None:
    group(parser, "streams").add_argument(
        "-s",
        "--stream",
        type=address,
        action="append",
        default=[],
        metavar="[NAME=]SOURCE",
        help="events: a file (.nq .nt .trig .ttl .jsonl .csv .jelly .parquet .arrow, also .gz), a pattern, - for "
        "standard input, or the address of a socket (tcp://host:port), of a stream container (http(s)://…) or of a "
        "topic (kafka://host:port/topic); may be repeated: several are merged by time.  NAME is the stream's IRI, or a "
        "word w for <http://example.org/w>",
    )


def check_streams(options: argparse.Namespace) -> None:
    """Check that there is a stream; a file of events among the queries was meant as one."""
    if not options.stream:
        for name in [options.query] if isinstance(options.query, str) else options.query:
            refuse_stream(name)
        raise UsageError(
            "there is no stream: name one after --stream, a file (ticks.csv, ticks.jsonl, ticks.parquet, ticks.nq), - "
            "for standard input, tcp://HOST:PORT, kafka://HOST/TOPIC, or the address of a container (http://…)"
        )


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options for reading the elements of a stream and their times."""
    streams = group(parser, "streams")
    streams.add_argument(
        "-m",
        "--mapping",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="a TOML file that maps columns or keys to triples and time, for CSV, JSON lines, Parquet and Arrow; with "
        "NAME= for the stream of that name only; etalis map FILE drafts one",
    )
    streams.add_argument(
        "--time",
        dest="time_column",
        default="",
        metavar="COLUMN",
        help="without a mapping: the column or key with the time of a row of CSV, JSON, Parquet or Arrow; the other "
        "columns are properties of their names, as :price (default: drafted as by etalis map, and told)",
    )
    streams.add_argument(
        "--subject",
        dest="subject_column",
        default="",
        metavar="COLUMN",
        help="without a mapping: the column or key that says what a row is about, or _:row for a node of its own",
    )
    streams.add_argument("--context", metavar="FILE", help="a JSON-LD context for plain JSON lines")
    streams.add_argument(
        "--time-predicate",
        action="append",
        metavar="P",
        help="the predicate that times an element (default: prov:generatedAtTime), or arrival; may be repeated",
    )
    streams.add_argument("--start-predicate", metavar="P", help="with --end-predicate: times elements by an interval")
    streams.add_argument("--end-predicate", metavar="P", help="see --start-predicate")
    streams.add_argument(
        "--time-unit",
        choices=("ns", "us", "ms", "s", "min", "h", "d"),
        default="s",
        help="what plain numbers count as times (default: s)",
    )
    streams.add_argument("--messages", action="store_true", help="read .nq, .nt, .trig and .ttl as RDF message logs")
    streams.add_argument(
        "--close-on-message", action="store_true", help="the end of a message closes its instant: do not wait for more"
    )
    streams.add_argument(
        "--whole-document",
        action="store_true",
        help="read a .nq or .trig document to its end first, for times that are far from their graphs",
    )
    streams.add_argument(
        "--keep-order",
        action="store_true",
        help="take the events of a file in the order that they have: those that are out of order are late",
    )


def add_output(parser: argparse.ArgumentParser, format: str) -> None:
    output = group(parser, "output")
    output.add_argument(
        "-f",
        "--format",
        choices=FORMATS,
        metavar="FORMAT",
        help=f"how matches are written: {', '.join(FORMATS)} (default: by the ending of --sink, else {format})",
    )
    parser.set_defaults(usual_format=format)
    output.add_argument(
        "-o",
        "--sink",
        type=address,
        default="-",
        metavar="FILE|DIR/|URL",
        help="where matches go: a file, a folder of files, an address (a stream container, postgresql://…, kafka://…, "
        "webhook+https://…), or - (default)",
    )


def add_log(options: argparse._ActionsContainer) -> None:
    options.add_argument(
        "--log",
        choices=("text", "json"),
        default="text",
        help="what is said on standard error: lines of text, or a JSON object for each message (default: text)",
    )


def settle_format(options: argparse.Namespace) -> None:
    """Without --format, take the format from the name of the sink; with it, refuse a name that implies a table of
    another.
    """
    from etalis_py.cli.sources import is_container
    from etalis_py.connectors.registry import is_sink
    from etalis_py.streams.writer import TABLES, format_by_ending

    is_file = not (is_container(options.sink) or is_sink(options.sink))
    by_ending = format_by_ending(options.sink) if is_file else ""
    if by_ending and options.format not in (None, by_ending) and {by_ending, options.format} & {*TABLES}:
        raise UsageError(
            f"--sink {options.sink} is named as {by_ending}, and --format is {options.format}: leave --format out, or "
            "give the file another ending"
        )
    if options.format is None:
        options.format = by_ending or options.usual_format
        ending = Path(options.sink).suffix
        if ending and not by_ending and is_file:
            print(
                f"etalis: warning: no format has the ending {ending}, so {options.sink} will be {options.format}; "
                "--format says another",
                file=sys.stderr,
            )


def seconds_of_silence(text: str) -> int:
    """A duration above zero, in microseconds."""
    length = duration(text)
    if not length:
        raise argparse.ArgumentTypeError(f"expected a silence longer than 0, as 100ms or 1s; found {text}")
    return length


def check_moment(text: str | None) -> None:
    """Refuse an end (``--until``) that is no time in any spelling."""
    from etalis_py.streams import TimeError
    from etalis_py.streams.pass_through import Ending

    try:
        if text is not None:
            Ending(text)
    except TimeError as error:
        raise UsageError(f"--until {text}: {error}") from None


def start_of(options: argparse.Namespace) -> int | None:
    """When the stream starts (``--start``), in microseconds: a dateTime, or a number in the unit of the stream."""
    from etalis_py.streams import Clock, TimeError
    from etalis_py.streams.pass_through import Ending, EndingError

    text: str | None = options.start
    if text is None:
        return None
    try:
        return Ending(text).time((Clock("integer", options.time_unit),))
    except EndingError:  # a dateTime, whatever the unit of numbers
        return Ending(text).time()
    except TimeError as error:
        raise UsageError(f"--start {text}: {error}") from None


def address(text: str) -> str:
    """A file or an address, perhaps after ``NAME=``; a password in it is refused before anything shows it."""
    from etalis_py.events.errors import PASSWORD, place_of_password

    name, _, source = text.partition("=")
    if place := place_of_password(source if source and "://" not in name else text):
        raise argparse.ArgumentTypeError(f"{PASSWORD}\n  {place}")
    return text


def duration(text: str) -> int:
    """``10s``, ``5min``, ``PT1H`` in microseconds."""
    from etalis_py.streams import TimeError, parse_duration

    try:
        length = parse_duration(text)
    except TimeError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if length < 0:
        raise argparse.ArgumentTypeError(f"expected a length of time of 0 or more, as 10s; found {text}")
    return length


def shard_count(text: str) -> int:
    """A number of shards, from 1 to 1024."""
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"from 1 to 1024 shards, about two for each core, found {text!r}")
    return int(text)


def core_count(text: str) -> int:
    """A number of cores, from 1 to 1024."""
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"from 1 to 1024 cores, found {text!r}")
    return int(text)


def speed(text: str) -> float | None:
    """``10x`` is ten times the stream's own pace, ``real`` the same pace, ``max`` without waiting (None)."""
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


def read_program(options: argparse.Namespace) -> Program:
    """The program that the query files and texts form."""
    return compiled(read_queries(options.query, options.texts), options.policy)


def compiled(queries: Sequence[str | Source], policy: str = "unrestricted") -> Program:
    """The program that queries form."""
    from etalis_py import compile

    program = compile(queries, policy=policy)
    if program.windowed and policy != "unrestricted":
        raise UsageError(
            f"--policy {policy} is for programs without windows: write USING POLICY {policy} in the queries that it is "
            "meant for"
        )
    return program


def read_queries(names: Sequence[str], texts: Sequence[str] = ()) -> list[str | Source]:
    """The texts of files, which are read only once (one may be a pipe), of standard input for ``-``, and texts.

    A text without a file ends with a line break, so that it is not taken for the name of one.
    """
    from etalis_compiler.diagnostics import Source

    if not (names or texts):
        raise UsageError("there is no query: name a file, write one after -q, or name - for standard input")
    if names.count("-") > 1:
        raise UsageError("standard input can be read as a query once only")
    queries: list[str | Source] = []
    for name in names:
        if name == "-":
            queries.append(decoded(sys.stdin.buffer.read(), "standard input") + "\n")
        else:
            refuse_stream(name)
            queries.append(Source(text_of(name), str(Path(name))))
    return [*queries, *(text + "\n" for text in texts)]


def graph_files(program: Program) -> dict[str, list[str | Path]]:
    """The files that FROM and FROM NAMED name, relative to their query, by the IRI of their graph."""
    from urllib.parse import unquote

    from etalis_rules.terms import iri_value

    files: dict[str, list[str | Path]] = {}
    for query, source in ((query, source) for document, source in program.documents for query in document.queries):
        folder = Path(source.name).parent
        for clause in query.dataset:
            iri = iri_value(clause.iri.spelling)
            scheme = next((s for s in ("file://", BASE) if iri.startswith(s)), "")
            path = folder / unquote(iri.removeprefix(scheme))
            if clause.kind == "graph" and scheme and path.is_file():
                files.setdefault(clause.iri.spelling, [path])
    return files


def show_warnings(warnings: Iterable[Diagnostic]) -> None:
    for warning in warnings:
        print(warning, file=sys.stderr)


def show_why_nothing(program: Program) -> None:
    """What lets nothing through, unless it was told when the program was compiled: why there is no match."""
    told = program.can_never_match(checked=False)
    show_warnings(warning for warning in program.can_never_match() if warning not in told)


def say(text: str) -> None:
    """Print to standard output; a full disk or a closed pipe is reported as for matches."""
    from etalis_py.streams.outputs import StandardOutput

    output = StandardOutput()
    output.write(text if text.endswith("\n") else text + "\n")
    output.flush()
