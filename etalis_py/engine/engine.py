"""The embedded engine: events in, matches out.

Events of one end form an instant, which closes when time moves on.  Everything is decided at instant close, so the
order in which simultaneous events arrive does not matter.  What comes after its instant has closed is late: within the
allowed lateness a buffer puts it in order, beyond it it goes to the dead letters and is counted.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from etalis_compiler.knowledge import KnowledgeSummary
from etalis_compiler.pipeline import Compilation, rules_of
from etalis_compiler.stratify import late_nodes
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.engine.background import compiler_summary
from etalis_py.engine.backward import BackgroundSource, HistorySource, prepare
from etalis_py.engine.blocks import Code
from etalis_py.engine.codegen import Generated, generate, operand_functions
from etalis_py.engine.dataset import choose
from etalis_py.engine.describe import describer
from etalis_py.engine.explanation import explainer
from etalis_py.engine.garbage import few_collections
from etalis_py.engine.layout import layouts
from etalis_py.engine.live import LivePrograms
from etalis_py.engine.matches import Matches, Report, Row, Shape, template_triples
from etalis_py.engine.owl_streams import HIDDEN, needed, owl_queries
from etalis_py.engine.running import Running
from etalis_py.engine.runtime import Context, LimitExceeded, Limits, Runtime, fresh_nodes_of, making
from etalis_py.engine.snapshots import forget_journal, read_journal, read_snapshot, write_journal, write_snapshot
from etalis_py.engine.state import State
from etalis_py.engine.time import TIMELESS_END, TIMELESS_START
from etalis_py.events import Event
from etalis_py.knowledge import Knowledge, load

NEVER = -(2**63)
NOTHING = Knowledge({}, "rdf")
FOREVER = 2**63 - 1


@dataclass(slots=True)
class Counters:
    """What an engine has done.  ``goals`` is what it remembers now.

    ``inconsistent`` counts how often an answer-set program had no answer set, ``ignored`` the events that are outside
    what such a program allows for.
    """

    events: int = 0
    triples: int = 0
    late: int = 0
    matches: int = 0
    pruned: int = 0
    instants: int = 0
    goals: int = 0
    inconsistent: int = 0
    ignored: int = 0
    per_rule: dict[str, int] = field(default_factory=dict)


class Engine:
    """Evaluates programs over a stream of events.

    >>> from etalis_py import Engine, compile, event
    >>> engine = Engine(compile("SELECT ?c WHERE { ?c :p ?x } SEQ { ?c :q ?y }"))
    >>> len(engine.push(event("<urn:c> <http://example.org/p> 1", 1)))
    0
    >>> engine.push(event("<urn:c> <http://example.org/q> 2", 2)); engine.close()
    []
    [<q1 [1, 2] ?c=<urn:c>>]
    """

    def __init__(
        self,
        program: Any = None,
        *,
        background: Any = None,
        policy: str | None = None,
        entailment: str = "rdfs",
        explain: bool = False,
        journal: bool = False,
        lateness: int = 0,
        eager: bool = False,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        render: Callable[[int], int | str] | None = None,
        sweep_every: int = 8192,
        changes: bool = False,
        named: Any = None,
    ) -> None:
        self.knowledge = knowledge_of(background, entailment, named)
        self.policy = policy
        self.explain = explain
        self.journaling = journal
        self.lateness = lateness
        self.eager = eager
        self.limits = limits
        self.changes = changes
        self.render = render or seconds
        self.sweep_every = sweep_every
        self.counters = Counters()
        self.answer_sets = LivePrograms(self.knowledge, self.counters)
        self.dead_letters: list[Event] = []
        self.programs: dict[str, tuple[Compilation, str]] = {}
        self.state = State(explain)
        self.closed_at = NEVER
        self.finished = False
        self._now = NEVER
        self.updates: list[tuple[int, str, list[Any], list[Any]]] = []  # of the background, for the next journal
        self._pending: list[tuple[str, str, str, int, str]] = []
        self._buffer: list[tuple[int, int, Event]] = []
        self._arrivals = 0
        self._since_sweep = 0
        self._since_count = 0
        self._live = 0
        self._started = False
        self._answered: set[str] = set()
        self._made: dict[str, Any] = {}  # as in Making, for what is derived from the background alone
        self._rules = ir.Rules((), (), ())
        self._names: dict[str, str] = {}
        if program is not None:
            self.add(program)
        else:
            self._load()

    # --- programs ---

    def add(self, program: Any, *, policy: str | None = None, name: str | None = None) -> str:
        """Add a program while the engine runs; returns the id by which ``remove`` knows it."""
        compilation = getattr(program, "compilation", program)
        identifier = name or f"program{len(self.programs) + 1}"
        while name is None and identifier in self.programs:
            identifier += "'"
        if identifier in self.programs:
            raise ValueError(f"there is a program named {identifier} already; remove it first or choose another name")
        taken = {q.name for c, _ in self.programs.values() for q in c.queries}
        clash = sorted(taken & {q.name for q in compilation.queries})
        if clash:
            raise ValueError(f"queries named {', '.join(clash)} are running already; rename them or REGISTER a name")
        knowledge = choose(self.knowledge, compilation, [c for c, _ in self.programs.values()], self.changes)
        if knowledge is not self.knowledge:
            self.knowledge = knowledge
            self.answer_sets = LivePrograms(knowledge, self.counters)
        self.programs[identifier] = (
            compilation,
            policy or self.policy or getattr(program, "policy", "") or "unrestricted",
        )
        try:
            self._load()
        except Exception:
            del self.programs[identifier]
            self._load()
            raise
        return identifier

    def remove(self, identifier: str) -> None:
        """Stop a program: its goals go, those it shares with others stay."""
        if identifier not in self.programs:
            known = ", ".join(self.programs) or "none"
            raise KeyError(f"no program {identifier}; running: {known}")
        del self.programs[identifier]
        self._load()

    @property
    def rules(self) -> ir.Rules:
        """The rules that are loaded."""
        return self._rules

    @property
    def outputs(self) -> tuple[ir.Output, ...]:
        """The queries that report, without the rules that the schema of the background adds."""
        return tuple(output for output in self._rules.outputs if not output.query.startswith(HIDDEN))

    @property
    def source(self) -> str:
        """The generated Python."""
        return self._generated.source

    def _load(self) -> None:
        """Make rules of all programs and write their code; state of nodes that stay is kept."""
        summary = self._summary()
        self._rules = self._compiled(summary)
        while self._timeless_rules():
            summary = self._summary()
            self._rules = self._compiled(summary)
        state, rules = self.state, self._rules
        state.nodes = dict(rules.nodes)
        state.layouts = layouts(state.nodes)
        state.late = late_nodes(state.nodes)
        state.background = BackgroundSource(self.knowledge if self.knowledge is not None else NOTHING)
        _drop(state, frozenset(state.nodes) | {"out:" + o.query for o in rules.outputs})
        code = Code(dict(rules.nodes), state.layouts, state, explain=self.explain, journal=self.journaling)
        schema = getattr(self.knowledge, "schema", None)
        entailed = None if schema is None else lambda triple: (triple, *schema.entailed(triple))
        self._runtime = Runtime(
            rules,
            state,
            self.limits,
            lambda node: operand_functions(node, code),
            entailed,
            self.journaling,
            lambda node: Running(node, code.names, code.layouts[node.child.node]),
        )
        self._generated: Generated = self.answer_sets.attached(generate(rules, code, self._runtime))
        self._shapes = [self._shape(i, output) for i, output in enumerate(rules.outputs)]
        self._asks = any(output.form == "ask" for output in rules.outputs)
        self._hidden = {i for i, output in enumerate(rules.outputs) if output.query.startswith(HIDDEN)}

    def _compiled(self, summary: KnowledgeSummary) -> ir.Rules:
        queries = []
        for compilation, policy in self.programs.values():
            for query in compilation.queries:
                chosen = query.syntax.policy or policy
                queries.append(replace(query, syntax=replace(query.syntax, policy=chosen)))
        derived = owl_queries(self.knowledge) if queries else ()
        if derived:
            kept = needed(rules_of(Compilation((*queries, *derived)), summary))
            queries += [query for query in derived if query.name in kept]
        return rules_of(Compilation(tuple(queries)), summary)

    def _summary(self) -> KnowledgeSummary:
        if self.knowledge is None:
            return KnowledgeSummary()
        return compiler_summary(self.knowledge, self.changes)

    def _timeless_rules(self) -> bool:
        """CONSTRUCTs over the background alone add to the background before the stream starts."""
        derived = False
        for output in self._rules.outputs:
            if output.form != "construct" or output.timeless is None or self._started:
                continue
            if output.query.startswith(HIDDEN):  # the closure of the background has its conclusions
                continue
            if self.knowledge is None:
                self.knowledge = knowledge_of([], "rdfs")
            derived |= self._derive_timeless(output)
        return derived

    def _derive_timeless(self, output: ir.Output) -> bool:
        assert output.timeless is not None
        prepared = prepare(output.timeless)
        names = tuple(sorted(alg.scope(output.timeless)))
        new = making(output, names, self._made)
        make = template_triples(
            output, names, None if new is None else lambda row: dict(zip(new.labels, new.fresh(row), strict=True))
        )
        grew = False
        derived = 0
        for _ in range(self.limits.rounds):
            source = BackgroundSource(self.knowledge)
            rows = [
                (TIMELESS_END, TIMELESS_START, *(mu.get(n, "") for n in names))
                for mu, _, _ in prepared.solve({}, source, None)
            ]
            applied = rows if new is None else new.applied(rows)
            triples = {t for row in applied for t in make(row)}
            missing = [t for t in triples if not self.knowledge.default.contains(*t)]
            if not missing:
                return grew
            self.knowledge.update("", missing, ())
            grew = True
            derived += len(missing)
            if derived > self.limits.derivations:
                break
        raise LimitExceeded(
            f"query {output.query} derived {derived} triples from the background and has not come to an end; make it "
            "derive finitely many triples, or raise Limits(rounds=…, derivations=…)"
        )

    # --- shapes ---

    def _shape(self, number: int, output: ir.Output) -> Shape:
        columns = () if output.source is None else output.source.columns
        if output.source is None and output.timeless is not None:
            columns = tuple(sorted(output.variables))
        shown = tuple(sorted(output.variables))
        places = tuple(2 + columns.index(v) if v in columns else 0 for v in shown)
        triples = None
        if output.form == "construct":
            triples = template_triples(output, columns, self._fresh(output, columns))
        elif output.form == "describe":
            triples = describer(output, columns, self)
        explain = explainer(self._rules, output, self.render) if self.explain else None
        return Shape(output, shown, places, self.render, triples, explain)

    def _fresh(self, output: ir.Output, columns: tuple[str, ...]) -> Callable[[Row], dict[str, str]] | None:
        made = fresh_nodes_of(output, columns)
        if made is None:
            return None
        labels, function = made
        return lambda row: dict(zip(labels, function(row), strict=True))

    # --- events ---

    def push(self, event: Event) -> Matches:
        """Take one event; returns the matches of the instants that it closed."""
        self._begin()
        self._feed(self._ordered((event,)) if self.lateness else (event,))
        return self._matches()

    def push_all(self, events: Iterable[Event]) -> Matches:
        """Take events in order; returns the matches of the instants that they closed."""
        self._begin()
        with few_collections(events):
            self._feed(self._ordered(events) if self.lateness else events)
        return self._matches()

    def _feed(self, events: Iterable[Event]) -> None:
        """Events in order of their ends, into the generated functions: one call for each instant.

        The loop is the price of every event, so an instant of one event is handed over without being collected.
        """
        now, pending = self._now, self._pending
        get, other, instant = self._generated.single.get, self._generated.other, self._generated.instant
        eager = self.eager
        count = instants = 0
        error: ValueError | None = None
        begun, held, source = 0, (), ""  # the first event of the instant, while it is the only one
        for start, end, triples, stream, graph in events:
            if end > now and start <= end:
                if held:
                    if len(held) == 1:
                        s, p, o = held[0]
                        get(p, other)(s, o, begun, now, source, p)
                    else:
                        instant(now, [(s, p, o, begun, source) for s, p, o in held])
                    instants += 1
                elif pending:
                    instant(now, pending)
                    instants += 1
                    pending = []
                now, begun, held, source = end, start, triples, stream
                count += 1
                if count >= self.sweep_every:
                    self._keep_house(count, now)
                    count = 0
            elif end == now and end > self.closed_at and start <= end:
                pending.extend((s, p, o, begun, source) for s, p, o in held)
                pending.extend((s, p, o, start, stream) for s, p, o in triples)
                held = ()
                count += 1
            else:
                error = self._refuse(Event(start, end, triples, stream, graph)) or error
            if eager:
                pending.extend((s, p, o, begun, source) for s, p, o in held)
                held = ()
                if pending:
                    instant(now, pending)
                    pending = []
        pending.extend((s, p, o, begun, source) for s, p, o in held)
        self._now, self._pending = now, pending
        self.counters.instants += instants
        self._keep_house(count, now)
        if error is not None:
            raise error

    def advance(self, t: int) -> Matches:
        """Time has reached ``t``: every instant up to and including it is over."""
        self._begin()
        if self.lateness:
            self._release(t)
        if self._now <= t:
            self._close_instant()
            self._now = max(self._now, t)
        self.closed_at = max(self.closed_at, t)
        return self._matches()

    def close(self) -> Matches:
        """The stream has ended: the last instant closes, and what is only known at the end is reported."""
        self._begin()
        if not self.finished:
            if self.lateness:
                self._release(FOREVER)
            self._close_instant()
            self.finished = True
            self._at_end()
        return self._matches()

    def update(self, graph: str = "", add: Iterable[Any] = (), remove: Iterable[Any] = ()) -> Any:
        """Change the background; the open instant is over, and the new version holds from the next one on."""
        if self.knowledge is None:
            raise ValueError("this engine has no background to change: make it with Engine(…, background=[])")
        if self._pending:
            self._close_instant()
            self.closed_at = max(self.closed_at, self._now)
        return self.learn(graph, list(add), list(remove))

    def learn(self, graph: str, add: list[Any], remove: list[Any]) -> Any:
        """Take an update over into the knowledge, the programs and, where it changes them, the rules."""
        before = self.knowledge.schema_version
        known = frozenset(self._summary().predicates or ())
        change = self.knowledge.update(graph, add, remove)
        if self.journaling:
            self.updates.append((change.version, graph, add, remove))
        self.answer_sets.renew()
        if self.knowledge.schema_version != before or not frozenset(self._summary().predicates or ()) <= known:
            self._load()
        return change

    def _begin(self) -> None:
        if self.finished:
            raise ValueError("this engine is closed; make a new one for another stream")
        if not self._started:
            self._started = True
            for number, output in enumerate(self._rules.outputs):
                if output.source is None:
                    self._report_timeless(number, output)

    def _close_instant(self) -> None:
        if self._pending:
            self._generated.instant(self._now, self._pending)
            self._pending = []
            self.counters.instants += 1

    def _refuse(self, event: Event) -> ValueError | None:
        """Put a late event aside; the error for one that is none, to be raised when the others have been taken."""
        if event.start > event.end:
            return ValueError(f"an event starts at {event.start} and ends before, at {event.end}: swap the two")
        self.counters.late += 1
        self.dead_letters.append(event)
        return None

    def _ordered(self, events: Iterable[Event]) -> list[Event]:
        """Events whose time has come, in order; the others wait in the buffer."""
        ready: list[Event] = []
        for event in events:
            if event.end <= self.closed_at or event.end < self._now:
                ready.append(event)
                continue
            self._arrivals += 1
            heapq.heappush(self._buffer, (event.end, self._arrivals, event))
            newest = max(self._newest, event.end)
            self._newest = newest
            while self._buffer and self._buffer[0][0] < newest - self.lateness:
                ready.append(heapq.heappop(self._buffer)[2])
        return ready

    _newest = NEVER

    def _release(self, t: int) -> None:
        """What the buffer holds up to ``t``."""
        ready = []
        while self._buffer and self._buffer[0][0] <= t:
            ready.append(heapq.heappop(self._buffer)[2])
        self._feed(ready)

    def _keep_house(self, events: int, now: int) -> None:
        """Count, sweep expired goals, look at the limits; now and then, not for every event."""
        self.counters.events += events
        self._since_sweep += events
        if self._since_sweep < self.sweep_every:
            return
        self._since_sweep = 0
        # A sweep costs as much as there are buckets, so it is done after as many events.
        waiting = 0
        for store in self.state.stores.values():
            waiting += len(store.buckets)
            store.waited += self.sweep_every
            if store.longest is not None and 2 * store.waited >= len(store.buckets):
                self.counters.pruned += store.sweep(now)
                store.waited = 0
        for closure in self.state.closures.values():
            self.counters.pruned += closure.sweep(now)
        self._since_count += self.sweep_every
        if 2 * self._since_count >= max(self._live, waiting):
            self._since_count = 0
            self._live = self.state.live()
            if self._live > self.limits.goals:
                raise LimitExceeded(
                    f"{self._live} goals are open, the limit is {self.limits.goals}; bound the patterns with WITHIN, "
                    "use a consuming policy, or raise Limits(goals=…)"
                )

    # --- reports ---

    def _matches(self) -> Matches:
        reports = self._runtime.reports
        if self._asks:
            reports[:] = [report for report in map(self._asked, reports) if report is not None]
        if self._hidden:
            reports[:] = [report for report in reports if report[0] not in self._hidden]
        made = Matches(self._shapes, reports[:])
        if len(made) > self.limits.matches:
            self._too_many_matches(made.reports)
        reports.clear()
        self.counters.matches += len(made)
        return made

    def _too_many_matches(self, reports: Iterable[Report]) -> None:
        """Fail if some instant alone has more matches than the limit."""
        rows: dict[int, int] = {}
        for _, t, found in reports:
            rows[t] = rows.get(t, 0) + len(found)
        t, most = max(rows.items(), key=lambda item: item[1])
        if most > self.limits.matches:
            raise LimitExceeded(
                f"{most} matches in the instant {self.render(t)}, the limit is {self.limits.matches}; narrow the query "
                "with a FILTER, WITHIN or a join variable, use a consuming policy, or raise Limits(matches=…)"
            )

    def _asked(self, report: Report) -> Report | None:
        """The first answer of an ASK; what comes after it is not reported."""
        number, t, rows = report
        output = self._rules.outputs[number]
        if output.form != "ask":
            return report
        if output.query in self._answered:
            return None
        self._answered.add(output.query)
        row = rows[0]
        return number, t, [row if row[2:] == ("false",) else (row[0], row[1], "true")]

    def _at_end(self) -> None:
        for number, output in enumerate(self._rules.outputs):
            if output.source is not None:
                node = self.state.nodes[output.source.node]
                if isinstance(node, ir.Group):
                    group = self.state.groups.get(output.source.node)
                    rows = [] if group is None else group.at_end(False)
                    if rows:
                        self._runtime.reports.append((number, self._now, rows))
            if output.late is not None or (output.source is not None and output.timeless is not None):
                self._report_timeless(number, output)
            if output.form == "ask" and output.query not in self._answered:
                row = (TIMELESS_END, TIMELESS_START, "false")
                self._runtime.reports.append((number, self._now, [row]))

    def _table(self, pattern: alg.Pattern) -> alg.Pattern:
        """The background's solutions of a pattern, as a table."""
        names = tuple(sorted(alg.scope(pattern)))
        found = prepare(pattern).solve({}, self.state.background, None, Context(max(self._now, 0)))
        return alg.Table(names, tuple(tuple(mu.get(n, "") for n in names) for mu, _, _ in found))

    def _report_timeless(self, number: int, output: ir.Output) -> None:
        """What the background alone answers."""
        columns = self._shapes[number].variables
        if output.source is not None:
            columns = output.source.columns
        rows: list[Row] = []
        context = Context(max(self._now, 0))
        if output.timeless is not None:
            found = prepare(output.timeless).solve({}, self.state.background, None, context)
            rows += [(e, s, *(mu.get(n, "") for n in columns)) for mu, s, e in found]
        if output.late is not None:
            pattern = alg.with_known(output.late, self._table)
            history = HistorySource(self.state.background, self.state.history)
            decided = prepare(pattern, timed=True).solve({}, history, None, context)  # type: ignore[arg-type]
            rows += [(e, s, *(mu.get(n, "") for n in columns)) for mu, s, e in decided if e == TIMELESS_END]
        if output.form == "ask":
            if not rows and output.source is not None:
                return
            rows = [(TIMELESS_END, TIMELESS_START, "true" if rows else "false")]
        elif output.source is not None:
            arrange = self._runtime.arrangement(number)
            rows = arrange(self._now, rows) if arrange else sorted(rows, key=self._runtime.sort_key(number))
        new = making(output, columns, self._made) if self._made else None
        if new is not None:
            rows = new.applied(rows)
        if rows:
            self._runtime.reports.append((number, self._now, rows))

    # --- state ---

    def snapshot(self) -> bytes:
        """Everything the engine remembers, as bytes: versioned, and readable by any MessagePack reader."""
        return write_snapshot(self)

    def restore(self, data: bytes) -> None:
        """Go on from a snapshot that an engine with the same programs made."""
        read_snapshot(self, data)

    def take_journal(self) -> bytes:
        """What was asserted and retracted since the last call, as bytes; needs ``Engine(…, journal=True)``.

        A snapshot and the journals taken after it, in order, are the whole state.
        """
        return write_journal(self)

    @property
    def journal_entries(self) -> int:
        """How much there is to tell since the last journal."""
        return len(self.state.journal)

    def forget_journal(self) -> None:
        """What was asserted and retracted need not be told: a snapshot is taken instead."""
        forget_journal(self)

    @contextmanager
    def without_journal(self) -> Iterator[None]:
        """What happens inside need not be told: a snapshot is taken after it."""
        kept: Any = self.state.journal
        self.state.journal = self._generated.scope["journal"] = deque(maxlen=0)
        try:
            yield
        finally:
            self.state.journal = self._generated.scope["journal"] = kept

    def apply_journal(self, data: bytes) -> None:
        """Catch up by a journal that another engine with the same programs and state wrote."""
        read_journal(self, data)

    def count(self) -> Counters:
        """The counters, with the goals that are live now, in all and for each rule."""
        per_rule: dict[str, int] = {}
        for (node, _), store in self.state.stores.items():
            per_rule[node] = per_rule.get(node, 0) + store.live()
        for node, group in self.state.groups.items():
            per_rule[node] = group.live()
        self.counters.goals = self.state.live()
        self.counters.per_rule = per_rule
        return self.counters


def seconds(us: int) -> int | str:
    """Microseconds as whole seconds where they are, else as a decimal number of seconds."""
    whole, rest = divmod(us, 1_000_000)
    return whole if not rest else f"{whole}.{rest:06d}".rstrip("0")


def knowledge_of(background: Any, entailment: str, named: Any = None) -> Any:
    """The background as it is given, or loaded from what is given; None where there is none."""
    if named and hasattr(background, "default"):
        raise ValueError("named graphs are loaded with the background: give what load(…, named=…) makes, alone")
    if (background is None and not named) or hasattr(background, "default"):
        return background
    return load(() if background is None else background, entailment=entailment, named=named)


def _drop(state: State, kept: frozenset[str]) -> None:
    """Forget the state of nodes that are gone."""
    state.stores = {key: store for key, store in state.stores.items() if key[0] in kept}
    state.groups = {name: g for name, g in state.groups.items() if name in kept}
    state.closures = {name: c for name, c in state.closures.items() if name in kept}
    state.slices = {name: s for name, s in state.slices.items() if name in kept}
