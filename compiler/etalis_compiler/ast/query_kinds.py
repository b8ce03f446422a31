"""Tells queries apart: those over windows from EP-SPARQL queries, those of whole events from those of triples."""

from __future__ import annotations

from .nodes import Current, EventDeclaration, EventGroup, Match, Query, StreamGroup, TripleTime, WindowGroup
from .walking import walk


def is_windowed(query: Query) -> bool:
    """Whether a query is evaluated over windows at evaluation times (else it is an EP-SPARQL query)."""
    if query.kind == "fact" or query.r2s or query.report is not None or any(c.kind != "graph" for c in query.dataset):
        return True
    marks = (WindowGroup, EventDeclaration, Match, TripleTime, Current)
    return any(isinstance(n, marks) or (isinstance(n, StreamGroup) and n.window is not None) for n in walk(query))


def reads_whole_events(query: Query) -> bool:
    """Whether a query has EVENT, which matches all triples of one event together."""
    return any(isinstance(node, EventGroup) for node in walk(query))
