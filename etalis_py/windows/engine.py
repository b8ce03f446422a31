"""The engine of windowed queries: events in, the answers of the evaluation times that have passed out.

An evaluation at t sees all items of the instant t, so it happens when time moves on: with a later event, ``advance(t)``
or ``close()``.  Every time at which a policy holds is an evaluation of its own, also when several lie between two
events.  After the end of the stream time runs on until no window holds anything that has not been reported.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from etalis_compiler.rsp import Circle
from etalis_rules import program as ir

from etalis_py.engine.engine import NEVER, Engine, knowledge_of, seconds
from etalis_py.engine.garbage import few_collections
from etalis_py.engine.matches import Matches, Report, Row
from etalis_py.engine.runtime import LimitExceeded, Limits
from etalis_py.engine.snapshots import SnapshotError
from etalis_py.events import Event, Triple
from etalis_py.knowledge import Knowledge
from etalis_py.windows.content import item_of
from etalis_py.windows.facts import FactRun
from etalis_py.windows.program import WindowProgram, compile_windows
from etalis_py.windows.query import QueryRun
from etalis_py.windows.refresh import Loader, file_loaders, graph_name, unreadable
from etalis_py.windows.source import Stored

MAGIC = b"ETALIS-WINDOWS\x02"
Step = Engine | FactRun | QueryRun


@dataclass(slots=True)
class WindowCounters:
    """What an engine has done.  Nothing is dropped without being counted here.

    ``outside``: items that no window will ever hold (before t0, between windows that slide further than they are
    long, outside an interval); ``unrouted``: items of streams that no query reads; ``late``: those in ``dead_letters``.
    ``items`` is what the windows keep, ``goals`` what the EP-SPARQL queries beside them do, as of the last ``count()``.
    """

    events: int = 0
    late: int = 0
    unrouted: int = 0
    outside: int = 0
    evaluations: int = 0
    matches: int = 0
    items: int = 0
    goals: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """One evaluation of one query, as ``listen`` hears of it, the empty ones too."""

    query: str
    time: int
    opening: int
    matches: Matches


class MissingGraph(ValueError):
    """A query names a stored graph that is not there."""


class WindowEngine:
    """Evaluates windowed queries over streams.

    ``background`` is what ``Engine`` takes; ``graphs`` gives time-varying graphs by name (``""``: the default graph):
    they are read at every evaluation, or as often as RESCAN says.  ``report`` replaces the report policy of queries,
    by name (or of all: ``""``), where the text cannot say it: strategies that look at one window.  ``duplicates``
    has patterns match a triple as often as the items in the window state it.  ``named``, ``explain`` and ``changes``
    are those of ``Engine``; a match of a windowed query says which windows it looked at without being asked to.  An
    event that names no stream belongs to ``stream``: where that is None, to the stream of the program, when there is
    only one.

    >>> from etalis_py import event
    >>> engine = WindowEngine("SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT5S] { WINDOW :w { ?x :p ?y } }")
    >>> engine.push(event("<urn:a> :p 1", 3)), engine.push(event("<urn:b> :p 1", 11))
    ([], [<q1 [0, 5] ?x=<urn:a>>])
    >>> engine.close()
    [<q1 [10, 15] ?x=<urn:b>>]
    """

    def __init__(
        self,
        program: WindowProgram | str | Path,
        *,
        background: Any = None,
        graphs: Mapping[str, Loader] | None = None,
        report: Mapping[str, Any] | None = None,
        duplicates: bool = False,
        entailment: str = "rdfs",
        policy: str = "unrestricted",
        lateness: int = 0,
        start: int | None = None,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        render: Callable[[int], int | str] | None = None,
        listen: Callable[[Answer], None] | None = None,
        named: Any = None,
        explain: bool = False,
        changes: bool = False,
        stream: str | None = None,
    ) -> None:
        self.program = compile_windows(program) if isinstance(program, str | Path) else program
        knowledge = knowledge_of(background, entailment, named)
        self._has_background = knowledge is not None
        self.knowledge: Knowledge = Knowledge({}, entailment) if knowledge is None else knowledge
        self.graphs = {graph_name(name): loader for name, loader in (graphs or {}).items()}
        from_files = file_loaders(self.program.plans, named or {})
        self.lateness, self.limits, self.listen = lateness, limits, listen
        self.counters = WindowCounters()
        self.dead_letters: list[Event] = []
        self.finished = False
        self.repeating = False  # while input is taken again that has been answered: only the state is wanted
        self._read_at: dict[str, int] = {}
        self._loaded: dict[str, set[Triple]] = {}
        for name in from_files.keys() - self.graphs.keys():
            self.graphs[name] = from_files[name]
            self._loaded[name] = set(from_files[name](0))  # the background has it already
        self._now = NEVER if start is None else start - 1
        self._done = NEVER if start is None else start - 1  # every evaluation up to here has happened
        self._buffer: list[tuple[int, int, Event]] = []
        self._arrivals = 0
        self._newest = NEVER
        self._first: Event | None = None  # of the instant, with the others in it
        self._instant: set[Event] = set()
        plans = self.program.plans
        if report is not None:
            unknown = sorted(set(report) - {"", *(p.name for p in plans)})
            if unknown:
                names = ", ".join(p.name for p in plans)
                raise ValueError(f"report policies are given for {', '.join(unknown)}; the queries are {names}")
            plans = tuple(_reporting(p, report) for p in plans)
        if not changes:
            self._check_graphs()
        self.queries = [
            QueryRun(
                p,
                Stored(self.knowledge, p.graphs, p.named, p.restricted),
                render or seconds,
                duplicates=duplicates,
                stored=self._has_background or bool(self.graphs),
            )
            for p in plans
        ]
        self._only = self.program.unnamed if stream is None else stream
        self._readers: dict[str, list[QueryRun]] = {}
        for query in self.queries:
            for stream in query.plan.streams:
                self._readers.setdefault(stream, []).append(query)
        self._everything = [query for query in self.queries if query.reads_all]
        self._reports: list[Report] = []
        self._entailed: Callable[[Triple], Iterable[Triple]] | None = None
        self._schema_version = -1
        self._read_schema()
        options = {"policy": policy, "explain": explain, "limits": limits, "render": render, "changes": changes}
        self._steps = list(self._steps_of(options, render or seconds))
        self._rules = [step for step in self._steps if isinstance(step, Engine)]
        self._facts = [step for step in self._steps if isinstance(step, FactRun)]
        self._plain = not self._rules and not self._facts
        self._numbers = {query.plan.name: number for number, query in enumerate(self.queries)}
        self._shapes = [q.shape for q in self.queries]
        self._offsets: dict[int, int] = {}  # where the shapes of a step begin
        for number, step in enumerate(self._steps):
            if not isinstance(step, QueryRun):
                self._offsets[number] = len(self._shapes)
                self._shapes += step._shapes if isinstance(step, Engine) else [step.shape]
        self._next: int | None = None
        self._next_known = False

    def _steps_of(self, options: dict[str, Any], render: Callable[[int], int | str]) -> Iterator[Step]:
        """What an instant passes, in order (``etalis_compiler.rsp.network``)."""
        try:
            stages = self.program.stages(self._entailed)
        except Circle as circle:
            raise ValueError(
                f"{circle}, through what the background says of their vocabulary: let one of them make other "
                'predicates, or load the background with entailment="rdf"'
            ) from None
        queries = {query.plan.name: query for query in self.queries}
        facts = {fact.name: fact for fact in self.program.facts}
        for stage in stages:
            if stage.kind == "rules":
                yield Engine(self.program.rules_of(stage.names), background=self.knowledge, **options)
            for name in stage.names if stage.kind != "rules" else ():
                yield queries[name] if name in queries else FactRun(facts[name], render)

    @property
    def outputs(self) -> tuple[ir.Output, ...]:
        """The queries that report."""
        return tuple(shape.output for shape in self._shapes)

    def count(self) -> WindowCounters:
        """The counters, with what is kept now."""
        kept: list[QueryRun | FactRun] = [*self.queries, *self._facts]
        self.counters.items = sum(query.remembered() for query in kept) + len(self._buffer)
        self.counters.goals = sum(engine.count().goals for engine in self._rules)
        return self.counters

    def _check_graphs(self) -> None:
        """FROM and FROM NAMED must name graphs that are there, or a query would silently find nothing."""
        fault = unreadable(self.program.plans, self.graphs)
        if fault:
            raise MissingGraph(fault)
        there = {*self.knowledge.names(), *self.graphs}
        for plan in self.program.plans:
            for name in (*plan.graphs, *plan.named):
                if name not in there:
                    known = ", ".join(sorted(filter(None, there))) or "none"
                    raise MissingGraph(
                        f"the query {plan.name} asks for the graph {name}, which is not loaded (loaded: {known}); give "
                        "it with named={…} or graphs={…}; on the command line FROM <file> names a file beside the query"
                    )

    # --- events ---

    def push(self, event: Event) -> Matches:
        """Take one event; returns what the evaluation times that have passed answer."""
        return self._pushed((event,))

    def push_all(self, events: Iterable[Event]) -> Matches:
        """Take events in order; returns what the evaluation times that have passed answer."""
        with few_collections(events):
            return self._pushed(events)

    def _pushed(self, events: Iterable[Event]) -> Matches:
        self._begin()
        if self.lateness:
            events = self._ordered(events)
        now, readers, only, instant, first = self._now, self._readers, self._only, self._instant, self._first
        plain = self._plain
        count = 0
        for event in events:
            end = event[1]
            count += 1
            if event[0] > end:
                self._now, self._first = now, first
                raise ValueError(f"an event starts at {event[0]} and ends before, at {end}: swap the two")
            if end > now:
                if self._done == NEVER:
                    self._done = end - 1  # the queries are registered when the first event comes
                elif not plain or not self._next_known or (self._next is not None and self._next < end):
                    self._now = now
                    self._pass(end - 1)
                else:
                    self._done = end - 1  # nothing is due
                now, first = end, event
                instant.clear()
            elif end < now or end <= self._done:
                self._refuse(event)
                continue
            elif event == first or event in instant:
                continue  # the stream is a set of occurrences
            else:
                instant.add(event)
            if not event[3] and only:
                event = event._replace(stream=only)
            if not plain:
                self._offer(event)
            self._route(event, readers)
        self._now, self._first = now, first
        self.counters.events += count
        return self._matches()

    def _route(self, event: Event, readers: dict[str, list[QueryRun]]) -> None:
        reading = readers.get(event[3], self._everything)
        if not reading:
            if self._plain:
                self.counters.unrouted += 1
            return
        event = self._with_entailed(event)
        taken = 0
        for query in reading:
            taken += query.push(event)
            if not query.due_known:
                self._next_known = False
        if not taken:
            self.counters.outside += 1

    def _with_entailed(self, event: Event) -> Event:
        if self._entailed is None:
            return event
        return event._replace(triples=tuple(dict.fromkeys(self._closed(event.triples))))

    def _closed(self, triples: Iterable[Triple]) -> Iterable[Triple]:
        assert self._entailed is not None
        for triple in triples:
            yield triple
            yield from self._entailed(triple)

    def advance(self, t: int) -> Matches:
        """Time has reached ``t``: every instant up to and including it is over."""
        self._begin()
        if self.lateness:
            self._release(t)
        if self._done == NEVER:
            self._done = t
        self._pass(t)
        self._now = max(self._now, t)
        self._first = None
        self._instant.clear()
        return self._matches()

    def close(self) -> Matches:
        """The stream has ended: every window that holds something still reports, at its own time."""
        self._begin()
        if self.lateness:
            self._release(2**63 - 1)
        if self._done != NEVER:
            self._pass(self._now)
            while True:
                last = max((h for q in self.queries if (h := q.horizon()) is not None), default=None)
                due = self._next_time()
                if last is None or due is None or due > last:
                    break
                self._evaluate(due)
        for number, step in enumerate(self._steps):
            if isinstance(step, Engine):
                self._take(number, step.close())
        self.finished = True
        return self._matches()

    def update(self, graph: str = "", add: Iterable[Triple] = (), remove: Iterable[Triple] = ()) -> Any:
        """Change the background; the new version holds for the evaluations that have not happened yet."""
        if not self._has_background:
            raise ValueError("this engine has no background to change: make it with WindowEngine(…, background=[])")
        if len(self._rules) > 1:
            raise ValueError(
                "the background of this program cannot change while it runs: its rules run in several stages, because "
                "windows feed some of them; run what feeds the windows and what they feed as two programs"
            )
        changed = self._rules[0] if self._rules else self.knowledge  # rules have more to renew
        change = changed.update(graph_name(graph), add, remove)
        self._read_schema()
        return change

    def _read_schema(self) -> None:
        """What a streamed triple entails from now on; what is in a window stays as it came."""
        knowledge = self.knowledge
        if knowledge.entailment != "rdf" and knowledge.schema_version != self._schema_version:
            self._schema_version = knowledge.schema_version
            self._entailed = knowledge.schema.entailed if len(knowledge.default) else None

    def _begin(self) -> None:
        if self.finished:
            raise ValueError("this engine is closed; make a new one for another stream")

    def _refuse(self, event: Event) -> None:
        self.counters.late += 1
        self.dead_letters.append(event)

    def _ordered(self, events: Iterable[Event]) -> list[Event]:
        """Events whose time has come, in order; the others wait in the buffer."""
        ready: list[Event] = []
        for event in events:
            if event.end <= self._done or event.end < self._now:
                ready.append(event)
                continue
            self._arrivals += 1
            heapq.heappush(self._buffer, (event.end, self._arrivals, event))
            self._newest = max(self._newest, event.end)
            while self._buffer and self._buffer[0][0] < self._newest - self.lateness:
                ready.append(heapq.heappop(self._buffer)[2])
        return ready

    def _release(self, t: int) -> None:
        """What the buffer holds up to ``t``."""
        ready = []
        while self._buffer and self._buffer[0][0] <= t:
            ready.append(heapq.heappop(self._buffer)[2])
        lateness, self.lateness = self.lateness, 0
        reports = self._reports
        self._reports = []
        found = self._pushed(ready)
        self._reports = [*reports, *found.reports]
        self.counters.matches -= len(found)
        self.lateness = lateness

    # --- time ---

    def _pass(self, t: int) -> None:
        """All evaluation times up to and including ``t``."""
        if not self._plain and self._now <= t:
            self._evaluate(self._now)
        due = self._next_time()
        while due is not None and due <= t:
            self._evaluate(due)
            due = self._next_time()
        self._done = max(self._done, t)

    @property
    def closed_at(self) -> int:
        """Every evaluation up to here has happened."""
        return self._done

    def next_time(self) -> int | None:
        """The next time at which a query may have to be evaluated, as far as is known now."""
        return self._next_time()

    def _next_time(self) -> int | None:
        if not self._next_known:
            found = [t for q in self.queries if (t := q.next_time(self._done)) is not None]
            self._next = min(found, default=None)
            self._next_known = True
        return self._next

    def _evaluate(self, t: int) -> None:
        """Everything that happens at t."""
        self._step(t)
        self._done = max(self._done, t)
        self._next_known = False

    def _step(self, t: int) -> None:
        """The instant t passes the queries in order; what one makes the later ones see."""
        for place, step in enumerate(self._steps):
            if isinstance(step, Engine):
                self._take(place, step.advance(t))
                continue
            if isinstance(step, FactRun):
                rows = step.advance(t)
                if rows:
                    self._reports.append((self._offsets[place], t, rows))
                for event in step.events(rows):
                    self._feed(event, place)
                continue
            query, number = step, self._numbers[step.plan.name]
            if query.next_time(self._done) != t:
                continue
            self._read_graphs(query, t)
            for answer in query.evaluate(t, repeating=self.repeating):
                self.counters.evaluations += 1
                if len(answer.rows) > self.limits.matches:
                    raise LimitExceeded(
                        f"the query {query.plan.name} answers with {len(answer.rows)} rows at once, the limit is "
                        f"{self.limits.matches}; make it more selective, or raise Limits(matches=…)"
                    )
                if self.listen is not None:
                    report: list[Report] = [(number, t, answer.rows)] if answer.rows else []
                    self.listen(Answer(query.plan.name, t, answer.opening, Matches(self._shapes, report)))
                if answer.rows:
                    self._reports.append((number, t, answer.rows))
                if answer.derived:
                    self._feed(Event(t, t, answer.derived, query.plan.feeds), place)

    def _feed(self, event: Event, place: int) -> None:
        """What a query makes, for those that come after it."""
        if not self._plain:
            self._offer(event, place)
        if event.stream in self._readers or self._everything:
            self._route(event, self._readers)

    def _offer(self, event: Event, after: int = -1) -> None:
        """An event for the rules and facts that come after a query."""
        for place, step in enumerate(self._steps):
            if place <= after:
                continue
            if isinstance(step, Engine):
                self._take(place, step.push(event))
            elif isinstance(step, FactRun):
                step.push(self._with_entailed(event))

    def _take(self, place: int, found: Matches) -> None:
        """What EP-SPARQL queries found; what they construct the queries after them see."""
        for number, t, rows in found.reports:
            shape = found.shapes[number]
            self._reports.append((self._offsets[place] + number, t, rows))
            if shape.output.form != "construct" or shape.triples is None or place == len(self._steps) - 1:
                continue
            for row in rows:
                triples = shape.triples(row)
                if triples and row[0] >= self._now:
                    self._feed(Event(row[1], row[0], triples, shape.output.stream), place)

    def _read_graphs(self, query: QueryRun, t: int) -> None:
        """Time-varying graphs as they are at t, or at the last time that RESCAN allowed to look."""
        rescan = dict(query.plan.rescan)
        for name, loader in self.graphs.items():
            read = self._read_at.get(name)
            if read is not None and t < read + max(rescan.get(name, 0), 1):
                continue
            new, old = set(loader(t)), self._loaded.get(name, set())
            if new != old:
                self.knowledge.update(name, new - old, old - new)
                self._read_schema()
            self._loaded[name] = new
            self._read_at[name] = t

    def _matches(self) -> Matches:
        # A query may be evaluated several times at one time; equal rows of these are told apart by their ordinals.
        together: dict[tuple[int, int], list[Row]] = {}
        for number, t, rows in self._reports:
            together.setdefault((number, t), []).extend(rows)
        self._reports = []
        made = Matches(self._shapes, [(number, t, rows) for (number, t), rows in together.items()])
        self.counters.matches += len(made)
        return made

    # --- state ---

    def snapshot(self) -> bytes:
        """Everything the engine remembers, as MessagePack: versioned, and readable elsewhere."""
        buffer = [[end, arrival, list(event)] for end, arrival, event in self._buffer]
        rules = [engine.snapshot() for engine in self._rules]
        facts = {run.fact.name: run.snapshot() for run in self._facts}
        clock = [self._now, self._done, self._newest, self._arrivals]
        counters = [getattr(self.counters, name) for name in WindowCounters.__slots__]
        queries = {q.plan.name: q.snapshot() for q in self.queries}
        instant = sorted(list(event) for event in self._instant)
        first = None if self._first is None else list(self._first)
        read = dict(self._read_at)
        loaded = {name: sorted(map(list, triples)) for name, triples in self._loaded.items()}
        body = [clock, counters, queries, first, instant, buffer, rules, facts, read, loaded]
        return MAGIC + msgspec.msgpack.encode(body)

    def restore(self, data: bytes) -> None:
        """Go on from a snapshot that an engine with the same program made."""
        if data[: len(MAGIC)] != MAGIC:
            raise SnapshotError("these bytes are no snapshot of windows in this version; start without it, or replay")
        try:
            body = msgspec.msgpack.decode(data[len(MAGIC) :])
        except msgspec.DecodeError as fault:
            raise SnapshotError(f"the snapshot is damaged ({fault}); start without it, or replay") from fault
        clock, counters, queries, first, instant, buffer, rules, facts, self._read_at, loaded = body
        names = {q.plan.name for q in self.queries} | {run.fact.name for run in self._facts}
        if {*queries, *facts} != names or len(rules) != len(self._rules):
            raise SnapshotError(
                f"the snapshot holds the queries {', '.join(sorted([*queries, *facts]))}, this engine "
                f"{', '.join(sorted(names))}: restore it into an engine with the same program"
            )
        self._now, self._done, self._newest, self._arrivals = clock
        for name, value in zip(WindowCounters.__slots__, counters, strict=True):
            setattr(self.counters, name, value)
        for query in self.queries:
            query.restore(queries[query.plan.name])
        self._instant = set(map(item_of, instant))
        self._first = None if first is None else item_of(first)
        self._buffer = [(end, arrival, item_of(event)) for end, arrival, event in buffer]
        self._loaded = {name: {tuple(t) for t in triples} for name, triples in loaded.items()}
        for engine, state in zip(self._rules, rules, strict=True):
            engine.restore(state)
        for run in self._facts:
            run.restore(facts[run.fact.name])
        self._next_known = False


def _reporting(plan: Any, report: Mapping[str, Any]) -> Any:
    chosen = report.get(plan.name, report.get(""))
    if chosen is None:
        return plan
    known = {w.name for w in plan.windows}
    for strategy in chosen:
        if strategy.window and strategy.window not in known:
            raise ValueError(
                f"the report policy of {plan.name} looks at the window {strategy.window}; it has {', '.join(known)}"
            )
    return replace(plan, report=tuple(chosen))
