"""Answer-set programs over background knowledge and streams.

A program without ``event`` lines is *static*: it is solved once for each version of the knowledge, in a separate
process.  One with them is *live*: it is grounded once, with every possible event atom as an external; events only
switch externals, and the program is solved again.  Nothing is grounded and no symbol is created after the start, so the
process does not grow however many new IRIs a stream brings: terms unknown to the background borrow one of a fixed
number of slots while an atom about them is true.  (A program in *rounds* is grounded again instead, with the true atoms
as facts; it numbers terms in the same way.)

Cost: an instant costs one solver call over the grounded program (with a key: one for each key that has an event in it);
memory is that of the grounded program and of the true atoms.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
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
from etalis_py.knowledge.asp_interface import AspProgram, Declared, EventAtom, parse_program
from etalis_py.knowledge.asp_slots import Slots
from etalis_py.knowledge.errors import KnowledgeError
from etalis_py.knowledge.graph import Graph
from etalis_py.knowledge.schema_closure import Numbering
from etalis_py.knowledge.solving import OPTIMAL, consequences
from etalis_py.values.limits import LIMITS, Limits

Key = tuple[int, tuple[str, ...]]  # which event atom, and the terms of its arguments


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a program at one time: the offered triples, or that it has no answer set.

    ``ignored`` counts the event triples that matched a declaration but that its ``over`` does not allow.  ``without``
    has the keys without an answer set, if each key has its own program.
    """

    triples: tuple[Triple, ...]
    inconsistent: bool = False
    ignored: int = 0
    without: tuple[str, ...] = ()


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


@dataclass(slots=True)
class _Group:
    """The true atoms of one key (or all, if the program has no key), and the outcome while they stay the same."""

    slots: Slots
    atoms: dict[Key, Atom] = field(default_factory=dict)
    last: Outcome | None = None


