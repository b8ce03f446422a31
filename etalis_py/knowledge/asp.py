"""Answer-set programs over background knowledge and streams.

A program without ``event`` lines is *static*: solved once for a version of the knowledge, in a process of its own.  One
with them is *live*: it is grounded once, with every event atom there can be as an external; events only switch
externals and the program is solved again.  Nothing is grounded and no symbol is made after the start, so the process
does not grow however many new IRIs a stream brings: terms unknown to the background borrow one of a fixed number of
slots while an atom about them is true.  (A program in *rounds* is grounded anew instead, with the true atoms as facts;
its numbers are the same.)

Cost: an instant costs one solver call over the grounded program; memory is that of the grounded program and of the
atoms that are true.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

import clingo

from etalis_py.events import Triple
from etalis_py.knowledge.asp_border import (
    constants,
    fact_lines,
    integer,
    match,
    offered_triple,
    offers,
    parse_atoms,
    read_facts,
    shows,
)
from etalis_py.knowledge.asp_grounding import Atom, Ground, Grounding, InRounds, Switched
from etalis_py.knowledge.asp_interface import AspProgram, EventAtom, parse_program
from etalis_py.knowledge.entail import Numbering
from etalis_py.knowledge.errors import KnowledgeError
from etalis_py.knowledge.graph import Graph
from etalis_py.knowledge.solving import OPTIMAL, consequences
from etalis_py.values.limits import LIMITS, Limits

Key = tuple[int, tuple[str, ...]]  # which event atom, and the terms of its arguments


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a program says at one time: the offered triples, or that it has no answer set.

    ``ignored`` counts the event triples that matched a declaration but are outside what its ``over`` allows.
    """

    triples: tuple[Triple, ...]
    inconsistent: bool = False
    ignored: int = 0


def static_answers(program: AspProgram, graph: Graph, limits: Limits = LIMITS) -> Outcome:
    """The triples that a static program offers over a graph."""
    if program.events:
        raise KnowledgeError("the program reads events", source=program.source, hint="run it with a stream")
    numbering = Numbering(program.constants.values())
    text = "\n".join([program.text, *fact_lines(read_facts(program, graph, numbering)), *shows(program)])
    given, optimal = constants(program, numbering), program.optimizes
    atoms = consequences(text, given, brave=program.brave, name=program.source, limits=limits, optimal=optimal)
    if atoms is None:
        return Outcome((), inconsistent=True)
    terms = dict(enumerate(numbering.numbers))
    declared = offers(program)
    triples = (
        offered_triple(program, declared[name, len(values)], values, terms)
        for name, values in parse_atoms(atoms)
        if (name, len(values)) in declared
    )
    return Outcome(tuple(sorted(set(triples))))


