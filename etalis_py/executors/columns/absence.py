"""Absence: NOT, SEQ NOT … SEQ, and the deadline of SEQ NOT … WITHIN, over a batch.

In ``P NOT N`` and ``A SEQ NOT N SEQ C``, a solution of N matters if it falls into the interval of a solution of P, or
into the gap between A and C.  It has then ended before that solution or pair is complete.  So all N of a batch are put
into a store first, ordered by end; each solution of P, and each pair, then looks there for an N between two times.

A deadline keeps the solutions that wait for it, under the variables that they share with N, and a queue of the times at
which they are due.  For each batch it inserts the new solutions, then removes those for which a compatible N started
after their end and ended by the time they are due; it reports the ones due by the end of the batch, each at its own
time.

Cost: for each solution or pair that asks, a binary search in the bucket of its key; for each N before a deadline, the
goals under its key that ended before it.  State: the solutions of N (within the bound, if there is one) and the goals
of A.

    {?o :ordered ?p} SEQ NOT {?o :shipped ?d} WITHIN 2 HOURS: ordered a@1, b@2; shipped a@60 min → b [2, 2 + 2 h]
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

import numpy as np
from etalis_rules import program as ir
from etalis_rules.sides import tells_what_is_absent

from etalis_py.executors.columns.equal_sides import KeyOfSide
from etalis_py.executors.columns.family_columns import Sources
from etalis_py.executors.columns.frames import Bindings, RuleSteps, later, longest_micros
from etalis_py.executors.columns.join_comparisons import Side
from etalis_py.executors.columns.joins import JoinOperator, Waiting
from etalis_py.executors.columns.kernels.absence import first_waiting, mark_present, places_between, remove_places
from etalis_py.executors.columns.kernels.chaining import latest_starts
from etalis_py.executors.columns.store import ColumnGoalStore, Keys
from etalis_py.executors.columns.tables import NO_TIMES, SolutionTable, doubled, first_end
from etalis_py.executors.columns.terms import Terms

_EVER, _NEVER = -(2**62), 2**62  # earlier and later than all times
_NOTHING_COMPARED = Side((), (), ())


class Absent:
    """The solutions of N, kept as goals and looked up by the terms that they share with a solution of P or a pair."""

    def __init__(self, node: ir.Absence, sources: Sources) -> None:
        self.names, self.shared = node.absent.columns, node.shared
        self.key = [self.names.index(name) for name in node.shared]
        self.keys = Keys(len(node.shared))
        self.goals = ColumnGoalStore(
            self.keys, len(self.names), 0, longest_micros(node.bound), sources.longest(node.bound)
        )

    def waiting(self) -> Waiting:
        """The goals, as one side of the node."""
        return Waiting(self.goals, self.keys, KeyOfSide(self.names, self.key), _NOTHING_COMPARED)

    def insert(self, absent: SolutionTable, now: int) -> None:
        """Insert goals; they are looked up at ``now`` or later."""
        keys = self.keys.numbers(absent.matrix(self.key), create=True)
        insert(self.goals, keys, absent, now)

    def latest_starts(self, table: SolutionTable, names: tuple[str, ...]) -> np.ndarray:
        """For each row of a table with these variables, the latest start of the goals that ended before it started."""
        self.goals.fit()
        keys = self.keys.numbers(table.matrix([names.index(name) for name in self.shared]), create=False)
        latest = np.empty(len(table), np.int64)
        latest_starts(keys, table.start, self.goals.buckets, self.goals.ends, self.goals.starts, latest)
        return latest

    def among(self, frame: Bindings, after: np.ndarray, before: np.ndarray) -> np.ndarray:
        """A mask of the solutions for which a compatible goal starts after one time and ends before another."""
        terms = np.empty((len(frame), len(self.shared)), np.int32)
        for i, name in enumerate(self.shared):
            terms[:, i] = frame.columns[name]
        self.goals.fit()
        keys = self.keys.numbers(terms, create=False)
        open_ = [name for name in self.names if name not in self.shared and name in frame.columns]
        own = np.empty((len(frame), len(open_)), np.int32)
        for i, name in enumerate(open_):
            own[:, i] = frame.columns[name]
        places = np.array([self.names.index(name) for name in open_], np.int64)
        goals, present = self.goals, np.zeros(len(keys), np.bool_)
        mark_present(keys, after, before, own, places, goals.buckets, goals.ends, goals.starts, goals.terms, present)
        return present


def insert(store: ColumnGoalStore, keys: np.ndarray, table: SolutionTable, now: int) -> None:
    """Insert goals without values to compare."""
    values = np.empty((len(table), 0), np.float64)
    store.insert(keys, table.end, table.start, table.matrix(), values, now)


def goals_between(
    store: ColumnGoalStore, keys: np.ndarray, first_ends: np.ndarray, before: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find the goals of each key that end within [first end, before).

    Returns for each of them the index of its key in ``keys``, and its place in the store.
    """
    numbers, places = np.empty(len(keys) + 16, np.int64), np.empty(len(keys) + 16, np.int64)
    row = n = 0
    while True:
        row, n = places_between(row, n, keys, first_ends, before, store.buckets, store.ends, numbers, places)
        if row == len(keys):
            return numbers[:n], places[:n]
        numbers, places = doubled(numbers), doubled(places)


