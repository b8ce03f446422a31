"""How an answer-set program declares what it reads and offers: the ``%!`` lines of its file.

    %! prefix : <http://example.org/>
    %! const depot = :Depot
    %! reads road(X, Y, M:int) from X :leadsTo Y         the atoms of one predicate from triples; see below for M
    %! event closed(X, Y) from X :closed Y until X :opened Y over road(X, Y, _)
    %! event asks(A, X) from A :asksFor X over slot(A), node(X)
    %! slots 10
    %! offers way(A, X, Y) as A :goesFrom X
    %! key A
    %! answers cautious

A pattern is one triple of variables, IRIs (``<…>`` or prefixed, ``a`` for rdf:type) and literals.  Variables stand for
terms, which the program sees as numbers: equal numbers are equal terms.  ``M:int`` is an integer's value instead, and
``M:0..9`` in an ``event`` a value within bounds.  Every variable of an atom that is read must be in its pattern, and
every variable of an offered pattern in its atom.  A program may not contain ``#script``, ``#include`` or ``@function``.

*reads*: true of the background.  *event*: true in the instant of a streamed triple; with ``within PT5M`` also for that
long after it; with ``until PATTERN`` from then until a triple of that pattern.  ``over`` is a condition of the program
that bounds the possible atoms, which are grounded once, before the first event.  ``slot(A)`` in it ranges over
``slots`` numbers that stand for terms the background does not have, each for as long as a true atom needs it;
``known(A)`` over the terms read from the background; ``entity(A)``, the default, over both.  Rules that only serve
these conditions may be in a ``#program over.``

*offers*: the atoms that become triples if they are true in all answer sets (``cautious``) or in some (``brave``).  If
the program has preferences (``#minimize``, ``#maximize``, ``:~``), only the optimal answer sets count.

*key*: each value of this argument has its own program: the same rules over the same background, but only the event
atoms with this value, offering only the atoms with it.  It has its own slots, is stepped by its own events, and has or
lacks answer sets independently of the others.  So every ``event`` (also its ``until``) and ``offers`` names it.

A search that continues as long as it derives something new is written in rounds:

    %! rounds 500 of look, step until done then finish

Whenever the true atoms have changed, the program is then grounded again with them: first its base, then its parts
``look(k)`` and ``step(k)`` for k = 1, 2, … until ``done(k)`` is a fact, then ``finish(k)``.  Atoms of earlier parts are
known when a later part is grounded, and atoms not derived by then are false there, so that rules without choices cost
only what they derive.  It is an error if ``done`` is not reached in so many rounds.  A slot costs nothing here until it
is taken.  Arguments are numbers here too, and rounds are limited, so the symbols that clingo keeps come from a fixed
range.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import quote
from zlib import crc32

from etalis_rules.durations import is_too_fine, parse_duration
from etalis_rules.terms import RDF_TYPE, XSD, iri, literal

from etalis_py.events import Triple
from etalis_py.knowledge.asp_check import BASE, OVER, ProgramAtoms, Signature, names_of, require_defined
from etalis_py.knowledge.errors import KnowledgeError

INCONSISTENT = "<urn:etalis:Inconsistent>"
INCONSISTENT_FOR = "<urn:etalis:inconsistentFor>"

_ATOM = re.compile(r"\s*([a-z_]\w*)\s*\(([^()]*)\)\s*")
_ARGUMENT = re.compile(r"([A-Z]\w*)(?::(int|(-?\d+)\.\.(-?\d+)))?")
_TERM = re.compile(
    r"\s*(?:(?P<variable>[A-Z]\w*)(?![\w:])|(?P<iri><[^<>\s]*>)|(?P<integer>[+-]?\d+)"
    r'|(?P<string>"(?:[^"\\]|\\.)*")|(?P<type>a)(?![\w:-])|(?P<prefix>[A-Za-z][\w-]*)?:(?P<local>[\w-]*))'
)
_ROUNDS = re.compile(r"(\d+) of ([a-z]\w*(?:\s*,\s*[a-z]\w*)*) until ([a-z]\w*)(?: then ([a-z]\w*))?")
# Code and other files: refused anywhere, even in a comment, so that no quoting trick lets one in.
_FOREIGN = re.compile(r"#\s*(?:script|include)\b")
_SHAPES = {
    "prefix": "prefix name: <IRI>",
    "const": "const name = term",
    "reads": "reads atom(X, Y) from X :p Y",
    "event": "event atom(X, Y) from X :p Y [within PT1M | until X :q Y] [over condition]",
    "offers": "offers atom(X, Y) as X :p Y",
    "slots": "slots 10",
    "answers": "answers cautious or answers brave",
    "key": "key X",
    "rounds": "rounds 100 of part, part until atom [then part]",
}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a declared atom: a term's number, or an integer's value with its bounds."""

    name: str
    integer: bool = False
    low: int = -(2**31) + 1
    high: int = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Declared:
    """An atom and the triple pattern it stands for; the pattern has variables as bare names, without brackets."""

    name: str
    arguments: tuple[Argument, ...]
    pattern: Triple
    line: int

    @property
    def head(self) -> str:
        return f"{self.name}({','.join(a.name for a in self.arguments)})"


