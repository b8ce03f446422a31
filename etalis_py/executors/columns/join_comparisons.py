"""Join conditions that the kernels test themselves: a number of one side compared with a number of the other.

The two numbers are computed once for each row, as doubles (``vectors``).  A row whose value is an error pairs with
nothing.  Some values do not compare as their doubles do (``ODD``), and numbers do not compare with times: as soon as
one of these occurs, the slower and exact functions of ``values`` test the pairs instead.

Conditions on a difference of both sides imply comparisons (``values.implied_bounds``), which come last: kernels test
them to leave out pairs that are far from passing, and the condition itself is tested on the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.steps import first_conditions

from etalis_py.executors.columns.costs import is_numeric
from etalis_py.executors.columns.frames import Bindings
from etalis_py.executors.columns.kernels.computing import ODD, prepare_side
from etalis_py.executors.columns.kernels.joining import EQUAL, LESS, UNEQUAL
from etalis_py.executors.columns.vectors import value
from etalis_py.values.implied_bounds import ImpliedBound, implied_bounds
from etalis_py.values.types import Duration

_CODES = {"<": LESS, "<=": LESS, ">": LESS, ">=": LESS, "=": EQUAL, "!=": UNEQUAL}


_ROUNDED = 2.0**-47
"""More than what is lost of two numbers of a difference, and of the difference, when they become doubles."""


@dataclass(frozen=True, slots=True)
class Shift:
    """How the doubles of the one side of an implied comparison are moved: by its limit and a little more, outwards."""

    op: str
    limit: float
    negative: bool

    def of(self, doubles: np.ndarray) -> np.ndarray:
        """The bound, for the values of the other part of the difference."""
        more = (np.abs(np.where(np.isfinite(doubles), doubles, 0.0)) + abs(self.limit)) * _ROUNDED
        moved = (-doubles if self.negative else doubles) + self.limit
        return moved + more if self.op == "<" else moved - more

    @classmethod
    def by(cls, bound: ImpliedBound) -> Shift:
        """That of a bound, which becomes strict as it is moved: an infinite value has no next double."""
        limit = bound.limit.micros if isinstance(bound.limit, Duration) else bound.limit
        return cls(bound.op[0], float(limit), bound.negative)


@dataclass(frozen=True, slots=True)
class Compared:
    """The conditions ``left op right`` of a join, with the operators as SPARQL writes them.

    The last ones may only be implied: for each of these ``shifts`` tells how the right values are moved first, or the
    left ones if ``left_moves``.
    """

    operators: tuple[str, ...]
    lefts: tuple[alg.Expr, ...]
    rights: tuple[alg.Expr, ...]
    shifts: tuple[Shift, ...] = ()
    left_moves: bool = False

    @property
    def codes(self) -> np.ndarray:
        """The operators as the kernels' codes."""
        return np.array([_CODES[op] for op in self.operators], np.int64)

    def waiting(self) -> Side:
        """The values of the left side as they are stored with its goals, negated for ``>`` and ``>=``."""
        lefts = [-1.0 if op in (">", ">=") else 1.0 for op in self.operators]
        return Side(self.lefts, lefts, [False] * len(self.lefts), self.shifts if self.left_moves else ())

    def arriving(self) -> Side:
        """The values of the right side, as they are compared with goals of the left.

        Besides = and !=, kernels only test ``<``.  So the values are rewritten: ``x > y`` as ``−x < −y``, and
        ``x ≤ y`` as ``x < nextafter(y)``.
        """
        signs = [-1.0 if op in (">", ">=") else 1.0 for op in self.operators]
        shifts = () if self.left_moves else self.shifts
        return Side(self.rights, signs, [op in ("<=", ">=") for op in self.operators], shifts)

    def mirrored(self) -> Compared:
        """The same conditions with the sides exchanged."""
        operators = tuple(alg.MIRRORED[op] for op in self.operators)
        return Compared(operators, self.rights, self.lefts, self.shifts, not self.left_moves)

    def conditions(self) -> tuple[ir.Step, ...]:
        """The same conditions as steps that test pairs, without those that are only implied."""
        sides = zip(self.operators, self.lefts, self.rights, strict=True)
        each = tuple(ir.Condition(alg.Apply(op, (left, right))) for op, left, right in sides)
        return each[: len(each) - len(self.shifts)]


