"""The two ways to ground a program that reads events: once with externals, or again and again in rounds.

*Switched*: the program is grounded once, with every possible event atom as an external; an event only switches its
external.  *InRounds*: the true atoms are entered as facts and the program is grounded again for each answer, part by
part, so that rules without choices are decided during grounding.

Both enter the facts of the background as symbols that are created once: entering them as text, or one by one through
the backend, takes three times as long as reasoning over them.
"""

from __future__ import annotations

import re
import resource
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import monotonic
from types import SimpleNamespace
from typing import Any, Protocol

import clingo

from etalis_py.knowledge.asp_border import Facts, shows
from etalis_py.knowledge.asp_check import BASE, OVER, clingo_error
from etalis_py.knowledge.asp_interface import AspProgram, GroundingRounds
from etalis_py.knowledge.errors import KnowledgeError
from etalis_py.knowledge.solving import too_costly
from etalis_py.values.limits import LIMITS, Limits

Numbers = tuple[int | None, ...]
Atom = tuple[int, Numbers]  # the place of an event declaration, and the numbers of the arguments

_LOOK_EVERY = 4_096  # ground rules between two looks
_DOMAIN = re.compile(r"(?<!\w)(?:entity|known|slot)\s*\(")
_COMMENT = re.compile(r"%[^\n]*")
_SLOT = re.compile(r"slot\(\s*([A-Z]\w*)\s*\)")


class Grounding(Protocol):
    """The possible event atoms, which of them are true, and the program with them."""

    def has(self, atom: Atom) -> bool:
        """Whether the program allows for an atom."""

    def switch(self, atom: Atom, on: bool) -> None:
        """Make an atom that the program allows for true or false."""

    def control(self) -> clingo.Control:
        """The program, ready to be solved."""


class Ground:
    """The parts that all groundings of one program share: its text, its constants and the facts of the background."""

    def __init__(
        self, program: AspProgram, facts: Facts, constants: dict[str, int], known: int, limits: Limits = LIMITS
    ) -> None:
        self.program = program
        self._limits = limits
        self.first_slot = known
        self._arguments = [
            "--models=0",
            "--warn=none",
            *(f"--const={name}={number}" for name, number in constants.items()),
        ]
        self._symbols: dict[str, list[clingo.Symbol]] = {}
        lines = []
        for number, ((name, arity), rows) in enumerate(facts.items()):
            lines.append(f"#defined {name}/{arity}.")
            if rows and not arity:
                lines.append(f"{name}.")
            elif rows:
                self._symbols[f"etalis_{number}"] = [_tuple(row) for row in rows]
                lines.append(entering(name, arity, f"etalis_{number}"))
        self.facts = lines
        self.shows = shows(program)
        slots = program.slots
        self.domains = [f"slot({known}..{known + slots - 1})." if slots else "#defined slot/1."]
        self.domains += [f"known(0..{known - 1})." if known else "#defined known/1."]
        self.domains += ["entity(X) :- known(X).", "entity(X) :- slot(X)."]

    def ground(
        self, parts: Iterable[str], text: Iterable[str], symbols: dict[str, list[clingo.Symbol]] | None = None
    ) -> clingo.Control:
        """The program with further text, grounded."""
        messages: list[str] = []
        control = clingo.Control(self._arguments, logger=lambda _, message: messages.append(message))
        watch = _Watch(self._limits, self.program.source)
        control.register_observer(watch)
        given = {**self._symbols, **(symbols or {})}
        context = SimpleNamespace(**{name: _giver(given_symbols) for name, given_symbols in given.items()})
        try:
            control.add(BASE, [], "\n".join([self.program.text, *text]))
            control.ground([(part, []) for part in parts], context=context)
        except RuntimeError as error:
            if watch.stopped is not None:
                raise watch.stopped from None
            raise clingo_error(messages or [str(error)], self.program.source, self.program.text.splitlines()) from None
        return control