class InsideOperator:
    """``P NOT N``."""

    def __init__(self, node: ir.Absence, terms: Terms, sources: Sources) -> None:
        self.node = node
        self.terms = terms
        self.steps = RuleSteps(node.steps, sources)
        self.absent = Absent(node, sources)

    def sides(self) -> dict[str, Waiting]:
        """The waiting goals, by side."""
        return {"N": self.absent.waiting()}

    def advance(self, left: SolutionTable, absent: SolutionTable) -> SolutionTable:
        """The solutions of P during which there is no N."""
        self.absent.insert(absent, first_end(left))
        frame = Bindings.of(self.terms, left, self.node.left.columns)
        frame = frame.keep(~self.absent.among(frame, frame.start, frame.end))
        return self.steps.applied(frame).table(self.node.head)


class GapOperator(JoinOperator):
    """``A SEQ NOT N SEQ C``: a SEQ with one more condition on a pair."""

    asks = True

    def __init__(
        self, node: ir.Absence, terms: Terms, sources: Sources, watch: Callable[[list[SolutionTable]], None]
    ) -> None:
        super().__init__(node, terms, sources, watch)
        assert node.right is not None
        self.absent = Absent(node, sources)
        bound = {*self.left, *self.right} & {*node.absent.columns}
        self._is_told = bound <= {*node.shared} and tells_what_is_absent(node, node.right, node.left)

    def sides(self) -> dict[str, Waiting]:
        """The waiting goals, by side."""
        return {**super().sides(), "N": self.absent.waiting()}

    def advance(self, left: SolutionTable, absent: SolutionTable, right: SolutionTable) -> SolutionTable:  # type: ignore[override]
        """The new pairs without an N in their gap."""
        self.absent.insert(absent, first_end(right))
        return super().advance(left, right)

    def _since(self, table: SolutionTable) -> np.ndarray:
        """Where C tells which N agree: the latest start of those before it; a goal that ended earlier is refused."""
        return self.absent.latest_starts(table, self.right) if self._is_told else NO_TIMES

    def _answered(self, pairs: Bindings, ended: np.ndarray, begins: np.ndarray) -> Bindings:
        return pairs.keep(~self.absent.among(pairs, ended, begins))


class Queue:
    """The times at which goals are due, in a heap of stretches: goals that arrived together, with their ends and keys.

    A cancelled goal stays in the queue, but is missing from the store; it is skipped when its time comes.
    """

    def __init__(self) -> None:
        self._stretches: list[tuple[int, int, np.ndarray, np.ndarray, np.ndarray]] = []
        self._numbers = count()

    def add(self, times: np.ndarray, ends: np.ndarray, keys: np.ndarray) -> None:
        """Add goals that arrived together."""
        if len(times):
            order = np.argsort(times, kind="stable")  # months differ in length: a goal that ends later may be due first
            self._push(times[order], ends[order], keys[order])

    def _push(self, times: np.ndarray, ends: np.ndarray, keys: np.ndarray) -> None:
        if len(times):
            heapq.heappush(self._stretches, (int(times[0]), next(self._numbers), times, ends, keys))

    def take(self, through: int) -> tuple[np.ndarray, np.ndarray]:
        """Remove and return the keys and ends of the goals that are due at ``through`` or before, each pair once."""
        due: list[tuple[np.ndarray, np.ndarray]] = []
        while self._stretches and self._stretches[0][0] <= through:
            _, _, times, ends, keys = heapq.heappop(self._stretches)
            cut = int(np.searchsorted(times, through, "right"))
            due.append((keys[:cut], ends[:cut]))
            self._push(times[cut:], ends[cut:], keys[cut:])
        if not due:
            return NO_TIMES, NO_TIMES
        keys, ends = (np.concatenate(parts) for parts in zip(*due, strict=True))
        order = np.lexsort((ends, keys))
        keys, ends = keys[order], ends[order]
        new = np.ones(len(keys), np.bool_)
        new[1:] = (np.diff(keys) != 0) | (np.diff(ends) != 0)
        return keys[new], ends[new]

    def next(self, goals: ColumnGoalStore) -> int | None:
        """The first time at which a goal that still waits is due."""
        while self._stretches:
            first, _, times, ends, keys = self._stretches[0]
            waiting = first_waiting(keys, ends, goals.buckets, goals.ends)
            if waiting == 0:
                return first
            heapq.heappop(self._stretches)
            self._push(times[waiting:], ends[waiting:], keys[waiting:])
        return None


