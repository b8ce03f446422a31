"""Messages → timed events: the element is the dataset between two delimiters, one line of JSON, one frame.

Named graphs with a time in the message's default graph are events with that time; everything else has the message's
time: the value of the time predicate anywhere in the message, or the time of its arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from etalis_py.events import Retraction, Triple
from etalis_py.events.errors import StreamError
from etalis_py.streams.blanks import Row, blanks_in, relabel
from etalis_py.streams.elements import MARKS, RETRACTS, Item, StreamContext, withdrawn_graph
from etalis_py.streams.quads import BROKEN, END_OF_MESSAGE, Quad
from etalis_py.streams.sources import now
from etalis_py.streams.timing import Idle, Span, Statement, span_of


def message_events(rows: list[Row], context: StreamContext, line: int, span: Span | None = None) -> Iterator[Item]:
    """The events of one message; ``span`` is its time if something outside the message gives it."""
    context.counters.messages += 1
    if not rows:
        context.counters.empty += 1
        return
    timing, times = context.timing, context.times
    try:
        rows, withdraws = _without_withdrawals(rows, line)
        own = {} if span else _graph_spans(rows, context, line)
        if span is None:
            inside = [Statement(p, o, line) for s, p, o, g in rows if p in timing.all and (g or s not in own)]
            timed = span_of(inside, timing, times) if inside else None
            rest = any(g not in own if g else not (s in own and p in own[s][1]) for s, p, o, g in rows)
            span = timed[0] if timed else None
            if span is None and rest:
                # Statements only about timed graphs have the time of the first of these graphs.
                about_own = all(g in own if g else s in own for s, p, o, g in rows)
                span = next(iter(own.values()))[0] if own and about_own else context.arrived()
        stamp = "" if span is None else f"{span[0]}/{span[1]}"
        if any(map(blanks_in, rows)):
            renamed = relabel(rows, context.stream, stamp)
            if own:
                # The names of graphs may have changed along with the labels: read their times again.
                own = _graph_spans(renamed, context, line)
            rows = list(renamed)
    except StreamError as error:
        context.refuse(error, [row[:3] for row in rows], "", line)
        return
    groups: dict[str, list[Triple]] = {}
    for s, p, o, g in rows:
        if g or s not in own:
            groups.setdefault(g, []).append((s, p, o))
        elif p not in own[s][1]:
            groups.setdefault(s, []).append((s, p, o))
    last = None
    for graph, triples in groups.items():
        earlier = withdraws.get(graph)
        name = graph if earlier is None else earlier
        event = context.event(own[graph][0] if graph in own else span, triples, name)  # type: ignore[arg-type]
        last = event.end if last is None else max(last, event.end)
        yield event if earlier is None else Retraction._make(event)
    if context.close_on_message and last is not None:
        yield context.punctuation(last)


def _without_withdrawals(rows: list[Row], line: int) -> tuple[list[Row], dict[str, str]]:
    """The rows without those that mark graphs as withdrawals; and these graphs, with the graphs they withdraw from."""
    names = {g for *_, g in rows if g}
    about: dict[str, list[Statement]] = {}
    for s, p, o, g in rows:
        if not g and p in RETRACTS and s in names:
            about.setdefault(s, []).append(Statement(p, o, line))
    if not about:
        return rows, {}
    rest = [(s, p, o, g) for s, p, o, g in rows if g or p not in RETRACTS or s not in names]
    graphs = {name: withdrawn_graph(statements) for name, statements in about.items()}
    return rest, {name: graph for name, graph in graphs.items() if graph is not None}


def _graph_spans(rows: Iterable[Row], context: StreamContext, line: int) -> dict[str, tuple[Span, frozenset[str]]]:
    """The graphs of a message that have a time in its default graph."""
    rows = list(rows)
    names = {g for *_, g in rows if g}
    spans = {}
    if names:
        about: dict[str, list[Statement]] = {}
        for s, p, o, g in rows:
            if not g and s in names and p in context.timing.all:
                about.setdefault(s, []).append(Statement(p, o, line))
        for name, statements in about.items():
            timed = span_of(statements, context.timing, context.times)
            if timed:
                spans[name] = timed
    return spans


def log_events(quads: Iterable[Quad | None], context: StreamContext) -> Iterator[Item]:
    """The events of a message log read line by line; a message with an unreadable line is dropped as a whole."""
    rows: list[Row] = []
    start, broken, delimited = 0, False, False
    for quad in quads:
        if quad is None:
            yield Idle(now())
        elif quad in MARKS:
            yield MARKS[quad]
        elif quad is END_OF_MESSAGE:
            if not broken:
                yield from message_events(rows, context, start)
            rows, start, broken, delimited = [], 0, False, True
        elif quad is BROKEN:
            broken = True
        else:
            if not rows:
                start = quad[4]
            rows.append(quad[:4])
    if not broken and (rows or not delimited):
        yield from message_events(rows, context, start)
