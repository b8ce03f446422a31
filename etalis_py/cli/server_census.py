"""Predicates that the standing queries of a program ask for and no event so far has had: they are probably misspelt.

Queries of one kind have the same predicates, so each kind has one census, and all kinds share what has come: an event
costs a look at its predicates, however many queries there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from etalis_py.engine.program import Program
from etalis_py.engine.query_families import GatheredQueries
from etalis_py.engine.unseen_names import MOST, UnseenNames
from etalis_py.events import Event
from etalis_py.knowledge import Knowledge


@dataclass(slots=True)
class _Kind:
    census: UnseenNames
    names: dict[str, None] = field(default_factory=dict)

    def __str__(self) -> str:
        """Its first query, and how many others there are."""
        first, others = next(iter(self.names)), len(self.names) - 1
        return f"{first} and {others:,} like it" if others else first


class StandingCensus:
    """State: the kinds with the names of their queries, and the distinct predicates, at most ``MOST`` beside those that
    are asked for.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}
        self._kind_of: dict[str, str] = {}
        self._asked: set[str] = set()
        self._seen: set[str] = set()

    def add(self, name: str, program: Program) -> None:
        """Take note of a query, given as the program that runs; one that belongs to no family is a kind of its own."""
        self.remove(name)
        compilation = program.compilation
        families = compilation.groups if isinstance(compilation, GatheredQueries) else ()
        key = families[0].name if families else name
        if (kind := self._kinds.get(key)) is None:
            kind = self._kinds[key] = _Kind(UnseenNames(program))
            self._asked |= kind.census.missing
        kind.names[name] = None
        self._kind_of[name] = key

    def remove(self, name: str) -> None:
        """Forget a query, and its kind if it was the last one of it."""
        if (key := self._kind_of.pop(name, None)) is None:
            return
        del self._kinds[key].names[name]
        if not self._kinds[key].names:
            del self._kinds[key]
            self._asked = set[str]().union(*(kind.census.missing for kind in self._kinds.values()))

    def see(self, events: Iterable[Event]) -> None:
        """Take note of a batch of events."""
        for event in events:
            for _, predicate, _ in event.triples:
                if predicate not in self._seen and (len(self._seen) < MOST or predicate in self._asked):
                    self._seen.add(predicate)

    def warnings(self, knowledge: Knowledge | None) -> list[str]:
        """The probable slips, each with the queries that have it."""
        if not self._seen:
            return []
        kinds = self._kinds.values()
        return [f"{kind}: {told}" for kind in kinds for told in kind.census.never_occurred(self._seen, knowledge)]
