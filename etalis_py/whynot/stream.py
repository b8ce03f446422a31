"""The data that a plan is evaluated over: all occurrences of a finite stream, including derived ones, and its answers.

They come from the engine itself: the program runs once, beside queries that report every occurrence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from etalis_rules import algebra as alg

from etalis_py.engine.engine import Engine
from etalis_py.engine.inputs import opened
from etalis_py.engine.program import Program, compile
from etalis_py.engine.tie_order import refuse_other_ties
from etalis_py.events import Dated, Event
from etalis_py.events.clock import Clock
from etalis_py.kernel.matches import Match
from etalis_py.knowledge import Knowledge
from etalis_py.sparql import BackgroundSource, HistorySource, Occurrence, OccurrenceLog
from etalis_py.streams import Stream
from etalis_py.streams.drafting import UNNAMED, Naming
from etalis_py.whynot.other_streams import derived_streams

_ALL = "occurrences"


@dataclass(frozen=True, slots=True)
class Facts:
    """A stream that has ended, and the program's results for it."""

    program: Program
    events: tuple[Event, ...]
    late: tuple[Event, ...]
    source: HistorySource
    log: OccurrenceLog
    answers: tuple[Match, ...]
    clock: Clock
    options: dict[str, Any]
    streams: tuple[str, ...] = ()
    """The names of the streams in ``log``."""

    @property
    def end(self) -> int:
        """The last time of the stream."""
        return max((event.end for event in self.events), default=0)


def read(
    stream: Any, prefixes: Mapping[str, str], mapping: Any = None, naming: Naming = UNNAMED
) -> tuple[tuple[Event, ...], Clock]:
    """The events of a finite stream in the order they came, and how it spells its times.

    ``prefixes`` are those of the program that is asked.
    """
    given = opened(stream, mapping, naming, prefixes=prefixes)
    if isinstance(given, Stream):
        refuse_other_ties(given.ties, None, "why-not takes events by their times alone")
    events = [item for item in given if isinstance(item, Event)]
    if isinstance(given, Stream):
        return tuple(events), given.clock
    return tuple(events), Clock("datetime" if events and isinstance(events[0], Dated) else "integer")


def facts_of(program: Program, query: str, events: tuple[Event, ...], clock: Clock, options: dict[str, Any]) -> Facts:
    """The occurrences, the late events and the answers of a query.

    The streams that no query names are filled with the events as they came: they only serve to say what is in them.
    """
    options = {"render": clock.render, **options}
    engine = Engine(program, **options)
    streams = _streams(program)
    for i, stream in enumerate(("", *streams)):
        inner = "?s ?p ?o" if not stream else f"STREAM {stream} {{ ?s ?p ?o }}"
        everything = compile(f"SELECT ?s ?p ?o WHERE {{ {inner} }}").compilation
        named = replace(everything, queries=(replace(everything.queries[0], name=f".{_ALL}{i}"),))
        engine.add(named, name=f".{_ALL}{i}")
    answers: list[Match] = []
    derived: list[Event] = []
    makes = _streams_made(program)
    occurrences: list[list[Occurrence]] = [[] for _ in range(len(streams) + 1)]
    for match in (*engine.push_all(events), *engine.close()):
        if match.triples and match.query in makes and match.end_us is not None and match.start_us is not None:
            derived.append(Event(match.start_us, match.end_us, match.triples, makes[match.query]))
        if match.query == query:
            answers.append(match)
        elif match.query.startswith(f".{_ALL}") and match.end_us is not None and match.start_us is not None:
            o, p, s = match.row
            occurrences[int(match.query.removeprefix(f".{_ALL}"))].append((s, p, o, match.start_us, match.end_us))
    log = OccurrenceLog()
    _fill(log, occurrences[0])
    for stream, some in zip(streams, occurrences[1:], strict=True):
        _fill(log.of_stream(stream), some)
    others: dict[str, list[Occurrence]] = {}
    for event in events:
        if event.stream and event.stream not in streams:
            others.setdefault(event.stream, []).extend((*t, event.start, event.end) for t in event.triples)
    for stream, some in others.items():
        _fill(log.of_stream(stream), some)
    background = BackgroundSource(engine.knowledge if engine.knowledge is not None else Knowledge({}, "rdf"))
    late = tuple(engine.dead_letters)
    came_late = frozenset(late)
    whole = _whole(engine, (event for event in events if event not in came_late), derived)
    source = HistorySource(background, log, events=whole)
    return Facts(program, events, late, source, log, tuple(answers), clock, options, (*streams, *sorted(others)))


def _whole(engine: Engine, events: Iterable[Event], derived: Iterable[Event]) -> tuple[Event, ...]:
    """The events that EVENT sees, in order of their ends: as they came or were derived, with what the schema adds."""
    every = sorted((*events, *derived), key=lambda event: event.end)
    if engine.knowledge is None:
        return tuple(every)
    closure = engine.knowledge.event_closure()
    return tuple(e._replace(triples=closure.of(e.triples)) for e in every)


def _streams_made(program: Program) -> dict[str, str]:
    """The streams of what the rules of a program derive, by the names of the rules."""
    registers = {q.name: q.syntax.register for q in program.compilation.queries if q.syntax.kind == "construct"}
    made = {name: r.name if r is not None and r.kind == "STREAM" else "" for name, r in registers.items()}
    return made | {plan.name: plan.feeds for plan in program.plans if plan.feeds}


def _fill(log: OccurrenceLog, occurrences: list[Occurrence]) -> None:
    for s, p, o, start, end in sorted(occurrences, key=lambda x: x[4]):
        log.add(start, end, ((s, p, o),))


def _streams(program: Program) -> tuple[str, ...]:
    """The streams that the queries read or derive."""
    read = {
        part.stream
        for query in program.compilation.queries
        for part in alg.read_of_stream(query.algebra.pattern)
        if part.stream
    }
    return tuple(sorted(read | derived_streams(program)))