class DeadlineOperator:
    """``A SEQ NOT N WITHIN d``."""

    def __init__(self, node: ir.Absence, terms: Terms, sources: Sources) -> None:
        assert node.deadline is not None
        self.node, self.bound = node, node.deadline
        self.terms = terms
        self.sources = sources
        self.steps = RuleSteps(node.steps, sources)
        self.left = node.left.columns
        self.key = [self.left.index(name) for name in node.shared]
        self.keys = Keys(len(node.shared))
        self.goals = ColumnGoalStore(
            self.keys, len(self.left), 0, longest_micros(node.bound), sources.longest(node.bound)
        )
        self._queue = Queue()
        self._version = self.goals.version

    def sides(self) -> dict[str, Waiting]:
        """The waiting goals, by side."""
        return {"G": Waiting(self.goals, self.keys, KeyOfSide(self.left, self.key), _NOTHING_COMPARED)}

    def next_due(self) -> int | None:
        """The first time at which a goal is due."""
        return self._queued().next(self.goals)

    def advance(self, left: SolutionTable, absent: SolutionTable, through: int) -> SolutionTable:
        """The solutions due by ``through``, in order of time."""
        queue = self._queued()
        keys = self.keys.numbers(left.matrix(self.key), create=True)
        insert(self.goals, keys, left, first_end(left, absent))
        self.goals.fit()
        queue.add(later(left.end, self.bound), left.end, keys)
        if len(absent):
            self._cancel(absent)
        keys, ends = queue.take(through)
        rows, places = goals_between(self.goals, keys, ends, ends + 1)
        goals = self.goals
        end = later(goals.ends[places], self.bound)
        columns = dict(zip(self.left, goals.terms[places].T, strict=True))
        frame = Bindings(self.terms, end, end, goals.starts[places], columns, np.arange(len(places)))
        self._remove(keys[rows], places)
        return self.steps.applied(frame.keep(np.argsort(end, kind="stable"))).table(self.node.head)

    def _cancel(self, absent: SolutionTable) -> None:
        """Remove the goals for which an N started after their end and ended by the time they are due."""
        new = Absent(self.node, self.sources)
        new.insert(absent, 0)
        numbers = new.keys.numbers(absent.matrix(new.key), create=False)
        _, firsts = np.unique(numbers, return_index=True)
        keys = self.keys.numbers(absent.take(firsts).matrix(new.key), create=False)
        latest = np.full(len(firsts), _EVER)
        np.maximum.at(latest, numbers, absent.start)
        goals = self.goals
        rows, places = goals_between(goals, keys, np.full(len(keys), _EVER), latest)
        ends = goals.ends[places]
        columns = dict(zip(self.left, goals.terms[places].T, strict=True))
        waiting = Bindings(self.terms, ends, ends, goals.starts[places], columns, np.arange(len(places)))
        gone = new.among(waiting, ends, later(ends, self.bound) + 1)
        self._remove(keys[rows[gone]], places[gone])

    def _remove(self, keys: np.ndarray, places: np.ndarray) -> None:
        remove_places(keys, places, *self.goals.arena)

    def _queued(self) -> Queue:
        """The queue, rebuilt first if the store was filled or its keys renumbered by anything but this operator."""
        goals = self.goals
        if self._version != goals.version:
            self._version = goals.version
            self._queue = Queue()
            goals.fit()
            every = np.full(self.keys.count, _EVER), np.full(self.keys.count, _NEVER)
            keys, places = goals_between(goals, np.arange(self.keys.count), *every)
            ends = goals.ends[places]
            self._queue.add(later(ends, self.bound), ends, keys)
        return self._queue