@dataclass(frozen=True, slots=True)
class EventAtom:
    """A declared atom that events switch."""

    atom: Declared
    over: str
    within: int | None = 0  # microseconds after the event; None: until the pattern below
    until: Triple | None = None


@dataclass(frozen=True, slots=True)
class GroundingRounds:
    """The parts that are grounded in each round, the atom that ends them, and the part after that (or none)."""

    limit: int
    parts: tuple[str, ...]
    until: str
    then: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class AspProgram:
    """An answer-set program with its interface.

    ``share``: the number of this engine, and how many engines divide the keys among them by hash.
    """

    source: str
    text: str
    reads: tuple[Declared, ...] = ()
    events: tuple[EventAtom, ...] = ()
    offers: tuple[Declared, ...] = ()
    constants: dict[str, str] = field(default_factory=dict)
    slots: int = 0
    brave: bool = False
    rounds: GroundingRounds | None = None
    optimizes: bool = False
    key: str = ""
    share: tuple[int, int] = (0, 1)

    @property
    def patterns(self) -> tuple[Triple, ...]:
        """The patterns of the streamed triples that it reads."""
        return tuple(p for event in self.events for p in (event.atom.pattern, event.until) if p is not None)

    @property
    def predicates(self) -> frozenset[str | None]:
        """The predicates of these patterns; None stands for a variable, which means that it may read any triple."""
        return frozenset(None if _is_variable(predicate) else predicate for _, predicate, _ in self.patterns)

    @property
    def inconsistency(self) -> Triple:
        """The triple that says that there is no answer set.  A program is named by its file.

        >>> print(*AspProgram("rules/delivery/routes.lp", "").inconsistency[::2])
        <urn:etalis:program:routes.lp> <urn:etalis:Inconsistent>
        """
        return self._iri, RDF_TYPE, INCONSISTENT

    def inconsistency_for(self, key: str) -> Triple:
        """The triple that says that there is no answer set for this key.

        >>> print(*AspProgram("routes.lp", "").inconsistency_for("<urn:a>"))
        <urn:etalis:program:routes.lp> <urn:etalis:inconsistentFor> <urn:a>
        """
        return self._iri, INCONSISTENT_FOR, key

    @property
    def _iri(self) -> str:
        name = quote(self.source.rsplit("/", 1)[-1], safe="-._~")
        return f"<urn:etalis:program:{name}>"

    def owns(self, key: str) -> bool:
        """Whether a key is one of this engine's."""
        number, engines = self.share
        return engines == 1 or crc32(key.encode()) % engines == number