class LiveProgram:
    """A program that reads events, with the event atoms that are true now.

    ``conflicts`` limits the search at one instant; unlike a limit of time it stops the same run at the same place.
    """

    def __init__(
        self, program: AspProgram, graph: Graph, *, conflicts: int = 1_000_000, limits: Limits = LIMITS
    ) -> None:
        self.program = program
        self.limits = limits
        self.conflicts = conflicts
        numbering = Numbering(program.constants.values())
        facts = read_facts(program, graph, numbering)
        self._known = numbering.numbers
        self._terms = dict(enumerate(self._known))
        first = len(self._known)
        self._free = list(range(first, first + program.slots))
        heapify(self._free)  # the lowest free slot is taken, so that few are ever used
        self._slot: dict[str, int] = {}
        self._uses: dict[int, int] = {}
        self._true: dict[Key, tuple[int | None, Atom]] = {}  # the last time an atom is true, and the atom in numbers
        self._ends: list[tuple[int, Key]] = []  # a heap; an entry counts only while it agrees with ``_true``
        self._until: dict[Triple, dict[Key, None]] = {}  # the true atoms that a triple ends
        self._offers = offers(program)
        self._patterns = tuple(dict.fromkeys(program.patterns))
        self._last: Outcome | None = None
        ground = Ground(program, facts, constants(program, numbering), first, limits)
        self._grounding: Grounding = InRounds(ground, program.rounds) if program.rounds else Switched(ground)

    # ------------------------------------------------------------------------------------------------------- time

    def reads(self, triple: Triple) -> bool:
        """Whether a streamed triple is one that begins an event or ends one."""
        return any(match(pattern, triple) is not None for pattern in self._patterns)

    def step(self, time: int, triples: Iterable[Triple] = ()) -> Outcome:
        """The outcome at an instant in which these triples occur.

        An ``until`` and its event in the same instant: the atom is true afterwards.
        """
        given = list(dict.fromkeys(triples))
        ended = [key for triple in given for key in self._until.get(triple, ())]
        while self._ends and self._ends[0][0] < time:
            due, key = heappop(self._ends)
            if key in self._true and self._true[key][0] == due:
                ended.append(key)
        begun: dict[Key, int | None] = {}
        for index, event in enumerate(self.program.events):
            for triple in given:
                values = match(event.atom.pattern, triple)
                if values is not None:
                    key = (index, tuple(values[a.name] for a in event.atom.arguments))
                    begun[key] = None if event.within is None else time + event.within
        changed = False
        for key in dict.fromkeys(ended):
            if key not in begun:
                self._switch_off(key)
                changed = True
        ignored = 0
        for key, end in begun.items():
            if key in self._true:
                self._lasts(key, end, self._true[key][1])
            elif self._switch_on(key, end):
                changed = True
            else:
                ignored += 1
        if changed or self._last is None:
            self._last = self._solve()
        return Outcome(self._last.triples, self._last.inconsistent, ignored)

    def _lasts(self, key: Key, end: int | None, atom: Atom) -> None:
        self._true[key] = (end, atom)
        if end is not None:
            heappush(self._ends, (end, key))

    def _ending(self, key: Key) -> Triple | None:
        """The triple that makes an atom false."""
        event = self.program.events[key[0]]
        if event.until is None:
            return None
        values = dict(zip((a.name for a in event.atom.arguments), key[1], strict=True))
        s, p, o = (values.get(term, term) for term in event.until)
        return s, p, o

    # ---------------------------------------------------------------------------------------------------- symbols

    def _switch_on(self, key: Key, end: int | None) -> bool:
        """Make an atom true; false when the program has no such atom."""
        event = self.program.events[key[0]]
        borrowed: list[str] = []
        allowed = False
        try:
            numbers = tuple(
                integer(argument, term) if argument.integer else self._number(term, borrowed)
                for argument, term in zip(event.atom.arguments, key[1], strict=True)
            )
            atom = (key[0], numbers)
            allowed = self._grounding.has(atom)
        finally:
            if not allowed:
                for term in borrowed:
                    self._release(term)
        if not allowed:
            return False
        for term in key[1]:
            if term in self._slot:
                self._uses[self._slot[term]] += 1
        self._grounding.switch(atom, True)
        self._lasts(key, end, atom)
        if triple := self._ending(key):
            self._until.setdefault(triple, {})[key] = None
        return True

    def _switch_off(self, key: Key) -> None:
        _, atom = self._true.pop(key)
        self._grounding.switch(atom, False)
        if triple := self._ending(key):
            del self._until[triple][key]
            if not self._until[triple]:
                del self._until[triple]
        for term in key[1]:
            if term in self._slot:
                self._uses[self._slot[term]] -= 1
                if not self._uses[self._slot[term]]:
                    self._release(term)

    def _number(self, term: str, borrowed: list[str]) -> int | None:
        number = self._known.get(term, self._slot.get(term))
        if number is not None or not self.program.slots:
            return number
        if not self._free:
            raise KnowledgeError(
                f"all {self.program.slots} slots are taken, and {term} needs one",
                source=self.program.source,
                hint="declare more with %! slots, or let the events that hold them end (within, until)",
            )
        number = self._slot[term] = heappop(self._free)
        self._uses[number] = 0
        self._terms[number] = term
        borrowed.append(term)
        return number

    def _release(self, term: str) -> None:
        number = self._slot.pop(term)
        del self._uses[number], self._terms[number]
        heappush(self._free, number)

    # ------------------------------------------------------------------------------------------------------ solve

    def _solve(self) -> Outcome:
        last: list[clingo.Symbol] | None = None
        control = self._grounding.control()
        options: Any = control.configuration.solve
        options.enum_mode = "brave" if self.program.brave else "cautious"
        options.solve_limit = f"{self.conflicts},umax"
        if self.program.optimizes:
            options.opt_mode = OPTIMAL
        with control.solve(yield_=True) as handle:
            for model in handle:
                last = list(model.symbols(shown=True))
            finished = handle.get().exhausted
        if not finished:
            raise KnowledgeError(
                f"the program was not solved within {self.conflicts:,} conflicts",
                source=self.program.source,
                hint="give it more (conflicts=), or write it with fewer choices",
            )
        if last is None:
            return Outcome((), inconsistent=True)
        triples = {
            offered_triple(self.program, self._offers[atom.name, len(atom.arguments)], atom.arguments, self._terms)
            for atom in last
            if atom.type is clingo.SymbolType.Function and (atom.name, len(atom.arguments)) in self._offers
        }
        return Outcome(tuple(sorted(triples)))

    # ------------------------------------------------------------------------------------------------------ state

    def snapshot(self) -> list[tuple[int, list[str], int | None]]:
        """The event atoms that are true, as plain data."""
        return [(index, list(terms), end) for (index, terms), (end, _) in self._true.items()]

    def over(self, graph: Graph) -> tuple[LiveProgram, int]:
        """The program over another version of the background, and how many true atoms it no longer has."""
        renewed = LiveProgram(self.program, graph, conflicts=self.conflicts, limits=self.limits)
        dropped = sum(not renewed._switch_on(key, end) for key, (end, _) in self._true.items())
        return renewed, dropped

    def true(self) -> dict[Key, int | None]:
        """The event atoms that are true, with the last time at which they are."""
        return {key: end for key, (end, _) in self._true.items()}

    def change(self, on: Iterable[tuple[Key, int | None]], off: Iterable[Key]) -> None:
        """Make atoms false, then others true."""
        for key in off:
            if key in self._true:
                self._switch_off(key)
        for key, end in on:
            if key in self._true:
                self._lasts(key, end, self._true[key][1])
            elif not self._switch_on(key, end):
                raise KnowledgeError(
                    f"the stored state has an atom that this program does not know: {key[0]} {list(key[1])}",
                    source=self.program.source,
                    hint="restore with the program and the background that it was stored with",
                )
        self._last = None

    def restore(self, snapshot: Iterable[tuple[int, Iterable[str], int | None]]) -> None:
        """Make exactly the atoms of a snapshot true."""
        self.change((((index, tuple(terms)), end) for index, terms, end in snapshot), list(self._true))


__all__ = ["AspProgram", "EventAtom", "LiveProgram", "Outcome", "parse_program", "static_answers"]
