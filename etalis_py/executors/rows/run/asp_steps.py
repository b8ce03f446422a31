"""Answer-set programs that read events, stepped with the instants of a stream.

Definition.  At an instant t in which a triple occurs that a program reads (or that ends one of its atoms), the program
is stepped with the triples of t as they were pushed; it then offers occurrences ⟨triple, t, t⟩ of that same instant, in
the default stream.  In other instants it offers nothing: an event that a program does not read changes no answer, and
reports are never taken back.  Programs do not read triples derived by rules, the schema or programs.

A program without an answer set offers, instead of its atoms, one triple ``<urn:etalis:program:NAME> rdf:type
<urn:etalis:Inconsistent>``, and is counted.  For a program with a key, all this holds for each value of the key: it is
stepped with the triples that concern its own atoms, and if it has no answer set the triple is
``<urn:etalis:program:NAME> <urn:etalis:inconsistentFor> KEY``.

Cost: one look-up for each triple, and one call of the solver for each instant that a program reads (by key: for each
key in it).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from etalis_py.events import Triple
from etalis_py.executors.rows.generate.plan import GeneratedFunctions, Occurrence
from etalis_py.knowledge import Knowledge

if TYPE_CHECKING:
    from etalis_py.knowledge.asp import LiveProgram
    from etalis_py.knowledge.asp_interface import AspProgram


class Counts(Protocol):
    """The counters of the engine that answer-set programs update."""

    inconsistent: int
    ignored: int


class LivePrograms:
    """The live programs of the background, with the event atoms that are true in each."""

    __slots__ = ("_counts", "_facts", "_knowledge", "_predicates", "_programs", "_reported")

    def __init__(self, knowledge: Knowledge | None, counts: Counts) -> None:
        self._knowledge = knowledge
        self._counts = counts
        programs = () if knowledge is None else knowledge.programs
        self._programs = [] if knowledge is None else [_started(p, knowledge) for p in programs]
        self._facts = [_read(p, knowledge) for p in programs]
        self._reported: list[dict[Any, Any]] = [{} for _ in self._programs]  # what was true at the last journal
        self._predicates = [p.predicates for p in programs]
        if knowledge is not None:
            counts.inconsistent += len(knowledge.inconsistent)

    def attached(self, generated: GeneratedFunctions) -> GeneratedFunctions:
        """The generated functions, with the steps of the programs before each instant that one of them reads."""
        if not self._programs:
            return generated
        read = frozenset().union(*self._predicates)
        get, rest, instant = generated.single.get, generated.other, generated.instant

        def with_offers(t: int, occurrences: Sequence[Occurrence]) -> None:
            instant(t, [*occurrences, *self.step(t, [o[:3] for o in occurrences])])

        def other(s: str, o: str, start: int, t: int, stream: str, p: str) -> None:
            if p in read or None in read:
                with_offers(t, [(s, p, o, start, stream)])
            else:
                get(p, rest)(s, o, start, t, stream, p)

        def several(t: int, occurrences: Sequence[Occurrence]) -> None:
            if None in read or any(o[1] in read for o in occurrences):
                with_offers(t, occurrences)
            else:
                instant(t, occurrences)

        return replace(generated, single={}, other=other, instant=several)

    def step(self, t: int, triples: Sequence[Triple]) -> list[Occurrence]:
        """The occurrences that the programs offer at an instant."""
        offered: list[Occurrence] = []
        for live, predicates in zip(self._programs, self._predicates, strict=True):
            some = triples if None in predicates else [x for x in triples if x[1] in predicates]
            read = [x for x in some if live.reads(x)]
            if not read:
                continue
            outcome = live.step(t, read)
            self._counts.ignored += outcome.ignored
            offers = outcome.triples
            if outcome.without:
                self._counts.inconsistent += len(outcome.without)
                offers += tuple(map(live.program.inconsistency_for, outcome.without))
            elif outcome.inconsistent:
                self._counts.inconsistent += 1
                offers = (live.program.inconsistency,)
            offered += [(*triple, t, "") for triple in offers]
        return offered

    def renew(self) -> None:
        """Take over a new version of the background: programs whose facts have changed are grounded again."""
        if self._knowledge is None:
            return
        self._counts.inconsistent += len(self._knowledge.inconsistent)
        for i, live in enumerate(self._programs):
            facts = _read(live.program, self._knowledge)
            if facts != self._facts[i]:
                self._programs[i], dropped = live.over(self._knowledge.default)
                self._facts[i] = facts
                self._counts.ignored += dropped

    def snapshot(self) -> list[Any]:
        """The true event atoms of each program, as plain data."""
        return [[live.program.source, live.snapshot()] for live in self._programs]

    def restore(self, snapshot: Iterable[Any]) -> None:
        """Make the atoms of a snapshot true; the programs are those of the background in its order."""
        for live, (_, atoms) in zip(self._programs, snapshot, strict=True):
            live.restore(atoms)
        self._reported = [live.true() for live in self._programs]

    def journal(self) -> list[Any]:
        """For each program, as plain data: the event atoms that became true (or last longer), and those that ended.

        Changes count from the last journal, or from the snapshot or journal that was read.
        """
        changes = []
        for i, live in enumerate(self._programs):
            before, now = self._reported[i], live.true()
            on = [[*key, end] for key, end in now.items() if key not in before or before[key] != end]
            changes.append([on, [list(key) for key in before if key not in now]])
            self._reported[i] = now
        return changes

    def apply(self, journal: Iterable[Any]) -> None:
        """Apply the changes in a journal."""
        for live, (on, off) in zip(self._programs, journal, strict=True):
            live.change(
                [((index, tuple(terms)), end) for index, terms, end in on],
                [(index, tuple(terms)) for index, terms in off],
            )
        self._reported = [live.true() for live in self._programs]


def _started(program: AspProgram, knowledge: Knowledge) -> LiveProgram:
    from etalis_py.knowledge.asp import LiveProgram  # clingo takes a while to load

    return LiveProgram(program, knowledge.default, limits=knowledge.limits)


def _read(program: AspProgram, knowledge: Knowledge | None) -> frozenset[Triple]:
    """The background triples that a program may read."""
    if knowledge is None:
        return frozenset()
    triples: set[Triple] = set()
    for declared in program.reads:
        s, p, o = (term if term[0] in '<"_' else None for term in declared.pattern)
        triples.update(knowledge.default.match(s, p, o))
    return frozenset(triples)