def parse_program(text: str, source: str = "program") -> AspProgram:
    """Read the interface of a program."""
    reader = _Reader(source)
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("%!"):
            reader.declare(line.lstrip()[2:].strip(), number)
        if forbidden := _FOREIGN.search(line):
            reader.line = number
            raise reader.error(f"{forbidden[0]} is not allowed", "write the rules themselves into this file")
    if reader.rounds and not reader.events:
        raise KnowledgeError("the program has rounds but reads no events", source=source, hint="add an event line")
    if not reader.offers:
        raise KnowledgeError("the program offers nothing", source=source, hint=f"add a line: %! {_SHAPES['offers']}")
    names = names_of(text, source)
    program = AspProgram(
        source,
        text,
        tuple(reader.reads),
        tuple(reader.events),
        tuple(reader.offers),
        reader.constants,
        reader.slots,
        reader.brave,
        reader.rounds,
        names.optimizes,
        reader.key,
    )
    _check(program, names)
    return program


def _check(program: AspProgram, names: ProgramAtoms) -> None:
    """Check that everything named exists: atoms, parts, and the names in the conditions of events."""
    declared = [*program.reads, *(event.atom for event in program.events)]
    defined = names.defined | {(d.name, len(d.arguments)) for d in declared}
    if program.events:
        defined |= {("slot", 1), ("known", 1), ("entity", 1)}
    require_defined(names.used, defined, program.source)
    for event in program.events:
        line = event.atom.line
        try:
            over = names_of(f"{event.atom.head} :- {event.over or '#true'}.", program.source)
        except KnowledgeError as error:
            problem = error.problem.partition("\n")[0]
            hint = f"it must bind every argument of {event.atom.head}" if "unsafe" in problem else error.hint
            raise KnowledgeError(
                f"the condition after over: {problem}", source=program.source, line=line, hint=hint
            ) from None
        require_defined(((used, (line, 0)) for used, _ in over.used), defined, program.source)
    for offered in program.offers:
        if (offered.name, len(offered.arguments)) not in defined:
            signature = f"{offered.name}/{len(offered.arguments)}"
            raise KnowledgeError(
                f"{signature} is offered, but no rule derives it",
                source=program.source,
                line=offered.line,
                hint=f"write a rule with the head {offered.head}",
            )
    _check_parts(program, names)
    _check_key(program)


def _check_key(program: AspProgram) -> None:
    """Check that every triple that a program reads from a stream or offers has the key."""
    if not program.key:
        return
    if not program.events:
        raise KnowledgeError(
            "the program has a key but reads no events",
            source=program.source,
            hint="add an event line, or leave the key out: a program without events is solved once",
        )
    events = [
        ("event", event.atom, (event.atom.pattern, event.until or event.atom.pattern)) for event in program.events
    ]
    for word, atom, patterns in [*events, *(("offers", atom, (atom.pattern,)) for atom in program.offers)]:
        argument = next((a for a in atom.arguments if a.name == program.key), None)
        if argument is None or any(program.key not in pattern for pattern in patterns):
            where = "is no argument" if argument is None else "is not in a pattern"
            raise KnowledgeError(
                f"the key {program.key} {where} of {word} {atom.head}",
                source=program.source,
                line=atom.line,
                hint=f"name it {program.key} in every event and offers line, or leave the key out",
            )
        if argument.integer:
            raise KnowledgeError(
                f"the key {program.key} of {word} {atom.head} is an integer",
                source=program.source,
                line=atom.line,
                hint=f"a key is a term: write {program.key} without bounds",
            )


