"""JSON lines → events: one message per line.

    {"time": 17, "triples": "<urn:a> <urn:p> 1 ."}
    {"time": ["2016-03-01T13:00:00Z", "2016-03-01T13:00:10Z"], "triples": […], "graph": "urn:g", "stream": "urn:s"}
    {"punctuate": 18}
    {"time": 17, "triples": "<urn:a> <urn:p> 1 .", "retract": true}

``triples`` is N-Triples or Turtle, as one text or a list of statements; ``:x`` is ``<http://example.org/x>``, and a
query's prefixes are known if they are given.  Instead of ``time`` there may be ``start`` and ``end``, which is how the
matches of a CONSTRUCT query are written: one run's output is another's input.

With ``retract`` the line withdraws what an earlier one stated for that time; ``retracted``, which marks matches that
are taken back, means the same.

Plain objects are read by a *mapping* (``csv_mapping``; ``{sensor.id}`` is a key inside an object) or by a JSON-LD
*context*.  Their time is what the mapping says, otherwise that of ``time``, or of ``start`` and ``end``:

    {"time": 17, "symbol": "ACME", "price": 10.5}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyoxigraph as ox
from etalis_rules.messages import closest
from etalis_rules.terms import FALSE, TRUE, XSD, iri, is_blank, is_iri, literal

from etalis_py.events.clock import TimeError
from etalis_py.events.errors import StreamError
from etalis_py.events.statement_lines import reason_of, split_lines
from etalis_py.streams.blanks import Row
from etalis_py.streams.csv_mapping import RowMapping, retracts_row, row_events, rows_of
from etalis_py.streams.draft import ROW, draft, toml
from etalis_py.streams.elements import Item, StreamContext, withdrawn
from etalis_py.streams.message_elements import message_events
from etalis_py.streams.record_keys import RETRACT_KEYS, TIME_KEYS, Growing, elements_of, value_of
from etalis_py.streams.sources import Block, Burst, now
from etalis_py.streams.templates import HOLE, Typed, guess
from etalis_py.streams.timing import Idle, Span
from etalis_py.streams.turtle import parse_rows
from etalis_py.values.oxigraph_terms import spell


class Number(str):
    """A number with a point or an exponent, as written."""

    __slots__ = ()


NO_JSON = (msgspec.DecodeError, RecursionError)  # what a decoder raises
_decode: Callable[[str], Any] = msgspec.json.Decoder(float_hook=Number).decode
_HALF = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])")
_NO_NUMBER = re.compile(r"[:,\[]\s*-?(?:NaN|Infinity)\b")
_BASE = "http://example.org/"
_KEYS = {*TIME_KEYS, "triples", "graph", "stream", "punctuate", *RETRACT_KEYS}


def cell_of(value: Any, name: str) -> str:
    """A JSON value as a cell: a number keeps its spelling, a text is a text whatever it looks like."""
    if value is None:
        return ""
    if isinstance(value, Number):
        return Typed(value, guess(value))
    if isinstance(value, str):
        return Typed(value, literal(value))
    if isinstance(value, bool):
        return Typed("true" if value else "false", TRUE if value else FALSE)
    if isinstance(value, int):
        return Typed(str(value), literal(str(value), XSD + "integer"))
    kind = "an object" if isinstance(value, dict) else "a list"
    raise StreamError(
        f"{name!r} is {kind}",
        hint=f"name a key inside it, as {{{name}.key}}"
        if isinstance(value, dict)
        else f"flatten it first, or name an element: {{{name}[]}}, or {{{name}[].key}}",
    )


@dataclass(frozen=True, slots=True)
class JsonOptions:
    """How objects become triples: by a mapping, or by a JSON-LD context (its text); otherwise they have ``triples``.

    The prefixes are known in Turtle.
    """

    mapping: RowMapping | None = None
    context: str = ""
    names: Mapping[str, str] = field(default_factory=lambda: {"": _BASE})
    cell: Callable[[Any, str], str] = cell_of
    """The cell of a value, for the templates of a mapping; the second argument is its key."""
    prefixes: str = field(init=False, default="")  # what is put before Turtle: ``@prefix : <…> .``
    growing: Growing | None = field(init=False, default=None)  # the mapping, if it takes the rest

    def __post_init__(self) -> None:
        declared = (f"@prefix {name}: {iri(address)} ." for name, address in self.names.items())
        object.__setattr__(self, "prefixes", " ".join(declared))
        if self.mapping is not None and self.mapping.rest is not None:
            object.__setattr__(self, "growing", Growing(self.mapping))


def read_context(context: str | Path | Mapping[str, Any]) -> str:
    """The text of a JSON-LD context from a file, or from a dictionary.

    The keys of times are not predicates unless it says so.
    """
    name = "the context" if isinstance(context, Mapping) else str(context)
    try:
        parsed = context if isinstance(context, Mapping) else msgspec.json.decode(Path(context).read_bytes())
    except OSError as error:
        raise StreamError(f"the context cannot be read: {error.strerror}", source=name) from None
    except NO_JSON as error:
        wrong = "is nested too deeply" if isinstance(error, RecursionError) else f"is not JSON: {error}"
        raise StreamError(f"the context {wrong}", source=name) from None
    if not isinstance(parsed, Mapping):
        raise StreamError("a context is a JSON object", source=name, hint='such as {"@vocab": "http://example.org/"}')
    inner = parsed.get("@context", parsed)
    both = [dict.fromkeys((*TIME_KEYS, "punctuate")), *(inner if isinstance(inner, list) else [inner])]
    return msgspec.json.encode(both).decode()


def jsonl_events(
    blocks: Iterable[Block],
    context: StreamContext,
    reading: JsonOptions = JsonOptions(),
) -> Iterator[Item]:
    """The events of each line; a bad line is reported and left out whole."""
    for block in blocks:
        if block is None:
            yield Idle(now())
            continue
        if isinstance(block, Burst):
            yield block
            continue
        text, number = block
        for line in text.split("\n"):
            if line and not line.isspace():
                yield from line_events(line, number, context, reading)
            number += 1


def line_events(line: str, number: int, context: StreamContext, reading: JsonOptions) -> Iterator[Item]:
    """The events of one line."""
    stream = context.stream
    try:
        yield from _line_items(line, number, context, reading)
    except StreamError as error:
        context.report(error.at("", number, line))
    finally:
        context.stream = stream


def no_json(line: str, error: Exception) -> StreamError:
    """What is wrong with a line that is not JSON, by one of ``NO_JSON``."""
    if isinstance(error, RecursionError):
        return StreamError("this is nested too deeply", hint="flatten it first")
    if "surrogate" in str(error) or _HALF.search(line):  # at the end of a text, the line seems to be cut off
        return StreamError(
            "this is not JSON: a \\u escape is half of a surrogate pair, which is no character",
            hint="write the other half behind it, as in \\ud83d\\ude00, or the character itself",
        )
    hint = "JSON has no NaN and no Infinity: write null" if _NO_NUMBER.search(line) else "write one JSON object a line"
    return StreamError(f"this is not JSON: {error}", hint=hint)


def _line_items(line: str, number: int, context: StreamContext, reading: JsonOptions) -> Iterator[Item]:
    """The items that a line states or withdraws."""
    try:
        record = _decode(line)
    except NO_JSON as error:
        raise no_json(line, error) from None
    if not isinstance(record, dict):
        raise StreamError("expected a JSON object", hint='write {"time": …, "triples": "…"}')
    yield from record_items(record, line, number, context, reading)


def record_items(
    record: dict[str, Any], line: str, number: int, context: StreamContext, reading: JsonOptions
) -> Iterator[Item]:
    """The items that an object states or withdraws; ``line`` is its text, for JSON-LD and for messages."""
    retracts = _retracts(record, reading)
    items = _record_items(record, line, number, context, reading)
    yield from withdrawn(items) if retracts else items


def _retracts(record: dict[str, Any], reading: JsonOptions) -> bool:
    """Whether a line withdraws what it states.  A mapping may use these keys for something else."""
    keys = [
        key for key in RETRACT_KEYS if key in record and (reading.mapping is None or key not in reading.mapping.used)
    ]
    answers = [record.pop(key) for key in keys]
    for key, answer in zip(keys, answers, strict=True):
        if answer not in (None, True, False):
            raise StreamError(f"{key!r} is neither true nor false", hint=f'{_SHAPE[:-1]}, "retract": true}}')
    return any(answers)


def _record_items(
    record: dict[str, Any], line: str, number: int, context: StreamContext, reading: JsonOptions
) -> Iterator[Item]:
    if "punctuate" in record:
        yield context.punctuation(_span(record["punctuate"], context)[1])
        return
    if reading.mapping is not None and ("triples" not in record or "triples" in reading.mapping.used):
        mapping = reading.mapping if reading.growing is None else reading.growing.take(record)
        for one in elements_of(record, mapping.used, without=mapping.outlives_lists):
            yield from _mapped(one, reading, mapping, number, line, context)
        return
    if reading.context:
        rows = _expanded(line, reading.context)
        if not rows and not context.unmade:
            keys = ", ".join(key for key in record if key not in TIME_KEYS)
            context.unmade = f"the context gives no meaning to any of {keys}"
        yield from message_events(rows, context, number, _time(record, context))
        return
    triples = record.get("triples")
    if triples is None:
        raise StreamError(
            f"no 'triples' here, only {', '.join(map(repr, record)) or 'nothing'}", hint=_shape_hint(record)
        )
    if isinstance(triples, list) and all(isinstance(one, str) for one in triples):
        triples = joined(triples)
    if not isinstance(triples, str):
        raise StreamError("'triples' is neither a text nor a list of texts", hint=_SHAPE)
    graph = term_of(record.get("graph"), "graph")
    if record.get("stream") is not None:
        context.stream = term_of(record["stream"], "stream")
    rows = read_rows(triples, graph, reading.prefixes)
    span = _time(record, context)
    if span is None:
        _refuse_misspelt(record)
    yield from message_events(rows, context, number, span)


def _refuse_misspelt(record: dict[str, Any]) -> None:
    """Refuse a line without a time if one of its keys is much like ``time``; any other has its time of arrival."""
    for key in record:
        if key not in _KEYS and closest(key, ("time",)):
            raise StreamError(f"the key {key!r} is not known", hint="did you mean 'time'?")


def _mapped(
    record: dict[str, Any], reading: JsonOptions, mapping: RowMapping, number: int, line: str, context: StreamContext
) -> Iterator[Item]:
    """The events of a plain object by a mapping."""
    growing = reading.growing
    values = {name: value_of(record, name) for name in mapping.in_order}
    if growing is not None:
        values = growing.own(values, context)
    cells = {name: reading.cell(value, name) for name, value in values.items()}
    if not any(cells[name] for name in mapping.columns_of_terms) and mapping.columns_of_terms:
        if growing is not None:
            raise StreamError("this object has no value under any of its keys", hint="leave it out")
        wanted = ", ".join(sorted(mapping.columns_of_terms))
        raise StreamError(
            f"none of the keys that the mapping uses is here: it uses {wanted}, the object has "
            f"{', '.join(record) or 'none'}",
            hint="correct the mapping, or read another file",
        )
    if not context.unmade and growing is None:
        context.unmade = _unmade(record, cells, mapping)
    if mapping.times:
        _refuse_timeless(record, cells, mapping)
        yield from row_events(cells, mapping, context, number, line)
        return
    span = _time(record, context)
    if mapping.stream is not None:
        context.stream = mapping.stream.fill(cells) or context.stream
    items = message_events(rows_of(cells, mapping, context), context, number, span)
    yield from withdrawn(items) if retracts_row(cells, mapping) else items


def _refuse_timeless(record: dict[str, Any], cells: Mapping[str, str], mapping: RowMapping) -> None:
    """An object without the keys of the mapping's time is no event."""
    absent = [hole for template in mapping.times for hole in template.holes if not cells[hole]]
    if absent:
        raise StreamError(
            f"the mapping takes the time from {absent[0]}, which has no value here", hint=_advice(absent[0], record)
        )