def split_conditions(
    steps: Sequence[ir.Step], left: Sequence[str], right: Sequence[str], certain: Sequence[str]
) -> tuple[Compared, tuple[ir.Step, ...]]:
    """The leading conditions of a rule that compare its two sides, and the remaining steps.

    A variable that occurs on both sides, but is not bound for certain, belongs to neither side: in one pair the left
    binds it, in another the right.
    """
    unsure = (set(left) & set(right)) - set(certain)
    own, other = frozenset(left) - unsure, frozenset(right) - unsure
    compared: list[tuple[str, alg.Expr, alg.Expr]] = []
    implied: list[tuple[tuple[str, alg.Expr, alg.Expr], Shift]] = []
    rest: list[ir.Step] = []
    conditions, others = first_conditions(steps)
    for condition in conditions:
        for e in alg.conjuncts(condition):
            parted = _parted(e, own, other)
            if parted is None:
                rest.append(ir.Condition(e))
                implied += _implied(e, own, other)
            else:
                compared.append(parted)
    each = [*compared, *(bound for bound, _ in implied)]
    operators = tuple(op for op, _, _ in each)
    sides = tuple(a for _, a, _ in each), tuple(b for _, _, b in each)
    return Compared(operators, *sides, tuple(shift for _, shift in implied)), (*rest, *others)


def _implied(
    e: alg.Expr, own: frozenset[str], other: frozenset[str]
) -> Iterator[tuple[tuple[str, alg.Expr, alg.Expr], Shift]]:
    """The comparisons of a number of the left with one of the right, as it is moved, that a condition implies."""
    for bound in implied_bounds(e):
        parts = (bound.alone, bound.other)
        reads_alone, reads_other = map(alg.variables, parts)
        if all(map(is_numeric, parts)) and reads_alone and reads_other and reads_alone <= own and reads_other <= other:
            shift = Shift.by(bound)
            yield (shift.op, bound.alone, bound.other), shift


def _parted(e: alg.Expr, own: frozenset[str], other: frozenset[str]) -> tuple[str, alg.Expr, alg.Expr] | None:
    found = alg.comparison(e)
    if found is None:
        return None
    op, a, b = found
    if not (is_numeric(a) and is_numeric(b)):
        return None
    of_a, of_b = alg.variables(a), alg.variables(b)
    if of_a <= own and of_b <= other:
        return op, a, b
    if of_a <= other and of_b <= own:
        return alg.MIRRORED[op], b, a
    return None


class Side:
    """The expressions by which one side of a join is compared, and the sort of the values that each gave so far."""

    def __init__(
        self,
        expressions: Sequence[alg.Expr],
        signs: Sequence[float],
        nexts: Sequence[bool],
        shifts: Sequence[Shift] = (),
    ) -> None:
        self.expressions = expressions
        self.shifts = (*[None] * (len(expressions) - len(shifts)), *shifts)
        self.signs = signs
        self.nexts = nexts
        self.sorts = np.full(len(expressions), ODD, np.int8)

    def values(self, frame: Bindings) -> tuple[np.ndarray, np.ndarray, bool]:
        """A row of doubles for each solution, a mask of rows with an error, and whether any value is odd."""
        rows = len(frame)
        values = np.empty((rows, len(self.expressions)), np.float64)
        failed = np.zeros(rows, np.bool_)
        some_odd = False
        for i, e in enumerate(self.expressions if rows else ()):
            v = value(e, frame.columns, rows, frame.terms)
            sign, following, shift = self.signs[i], self.nexts[i], self.shifts[i]
            doubles = v.doubles if shift is None else shift.of(v.doubles)
            self.sorts[i], odd = prepare_side(
                v.kinds, doubles, v.mantissas, sign, following, i, values, failed, self.sorts[i]
            )
            some_odd = some_odd or odd
        return values, failed, some_odd