def _check_parts(program: AspProgram, names: ProgramAtoms) -> None:
    rounds = program.rounds
    grounded: set[Signature] = {(BASE, 0)} | ({(OVER, 0)} if program.events else set())
    if rounds is not None:
        wanted = [(part, 1) for part in (*rounds.parts, *([rounds.then] if rounds.then else []))]
        grounded |= set(wanted)
        written = {part for part, _ in names.parts}
        for part in wanted:
            if part not in written:
                raise KnowledgeError(
                    f"the rounds name a part {part[0]}, but there is no #program {part[0]}(k).",
                    source=program.source,
                    line=rounds.line,
                    hint="write the part, or correct its name",
                )
        if (rounds.until, 1) not in names.defined:
            raise KnowledgeError(
                f"the rounds go on until {rounds.until}(k), but no rule derives it",
                source=program.source,
                line=rounds.line,
                hint=f"write a rule with the head {rounds.until}(k), or correct the name",
            )
    for (name, parameters), (line, _) in names.parts:
        if (name, parameters) not in grounded:
            shown = f"{name}({', '.join('k' * parameters)})" if parameters else name
            raise KnowledgeError(
                f"the rules of #program {shown}. would never be used",
                source=program.source,
                line=line,
                hint="name the part in a %! rounds line, or write its rules without a part",
            )


