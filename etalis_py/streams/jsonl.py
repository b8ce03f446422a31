"""JSON lines → events: one message a line.

    {"time": 17, "triples": "<urn:a> <urn:p> 1 ."}
    {"time": ["2016-03-01T13:00:00Z", "2016-03-01T13:00:10Z"], "triples": […], "graph": "urn:g", "stream": "urn:s"}
    {"punctuate": 18}

``triples`` is N-Triples or Turtle, as one text or a list of statements.  Instead of ``time`` there may be ``start`` and
``end``, which is how the matches of a CONSTRUCT query are written: one run's output is another's input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any

import msgspec
from etalis_rules.terms import iri, is_blank, is_iri

from etalis_py.streams.blanks import Row
from etalis_py.streams.clock import TimeError
from etalis_py.streams.elements import Context, Item, message_events
from etalis_py.streams.errors import StreamError
from etalis_py.streams.quads import reason_of, split_lines
from etalis_py.streams.sources import now
from etalis_py.streams.timing import Idle, Span
from etalis_py.streams.turtle import parse_rows

_decode: Callable[[str], Any] = msgspec.json.Decoder(float_hook=Decimal).decode


def jsonl_events(blocks: Iterable[tuple[str, int] | None], context: Context) -> Iterator[Item]:
    """The events of each line; a bad line is reported and left out whole."""
    stream = context.stream
    for block in blocks:
        if block is None:
            yield Idle(now())
            continue
        text, number = block
        for line in text.split("\n"):
            if line and not line.isspace():
                try:
                    yield from _line_events(line, number, context)
                except StreamError as error:
                    context.report(error.at("", number, line))
                finally:
                    context.stream = stream
            number += 1


def _line_events(line: str, number: int, context: Context) -> Iterator[Item]:
    try:
        record = _decode(line)
    except msgspec.DecodeError as error:
        raise StreamError(f"this is no JSON: {error}", hint="write one JSON object a line") from None
    if not isinstance(record, dict):
        raise StreamError("expected a JSON object", hint='write {"time": …, "triples": "…"}')
    if "punctuate" in record:
        yield context.punctuation(_span(record["punctuate"], context)[1])
        return
    triples = record.get("triples")
    if triples is None:
        raise StreamError(f"no 'triples' here, only {', '.join(map(repr, record)) or 'nothing'}", hint=_SHAPE)
    if isinstance(triples, list) and all(isinstance(one, str) for one in triples):
        triples = "\n".join(one if one.rstrip().endswith(".") else f"{one} ." for one in triples)
    if not isinstance(triples, str):
        raise StreamError("'triples' is neither a text nor a list of texts", hint=_SHAPE)
    graph = _name(record.get("graph"), "graph")
    if record.get("stream") is not None:
        context.stream = _name(record["stream"], "stream")
    yield from message_events(read_rows(triples, graph), context, number, _time(record, context))


_SHAPE = 'expected {"time": t, "triples": "N-Triples or Turtle"}'


def read_rows(text: str, graph: str) -> list[Row]:
    """The triples of an N-Triples or Turtle text, all in one graph."""
    rows = [row for row in split_lines(text) if row[0] or row[5].strip()]
    if all(row[0] and not row[3] for row in rows):
        return [(s, p, o, graph) for s, p, o, *_ in rows]
    try:
        return [(s, p, o, graph) for s, p, o, _ in parse_rows(text, graphs=False)]
    except (SyntaxError, ValueError) as error:
        raise StreamError(f"the triples cannot be read: {reason_of(error)}", hint="check them as Turtle") from None


def _time(record: dict[str, Any], context: Context) -> Span | None:
    if record.get("time") is not None:
        return _span(record["time"], context)
    start, end = record.get("start"), record.get("end")
    if start is None and end is None:
        return None
    if start is None or end is None:
        raise StreamError("'start' and 'end' come together", hint="give both, or 'time'")
    return _span([start, end], context)


def _span(value: object, context: Context) -> Span:
    try:
        return context.times.of_value(value)
    except TimeError as error:
        raise StreamError(f"the time cannot be read: {error}") from None


def _name(value: object, key: str) -> str:
    if value is None or value == "":
        return ""
    if not isinstance(value, str):
        raise StreamError(f"{key!r} is not a text", hint=f'write the IRI of the {key} as "urn:example"')
    if is_blank(value) and key == "graph":
        return value
    return value if is_iri(value) and value.endswith(">") else iri(value)
