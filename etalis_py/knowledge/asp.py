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

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

import clingo
from etalis_rules.terms import XSD, is_blank, is_iri, is_literal, literal, parts

from etalis_py.events import Triple
from etalis_py.knowledge.asp_interface import Argument, AspProgram, Declared, EventAtom, Rounds, parse_program
from etalis_py.knowledge.entail import Numbering
from etalis_py.knowledge.errors import KnowledgeError
from etalis_py.knowledge.graph import Graph
from etalis_py.knowledge.solving import consequences

_INTEGER = re.compile(r"[+-]?\d+")
_ATOM = re.compile(r'(?<![\w"])([a-z_]\w*)\(((?:[^()"]|"(?:[^"\\]|\\.)*")*)\)')
_COMMENT = re.compile(r"%[^\n]*")
_DOMAIN = re.compile(r"(?<!\w)(?:entity|known|slot)\s*\(")
Key = tuple[int, tuple[str, ...]]  # which event atom, and the terms of its arguments


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a program says at one time: the offered triples, or that it has no answer set.

    ``ignored`` counts the event triples that matched a declaration but are outside what its ``over`` allows.
    """

    triples: tuple[Triple, ...]
    inconsistent: bool = False
    ignored: int = 0


def static_answers(program: AspProgram, graph: Graph) -> Outcome:
    """The triples that a static program offers over a graph."""
    if program.events:
        raise KnowledgeError("the program reads events", source=program.source, hint="run it with a stream")
    numbering = Numbering(program.constants.values())
    text = "\n".join([program.text, *_facts(program, graph, numbering), *_shows(program)])
    atoms = consequences(text, _constants(program, numbering), brave=program.brave, name=program.source)
    if atoms is None:
        return Outcome((), inconsistent=True)
    terms = dict(enumerate(numbering.numbers))
    offers = _by_signature(program)
    triples = (
        _triple(program, offers[name, len(values)], values, terms)
        for name, values in _parse_atoms(atoms)
        if (name, len(values)) in offers
    )
    return Outcome(tuple(sorted(set(triples))))


class LiveProgram:
    """A program that reads events, with the event atoms that are true now.

    ``conflicts`` limits the search at one instant; unlike a limit of time it stops the same run at the same place.
    """

    def __init__(self, program: AspProgram, graph: Graph, *, conflicts: int = 1_000_000) -> None:
        self.program = program
        self.conflicts = conflicts
        self._numbering = Numbering(program.constants.values())
        facts = _facts(program, graph, self._numbering)
        self._known = self._numbering.numbers
        self._terms = dict(enumerate(self._known))
        first = len(self._known)
        self._free = list(range(first, first + program.slots))
        heapify(self._free)  # the lowest free slot is taken, so that few are ever used
        self._slot: dict[str, int] = {}
        self._uses: dict[int, int] = {}
        self._true: dict[Key, tuple[int | None, int]] = {}  # the last time an atom is true, and its literal
        self._ends: list[tuple[int, Key]] = []  # a heap; an entry counts only while it agrees with ``_true``
        self._until: dict[Triple, dict[Key, None]] = {}  # the true atoms that a triple ends
        self._offers = _by_signature(program)
        self._last: Outcome | None = None
        domains = [f"slot({first}..{first + program.slots - 1})."] if program.slots else ["#defined slot/1."]
        domains += [f"known({n})." for n in range(first)] or ["#defined known/1."]
        domains += ["entity(X) :- known(X).", "entity(X) :- slot(X)."]
        externals = [f"#external {e.atom.head} : {e.over}." for e in program.events]
        fixed = [program.text, "#program base.", *facts, *domains, *_shows(program)]
        self._control = self._ground("\n".join([*fixed, *externals]))
        # Looked up by numbers, so that an event makes no symbol.
        self._literals: dict[tuple[str, tuple[int | None, ...]], int] = {
            (event.atom.name, tuple(a.number for a in found.symbol.arguments)): found.literal
            for event in program.events
            for found in self._control.symbolic_atoms.by_signature(event.atom.name, len(event.atom.arguments))
            if found.is_external
        }
        if program.rounds:
            self._atoms = {
                number: f"{name}({','.join(map(str, arguments))})."
                for (name, arguments), number in self._literals.items()
            }
            events = {f"#defined {e.atom.name}/{len(e.atom.arguments)}." for e in program.events}
            used = domains if _DOMAIN.search(_COMMENT.sub("", program.text)) else []  # elsewhere than in ``over``
            defined = [line for line in facts if line.startswith("#")]
            self._anew = "\n".join([program.text, "#program base.", *defined, *used, *sorted(events), *_shows(program)])
            # Made once and handed over as symbols: to parse them each time would take longer than to reason.
            self._symbols = [clingo.parse_term(line[:-1]) for line in facts if not line.startswith("#")]

    def _ground(self, text: str, facts: Iterable[clingo.Symbol] = ()) -> clingo.Control:
        said: list[str] = []
        constants = _constants(self.program, self._numbering)
        arguments = [f"--const={name}={number}" for name, number in constants.items()]
        control = clingo.Control(
            [*arguments, "--models=0"], logger=lambda _, message: said.append(message), message_limit=5
        )
        with control.backend() as backend:
            for fact in facts:
                backend.add_rule((backend.add_atom(fact),))
        try:
            control.add("base", [], text)
            control.ground([("base", [])])
        except RuntimeError as error:
            raise KnowledgeError("\n".join(said) or str(error), source=self.program.source) from None
        options: Any = control.configuration.solve
        options.enum_mode = "brave" if self.program.brave else "cautious"
        options.solve_limit = f"{self.conflicts},umax"
        return control

    def _in_rounds(self, rounds: Rounds) -> clingo.Control:
        """The program grounded with what is true now, round after round."""
        true = sorted(self._atoms[number] for _, number in self._true.values())
        control = self._ground("\n".join([self._anew, *true]), self._symbols)
        for n in range(1, rounds.limit + 1):
            k = clingo.Number(n)
            for part in rounds.parts:
                control.ground([(part, [k])])
            found = control.symbolic_atoms[clingo.Function(rounds.until, [k])]
            if found is not None and found.is_fact:
                if rounds.then:
                    control.ground([(rounds.then, [k])])
                return control
        raise KnowledgeError(
            f"{rounds.until} was not reached in {rounds.limit} rounds",
            source=self.program.source,
            hint="allow for more with %! rounds, or see whether a part finds nothing new at last",
        )

    # ------------------------------------------------------------------------------------------------------- time

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
                values = _match(event.atom.pattern, triple)
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

    def next_end(self) -> int | None:
        """The last time at which everything that is true now still is; ``None`` when nothing ends by itself."""
        return min((end for end, _ in self._true.values() if end is not None), default=None)

    def _lasts(self, key: Key, end: int | None, literal_: int) -> None:
        self._true[key] = (end, literal_)
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
        found: int | None = None
        try:
            numbers = tuple(
                _integer(argument, term) if argument.integer else self._number(term, borrowed)
                for argument, term in zip(event.atom.arguments, key[1], strict=True)
            )
            found = self._literals.get((event.atom.name, numbers))
        finally:
            if found is None:
                for term in borrowed:
                    self._release(term)
        if found is None:
            return False
        for term in key[1]:
            if term in self._slot:
                self._uses[self._slot[term]] += 1
        self._control.assign_external(found, True)
        self._lasts(key, end, found)
        if triple := self._ending(key):
            self._until.setdefault(triple, {})[key] = None
        return True

    def _switch_off(self, key: Key) -> None:
        _, found = self._true.pop(key)
        self._control.assign_external(found, False)
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
        control = self._in_rounds(self.program.rounds) if self.program.rounds else self._control
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
            _triple(self.program, self._offers[atom.name, len(atom.arguments)], atom.arguments, self._terms)
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
        renewed = LiveProgram(self.program, graph, conflicts=self.conflicts)
        dropped = sum(not renewed._switch_on(key, end) for key, (end, _) in self._true.items())
        return renewed, dropped

    def restore(self, snapshot: Iterable[tuple[int, Iterable[str], int | None]]) -> None:
        """Make exactly the atoms of a snapshot true."""
        for key in list(self._true):
            self._switch_off(key)
        self._last = None
        for index, terms, end in snapshot:
            if not self._switch_on((index, tuple(terms)), end):
                raise KnowledgeError(
                    f"the snapshot has an atom that this program does not know: {index} {list(terms)}",
                    source=self.program.source,
                    hint="restore with the program and the background of the snapshot",
                )


# -------------------------------------------------------------------------------------------------------- the border


def _facts(program: AspProgram, graph: Graph, numbering: Numbering) -> list[str]:
    """The facts that a program reads from a graph."""
    facts: dict[str, None] = {}
    for declared in program.reads:
        facts[f"#defined {declared.name}/{len(declared.arguments)}."] = None
        for triple in _candidates(graph, declared.pattern):
            values = _match(declared.pattern, triple)
            if values is None:
                continue
            numbers = [
                _integer(a, values[a.name]) if a.integer else numbering.number(values[a.name])
                for a in declared.arguments
            ]
            if None in numbers:
                raise KnowledgeError(
                    f"{' '.join(triple)} cannot be read as {declared.head}: not an integer of 32 bits",
                    source=program.source,
                    line=declared.line,
                    hint="mend the data, or read the argument as a term (without :int)",
                )
            facts[f"{declared.name}({','.join(map(str, numbers))})."] = None
    return list(facts)


def _candidates(graph: Graph, pattern: Triple) -> Iterator[Triple]:
    s, p, o = (None if term[0] not in '<"_' else term for term in pattern)
    return graph.match(s, p, o)


def _match(pattern: Triple, triple: Triple) -> dict[str, str] | None:
    """The values of the pattern's variables, when the triple fits."""
    values: dict[str, str] = {}
    for wanted, term in zip(pattern, triple, strict=True):
        if wanted[0] in '<"_':
            if wanted != term:
                return None
        elif values.setdefault(wanted, term) != term:
            return None
    return values


