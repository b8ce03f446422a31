"""Quads → timed events: which quads are one element, and when it happened.

*Documents* (.nq, .trig): an element is a named graph; the default graph gives its time and says what else is said of
it.  The time may stand before the graph, right after it, or all times at the front; an element is complete when the
next one begins, so memory holds one element (and the times given in advance).  Default-graph statements about
something that has no time there are elements of their own, one per run of one subject.

*Messages*: the element is the dataset between two delimiters, one line of JSON, one frame.  Named graphs that the
message's default graph times are events with that time; everything else has the message's time: the value of the time
predicate wherever it stands in the message.

In both, an element without a time gets the time of its arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from etalis_py.events import Event, Triple
from etalis_py.streams.blanks import Row, relabel
from etalis_py.streams.clock import MIN_TIME, TimeError
from etalis_py.streams.errors import StreamError
from etalis_py.streams.quads import BROKEN, END_OF_MESSAGE, Quad
from etalis_py.streams.sources import now
from etalis_py.streams.timing import NOW, Arrival, Idle, Punctuation, Span, Statement, TimeReader, Timing, span_of

Item = Event | Punctuation | Idle
REMEMBERED = 100_000


@dataclass(slots=True)
class Counters:
    """What a stream has seen so far.  ``errors`` are skipped parts; ``empty`` are elements without a triple."""

    events: int = 0
    triples: int = 0
    duplicates: int = 0
    arrivals: int = 0
    punctuations: int = 0
    messages: int = 0
    empty: int = 0
    missing: int = 0
    errors: int = 0

    def __add__(self, other: Counters) -> Counters:
        return Counters(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


@dataclass(slots=True)
class Context:
    """What all readers of one stream share."""

    stream: str
    timing: Timing
    times: TimeReader
    arrival: Arrival
    counters: Counters
    report: Callable[[StreamError], None]
    close_on_message: bool = False
    max_pending: int = 1_000_000
    latest: int = MIN_TIME

    def event(self, span: Span, triples: list[Triple], graph: str) -> Event:
        """One event; a triple twice in it is one ([EP] §4.2: a set of occurrences)."""
        start, end = span
        counters = self.counters
        counters.events += 1
        if len(triples) == 1:
            counters.triples += 1
            unique = tuple(triples)
        else:
            unique = tuple(dict.fromkeys(triples))
            counters.triples += len(unique)
            counters.duplicates += len(triples) - len(unique)
        if end > self.latest:
            self.latest = end
        return Event(start, end, unique, self.stream, graph)

    def punctuation(self, time: int) -> Punctuation:
        self.counters.punctuations += 1
        return Punctuation(time)

    def arrived(self) -> Span:
        self.counters.arrivals += 1
        return self.arrival()


class _Document:
    """The open elements of a document; ``finish`` and the others give the events that became complete."""

    __slots__ = ("about", "context", "graph", "line", "loose", "loose_subject", "seen", "triples")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.graph = ""
        self.line = 0
        self.triples: list[Triple] = []
        # What the default graph said of elements that are not complete: their times, and the rest.
        self.about: dict[str, list[Statement]] = {}
        self.loose_subject = ""
        self.loose: list[Statement] = []
        # The intervals of recent elements (None: on arrival), for a graph that is taken up again, and for late times.
        self.seen: dict[str, Span | None] = {}

    def finish(self) -> list[Event]:
        """Complete the open graph."""
        graph, triples, line = self.graph, self.triples, self.line
        self.graph, self.triples = "", []
        if not graph:
            return []
        statements = self.about.pop(graph, None)
        context = self.context
        used: frozenset[str] = frozenset()
        try:
            found = span_of(statements, context.timing, context.times) if statements else None
            if found:
                span, used = found
                self._remember(graph, span)
            else:
                span = self._inner_span(graph, triples, line)
        except StreamError as error:
            _report_element(context, error, triples, graph, line)
            return []
        if statements and len(statements) > len(used):
            triples += [(graph, s.predicate, s.object) for s in statements if s.predicate not in used]
        return [context.event(span, triples, graph)]

    def _inner_span(self, graph: str, triples: list[Triple], line: int) -> Span:
        wanted = self.context.timing.all
        inside = [Statement(p, o, line) for _, p, o in triples if p in wanted]
        found = span_of(inside, self.context.timing, self.context.times) if inside else None
        span = found[0] if found else self.seen.get(graph)
        if span is None:
            self._remember(graph, None)
            return self.context.arrived()
        self._remember(graph, span)
        return span

    def _remember(self, graph: str, span: Span | None) -> None:
        if len(self.seen) >= REMEMBERED:
            for old in list(self.seen)[: REMEMBERED // 2]:
                del self.seen[old]
        self.seen[graph] = span

    def finish_loose(self) -> list[Event]:
        """Complete the run of default-graph statements about something that is no element."""
        subject, loose = self.loose_subject, self.loose
        self.loose_subject, self.loose = "", []
        if not loose:
            return []
        try:
            found = span_of(loose, self.context.timing, self.context.times)
        except StreamError as error:
            _report_element(self.context, error, [(subject, s.predicate, s.object) for s in loose], "", loose[0].line)
            return []
        span = found[0] if found else self.context.arrived()
        return [self.context.event(span, [(subject, s.predicate, s.object) for s in loose], "")]

    def take(self, held: Quad) -> None:
        """Open the graph of a quad that holds its time."""
        s, p, o, self.graph, self.line, _ = held
        self.triples.append((s, p, o))
        self.say_time(held)

    def say_time(self, held: Quad) -> None:
        """The statement in the line after a quad that holds its time."""
        self.say(held[3], self.context.timing.after_graph, held[5], held[4] + 1)

    def leave(self, graph: str) -> list[Event]:
        """Complete what is open, except what was said of a graph that begins now."""
        events = self.finish()
        if self.loose and self.loose_subject == graph:
            self.about.setdefault(graph, []).extend(self.loose)
            self.loose_subject, self.loose = "", []
        elif self.loose:
            events += self.finish_loose()
        return events

    def finish_held(self, held: Quad) -> Event | None:
        """Complete a graph of one quad that holds its time; None where its time is refused."""
        s, p, o, graph, _, literal = held
        context = self.context
        time = context.times.of_usual(literal)
        if time is None:
            self.take(held)
            return next(iter(self.finish()), None)
        if len(self.seen) < REMEMBERED:
            self.seen[graph] = time, time
        else:
            self._remember(graph, (time, time))
        counters = context.counters
        counters.events += 1
        counters.triples += 1
        if time > context.latest:
            context.latest = time
        return Event(time, time, ((s, p, o),), context.stream, graph)

    def open(self, graph: str, line: int) -> list[Event]:
        """A quad of another graph: what was open is complete."""
        events = self.leave(graph)
        self.graph, self.line = graph, line
        return events

    def say(self, subject: str, predicate: str, obj: str, line: int) -> list[Event]:
        """A statement of the default graph."""
        context = self.context
        timed = predicate in context.timing.all
        if timed and subject == self.graph and subject not in self.about:
            # The usual case: the time right after the graph.
            self.about[subject] = [Statement(predicate, obj, line)]
            return []
        if timed and subject != self.graph and subject not in self.about and self.seen.get(subject, ()) is None:
            context.report(
                StreamError(
                    f"the time of {subject} comes after the element, which was given the time of its arrival",
                    line=line,
                    text=f"{subject} {predicate} {obj} .",
                    hint="put the time next to its graph, or read the whole document first: "
                    "times='anywhere' (--whole-document)",
                )
            )
            return []
        if timed or subject == self.graph or subject in self.about:
            statements = self.about.get(subject)
            if statements is None:
                if len(self.about) >= context.max_pending:
                    raise StreamError(
                        f"more than {context.max_pending:,} elements have a time but no triples yet",
                        line=line,
                        hint="put the time of each element next to its graph, or raise max_pending",
                    )
                statements = self.about[subject] = []
            if subject == self.loose_subject:
                statements += self.loose
                self.loose_subject, self.loose = "", []
            statements.append(Statement(predicate, obj, line))
            return []
        events: list[Event] = []
        if self.loose and subject != self.loose_subject:
            # What came before leaves first.
            events = self.finish() + self.finish_loose()
        self.loose_subject = subject
        self.loose.append(Statement(predicate, obj, line))
        return events

    def punctuate(self, subject: str, obj: str, line: int) -> list[Item]:
        """``g rsp:punctuate rsp:now`` ([REQ], Punctuation): g is complete, and so is the instant it ended at.

        With a time instead of ``rsp:now``, the instants up to that time are complete.
        """
        context = self.context
        events: list[Item] = [*self.finish(), *self.finish_loose()]
        if obj != NOW:
            try:
                return [*events, context.punctuation(context.times.of_term(obj)[1])]
            except TimeError as error:
                context.report(StreamError(f"a punctuation without a time: {error}", line=line, text=obj))
                return events
        span = self.seen.get(subject)
        time = span[1] if span else context.latest
        return [*events, context.punctuation(time)] if context.counters.events else events

    def end(self) -> list[Event]:
        """The end of the document: what is open is complete, and what was said of no graph stands for itself."""
        events = self.finish() + self.finish_loose()
        context = self.context
        for subject, statements in self.about.items():
            try:
                found = span_of(statements, context.timing, context.times)
            except StreamError as error:
                _report_element(context, error, [(subject, s.predicate, s.object) for s in statements], "", 0)
                continue
            used = found[1] if found else frozenset()
            triples = [(subject, s.predicate, s.object) for s in statements if s.predicate not in used]
            if triples:
                events.append(context.event(found[0] if found else context.arrived(), triples, ""))
            else:
                context.counters.empty += 1
        self.about.clear()
        return events


def document_events(quads: Iterable[Quad | None], context: Context) -> Iterator[Item]:
    """The events of a document, each as soon as it is complete.

    A silence completes a timed element, and a second one also an element without a time.
    """
    document = _Document(context)
    say, punctuations = document.say, context.timing.punctuations
    graph, add, silences = "", document.triples.append, 0
    # A graph of one quad that holds its time waits here until something else begins: most are complete like that.
    held: Quad | None = None
    for quad in quads:
        if quad is not None and quad[5] and quad[3] != graph:
            if held is not None:
                if event := document.finish_held(held):
                    yield event
            else:
                yield from document.leave(quad[3])
            graph, silences, held = quad[3], 0, quad
            if document.about or document.loose:
                document.take(quad)
                held, add = None, document.triples.append
            continue
        if held is not None:
            document.take(held)
            held, add = None, document.triples.append
        if quad is None:
            silences += 1
            if silences > 1 or any(s.predicate in context.timing.all for s in document.about.get(document.graph, ())):
                yield from document.finish()
                yield from document.finish_loose()
                graph = ""
            yield Idle(now())
            continue
        s, p, o, g, line, time = quad
        if g:
            if g != graph:
                yield from document.open(g, line)
                graph, add, silences = g, document.triples.append, 0
            add((s, p, o))
            if time:
                document.say_time(quad)
        elif p in punctuations:
            yield from document.punctuate(s, o, line)
            graph = ""
        else:
            silences = 0
            if found := say(s, p, o, line):
                yield from found
    if held is not None and (event := document.finish_held(held)):
        yield event
    yield from document.end()


def whole_document_events(quads: Iterable[Quad | None], context: Context) -> Iterator[Item]:
    """The same with times anywhere: the whole document is held, and its events come ordered by end and start."""
    graphs: dict[str, list[Quad]] = {}
    said: list[Quad] = []
    for quad in quads:
        if quad is not None:
            (graphs.setdefault(quad[3], []) if quad[3] else said).append(quad)
    about: dict[str, list[Quad]] = {}
    for quad in said:
        if quad[0] in graphs:
            about.setdefault(quad[0], []).append(quad)
    ordered = [quad for name, group in graphs.items() for quad in (*about.get(name, ()), *group)]
    ordered += [quad for quad in said if quad[0] not in graphs]
    everything = Context(
        context.stream,
        context.timing,
        context.times,
        context.arrival,
        context.counters,
        context.report,
        max_pending=max(context.max_pending, len(said)),
    )
    events = [item for item in document_events(ordered, everything) if isinstance(item, Event)]
    yield from sorted(events, key=lambda event: (event.end, event.start))


def instant_events(quads: Iterable[Quad | None], context: Context, at: Span | None) -> Iterator[Item]:
    """Every triple an event of its own: all at one given time, or each on its arrival."""
    for quad in quads:
        if quad is None:
            yield Idle(now())
        else:
            yield context.event(at or context.arrived(), [quad[:3]], quad[3])


def run_events(quads: Iterable[Quad | None], context: Context) -> Iterator[Item]:
    """Triples without graphs, where a time predicate is named: every run of one subject is an element."""
    document = _Document(context)
    for quad in quads:
        if quad is None:
            yield from document.finish_loose()
            yield Idle(now())
            continue
        s, p, o, _, line, _ = quad
        if s != document.loose_subject:
            yield from document.finish_loose()
            document.loose_subject = s
        document.loose.append(Statement(p, o, line))
    yield from document.finish_loose()


def message_events(rows: list[Row], context: Context, line: int, span: Span | None = None) -> Iterator[Item]:
    """The events of one message; ``span`` is its time where something outside the message gives it."""
    context.counters.messages += 1
    if not rows:
        context.counters.empty += 1
        return
    timing, times = context.timing, context.times
    try:
        own = {} if span else _graph_spans(rows, context, line)
        if span is None:
            inside = [Statement(p, o, line) for s, p, o, g in rows if p in timing.all and (g or s not in own)]
            found = span_of(inside, timing, times) if inside else None
            rest = any(g not in own if g else not (s in own and p in own[s][1]) for s, p, o, g in rows)
            span = found[0] if found else None
            if span is None and rest:
                # What is only said about timed graphs has the time of the first of them.
                about_own = all(g in own if g else s in own for s, p, o, g in rows)
                span = next(iter(own.values()))[0] if own and about_own else context.arrived()
        stamp = "" if span is None else f"{span[0]}/{span[1]}"
        if any(s[:2] == "_:" or o[:2] == "_:" or g[:2] == "_:" for s, p, o, g in rows):
            renamed = relabel(rows, context.stream, stamp)
            if own:
                # The names of graphs may have changed with the labels: read their times again.
                own = _graph_spans(renamed, context, line)
            rows = list(renamed)
    except StreamError as error:
        _report_element(context, error, [row[:3] for row in rows], "", line)
        return
    groups: dict[str, list[Triple]] = {}
    for s, p, o, g in rows:
        if g or s not in own:
            groups.setdefault(g, []).append((s, p, o))
        elif p not in own[s][1]:
            groups.setdefault(s, []).append((s, p, o))
    last = None
    for graph, triples in groups.items():
        event = context.event(own[graph][0] if graph in own else span, triples, graph)  # type: ignore[arg-type]
        last = event.end if last is None else max(last, event.end)
        yield event
    if context.close_on_message and last is not None:
        yield context.punctuation(last)


def _graph_spans(rows: Iterable[Row], context: Context, line: int) -> dict[str, tuple[Span, frozenset[str]]]:
    """The graphs of a message that its default graph times."""
    rows = list(rows)
    names = {g for *_, g in rows if g}
    spans = {}
    if names:
        about: dict[str, list[Statement]] = {}
        for s, p, o, g in rows:
            if not g and s in names and p in context.timing.all:
                about.setdefault(s, []).append(Statement(p, o, line))
        for name, statements in about.items():
            found = span_of(statements, context.timing, context.times)
            if found:
                spans[name] = found
    return spans


def log_events(quads: Iterable[Quad | None], context: Context) -> Iterator[Item]:
    """The events of a message log read line by line; a message with an unreadable line is dropped as a whole."""
    rows: list[Row] = []
    start, broken, delimited = 0, False, False
    for quad in quads:
        if quad is None:
            yield Idle(now())
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


def _report_element(context: Context, error: StreamError, triples: list[Triple], graph: str, line: int) -> None:
    """A whole element is refused: the report holds all of it, so that nothing is lost."""
    text = "\n".join(" ".join(term for term in (*triple, graph) if term) + " ." for triple in triples)
    context.report(error.at("", line, text))
