"""Join conditions that the kernels test themselves: a number of one side compared with a number of the other.

The two numbers are computed once for each row, as doubles (``vectors``).  A row whose value is an error pairs with
nothing.  Some values do not compare as their doubles do (``ODD``), and numbers do not compare with times: as soon as
one of these occurs, the slower and exact functions of ``values`` test the pairs instead.
"""

from __future__ import annotations

from collections.abc import Sequence
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

_CODES = {"<": LESS, "<=": LESS, ">": LESS, ">=": LESS, "=": EQUAL, "!=": UNEQUAL}


@dataclass(frozen=True, slots=True)
class Compared:
    """The conditions ``left op right`` of a join, with the operators as SPARQL writes them."""

    operators: tuple[str, ...]
    lefts: tuple[alg.Expr, ...]
    rights: tuple[alg.Expr, ...]

    @property
    def codes(self) -> np.ndarray:
        """The operators as the kernels' codes."""
        return np.array([_CODES[op] for op in self.operators], np.int64)

    def waiting(self) -> Side:
        """The values of the left side as they are stored with its goals, negated for ``>`` and ``>=``."""
        lefts = [-1.0 if op in (">", ">=") else 1.0 for op in self.operators]
        return Side(self.lefts, lefts, [False] * len(self.lefts))

    def arriving(self) -> Side:
        """The values of the right side, as they are compared with goals of the left.

        Besides = and !=, kernels only test ``<``.  So the values are rewritten: ``x > y`` as ``−x < −y``, and
        ``x ≤ y`` as ``x < nextafter(y)``.
        """
        signs = [-1.0 if op in (">", ">=") else 1.0 for op in self.operators]
        return Side(self.rights, signs, [op in ("<=", ">=") for op in self.operators])

    def mirrored(self) -> Compared:
        """The same conditions with the sides exchanged."""
        return Compared(tuple(alg.MIRRORED[op] for op in self.operators), self.rights, self.lefts)

    def conditions(self) -> tuple[ir.Step, ...]:
        """The same conditions as steps that test pairs."""
        sides = zip(self.operators, self.lefts, self.rights, strict=True)
        return tuple(ir.Condition(alg.Apply(op, (left, right))) for op, left, right in sides)


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
    rest: list[ir.Step] = []
    conditions, others = first_conditions(steps)
    for condition in conditions:
        for e in alg.conjuncts(condition):
            parted = _parted(e, own, other)
            if parted is None:
                rest.append(ir.Condition(e))
            else:
                compared.append(parted)
    operators = tuple(op for op, _, _ in compared)
    sides = tuple(a for _, a, _ in compared), tuple(b for _, _, b in compared)
    return Compared(operators, *sides), (*rest, *others)


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

    def __init__(self, expressions: Sequence[alg.Expr], signs: Sequence[float], nexts: Sequence[bool]) -> None:
        self.expressions = expressions
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
            sign, following = self.signs[i], self.nexts[i]
            self.sorts[i], odd = prepare_side(
                v.kinds, v.doubles, v.mantissas, sign, following, i, values, failed, self.sorts[i]
            )
            some_odd = some_odd or odd
        return values, failed, some_odd
