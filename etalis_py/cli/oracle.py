"""``etalis oracle``: checks whether the recorded answers of another engine are right."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etalis_py.cli import options as shared
from etalis_py.cli.engine_of_run import refuse_ties_of, report_unread
from etalis_py.cli.errors import UsageError

if TYPE_CHECKING:
    from etalis_py.engine.program import Program
    from etalis_py.events import Event
    from etalis_py.testing.judge_recorded import Recorded

RIGHT, NEVER_RIGHT = 0, 1
XSD = "http://www.w3.org/2001/XMLSchema#"

FORMAT = """\
The recording is JSON lines, in the order in which the engine answered.  A line is an answer with all its rows:

  {"time": 5, "rows": [{"room": "<http://example.org/red>", "people": "2"}]}

or one row, as etalis run writes it; neighbouring rows with the same end are one answer:

  {"bindings": {"room": {"type": "uri", "value": "http://example.org/red"}}, "end": 5}

A term is written as in Turtle ("<http://example.org/a>", "2", "\\"red\\""), or as an object of the SPARQL 1.1 Query
Results JSON Format; a JSON number or boolean is short for that literal.  Numbers are compared by value (77.0 is 77),
every other term by its spelling.  A time is a number (--time-unit) or an xsd:dateTime.  Leave the times out of all
lines when the engine's clock is not to be judged: the answers then need the right order only.

It prints each t0 for which the recording is right, one for each sliding window in the order of the text.
Exit code 0: such a start exists.  1: none exists, the recorded answers are wrong.  2: the recording cannot be judged.
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "oracle",
        help="judge what an engine of windowed queries answered",
        description="Find the times at which the windows of a query may have opened first, so that what another "
        "engine answered is right.  No such time: its answers are wrong.",
        epilog=FORMAT,
        formatter_class=shared.Help,
        usage="etalis oracle QUERY --stream [NAME=]SOURCE… --recorded FILE [options]",
    )
    parser.add_argument("query", metavar="QUERY", help="a file with one windowed query")
    shared.add_streams(parser)
    parser.add_argument("--recorded", required=True, metavar="FILE", help="what the engine answered, as JSON lines")
    parser.add_argument(
        "--registered", default="0", metavar="T", help="when the query was registered: a number or a dateTime (0)"
    )
    parser.add_argument(
        "--unit",
        type=shared.duration,
        default=1_000_000,
        metavar="D",
        help="the unit of the engine's clock, in which t0 is sought (default: 1s)",
    )
    parser.add_argument("--preset", default="", metavar="SYSTEM", help="evaluate as this system does, as c-sparql")
    shared.add_background(parser)
    shared.add_reading(parser)
    parser.set_defaults(command=oracle, on_error="stop")


def oracle(options: Namespace) -> int:
    from etalis_compiler.rsp import Sliding

    from etalis_py.cli.sources import is_live, open_streams, split_name
    from etalis_py.engine.program import compile
    from etalis_py.events import Event
    from etalis_py.events.clock import clock_of
    from etalis_py.executors.windows.refresh import MissingGraph
    from etalis_py.streams import StreamError, TimeError
    from etalis_py.testing.judge_recorded import Unjudgeable, which_t0

    shared.check_streams(options)
    if options.unit == 0:
        raise UsageError("--unit 0: a clock has a unit above 0, as 1s or 1ms")
    if any(is_live(split_name(text)[1]) for text in options.stream):
        raise UsageError("a recording is judged against a stream that has an end: name a file, or redirect one")
    (query,) = shared.read_queries([options.query])
    program = compile(query, preset=options.preset)
    try:
        registered = clock_of(options.registered, options.time_unit).parse(options.registered)
    except TimeError as error:
        raise UsageError(f"--registered: {error}") from None
    try:
        recorded = list(read_recording(options.recorded, options.time_unit))
    except StreamError as error:
        raise UsageError(str(error)) from None  # exit code 1 is for wrong recordings
    stream, _ = open_streams(options, None, program.prefixes)
    with stream:
        refuse_ties_of(stream, "windows hold events by their times alone")
        events = [item for item in stream if isinstance(item, Event)]
    report_unread(sum(not _is_read(event, program) for event in events), program.inputs)
    try:
        aligned = which_t0(
            program,
            events,
            recorded,
            registered=registered,
            unit=options.unit,
            background=shared.background_of(options, program.prefixes) or None,
            entailment=options.entailment,
            named=shared.graph_files(program),
        )
    except (MissingGraph, Unjudgeable) as error:
        raise UsageError(str(error)) from None
    names = [_shown(w.name) for w in program.plans[0].windows if isinstance(w.shape, Sliding)]
    for t0 in aligned:
        times = [f"{name} t0 = {stream.clock.render(t)}" for name, t in zip(names, t0, strict=True)]
        shared.say("right with " + (", ".join(times) or "the windows as they are written"))
    if not aligned:
        shared.say("never right: there is no t0 with which these are the answers")
    return RIGHT if aligned else NEVER_RIGHT


