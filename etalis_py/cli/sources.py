"""``--stream [NAME=]SOURCE``: files, patterns, standard input, sockets, containers and topics, merged by time."""

from __future__ import annotations

import io
import os
import stat
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from etalis_rules.calendar import SECOND
from etalis_rules.messages import how_many
from etalis_rules.terms import iri

from etalis_py.cli.drafts import Drafts, Mapped
from etalis_py.cli.errors import UsageError
from etalis_py.connectors.reading import connect
from etalis_py.connectors.registry import is_source, open_source, other_sources
from etalis_py.events.checking import named_stream
from etalis_py.events.errors import no_such_file, without_password
from etalis_py.streams import DeadLetters, Follow, Stream, merge, read_stream
from etalis_py.streams.csv_mapping import RowMapping, read_mapping
from etalis_py.streams.drafting import Naming, of_file, of_frame
from etalis_py.streams.kafka import parse_topic, read_kafka
from etalis_py.streams.lake_tables import is_lake_table, lake_table
from etalis_py.streams.objects import is_object
from etalis_py.streams.sockets import is_socket
from etalis_py.streams.sources import FORMATS, MAPPED, WHOLE, expand, format_of

LOOK_EVERY = 0.02  # seconds between two looks at a followed file

_TABLES = ", ".join(FORMATS[name] for name in MAPPED)
_NAMED = "--time and --subject are for rows, without --mapping or --context"


def split_name(text: str, option: str = "--stream") -> tuple[str, str]:
    """The IRI of the stream (or ``""``) and what belongs to it: its source, or its mapping.

    >>> split_name("prices=ticks.nq"), split_name("http://h/s=a.nq"), split_name("http://h/s/?after=3")
    (('<http://example.org/prices>', 'ticks.nq'), ('<http://h/s>', 'a.nq'), ('', 'http://h/s/?after=3'))
    >>> split_name(":prices=ticks.nq")
    ('<http://example.org/prices>', 'ticks.nq')
    """
    if not text:
        sources = ", a pattern, -, http(s)://…, tcp://… or kafka://…" if option == "--stream" else ""
        raise UsageError(f"{option} is empty: name a file{sources}")
    name, equals, source = text.partition("=")
    if not equals or os.path.exists(text) or "?" in name or ("/" in name and ":" not in name):
        return "", text
    if not name or not source:
        what = "SOURCE" if option == "--stream" else "FILE"
        raise UsageError(f"{option} {text}: write NAME={what}, or the {what.lower()} alone")
    try:
        return named_stream(name), source
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}") from None


