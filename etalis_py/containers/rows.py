"""Rows of CSV or JSON → graphs, one for each row: by the mapping of their container, or by the columns that are named.

This runs in a process with limits on its time and memory, as a mapping multiplies what a body says.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from typing import Any

from etalis_rules.messages import how_many
from etalis_rules.terms import literal

from etalis_py.events import Event, Retraction
from etalis_py.events.clock import render_datetime
from etalis_py.events.errors import StreamError
from etalis_py.streams.csv_mapping import read_mapping
from etalis_py.streams.csv_rows import csv_events
from etalis_py.streams.draft import Samples, in_one_line
from etalis_py.streams.drafting import Naming
from etalis_py.streams.elements import Item, StreamContext
from etalis_py.streams.formats import json_reading
from etalis_py.streams.json_arrays import array_events, is_array
from etalis_py.streams.jsonl import jsonl_events
from etalis_py.streams.options import ReadOptions
from etalis_py.streams.reader import context_of
from etalis_py.streams.samples import csv_samples, object_samples

from . import vocabulary as v
from .graphs import CSV, DATE_TIME, DATE_TIME_STAMP, JSON, NDJSON, TURTLE, Base, ReceivedGraph, ntriples, parse
from .messages import ReadRows, RowsRead
from .nesting import check_depth
from .problems import Problem

_BODY = "the body"
_EMPTY = "the cell of the subject is empty, or all others are"


def read_rows(message: ReadRows) -> RowsRead:
    """The graphs of the rows of a body, and what was left out."""
    if message.media_type != CSV:
        check_depth(message.data, message.media_type, message.limits.depth)
    try:
        text = message.data.decode("utf-8-sig")
        guesses: list[str] = []
        options = ReadOptions(mapping=_mapping(text, message, guesses))
        context = context_of(options, _BODY)
        events = list(_events(_items(text, message.media_type, options, context)))
    except UnicodeDecodeError as error:
        raise Problem("bad-request", f"the body is not UTF-8: {error}") from None
    except StreamError as error:
        raise Problem("bad-request", str(error)) from None
    if not events:
        raise Problem("bad-request", _nothing(context))
    return RowsRead(_graphs(events, message), [*guesses, *_left_out(context)])


def _nothing(context: StreamContext) -> str:
    """Why there is no graph."""
    if context.counters.empty:
        return f"no row makes a graph, because {_EMPTY}"
    return "no rows found; send CSV with a header, a JSON array, or a JSON object per line"


def _left_out(context: StreamContext) -> Iterator[str]:
    """What is not in the graphs, or probably not as it was meant."""
    if empty := context.counters.empty:
        yield f"{how_many(empty, 'row makes', 'rows make')} no graph, because {_EMPTY}"
    yield from filter(None, (context.cut_short, context.left_out, context.doubt))


def _events(items: Iterable[Item]) -> Iterator[Event]:
    for item in items:
        if isinstance(item, Retraction):
            raise StreamError("a row cannot withdraw others", hint="post a graph that withdraws them by their names")
        if isinstance(item, Event):
            yield item


def _items(text: str, media_type: str, options: ReadOptions, context: StreamContext) -> Iterator[Item]:
    if media_type == CSV:
        assert options.mapping is not None
        return csv_events([(text, 1)], read_mapping(options.mapping), context, tabs=False)
    reading = json_reading(options, context)
    if media_type == NDJSON:
        return jsonl_events([(text, 1)], context, reading)
    return array_events([(_as_array(text), 1)], context, reading)


def _as_array(text: str) -> str:
    """One object is an array of one."""
    return text if is_array(text[:1000].encode()) else f"[{text}]"


def _mapping(text: str, message: ReadRows, guesses: list[str]) -> dict[str, Any]:
    """The mapping: what the container says, or else what the columns that are named make; ``guesses`` gets the rest."""
    naming = Naming(message.time, message.subject)
    if message.mapping:
        if naming:
            raise Problem("bad-request", "the container has a mapping: leave time and subject out of the request")
        return tomllib.loads(message.mapping)
    samples = (
        csv_samples(text, _BODY)
        if message.media_type == CSV
        else object_samples(_as_array(text) if message.media_type == JSON else text)
    )
    if not naming:
        raise Problem("bad-request", _advice(samples))
    return naming.mapping(samples, _BODY, notice=guesses.append)


def _advice(samples: Samples) -> str:
    guess = in_one_line(Naming().drafted(samples))
    return (
        "say which columns have the time and the subject of a row: ?time=COLUMN&subject=COLUMN (subject=_:row for a "
        f"node of each row); or give the container a mapping, {v.MAPPING}. A guess from the columns: {guess}"
    )


def _graphs(events: list[Event], message: ReadRows) -> list[ReceivedGraph]:
    """The graph of each event, with its time by the relation that orders the container."""
    base, path, limits = Base(message.inner, message.outer), message.path, message.limits
    graphs, triples, size = [], 0, 0
    for event in events:
        text = ntriples(event.triples) + f"<> {message.order} {_stamp(event.end, DATE_TIME_STAMP)} .\n".encode()
        if event.start != event.end:
            text += f"<> {v.STARTED_AT} {_stamp(event.start, DATE_TIME)} .\n".encode()
        graphs.append(parse(text, TURTLE, path, base, limits.triples, limits.longest))
        triples, size = triples + len(graphs[-1].triples), size + len(text)
        if triples > limits.triples or size > limits.longest:
            raise Problem(
                "too-large",
                f"the rows make more than {limits.triples} triples (triples_per_graph) or {limits.longest} bytes "
                "(graph_bytes); post fewer at once",
            )
    return graphs


def _stamp(time: int, datatype: str) -> str:
    return literal(render_datetime(time), datatype)
