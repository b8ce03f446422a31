"""A rule that feeds one of its own leaves through one join: the closure of a relation in time, over a batch.

    CONSTRUCT { ?x :tc ?z } WHERE { { ?x :tc ?y } SEQ { ?y :edge ?z } }

The rows of the leaf are those that come from elsewhere and, for every pair of the join, the triple that the rule makes
from it in the same instant; within an instant they form a set.  The leaf is the left of the join, its right, or both.

Cost: for each row of a side, a look-up of its key; for each pair, some nanoseconds.  State: that of the join.

A trace of the rule above, with ``?x :edge ?y`` as the first path: a→b@1 gives (a, b); b→c@2 gives (b, c) and with
(a, b) the path (a, c) [1, 2].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.operators import is_leaf
from etalis_rules.relations import EITHER_LAST

from etalis_py.executors.columns.family_columns import Sources
from etalis_py.executors.columns.joins import JoinOperator
from etalis_py.executors.columns.kernels.keys import slots_for
from etalis_py.executors.columns.kernels.recursion import FIXED, NO_KEYS, NO_ROWS, OF_LEFT, OF_RIGHT, recur
from etalis_py.executors.columns.network import Loop
from etalis_py.executors.columns.store import ColumnGoalStore
from etalis_py.executors.columns.tables import SolutionTable, first_end
from etalis_py.executors.columns.terms import Terms


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of the join: whether it is the leaf, and the goals that wait there."""

    loops: bool
    store: ColumnGoalStore
    key: list[int]


class LoopOperator(JoinOperator):
    """The join of a rule that feeds its own leaf: it evaluates the whole recursion."""

    def __init__(
        self,
        loop: Loop,
        nodes: dict[str, ir.Node],
        output: ir.Output,
        terms: Terms,
        sources: Sources,
        watch: Callable[[list[SolutionTable]], None],
    ) -> None:
        super().__init__(loop.joined, terms, sources, watch)
        self.loop = loop
        self.leaf = loop.reader
        self._origins = {place: self._source(term, nodes, output) for place, term in _ends(loop.template)}
        self._always_subject = self._begins_with_subject(nodes)

    # --- what a pair makes ---

    def _source(self, term: alg.Var | alg.Const, nodes: dict[str, ir.Node], output: ir.Output) -> tuple[int, int]:
        """The origin of a term of the derived triple: constant, left or right, and which column there."""
        variable = alg.variable_of(term)
        if not variable:
            return FIXED, 0
        assert output.source is not None
        name = nodes[output.source.node].head[output.source.columns.index(variable)]
        if self.loop.map:
            (joined,) = ir.refs(nodes[self.loop.map])
            name = self.node.head[joined.columns.index(name)]
        if name in self.left:
            return OF_LEFT, self.left.index(name)
        return OF_RIGHT, self.right.index(name)

    def _begins_with_subject(self, nodes: dict[str, ir.Node]) -> bool:
        """Whether the derived triple's subject is certainly valid: a constant, or already the subject of a triple."""
        where, which = self._origins["subject"]
        if where == FIXED:
            return True
        ref = self.node.left if where == OF_LEFT else self.node.right
        assert ref is not None
        node = nodes[ref.node]
        return is_leaf(node) and node.subject == alg.Var(node.head[which])

    def _sources(self) -> np.ndarray:
        """For subject and object: its origin, which term, the term it has to be (or −1), and its column (or −1)."""
        rows = np.empty((2, 4), np.int64)
        for i, (place, position) in enumerate(_ends(self.leaf)):
            where, which = self._origins[place]
            if where == FIXED:
                which = self.terms.id_of(getattr(self.loop.template, place).term)
            constant = alg.constant_of(position)
            wanted = self.terms.id_of(constant) if constant else -1
            column = -1 if constant else self.leaf.head.index(alg.variable_of(position))
            rows[i] = where, which, wanted, column
        return rows

    def _allowed(self) -> np.ndarray:
        """A mask of the terms that are valid as a subject (IRIs and blank nodes); empty if no test is needed."""
        if self._always_subject:
            return np.zeros(0, np.bool_)
        ids = np.arange(self.terms.count)
        return self.terms.are_iris(ids) | (self.terms.first_bytes(ids) == ord("_"))

    # --- a batch ---

    def closed(self, given: SolutionTable, other: SolutionTable, most: int) -> tuple[SolutionTable, SolutionTable]:
        """All rows of the leaf and all pairs of the join.

        ``given`` are the rows of the leaf that come from elsewhere, ``other`` is the other side of the join.  It
        stops after an instant with more pairs than ``most``.
        """
        node = self.node
        assert node.right is not None
        left = _Side(node.left.node == self.loop.leaf, self.goals, self.key_left)
        right = _Side(node.right.node == self.loop.leaf, self.awaited, self.key_right)
        self.goals.fit()
        self.awaited.fit()
        every, of_leaf, pairs, times = self._recurred(left.loops, right.loops, given, other, most)
        whole = every.take(of_leaf)
        leaf = SolutionTable(whole.at, whole.end, whole.start, whole.columns[: len(self.leaf.head)])
        columns = {
            name: _picked(numbers, every.columns[i], side.store.terms[:, i])
            for names, numbers, side in ((self.right, pairs[:, 1], right), (self.left, pairs[:, 0], left))
            for i, name in enumerate(names)
        }
        ends = times[:, 0].copy()
        joined = SolutionTable(ends, ends, times[:, 1].copy(), tuple(columns[name] for name in node.head))
        now = first_end(given, other)
        for side in (left, right):
            table = leaf if side.loops else other
            if side is left or self.op in EITHER_LAST:
                keys = self.keys.numbers(table.matrix(side.key), create=True)
                values = np.empty((len(table), 0), np.float64)
                side.store.insert(keys, table.end, table.start, table.matrix(), values, now)
        return leaf, joined

    def _recurred(
        self, left_loops: bool, right_loops: bool, given: SolutionTable, other: SolutionTable, most: int
    ) -> tuple[SolutionTable, np.ndarray, np.ndarray, np.ndarray]:
        """All rows, a mask of the leaf's rows, and for each pair its left and right, and its end and start."""
        width = max(len(self.left), len(self.right), len(self.leaf.head))
        ends, starts = (np.concatenate([getattr(table, name) for table in (other, given)]) for name in ("end", "start"))
        of_leaf = np.repeat([False, True], [len(other), len(given)])
        terms = np.zeros((len(ends), width), np.int32)
        for some, table in ((~of_leaf, other), (of_leaf, given)):
            terms[some, : len(table.columns)] = table.matrix()
        order = np.lexsort((of_leaf, ends))
        loops = np.array([left_loops, right_loops])
        keys = np.array([self.key_left, self.key_right], np.int64).reshape(2, -1)
        fixed = (
            loops,
            ends[order],
            starts[order],
            terms[order],
            of_leaf[order],
            keys,
            self._sources(),
            self._allowed(),
        )
        (end, start, columns, leaf), *pairs = in_room(self.relation, self.bound, most, fixed, self.goals, self.awaited)
        every = SolutionTable(end, end, start, tuple(column.copy() for column in columns.T))
        return every, leaf, pairs[0], pairs[1]