def _integer(argument: Argument, term: str) -> int | None:
    if not is_literal(term):
        return None
    lexical, datatype, _ = parts(term)
    if not (datatype.startswith(XSD) and _INTEGER.fullmatch(lexical)):
        return None
    value = int(lexical)
    return value if argument.low <= value <= argument.high else None


def _constants(program: AspProgram, numbering: Numbering) -> dict[str, int]:
    return {name: numbering.number(term) for name, term in program.constants.items()}


def _shows(program: AspProgram) -> list[str]:
    return [
        "#show.",
        *(f"#show {d.name}/{len(d.arguments)}. #defined {d.name}/{len(d.arguments)}." for d in program.offers),
    ]


def _by_signature(program: AspProgram) -> dict[tuple[str, int], Declared]:
    return {(d.name, len(d.arguments)): d for d in program.offers}


def _triple(program: AspProgram, declared: Declared, values: Iterable[Any], terms: dict[int, str]) -> Triple:
    """The triple that an offered atom stands for; values are clingo symbols, or ints and str."""
    found: dict[str, str] = {}
    for argument, value in zip(declared.arguments, values, strict=True):
        if isinstance(value, clingo.Symbol):
            kinds = {clingo.SymbolType.Number: "number", clingo.SymbolType.String: "string"}
            value = getattr(value, kinds[value.type]) if value.type in kinds else None
        term: str | None = None
        if isinstance(value, int):
            term = literal(str(value), XSD + "integer") if argument.integer else terms.get(value)
        elif isinstance(value, str):
            term = literal(value)
        if term is None:
            raise KnowledgeError(
                f"the argument {argument.name} of an offered {declared.head} stands for no term",
                source=program.source,
                line=declared.line,
                hint="offer what was read, a constant declared with %! const, an N:int or a string",
            )
        found[argument.name] = term
    s, p, o = (found.get(term, term) for term in declared.pattern)
    if not (is_iri(s) or is_blank(s)) or not is_iri(p):
        raise KnowledgeError(
            f"{declared.head} gave {s} {p} {o}, which is no triple", source=program.source, line=declared.line
        )
    return s, p, o


def _parse_atoms(text: str) -> Iterator[tuple[str, list[int | str | None]]]:
    for match in _ATOM.finditer(text):
        values: list[int | str | None] = []
        for part in re.findall(r'"(?:[^"\\]|\\.)*"|[^,]+', match[2]):
            values.append(_unquote(part) if part[0] == '"' else int(part) if _INTEGER.fullmatch(part) else None)
        yield match[1], values


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text[1:-1])


__all__ = ["AspProgram", "EventAtom", "LiveProgram", "Outcome", "parse_program", "static_answers"]
