"""Rules over a batch of many instants at a time: the operators of all nodes, and the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from etalis_rules import program as ir
from etalis_rules.lateness import latenesses
from etalis_rules.operators import computes, multiplies

from etalis_py.executors.columns.absence import DeadlineOperator
from etalis_py.executors.columns.aggregation import Reported
from etalis_py.executors.columns.chains import ChainOperator, sum_up_chains
from etalis_py.executors.columns.constructs import derived, with_nodes
from etalis_py.executors.columns.events import Events, derived_events, events_of, united
from etalis_py.executors.columns.family_columns import Sources
from etalis_py.executors.columns.identity import compared_columns, predicates_of, unidentified, unread
from etalis_py.executors.columns.instants import rows_of
from etalis_py.executors.columns.joins import JoinOperator, Waiting
from etalis_py.executors.columns.leaves import occurrence_tables
from etalis_py.executors.columns.maps_and_unions import StartOperator
from etalis_py.executors.columns.network import Loop, RowSection, network
from etalis_py.executors.columns.node_operators import (
    KEEPING_GOALS,
    Keeping,
    Surroundings,
    node_operator,
    output_operator,
)
from etalis_py.executors.columns.occurrence_history import LookingOperator
from etalis_py.executors.columns.occurrences import Occurrences, pieces, with_predicates
from etalis_py.executors.columns.open_runs import MaximalRunOperator
from etalis_py.executors.columns.piece_limits import PieceLimits
from etalis_py.executors.columns.record_tables import RecordTable, compared_in_tables
from etalis_py.executors.columns.records import RecordOperator
from etalis_py.executors.columns.recursion import LoopOperator
from etalis_py.executors.columns.recursion_rounds import RoundsOperator
from etalis_py.executors.columns.reports import TableReport, count_by_instant
from etalis_py.executors.columns.row_sections import PartOperator, TriplesOf
from etalis_py.executors.columns.store import ColumnGoalStore, Keys
from etalis_py.executors.columns.supported_rules import taking_late
from etalis_py.executors.columns.tables import SolutionTable, concat_tables, distinct
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.rows.generate.limit_checks import FEW
from etalis_py.executors.rows.generate.single_node import NodeFunction
from etalis_py.executors.rows.generate.summed_chains import summed_chains
from etalis_py.executors.rows.run.rule_subset import PartialRules
from etalis_py.executors.rows.run.runtime import Runtime
from etalis_py.kernel.batch import InColumns, Records, Report, Row, are_rows
from etalis_py.sparql import OccurrenceLog

MOST_TERMS = 1 << 17
"""The dictionary forgets unused terms when it holds more than this, or four times what it kept the last time."""


class ColumnRules:
    """Rules that run in columns, with their operators and goals, and between them ``parts`` that run in rows.

    What runs in rows comes from the row executor.  ``operator`` gives its operator for a node, with the state;
    ``apart`` its function for a single node; ``give`` puts solutions into the window of an operator.  ``in_rows`` loads
    the rules of a part, and gives the function from their rows to triples.  ``runtime`` has the limits, the background,
    and the functions that apply ORDER BY and LIMIT.  ``remember``, if any rule looks back at the history, adds
    occurrences to it.  ``keep_house`` is called after each piece of a batch, with its events and the time.
    """

    def __init__(
        self,
        rules: ir.Rules,
        operator: Callable[..., Any],
        apart: Callable[[str], NodeFunction],
        give: Callable[[str, list[Row], list[Reported]], None],
        runtime: Runtime,
        parts: Sequence[RowSection] = (),
        in_rows: Callable[[RowSection], tuple[PartialRules, TriplesOf]] | None = None,
        remember: Callable[[Iterable[Row]], None] | None = None,
        keep_house: Callable[[int, int], None] = lambda events, now: None,
    ) -> None:
        self.terms = Terms()
        families = runtime.families
        relations = {} if families is None else families.relations
        self._sources = sources = Sources(self.terms, runtime.state.background, relations)
        self.network = network(rules, parts)
        self._loose = unidentified(self.network)
        self._runtime = runtime
        self._limited = frozenset(name for name, node in rules.nodes if multiplies(node) or computes(node))
        self._most_terms = MOST_TERMS
        self._limits = PieceLimits(runtime.house)
        compared, late = compared_columns(self.network), taking_late(self.network.nodes)
        longest = latenesses(self.network.nodes)
        self._late = frozenset(n for n, node in self.network.nodes.items() if isinstance(node, ir.Leaf) and node.late)
        feeding = any(targets for fed in self.network.fed.values() for _, targets in fed)
        chains = summed_chains(self.network.nodes, rules.outputs)
        summed = frozenset(plan.group for plan in chains.values())
        around = Surroundings(self.terms, sources, runtime, operator, apart, give, self._watch, summed)
        self._operators: dict[str, Any] = {
            name: node_operator(
                name,
                self.network.nodes,
                around,
                late=name in late,
                lateness=longest[name],
                compared=feeding or bool(compared[name]),
            )
            for name in self.network.nodes
        }
        sum_up_chains(chains, self._operators, runtime.state.groups, self.terms)
        for join in self._operators.values():
            if isinstance(join, JoinOperator):
                join.most = self._limits.portion(join.most, len(join.node.head))
            elif isinstance(join, ChainOperator):  # which has a portion for each part
                join.most = self._limits.portion(join.most, len(join.node.head)) // len(join.node.parts)
        for loop in self.network.loops.values():
            _, output = self.network.outputs[loop.output]
            if not isinstance(self._operators[loop.join], LoopOperator):
                self._operators[loop.join] = LoopOperator(
                    loop, self.network.nodes, output, self.terms, sources, lambda parts: None
                )
        self._outputs = {
            name: output_operator(number, output, sources, runtime)
            for name, (number, output) in self.network.outputs.items()
            if output.source is not None
        }
        rounds = {id(again): again for again in self.network.rounds.values()}
        operators = {
            key: RoundsOperator(again, self.network, self._operators, self.terms) for key, again in rounds.items()
        }
        self._rounds = {name: operators[id(again)] for name, again in self.network.rounds.items()}
        # Outputs whose triples a rule reads, in columns or in a part; triples that no rule reads are not even made.
        whole = network(rules) if parts else self.network
        self._read = frozenset(name for name, fed in whole.fed.items() if any(targets for _, targets in fed))
        self._remember, self._keep_house = remember, keep_house
        looking = any(isinstance(operator, LookingOperator) for operator in self._operators.values())
        self._compared = compared_in_tables(self.network.nodes, compared)
        everything = bool(parts) or looking or remember is not None
        nodes = dict(rules.nodes)
        self._records = frozenset(name for name, node in nodes.items() if isinstance(node, ir.Record))
        everything = everything or bool(self._records)
        self._unread = frozenset() if everything else unread(self.network, self._loose)
        self._predicates = None if everything else predicates_of(self.network.nodes)
        leaves = any(isinstance(node, ir.Leaf) for node in nodes.values())
        self._reads_triples = leaves or looking or remember is not None or not self._records
        self._parts: dict[str, PartOperator] = {}
        for part in parts:
            assert in_rows is not None
            self._parts[part.name] = PartOperator(part, nodes, self._read, *in_rows(part), self.terms)
        self._asking = self._records | {name for name, part in self._parts.items() if part.reads_events}

    def take(self, columns: InColumns, through: int, reports: list[Report | TableReport]) -> None:
        """Evaluate complete instants, and the deadlines due up to ``through``; they add to ``reports``.

        ``columns`` is a table of records only if the rules read nothing else.  The reports of each piece of the batch
        follow those of the piece before; within a piece they are ordered by output, or by instant if all are in rows.
        If a limit is exceeded, those of the pieces before are there.
        """
        for piece, reached in pieces(with_predicates(columns, self._predicates), lambda: self._limits.at_once, through):
            there = self._evaluate(piece, reached)
            self._compare_goals(reached)
            self._keep_house(len(piece), reached)
            reports += there
            self._limits.resize(len(piece))
            if self.terms.count > self._most_terms:
                self.forget_terms()

    def held_bytes(self) -> int:
        """The approximate size of goals and windows, and of their terms."""
        stores = [waiting.store for _, _, waiting in self.stores()]
        windows = [operator for _, operator in self.windows()]
        cells = sum(store.used * store.terms.shape[1] for store in stores) + sum(
            len(o.window) * len(o.window.columns) for o in windows
        )
        arrays = sum(store.bytes for store in stores) + sum(operator.held_bytes for operator in windows)
        return arrays + self.terms.estimated_bytes(cells)

    def _compare_goals(self, now: int) -> None:
        """Fail if there are too many or too large goals, without expired ones."""
        stores = [waiting.store for _, _, waiting in self.stores()]
        solutions = sum(len(operator.window) for _, operator in self.windows())
        if self._limits.is_near(solutions + sum(store.used for store in stores), self.held_bytes()):
            for store in stores:
                store.repack(0, now)
            self._limits.compare(self.live(), self.held_bytes(), self.live_by_node)

    def forget_terms(self) -> None:
        """Forget all terms but those of goals, windows and parameters; else the dictionary would grow with the stream.

        It is done when there are four times as many terms as were kept the last time, so the cost per term is small.
        """
        marked = self.terms.unmarked()
        self._sources.mark_terms(marked)
        stores: dict[int, list[ColumnGoalStore]] = {}
        keys: dict[int, Keys] = {}
        for _, _, waiting in self.stores():
            waiting.store.mark_terms(marked)
            keys[id(waiting.keys)] = waiting.keys
            stores.setdefault(id(waiting.keys), []).append(waiting.store)
        for _, operator in self.windows():
            operator.mark_terms(marked)
        live = {name: np.logical_or.reduce([store.live_keys() for store in some]) for name, some in stores.items()}
        renumbered = self.terms.retain(marked)
        self._sources.renumber(renumbered)
        for name, some in stores.items():
            for store in some:
                store.retain(live[name], renumbered)
            keys[name].retain(live[name], renumbered)
        for _, operator in self.windows():
            operator.renumber(renumbered)
        self._most_terms = max(MOST_TERMS, 4 * self.terms.count)

    # --- state ---

    def begin(self, log: OccurrenceLog | None) -> None:
        """Continue from the state of the row executor, which the parts in rows share, and from this history."""
        for part in self._parts.values():
            part.begin(log)
        for operator in self._operators.values():
            if isinstance(operator, LookingOperator):
                operator.begin(log)

    def stores(self) -> Iterator[tuple[str, str, Waiting]]:
        """All waiting goals, by node and side."""
        for name, operator in self._operators.items():
            if isinstance(operator, KEEPING_GOALS):
                for side, waiting in operator.sides().items():
                    yield name, side, waiting

    def windows(self, *, every: bool = False) -> Iterator[tuple[str, Keeping]]:
        """The aggregations whose windows are kept in columns; with ``every``, also those that fell back to rows."""
        operators = self._operators.items()
        return ((name, o) for name, o in operators if isinstance(o, Keeping) and (o.fast or every))

    def next_due(self) -> int | None:
        """The first time at which a deadline reports something, even if no event comes."""
        timers = (o for o in self._operators.values() if isinstance(o, DeadlineOperator | MaximalRunOperator))
        return min((at for timer in timers if (at := timer.next_due()) is not None), default=None)

    def live(self) -> int:
        """The number of waiting goals plus the number of solutions in windows."""
        waiting = sum(waiting.store.live() for _, _, waiting in self.stores())
        return waiting + sum(len(operator.window) for _, operator in self.windows())

    def live_by_node(self) -> dict[str, int]:
        """How many of these each node has."""
        counts = {name: len(operator.window) for name, operator in self.windows()}
        for name, _, waiting in self.stores():
            counts[name] = counts.get(name, 0) + waiting.store.live()
        return counts

    def sweep(self, now: int) -> int:
        """Drop expired goals; returns how many."""
        return sum(waiting.store.sweep(now) for _, _, waiting in self.stores())

    # --- a batch ---

    def _read_in(self, piece: InColumns) -> tuple[SolutionTable, SolutionTable, Events | RecordTable]:
        """The occurrences of a piece, with and without their streams, and its events; empty if no rule reads them."""
        by_stream, anywhere = SolutionTable.empty(4), SolutionTable.empty(3)
        if isinstance(piece, Records):
            return by_stream, anywhere, RecordTable(piece, self.terms, self._compared)
        whole = bool(self._records)
        occurrences = Occurrences.of_columns(self.terms, piece, self._loose, self._unread, whole=whole)
        if self._reads_triples:
            by_stream, anywhere = occurrence_tables(occurrences, self.terms, self._loose)
        return by_stream, anywhere, events_of(occurrences, self.terms, self._loose) if whole else Events.none()

    def _evaluate(self, piece: InColumns, through: int) -> list[Report | TableReport]:
        by_stream, anywhere, events = self._read_in(piece)
        more: dict[str, list[SolutionTable]] = {}
        more_events: dict[str, list[Events]] = {}
        tables: dict[str, SolutionTable] = {}
        reports: list[Report | TableReport] = []
        history = [by_stream]
        for name in self.network.order:
            loop = self.network.loops.get(name)
            if loop is not None and loop.leaf not in tables:
                self._close(loop, _seen(loop.reader, by_stream, anywhere, more.get(loop.leaf, []), self.terms), tables)
            again = self._rounds.get(name)
            if again is not None and again.rounds.nodes[0] not in tables:
                leaves = ((leaf, self.network.nodes[leaf]) for leaf in again.rounds.nodes)
                given = {
                    leaf: _seen(node, by_stream, anywhere, more.get(leaf, []), self.terms)
                    for leaf, node in leaves
                    if isinstance(node, ir.Leaf)
                }
                again.advance(given, tables, self._runtime)
                for inner in self._limited.intersection(again.rounds.nodes):
                    self._watch(inner, [tables[inner]])
            if name in self._parts:
                part = self._parts[name]
                assert isinstance(events, Events)
                whole = united(events, more_events.get(name, ()), self.terms) if part.reads_events else events
                reported, triples = part.advance(by_stream, more.get(name, ()), whole, through)
                reports += reported
                for source, (occurrences, of_solutions) in triples.items():
                    history.append(occurrences)
                    for target in self._targets(source):
                        more.setdefault(target, []).append(occurrences)
                        more_events.setdefault(target, []).append(of_solutions)
            elif name in self._outputs:
                output = self._outputs[name]
                solutions = output.advance(tables[output.source.node], reports)
                if len(solutions) and name in self._read:
                    inside = (loop.leaf,) if loop is not None else () if again is None else again.rounds.nodes
                    self._derive(name, output.output, solutions, inside, more, more_events, history)
            elif name in tables:
                continue
            elif name in self._operators:
                operator = self._operators[name]
                node = self.network.nodes[name]
                if isinstance(node, ir.Leaf):
                    seen = _seen(node, by_stream, anywhere, more.get(name, []), self.terms)
                    table = operator.advance(seen)
                elif isinstance(operator, RecordOperator):
                    there = more_events.get(name, ())
                    table = operator.advance(
                        united(events, there, self.terms) if isinstance(events, Events) else events
                    )
                else:
                    if isinstance(operator, LookingOperator):
                        operator.remember(by_stream, [t for leaf in operator.leaves for t in more.get(leaf, ())])
                    table = _advanced(node, operator, tables, through)
                tables[name] = table
                self._limits.add(table)
                if name in self._limited:
                    self._watch(name, [table])
        if self._remember is not None:
            self._remember(rows_of(concat_tables(history, 4), self.terms))
        return sorted(reports, key=_instant_and_number if are_rows(reports) else _number)

    def _close(self, loop: Loop, seen: SolutionTable, tables: dict[str, SolutionTable]) -> None:
        """Evaluate a rule that feeds itself, and add the tables of all its nodes."""
        join, operator = self.network.nodes[loop.join], self._operators[loop.join]
        given = self._operators[loop.leaf].advance(seen)
        others = [tables[ref.node] for ref in ir.refs(join) if ref.node != loop.leaf]
        most = self._runtime.limits.derivations
        tables[loop.leaf], joined = operator.closed(given, others[0] if others else SolutionTable.empty(0), most)
        tables[loop.join] = joined
        self._watch(loop.join, [joined])
        if loop.map:
            tables[loop.map] = self._operators[loop.map].advance(joined)

    def _derive(
        self,
        name: str,
        output: ir.Output,
        solutions: SolutionTable,
        inside: Collection[str],
        more: dict[str, list[SolutionTable]],
        more_events: dict[str, list[Events]],
        history: list[SolutionTable],
    ) -> None:
        """Pass the triples that a rule derives on to the rules that read them, as occurrences and as events.

        Leaves ``inside`` the rule's own recursion are left out: they got the triples while it was evaluated.
        """
        columns = with_nodes(output, solutions, self.terms)
        if asking := [target for target in self._targets(name) if target in self._asking]:
            in_time = solutions.in_time()  # EVENTs for which some come later run in rows, and so does this rule then
            there = columns if in_time is solutions else with_nodes(output, in_time, self.terms)
            events = derived_events(output, in_time, there, self.terms)
            for target in asking:
                more_events.setdefault(target, []).append(events)
        for template, targets in self.network.fed[name]:
            others = [target for target in targets if target not in inside]
            if not others and self._remember is None:
                continue
            occurrences = derived(output, template, solutions, columns, self.terms)
            history.append(occurrences)
            in_time = occurrences.in_time()
            for target in others:
                more.setdefault(target, []).append(occurrences if target in self._late else in_time)

    def _targets(self, name: str) -> set[str]:
        """The readers of an output's triples: leaves, EVENTs and parts in rows."""
        return {target for _, targets in self.network.fed[name] for target in targets}

    def _watch(self, name: str, parts: list[SolutionTable]) -> None:
        """Fail if a node has too many solutions in one instant, or too large ones."""
        limits, count = self._runtime.limits, sum(map(len, parts))
        size = sum(self._estimated_bytes(part) for part in parts)
        self._limits.foresee(parts)
        if count > limits.derivations or size > limits.bytes:
            _, most = count_by_instant(np.concatenate([part.at for part in parts]))
            if most > limits.derivations:
                self._runtime.too_many(name)
            if size * most // count > limits.bytes:
                self._runtime.too_large(name, most, size * most // count)

    def _estimated_bytes(self, table: SolutionTable) -> int:
        """The approximate size of the solutions, from a sample: their columns, and the text of their terms."""
        if len(table) <= FEW:
            return 0
        sample = np.arange(0, len(table), len(table) // FEW + 1)
        texts = sum(sum(map(len, self.terms.spellings(column[sample]))) for column in table.columns)
        return len(table) * (24 + 4 * len(table.columns) + texts // len(sample))


def _advanced(node: ir.Node, operator: Any, tables: dict[str, SolutionTable], through: int) -> SolutionTable:
    """The output of a node other than a leaf; time has reached ``through``."""
    parts = [tables[ref.node] for ref in ir.refs(node)]
    if isinstance(node, ir.Union):
        return operator.advance(parts)
    if isinstance(operator, StartOperator):
        return operator.advance(through)
    if isinstance(operator, MaximalRunOperator):
        return operator.advance(parts[0], through)
    if isinstance(operator, DeadlineOperator):
        left, absent = parts
        return operator.advance(left, absent, through)
    return operator.advance(*parts)


def _instant_and_number(report: Any) -> tuple[int, int]:
    return report[1], report[0]


def _number(report: Report | TableReport) -> int:
    return report.output if isinstance(report, TableReport) else report[0]


def _seen(
    leaf: ir.Leaf, by_stream: SolutionTable, anywhere: SolutionTable, more: list[SolutionTable], terms: Terms
) -> SolutionTable:
    """The occurrences that a leaf reads, with the columns s, p and o."""
    if not leaf.stream:
        three = [SolutionTable(t.at, t.end, t.start, t.columns[:3]) for t in more]
        return _once(leaf, concat_tables([anywhere, *three], 3)) if more else anywhere
    stream = terms.id_of(leaf.stream)
    parts = [part.take(part.columns[3] == stream) for part in (by_stream, *more)]
    three = [SolutionTable(t.at, t.end, t.start, t.columns[:3]) for t in parts]
    return _once(leaf, concat_tables(three, 3)) if more else three[0]


def _once(leaf: ir.Leaf, occurrences: SolutionTable) -> SolutionTable:
    """Each occurrence once; a late leaf sees to that itself."""
    return occurrences if leaf.late else distinct(occurrences)
