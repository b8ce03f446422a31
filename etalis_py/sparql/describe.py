"""DESCRIBE: a concise bounded description.

All triples with the resource as subject, and again for every blank node among their objects; from the stream so far
and from the background.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.terms import is_blank

Triple = tuple[str, str, str]


class Remembers(Protocol):
    """The sources of a description: an engine's knowledge and the history of its stream."""

    knowledge: Any
    state: Any


def describer(output: ir.Output, columns: tuple[str, ...], engine: Remembers) -> Callable[[Any], tuple[Triple, ...]]:
    """A function from a row to the description of its resources."""
    places = {name: 2 + i for i, name in enumerate(columns)}

    def describe(row: Any) -> tuple[Triple, ...]:
        description: dict[Triple, None] = {}
        bound = {name: row[place] for name, place in places.items()}
        waiting = []
        for subject in output.subjects:
            if term := alg.term_in(bound, subject):
                waiting.append(term)
        seen = set(waiting)
        while waiting:
            node = waiting.pop()
            for triple in sorted(_about(engine, node, row[0])):
                description[triple] = None
                if is_blank(triple[2]) and triple[2] not in seen:
                    seen.add(triple[2])
                    waiting.append(triple[2])
        return tuple(description)

    return describe


def _about(engine: Remembers, node: str, at: int) -> Iterable[Triple]:
    triples: set[Any] = set()
    if engine.knowledge is not None:
        triples.update(tuple(t[:3]) for t in engine.knowledge.default.match(node, None, None))
    if engine.state.log is not None:
        triples.update(tuple(t[:3]) for t in engine.state.log.match(node, None, None, at if at > -(2**63) else None))
    return triples
