"""Programs that run inside the server: each reads one container as a stream and writes its matches into another.

How a query is compiled and run is not known here: a ``RunnerFactory`` is handed in, and what it makes is a
``ProgramRunner``.  After a restart a program reads its container again from where it was registered; the members that
its matches become are named by the program and the match's id, so that none is written twice.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from etalis_rules.terms import literal

from etalis_py.events import Event, Triple
from etalis_py.streams.clock import render_datetime

from . import vocabulary as v
from .catalogue import ProgramRow
from .changes import is_name, put_member
from .graphs import DATE_TIME, DATE_TIME_STAMP, TURTLE, Base, ntriples, parse, stamped, triples_of
from .problems import Problem
from .rendering import arrivals
from .store import Store, Stored

_LOG = logging.getLogger("etalis.containers")
_KEPT = 1_000
_BATCH = 200


class MatchLike(Protocol):
    """What a program finds.  Times are microseconds; terms are canonical N-Triples spellings."""

    @property
    def start_us(self) -> int | None:
        """Where its interval begins; None for a match outside of time."""

    @property
    def end_us(self) -> int | None:
        """Where its interval ends; None for a match outside of time."""

    @property
    def id(self) -> str:
        """Deterministic: the same match of the same input has the same id."""

    @property
    def bindings(self) -> Mapping[str, str]:
        """Variable name → term, for SELECT; empty for CONSTRUCT."""

    @property
    def triples(self) -> Sequence[Triple] | None:
        """What CONSTRUCT derived; None or empty for SELECT."""

    def to_dict(self) -> dict[str, object]:
        """The JSON object of the match."""

    def why(self) -> object:
        """The explanation: a text, or something with ``to_dict()``, or plain JSON."""


class ProgramRunner(Protocol):
    """A compiled program with its state, fed by one thread."""

    def push(self, event: Event) -> Sequence[MatchLike]:
        """Take the next event; the answer is the matches of the instants it closed."""

    def idle(self) -> Sequence[MatchLike]:
        """No event has come for a while: close the open instant; the answer is its matches."""

    def graph(self) -> dict[str, object]:
        """The rules as a graph, asked for once, before the first event.

        ``{"nodes": [{"id", "label", "kind"}], "edges": [{"from", "to", "label"?}]}``
        """

    def close(self) -> None:
        """Let go of everything; no match is wanted any more."""


# From the text of a query (always a text, never to be taken for the path of a file: it comes from the network) and the
# IRI of the stream that it reads; raises ValueError with a message for the user.
RunnerFactory = Callable[[str, str], ProgramRunner]


@dataclass(frozen=True, slots=True)
class Found:
    """A match as it is kept for readers: ``number`` counts from 1 in order of finding, ``document`` is its JSON."""

    number: int
    id: str
    document: dict[str, object]
    match: MatchLike


class RunningProgram:
    """One program at work in a thread of its own.  State: a cursor, the last thousand matches, and the counts."""

    def __init__(self, store: Store, row: ProgramRow, runner: ProgramRunner, base: Base, idle: float) -> None:
        self.row, self._store, self._runner, self._base, self._idle = row, store, runner, base, idle
        self.pushed = self.found = self.written = self.repeated = self.refused = 0
        self.error = ""
        self.matches: deque[Found] = deque(maxlen=_KEPT)
        self.graph = runner.graph()
        self._cursor = row.after
        self._wake = threading.Event()
        self._stopping = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"program-{row.name}", daemon=True)
        store.listen(self._notice)
        self._thread.start()

    def since(self, number: int, limit: int) -> list[Found]:
        """The kept matches after the one with that number, the last ``limit`` of them."""
        with self._lock:
            return [f for f in self.matches if f.number > number][-limit:]

    def why(self, match: str) -> object:
        """The explanation of a kept match, as JSON."""
        with self._lock:
            found = next((f for f in self.matches if f.id == match), None)
        if found is None:
            raise Problem("not-found", f"the match {match!r} is not among the last {_KEPT} of this program")
        explanation = found.match.why()
        made = getattr(explanation, "to_dict", None)
        if made is not None:
            return made()
        plain = (str, int, float, bool, list, dict, tuple, type(None))
        return explanation if isinstance(explanation, plain) else str(explanation)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        self._store.unlisten(self._notice)
        self._thread.join()
        self._runner.close()

    def _notice(self, stored: list[Stored]) -> None:
        if any(one.container == self.row.container for one in stored):
            self._wake.set()

    def _run(self) -> None:
        quiet = True
        try:
            while not self._stopping:
                self._wake.clear()
                container = self._store.catalogue.by_id.get(self.row.container)
                members = arrivals(self._store, container, self._cursor, _BATCH) if container else []
                for member in members:
                    if self._stopping:
                        return
                    self._take(self._runner.push(as_event(member, self._base)))
                    self._cursor, self.pushed, quiet = member.id, self.pushed + 1, False
                if not members and not self._wake.wait(self._idle) and not quiet:
                    self._take(self._runner.idle())
                    quiet = True
        except Exception as error:  # a program that fails stops, and says so on its own page; the server goes on
            self.error = f"{type(error).__name__}: {error}"
            _LOG.exception("the program %s stopped", self.row.name)

    def _take(self, matches: Sequence[MatchLike]) -> None:
        for match in matches:
            with self._lock:
                self.found += 1
                self.matches.append(Found(self.found, match.id, _shown(match), match))
            if match.triples:
                self._write(match)

    def _write(self, match: MatchLike) -> None:
        output = self._store.catalogue.by_path.get(self.row.output)
        if output is None:
            self.refused += 1
            return
        # Another program that writes here may give its matches the same ids.
        name = match_name(f"p{self.row.id}-{match.id}")
        graph = parse(
            match_graph(match, output.spec.order),
            TURTLE,
            output.path + name,
            self._base,
            self._store.limits.triples_per_graph,
        )
        while True:
            try:
                self._store.change(put_member(output.path, name, graph, self._store.clock(), _only_new))
                self.written += 1
            except Problem as problem:
                if problem.kind == "busy" and not self._stopping:
                    time.sleep(0.1)  # the store is behind: so are we
                    continue
                if problem.kind in ("stale", "gone"):
                    self.repeated += 1
                else:
                    self.refused += 1
                    self.error = str(problem)
            return


def _shown(match: MatchLike) -> dict[str, object]:
    """The match as JSON, its interval as ``from`` and ``to`` in xsd:dateTime whatever the stream's own clock is."""
    interval = (match.start_us, match.end_us)
    start, end = (None if time is None else render_datetime(time) for time in interval)
    return {"match": match.to_dict(), "from": start, "to": end}


