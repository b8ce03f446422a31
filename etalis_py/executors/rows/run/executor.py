"""The executor of rows: EDBC rules as generated Python functions, one event at a time.

Every feature of the language, at the lowest latency.  Cost of an event: the functions of its instant (``codegen``).
State: goals, groups, closures and histories, by the ids of their rule nodes (``state``), so that it survives when other
rules are loaded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Literal

from etalis_rules import program as ir
from etalis_rules.clock import has_start, is_start
from etalis_rules.durations import seconds
from etalis_rules.lateness import late_nodes
from etalis_rules.operators import event_patterns, inputs, leaves, looks_back
from etalis_rules.roles import Role

from etalis_py.events import Event, Triple
from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.chain_nodes import Chained
from etalis_py.executors.rows.generate.layout import layouts
from etalis_py.executors.rows.generate.plan import GeneratedFunctions, RowPlan
from etalis_py.executors.rows.generate.single_node import NodeFunction, function_of, write_node
from etalis_py.executors.rows.generate.written_plans import first_plan, write
from etalis_py.executors.rows.run import dump
from etalis_py.executors.rows.run.asp_steps import LivePrograms
from etalis_py.executors.rows.run.chain_state import Joins, built_of_joins, chained, written_as_joins
from etalis_py.executors.rows.run.counterparts import counterparts, forget_others, renamed
from etalis_py.executors.rows.run.family_relation import Families, Gathered, Member
from etalis_py.executors.rows.run.housekeeping import Housekeeping
from etalis_py.executors.rows.run.per_query import is_of_family, rows_at_end
from etalis_py.executors.rows.run.rule_subset import PartialRules
from etalis_py.executors.rows.run.runtime import Runtime
from etalis_py.executors.rows.run.state import State
from etalis_py.executors.rows.run.timeless_answers import report_timeless
from etalis_py.kernel.options import Options
from etalis_py.kernel.owl_streams import HIDDEN
from etalis_py.kernel.position import FOREVER, Counters
from etalis_py.kernel.protocol import Batch, Dispatch, Occurrence, Row, StateSize
from etalis_py.kernel.provenance_tree import explainer
from etalis_py.kernel.reports import drop_reports
from etalis_py.kernel.shapes import Shape
from etalis_py.kernel.templates import fresh_nodes_of, template_triples
from etalis_py.knowledge import Knowledge
from etalis_py.knowledge.event_closure import EventClosure
from etalis_py.sparql import BackgroundSource
from etalis_py.sparql.describe import describer
from etalis_py.values.errors import LimitExceeded
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

NOTHING = Knowledge({}, "rdf")
MOST_NODES = 500
"""The code of programs with more nodes than this is not kept for later engines with the same rules."""


class RowExecutor:
    """Runs the rules of a stage; ``load_rules`` gives it rules and knowledge, at first and whenever these change."""

    kind: Literal["rules", "windows"] = "rules"
    form: Literal["rows", "columns"] = "rows"
    reads: Literal["rows", "columns", "records"] = "rows"

    def __init__(self, options: Options, counters: Counters) -> None:
        self.options = options
        self.counters = counters
        self.knowledge: Any = None
        self.state = State(options.explain)
        self.rules = ir.Rules((), (), ())
        """The rules as they run, with chains."""
        self.given = self.rules
        self.built = frozenset[str]()
        """The chains that run as the joins for which they stand."""
        self._joins: Joins = {}
        self._loaded: tuple[Any, ...] = ()
        self.plan: RowPlan
        self.families: Families | None = None
        self.shapes: Sequence[Shape] = []
        self.reports: list[Any] = []
        self.derived: list[Event] = []
        self.feeding = False
        self.rows_next = False
        self.answer_sets: LivePrograms | None = None
        self.reads_events = False
        self._reads_triples = True
        self.house = Housekeeping(self.state, options, counters)
        self.since_sweep = 0
        self._aside: Any = None
        self.makers: dict[str, Any] = {}
        self._closure: EventClosure | None = None

    # --- rules ---

    def load_rules(
        self, rules: ir.Rules, knowledge: Any, makers: dict[str, Any], gathered: Gathered | None = None
    ) -> None:
        """Write the code of these rules; the state of nodes that stay is kept.

        ``makers``: for nodes that were derived from the background alone, the rules that led to them (see ``Making``).
        ``gathered``: the families of queries among the rules.
        """
        running = self._with_chains(rules).rules
        names = counterparts(self.rules, running) if self.state.nodes else {}
        kept = renamed(dump.written(self), names) if names else None
        forget_others(self.rules, running, names.values(), self.kept().per_rule, self.counters)
        dump.hand_on_journal(self, names)
        self._run_rules(rules, knowledge, makers, gathered)
        if kept is not None:
            dump.adopt(self, [kept], frozenset(self.state.nodes) - names.keys())
            dump.note_adopted(self, names)

    def _with_chains(self, rules: ir.Rules) -> Chained:
        """The rules as they run: with explanations or a trace the solutions of every join are asked for."""
        return Chained(rules, {}) if self.options.explain or self.options.nodes else chained(rules, self.built)

    def _run_rules(
        self, given: ir.Rules, knowledge: Any, makers: dict[str, Any], gathered: Gathered | None = None
    ) -> None:
        options, state = self.options, self.state
        with_chains = self._with_chains(given)
        rules, joins = with_chains.rules, with_chains.joins
        if knowledge is not self.knowledge or self.answer_sets is None:
            self.answer_sets = LivePrograms(knowledge, self.counters)
        self._loaded = (given, knowledge, makers, gathered)
        self.knowledge, self.given, self.rules, self.makers, self._joins = knowledge, given, rules, makers, joins
        nodes = dict(rules.nodes)
        self.reads_events = bool(event_patterns(nodes.values()))
        self._reads_triples = looks_back(rules) or bool(leaves(nodes.values()))
        laid_out = layouts(nodes)
        dump.drop(state, frozenset(nodes) | {"out:" + o.query for o in rules.outputs})
        relaid = {name for name, layout in state.layouts.items() if laid_out.get(name) != layout}
        operators = dump.take_out_operators(self, relaid)
        state.nodes, state.layouts = nodes, laid_out
        state.background = BackgroundSource(knowledge if knowledge is not None else NOTHING, options.limits.steps)
        self.forget_gone()
        self.families = None if gathered is None else Families(gathered, self.families)
        self.plan = self._written()
        self._closure = None if knowledge is None else knowledge.event_closure()
        self.runtime = Runtime(rules, self.plan, state, self.house, self._closure, options.journal, self.families)
        self.house.describe = self.runtime.describe if len(rules.outputs) > 1 else None
        self.runtime.reports += self.reports
        self.reports = self.runtime.reports
        shapes = [self._shape(output) for output in rules.outputs]
        self.shapes = shapes if self.families is None else self.families.show(shapes)
        self._generated: GeneratedFunctions = self.answer_sets.attached(self.runtime.functions())
        dump.put_back_operators(self, operators)

    def _written(self) -> RowPlan:
        """The plan of the rules; engines that begin with the same rules, such as shards of a stream, share it."""
        options, state = self.options, self.state
        if self.families is not None or state.last or len(state.nodes) > MOST_NODES:
            return write(self.rules, self._code())
        return first_plan(self.rules, options.limits, explain=options.explain, journaled=options.journal)

    def _code(self) -> Code:
        """The input of the code generator: nodes, layouts and settings."""
        options, state = self.options, self.state
        return Code(
            state.nodes,
            state.layouts,
            late_nodes(state.nodes),
            options.limits,
            explain=options.explain,
            journaled=options.journal,
            numbering={key: store.number for key, store in state.stores.items()},
            last=state.last,
            families={} if self.families is None else self.families.is_numeric,
            positions=() if self.families is None else self.families.positions,
        )

    def add_to_family(self, family: str, row: Member) -> None:
        """Run one more query of a family that is running."""
        assert self.families is not None
        self.families.add(family, row, self.state)

    def forget_gone(self) -> None:
        """Drop the goals of queries that are gone."""
        if self.families is not None:
            self.counters.pruned += self.families.purge(self.state)

    def place(self, number: int) -> int:
        """The number that reports of an output have."""
        return number if self.families is None else self.families.positions[number]

    def _places(self, number: int, output: ir.Output) -> Iterable[int]:
        """The numbers of the queries that an output stands for; their reports can be read from now on."""
        if self.families is not None and output.query in self.families.relations:
            return self.families.all_shown(output)
        return (self.place(number),)

    def part(self, rules: ir.Rules) -> PartialRules:
        """Some of the rules, with functions of their own over the same state; no journal is kept of them."""
        state = copy(self.state)
        places = tuple(self.place(self.rules.outputs.index(output)) for output in rules.outputs)
        code = replace(self._code(), nodes=dict(rules.nodes), journaled=False, positions=places)
        plan = write(rules, code)
        runtime = Runtime(rules, plan, state, self.house, self._closure, families=self.families, places=places)
        return PartialRules(rules, runtime, state)

    def function_of_node(self, name: str) -> NodeFunction:
        """The function of a single node, over the same state; no journal is kept of it."""
        plan, state = write_node(name, replace(self._code(), journaled=False)), copy(self.state)
        runtime = Runtime(self.rules, plan, state, self.house, self._closure, families=self.families)
        return function_of(name, runtime)

    @property
    def source(self) -> str:
        """The generated Python."""
        return self.plan.source

    def renew(self) -> None:
        """Repeat the look-ups, as the background has a new version."""
        if self.answer_sets is not None:
            self.answer_sets.renew()

    def _shape(self, output: ir.Output) -> Shape:
        columns = () if output.source is None else output.source.columns
        if output.source is None and not (output.timeless is None and output.late is None):
            columns = tuple(sorted(output.variables))
        shown = tuple(sorted(output.variables))
        places = tuple(2 + columns.index(v) if v in columns else 0 for v in shown)
        triples = None
        if output.form == "construct":
            triples = template_triples(output, columns, _fresh(output, columns))
        elif output.form == "describe":
            triples = describer(output, columns, self)
        render = self.options.render or seconds
        explain = explainer(self.rules, output, render) if self.options.explain else None
        once, hidden = output.form == "ask", output.query.startswith(HIDDEN)
        return Shape(output, shown, places, render, triples, explain, once=once, hidden=hidden)

    # --- time ---

    def begin(self, t: int) -> None:
        self.report_timeless(t, {output.query for output in self.rules.outputs})

    def started(self, t: int | None) -> None:
        for name, node in self.state.nodes.items():
            if is_start(node):
                self.state.beginning(name).at = at = FOREVER if t is None else t - 1
                self.state.alarm[0] = min(self.state.alarm[0], at)

    @property
    def reads_start(self) -> bool:
        """Whether some rule has START."""
        return has_start(self.state.nodes.values())

    def report_timeless(self, t: int, queries: Container[str]) -> None:
        """Report the answers of those among these queries that only the background can answer, whatever comes."""
        for number, output in enumerate(self.rules.outputs):
            if output.source is None and output.late is None and output.query in queries:
                report_timeless(self, number, output, t)

    def take(self, batch: Batch) -> None:
        events = batch.rows
        if self.reads_events:
            self._take_whole(events)
        else:
            self._take_triples(events)
        self._fall_due(batch.through)
        self._keep_house(0, batch.through)
        if self.feeding:
            self.derive()

    def _keep_house(self, events: int, now: int) -> None:
        self.since_sweep += events
        if self.since_sweep >= self.house.every[0]:
            self.keep(self.since_sweep, now)
            self.since_sweep = 0

    def _take_triples(self, rows: Sequence[Event]) -> None:
        """Run instants through rules that read single triples."""
        get, other, instant = self._generated.single.get, self._generated.other, self._generated.instant
        alarm = self.state.alarm
        for end, group in groupby(rows, key=itemgetter(1)):
            events = list(group)
            if alarm[0] < end:
                self._fall_due(end - 1)
            try:
                if len(events) == 1 and len(events[0][2]) == 1:
                    start, _, ((s, p, o),), stream, _ = events[0]
                    get(p, other)(s, o, start, end, stream, p)
                elif found := [(s, p, o, start, stream) for start, _, some, stream, _ in events for s, p, o in some]:
                    instant(end, found)
            except LimitExceeded:
                drop_reports(self.reports, end)
                raise
            self._keep_house(len(events), end)

    def _take_whole(self, events: Sequence[Event]) -> None:
        """Run instants through rules with EVENT: equal events count once, and events without triples do not count."""
        instant, arrived, alarm = self._generated.instant, self.runtime.arrived, self.state.alarm
        sweep_every = self.house.every
        ends = [event[1] for event in events][1:]
        held: list[Any] = []
        for (start, end, triples, stream, graph), following in zip(events, chain(ends, (None,)), strict=False):
            if triples:
                held.append((start, triples, stream, graph))
            if following == end or not held:
                continue
            if len(held) > 1:
                held = list({(e[0], frozenset(e[1]), e[2], e[3]): e for e in held}.values())
            if alarm[0] < end:
                self._fall_due(end - 1)
            arrived += held
            try:
                instant(end, _occurrences(held) if self._reads_triples else ())
            except LimitExceeded:
                drop_reports(self.reports, end)
                raise
            self.since_sweep += len(held)
            if self.since_sweep >= sweep_every[0]:
                self._keep_house(0, end)
            held.clear()

    def derive(self) -> None:
        """Pass the reports of CONSTRUCT rules on to later stages; timeless triples are in the background already."""
        for number, t, rows in self.reports:
            shape = self.shapes[number]
            if shape.output.form != "construct" or shape.triples is None:
                continue
            for row in rows:
                triples = shape.triples(row)
                if triples and row[0] != TIMELESS_END and row[0] >= t:
                    self.derived.append(Event._make((row[1], row[0], triples, shape.output.stream, "")))

    def _fall_due(self, t: int) -> None:
        """Report the deadlines due up to ``t``, each at its own time."""
        due, alarm = self._generated.due, self.state.alarm
        if due is None or alarm[0] > t:
            return
        next_due = self.state.next_due
        while (at := next_due()) is not None and at <= t:
            try:
                due(at)
            except LimitExceeded:
                drop_reports(self.reports, at)
                raise
        alarm[0] = FOREVER if at is None else at

    def next_due(self) -> int | None:
        """The first deadline still to come."""
        return self.state.next_due()

    def horizon(self) -> int | None:
        """The last time at which a deadline may be due; deadlines report even after the end of the stream."""
        return self.state.last_due()

    def close(self, t: int) -> None:
        first = len(self.reports)
        if self._generated.finish is not None:
            self._generated.finish(t)
        for number, output in enumerate(self.rules.outputs):
            if output.source is not None:
                self._report_groups(number, output.source.node, t)
            if output.late is not None or (output.source is not None and output.timeless is not None):
                report_timeless(self, number, output, t)
            if output.form == "ask":  # the kernel drops this "false" if there was an answer before
                no = [(TIMELESS_END, TIMELESS_START, "false")]
                self.reports += [(place, t, no) for place in self._places(number, output)]
        if self.families is not None:  # the outputs of families are the last, but their reports have other numbers
            self.reports[first:] = sorted(self.reports[first:], key=itemgetter(0))

    def _report_groups(self, number: int, name: str, t: int) -> None:
        """Report the rows of an aggregation over a stream without solutions; other nodes have no groups."""
        group = self.state.groups.get(name)
        if group is None:
            return
        node = group.node
        if self.families is None or not is_of_family(node):
            rows = group.at_end(max(t, 0))
            if rows:
                self.reports.append((self.place(number), t, rows))
            return
        output = self.rules.outputs[number]
        relation = self.families.relations[output.query]
        rows = rows_at_end(node, group, relation.rows.values(), max(t, 0))
        if rows:
            parts = self.families.split(output, self.runtime.arrangement_of_family(number))(t, rows)
            self.reports += [(place, t, some) for place, some in parts]

    def dispatch(self) -> Dispatch | None:
        if self.reads_start:
            return None  # START comes before an instant that has to be complete first
        if self.reads_events:
            return None  # the kernel's fast loop gives triples to the functions, but EVENT needs whole events
        generated = self._generated
        due = None if generated.due is None else self._fall_due
        return Dispatch(
            generated.single, generated.other, generated.instant, self.keep, self.house.every, due, self.state.alarm
        )

    def keep(self, events: int, now: int) -> None:
        """Drop expired goals and check the limits."""
        self.forget_gone()
        self.house.keep(events, now)

    # --- state ---

    def dump(self) -> dict[str, Any]:
        self.forget_gone()
        return dump.written(self)

    def load(self, state: Mapping[str, Any]) -> None:
        self.fit_chains(state["goals"])
        dump.read(self, state)
        self.state.journal.clear()

    def fit_chains(self, goals: Iterable[Sequence[Any]]) -> None:
        """Run those sequences as joins whose goals, as stored, are those of joins: earlier versions knew no chains."""
        self.run_as_joins(built_of_joins(self.given, goals) if self._joins or self.built else self.built)

    def built_for(self, changes: Sequence[Any]) -> frozenset[str]:
        """The chains that have to run as joins to repeat these changes of a journal."""
        return self.built | written_as_joins(self._joins, self.state.stores, changes)

    def run_as_joins(self, built: frozenset[str]) -> None:
        if changed := built ^ self.built:
            self.built = built
            self.state.stores = {key: store for key, store in self.state.stores.items() if key[0] not in changed}
            self._run_rules(*self._loaded)

    def journal(self) -> list[Any]:
        return dump.journal(self)

    def adopt(self, others: Iterable[Mapping[str, Any]], own: Container[str]) -> None:
        dump.adopt(self, others, own)

    def fitted(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        return dump.fitted(self, state)

    def fitted_journal(self, entries: Sequence[Any]) -> Sequence[Any]:
        return dump.fitted_journal(self, entries)

    def replay(self, entries: Sequence[Any]) -> None:
        self.run_as_joins(self.built_for(entries[0]))
        dump.replay(self, entries)
        self.state.journal.clear()

    def forget_journal(self) -> None:
        self.state.journal.clear()
        if self.answer_sets is not None:
            self.answer_sets.journal()

    def journaling(self, on: bool) -> None:
        journal = self._aside if on else deque(maxlen=0)
        self._aside = None if on else self.state.journal
        self.state.journal = self.runtime.scope["journal"] = journal

    @property
    def recording(self) -> bool:
        """Whether a journal is being kept."""
        return self.options.journal and self._aside is None

    @property
    def entries(self) -> int:
        return len(self.state.journal)

    def operator(self, name: str, side: int = 0) -> Callable[[int, list[Row]], Any]:
        """The function of a node's operator that takes the solutions of its ``side``-th part."""
        node = self.state.nodes[name]
        roles = [part.role for part in inputs(node)]
        if side and roles[side] is Role.ABSENT:
            return self.runtime.runs_of(name).interrupt
        if side and roles[0] is Role.MEMBER and roles[side] is Role.SIDE:  # what ends a run
            return self.runtime.ends_of(name)
        return self.runtime.operator(name, node)

    def kept(self) -> StateSize:
        return StateSize(goals=self.state.live(), per_rule=self.state.live_by_node())

    @property
    def warnings(self) -> Iterator[str]:
        return (runs.warning for runs in self.state.runs.values() if runs.warning)


def _occurrences(events: Iterable[tuple[int, tuple[Triple, ...], str, str]]) -> list[Occurrence]:
    """The triples of the events of an instant."""
    return [(s, p, o, start, stream) for start, triples, stream, _ in events for s, p, o in triples]


def _fresh(output: ir.Output, columns: tuple[str, ...]) -> Callable[[Row], dict[str, str]] | None:
    fresh = fresh_nodes_of(output, columns)
    if fresh is None:
        return None
    labels, function = fresh
    return lambda row: dict(zip(labels, function(row), strict=True))