def _is_read(event: Event, program: Program) -> bool:
    return event.stream in program.inputs or (not event.stream and len(program.inputs) == 1)


def _shown(name: str) -> str:
    """The name of a window; one without a name was written where it is used."""
    return "the window" if name.startswith(".") else name


def read_recording(path: str, unit: str) -> Iterator[Recorded]:
    """The answers of a recording, in order."""
    import msgspec

    from etalis_py.events.clock import clock_of
    from etalis_py.streams import StreamError, TimeError
    from etalis_py.testing.judge_recorded import Recorded

    decoder = msgspec.json.Decoder(float_hook=Decimal)
    open_row: Recorded | None = None  # rows that may continue
    timed: bool | None = None
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise UsageError(f"there is no recording {path}: check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the recording {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = decoder.decode(line)
            single = isinstance(record, dict) and "bindings" in record
            rows, when = _record(record)
            time = None if when is None else clock_of(when, unit).parse(when)
        except (msgspec.DecodeError, TimeError, _Unreadable) as error:
            hint = 'write {"time": 5, "rows": [{"x": "<http://example.org/a>"}]}; etalis oracle --help tells the format'
            raise StreamError(str(error), source=path, line=number, hint=hint) from None
        if timed is not None and timed != (time is not None):
            hint = "give all of them a time, or none"
            raise StreamError("some answers have a time, others not", source=path, line=number, hint=hint)
        timed = time is not None
        if open_row is not None and not (single and time is not None and open_row.time == time):
            yield open_row
            open_row = None
        if not single:
            yield Recorded(rows, time)
        else:
            open_row = Recorded(rows if open_row is None else (*open_row.rows, *rows), time)
    if open_row is not None:
        yield open_row


class _Unreadable(ValueError):
    """A line that is not an answer."""


def _record(record: Any) -> tuple[tuple[dict[str, str], ...], Any]:
    """The rows of a line and its time."""
    if not isinstance(record, dict) or ("rows" in record) == ("bindings" in record):
        raise _Unreadable("a line is an object with rows, or with bindings")
    single = "bindings" in record
    when = record.get("end" if single else "time")
    rows = [record["bindings"]] if single else record["rows"]
    if when is not None and (isinstance(when, bool) or not isinstance(when, int | str | Decimal)):
        raise _Unreadable("a time is a number or a dateTime")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise _Unreadable("rows are a list of objects, from variables to terms")
    return tuple({v.removeprefix("?"): _term(term) for v, term in row.items()} for row in rows), when


def _term(term: Any) -> str:
    """A term in the engine's spelling."""
    import pyoxigraph as ox
    from etalis_rules.terms import iri, literal, triple

    from etalis_py.values.oxigraph_terms import spell_term

    match term:
        case bool():
            return literal("true" if term else "false", f"{XSD}boolean")
        case int():
            return literal(str(term), f"{XSD}integer")
        case Decimal():
            return literal(f"{term:f}", f"{XSD}decimal")
        case {"type": "uri", "value": str(value)}:
            return iri(value)
        case {"type": "literal" | "typed-literal", "value": str(value)}:
            language, direction = term.get("xml:lang", ""), term.get("its:dir", "")
            return literal(value, term.get("datatype", ""), f"{language}--{direction}" if direction else language)
        case {"type": "triple", "value": {"subject": s, "predicate": p, "object": o}}:
            return triple(_term(s), _term(p), _term(o))
        case str():
            try:
                (quad,) = ox.parse(f"<urn:s> <urn:p> {term} .".encode(), ox.RdfFormat.TURTLE)
            except (SyntaxError, ValueError):
                raise _Unreadable(f'{term} is not a term: write an IRI as <…>, a text as \\"…\\"') from None
            if isinstance(quad.object, ox.BlankNode):
                raise _Unreadable("a blank node has no name outside of its engine; judge a query without them")
            return spell_term(quad.object)
    raise _Unreadable(f"{term!r} is not a term")