class _Reader:
    def __init__(self, source: str) -> None:
        self.source, self.line = source, 0
        self.prefixes: dict[str, str] = {}
        self.constants: dict[str, str] = {}
        self.reads: list[Declared] = []
        self.events: list[EventAtom] = []
        self.offers: list[Declared] = []
        self.slots, self.brave, self.key = 0, False, ""
        self.rounds: GroundingRounds | None = None

    def error(self, problem: str, hint: str = "") -> KnowledgeError:
        return KnowledgeError(problem, source=self.source, line=self.line, hint=hint)

    def declare(self, text: str, line: int) -> None:
        self.line = line
        word, _, rest = text.partition(" ")
        if word not in _SHAPES:
            raise self.error(f"%! {word or '(nothing)'} is not a declaration", f"one of {', '.join(_SHAPES)}")
        getattr(self, f"_{word}")(rest.strip())

    def _shape(self, word: str, text: str) -> KnowledgeError:
        return self.error(f"cannot read {text!r}", f"expected: %! {_SHAPES[word]}")

    def _prefix(self, rest: str) -> None:
        match = re.fullmatch(r"([A-Za-z][\w-]*)?:\s*<([^<>\s]*)>", rest)
        if not match:
            raise self._shape("prefix", rest)
        self.prefixes[match[1] or ""] = match[2]

    def _const(self, rest: str) -> None:
        match = re.fullmatch(r"([a-z_]\w*)\s*=(.*)", rest)
        if not match:
            raise self._shape("const", rest)
        term, end = self._term(match[2], 0)
        if _is_variable(term) or match[2][end:].strip():
            raise self._shape("const", rest)
        self.constants[match[1]] = term

    def _slots(self, rest: str) -> None:
        if not rest.isdecimal() or not int(rest):
            raise self._shape("slots", rest)
        self.slots = int(rest)

    def _answers(self, rest: str) -> None:
        if rest not in ("cautious", "brave"):
            raise self._shape("answers", rest)
        self.brave = rest == "brave"

    def _key(self, rest: str) -> None:
        if not re.fullmatch(r"[A-Z]\w*", rest):
            raise self._shape("key", rest)
        if self.key:
            raise self.error("there is a key already", "write one key line")
        self.key = rest

    def _rounds(self, rest: str) -> None:
        match = _ROUNDS.fullmatch(rest)
        if not match or not int(match[1]):
            raise self._shape("rounds", rest)
        parts = tuple(part.strip() for part in match[2].split(","))
        self.rounds = GroundingRounds(int(match[1]), parts, match[3], match[4] or "", self.line)

    def _reads(self, rest: str) -> None:
        declared, end = self._atom("reads", rest, "from")
        self._ends("reads", rest[end:])
        self.reads.append(declared)

    def _offers(self, rest: str) -> None:
        declared, end = self._atom("offers", rest, "as")
        self._ends("offers", rest[end:])
        self.offers.append(declared)

    def _event(self, rest: str) -> None:
        body, _, over = rest.partition(" over ")
        declared, end = self._atom("event", body, "from")
        within: int | None = 0
        until = None
        tail = body[end:].strip()
        if tail.startswith("within "):
            within = self._duration(tail[7:])
        elif tail.startswith("until "):
            until, stop = self._pattern(tail[6:], 0)
            within = None
            self._ends("event", tail[6 + stop :])
            if loose := {t for t in until if _is_variable(t)} - {a.name for a in declared.arguments}:
                raise self.error(f"{min(loose)} of the until pattern is not an argument of {declared.head}")
        else:
            self._ends("event", tail)
        terms = (
            [f"entity({a.name})" for a in declared.arguments if not a.integer] if not over.strip() else [over.strip()]
        )
        values = [f"{a.name}={a.low}..{a.high}" for a in declared.arguments if a.integer]
        if any(a.integer and a.high - a.low >= 2**20 for a in declared.arguments):
            raise self.error(f"the integers of {declared.head} need bounds", "write the argument as N:0..100")
        self.events.append(EventAtom(declared, ", ".join([*terms, *values]), within, until))

    def _ends(self, word: str, tail: str) -> None:
        if tail.strip(" ."):
            raise self._shape(word, tail.strip())

    def _duration(self, text: str) -> int:
        months, micros = parse_duration(text) or (1, 0)
        if months or micros < 0 or is_too_fine(text):
            raise self.error(f"{text!r} is not a duration", "write days to seconds as in P1DT2H, PT5M or PT0.5S")
        return micros

    def _atom(self, word: str, text: str, joint: str) -> tuple[Declared, int]:
        match = _ATOM.match(text)
        if not match or not text[match.end() :].startswith(joint + " "):
            raise self._shape(word, text)
        arguments = []
        for part in filter(None, (p.strip() for p in match[2].split(","))):
            argument = _ARGUMENT.fullmatch(part)
            if not argument:
                raise self.error(f"{part!r} is not an argument", "a variable X, an integer N:int or N:0..9")
            bounds = (int(argument[3]), int(argument[4])) if argument[3] else ()
            arguments.append(Argument(argument[1], bool(argument[2]), *bounds))
        pattern, end = self._pattern(text, match.end() + len(joint))
        declared = Declared(match[1], tuple(arguments), pattern, self.line)
        names, used = {a.name for a in arguments}, {t for t in pattern if _is_variable(t)}
        if word == "offers" and used - names:
            raise self.error(
                f"{min(used - names)} is not an argument of {declared.head}", "a triple needs all its terms"
            )
        if word != "offers" and names - used:
            raise self.error(f"{min(names - used)} is not in the pattern", "nothing would tell its value")
        return declared, end

    def _pattern(self, text: str, start: int) -> tuple[Triple, int]:
        terms = []
        for _ in range(3):
            term, start = self._term(text, start)
            terms.append(term)
        s, p, o = terms
        if p[0] in '"_' or s[0] in '"_':
            raise self.error("a literal stands where a subject or predicate must be")
        return (s, p, o), start

    def _term(self, text: str, start: int) -> tuple[str, int]:
        match = _TERM.match(text, start)
        if not match:
            raise self.error(f"expected a variable, IRI or literal at {text[start:].strip()[:20]!r}")
        end = match.end()
        if match["variable"]:
            return match["variable"], end
        if match["iri"]:
            return match["iri"], end
        if match["integer"]:
            return literal(match["integer"], XSD + "integer"), end
        if match["string"]:
            return match["string"], end
        if match["type"]:
            return RDF_TYPE, end
        prefix = match["prefix"] or ""
        if prefix not in self.prefixes:
            raise self.error(f"the prefix {prefix}: is not declared", f"add above: %! prefix {prefix}: <IRI>")
        return iri(self.prefixes[prefix] + match["local"]), end


def _is_variable(term: str) -> bool:
    return term[0] not in '<"_'