def _advice(absent: str, record: dict[str, Any]) -> str:
    near = closest(absent, [key for key in record if key != absent])
    return f"did you mean {near}?" if near else f"the keys are {', '.join(record)}"


def _unmade(record: dict[str, Any], cells: Mapping[str, str], mapping: RowMapping) -> str:
    """The keys of the mapping that an object lacks, as the reason why it gave no triple."""
    absent = sorted(name for name in mapping.columns_of_terms if not cells[name])
    if not absent:
        return ""
    advice = _advice(absent[0], record)
    return f"the mapping uses {', '.join(absent)}, which the first line does not have; {advice}"


def _expanded(line: str, context: str) -> list[Row]:
    """The triples of a plain object by a JSON-LD context."""
    body = line.lstrip()[1:].lstrip()
    document = f'{{"@context":{context}{"" if body.startswith("}") else ","}{body}'
    try:
        return [spell(quad) for quad in ox.parse(document, format=ox.RdfFormat.JSON_LD, base_iri=_BASE)]
    except (SyntaxError, ValueError) as error:
        raise StreamError(f"this is not JSON-LD by the context: {reason_of(error)}") from None


_SHAPE = 'expected {"time": t, "triples": "N-Triples or Turtle"}'


def has_triples(record: Mapping[Any, Any]) -> bool:
    """Whether an object needs no mapping."""
    return "triples" in record or "punctuate" in record


