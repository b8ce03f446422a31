"""Groups that take the columns of one thing from several records: what is told of them, and what they should be.

``{ ?card :city ?city ; :amount ?amount }`` joins every city of a card with every amount of it.  That is right where the
triples arrive apart, and seldom meant where one event says both, as a row of a table does.

The first events are counted: per thing the occurrences of both predicates, and the events that say both.  So nothing is
told where no event says both, and after the first events nothing is looked at.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import TYPE_CHECKING

from etalis_rules import algebra as alg
from etalis_rules.spelling import Spelling
from etalis_rules.terms import RDF

from etalis_py.engine.first_events import FirstEvents

if TYPE_CHECKING:
    from etalis_py.engine.program import Program
    from etalis_py.events import Event
    from etalis_py.kernel.batch import Columns

_GROUPS = 20
"""The number of groups that are looked at."""
_MONTH = 31 * 86_400_000_000


@dataclass(slots=True)
class _Group:
    """Patterns with one subject in a group of a query; ``bound`` is the longest time that they may be apart.

    ``places`` has the patterns by their predicates, each with the object that it asks for; ``differing`` those pairs of
    them that may have different values.  ``seen``: for each thing and pattern, the occurrences that fit it; ``both``:
    for each pair, the pairs of occurrences in one event.
    """

    query: str
    subject: str
    patterns: tuple[alg.Triple, ...]
    whole: alg.BGP
    bound: int | None
    places: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    differing: set[tuple[int, int]] = field(default_factory=set)
    seen: defaultdict[tuple[str, int], set[tuple[int, str]]] = field(default_factory=lambda: defaultdict(set))
    both: defaultdict[tuple[int, int], set[tuple[str, int, str, str]]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        for place, pattern in enumerate(self.patterns):
            self.places.setdefault(alg.constant_of(pattern.predicate), []).append(
                (place, alg.constant_of(pattern.object))
            )
        for one, other in combinations(range(len(self.patterns)), 2):
            a, b = self.patterns[one], self.patterns[other]
            if a.predicate != b.predicate and not (a.object == b.object and alg.variable_of(a.object)):
                self.differing.add((one, other))


class JoinedRecords(FirstEvents):
    """Counts the pairs that the groups of a program join, over the first events."""

    ROWS = 8 * FirstEvents.MOST

    def __init__(self, program: Program, groups: list[_Group]) -> None:
        super().__init__()
        self._spelling = Spelling(program.prefixes)
        self._unnamed = program.unnamed
        self._groups = groups
        self._wanted = {alg.constant_of(pattern.predicate) for group in groups for pattern in group.patterns}

    @classmethod
    def of(cls, program: Program) -> JoinedRecords | None:
        """What counts for this program; None if it has no group to be looked at."""
        every = (
            group
            for query in program.compilation.queries
            for block, around in alg.blocks_with_bounds(alg.SubSelect(query.algebra))
            for group in _groups(query.name, block, around)
        )
        groups = list(islice(every, _GROUPS))
        return cls(program, groups) if groups else None

    def see_columns(self, columns: Columns) -> None:
        """The same for events in columns."""
        if columns.event is not None:  # else each row is an event, so none says two things
            super().see_columns(columns)

    def _count(self, event: Event) -> bool:
        triples = [triple for triple in event.triples if triple[1] in self._wanted]
        if triples:
            for group in self._groups:
                if group.whole.stream in ("", event.stream or self._unnamed):
                    _note_pairs(group, event.end, triples)
        return bool(triples)

    def warnings(self) -> Iterator[str]:
        """What is told: each group that joined values of different events."""
        for group in self._groups:
            if not group.both:
                continue
            pair = max(group.both, key=lambda pair: (len(group.both[pair]), -pair[0], -pair[1]))
            every, apart = _pairs(group, pair)
            if apart:
                yield self._told(group, pair, every, apart)

    def _told(self, group: _Group, pair: tuple[int, int], every: int, apart: int) -> str:
        term, variable = self._spelling.term, self._spelling.variable
        names = " and ".join(term(alg.constant_of(group.patterns[place].predicate)) for place in pair)
        counted = f" of the first {self._events:,} events" if self.left_some else ""
        event = f"EVENT {{ {self._text(group.whole.triples)} }}"
        if group.whole.stream:
            event = f"STREAM {term(group.whole.stream)} {{ {event} }}"
        return (
            f"{group.query} joins {names} of one {variable(group.subject)} across events, and events say both: "
            f"{apart:,} of {every:,} pairs{counted} joined values of different events; to ask one event, write {event}"
        )

    def _text(self, triples: Iterable[alg.Triple]) -> str:
        """Triple patterns as a query has them."""
        parts: list[str] = []
        before = ""
        for triple in triples:
            subject, predicate, object_ = (
                alg.spelled(node, self._spelling.variable, self._spelling.term)
                for node in (triple.subject, triple.predicate, triple.object)
            )
            if not parts:
                parts.append(f"{subject} {predicate} {object_}")
            else:
                parts.append(
                    f" ; {predicate} {object_}" if subject == before else f" . {subject} {predicate} {object_}"
                )
            before = subject
        return "".join(parts)


def _groups(query: str, block: alg.BGP, around: Iterable[alg.Bound]) -> Iterator[_Group]:
    """The groups of patterns with one subject, with the time that they may be apart."""
    bound = min((length.micros + length.months * _MONTH for length in around), default=None)
    about: dict[str, list[alg.Triple]] = {}
    for triple in block.triples:
        subject = alg.variable_of(triple.subject)
        if subject and alg.constant_of(triple.predicate) not in ("", f"<{RDF}type>"):
            about.setdefault(subject, []).append(triple)
    for subject, patterns in about.items():
        if len({alg.constant_of(triple.predicate) for triple in patterns}) > 1:
            yield _Group(query, subject, tuple(patterns), block, bound)


def _note_pairs(group: _Group, end: int, triples: list[tuple[str, str, str]]) -> None:
    found: dict[str, list[tuple[int, str]]] = {}
    for s, p, o in triples:
        for place, wanted in group.places.get(p, ()):
            if wanted in ("", o):
                found.setdefault(s, []).append((place, o))
                group.seen[s, place].add((end, o))
    for thing, values in found.items():
        if len(values) > 1:
            for (one, a), (other, b) in combinations(sorted(values), 2):
                if (one, other) in group.differing:
                    group.both[one, other].add((thing, end, a, b))


def _pairs(group: _Group, pair: tuple[int, int]) -> tuple[int, int]:
    """The pairs that are joined, and those of them that are of different events.

    What two events say alike counts once, as in the solutions of the group.
    """
    every = 0
    for (thing, place), seen in group.seen.items():
        if place != pair[0]:
            continue
        ones, others = (sorted(end for end, _ in some) for some in (seen, group.seen.get((thing, pair[1]), ())))
        if group.bound is None:
            every += len(ones) * len(others)
        else:
            bound = group.bound
            every += sum(bisect_right(others, end + bound) - bisect_left(others, end - bound) for end in ones)
    return every, every - len(group.both[pair])
