"""The state of an engine: goal stores, groups, closures, histories; and its interface for generated code.

The state of a node is found by the node's id, so that it survives when other programs come and go.  Solutions are
stored as they are used; a snapshot holds only times and columns, and decoded values are computed again when it is read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.rows.generate.layout import Layout
from etalis_py.executors.rows.generate.runtime_objects import GoalStoreSpec
from etalis_py.executors.rows.run.beginning import Beginning
from etalis_py.executors.rows.run.closure import PathClosure
from etalis_py.executors.rows.run.deadlines import Deadlines, Timer
from etalis_py.executors.rows.run.goals import GoalStore, rebuilt
from etalis_py.executors.rows.run.grouping import Grouping
from etalis_py.executors.rows.run.incremental_sums import IncrementalSums
from etalis_py.executors.rows.run.per_query import GroupingPerQuery, SlicingPerQuery
from etalis_py.executors.rows.run.runs import Runs
from etalis_py.executors.rows.run.skipping import Skipping
from etalis_py.executors.rows.run.slicing import Slicing
from etalis_py.kernel.position import FOREVER
from etalis_py.sparql import BackgroundSource, ExpressionClock, HistorySource, OccurrenceLog, Prepared, prepare
from etalis_py.sparql.lookups import Lookup, lookup

if TYPE_CHECKING:
    from etalis_py.executors.rows.run.standing import StandingSolutions

_Keeping = Grouping | GroupingPerQuery | IncrementalSums | PathClosure | Runs | Skipping


def _answer_of(pattern: alg.Pattern, mu: dict[str, str]) -> tuple[tuple[str, ...], ...]:
    """The result of a look-up for an explanation: the triples of a basic graph pattern, else variables and terms."""
    triples = alg.triples_of(pattern.child if isinstance(pattern, alg.Filter) else pattern)
    if triples is None:
        return tuple((name, term) for name, term in mu.items() if term)
    return tuple(alg.triple_in(mu, triple) for triple in triples)


class State:
    """All stores of an engine, by node."""

    def __init__(self, explain: bool = False) -> None:
        self.explain = explain
        self.nodes: dict[str, ir.Node] = {}
        self.layouts: dict[str, Layout] = {}
        self.stores: dict[tuple[str, str], GoalStore] = {}
        self.groups: dict[str, Grouping | GroupingPerQuery | IncrementalSums] = {}
        self.closures: dict[str, PathClosure] = {}
        self.slices: dict[str, Slicing | SlicingPerQuery | Skipping] = {}
        self.runs: dict[str, Runs] = {}
        self.timers: dict[str, Timer] = {}
        self.alarm = [FOREVER]
        """A time before which no timer has anything to report; at that time there may be nothing either."""
        self.journal: list[Any] | deque[Any] = []  # entries are tuples, or lists that are already in stored form
        self.background: BackgroundSource
        self.log: OccurrenceLog | None = None
        self.last = 0  # the number of the newest goal store
        self._looked: dict[alg.Pattern, Prepared] = {}

    # --- what generated code asks for ---

    def store(self, plan: GoalStoreSpec) -> GoalStore:
        """The goal store of one side of a node: the existing one, in this layout, or a new one."""
        goals = self.stores.get((plan.node, plan.side))
        if goals is None:
            goals = GoalStore(plan.number, plan.node, plan.side, plan.layout, plan.key, plan.longest, self.explain)
            goals.first = plan.first
            self.stores[plan.node, plan.side] = goals
            self.last = max(self.last, plan.number)
        return goals

    def deadlines(self, node: str, bound: alg.Bound) -> Deadlines:
        """The times at which the goals of a node are due."""
        known = self.timers.get(node)
        if not isinstance(known, Deadlines):
            known = self.timers[node] = Deadlines(self.stores[node, "G"], bound, self.alarm)
        return known

    def beginning(self, node: str) -> Beginning:
        """The timer of a START."""
        known = self.timers.get(node)
        if not isinstance(known, Beginning):
            known = self.timers[node] = Beginning()
        return known

    def next_due(self) -> int | None:
        """The first time at which a deadline is due, so that a node may report something without an event."""
        first = None
        for timer in self.timers.values():
            at = timer.next()
            if at is not None and (first is None or at < first):
                first = at
        return first

    def lookup(self, pattern: alg.Pattern, known: tuple[str, ...], wanted: tuple[str, ...]) -> Lookup:
        """A function from the terms of ``known`` to the rows of ``wanted`` that the background holds."""
        look_up = lookup(lambda: self.background, pattern, known, wanted, direct=not self.explain)
        if not self.explain:
            return look_up

        def explained(terms: tuple[str, ...], t: int) -> list[tuple[Any, ...]]:
            return [(*row, _answer_of(pattern, dict(zip(wanted, row, strict=True)))) for row in look_up(terms, t)]

        return explained

    def standing(self, node: ir.Group) -> StandingSolutions | None:
        """What an aggregation has of the background alone."""
        if node.background is None:
            return None
        layout = self.layouts[node.child.node]
        from etalis_py.executors.rows.run.standing import StandingSolutions  # few programs have such parts

        return StandingSolutions(node.background, node.child.columns, lambda: self.background, partial(rebuilt, layout))

    def minus_lookup(self, pattern: alg.Pattern, shared: tuple[str, ...]) -> Callable[[tuple[str, ...], int], bool]:
        """Whether the background holds a compatible solution that shares a bound variable."""
        prepared = prepare(pattern)
        state = self

        def look_up(terms: tuple[str, ...], t: int) -> bool:
            source = state.background
            mu = {name: value for name, value in zip(shared, terms, strict=True) if value}
            # The bindings prune the search; afterwards a test finds out whether a solution really shares a variable.
            bound_there = alg.certain(pattern)
            if bound_there & mu.keys():
                return next(iter(prepared.solve(mu, source, None)), None) is not None
            for solution, _, _ in prepared.solve({}, source, None):
                if solution.keys() & mu.keys() and all(solution.get(k, v) == v for k, v in mu.items()):
                    return True
            return False

        return look_up

    def look_back(self, pattern: alg.Pattern, mu: dict[str, str], end: int, t: int) -> bool:
        """EXISTS, evaluated backwards over the occurrences that ended by ``end`` and the background."""
        prepared = self._looked.get(pattern)
        if prepared is None:
            prepared = self._looked[pattern] = prepare(pattern, substitute=True, timed=True)
        source = HistorySource(self.background, self.history)
        return prepared.holds({v: term for v, term in mu.items() if term}, source, end, ExpressionClock(t))

    @property
    def history(self) -> OccurrenceLog:
        """The occurrences so far, kept where something looks back at them."""
        if self.log is None:
            self.log = OccurrenceLog()
        return self.log

    def last_due(self) -> int | None:
        """The last time at which a goal that waits now may be due."""
        return max((at for timer in self.timers.values() if (at := timer.last()) is not None), default=None)

    # --- housekeeping ---

    def estimated_bytes(self) -> int:
        """About how much memory goals, the state of operators and remembered occurrences take, from samples of them."""
        remembered = 0 if self.log is None else self.log.estimated_bytes()
        goals = sum(store.estimated_bytes() for store in self.stores.values())
        operators = [operator for _, operator in self._operators()]
        if operators:
            from etalis_py.executors.rows.run.sizes import measured_bytes  # many programs have none

            remembered += sum(map(measured_bytes, operators))
        return goals + remembered

    def _operators(self) -> Iterator[tuple[str, _Keeping]]:
        """What keeps something other than goals, with the names of the nodes: groups, paths, runs and times to skip."""
        yield from chain(self.groups.items(), self.closures.items(), self.runs.items())
        for node, sliced in self.slices.items():
            if isinstance(sliced, Skipping):
                yield node, sliced

    def live_by_node(self) -> dict[str, int]:
        """How many of these the goal stores and operators of each node have."""
        per_node: dict[str, int] = {}
        for (node, _), store in self.stores.items():
            per_node[node] = per_node.get(node, 0) + store.live()
        for node, kept in self._operators():
            per_node[node] = kept.live()
        return per_node

    def live(self, now: int | None = None) -> int:
        """All goals, group members, path pairs, runs, times to skip and remembered occurrences.

        ``now``: without goals expired by then.
        """
        return (
            sum(store.live() if now is None else store.live_at(now) for store in self.stores.values())
            + sum(operator.live() for _, operator in self._operators())
            + (0 if self.log is None else len(self.log))
        )