def _only_new(state: str | None) -> None:
    if state is not None:
        raise Problem("stale", "the match is there already")


def as_event(member: Stored, base: Base) -> Event:
    """A member as an event: it ends at its time, and starts at its ``prov:startedAtTime`` where it gives one."""
    triples = triples_of(base.out(member.body))
    me = f"<{base.out_iri(member.path + member.name)}>"
    started = stamped(triples, me).stamps.get(v.STARTED_AT)
    start = started.time if started and started.own and started.time <= member.time else member.time
    return Event(start, member.time, triples, f"<{base.out_iri(member.path)}>", me)


def match_name(match_id: str) -> str:
    """The name of the member that a match becomes."""
    if is_name(match_id) and not match_id.isdigit():
        return match_id
    return "m-" + hashlib.blake2b(match_id.encode(), digest_size=16).hexdigest()


def match_graph(match: MatchLike, order: str) -> bytes:
    """The graph that a match is written as (Turtle, about ``<>``): its triples, or its row, and its interval.

    A match outside of time gives none, and gets the time at which it arrives.
    """
    lines = [ntriples(match.triples) if match.triples else _row(match.bindings)]
    if match.start_us is not None and match.end_us is not None:
        start = literal(render_datetime(match.start_us), DATE_TIME)
        end = literal(render_datetime(match.end_us), DATE_TIME_STAMP)
        lines.append(f"<> {v.STARTED_AT} {start} .\n<> {order} {end} .\n".encode())
    return b"".join(lines)


def _row(bindings: Mapping[str, str]) -> bytes:
    """A row of SELECT in the result-set vocabulary of the SPARQL tests."""
    pairs = [
        f"[ <{v.RS}variable> {literal(name)} ; <{v.RS}value> {term} ]"
        for name, term in sorted(bindings.items())
        if term
    ]
    names = ", ".join(literal(name) for name in sorted(bindings)) or '""'
    listed = f" ; <{v.RS}binding> {', '.join(pairs)}" if pairs else ""
    solution = f"<{v.RS}solution> [ a <{v.RS}Solution>{listed} ]"
    return f"<> a <{v.RS}ResultSet> ; <{v.RS}resultVariable> {names} ; {solution} .\n".encode()


class Programs:
    """The programs of a server: those of the store start with it."""

    def __init__(self, store: Store, factory: RunnerFactory | None, base: Base, idle: float = 1.0) -> None:
        self._store, self._factory, self._base, self._idle = store, factory, base, idle
        self.running: dict[int, RunningProgram] = {}
        self.errors: dict[int, str] = {}

    def compile(self, query: str, stream: str) -> ProgramRunner:
        if self._factory is None:
            raise Problem("no-engine", "programs cannot be registered: this server was started without an engine")
        try:
            return self._factory(query, stream)
        except ValueError as error:
            raise Problem("bad-query", str(error)) from None

    def stream_iri(self, path: str) -> str:
        """The IRI by which programs know a container, whatever name a client uses for this server."""
        return self._base.out_iri(path)

    def start_all(self) -> None:
        """Start what the store holds; one that no longer compiles is kept and shows its error."""
        for row in list(self._store.catalogue.programs.values()):
            container = self._store.catalogue.by_id[row.container]
            try:
                runner = self.compile(row.query, self.stream_iri(container.path))
            except Problem as problem:
                self.errors[row.id] = problem.detail
                _LOG.warning("the program %s%s does not run: %s", container.path, row.name, problem.detail)
            else:
                self.start(row, runner)

    def start(self, row: ProgramRow, runner: ProgramRunner) -> None:
        self.running[row.id] = RunningProgram(self._store, row, runner, self._base, self._idle)

    def stop(self, row: ProgramRow) -> None:
        self.errors.pop(row.id, None)
        if running := self.running.pop(row.id, None):
            running.stop()

    def stop_all(self) -> None:
        for running in list(self.running.values()):
            running.stop()
        self.running.clear()

    def describe(self, row: ProgramRow) -> dict[str, object]:
        """The state of a program as JSON."""
        running = self.running.get(row.id)
        container = self._store.catalogue.by_id[row.container]
        return {
            "name": row.name,
            "program": container.path + row.name,
            "input": container.path,
            "output": row.output,
            "query": row.query,
            "running": running is not None and running.alive,
            "error": running.error if running else self.errors.get(row.id, ""),
            "pushed": running.pushed if running else 0,
            "matches": running.found if running else 0,
            "written": running.written if running else 0,
            "repeated": running.repeated if running else 0,
            "refused": running.refused if running else 0,
        }
