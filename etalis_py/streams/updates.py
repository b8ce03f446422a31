"""A stream of updates to the background knowledge (``--background-stream``): JSON lines in order of time.

    {"time": 10, "add": ":a :worksFor :b ."}
    {"time": 20, "remove": "<urn:a> <urn:p> 1 .", "add": "<urn:a> <urn:p> 2 .", "graph": "urn:g"}

``add`` and ``remove`` are Turtle (the empty prefix is ``http://example.org/``), ``graph`` is the IRI of a named graph,
or the default graph if it is left out.  An update at t holds from the first instant after t.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import msgspec
from etalis_rules.terms import iri

from etalis_py.events import Triple
from etalis_py.rdf import read_turtle
from etalis_py.streams.clock import TimeError, clock_of
from etalis_py.streams.errors import StreamError

_FIELDS = ("time", "add", "remove", "graph")
_decoder = msgspec.json.Decoder(float_hook=Decimal)


@dataclass(frozen=True, slots=True)
class Update:
    """One change, with its place for messages."""

    time: int
    add: tuple[Triple, ...]
    remove: tuple[Triple, ...]
    graph: str
    source: str
    line: int


def read_updates(path: str, unit: str = "s") -> Iterator[Update]:
    """The updates of a file, which must be in order of time."""
    last: int | None = None
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    update = _update(line, path, number, unit)
                except StreamError as error:
                    raise error.at(path, number, line.rstrip()) from None
                if last is not None and update.time < last:
                    raise StreamError(
                        "this update is earlier than the one before", source=path, line=number, hint="sort them by time"
                    )
                last = update.time
                yield update
    except FileNotFoundError:
        raise StreamError("there is no such file", source=path, hint="check the path of the updates") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StreamError(f"cannot be read: {getattr(error, 'strerror', None) or error}", source=path) from None


def _update(line: str, source: str, number: int, unit: str) -> Update:
    try:
        record = _decoder.decode(line)
    except msgspec.DecodeError as error:
        raise StreamError(f"this is not JSON: {error}", hint="write one JSON object a line") from None
    unknown = [name for name in record if name not in _FIELDS] if isinstance(record, dict) else ["?"]
    if unknown or "time" not in record or not ("add" in record or "remove" in record):
        raise StreamError("this is not an update", hint='write {"time": t, "add": "…", "remove": "…", "graph": "…"}')
    when, graph = record["time"], record.get("graph", "")
    if isinstance(when, bool) or not isinstance(when, int | str | Decimal) or not isinstance(graph, str):
        raise StreamError("time is a number or a dateTime, graph an IRI", hint="quote dateTimes and IRIs")
    try:
        time = clock_of(when, unit).parse(when)
    except TimeError as error:
        raise StreamError(str(error)) from None
    add, remove = stated(record.get("add", "")), stated(record.get("remove", ""))
    return Update(time, add, remove, graph_named(graph), source, number)


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
