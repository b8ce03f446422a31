"""A stream of updates to the background knowledge (``--background-stream``): JSON lines, or dicts, in order of time.

    {"time": 10, "add": ":a :worksFor :b ."}
    {"time": 20, "remove": "<urn:a> <urn:p> 1 .", "add": "<urn:a> <urn:p> 2 .", "graph": "urn:g"}

``add`` and ``remove`` are Turtle (the empty prefix is ``http://example.org/``), ``graph`` is the IRI of a named graph,
or the default graph if it is left out.  An update at t holds from the first instant after t.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec
from etalis_rules.terms import iri

from etalis_py.events import Triple
from etalis_py.events.clock import TimeError, clock_of
from etalis_py.events.errors import StreamError, no_such_file
from etalis_py.streams.jsonl import NO_JSON, no_json
from etalis_py.values.oxigraph_terms import read_turtle

Updates = Any
"""A file, dicts as the lines of one, updates, or a table with a time (``reference.table_updates``)."""

FIELDS = ("time", "add", "remove", "graph")
_SHAPE = '{"time": t, "add": "…", "remove": "…", "graph": "…"}'
_decoder = msgspec.json.Decoder(float_hook=Decimal)


@dataclass(frozen=True, slots=True)
class TimedUpdate:
    """One change, with its place for messages; ``replaces``: what is added takes the place of other objects."""

    time: int
    add: tuple[Triple, ...]
    remove: tuple[Triple, ...]
    graph: str
    source: str
    line: int
    replaces: bool = False


def read_updates(path: str | os.PathLike[str], unit: str = "s") -> Iterator[TimedUpdate]:
    """The updates of a file, which must be in order of time."""
    source = os.fspath(path)
    try:
        with open(source, encoding="utf-8") as file:
            yield from _in_order(
                _read(number, line, source, unit) for number, line in enumerate(file, 1) if line.strip()
            )
    except FileNotFoundError:
        raise no_such_file(source, "updates") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StreamError(f"cannot be read: {getattr(error, 'strerror', None) or error}", source=source) from None


def updates_of(given: Updates, unit: str = "s") -> Iterator[TimedUpdate]:
    """The updates of a file or of dicts; numbers count in ``unit``.

    >>> [(update.time, update.graph) for update in updates_of([{"time": 10, "add": ":a :p :b .", "graph": "urn:g"}])]
    [(10000000, '<urn:g>')]
    """
    if isinstance(given, str | os.PathLike):
        return read_updates(given, unit)
    if not isinstance(given, Iterable):
        raise TypeError(f"updates are a file of JSON lines, or dicts such as {_SHAPE}, not {given!r}")
    return _in_order(
        record if isinstance(record, TimedUpdate) else _taken(record, "the updates", number, str(record), unit)
        for number, record in enumerate(given, 1)
    )


def _in_order(updates: Iterable[TimedUpdate]) -> Iterator[TimedUpdate]:
    last: int | None = None
    for update in updates:
        if last is not None and update.time < last:
            raise StreamError(
                "this update is earlier than the one before",
                source=update.source,
                line=update.line,
                hint="sort them by time",
            )
        last = update.time
        yield update


def _read(number: int, line: str, source: str, unit: str) -> TimedUpdate:
    try:
        record = _decoder.decode(line)
    except NO_JSON as error:
        raise no_json(line, error).at(source, number, line.rstrip()) from None
    return _taken(record, source, number, line.rstrip(), unit)


def _taken(record: object, source: str, number: int, text: str, unit: str) -> TimedUpdate:
    try:
        return _update(record, source, number, unit)
    except StreamError as error:
        raise error.at(source, number, text) from None


def _update(record: Any, source: str, number: int, unit: str) -> TimedUpdate:
    unknown = [name for name in record if name not in FIELDS] if isinstance(record, Mapping) else ["?"]
    if unknown or "time" not in record or not ("add" in record or "remove" in record):
        raise StreamError("this is not an update", hint=f"write {_SHAPE}")
    when, graph = record["time"], record.get("graph", "")
    if isinstance(when, float):
        when = Decimal(repr(when))
    if isinstance(when, bool) or not isinstance(when, int | str | Decimal) or not isinstance(graph, str):
        raise StreamError("time is a number or a dateTime, graph an IRI", hint="quote dateTimes and IRIs")
    try:
        time = clock_of(when, unit).parse(when)
    except TimeError as error:
        raise StreamError(str(error)) from None
    add, remove = stated(record.get("add", "")), stated(record.get("remove", ""))
    return TimedUpdate(time, add, remove, graph_named(graph), source, number)


def graph_named(graph: str) -> str:
    """The name of a graph in angle brackets, which the given name may have or lack; empty: the default graph."""
    return iri(graph) if graph and not graph.startswith("<") else graph


def stated(text: object) -> tuple[Triple, ...]:
    """The triples of a Turtle text that an update adds or removes."""
    if not isinstance(text, str):
        raise StreamError("add and remove are Turtle in a text", hint='write "add": "<urn:a> <urn:p> 1 ."')
    try:
        triples = read_turtle(text)
    except SyntaxError as error:
        raise StreamError(f"this is not Turtle: {error.msg}", hint="end every statement with a full stop") from None
    except ValueError as error:
        raise StreamError(str(error)) from None
    if any(term[:2] == "_:" for triple in triples for term in triple):
        raise StreamError("a blank node cannot be named again by a later update", hint="use an IRI")
    return triples
