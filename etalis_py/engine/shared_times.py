"""Events of one key at one time, where a query puts events in order: simultaneous events have none.

A source with coarse clocks, seconds say, has many of them, and the operators that go by time then pass over what its
reader thinks of as one after the other.  The first events are counted; after them nothing is looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from etalis_rules import algebra as alg
from etalis_rules.spelling import Spelling

from etalis_py.engine.first_events import FirstEvents

if TYPE_CHECKING:
    from etalis_py.engine.program import Program
    from etalis_py.events import Event

FEWEST = 10
"""The number of events that share their times from which on there is something to tell."""
_PORTION = 10  # more than one in so many


class SharedTimes(FirstEvents):
    """Counts the events that share their subject, predicate and time with another one."""

    def __init__(self, program: Program, wanted: frozenset[str]) -> None:
        """``wanted`` are the predicates that ordered events have; "" stands for any."""
        super().__init__()
        self._term = Spelling(program.prefixes).term
        self._wanted = wanted
        self._there: defaultdict[tuple[str, str, int], set[tuple[str, int]]] = defaultdict(set)

    @classmethod
    def of(cls, program: Program) -> SharedTimes | None:
        """What counts for this program; None if no query of it puts events in order."""
        ordered = [
            part
            for query in program.compilation.queries
            for part in alg.subpatterns(query.algebra.pattern)
            if alg.puts_in_order(part)
        ]
        read = (alg.plain_triples(alg.without_blocks(p)) or () for part in ordered for p in alg.read_of_stream(part))
        wanted = frozenset(alg.constant_of(triple.predicate) for triples in read for triple in triples)
        return cls(program, wanted) if wanted else None

    def _count(self, event: Event) -> bool:
        """Take note of it once: by the first of its triples that is asked for."""
        for s, p, o in event.triples:
            if p in self._wanted or "" in self._wanted:
                self._there[s, p, event.end].add((o, event.start))
                return True
        return False

    def warnings(self) -> Iterator[str]:
        """What is told, if more than a tenth of the events share their times."""
        counted = sum(map(len, self._there.values()))
        shared = [key for key, there in self._there.items() if len(there) > 1]
        many = sum(len(self._there[key]) for key in shared)
        if many < FEWEST or many * _PORTION <= counted:
            return
        s, p, _ = max(shared, key=lambda key: (len(self._there[key]), key))
        first = f"the first {counted:,}" if self.left_some else f"{counted:,}"
        yield (
            f"{many:,} of {first} events share their time with another one of the same subject and predicate, such as "
            f"{self._term(s)} {self._term(p)}: simultaneous events have no order, so {alg.IN_ORDER} take none of "
            "them for the later one; use finer times, if the source has them, or let its order decide, with --ties "
            'source or ties="source"; --ties COLUMN takes that of a column'
        )
