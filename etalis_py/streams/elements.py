"""Timed events, and what all readers of one stream share: its context, its counters, withdrawals.

*Documents* (.nq, .trig) and *messages* have different rules of what is one element, and when it happened: see
``documents`` and ``message_elements``.  In both, an element without a time gets the time of its arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from etalis_rules.terms import FALSE, TRUE, is_iri

from etalis_py.events import Event, Retraction, Triple
from etalis_py.events.clock import MAX_TIME, MIN_TIME, far_apart, far_back, far_off
from etalis_py.events.errors import StreamError
from etalis_py.streams.dead_letters import DeadLetters
from etalis_py.streams.positions import Tracker
from etalis_py.streams.quads import BURST, BURST_OVER, Quad
from etalis_py.streams.sources import Burst, Patience, now
from etalis_py.streams.timing import (
    Idle,
    Punctuation,
    Span,
    Statement,
    TimeReader,
    Timing,
)

Item = Event | Punctuation | Idle | Burst
MARKS = {BURST: Burst(True), BURST_OVER: Burst(False)}
RETRACTS = (
    "<urn:etalis:retracts>",
    "<urn:etalis:retracted>",
)  # the second marks matches that are taken back


def withdrawn(items: Iterable[Item]) -> Iterator[Item]:
    """The same items, with events turned into retractions."""
    return (Retraction._make(item) if type(item) is Event else item for item in items)


def withdrawn_graph(statements: Iterable[Statement]) -> str | None:
    """The graph from which a graph withdraws, by the statements about it: "" for any; None: it withdraws nothing.

    ``<g> <urn:etalis:retracts> true`` withdraws the triples of ``<g>`` from any graph; ``<g> <urn:etalis:retracts>
    <h>`` only those that came in ``<h>``.
    """
    graph: str | None = None
    for statement in statements:
        if statement.predicate in RETRACTS and statement.object != FALSE:
            if statement.object != TRUE and not is_iri(statement.object):
                raise StreamError(
                    f"{statement.object} says neither whether nor from which graph something is withdrawn",
                    line=statement.line,
                    hint="write <urn:etalis:retracts> true, or the name of the earlier graph",
                )
            graph = "" if statement.object == TRUE else statement.object
    return graph


@dataclass(slots=True)
class Counters:
    """Counts of the stream so far.  ``errors`` are skipped parts, ``empty`` elements without a triple."""

    events: int = 0
    triples: int = 0
    duplicates: int = 0
    arrivals: int = 0
    punctuations: int = 0
    messages: int = 0
    empty: int = 0
    missing: int = 0
    errors: int = 0

    def count(self, more: Iterable[int]) -> None:
        """Add the counts of a part of the stream, in the order of the fields."""
        for name, number in zip(self.__slots__, more, strict=True):
            setattr(self, name, getattr(self, name) + number)

    def __add__(self, other: Counters) -> Counters:
        return Counters(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


class Blocks(Protocol):
    """The blocks of a file that several processes read: see ``columns.shared_blocks``."""

    @property
    def is_reader(self) -> bool: ...

    def events(
        self, number: int, read: Callable[[], Iterator[Any] | None], context: StreamContext
    ) -> Iterator[Any] | None: ...

    def taken(self, number: int, read: Callable[[], Iterator[Any] | None], context: StreamContext) -> Any: ...


@dataclass(slots=True)
class StreamContext:
    """The state that all readers of one stream share."""

    stream: str
    timing: Timing
    times: TimeReader
    arrival: Callable[[], Span]
    counters: Counters
    report: Callable[[StreamError], None]
    dead_letters: DeadLetters | None = None
    close_on_message: bool = False
    as_records: bool = False  # whether a table may stay one: ``columns.wide``
    max_pending: int = 1_000_000
    patience: Patience | None = None
    latest: int = MIN_TIME
    earliest: int = MAX_TIME  # of the rows of tables, and of what is read one by one
    source: str = ""
    unmade: str = ""  # why the first line without a triple has none
    subjects: frozenset[str] = frozenset()  # the columns that say what a row is about
    times_of_rows: frozenset[str] = frozenset()  # the columns that say when a row was
    properties: Mapping[str, frozenset[str]] | None = None  # the predicates of rows, with columns, if that is known
    ties: str = ""  # what orders rows of one time, by their mapping
    surplus: int = 0  # the line where the first row of CSV ends that has more cells than the header
    lists: set[str] = field(default_factory=set)  # the keys whose lists were left out of records
    without_literals: dict[str, str] = field(default_factory=dict)  # the columns of tables that were, with their types
    tracker: Tracker = field(default_factory=Tracker)
    among: int = 1  # how many sources are merged, each of which holds something
    blocks: Blocks | None = None  # if other processes read blocks of the file

    def event(self, span: Span, triples: list[Triple], graph: str) -> Event:
        """One event; a repeated triple counts once ([EP] §4.2: a set of occurrences)."""
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
        if end < self.earliest:
            self.earliest = end
        return Event._make((start, end, unique, self.stream, graph))

    def punctuation(self, time: int) -> Punctuation:
        self.counters.punctuations += 1
        return Punctuation(time)

    def arrived(self) -> Span:
        self.counters.arrivals += 1
        return self.arrival()

    @property
    def reads_ahead(self) -> bool:
        """Whether this process only reads blocks for others."""
        return self.blocks is not None and self.blocks.is_reader

    @property
    def doubt(self) -> str:
        """A warning that its times, or some of them, are probably counted in another unit, or ""."""
        clock = self.times.clock
        if clock is None or clock.kind == "datetime":
            return ""
        if told := far_off(self.latest, clock.unit):
            return f"{self.source}: the time {told}; name the unit of its times with time_unit= (--time-unit)"
        told = far_back(self.earliest, self.latest, clock.unit)
        return told and f"{self.source}: the time {told}; all times of a source are counted in one unit"

    @property
    def warning(self) -> str:
        """A warning that a source was read without a single event, or ""."""
        counters = self.counters
        if counters.events or counters.errors or not (counters.messages or counters.missing):
            return ""
        return f"{self.source}: no event was made of it{self.unmade and f'; {self.unmade}'}"

    @property
    def left_out(self) -> str:
        """A warning that lists in records, or columns of tables that have no literals, were left out, or ""."""
        if not (self.lists or self.without_literals):
            return ""
        name, *more = sorted(self.lists or self.without_literals)
        also = f", as {'are' if more[1:] else 'is'} {', '.join(more)}" if more else ""
        if self.lists:
            return (
                f"{self.source}: {name!r} is a list and left out{also}; a mapping makes a record of each element, as "
                f"{{{name}[]}} or {{{name}[].key}}"
            )
        return (
            f"{self.source}: {name!r} is a column of {self.without_literals[name]}, whose values are no literals, and "
            f"is left out{also}; make columns of values of it"
        )

    @property
    def cut_short(self) -> str:
        """A warning that cells of CSV were left out, because the header has no names for them, or ""."""
        if not self.surplus:
            return ""
        return (
            f"{self.source}: rows have more cells than the header, as in line {self.surplus}, and the last are left "
            "out; put a cell that has a delimiter in it, such as 10,50, in quotes, and give every column a name"
        )

    def refuse(self, error: StreamError, triples: list[Triple], graph: str, line: int) -> None:
        """Refuse a whole element: the report has all of it, so that nothing is lost."""
        text = "\n".join(" ".join(term for term in (*triple, graph) if term) + " ." for triple in triples)
        self.report(error.at("", line, text))


def doubt_beside(contexts: Sequence[StreamContext]) -> Iterator[str]:
    """A warning that sources that are read side by side probably have two clocks, if they have."""
    kinds = [(context.times.clock.kind if context.times.clock else "", context) for context in contexts]
    dated = [c for kind, c in kinds if kind == "datetime" and c.earliest < MAX_TIME]
    numbered = [c for kind, c in kinds if kind == "integer" and c.latest > MIN_TIME]
    for one in numbered if dated else ():
        other = min(dated, key=lambda context: context.earliest)
        if told := far_apart(one.latest, one.times.unit, other.earliest):
            also = "name its unit with time_unit= (--time-unit), or write dates in both"
            yield f"{one.source}: the time {told} in {other.source}; {also}"
            return


def instant_events(quads: Iterable[Quad | None], context: StreamContext, at: Span | None) -> Iterator[Item]:
    """Every triple as a separate event: all at one given time, or each on its arrival."""
    for quad in quads:
        if quad is None:
            yield Idle(now())
        elif quad in MARKS:
            yield MARKS[quad]
        else:
            yield context.event(at or context.arrived(), [quad[:3]], quad[3])


def in_lists(items: Iterable[Item], size: int = 4096) -> Iterator[list[Item]]:
    """The items in lists; items before an error are yielded first."""
    held: list[Item] = []
    try:
        for item in items:
            held.append(item)
            if len(held) >= size:
                yield held
                held = []
    except (Exception, KeyboardInterrupt):
        if held:
            yield held
        raise
    if held:
        yield held