def is_container(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def is_topic(source: str) -> bool:
    return source.startswith("kafka://")


def is_live(source: str) -> bool:
    """Whether there may be nothing to read yet, but more later."""
    if is_topic(source):
        return not parse_topic(source).until_now
    return (
        is_container(source)
        or is_socket(source)
        or is_source(source)
        or (source == "-" and not _is_file(sys.stdin.fileno()))
        or Path(source).is_fifo()  # as the shell makes one of <(command)
    )


def is_path(source: str) -> bool:
    """Whether it is the name of a file, or a pattern."""
    return source != "-" and ("://" not in source or is_object(source))


def _is_file(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


@dataclass(frozen=True, slots=True)
class Reading:
    """How one of the streams of a run is read.

    ``alone``: it is the only one.  ``mapping`` reads its mapping, if it is needed; ``own``: this was given for it by
    name.  ``number``: its place among the streams.
    """

    letters: DeadLetters | None
    prefixes: Mapping[str, str]
    live: bool
    alone: bool
    mapping: Callable[[], RowMapping] | None
    own: bool
    drafts: Drafts
    number: int


def open_streams(
    options: Namespace,
    dead_letters: DeadLetters | None,
    prefixes: Mapping[str, str],
    drafts: Drafts | None = None,
) -> tuple[Stream, bool]:
    """The merged stream of a run, and whether it is live; ``prefixes`` are those of the queries.

    ``drafts`` are the mappings that the run began with, and get those that are drafted now.
    """
    named = [split_name(text) for text in options.stream]
    sources = [source for _, source in named]
    for source in sources:
        known_here = (is_container, is_topic, is_socket, is_source, is_object, is_lake_table)
        if "://" in source and not any(is_it(source) for is_it in known_here):
            raise UsageError(f"--stream {without_password(source)}: {other_sources(source)}")
    followed = getattr(options, "follow", False)
    if followed:
        _check_followed(sources)
    live = followed or any(map(is_live, sources))
    mappings = mappings_of(options, [name for name, _ in named])
    reader = cache(lambda file: read_mapping(Path(file), prefixes))  # once, as it may be a pipe
    alone = len(sources) == 1
    streams = []
    for number, (name, source) in enumerate(named):
        file = mappings.get(name, mappings.get(""))
        mapping = None if file is None else partial(reader, file)
        own = alone or name in mappings.keys() - {""}
        reading = Reading(dead_letters, prefixes, live, alone, mapping, own, drafts or Drafts(), number)
        streams.append(_open(name, source, options, reading))
    return (streams[0] if len(streams) == 1 else merge(streams)), live


def open_ended(options: Namespace, prefixes: Mapping[str, str]) -> Stream:
    """The merged stream of a command that needs its end."""
    for source in options.stream:
        if source != "-" and is_live(split_name(source)[1]):
            raise UsageError(f"--stream {source} has no end: give a file, or a topic with until=now")
    return open_streams(options, None, prefixes)[0]


def _check_followed(sources: Sequence[str]) -> None:
    """Refuse to follow sources that cannot be read while they grow, and tell which files a pattern stands for."""
    paths = [source for source in sources if is_path(source)]
    if not paths:
        raise UsageError("--follow is for files that grow; what has no end by itself is followed anyway: leave it out")
    for path in paths:
        if is_object(path):
            raise UsageError(f"--follow: {path} is an object, which does not grow: leave --follow out")
        if path.endswith(".gz") or format_of(path) in WHOLE:
            raise UsageError(f"--follow: {path} cannot be read while it grows; write lines (.jsonl, .nq, .csv)")
        if (files := expand(path)) != [path]:
            now = f"the {how_many(len(files), 'file')} that {'matches' if len(files) == 1 else 'match'} {path!r} now"
            print(f"etalis: --follow reads {now}; files that come later are not read", file=sys.stderr)


def mappings_of(options: Namespace, names: Sequence[str]) -> dict[str, str]:
    """The files of ``--mapping [NAME=]FILE`` by the IRI of their stream; ``""`` has the one for all others."""
    mappings: dict[str, str] = {}
    for text in options.mapping:
        name, file = split_name(text, "--mapping")
        if name in mappings:
            raise UsageError(
                f"--mapping {text}: a second mapping for {name or 'all streams'}; name the stream that each is for, "
                "as --stream prices=a.csv --mapping prices=a.toml"
            )
        if name and name not in names:
            given = ", ".join(name for name in names if name) or "none has a name"
            raise UsageError(f"--mapping {text}: there is no stream {name}; streams: {given}")
        mappings[name] = file
    return mappings


def _open(name: str, source: str, options: Namespace, reading: Reading) -> Stream:
    naming = Naming(options.time_column, options.subject_column)
    if naming and reading.alone and (is_container(source) or reading.mapping is not None):
        raise UsageError(_NAMED)
    if is_container(source):
        if reading.own and reading.mapping is not None:
            raise UsageError(f"--mapping is for {_TABLES} and Kafka; {source} is a container, which has graphs")
        from etalis_py.containers.follow_container import container_stream  # takes a while to import

        return container_stream(source, name, _silence(options), revise=bool(getattr(options, "revise", 0)))
    if is_topic(source):
        has_rows = parse_topic(source).format == "jsonl"
        mapped = reading.mapping is not None and (reading.own or has_rows)
        if naming and reading.alone and not has_rows:
            raise UsageError(_NAMED)
        named = naming.undrafted(source) if has_rows and options.context is None else None
        return read_kafka(
            source,
            name=name,
            on_error=options.on_error,
            dead_letters=reading.letters,
            idle=_silence(options) if reading.live else None,
            time_predicate=options.time_predicate or None,
            start_predicate=options.start_predicate,
            end_predicate=options.end_predicate,
            time_unit=options.time_unit,
            mapping=reading.mapping() if mapped and reading.mapping is not None else named,
            context=None if options.context is None else Path(options.context),
            prefixes=reading.prefixes,
            in_order=False if _as_it_comes(options) else None,
        )
    if is_source(source):
        return connect(
            open_source(source),
            source,
            name=name or iri(without_password(source).partition("?")[0]),
            on_error=options.on_error,
            dead_letters=reading.letters,
            idle=_silence(options),
            time_predicate=options.time_predicate or None,
            start_predicate=options.start_predicate,
            end_predicate=options.end_predicate,
            time_unit=options.time_unit,
            prefixes=reading.prefixes,
            mapping=naming.undrafted(source) if reading.mapping is None else reading.mapping(),
            context=None if options.context is None else Path(options.context),
        )
    if is_lake_table(source):
        rows, given = lake_table(source), None if reading.mapping is None else reading.mapping()
        drafted = None if given is not None else _drafted_before(source, naming, reading)
        if given is None and drafted is None:
            rows, drafted = of_frame(rows, naming, lambda text: _note(text.replace("the table", source, 1)))
            reading.drafts.add(reading.number, source, drafted)
        return read_stream(
            rows,
            name=name,
            mapping=given or drafted,
            time_unit=options.time_unit,
            prefixes=reading.prefixes,
            in_order=_note,
            on_error=options.on_error,
            dead_letters=reading.letters,
        )
    known = format_of(source)
    mapped = reading.mapping is not None and (known in MAPPED or (reading.own and not known))
    drafted = None
    may_draft = _may_draft_growing(source) if reading.live else is_path(source)
    has_rows = known in ("", *MAPPED) and reading.mapping is None and options.context is None
    if has_rows and not may_draft:
        drafted = naming.undrafted(source)
    elif has_rows:
        drafted = _drafted_before(source, naming, reading)
        if drafted is None:
            drafted = of_file(source, naming, _note)
            reading.drafts.add(reading.number, source, drafted)
    elif naming and reading.alone:
        raise UsageError(_NAMED)
    if known == "csv" and reading.mapping is None and drafted is None:
        if is_path(source) and not Path(source).exists():
            raise no_such_file(source)
        raise UsageError(
            f"--stream {source}: a CSV stream needs --mapping FILE, which says what its columns mean; "
            f"etalis map {source} drafts one"
        )
    if reading.mapping is not None and reading.own and not mapped:
        raise UsageError(f"--mapping is for {_TABLES}; {source} is none of them")
    if options.context is not None and reading.alone and known not in ("jsonl", ""):
        raise UsageError(f"--context is for JSON lines, which {source} is not")
    return read_stream(
        _unbuffered_input() if reading.live and source == "-" else source,
        name=name,
        time_predicate=options.time_predicate or None,
        start_predicate=options.start_predicate,
        end_predicate=options.end_predicate,
        time_unit=options.time_unit,
        messages=True if options.messages else None,
        close_on_message=options.close_on_message,
        times="anywhere" if options.whole_document else "near",
        mapping=reading.mapping() if mapped and reading.mapping is not None else drafted,
        context=Path(options.context) if options.context is not None and known in ("jsonl", "") else None,
        prefixes=reading.prefixes,
        in_order=False if reading.live or _as_it_comes(options) else _note,
        on_error=options.on_error,
        dead_letters=reading.letters,
        idle=_silence(options) if reading.live else None,
        follow=Follow(LOOK_EVERY) if reading.live and getattr(options, "follow", False) and is_path(source) else None,
    )


def _may_draft_growing(source: str) -> bool:
    """Whether a mapping is drafted for a source that may grow: a file of rows, by those that it has."""
    return format_of(source) in ("csv", "jsonl") and Path(source).is_file()


def _drafted_before(source: str, naming: Naming, reading: Reading) -> Mapped | None:
    """The mapping that the run began with, if it goes on."""
    made = reading.drafts.before(reading.number, source)
    if made is not None and (guess := naming.told(made)):
        _note(f"{source}: it is read by the mapping that was drafted when the run began: {guess}")
    return made


def _as_it_comes(options: Namespace) -> bool:
    """Whether a file is read in its own order: asked for, or handled by another option."""
    late = getattr(options, "lateness", 0) or getattr(options, "revise", 0)
    return bool(late or options.keep_order or options.close_on_message)


def _silence(options: Namespace) -> float:
    """The seconds after which a live source counts as silent."""
    return getattr(options, "idle", SECOND) / SECOND


def _note(text: str) -> None:
    print(f"etalis: {text}", file=sys.stderr)


def _unbuffered_input() -> io.FileIO:
    """Standard input without a buffer: a thread that waits in its read does not keep the interpreter from exiting."""
    raw = io.FileIO(sys.stdin.fileno(), closefd=False)
    raw.name = "standard input"
    return raw
