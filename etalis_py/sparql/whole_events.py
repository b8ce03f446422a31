"""EVENT: the solutions of a pattern over each event by itself, together with the background.

Its solutions do not depend on anything around it, so those over an event are kept while the source has the event: each
evaluation over a sliding window only looks at the events that have come since the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from etalis_rules.algebra import (
    Block,
    Const,
    PathPattern,
    Pattern,
    Record,
    Var,
    constant_of,
    is_volatile,
    read_of_event,
    scope,
    transform,
    triples_of,
)

from etalis_py.events import Event
from etalis_py.sparql.run import Bindings, EvaluationRun, Runner, Solution
from etalis_py.sparql.scoping import Env, mentioned
from etalis_py.sparql.shared_state import SharedState
from etalis_py.sparql.sources import EventSource, Source
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

Compile = Callable[[Pattern, Env, SharedState], Runner]
_FEW = 64


class Moment:
    """The context of expressions inside EVENT: the instant, and the interval that all its groups have."""

    __slots__ = ("interval", "now")

    def __init__(self, now: int, interval: tuple[int, int]) -> None:
        self.now = now
        self.interval = interval


def over_one_event(pattern: Pattern) -> Pattern:
    """A pattern inside EVENT.  A path is a set of ⟨from, to, hull⟩ also where no triple pattern stands beside it."""
    return transform(pattern, lambda part: Block(part) if isinstance(part, PathPattern) else None)


def as_set(event: Event) -> object:
    """What an event is: its triples in any order, interval, stream and graph."""
    return event.start, event.end, frozenset(event.triples), event.stream, event.graph


def different(events: Iterable[Event]) -> list[Event]:
    """Events as a set; one without triples is none."""
    return list({as_set(event): event for event in events if event.triples}.values())


def _predicates(record: Record) -> frozenset[str] | None:
    """The predicates that a triple of the event can have that a solution uses; None if it can have any."""
    names = set[str]()
    for part in read_of_event(record):
        triples = triples_of(part)
        names |= {""} if triples is None else {constant_of(triple.predicate) for triple in triples}
    return None if "" in names else frozenset(names)


def compile_event(record: Record, env: Env, registry: SharedState, compile_pattern: Compile) -> Runner:
    """The sum over the events of the solutions that use an occurrence of the event, joined with the bindings."""
    inside = registry.of_one_event()
    inner = compile_pattern(over_one_event(record.pattern), env.only(frozenset()), inside)
    graph, stream, timed = record.graph, record.stream, registry.timed
    given = tuple(sorted(env.given & mentioned(record)))
    shared = tuple(sorted((scope(record) & env.seen) - env.given))
    keeping = not given and not is_volatile(record.pattern)
    asked = _predicates(record)
    known: dict[Event, list[Bindings]] = {}
    beside: tuple[Source, object] | None = None

    def solutions(event: Event, into: Bindings, source: Source, run: EvaluationRun) -> list[Bindings]:
        if asked is not None and asked.isdisjoint([triple[1] for triple in event.triples]):
            return []  # a solution uses a triple of the event
        start, end = event.start, event.end
        whole = EventSource(source, dict.fromkeys(event.triples), start, end)
        one = EvaluationRun(whole, None, Moment(run.now, (start, end)), inside.holds, run.meter)
        found = [mu for mu, _, last in inner(into, one) if last != TIMELESS_END]
        match graph:
            case Const(term):
                return found if event.graph == term else []
            case Var(name):
                named = {name: event.graph}
                return [{**mu, **named} for mu in found if event.graph and mu.get(name, event.graph) == event.graph]
        return found

    def run_event(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        nonlocal beside
        into = {v: mu[v] for v in given if v in mu}
        source = run.source.beside_events
        events = different(run.source.events(stream))
        if beside is None or beside[0] is not source or beside[1] != source.version:
            beside = source, source.version
            known.clear()
        elif len(known) > 2 * len(events) + _FEW:
            kept = {event: known[event] for event in events if event in known}
            known.clear()
            known.update(kept)
        for event in events:
            found = known.get(event) if keeping else None
            if found is None:
                found = solutions(event, into, source, run)
                if keeping:
                    known[event] = found
            start, end = (event.start, event.end) if timed else (TIMELESS_START, TIMELESS_END)
            for m in found:
                if all(mu.get(v, m[v]) == m[v] for v in shared if v in m):
                    yield {**mu, **m}, start, end

    return run_event
