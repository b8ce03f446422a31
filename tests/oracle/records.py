"""EVENT: the solutions of a pattern over the triples of one event, together with the background.

An event is the set of the triples of one item, with its interval, stream and graph name; so is what one solution of a
CONSTRUCT rule derives.  A triple of both the event and the background is the event's.  What uses no occurrence of the
event is no solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from etalis_compiler import ast

from etalis_py.events import Event

from .entailment import closed
from .matching import Scope
from .plan import OneEvent, Plan
from .solutions import BEFORE, Instant, Solution, bindings, compatible

if TYPE_CHECKING:
    from .patterns import Place

Triple = tuple[str, str, str]


class Record(NamedTuple):
    """One event."""

    triples: frozenset[Triple]
    start: int
    end: int
    stream: str
    graph: str


def records(events: Iterable[Event]) -> dict[Record, Instant]:
    """The events of a stream as a set; each is known at its end, and one without triples is none."""
    found = (Record(frozenset(e.triples), e.start, e.end, e.stream, e.graph) for e in events)
    return {record: record.end for record in found if record.triples}


def with_consequences(known: dict[Record, Instant], schema: Iterable[Triple]) -> list[tuple[Record, Instant]]:
    """What the schema makes of the triples of an event is in it."""
    return [(r._replace(triples=frozenset(closed(r.triples, schema))), at) for r, at in known.items()]


def of_one_event(plan: OneEvent, place: Place, answers: Callable[[Plan, Place], list[Solution]]) -> list[Solution]:
    """The sum over the events of the solutions that use at least one occurrence of the event."""
    return [s for record, known in place.dataset.records for s in _over(record, known, plan, place, answers)]


def _over(
    record: Record,
    known: Instant,
    plan: OneEvent,
    place: Place,
    answers: Callable[[Plan, Place], list[Solution]],
) -> Iterator[Solution]:
    if place.stream is not None and record.stream != place.stream:
        return
    if plan.graph is not None and not record.graph:
        return
    if isinstance(plan.graph, ast.Term) and plan.graph.spelling != record.graph:
        return
    stored = (f for f in place.dataset.default.facts if f[3] is None and f[:3] not in record.triples)
    facts = {(*triple, record.start, record.end): known for triple in record.triples}
    scope = Scope(facts | dict.fromkeys(stored, BEFORE))
    inside = replace(
        place,
        dataset=replace(place.dataset, default=scope, records=(), streams={}),
        scope=scope,
        policy="unrestricted",
        stream=None,
        moment=(record.start, record.end, known),
    )
    for s in answers(plan.child, inside):
        if s.timeless:
            continue
        if isinstance(plan.graph, ast.Var):
            named = ((plan.graph.name, record.graph),)
            if not compatible(s.mu, named):
                continue
            s = s._replace(mu=bindings(dict(s.mu) | dict(named)))
        yield s._replace(known=known)
