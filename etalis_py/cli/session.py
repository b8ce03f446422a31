"""What a conversation is: an engine, the queries in it, and what each typed line does to them.

A line is an event (it begins with a time), a command (it begins with a dot), a prefix, or part of a query, which ends
with an empty line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from etalis_compiler.diagnostics import QueryError
from etalis_rules.printing import print_rules

from etalis_py.cli.options import graph_files
from etalis_py.cli.session_windows import WindowedQueries, has_windows
from etalis_py.engine.engine import Engine
from etalis_py.engine.matches import Match, Matches
from etalis_py.engine.runtime import LimitExceeded
from etalis_py.events import Event, event
from etalis_py.knowledge import Knowledge, load
from etalis_py.knowledge.loading import Source
from etalis_py.program import compile
from etalis_py.streams import Clock
from etalis_py.streams.clock import clock_of
from etalis_py.streams.write_table import show_term

HELP = """\
an event      1 :acme :price 10 .            at a time: seconds, or 2026-01-31T10:00:00Z
              [1,4] :ann :in :room7 .        with an interval
              1 @:doors :ann :in :room7 .    on a stream
a query       SELECT … or CONSTRUCT … or ASK …, over several lines; an empty line ends it.  A query with windows answers
              when time has moved on; queries that feed one another are typed together
