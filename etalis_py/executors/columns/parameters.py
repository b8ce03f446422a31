"""What steps look up: the background, and the parameters of families, by columns.

A way of access to a relation is a sorted copy of it: rows by the numbers of the constants that an event has, and among
these by the number that it is compared with.  It is made anew when the relation has changed; a look-up costs one hash
and, where a number is compared, a binary search, for a whole column at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from etalis_rules import algebra as alg
from etalis_rules import program as ir

from etalis_py.executors.columns.kernels.computing import FAILED
from etalis_py.executors.columns.kernels.parsing import DECIMAL, DOUBLE, INTEGER
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.columns.vectors import Vector
from etalis_py.executors.rows.families import Relation, as_float
from etalis_py.sparql import BackgroundSource

_NUMERIC = (INTEGER, DECIMAL, DOUBLE)


class Access:
    """The rows of a relation as a step finds them."""

    def __init__(self, relation: Relation, step: ir.Parameters, terms: Terms) -> None:
        self.version = relation.version
        rows = list(relation.rows.values())
        self.columns = {place: terms.intern([row[place] for row in rows]) for _, place in (*step.equal, *step.binds)}
        self.keys = Keys(len(step.equal))
        constants = np.empty((len(rows), len(step.equal)), np.int32)
        for i, (_, place) in enumerate(step.equal):
            constants[:, i] = self.columns[place]
        numbers = self.keys.numbers(constants, create=True)
        self.compared = np.zeros(len(rows))
        for _, _, place in step.compared:
            self.compared[:] = [as_float(row[relation.place + place]) for row in rows]
        order = np.lexsort((self.compared, numbers))
        self.compared = self.compared[order]
        self.columns = {place: column[order] for place, column in self.columns.items()}
        self.ends = np.searchsorted(numbers[order], np.arange(self.keys.count), "right")

    def among(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the rows of these constants begin and end."""
        numbers = self.keys.numbers(keys, create=False)
        known = (numbers >= 0) & (numbers < len(self.ends))
        starts = np.concatenate([[0], self.ends])
        return np.where(known, starts[numbers], 0), np.where(known, starts[numbers + 1], 0)

    def first_above(self, begins: np.ndarray, ends: np.ndarray, values: np.ndarray) -> np.ndarray:
        """In each stretch of rows the place behind the last number that is no greater than a value."""
        low, high = begins.copy(), ends.copy()
        while (open_ := low < high).any():
            middle = (low + high) >> 1
            right = open_ & (self.compared[np.where(open_, middle, 0)] <= values)
            low = np.where(right, middle + 1, low)
            high = np.where(open_ & ~right, middle, high)
        return low

    def renumber(self, renumbered: np.ndarray) -> None:
        """Terms have other ids now."""
        self.columns = {place: renumbered[column] for place, column in self.columns.items()}
        self.keys.retain(np.ones(self.keys.count, np.bool_), renumbered)


@dataclass(slots=True)
class Sources:
    """The background and the relations of parameters that the steps of all rules look into."""

    terms: Terms
    background: BackgroundSource | None
    relations: Mapping[str, Relation] = field(default_factory=dict)
    _known: dict[ir.Parameters, Access] = field(default_factory=dict)

    def longest(self, bound: alg.Bound | None) -> list[int] | None:
        """The longest window of the queries of a family, as it is at any time."""
        return self.relations[bound.family].longest(bound.place) if isinstance(bound, ir.Longest) else None

    def access(self, step: ir.Parameters) -> Access:
        """The way to the parameters, as they are now."""
        relation = self.relations[step.family]
        known = self._known.get(step)
        if known is None or known.version != relation.version:
            known = self._known[step] = Access(relation, step, self.terms)
        return known

    def mark_terms(self, marked: np.ndarray) -> None:
        """Mark the terms of all parameters."""
        for access in self._known.values():
            for column in access.columns.values():
                marked[column] = True

    def renumber(self, renumbered: np.ndarray) -> None:
        """Terms have other ids now."""
        for access in self._known.values():
            access.renumber(renumbered)

    def matching(
        self, step: ir.Parameters, columns: Mapping[str, np.ndarray], lengths: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """For each solution of some columns where the rows begin that it concerns, and how many they are.

        ``lengths``: how long each solution lasts.  Numbers are compared as doubles and with one to spare, so what is
        compared is tested nevertheless.
        """
        access = self.access(step)
        keys = np.empty((len(lengths), len(step.equal)), np.int32)
        for i, (name, _) in enumerate(step.equal):
            keys[:, i] = columns[name]
        begins, ends = access.among(keys)
        for name, op, _ in step.compared:
            if name:
                value = Vector.of_terms(self.terms, columns[name])
                ends = np.where(value.kinds == FAILED, begins, ends)
                numeric, doubles = np.isin(value.kinds, _NUMERIC), value.doubles
            else:
                numeric, doubles = np.ones(len(lengths), np.bool_), lengths.astype(np.float64)
            if op in (">", ">="):
                ends = np.where(numeric, access.first_above(begins, ends, np.nextafter(doubles, np.inf)), ends)
            else:
                below = np.nextafter(np.nextafter(doubles, -np.inf), -np.inf)
                begins = np.where(numeric, access.first_above(begins, ends, below), begins)
        return begins, ends - begins

    def bound(self, step: ir.Parameters, begins: np.ndarray, each: np.ndarray) -> dict[str, np.ndarray]:
        """What these rows bind, one after the other."""
        access = self.access(step)
        picked = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each - begins, each)
        return {name: access.columns[place][picked] for name, place in step.binds}
