"""An interactive session: an engine, the queries in it, and the effect of each typed line.

A line is an event (it begins with a time), background (Turtle, without a time), a command (it begins with a dot), a
prefix, or part of a query, which ends with an empty line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from etalis_compiler import ast
from etalis_compiler.diagnostics import QueryError, Source
from etalis_compiler.parser import parse
from etalis_rules.printing import print_rules

from etalis_py.cli.options import graph_files
from etalis_py.engine.driver import Driver, Step
from etalis_py.engine.engine import Engine
from etalis_py.engine.program import program_of
from etalis_py.events import Event, Triple
from etalis_py.events.clock import clock_of
from etalis_py.kernel.matches import Match
from etalis_py.knowledge import Knowledge, load
from etalis_py.streams import Clock, Punctuation
from etalis_py.streams.write_table import show_term
from etalis_py.values.errors import LimitExceeded
from etalis_py.values.oxigraph_terms import read_turtle

HELP = """\
an event      1 :acme :price 10 .            at a time: seconds, or 2026-01-31T10:00:00Z
              [1,4] :ann :in :room7 .        with an interval
              1 @:doors :ann :in :room7 .    on a stream
background    :acme :sector :tools .         without a time: it holds from now on
a query       SELECT … or CONSTRUCT … or ASK …, over several lines; an empty line ends it.  A query with windows answers
              when time has moved on; queries that feed one another are typed together