a prefix      PREFIX ex: <http://example.com/>
.queries      the queries that run            .rules   their rules and windows
.remove q1    stop a query                    .why     why the last match holds
.time 30      time goes on to 30              .goals   what is remembered
.quit         end; what is only known at the end is said then"""

_EVENT = re.compile(r"\s*(?:\[\s*([^,\s]+)\s*,\s*([^\]\s]+)\s*\]|(-?\d\S*))\s+(\S.*?)\s*\.?\s*$")
_STREAM = re.compile(r"@(<[^<>\s]*>|[\w-]*:\S*)\s+(\S.*)$")
_PREFIX = re.compile(r"\s*@?prefix\s+([\w-]*):\s*<([^<>\s]*)>\s*\.?\s*$", re.IGNORECASE)
_PLACE = re.compile(r"^Parser error at line \d+ [^:]*: ")  # counts the prefixes that nobody typed
_BEGINNINGS = ("SELECT", "CONSTRUCT", "ASK", "DESCRIBE", "PREFIX", "BASE", "REGISTER")


class Session:
    """State: the engine, the prefixes, the lines of a query that has not ended, the last match."""

    def __init__(self, background: Sequence[str], entailment: str, policy: str) -> None:
        self._clock: Clock | None = None
        self._background, self._entailment, self._policy = background, entailment, policy
        self._engine = self._engine_with({})
        self._windows = WindowedQueries(self._known, self._render)
        self._time: int | None = None  # that of the last event
        self._prefixes = {"": "http://example.org/"}
        self._lines: list[str] = []
        self._last: Match | None = None
        self._made = 0
        self.done = False

    @property
    def prompt(self) -> str:
        return "      > " if self._lines else "etalis> "

    def take(self, line: str) -> Iterator[str]:
        """What a line makes the session say."""
        try:
            yield from self._take(line)
        except (QueryError, ValueError, SyntaxError, LimitExceeded) as error:
            self._lines = []
            yield str(error)

    def end(self) -> Iterator[str]:
        """The input is over: what is only known now."""
        if self._lines:
            yield from self.take("")
        if not self.done:
            self.done = True
            yield from self._show(self._engine.close(), *self._windows.close())

    def forget(self) -> None:
        """The query that is being typed is given up."""
        self._lines = []

    def _take(self, line: str) -> Iterator[str]:
        if self._lines:
            if line.strip():
                self._lines.append(line)
            else:
                text, self._lines = "\n".join(self._lines), []
                yield from self._add(text)
        elif not line.strip() or line.lstrip().startswith("#"):
            return
        elif line.lstrip().startswith("."):
            yield from self._command(*line.split(maxsplit=1))
        elif prefix := _PREFIX.match(line):
            self._prefixes[prefix[1]] = prefix[2]
        elif found := _EVENT.match(line):
            event = self._event(found)
            self._time = event.end if self._time is None else max(self._time, event.end)
            yield from self._show(self._engine.push(event), *self._windows.push(event))
            yield from self._too_late()
        elif line.split()[0].upper().rstrip("{(*") in _BEGINNINGS:
            self._lines.append(line)
        else:
            yield f"{line.strip()!r} is no event, query or command; .help tells what is"

    def _event(self, found: re.Match[str]) -> Event:
        start, end = (found[1], found[2]) if found[1] else (found[3], found[3])
        clock = self._clock or clock_of(start)
        if clock.kind == "integer" and clock_of(start).kind != "integer":
            raise ValueError(f"the times so far are numbers, {start} is none")
        interval = clock.parse(start), clock.parse(end)
        if interval[0] > interval[1]:
            raise ValueError(f"the interval [{start}, {end}] ends before it starts")
        names = " ".join(f"@prefix {name}: <{iri}> ." for name, iri in self._prefixes.items())
        on = _STREAM.match(found[4])
        stream, triples = (self._iri(on[1]), on[2]) if on else ("", found[4])
        try:
            made = event(f"{names} {triples}", 0, stream=stream)
        except SyntaxError as error:
            raise ValueError(f"this is no Turtle: {_PLACE.sub('', error.msg)}") from None
        self._clock = clock
        return made._replace(start=interval[0], end=interval[1])

    def _iri(self, name: str) -> str:
        if name[0] == "<":
            return name
        prefix, _, local = name.partition(":")
        if prefix not in self._prefixes:
            raise ValueError(f"the prefix {prefix}: is not declared; write PREFIX {prefix}: <…> first")
        return f"<{self._prefixes[prefix]}{local}>"

    def _known(self, named: Mapping[str, Source]) -> Knowledge | None:
        """The background, with the graphs of FROM."""
        return load(self._background, named=named, entailment=self._entailment) if self._background or named else None

    def _engine_with(self, named: Mapping[str, Source]) -> Engine:
        known = self._known(named)
        return Engine(background=known, policy=self._policy, explain=True, eager=True, render=self._render)

    def _add(self, text: str) -> Iterator[str]:
        if has_windows(text + "\n", self._prefixes):
            yield from self._windows.add(text + "\n", self._prefixes, set(self._queries()), self._time)
            return
        program = compile(text + "\n", policy=self._policy, prefixes=self._prefixes)
        files = graph_files(program)
        if files and not self._engine.programs:  # those that run already have chosen what they see
            self._engine = self._engine_with(files)
            if self._time is not None:
                self._engine.advance(self._time - 1)
        taken = set(self._queries())
        queries = []
        for query in program.compilation.queries:
            name = query.name
            while name in taken:
                self._made += 1
                name = f"q{self._made}"
            taken.add(name)
            queries.append(replace(query, name=name))
        self._engine.add(replace(program.compilation, queries=tuple(queries)), policy=self._policy)
        yield from map(str, program.warnings)
        yield f"{', '.join(query.name for query in queries)} runs"

    def _command(self, command: str, argument: str = "") -> Iterator[str]:
        match command:
            case ".help":
                yield HELP
            case ".quit" | ".exit":
                yield from self.end()
            case ".queries":
                for identifier, (compilation, _) in self._engine.programs.items():
                    for query in compilation.queries:
                        yield f"{query.name} ({identifier}): {' '.join(query.source.text.split())}"
                for name, text in self._windows.queries():
                    yield f"{name} (windows): {' '.join(text.split())}"
                if not self._engine.programs and not self._windows:
                    yield "no queries yet"
            case ".rules":
                if self._engine.programs:
                    yield print_rules(self._engine.rules).strip()
                if self._windows:
                    yield self._windows.plans()
                if not self._engine.programs and not self._windows:
                    yield "no queries yet"
            case ".remove":
                yield from self._remove(argument)
            case ".why":
                yield str(self._last.why()) if self._last is not None else "no match yet"
            case ".goals":
                counters = self._engine.count()
                kept = f", {self._windows.items()} items in windows" if self._windows else ""
                yield f"{counters.goals} goals, {counters.events} events, {counters.matches} matches{kept}"
            case ".time":
                clock = self._clock or clock_of(argument)
                time = clock.parse(argument)
                self._time = time + 1 if self._time is None else max(self._time, time + 1)
                yield from self._show(self._engine.advance(time), *self._windows.advance(time))
            case _:
                yield f"there is no command {command}; .help lists them"

    def _remove(self, name: str) -> Iterator[str]:
        for identifier, (compilation, _) in self._engine.programs.items():
            if name in (query.name for query in compilation.queries):
                self._engine.remove(identifier)
                yield f"{', '.join(query.name for query in compilation.queries)} stopped"
                return
        stopped = self._windows.remove(name)
        if stopped:
            yield f"{', '.join(stopped)} stopped"
            return
        yield f"there is no query {name or '(name it)'}; running: {', '.join(self._queries()) or 'none'}"

    def _queries(self) -> list[str]:
        rules = [query.name for compilation, _ in self._engine.programs.values() for query in compilation.queries]
        return [*rules, *(name for name, _ in self._windows.queries())]

    def _show(self, *found: Matches) -> Iterator[str]:
        columns = {output.query: output.variables for output in self._engine.rules.outputs}
        columns |= self._windows.variables()
        for match in chain.from_iterable(found):
            self._last = match
            if match.triples is not None:
                said = " ; ".join(" ".join(show_term(term, self._prefixes) for term in t) for t in match.triples)
            elif match.boolean is not None:
                said = "yes" if match.boolean else "no"
            else:
                bound = [(name, match.bindings[name]) for name in columns[match.query] if name in match.bindings]
                said = "  ".join(f"?{name} = {show_term(term, self._prefixes)}" for name, term in bound)
            when = "" if match.start is None else f" [{match.start}, {match.end}]"
            yield f"{match.query}{when}  {said}"

    def _too_late(self) -> Iterator[str]:
        for _ in self._engine.dead_letters:
            yield "this event is earlier than one before it: it came too late and was left out"
        self._engine.dead_letters.clear()

    def _render(self, us: int) -> int | str:
        return (self._clock or Clock("integer")).render(us)
