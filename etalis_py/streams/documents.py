"""Quads of a document → timed events: which quads are one element, and when it happened.

An element of a document (.nq, .trig) is a named graph; the default graph gives its time and any other statements about
it.  The time may come before the graph or right after it, or all times at the front; an element is complete when the
next one begins, so memory holds one element (and the times given in advance).  Default-graph statements about something
without a time there are separate elements, one per run of one subject.  A graph that goes on after others keeps its
time.  An element without a time gets the time of its arrival.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from etalis_py.events import Event, Retraction, Triple
from etalis_py.events.clock import MIN_TIME, TimeError
from etalis_py.events.errors import StreamError
from etalis_py.streams.elements import MARKS, RETRACTS, Item, StreamContext, withdrawn_graph
from etalis_py.streams.quads import Quad
from etalis_py.streams.sources import now
from etalis_py.streams.timing import NOW, Idle, Span, Statement, span_of

REMEMBERED = 100_000
"""The interval of an element is remembered for so many events."""


def too_many(context: StreamContext, line: int) -> StreamError:
    """The error that more elements are announced than may be."""
    return StreamError(
        f"more than {context.max_pending:,} elements have a time but no triples yet",
        line=line,
        hint="put the time of each element next to its graph, or raise max_pending",
    )


class Document:
    """The open elements of a document; ``finish`` and the other methods return the events that became complete."""

    __slots__ = ("about", "context", "earlier", "graph", "line", "loose", "loose_subject", "seen", "triples", "untimed")

    def __init__(self, context: StreamContext) -> None:
        self.context = context
        self.graph = ""
        self.line = 0
        self.triples: list[Triple] = []
        # The statements of the default graph about incomplete elements: their times, and the rest.
        self.about: dict[str, list[Statement]] = {}
        self.loose_subject = ""
        self.loose: list[Statement] = []
        # The intervals of recent elements (None: on arrival), for graphs that are reopened, and for late times; each
        # with the number of events before it.
        self.seen: dict[str, tuple[int, Span | None]] = {}
        self.untimed = False  # an element had the time of its arrival
        # The same for elements that are only looked at on demand, with the number of events after each part of them.
        self.earlier: deque[tuple[int, Callable[[], Iterable[tuple[str, tuple[int, Span | None]]]]]] = deque()

    def finish(self) -> list[Event]:
        """Complete the open graph."""
        graph, triples, line = self.graph, self.triples, self.line
        self.graph, self.triples = "", []
        if not graph:
            return []
        statements = self.about.pop(graph, None)
        context = self.context
        used: frozenset[str] = frozenset()
        withdraws: str | None = None
        try:
            timed = span_of(statements, context.timing, context.times) if statements else None
            if statements and (len(statements) > 1 or not timed):
                withdraws = withdrawn_graph(statements)
            if timed:
                span, used = timed
                self.remember(graph, span)
            else:
                span = self._inner_span(graph, triples, line, withdraws or "")
        except StreamError as error:
            context.refuse(error, triples, graph, line)
            return []
        if statements and len(statements) > len(used):
            triples += [
                (graph, s.predicate, s.object)
                for s in statements
                if s.predicate not in used and s.predicate not in RETRACTS
            ]
        if withdraws is None:
            return [context.event(span, triples, graph)]
        return [Retraction._make(context.event(span, triples, withdraws))]

    def _inner_span(self, graph: str, triples: list[Triple], line: int, earlier: str) -> Span:
        """The interval of a graph without a time after it; ``earlier``: the graph that it withdraws from."""
        wanted = self.context.timing.all
        inside = [Statement(p, o, line) for _, p, o in triples if p in wanted]
        timed = span_of(inside, self.context.timing, self.context.times) if inside else None
        span = timed[0] if timed else self.recall(graph) or self.recall(earlier)
        if span is None:
            self.remember(graph, None)
            return self.context.arrived()
        self.remember(graph, span)
        return span

    def recall(self, graph: str, default: Span | None = None) -> Span | None:
        """The interval of an element among those of the last ``REMEMBERED`` events; ``default`` if it is not there."""
        while self.earlier:
            for name, element in self.earlier.popleft()[1]():
                known = self.seen.get(name)
                if known is None or known[0] <= element[0]:
                    self._keep(name, element)
        before, span = self.seen.get(graph, (MIN_TIME, None))
        return span if self.context.counters.events - before <= REMEMBERED else default

    def remember(self, graph: str, span: Span | None) -> None:
        """Remember the interval of an element that is about to be an event (None: on arrival)."""
        self._keep(graph, (self.context.counters.events, span))
        self.untimed = self.untimed or span is None

    def remember_later(self, elements: Callable[[], Iterable[tuple[str, tuple[int, Span | None]]]]) -> None:
        """Remember the intervals of elements that are events by now."""
        events = self.context.counters.events
        self.earlier.append((events, elements))
        while events - self.earlier[0][0] > REMEMBERED:
            self.earlier.popleft()

    def _keep(self, graph: str, element: tuple[int, Span | None]) -> None:
        if len(self.seen) >= 2 * REMEMBERED:
            oldest = max(element[0], self.context.counters.events) - REMEMBERED
            self.seen = {name: known for name, known in self.seen.items() if known[0] >= oldest}
        self.seen[graph] = element

    def finish_loose(self) -> list[Event]:
        """Complete the run of default-graph statements about something that is not an element."""
        subject, loose = self.loose_subject, self.loose
        self.loose_subject, self.loose = "", []
        if not loose:
            return []
        try:
            timed = span_of(loose, self.context.timing, self.context.times)
        except StreamError as error:
            self.context.refuse(error, [(subject, s.predicate, s.object) for s in loose], "", loose[0].line)
            return []
        span = timed[0] if timed else self.context.arrived()
        return [self.context.event(span, [(subject, s.predicate, s.object) for s in loose], "")]

    def take(self, held: Quad) -> None:
        """Open the graph of a quad that holds its time."""
        s, p, o, self.graph, self.line, _ = held
        self.triples.append((s, p, o))
        self.say_time(held)

    def say_time(self, held: Quad) -> None:
        """Take the statement in the line after a quad that holds its time."""
        self.say(held[3], self.context.timing.after_graph, held[5], held[4] + 1)

    def leave(self, graph: str) -> list[Event]:
        """Complete what is open, except statements about a graph that begins now."""
        events = self.finish()
        if self.loose and self.loose_subject == graph:
            self.about.setdefault(graph, []).extend(self.loose)
            self.loose_subject, self.loose = "", []
        elif self.loose:
            events += self.finish_loose()
        return events

    def finish_held(self, held: Quad) -> Event | None:
        """Complete a graph of one quad that holds its time; returns None if its time is refused."""
        s, p, o, graph, _, literal = held
        context = self.context
        time = context.times.of_usual(literal)
        if time is None:
            self.take(held)
            return next(iter(self.finish()), None)
        counters = context.counters
        if len(self.seen) < REMEMBERED:
            self.seen[graph] = counters.events, (time, time)
        else:
            self.remember(graph, (time, time))
        counters.events += 1
        counters.triples += 1
        if time > context.latest:
            context.latest = time
        return Event._make((time, time, ((s, p, o),), context.stream, graph))

    def open(self, graph: str, line: int) -> list[Event]:
        """Open another graph: what was open is complete."""
        events = self.leave(graph)
        self.graph, self.line = graph, line
        return events

    def say(self, subject: str, predicate: str, obj: str, line: int) -> list[Event]:
        """Take a statement of the default graph."""
        context = self.context
        timed = predicate in context.timing.all
        if timed and subject == self.graph and subject not in self.about:
            # The usual case: the time right after the graph.
            self.about[subject] = [Statement(predicate, obj, line)]
            return []
        elsewhere = timed and subject != self.graph and subject not in self.about
        if elsewhere and self.untimed and self.recall(subject, (0, 0)) is None:
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
                    raise too_many(context, line)
                statements = self.about[subject] = []
            if subject == self.loose_subject:
                statements += self.loose
                self.loose_subject, self.loose = "", []
            statements.append(Statement(predicate, obj, line))
            return []
        events: list[Event] = []
        if self.loose and subject != self.loose_subject:
            # Earlier elements are complete first.
            events = self.finish() + self.finish_loose()
        self.loose_subject = subject
        self.loose.append(Statement(predicate, obj, line))
        return events

    def punctuate(self, subject: str, obj: str, line: int) -> Iterator[Item]:
        """``g rsp:punctuate rsp:now`` ([REQ], Punctuation): g is complete, and so is the instant it ended at.

        With a time instead of ``rsp:now``, the instants up to that time are complete.
        """
        context = self.context
        yield from self.finish()
        yield from self.finish_loose()
        if obj != NOW:
            try:
                time = context.times.of_term(obj)[1]
            except TimeError as error:
                context.report(StreamError(f"a punctuation without a time: {error}", line=line, text=obj))
                return
            yield context.punctuation(time)
        elif context.counters.events:
            span = self.recall(subject)
            yield context.punctuation(span[1] if span else context.latest)

    def end(self) -> Iterator[Event]:
        """End the document: what is open is complete, and statements about no graph are elements themselves."""
        yield from self.finish()
        yield from self.finish_loose()
        context = self.context
        for subject, statements in self.about.items():
            try:
                timed = span_of(statements, context.timing, context.times)
            except StreamError as error:
                context.refuse(error, [(subject, s.predicate, s.object) for s in statements], "", 0)
                continue
            used = timed[1] if timed else frozenset()
            triples = [(subject, s.predicate, s.object) for s in statements if s.predicate not in used]
            if triples:
                yield context.event(timed[0] if timed else context.arrived(), triples, "")
            else:
                context.counters.empty += 1
        self.about.clear()


def document_events(
    quads: Iterable[Quad | None], context: StreamContext, document: Document | None = None
) -> Iterator[Item]:
    """The events of a document, each as soon as it is complete.

    A silence completes a timed element, and a second silence also an element without a time.  ``document`` is the state
    after an earlier part of it.
    """
    document = document or Document(context)
    say, punctuations = document.say, context.timing.punctuations
    graph, add, silences = "", document.triples.append, 0
    # A graph of one quad that holds its time waits here until something else begins: most graphs complete in this way.
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
        elif quad in MARKS:
            yield MARKS[quad]
        else:
            silences = 0
            events = say(s, p, o, line)
            graph = document.graph
            if events:
                yield from events
    if held is not None and (event := document.finish_held(held)):
        yield event
    yield from document.end()


def whole_document_events(quads: Iterable[Quad | None], context: StreamContext) -> Iterator[Item]:
    """The same with times anywhere: the whole document is held, and its events are ordered by end and start."""
    graphs: dict[str, list[Quad]] = {}
    stated: list[Quad] = []
    for quad in quads:
        if quad is not None and quad not in MARKS:
            (graphs.setdefault(quad[3], []) if quad[3] else stated).append(quad)
    about: dict[str, list[Quad]] = {}
    for quad in stated:
        if quad[0] in graphs:
            about.setdefault(quad[0], []).append(quad)
    ordered = [quad for name, group in graphs.items() for quad in (*about.get(name, ()), *group)]
    ordered += [quad for quad in stated if quad[0] not in graphs]
    everything = replace(context, close_on_message=False, max_pending=max(context.max_pending, len(stated)))
    events = [item for item in document_events(ordered, everything) if isinstance(item, Event)]
    yield from sorted(events, key=lambda event: (event.end, event.start))


def run_events(quads: Iterable[Quad | None], context: StreamContext) -> Iterator[Item]:
    """The events of triples without graphs if a time predicate is given: every run of one subject is an element."""
    document = Document(context)
    for quad in quads:
        if quad is None:
            yield from document.finish_loose()
            yield Idle(now())
            continue
        if quad in MARKS:
            yield MARKS[quad]
            continue
        s, p, o, _, line, _ = quad
        if s != document.loose_subject:
            yield from document.finish_loose()
            document.loose_subject = s
        document.loose.append(Statement(p, o, line))
    yield from document.finish_loose()