class LiveProgram:
    """A program that reads events, with the event atoms that are currently true.

    With a key it is still grounded only once: the true atoms of a key are switched on while the program is solved for
    it, and those of the other keys are off.  The state of a key is dropped with its last true atom.

    ``conflicts`` limits the search at one instant; unlike a time limit, it stops equal runs at the same place.
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
        self._true: dict[Key, int | None] = {}  # the last time at which an atom is true
        self._ends: list[tuple[int, Key]] = []  # a heap; an entry counts only while it agrees with ``_true``
        self._until: dict[Triple, dict[Key, None]] = {}  # the true atoms that a triple ends
        self._groups: dict[str, _Group] = {}
        self._active = ""  # the key whose atoms are switched on
        self._offers = offers(program)
        self._patterns = tuple(dict.fromkeys(program.patterns))
        # The place of the key among the arguments of each event, and of each offered atom.
        self._key_of = [_place(program.key, event.atom) for event in program.events]
        self._offered_key = {signature: _place(program.key, declared) for signature, declared in self._offers.items()}
        ground = Ground(program, facts, constants(program, numbering), len(self._known), limits)
        self._grounding: Grounding = InRounds(ground, program.rounds) if program.rounds else Switched(ground)

    # ------------------------------------------------------------------------------------------------------- time

    def reads(self, triple: Triple) -> bool:
        """Whether a streamed triple begins or ends an event."""
        return bool(self._keys(triple))

    def _keys(self, triple: Triple) -> list[str]:
        """The keys of this engine whose events a triple begins or ends; without a key, the empty one."""
        matches = [values for pattern in self._patterns if (values := match(pattern, triple)) is not None]
        if not self.program.key:
            return [""] if matches else []
        return [key for key in dict.fromkeys(v[self.program.key] for v in matches) if self.program.owns(key)]

    def step(self, time: int, triples: Iterable[Triple] = ()) -> Outcome:
        """The outcome at an instant in which these triples occur.

        If an ``until`` and its event are in the same instant, the atom is true afterwards.
        """
        given = list(dict.fromkeys(triples))
        ended = [key for triple in given for key in self._until.get(triple, ())]
        while self._ends and self._ends[0][0] < time:
            due, key = heappop(self._ends)
            if self._true.get(key) == due:
                ended.append(key)
        begun: dict[Key, int | None] = {}
        for index, event in enumerate(self.program.events):
            for triple in given:
                values = match(event.atom.pattern, triple)
                if values is not None:
                    key = (index, tuple(values[a.name] for a in event.atom.arguments))
                    if self.program.owns(self._group_of(key)):
                        begun[key] = None if event.within is None else time + event.within
        for key in dict.fromkeys(ended):
            if key not in begun:
                self._switch_off(key)
        ignored = 0
        for key, end in begun.items():
            if key in self._true:
                self._lasts(key, end)
            elif not self._switch_on(key, end):
                ignored += 1
        return self._outcome(given, ignored)

    def _outcome(self, given: Iterable[Triple], ignored: int) -> Outcome:
        """The outcome of the program for the keys that these triples concern."""
        keys = dict.fromkeys(key for triple in given for key in self._keys(triple)) if self.program.key else {"": None}
        outcomes = {key: self._answer(key) for key in keys}
        if not self.program.key:
            return replace(outcomes[""], ignored=ignored)
        triples = {triple for outcome in outcomes.values() for triple in outcome.triples}
        without = tuple(sorted(key for key, outcome in outcomes.items() if outcome.inconsistent))
        return Outcome(tuple(sorted(triples)), bool(without), ignored, without)

    def _answer(self, key: str) -> Outcome:
        group = self._group(key)
        if group.last is None:
            self._activate(key)
            group.last = self._solve(key, group.slots)
        self._forget_empty(key)
        return group.last

    def _lasts(self, key: Key, end: int | None) -> None:
        self._true[key] = end
        if end is not None:
            heappush(self._ends, (end, key))

    def _ending(self, key: Key) -> Triple | None:
        """The triple that would make an atom false."""
        event = self.program.events[key[0]]
        if event.until is None:
            return None
        values = dict(zip((a.name for a in event.atom.arguments), key[1], strict=True))
        s, p, o = (values.get(term, term) for term in event.until)
        return s, p, o

    # ---------------------------------------------------------------------------------------------------- symbols

    def _group_of(self, key: Key) -> str:
        place = self._key_of[key[0]]
        return "" if place is None else key[1][place]

    def _group(self, key: str) -> _Group:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(Slots(self.program, self._known))
        return group

    def _activate(self, key: str) -> None:
        """Switch to the true atoms of a key."""
        if key == self._active:
            return
        for on, group in ((False, self._groups.get(self._active)), (True, self._groups.get(key))):
            for atom in () if group is None else group.atoms.values():
                self._grounding.switch(atom, on)
        self._active = key

    def _switch_on(self, key: Key, end: int | None) -> bool:
        """Make an atom true; returns false if the program has no such atom."""
        event = self.program.events[key[0]]
        group = self._group(self._group_of(key))
        borrowed: list[str] = []
        allowed = False
        try:
            numbers = tuple(
                integer(argument, term) if argument.integer else group.slots.borrow(term, borrowed)
                for argument, term in zip(event.atom.arguments, key[1], strict=True)
            )
            atom = (key[0], numbers)
            allowed = self._grounding.has(atom)
        finally:
            if not allowed:
                for term in borrowed:
                    group.slots.release(term)
        if not allowed:
            self._forget_empty(self._group_of(key))
            return False
        group.slots.hold(key[1])
        group.atoms[key] = atom
        group.last = None
        if self._group_of(key) == self._active:
            self._grounding.switch(atom, True)
        self._lasts(key, end)
        if triple := self._ending(key):
            self._until.setdefault(triple, {})[key] = None
        return True

    def _switch_off(self, key: Key) -> None:
        del self._true[key]
        name = self._group_of(key)
        group = self._groups[name]
        atom = group.atoms.pop(key)
        group.last = None
        if name == self._active:
            self._grounding.switch(atom, False)
        if triple := self._ending(key):
            del self._until[triple][key]
            if not self._until[triple]:
                del self._until[triple]
        group.slots.let_go(key[1])
        self._forget_empty(name)

    def _forget_empty(self, name: str) -> None:
        """Drop the state of a key once it has no true atom."""
        if self.program.key and not self._groups[name].atoms:
            del self._groups[name]

    # ------------------------------------------------------------------------------------------------------ solve

    def _solve(self, key: str, slots: Slots) -> Outcome:
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
        number, terms = slots.number(key), ChainMap(slots.terms, self._terms)
        triples = set()
        for atom in last:
            if atom.type is not clingo.SymbolType.Function:
                continue
            signature = atom.name, len(atom.arguments)
            if signature in self._offers and _is_of(atom, self._offered_key[signature], number):
                triples.add(offered_triple(self.program, self._offers[signature], atom.arguments, terms))
        return Outcome(tuple(sorted(triples)))

    # ------------------------------------------------------------------------------------------------------ state

    def snapshot(self) -> list[tuple[int, list[str], int | None]]:
        """The true event atoms as plain data."""
        return [(index, list(terms), end) for (index, terms), end in self._true.items()]

    def over(self, graph: Graph) -> tuple[LiveProgram, int]:
        """The program over another version of the background, and the number of true atoms that it no longer has."""
        renewed = LiveProgram(self.program, graph, conflicts=self.conflicts, limits=self.limits)
        dropped = sum(not renewed._switch_on(key, end) for key, end in self._true.items())
        return renewed, dropped

    def true(self) -> dict[Key, int | None]:
        """The true event atoms, each with the last time at which it is true."""
        return dict(self._true)

    def change(self, on: Iterable[tuple[Key, int | None]], off: Iterable[Key]) -> None:
        """Make atoms false, then others true."""
        for key in off:
            if key in self._true:
                self._switch_off(key)
        for key, end in on:
            if key in self._true:
                self._lasts(key, end)
            elif not self._switch_on(key, end):
                raise KnowledgeError(
                    f"the stored state has an atom that this program does not know: {key[0]} {list(key[1])}",
                    source=self.program.source,
                    hint="restore with the program and the background that it was stored with",
                )
        for group in self._groups.values():
            group.last = None

    def restore(self, snapshot: Iterable[tuple[int, Iterable[str], int | None]]) -> None:
        """Make exactly the atoms of a snapshot true."""
        self.change((((index, tuple(terms)), end) for index, terms, end in snapshot), list(self._true))


def _place(key: str, declared: Declared) -> int | None:
    """The place of the key among the arguments of an atom."""
    return next((i for i, argument in enumerate(declared.arguments) if argument.name == key), None)


def _is_of(atom: clingo.Symbol, place: int | None, number: int | None) -> bool:
    """Whether an offered atom is about the key with this number.  Without a key all are."""
    if place is None:
        return True
    argument = atom.arguments[place]
    return argument.type is clingo.SymbolType.Number and argument.number == number


__all__ = ["AspProgram", "EventAtom", "LiveProgram", "Outcome", "parse_program", "static_answers"]
