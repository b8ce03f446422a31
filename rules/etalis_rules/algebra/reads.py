"""What a pattern reads: triples and paths of the stream or of stored graphs, and whole events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeGuard

from ..traversal import walk
from .nodes import BGP, Bound, Filter, GraphNames, Minus, PathPattern, Pattern, Record, Select, Triple, Within
from .structure import children, subpatterns


def reads_triples(pattern: Pattern) -> TypeGuard[BGP | PathPattern]:
    """Whether it looks for triples itself: triple patterns, or a path."""
    return isinstance(pattern, BGP | PathPattern)


def read_of_event(record: Record) -> Iterator[BGP | PathPattern]:
    """The patterns inside EVENT that may match triples of the event, those inside EXISTS included."""
    for part in subpatterns(record.pattern):
        if reads_triples(part) and part.graph is None:
            yield replace(part, stream=record.stream)


def events_in(value: object) -> Iterator[Record]:
    """Each EVENT in a query, a pattern or a node."""
    return (part for part in walk(value) if isinstance(part, Record))


def columns_of_event(pattern: Pattern) -> tuple[Record, ...]:
    """An EVENT of triple patterns as one EVENT for each of these; nothing for any other pattern."""
    match pattern:
        case Record(BGP(triples)):
            return tuple(replace(pattern, pattern=BGP((triple,))) for triple in triples)
    return ()


def has_event(value: object) -> bool:
    """Whether there is an EVENT in a query, a pattern or a node."""
    return any(True for _ in events_in(value))


def blocks_with_bounds(pattern: Pattern, around: tuple[Bound, ...] = ()) -> Iterator[tuple[BGP, tuple[Bound, ...]]]:
    """The triple patterns outside stored graphs, each block with the windows of the groups around it."""
    if isinstance(pattern, BGP):
        if pattern.graph is None:
            yield pattern, around
        return
    inside = (*around, pattern.bound) if isinstance(pattern, Within) else around
    for child in children(pattern):
        yield from blocks_with_bounds(child, inside)


def blocks_of_triples(pattern: Pattern) -> Iterator[BGP]:
    """The triple patterns of a pattern, those inside EXISTS included, parents first."""
    return (part for part in subpatterns(pattern) if isinstance(part, BGP))


def triples_of(pattern: Pattern) -> tuple[Triple, ...] | None:
    """The triple patterns of a basic graph pattern; None for any other pattern."""
    return pattern.triples if isinstance(pattern, BGP) else None


def is_one_triple(pattern: Pattern) -> TypeGuard[BGP]:
    """Whether it is a single triple pattern."""
    return isinstance(pattern, BGP) and len(pattern.triples) == 1


def one_by_one(pattern: Pattern) -> tuple[BGP | PathPattern, ...]:
    """A pattern for each triple pattern or path that stands directly in a pattern."""
    match pattern:
        case BGP(triples):
            return tuple(replace(pattern, triples=(triple,)) for triple in triples)
        case PathPattern():
            return (pattern,)
    return ()


def plain_triples(pattern: Pattern) -> tuple[Triple, ...] | None:
    """The triple patterns of a pattern that consists of these and filters, outside stored graphs; else None."""
    match pattern:
        case BGP(triples, _, None):
            return triples
        case Filter(child, _):
            return plain_triples(child)
    return None


def reads_of_triples(pattern: Pattern) -> Iterator[BGP | PathPattern]:
    """The triple patterns and paths of a pattern, those inside EXISTS included, parents first."""
    return filter(reads_triples, subpatterns(pattern))


def read_of_graphs(pattern: Pattern) -> Iterator[BGP | PathPattern | GraphNames]:
    """The parts that ask stored graphs, those inside EXISTS and EVENT included: in a window, graphs are its items."""
    for part in subpatterns(pattern):
        if isinstance(part, Record):
            yield from read_of_graphs(part.pattern)
        elif isinstance(part, GraphNames) or (reads_triples(part) and part.graph is not None and not part.stream):
            yield part


def read_of_stream(pattern: Pattern) -> Iterator[BGP | PathPattern]:
    """The triple patterns and paths outside stored graphs, those inside EXISTS and EVENT included, parents first."""
    for part in subpatterns(pattern):
        if isinstance(part, Record):
            yield from read_of_event(part)
        elif reads_triples(part) and part.graph is None:
            yield part


def may_be_timed(pattern: Pattern) -> bool:
    """Whether a solution can hold an occurrence: some part that it is made of reads the default graph or a stream."""
    match pattern:
        case Minus(left):
            return may_be_timed(left)
        case BGP(triples, _, graph):
            return bool(triples) and graph is None
        case PathPattern(_, _, _, _, graph):
            return graph is None
        case Record():
            return True
        case _:
            return any(may_be_timed(child) for child in children(pattern))


def clauses_over_stream(select: Select) -> str:
    """The clauses of a sub-SELECT whose answer grows with the stream, as words; nothing if it has none of them.

    Such a sub-SELECT reports as the stream goes on and is not looked for backwards in the past.
    """
    if not may_be_timed(select.pattern):
        return ""
    clauses = {
        "GROUP BY or aggregates": select.grouped,
        "LIMIT or OFFSET": select.limit is not None or bool(select.offset),
        "WITHIN": select.window is not None,
    }
    return " and ".join(name for name, there in clauses.items() if there)