def in_room(
    relation: int,
    bound: int,
    most: int,
    fixed: tuple[np.ndarray, ...],
    goals: ColumnGoalStore,
    awaited: ColumnGoalStore,
) -> tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
    """Call the kernel ``recur`` with more and more room until its results fit.

    Returns the rows, the left and right of each pair, and the times of the pairs.  ``fixed`` are the arguments of the
    kernel between ``most`` and the goals.
    """
    width, key_width, count = fixed[3].shape[1], fixed[5].shape[1], len(fixed[1])
    old = (*goals.keys.table(), *_arrays(goals), *_arrays(awaited))
    room = _Room(16 + 4 * count, 16 + 2 * count, 64)
    while True:
        rows = room.of_rows(width)
        pairs, times = np.empty((room.rows, 2), np.int64), np.empty((room.rows, 2), np.int64)
        arguments: list[Any] = [*fixed, *old, *rows, *room.scratch(key_width), pairs, times]
        joined, count = recur(relation, bound, most, *arguments)
        if joined >= 0:
            return tuple(part[:count] for part in rows), pairs[:joined], times[:joined]
        room = room.larger(joined)


@dataclass(frozen=True, slots=True)
class _Room:
    """The room for rows, pairs, partners of one row, keys, and rows of one instant."""

    rows: int
    keys: int
    seen: int

    def larger(self, lacking: int) -> _Room:
        """More room of the kind that ran out: eight times, as the kernel has to begin again each time."""
        if lacking == NO_ROWS:
            return replace(self, rows=8 * self.rows)
        return replace(self, keys=8 * self.keys) if lacking == NO_KEYS else replace(self, seen=8 * self.seen)

    def of_rows(self, width: int) -> tuple[np.ndarray, ...]:
        """Empty arrays for all rows: ends, starts, terms, and a mask of the leaf's rows."""
        times = np.empty(self.rows, np.int64), np.empty(self.rows, np.int64)
        return *times, np.zeros((self.rows, width), np.int32), np.zeros(self.rows, np.bool_)

    def scratch(self, width: int) -> tuple[np.ndarray, ...]:
        """The arguments of the kernel from ``after`` to ``goals``, in its order."""
        return (
            np.empty((self.rows, 2), np.int64),
            np.empty((1, width), np.int32),
            np.empty((self.keys, width), np.int32),
            np.full(slots_for(self.keys), -1, np.int32),
            np.empty(self.keys, np.int64),
            np.empty((self.keys, 2), np.int64),
            np.empty((self.keys, 2), np.int64),
            np.full(2 * self.seen, -1, np.int64),
            np.empty((self.rows, 2), np.int64),
        )


def _ends(triple: ir.Template | ir.Leaf) -> tuple[tuple[str, Any], tuple[str, Any]]:
    """The subject and the object of a triple, each with the name of its place."""
    return ("subject", triple.subject), ("object", triple.object)


def _arrays(store: ColumnGoalStore) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return store.buckets, store.ends, store.starts, store.terms


def _picked(numbers: np.ndarray, column: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """The terms of rows of the batch (0 …) and of goals in the store (−1 − place)."""
    old = numbers < 0
    if not old.any():
        return column[numbers]
    picked = np.empty(len(numbers), np.int32)
    picked[old] = stored[-1 - numbers[old]]
    picked[~old] = column[numbers[~old]]
    return picked
