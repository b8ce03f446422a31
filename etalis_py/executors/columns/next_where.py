"""NEXT with a condition on both sides, over a batch: each goal goes through the rows of its key until one satisfies it.

``{A} NEXT {B FILTER (c)}`` pairs each A with the solutions of B of the first instant in which one starts after the end
of A and satisfies c.  All goals look at one row first, then those that have found none at the next four, sixteen and so
on, so that few passes test few more pairs than one goal after the other would.

If the condition is a single comparison of numbers or of times, and the rows are points, the kernel ``first_above`` goes
through the rows instead: each takes the goals below it.

Cost: for each goal the rows up to its next one, at most four times as many; with the kernel, some nanoseconds for each
row and each goal.  State: the goals without a next one, with the values that the kernel compares.

A trace of ``{?c :p ?x} NEXT {?c :p ?y FILTER (?y > ?x)}``: 12@1, 10@2, 11@3 → [2, 3]; 15@4 → [1, 4], [3, 4].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from etalis_rules import program as ir
from etalis_rules.steps import conditions_of

from etalis_py.executors.columns.family_columns import Sources
from etalis_py.executors.columns.frames import Bindings, RuleSteps
from etalis_py.executors.columns.join_comparisons import Compared, Side, split_conditions
from etalis_py.executors.columns.joins import AT_ONCE, JoinOperator
from etalis_py.executors.columns.kernels.consuming import remove_marked
from etalis_py.executors.columns.kernels.first_above import first_above
from etalis_py.executors.columns.kernels.joining import LESS, UNBOUNDED
from etalis_py.executors.columns.kernels.ordering import distinct_numbers
from etalis_py.executors.columns.kernels.windows import arrange
from etalis_py.executors.columns.tables import SolutionTable, first_end, ranges
from etalis_py.executors.columns.terms import Terms

_MORE = 4
"""How many times as many rows each pass looks at as the one before it."""


@dataclass(frozen=True, slots=True)
class Looking:
    """The goals that look for their next row: those that waited, then those of the batch."""

    keys: np.ndarray
    ends: np.ndarray
    starts: np.ndarray
    terms: np.ndarray
    values: np.ndarray


class _Lasting(Side):
    """The values that goals are compared by; one whose value is an error has NaN, and waits as any other does."""

    def values(self, frame: Bindings) -> tuple[np.ndarray, np.ndarray, bool]:
        values, failed, odd = super().values(frame)
        values[failed] = np.nan
        return values, np.zeros_like(failed), odd


class NextWhereOperator(JoinOperator):
    """The operator of a NEXT whose condition reads both sides."""

    def __init__(
        self, node: ir.Join, terms: Terms, sources: Sources, watch: Callable[[list[SolutionTable]], None]
    ) -> None:
        super().__init__(node, terms, sources, watch)
        exact = (ir.Duration(node.bound),) if node.bound is not None else ()
        self._after = RuleSteps((*exact, *node.steps), sources)
        self._condition = conditions_of(node.condition)
        compared, rest = split_conditions(node.condition, self.left, self.right, node.certain)
        alone = not rest and not self.unsure and compared.codes.tolist() == [LESS]
        self.compared = compared if alone else Compared((), (), ())
        self.codes = self.compared.codes
        self.clear()

    def clear(self) -> None:
        super().clear()
        self.of_left, self.of_right = (
            _Lasting(side.expressions, side.signs, side.nexts) for side in (self.of_left, self.of_right)
        )

    def _followed(self, left: SolutionTable, right: SolutionTable) -> SolutionTable:
        """The pairs of a batch; goals that have found their next row go, those of this batch that have not stay."""
        store = self.goals
        keys = self.by_left.numbers(self.keys, left, self.terms, create=True)
        sought = self.by_right.numbers(self.keys, right, self.terms, create=False)
        values, _, odd = self._values(self.of_left, left, self.left)
        asking, _, odd_asking = self._values(self.of_right, right, self.right)
        store.odd |= odd
        if store.changes is not None:
            store.changes.whole = True
        store.fit()
        asked = distinct_numbers(sought[sought >= 0])
        waiting, places = store.goals_of(asked)
        arrived = keys, left.end, left.start, left.matrix(), values
        both = zip((*waiting, store.values[places]), arrived, strict=True)
        looking = Looking(*(np.concatenate(parts) for parts in both))
        fast = len(self.codes) > 0 and self._fast(odd_asking) and bool((right.start == right.end).all())
        goals, rows = self._pairs_of(looking, sought, right, asking[:, 0] if fast else None)
        found = np.zeros(len(looking.keys), np.bool_)
        found[goals] = True
        taken = np.zeros(len(store.ends), np.bool_)
        taken[places[found[: len(places)]]] = True
        remove_marked(asked, taken, *store.arena)
        keys[found[len(places) :]] = -1
        store.insert(keys, left.end, left.start, left.matrix(), values, first_end(left, right))
        frame = self._frame(looking.ends[goals], looking.starts[goals], looking.terms[goals], right, rows)
        return self._after.applied(frame).table(self.node.head)

    def _pairs_of(
        self, looking: Looking, sought: np.ndarray, right: SolutionTable, asking: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Each goal that finds its next rows, with each of these, in order of the rows.

        ``asking`` are the values of the rows, if the kernel can compare those of the goals with them.
        """
        bounds, order = np.zeros(self.keys.count + 2, np.int64), np.empty(int((sought >= 0).sum()), np.int64)
        known = np.flatnonzero(sought >= 0)
        arrange(sought[known], bounds, order)
        order, size = known[order], len(right) + 1
        placed = sought[order] * size + order  # rows by key and then by time, as one number

        def from_time(times: np.ndarray) -> np.ndarray:
            """The place of the first row of each goal's key that ends after a time."""
            return np.searchsorted(placed, looking.keys * size + np.searchsorted(right.end, times, "right"))

        longest = UNBOUNDED if self.goals.longest is None else self.goals.longest
        if asking is not None:
            goals, places = _first_above(looking, right, longest, bounds, order, asking)
        else:
            at, beyond = from_time(looking.ends), bounds[looking.keys + 1]
            if longest < UNBOUNDED:
                beyond = np.minimum(beyond, from_time(looking.ends + longest))
            goals, places = self._first_places(looking, right, order, at, beyond)
        # The other rows of the key in the same instant are its next ones, too.
        ends = right.end[order]
        after = np.searchsorted(right.end, ends[places], "right")
        instant = np.searchsorted(placed, looking.keys[goals] * size + after)
        others, each = places + 1, instant - places - 1
        tied, more = np.repeat(goals, each), ranges(others, each)
        true = self._holds(looking, right, tied, order[more])
        goals, rows = np.concatenate((goals, tied[true])), order[np.concatenate((places, more[true]))]
        arranged = np.lexsort((goals, rows))
        return goals[arranged], rows[arranged]

    def _first_places(
        self, looking: Looking, right: SolutionTable, order: np.ndarray, at: np.ndarray, beyond: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The goals that find a row, and the place of the first one in ``order``, from ``at`` and before ``beyond``."""
        goals, places = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        some = np.flatnonzero(at < beyond)
        pending = [(some, at[some], 1)]
        while pending:
            some, first, size = pending.pop()
            if len(some) > 1 and len(some) * size > AT_ONCE:
                half = len(some) // 2
                pending += [(some[half:], first[half:], size), (some[:half], first[:half], size)]
                continue
            each = np.minimum(size, beyond[some] - first)
            tested, asking = ranges(first, each), np.repeat(np.arange(len(some)), each)
            true = np.flatnonzero(self._holds(looking, right, some[asking], order[tested]))
            satisfied, index = np.unique(asking[true], return_index=True)
            goals.append(some[satisfied])
            places.append(tested[true[index]])
            rest = np.ones(len(some), np.bool_)
            rest[satisfied] = False
            rest &= first + each < beyond[some]
            if rest.any():
                pending.append((some[rest], (first + each)[rest], _MORE * size))
        return np.concatenate(goals), np.concatenate(places)

    def _holds(self, looking: Looking, right: SolutionTable, goals: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """A mask of the pairs in which the row starts after the goal has ended, and which satisfy the condition."""
        holds = looking.ends[goals] < right.start[rows]
        for e in self._condition:
            here = np.flatnonzero(holds)
            some, others = goals[here], rows[here]
            pairs = self._frame(looking.ends[some], looking.starts[some], looking.terms[some], right, others)
            holds[here] = pairs.holds(e)
        return holds


def _first_above(
    looking: Looking, right: SolutionTable, longest: int, bounds: np.ndarray, order: np.ndarray, asking: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The goals that find a row with a greater value, and the place of the first one in ``order``."""
    goals = np.argsort(looking.keys, kind="stable")
    heap, places = np.empty(len(goals), np.int64), np.empty(len(goals), np.int64)
    values = np.ascontiguousarray(looking.values[:, 0])
    first_above(
        goals, looking.keys, looking.ends, values, longest, bounds, order, right.end, asking.copy(), heap, places
    )
    found = np.flatnonzero(places >= 0)
    return found, places[found]