def _shape_hint(record: dict[str, Any]) -> str:
    """A hint for an object without triples: a mapping that would read it."""
    samples = {name: [str(value)] for name, value in record.items() if not isinstance(value, (dict, list))}
    if len(samples) < 2:
        return _SHAPE
    made = draft(samples)
    times, subject = HOLE.findall(str(made.get("time", ""))), HOLE.findall(made["triple"][0]["subject"])
    named = f"--time {times[0]} --subject {subject[0] if subject else ROW}, or " if len(times) == 1 else ""
    return f"{_SHAPE}; a plain object needs {named}a mapping, such as\n{toml(made).rstrip()}"


def joined(statements: Iterable[str]) -> str:
    """Statements as one text; each may lack its full stop."""
    return "\n".join([one if one.rstrip()[-1:] == "." else f"{one} ." for one in statements])


def is_turtle(text: str) -> bool:
    """Whether a text can be read as Turtle."""
    try:
        list(parse_rows(text, graphs=False))
    except (SyntaxError, ValueError):
        return False
    return True


def read_rows(text: str, graph: str, prefixes: str = "") -> list[Row]:
    """The triples of an N-Triples or Turtle text, all in one graph."""
    rows = [row for row in split_lines(text) if row[0] or row[5].strip()]
    if all(row[0] and not row[3] for row in rows):
        return [(s, p, o, graph) for s, p, o, *_ in rows]
    try:
        return [(s, p, o, graph) for s, p, o, _ in parse_rows(f"{prefixes}\n{text}", graphs=False)]
    except (SyntaxError, ValueError) as error:
        hint = "check them as Turtle: a statement ends with a full stop, as in :acme :price 10 ."
        raise StreamError(f"the triples cannot be read: {reason_of(error)}", hint=hint) from None