a prefix      PREFIX ex: <http://example.com/>
.queries      the queries that run            .rules   their rules and windows
.remove q1    stop a query                    .why     why the last match holds
.time 30      time goes on to 30              .goals   what is remembered
exit          end; what is only known at the end is reported then"""

_EVENT = re.compile(r"\s*(?:\[\s*([^,\s]+)\s*,\s*([^\]\s]+)\s*\]|(-?\d\S*))\s+(\S.*?)\s*\.?\s*$")
_STREAM = re.compile(r"@(<[^<>\s]*>|[\w-]*:\S*)\s+(\S.*)$")
_PREFIX = re.compile(r"\s*@?prefix\s+([\w-]*):\s*<([^<>\s]*)>\s*\.?\s*$", re.IGNORECASE)
_TURTLE = re.compile(r"\s*(?:<[^<>\s]*>|_:\S+|[\w-]*:\S*|\[|\()(?:\s|$)")
_GOES_ON = (";", ",", "[", "(")  # at the end of an unfinished line of Turtle
SAME_TIME = 1  # microsecond: the horizon in which shown matches may change
_BEGINNINGS = ("SELECT", "CONSTRUCT", "ASK", "DESCRIBE", "PREFIX", "BASE", "REGISTER")


class Session:
    """State: the engines, the prefixes, the lines of an unfinished query or Turtle text, the last match.

    EP-SPARQL queries share an engine; a text with windows is a separate program with its own engine, which starts when
    it is typed.  Matches are shown as soon as their last event is typed.  Another event of the same time is then a
    correction, for which the shared engine has a horizon: so the matches shown are correct again.

    A line that is interrupted or goes beyond a limit leaves an engine broken, or has reached only some of them.  Then
    new engines take again what was typed before it.
    """

    def __init__(self, background: Sequence[Any], entailment: str, policy: str) -> None:
        self._background, self._entailment, self._policy = background, entailment, policy
        self._typed: list[str] = []  # the lines that have been taken
        self._begin()

    def _begin(self) -> None:
        self._clock: Clock | None = None
        self._facts: list[Triple] = []  # typed background
        self._rules = self._driver_of_rules({})
        self._windows: list[Driver] = []
        self._numbered = self._events = 0
        self._time: int | None = None  # the time of the last event
        self._prefixes = {"": "http://example.org/"}
        self._lines: list[str] = []
        self._turtle: list[str] = []
        self._unfinished: list[str] = []  # the lines of either
        self._last: Match | None = None
        self.done = False

    @property
    def prompt(self) -> str:
        return "      > " if self._lines or self._turtle else "etalis> "

    def take(self, line: str) -> Iterator[str]:
        """The output for one line."""
        interrupted = False
        self._unfinished.append(line)
        try:
            yield from self._take(line)
        except (QueryError, ValueError, SyntaxError, LimitExceeded) as error:
            self.forget()
            yield str(error)
        except KeyboardInterrupt:
            interrupted = True
        if interrupted or any(driver.engine.broken is not None for driver in (self._rules, *self._windows)):
            yield from self._repair()
        elif not self._lines and not self._turtle:
            self._typed += self._unfinished
            self._unfinished = []

    def _repair(self) -> Iterator[str]:
        """Take what was typed before the last event, query or command again."""
        self._begin()
        for line in self._typed:
            for _ in self._take(line):
                pass  # shown before
        yield "this was left out; all that was typed before it holds"

    def end(self) -> Iterator[str]:
        """The output at the end of the input."""
        if self._lines or self._turtle:
            yield from self.take("")
        if not self.done:
            self.done = True
            yield from self._show(Driver.end)

    def forget(self) -> None:
        """Discard the query or Turtle that is being typed."""
        self._lines, self._turtle, self._unfinished = [], [], []

    def _take(self, line: str) -> Iterator[str]:
        if self._lines:
            if line.strip():
                self._lines.append(line)
            else:
                text, self._lines = "\n".join(self._lines), []
                yield from self._add(text)
        elif self._turtle:
            yield from self._learn(line.strip())
        elif not line.strip() or line.lstrip().startswith("#"):
            return
        elif line.strip() in ("exit", "quit", "help"):
            yield from self._command(f".{line.strip()}")
        elif line.lstrip().startswith("."):
            yield from self._command(*line.split(maxsplit=1))
        elif prefix := _PREFIX.match(line):
            self._prefixes[prefix[1]] = prefix[2]
        elif typed := _EVENT.match(line):
            event = self._event(typed)
            if self._time is not None and event.end < self._time:
                yield "this event is earlier than one before it: it came too late and was left out"
                return
            self._time = event.end
            self._events += 1
            yield from self._show(lambda driver: self._push(driver, event))
        elif line.split()[0].upper().rstrip("{(*") in _BEGINNINGS:
            self._lines.append(line)
        elif _TURTLE.match(line):
            yield from self._learn(line.strip())
        else:
            yield f"{line.strip()!r} is not an event, background, query or command; .help tells what is"

    @property
    def _drivers(self) -> tuple[Driver, ...]:
        return self._rules, *self._windows

    def _push(self, driver: Driver, event: Event) -> Iterator[Step]:
        """The steps of an engine for an event; rules answer at once, windows when time has moved on."""
        if driver in self._windows:
            yield from driver.take(event)
        elif driver.engine.programs:
            yield from driver.take(event)
            yield from driver.settle()

    def _learn(self, line: str) -> Iterator[str]:
        """Add background: triples without a time, over several lines if a line ends unfinished."""
        self._turtle.append(line)
        if line.endswith(_GOES_ON):
            return
        text, self._turtle = "\n".join(self._turtle).removesuffix("."), []
        triples = self._triples(text)
        for driver in self._drivers:
            driver.engine.update("", triples)
        self._facts += triples
        yield f"{len(triples)} triple{'s' * (len(triples) != 1)} of background"

    def _triples(self, text: str) -> tuple[Triple, ...]:
        names = " ".join(f"@prefix {name}: <{iri}> ." for name, iri in self._prefixes.items())
        try:
            return read_turtle(f"{names} {text} .")
        except SyntaxError as error:
            raise ValueError(f"this is not Turtle: {error.msg}") from None

    def _event(self, typed: re.Match[str]) -> Event:
        start, end = (typed[1], typed[2]) if typed[1] else (typed[3], typed[3])
        clock = self._clock or clock_of(start)
        if clock.kind == "integer" and clock_of(start).kind != "integer":
            raise ValueError(f"the times so far are numbers, {start} is not")
        interval = clock.parse(start), clock.parse(end)
        if interval[0] > interval[1]:
            raise ValueError(f"the interval [{start}, {end}] ends before it starts")
        on = _STREAM.match(typed[4])
        stream, turtle = (self._iri(on[1]), on[2]) if on else ("", typed[4])
        triples = self._triples(turtle)
        self._clock = clock
        return Event(*interval, triples, stream, "")

    def _iri(self, name: str) -> str:
        if name[0] == "<":
            return name
        prefix, _, local = name.partition(":")
        if prefix not in self._prefixes:
            raise ValueError(f"the prefix {prefix}: is not declared; write PREFIX {prefix}: <…> first")
        return f"<{self._prefixes[prefix]}{local}>"

    def _known(self, named: Mapping[str, Any]) -> Knowledge:
        """The background, with the graphs of FROM and with the typed triples."""
        return load([*self._background, self._facts], named=named, entailment=self._entailment)

    def _driver_of_rules(self, named: Mapping[str, Any]) -> Driver:
        known = self._known(named)
        engine = Engine(background=known, policy=self._policy, explain=True, revise=SAME_TIME, render=self._render)
        return Driver(engine, live=True)

    def _add(self, text: str) -> Iterator[str]:
        """Run the queries of a text; those without a name, or with a taken name, get a new one."""
        source = Source(text + "\n")
        document = parse(source.text, source=source.name, prefixes=self._prefixes)
        taken = set(self._queries())
        queries = tuple(self._named(query, taken) for query in document.queries)
        program = program_of([(replace(document, queries=queries), source)], policy=self._policy)
        files = graph_files(program)
        if program.windowed:
            known = self._known(files)
            engine = Engine(program, background=known, explain=True, render=self._render, start=self._time)
            self._windows.append(Driver(engine, live=True))
        else:
            if files and not self._rules.engine.programs:  # running programs have already chosen what they see
                self._rules = self._driver_of_rules(files)
            if not self._rules.engine.programs and self._time is not None:
                self._rules.engine.advance(self._time - 1)
            self._rules.engine.add(program)
        yield from map(str, program.warnings)
        yield f"{', '.join(program.queries)} runs"

    def _named(self, query: ast.Query, taken: set[str]) -> ast.Query:
        register = query.register or ast.Register("QUERY", "", span=query.span)
        name = register.name or "q1"
        while name in taken and register.kind != "STREAM":
            self._numbered += 1
            name = f"q{self._numbered}"
        taken.add(name)
        return replace(query, register=replace(register, name=name))

    def _command(self, command: str, argument: str = "") -> Iterator[str]:
        match command:
            case ".help":
                yield HELP
            case ".quit" | ".exit":
                yield from self.end()
            case ".queries":
                for identifier, program in self._rules.engine.programs.items():
                    for compiled in program.compilation.queries:
                        yield f"{compiled.name} ({identifier}): {' '.join(compiled.source.text.split())}"
                for driver in self._windows:
                    for document, source in chain.from_iterable(p.documents for p in driver.engine.programs.values()):
                        for query in document.queries:
                            text = source.text[query.span.start : query.span.end]
                            yield f"{query.register and query.register.name} (windows): {' '.join(text.split())}"
                if not self._rules.engine.programs and not self._windows:
                    yield "no queries yet"
            case ".rules":
                if self._rules.engine.programs:
                    yield print_rules(self._rules.engine.rules).strip()
                for driver in self._windows:
                    yield from (program.explain().windows for program in driver.engine.programs.values())
                if not self._rules.engine.programs and not self._windows:
                    yield "no queries yet"
            case ".remove":
                yield from self._remove(argument)
            case ".why":
                yield str(self._last.why()) if self._last is not None else "no match yet"
            case ".goals":
                counters = self._rules.engine.counters
                items = sum(driver.engine.counters.items for driver in self._windows)
                kept = f", items in windows: {items}" if self._windows else ""
                yield f"goals: {counters.goals}, events: {self._events}, matches: {counters.matches}{kept}"
            case ".time":
                clock = self._clock or clock_of(argument)
                time = clock.parse(argument)
                self._time = time + 1 if self._time is None else max(self._time, time + 1)
                yield from self._show(lambda driver: driver.take(Punctuation(time)))
            case _:
                yield f"there is no command {command}; .help lists them"

    def _remove(self, name: str) -> Iterator[str]:
        for driver in self._drivers:
            for identifier, program in driver.engine.programs.items():
                if name in program.queries:
                    if driver is self._rules:
                        driver.engine.remove(identifier)
                    else:
                        self._windows.remove(driver)
                    yield f"{', '.join(program.queries)} stopped"
                    return
        yield f"there is no query {name or '(name it)'}; running: {', '.join(self._queries()) or 'none'}"

    def _queries(self) -> list[str]:
        programs = chain.from_iterable(driver.engine.programs.values() for driver in self._drivers)
        return [name for program in programs for name in program.queries]

    def _show(self, action: Callable[[Driver], Iterable[Step]]) -> Iterator[str]:
        """The output for the answers of the engines to an action."""
        columns = {output.query: output.variables for driver in self._drivers for output in driver.engine.outputs}
        steps = [step for driver in self._drivers for step in action(driver)]
        for match in chain.from_iterable(step.matches for step in steps):
            self._last = match
            if match.triples is not None:
                text = " ; ".join(" ".join(show_term(term, self._prefixes) for term in t) for t in match.triples)
            elif match.boolean is not None:
                text = "yes" if match.boolean else "no"
            else:
                bound = [(name, match.bindings[name]) for name in columns[match.query] if name in match.bindings]
                text = "  ".join(f"?{name} = {show_term(term, self._prefixes)}" for name, term in bound)
            when = "" if match.start is None else f" [{match.start}, {match.end}]"
            yield f"{'✗ ' * match.retracted}{match.query}{when}  {text}"
        if any(step.late for step in steps):
            yield "this event is not later than the last query: it came too late and was left out"

    def _render(self, us: int) -> int | str:
        return (self._clock or Clock("integer")).render(us)
