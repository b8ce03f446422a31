"""Join: SEQ, EQUALS and AND over a batch.

SEQ gives the pairs of compatible solutions x, y with x.end < y.start, EQUALS those of equal intervals, AND all; the
interval is the hull ([EP] §4.2).  Under a consuming policy an arriving y takes one x, the latest or the earliest, and
retracts it.

Cost: for each row, a look-up of its key and a copy; for each goal with that key in the window, some nanoseconds, or
more where a condition is not a comparison of numbers.  State: the left rows of SEQ, both sides of AND, none of EQUALS,
as ``ColumnGoalStore``.

A trace of ``{?c :p ?x} SEQ {?c :p ?y} FILTER (?x < ?y)``: 3@1 waits; 2@2 finds 3, which is not less; 5@3 finds 3 and 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from etalis_rules import program as ir
from etalis_rules.clock import waits
from etalis_rules.operators import Pairing, relation
from etalis_rules.relations import APART, EITHER_LAST, NEAREST, SAME_INTERVAL, TOGETHER, Op
from etalis_rules.sides import equal_sides

from etalis_py.executors.columns.bands import band_of
from etalis_py.executors.columns.equal_sides import KeyOfSide
from etalis_py.executors.columns.family_columns import Sources
from etalis_py.executors.columns.frames import Bindings, RuleSteps, later, longest_micros
from etalis_py.executors.columns.join_comparisons import Side, split_conditions
from etalis_py.executors.columns.kernels import joining
from etalis_py.executors.columns.kernels.consuming import pick, remove_marked
from etalis_py.executors.columns.kernels.joining import UNBOUNDED, follow
from etalis_py.executors.columns.store import ColumnGoalStore, Keys, spelled_columns
from etalis_py.executors.columns.tables import (
    NO_TIMES,
    SolutionTable,
    canonical,
    concat_tables,
    doubled,
    first_end,
    in_order,
)
from etalis_py.executors.columns.terms import Terms
from etalis_py.kernel.batch import Row
from etalis_py.kernel.goals import goals_table, terms_of, times_of

AT_ONCE = 1 << 20
"""How many pairs are tested at a time if a consuming policy then chooses among them."""
MANY_AT_ONCE = 1 << 22
"""How many pairs are tested at a time if all that pass are taken."""
NO_OPERATORS = np.zeros(0, np.int64)


def kernel_of(op: Op) -> int:
    """The kernels' code for the temporal relation of an operator."""
    if op is Op.AND or op in SAME_INTERVAL:  # for equal intervals nothing is left to test: they are part of the key
        return joining.ANY
    return joining.BEFORE if op in APART else getattr(joining, op.name)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The goals that wait at one side of a node: their store, keys and variables, and the values to be compared."""

    store: ColumnGoalStore
    keys: Keys
    key: KeyOfSide
    side: Side

    def table(self, goals: tuple[np.ndarray, np.ndarray, np.ndarray], terms: Terms) -> pa.RecordBatch:
        """Goals of the store, in the form of stored state."""
        ends, starts, ids = goals
        return goals_table(ends, starts, spelled_columns(ids, terms))

    def take_in(self, goals: pa.RecordBatch, terms: Terms) -> None:
        """Insert goals from stored state."""
        if len(goals):
            self.insert(_table_of(goals, terms), terms)

    def take_out(self, goals: pa.RecordBatch, terms: Terms) -> None:
        """Retract goals given as stored state."""
        table = _table_of(goals, terms)
        keys = self.key.numbers(self.keys, table, terms, create=False)
        self.store.retract(keys, table.end, table.start, table.matrix(), terms)

    def fill(self, goals: Sequence[Row], terms: Terms) -> None:
        """Insert goals that rows held, as tuples: end, start and spellings."""
        end, start, *parts = zip(*goals, strict=True)
        ends = np.array(end, np.int64)
        ids = tuple(terms.intern(list(part)) for part in parts)
        self.insert(
            SolutionTable(ends, ends, np.array(start, np.int64), ids).take(np.argsort(ends, kind="stable")), terms
        )

    def insert(self, table: SolutionTable, terms: Terms) -> None:
        """Insert goals in order of their ends."""
        values, failed, odd = self.side.values(Bindings.of(terms, table, self.key.names))
        keys = self.key.numbers(self.keys, table, terms, create=True)
        keys[failed] = -1
        self.store.odd |= odd
        self.store.insert(keys, table.end, table.start, table.matrix(), values, first_end(table))
        self.store.version += 1

    def emptied(self, terms: Terms) -> Iterator[Row]:
        """Remove the goals and return them in order of their ends."""
        ends, starts, ids = self.store.goals()
        self.store.clear()
        columns = [terms.spellings(column) for column in ids.T]
        return zip(ends.tolist(), starts.tolist(), *columns, strict=True)


def _table_of(goals: pa.RecordBatch, terms: Terms) -> SolutionTable:
    ends, starts = times_of(goals)
    return SolutionTable(ends, ends, starts, tuple(terms.intern(column) for column in terms_of(goals)))


class JoinOperator:
    """One join node and its goals."""

    asks = False
    """Whether a pair must also pass ``_answered``, a test that subclasses add to the steps of the rule."""

    def __init__(
        self, node: Pairing, terms: Terms, sources: Sources, watch: Callable[[list[SolutionTable]], None]
    ) -> None:
        """``watch`` is called with the pairs so far, between portions of very many; it raises if they are too many."""
        assert node.right is not None
        self.node = node
        self.terms = terms
        self._watch = watch
        self.left, self.right = node.left.columns, node.right.columns
        self.compared, rest = split_conditions(node.steps, self.left, self.right, node.certain)
        exact = (ir.Duration(node.bound),) if node.bound is not None and node.bound.months else ()
        self.rest = RuleSteps((*exact, *rest), sources)
        self.asked = RuleSteps((*exact, *self.compared.conditions(), *rest), sources)
        self.codes = self.compared.codes
        self.band = band_of(self.compared.operators)
        self.op = relation(node)
        self.relation = kernel_of(self.op)
        longest = longest_micros(node.bound)
        self.bound = UNBOUNDED if longest is None else longest
        self.longest = longest_micros(waits(node))
        self.lasting = sources.longest(waits(node))
        self.key_left = [self.left.index(name) for name in node.certain]
        self.key_right = [self.right.index(name) for name in node.certain]
        equal = equal_sides(node)
        self.by_left = KeyOfSide(self.left, self.key_left, [e for e, _ in equal])
        self.by_right = KeyOfSide(self.right, self.key_right, [e for _, e in equal])
        self.unsure = sorted((set(self.left) & set(self.right)) - set(node.certain))
        self.latest = node.policy == "recent"
        self.most = MANY_AT_ONCE
        self.clear()

    def clear(self) -> None:
        """Forget all goals."""
        equal = len(self.by_left.equal)
        self.keys = Keys(len(self.node.certain) + equal, others=equal)
        count = len(self.compared.lefts)
        self.goals = ColumnGoalStore(self.keys, len(self.left), count, self.longest, self.lasting)
        self.awaited = ColumnGoalStore(self.keys, len(self.right), count, self.longest, self.lasting)
        mirrored = self.compared.mirrored()
        self.awaiting, self.later = mirrored.waiting(), mirrored.arriving()
        self.of_left, self.of_right = self.compared.waiting(), self.compared.arriving()

    def sides(self) -> dict[str, Waiting]:
        """The waiting goals, by side: G is the left, H the right."""
        if self.op in TOGETHER:
            return {}
        left = Waiting(self.goals, self.keys, self.by_left, self.of_left)
        if self.op not in EITHER_LAST:
            return {"G": left}
        return {"G": left, "H": Waiting(self.awaited, self.keys, self.by_right, self.awaiting)}

    # --- a batch ---

    def advance(self, left: SolutionTable, right: SolutionTable) -> SolutionTable:
        """The new pairs."""
        if not len(left) and not len(right):
            return SolutionTable.empty(len(self.node.head))
        if self.op in EITHER_LAST:
            return self._mutual(left, right)
        if self.op in TOGETHER:
            return self._together(left, right)
        if self.op in NEAREST:
            return self._followed(left, right)
        return self._in_sequence(left, right)

    def _in_sequence(self, left: SolutionTable, right: SolutionTable) -> SolutionTable:
        if self.node.policy:
            left, right = canonical(left, self.terms), canonical(right, self.terms)
        keys = self.by_left.numbers(self.keys, left, self.terms, create=True)
        sought = self.by_right.numbers(self.keys, right, self.terms, create=False)
        return self._joined(self.goals, self.relation, left, keys, right, sought)

    def _followed(self, left: SolutionTable, right: SolutionTable) -> SolutionTable:
        """The pairs of a nearest relation: a row drops all goals that it follows, even if the pair fails a test."""
        keys = self.by_left.numbers(self.keys, left, self.terms, create=True)
        sought = self.by_right.numbers(self.keys, right, self.terms, create=False)
        x_values, x_failed, x_odd = self._values(self.of_left, left, self.left)
        keys[x_failed] = -1
        store = self.goals
        store.odd |= x_odd
        if store.changes is not None:
            store.changes.whole = True
        store.reserve(keys, first_end(left, right))
        goals, rows = (np.empty(len(left) + len(right) + 16, np.int64) for _ in range(2))
        arriving = left.end, left.start, left.matrix(), x_values, sought, right.end, right.start, store.arena
        at = (0, 0, 0)
        while (at := follow(*at, keys, *arriving, goals, rows))[:2] != (len(left), len(right)):
            goals, rows = doubled(goals), doubled(rows)
        goals, rows = goals[: at[2]], rows[: at[2]]
        frame = self._frame(store.ends[goals], store.starts[goals], store.terms[goals], right, rows)
        if self.bound < UNBOUNDED:
            frame = frame.keep(frame.end - frame.start <= self.bound)
        return self.asked.applied(frame).table(self.node.head)

    def _together(self, left: SolutionTable, right: SolutionTable) -> SolutionTable:
        if not len(left) or not len(right):
            return SolutionTable.empty(len(self.node.head))
        if self.node.policy:
            left, right = canonical(left, self.terms), canonical(right, self.terms)
        intervals = self.op in SAME_INTERVAL
        numbers = Keys(len(self.key_left) + 1 + intervals, np.int64)
        keys = numbers.numbers(timed_keys(left, self.key_left, intervals), create=True)
        sought = numbers.numbers(timed_keys(right, self.key_right, intervals), create=False)
        goals = ColumnGoalStore(numbers, len(self.left), len(self.compared.lefts), None)
        self.of_left, self.of_right = self.compared.waiting(), self.compared.arriving()
        return self._joined(goals, self.relation, left, keys, right, sought)

    def _mutual(self, left: SolutionTable, right: SolutionTable) -> SolutionTable:
        keys = self.by_left.numbers(self.keys, left, self.terms, create=True)
        sought = self.by_right.numbers(self.keys, right, self.terms, create=True)
        x_values, x_failed, x_odd = self._values(self.of_left, left, self.left)
        y_values, y_failed, y_odd = self._values(self.of_right, right, self.right)
        keys[x_failed] = -1
        sought[y_failed] = -1
        backward, _, of_later = self._values(self.later, left, self.left)
        forward, _, of_awaited = self._values(self.awaiting, right, self.right)
        x_odd |= of_later
        y_odd |= of_awaited
        fast = self._fast(x_odd or y_odd or self.awaited.odd)
        late = self._pairs(
            self.awaited, self.relation, right=left, sought=keys, values=backward, fast=fast, mirrored=True
        )
        self.goals.odd |= x_odd
        self.goals.insert(keys, left.end, left.start, left.matrix(), x_values, first_end(left, right))
        early = self._pairs(
            self.goals, self.relation, right=right, sought=sought, values=y_values, fast=fast, mirrored=False
        )
        self.awaited.odd |= y_odd
        self.awaited.insert(sought, right.end, right.start, right.matrix(), forward, first_end(left, right))
        head = self.node.head
        return in_order(concat_tables([early, late], len(head)))

    # --- pairs ---

    def _values(self, side: Side, table: SolutionTable, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray, bool]:
        return side.values(Bindings.of(self.terms, table, names))

    def _fast(self, odd: bool) -> bool:
        """Whether the kernels can decide all comparisons: each compares values of one sort, none of them odd."""
        one = (self.of_left.sorts == self.of_right.sorts) | (self.of_left.sorts == 0) | (self.of_right.sorts == 0)
        return not odd and not self.goals.odd and bool(one.all())

    def _joined(
        self,
        store: ColumnGoalStore,
        relation: int,
        left: SolutionTable,
        keys: np.ndarray,
        right: SolutionTable,
        sought: np.ndarray,
    ) -> SolutionTable:
        x_values, x_failed, x_odd = self._values(self.of_left, left, self.left)
        y_values, y_failed, y_odd = self._values(self.of_right, right, self.right)
        keys[x_failed] = -1
        sought[y_failed] = -1
        fast = self._fast(x_odd or y_odd or store.odd)
        store.odd |= x_odd
        terms = left.matrix()
        if not len(right):
            store.insert(keys, left.end, left.start, terms, x_values, first_end(left))
            return SolutionTable.empty(len(self.node.head))
        if not len(left) and not (sought >= 0).any():
            return SolutionTable.empty(len(self.node.head))
        if self.node.policy and fast and not (self.rest.steps or self.unsure or self.asks):
            return self._consumed(store, relation, left, keys, terms, x_values, right, sought, y_values)
        store.insert(keys, left.end, left.start, terms, x_values, first_end(left, right))
        if self.node.policy:
            return self._picked(store, relation, right, sought, y_values, fast)
        return self._pairs(store, relation, right=right, sought=sought, values=y_values, fast=fast, mirrored=False)

    def _pairs(
        self,
        store: ColumnGoalStore,
        relation: int,
        *,
        right: SolutionTable,
        sought: np.ndarray,
        values: np.ndarray,
        fast: bool,
        mirrored: bool,
    ) -> SolutionTable:
        """All pairs of goals with these rows that pass the steps.

        ``mirrored``: the rows belong to the left side of the node, and the goals to the right.  Very many candidates
        are tested in portions.
        """
        parts: list[SolutionTable] = []
        for table, _, goals, rows in self._matched(store, relation, right, sought, values, fast, self.most):
            parts.append(self._tested(store, table, goals, rows, fast, mirrored).table(self.node.head))
            if len(table) < len(right):
                self._watch(parts)
        return concat_tables(parts, len(self.node.head))

    def _matched(
        self,
        store: ColumnGoalStore,
        relation: int,
        table: SolutionTable,
        sought: np.ndarray,
        values: np.ndarray,
        fast: bool,
        most: int,
    ) -> Iterator[tuple[SolutionTable, np.ndarray, np.ndarray, np.ndarray]]:
        """Portions of the rows: a table, the keys that its rows look up, and for each pair its goal and its row."""
        codes = self.codes if fast else NO_OPERATORS
        asking = table.end, table.start, values
        if fast and self.band is not None:
            banded = store.banded(self.band, relation, sought, asking, self.bound, codes, most)
            if banded is not None:
                yield table, sought, *banded
                return
        for some, goals, rows in store.pairs(relation, sought, asking, self.bound, codes, most, self._since(table)):
            whole = some.stop - some.start == len(table)
            yield table if whole else table.take(some), sought[some], goals, rows  # type: ignore[arg-type]

    def _since(self, table: SolutionTable) -> np.ndarray:
        """When the goals of each row ended at the earliest, or nothing: subclasses may know it."""
        return NO_TIMES

    def _tested(
        self,
        store: ColumnGoalStore,
        table: SolutionTable,
        goals: np.ndarray,
        rows: np.ndarray,
        fast: bool,
        mirrored: bool,
    ) -> Bindings:
        """The pairs of goals and rows of a table that pass all tests, as solutions."""
        frame = self._frame(store.ends[goals], store.starts[goals], store.terms[goals], table, rows, mirrored)
        frame = (self.rest if fast else self.asked).applied(frame)
        if self.asks:
            frame = self._answered(frame, store.ends[goals[frame.rows]], table.start[rows[frame.rows]])
        return frame

    def _answered(self, pairs: Bindings, ended: np.ndarray, begins: np.ndarray) -> Bindings:
        """The pairs that pass the test of a subclass, given the ends of the left and the starts of the right."""
        return pairs

    def _frame(
        self,
        ends: np.ndarray,
        starts: np.ndarray,
        goals: np.ndarray,
        right: SolutionTable,
        rows: np.ndarray,
        mirrored: bool = False,
    ) -> Bindings:
        """Pairs of goals and rows under the names of this node."""
        waiting, arriving = (self.right, self.left) if mirrored else (self.left, self.right)
        columns = {name: goals[:, i].copy() for i, name in enumerate(waiting)}
        end = np.maximum(ends, right.end[rows])
        start = np.minimum(starts, right.start[rows])
        others = {name: column[rows] for name, column in zip(arriving, right.columns, strict=True)}
        return compatible(Bindings(self.terms, end, end, start, columns, np.arange(len(rows))), others, self.unsure)

    # --- consumption ---

    def _consumed(
        self,
        store: ColumnGoalStore,
        relation: int,
        left: SolutionTable,
        keys: np.ndarray,
        terms: np.ndarray,
        x_values: np.ndarray,
        right: SolutionTable,
        sought: np.ndarray,
        y_values: np.ndarray,
    ) -> SolutionTable:
        """Let the kernel choose one goal for each row; this is only right if no pair needs a further test."""
        arriving, asking = (left.end, left.start, terms, x_values), (right.end, right.start, y_values)
        rows, ends, starts, goals = store.taken(
            relation, self.latest, keys, arriving, sought, asking, self.bound, self.codes
        )
        if store.changes is not None:
            store.changes.take_out(ends, starts, goals, self.terms)
        return self._frame(ends, starts, goals, right, rows).table(self.node.head)

    def _picked(
        self,
        store: ColumnGoalStore,
        relation: int,
        right: SolutionTable,
        sought: np.ndarray,
        y_values: np.ndarray,
        fast: bool,
    ) -> SolutionTable:
        """Choose one goal for each row among the pairs that pass all tests, in portions."""
        parts = []
        for table, keys, goals, rows in self._matched(store, relation, right, sought, y_values, fast, AT_ONCE):
            frame = self._tested(store, table, goals, rows, fast, mirrored=False)
            chosen = np.empty(len(frame), np.int64)
            taken = np.zeros(len(store.ends), np.bool_)
            pairs = goals[frame.rows], rows[frame.rows]
            chosen = chosen[: pick(self.latest, *pairs, taken, chosen)]
            touched, gone = keys[pairs[1][chosen]], pairs[0][chosen]
            if store.changes is not None:
                store.changes.take_out(store.ends[gone], store.starts[gone], store.terms[gone], self.terms)
            remove_marked(touched, taken, *store.arena)
            parts.append(frame.keep(chosen).table(self.node.head))
        return concat_tables(parts, len(self.node.head))


class DeadlineJoinOperator(JoinOperator):
    """``A SEQ OPTIONAL {B} WITHIN d`` where there is a B: a SEQ whose right side ends at most d after the left one."""

    asks = True

    def _answered(self, pairs: Bindings, ended: np.ndarray, begins: np.ndarray) -> Bindings:
        assert self.node.deadline is not None
        return pairs.keep(pairs.end <= later(ended, self.node.deadline))


def compatible(pairs: Bindings, others: dict[str, np.ndarray], unsure: Sequence[str]) -> Bindings:
    """Add the other side's columns to pairs; drop pairs whose sides bind an ``unsure`` variable differently."""
    agreed: np.ndarray | None = None
    columns = dict(pairs.columns)
    for name, other in others.items():
        if name in unsure:
            one = columns[name]
            agree = (one == other) | (one == 0) | (other == 0)
            agreed = agree if agreed is None else agreed & agree
            other = np.where(one != 0, one, other)
        columns[name] = other
    frame = replace(pairs, columns=columns)
    return frame if agreed is None or agreed.all() else frame.keep(agreed)


def timed_keys(table: SolutionTable, key: list[int], intervals: bool = True) -> np.ndarray:
    """Key and end of each row, and with ``intervals`` its start."""
    rows = np.empty((len(table), len(key) + 1 + intervals), np.int64)
    for i, column in enumerate(key):
        rows[:, i] = table.columns[column]
    rows[:, len(key)] = table.end
    if intervals:
        rows[:, -1] = table.start
    return rows