def _time(record: dict[str, Any], context: StreamContext) -> Span | None:
    if "time" in record:
        if record["time"] is None:
            raise StreamError(
                "'time' is null",
                hint="write a number, a dateTime or two in a list; a line without it has the time of its arrival",
            )
        return _span(record["time"], context)
    start, end = record.get("start"), record.get("end")
    if start is None and end is None:
        return None
    if start is None or end is None:
        raise StreamError("'start' and 'end' come together", hint="give both, or 'time'")
    return _span([start, end], context)


def _span(value: object, context: StreamContext) -> Span:
    given = value if isinstance(value, list) and len(value) == 2 else [value]
    texts = [one.strip() for one in given if isinstance(one, str) and not isinstance(one, Number)]
    try:
        if len(texts) == len(given):
            return context.times.of_cells(texts)
        return context.times.of_value(_exact(value))
    except TimeError as error:
        raise StreamError(f"the time cannot be read: {error}") from None


def _exact(value: object) -> object:
    if isinstance(value, list):
        return [_exact(one) for one in value]
    return Decimal(value) if isinstance(value, Number) else value


def term_of(value: object, key: str) -> str:
    if value is None or value == "":
        return ""
    if not isinstance(value, str):
        raise StreamError(f"{key!r} is not a text", hint=f'write the IRI of the {key} as "urn:example"')
    if is_blank(value) and key == "graph":
        return value
    return value if is_iri(value) and value.endswith(">") else iri(value)