class _Watch(clingo.Observer):
    """Watches the clock and the memory of the process during grounding, and stops it if it takes too much."""

    def __init__(self, limits: Limits, source: str) -> None:
        self._limits, self._source = limits, source
        self._rules = 0
        self._deadline = monotonic() + limits.grounding_seconds
        self._most = resident_bytes() + limits.grounding_bytes
        self.stopped: KnowledgeError | None = None

    def rule(self, choice: bool, head: Sequence[int], body: Sequence[int]) -> None:
        self._rules += 1
        if self._rules % _LOOK_EVERY:
            return
        if monotonic() > self._deadline:
            self.stopped = too_costly(f"{self._limits.grounding_seconds} s", "grounding_seconds", self._source)
        elif resident_bytes() > self._most:
            self.stopped = too_costly(f"{self._limits.grounding_bytes} bytes", "grounding_bytes", self._source)
        if self.stopped is not None:
            raise RuntimeError("a limit was reached")  # clingo turns it into another error


def resident_bytes() -> int:
    """The current memory of the process; if the system does not say, the most that it has had."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _tuple(numbers: Iterable[int | None]) -> clingo.Symbol:
    return clingo.Tuple_([clingo.Number(n) for n in numbers if n is not None])


def _giver(symbols: list[clingo.Symbol]) -> Callable[[], list[clingo.Symbol]]:
    return lambda: symbols


def entering(name: str, arity: int, function: str) -> str:
    """The rule that turns the tuples of a function into atoms."""
    variables = ",".join(f"X{n}" for n in range(arity))
    return f"{name}({variables}) :- ({variables}{',' if arity == 1 else ''}) = @{function}."


def _is_changed(uses: Counter[Atom], atom: Atom, on: bool) -> bool:
    """Whether an atom becomes true or false; two events have the same one if their terms are equal integers."""
    before = uses[atom]
    uses[atom] += 1 if on else -1
    if not uses[atom]:
        del uses[atom]
    return before == (0 if on else 1)


class Switched:
    """Grounded once; atoms are externals.

    Each declaration has externals of its own, as others, facts and rules may make the same atoms true.

    >>> from etalis_py.knowledge.asp_interface import parse_program
    >>> text = "%! event at(X) from X <urn:at> <urn:home> over X = 0..1\\n%! offers at(X) as X <urn:is> <urn:here>"
    >>> program = Switched(Ground(parse_program(text), {}, {}, 2))
    >>> program.has((0, (1,))), program.has((0, (2,)))
    (True, False)
    """

    def __init__(self, ground: Ground) -> None:
        events = ground.program.events
        own = [f"etalis_event_{n}{e.atom.head.removeprefix(e.atom.name)}" for n, e in enumerate(events)]
        externals = [f"#external {atom} : {e.over or '#true'}." for atom, e in zip(own, events, strict=True)]
        rules = [f"{e.atom.head} :- {atom}." for atom, e in zip(own, events, strict=True)]
        text = [f"#program {OVER}.", *externals, "#program base.", *rules]
        self._control = ground.ground((BASE, OVER), [*text, *ground.facts, *ground.domains, *ground.shows])
        self._uses: Counter[Atom] = Counter()
        # Looked up by numbers, so that an event creates no symbol.
        self._literals: dict[Atom, int] = {
            (n, tuple(a.number for a in atom.symbol.arguments)): atom.literal
            for n, event in enumerate(events)
            for atom in self._control.symbolic_atoms.by_signature(f"etalis_event_{n}", len(event.atom.arguments))
            if atom.is_external
        }

    def has(self, atom: Atom) -> bool:
        return atom in self._literals

    def switch(self, atom: Atom, on: bool) -> None:
        if _is_changed(self._uses, atom, on):
            self._control.assign_external(self._literals[atom], on)

    def control(self) -> clingo.Control:
        return self._control


class InRounds:
    """Grounded again for each answer, round after round, with the true atoms as facts.

    The conditions give the possible atoms once, without the arguments that range over all slots, so the number of slots
    costs nothing.
    """

    def __init__(self, ground: Ground, rounds: GroundingRounds) -> None:
        self._ground, self._rounds = ground, rounds
        program = ground.program
        events = program.events
        self._true: dict[Atom, clingo.Symbol] = {}
        self._uses: Counter[Atom] = Counter()
        self._slots = [_free(e.over, [a.name for a in e.atom.arguments]) for e in events]
        asked = [[a.name for i, a in enumerate(e.atom.arguments) if i not in free] for e, free in self._pairs()]
        conditions = [_without(e.over, {e.atom.arguments[i].name for i in free}) for e, free in self._pairs()]
        bounds = [
            f"etalis_over_{n}({','.join(names)}) :- {over or '#true'}."
            for n, (names, over) in enumerate(zip(asked, conditions, strict=True))
        ]
        declared = sorted({f"#defined {e.atom.name}/{len(e.atom.arguments)}." for e in events})
        base = ["#program base.", *ground.facts, *declared, *ground.shows]
        text = [f"#program {OVER}.", *bounds, *base, *ground.domains]
        control = ground.ground((BASE, OVER), text)
        atoms = control.symbolic_atoms  # only valid while the control exists
        self._allowed = [
            {tuple(a.number for a in atom.symbol.arguments) for atom in atoms.by_signature(f"etalis_over_{n}", len(x))}
            for n, x in enumerate(asked)
        ]
        used = _DOMAIN.search(_COMMENT.sub("", program.text))  # outside of ``over``, which is in comments
        self._text = [*base, *(ground.domains if used else ())]

    def _pairs(self) -> Iterator[tuple[Any, tuple[int, ...]]]:
        return zip(self._ground.program.events, self._slots, strict=True)

    def has(self, atom: Atom) -> bool:
        event, numbers = atom
        slots = self._slots[event]
        asked = tuple(n for i, n in enumerate(numbers) if i not in slots)
        first = self._ground.first_slot
        return asked in self._allowed[event] and all(
            n is not None and n >= first for n in map(numbers.__getitem__, slots)
        )

    def switch(self, atom: Atom, on: bool) -> None:
        if not _is_changed(self._uses, atom, on):
            return
        if on:
            self._true[atom] = _tuple(atom[1])
        else:
            del self._true[atom]

    def control(self) -> clingo.Control:
        text, symbols = list(self._text), {}
        for n, event in enumerate(self._ground.program.events):
            # Ordered by their numbers, so that the same atoms always give the same program.
            true = [symbol for (index, _), symbol in sorted(self._true.items()) if index == n]
            if true:
                symbols[f"etalis_event_{n}"] = true
                text.append(entering(event.atom.name, len(event.atom.arguments), f"etalis_event_{n}"))
        control = self._ground.ground((BASE,), text, symbols)
        for n in range(1, self._rounds.limit + 1):
            k = clingo.Number(n)
            for part in self._rounds.parts:
                control.ground([(part, [k])])
            atom = control.symbolic_atoms[clingo.Function(self._rounds.until, [k])]
            if atom is not None and atom.is_fact:
                if self._rounds.then:
                    control.ground([(self._rounds.then, [k])])
                return control
        raise KnowledgeError(
            f"{self._rounds.until} was not reached in {self._rounds.limit} rounds",
            source=self._ground.program.source,
            hint="allow for more with %! rounds, or see whether a part finds nothing new at last",
        )


def _literals(condition: str) -> list[str]:
    """The literals of a condition, which is cut at the commas outside brackets.

    >>> _literals("slot(R), link(X, Y), X < 3")
    ['slot(R)', 'link(X, Y)', 'X < 3']
    """
    literals, depth, start = [], 0, 0
    for i, character in enumerate(condition):
        depth += (character in "({[") - (character in ")}]")
        if character in ",;" and not depth:
            literals.append(condition[start:i].strip())
            start = i + 1
    return [*literals, condition[start:].strip()]


def _free(condition: str, names: list[str]) -> tuple[int, ...]:
    """The places of the arguments about which a condition says only that they are slots."""
    literals = _literals(condition)
    slots = {slot[1] for literal in literals if (slot := _SLOT.fullmatch(literal))}
    return tuple(
        i for i, name in enumerate(names) if name in slots and len(re.findall(rf"(?<!\w){name}(?!\w)", condition)) == 1
    )


def _without(condition: str, names: set[str]) -> str:
    """A condition without the literals about these arguments."""
    kept = [x for x in _literals(condition) if not ((slot := _SLOT.fullmatch(x)) and slot[1] in names)]
    return ", ".join(kept)
