"""Look-ups for a whole column of events: in the background, and in the parameters of a family of queries.

Each query of a family is a row of its relation of parameters.  For each way in which a rule looks into a relation there
is a sorted copy of it (an access path): rows ordered by the ids of the constants that an event provides, then by the
number that the event is compared with.  It is rebuilt when the relation has changed.  A look-up costs one hash and, if
a number is compared, a binary search.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.columns.background_lookups import PatternAnswers
from etalis_py.executors.columns.kernels.computing import FAILED
from etalis_py.executors.columns.kernels.parsing import DECIMAL, DOUBLE, INTEGER
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.columns.vectors import Vector
from etalis_py.executors.rows.run.family_relation import Relation, as_float
from etalis_py.sparql import BackgroundSource

_NUMERIC = (INTEGER, DECIMAL, DOUBLE)
FAR = 64
"""Constants are looked up in an array over all terms if it is at most this many times longer than their number."""


class FamilyColumns:
    """The queries of a family at one version of its relation, in columns, with their constants as terms."""

    def __init__(self, relation: Relation, terms: Terms) -> None:
        self.version = relation.version
        self.rows = list(relation.rows.values())
        self._terms, self._place = terms, relation.place
        self._columns: dict[int, np.ndarray] = {}
        self._by_name: np.ndarray | None = None
        self.numbered = np.array([row[relation.place] for row in self.rows], np.int64)
        """The places of the queries in the program."""
        self.shown = np.zeros(len(self.rows), np.bool_)
        """The queries whose reports can be read."""

    def column(self, place: int) -> np.ndarray:
        """The terms at this place of each row."""
        column = self._columns.get(place)
        if column is None:
            column = self._columns[place] = self._terms.intern([row[place] for row in self.rows])
        return column

    def numbers(self, place: int) -> np.ndarray:
        """The numbers at this place of each row, as doubles."""
        return np.array([as_float(row[self._place + place]) for row in self.rows], np.float64)

    def of_names(self, names: np.ndarray) -> np.ndarray:
        """The row of the query with each of these names (as term ids); -1 if there is no such query."""
        if self._by_name is None:
            own = self.column(0)
            self._by_name = np.full(int(own.max(initial=0)) + 1, -1, np.int64)
            self._by_name[own] = np.arange(len(own))
        known = names < len(self._by_name)
        return np.where(known, self._by_name[np.where(known, names, 0)], -1)

    def mark_terms(self, marked: np.ndarray) -> None:
        """Mark the terms of all rows."""
        for column in self._columns.values():
            marked[column] = True

    def renumber(self, renumbered: np.ndarray) -> None:
        """Replace the ids of terms by new ones."""
        self._columns = {place: renumbered[column] for place, column in self._columns.items()}
        self._by_name = None


class RelationAccess:
    """The rows of a relation, as a step looks them up.

    A single constant is looked up in an array over the terms if that is not much larger than the relation, several
    constants in a hash table.
    """

    def __init__(self, roster: FamilyColumns, step: ir.Parameters) -> None:
        self.version = roster.version
        columns = {place: roster.column(place) for _, place in (*step.equal, *step.binds)}
        self.keys = Keys(len(step.equal))
        constants = np.empty((len(roster.rows), len(step.equal)), np.int32)
        for i, (_, place) in enumerate(step.equal):
            constants[:, i] = columns[place]
        numbers = self.keys.numbers(constants, create=True)
        self.compared = np.zeros(len(roster.rows))
        for _, _, place in step.compared:
            self.compared = roster.numbers(place)
        order = np.lexsort((self.compared, numbers))
        self.compared = self.compared[order]
        self.columns = {place: column[order] for place, column in columns.items()}
        # An extra key without rows, after all others, stands for constants that no query has.
        self.starts = np.searchsorted(numbers[order], np.arange(self.keys.count + 2), "left")
        self._near: np.ndarray | None = None
        self._draw_near()

    def _draw_near(self) -> None:
        """Make the array from a term to the number of its key, unless it would be too long."""
        self._near = None
        if self.keys.width == 1 and self.keys.count:
            terms = self.keys.rows()[:, 0]
            highest = int(terms.max())
            if highest < FAR * (self.keys.count + (1 << 10)):  # the addend allows an array for few constants, too
                self._near = np.full(highest + 2, self.keys.count, np.int32)
                self._near[terms] = np.arange(self.keys.count)

    def among(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each row of constants, where the queries with these constants begin and end."""
        if self._near is None:
            numbers = self.keys.numbers(keys, create=False)
            numbers = np.where(numbers < 0, self.keys.count, numbers)
        else:
            numbers = self._near[np.minimum(keys[:, 0], len(self._near) - 1)]
        return self.starts[numbers], self.starts[numbers + 1]

    def first_above(self, begins: np.ndarray, ends: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The place of the first number above the value in each range of rows, or the end of the range."""
        low, high = begins.copy(), ends.copy()
        while (open_ := low < high).any():
            middle = (low + high) >> 1
            right = open_ & (self.compared[np.where(open_, middle, 0)] <= values)
            low = np.where(right, middle + 1, low)
            high = np.where(open_ & ~right, middle, high)
        return low

    def renumber(self, renumbered: np.ndarray) -> None:
        """Replace the ids of terms by new ones."""
        self.columns = {place: renumbered[column] for place, column in self.columns.items()}
        self.keys.retain(np.ones(self.keys.count, np.bool_), renumbered)
        self._draw_near()


@dataclass(slots=True)
class Sources:
    """The background and the relations of parameters, as the steps of all rules look them up."""

    terms: Terms
    background: BackgroundSource | None
    relations: Mapping[str, Relation] = field(default_factory=dict)
    _answers: dict[tuple[alg.Pattern, tuple[str, ...], tuple[str, ...]], PatternAnswers] = field(default_factory=dict)
    _known: dict[ir.Parameters, RelationAccess] = field(default_factory=dict)
    _rosters: dict[str, FamilyColumns] = field(default_factory=dict)

    def answers(self, pattern: alg.Pattern, known: tuple[str, ...], wanted: tuple[str, ...]) -> PatternAnswers:
        """The answers of the current background to a pattern."""
        assert self.background is not None, "what looks something up has a background"
        kept = self._answers.get((pattern, known, wanted))
        if kept is None or not kept.stand:
            kept = PatternAnswers(pattern, known, wanted, self.terms, self.background)
            self._answers[pattern, known, wanted] = kept
        return kept

    def longest(self, bound: alg.Bound | None) -> list[int] | None:
        """The longest window of a family's queries: the only item of a list that the relation keeps up to date."""
        parameter = ir.parameter_of(bound)
        return None if parameter is None else self.relations[parameter[0]].longest(parameter[1])

    def roster(self, family: str) -> FamilyColumns:
        """The current queries of a family."""
        relation = self.relations[family]
        known = self._rosters.get(family)
        if known is None or known.version != relation.version:
            known = self._rosters[family] = FamilyColumns(relation, self.terms)
        return known

    def access(self, step: ir.Parameters) -> RelationAccess:
        """The access path to the current parameters."""
        known = self._known.get(step)
        if known is None or known.version != self.relations[step.family].version:
            known = self._known[step] = RelationAccess(self.roster(step.family), step)
        return known

    def mark_terms(self, marked: np.ndarray) -> None:
        """Mark the terms of all parameters."""
        for roster in self._rosters.values():
            roster.mark_terms(marked)

    def renumber(self, renumbered: np.ndarray) -> None:
        """Replace the ids of terms by new ones."""
        self._answers.clear()
        for roster in self._rosters.values():
            roster.renumber(renumbered)
        for access in self._known.values():
            access.renumber(renumbered)

    def matching(
        self, step: ir.Parameters, columns: Mapping[str, np.ndarray], lengths: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The solutions that may match queries, and for each where the rows of these queries begin and how many follow.

        ``lengths``: how long each solution lasts.  Numbers are compared as doubles, so the ranges are made one double
        wider than needed, and the comparison itself is tested again afterwards.
        """
        access = self.access(step)
        keys = np.empty((len(lengths), len(step.equal)), np.int32)
        for i, (name, _) in enumerate(step.equal):
            keys[:, i] = columns[name]
        begins, ends = access.among(keys)
        chosen = np.flatnonzero(ends > begins)
        begins, ends = begins[chosen], ends[chosen]
        for name, op, _ in step.compared:
            if name:
                value = Vector.of_terms(self.terms, columns[name][chosen])
                ends = np.where(value.kinds == FAILED, begins, ends)
                numeric, doubles = np.isin(value.kinds, _NUMERIC), value.doubles
            else:
                numeric, doubles = np.ones(len(chosen), np.bool_), lengths[chosen].astype(np.float64)
            if op in (">", ">="):
                ends = np.where(numeric, access.first_above(begins, ends, np.nextafter(doubles, np.inf)), ends)
            else:
                below = np.nextafter(np.nextafter(doubles, -np.inf), -np.inf)
                begins = np.where(numeric, access.first_above(begins, ends, below), begins)
        return chosen, begins, ends - begins

    def bound(self, step: ir.Parameters, begins: np.ndarray, each: np.ndarray) -> dict[str, np.ndarray]:
        """The variables that the step binds: their terms in ``each`` rows from ``begins`` on, one after another."""
        access = self.access(step)
        picked = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each - begins, each)
        return {name: access.columns[place][picked] for name, place in step.binds}
