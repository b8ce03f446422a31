"""Values of many rows at once: either exactly what ``values`` computes for each, or a mark to ask ``values``.

A ``Vector`` has a kind for each row (``kernels.parsing``).  INTEGER and DECIMAL are mantissa / 10 ** scale in int64, a
DOUBLE is IEEE, a TIME microseconds; FAILED is an error.  OTHER marks everything that is not computed here: other types,
numbers that do not fit, divisions of decimals.  So no result is an approximation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from etalis_rules import algebra as alg

from etalis_py.executors.columns.costs import alternatives, is_numeric, is_plain_string
from etalis_py.executors.columns.kernels import computing
from etalis_py.executors.columns.kernels.computing import ASK, ERROR, FALSE, TRUE
from etalis_py.executors.columns.kernels.parsing import DECIMAL, INTEGER, OTHER, TIME
from etalis_py.executors.columns.terms import Terms

_CODES = {
    "<": computing.LESS,
    "<=": computing.LESS_EQUAL,
    ">": computing.GREATER,
    ">=": computing.GREATER_EQUAL,
    "=": computing.EQUAL,
    "!=": computing.UNEQUAL,
}
_CALCULATIONS = {
    "+": computing.ADD,
    "-": computing.SUBTRACT,
    "*": computing.MULTIPLY,
    "/": computing.DIVIDE,
}


@dataclass(frozen=True, slots=True)
class Vector:
    """The values of some rows; one row may stand for a constant."""

    kinds: np.ndarray
    doubles: np.ndarray
    mantissas: np.ndarray
    scales: np.ndarray

    @classmethod
    def empty(cls, rows: int) -> Vector:
        """Room for values."""
        return cls(
            np.empty(rows, np.int8), np.empty(rows, np.float64), np.empty(rows, np.int64), np.empty(rows, np.int8)
        )

    @classmethod
    def of_terms(cls, terms: Terms, ids: np.ndarray) -> Vector:
        """The values of terms; an unbound one is an error."""
        result = cls.empty(len(ids))
        columns = result.kinds, result.doubles, result.mantissas, result.scales
        computing.gather_values(ids, *terms.decoded(), *columns)
        return result


def value(e: alg.Expr, columns: dict[str, np.ndarray], rows: int, terms: Terms) -> Vector:
    """The values of a numeric expression (``is_numeric``) over rows of ids; a single row if it has no variable."""
    match e:
        case alg.Var(name):
            ids = columns.get(name)
            return Vector.of_terms(terms, np.zeros(1, np.int32) if ids is None else ids)
        case alg.Const(term):
            return Vector.of_terms(terms, np.array([terms.id_of(term)], np.int32))
        case alg.Apply("neg", (inner,)):
            return _negated(value(inner, columns, rows, terms))
        case alg.Apply(op, (left, right)):
            return _calculated(op, value(left, columns, rows, terms), value(right, columns, rows, terms), rows)
    raise TypeError(f"not a numeric expression: {e!r}")


def _negated(a: Vector) -> Vector:
    time = a.kinds == TIME
    kinds = np.where(time, np.int8(OTHER), a.kinds)
    zero = np.isin(kinds, (INTEGER, DECIMAL)) & (a.mantissas == 0)  # only doubles have a negative zero
    doubles = np.where(time, np.nan, np.where(zero, 0.0, -a.doubles))
    return Vector(kinds, doubles, -a.mantissas, a.scales)


def _calculated(op: str, a: Vector, b: Vector, rows: int) -> Vector:
    both_constant = len(a.kinds) == len(b.kinds) == 1
    result = Vector.empty(1 if both_constant else rows)
    computing.calculate(
        _CALCULATIONS[op],
        *(a.kinds, a.doubles, a.mantissas, a.scales),
        *(b.kinds, b.doubles, b.mantissas, b.scales),
        *(result.kinds, result.doubles, result.mantissas, result.scales),
    )
    return result


# --- conditions ------------------------------------------------------------------------------------------------


def truth(e: alg.Expr, columns: dict[str, np.ndarray], rows: int, terms: Terms) -> np.ndarray:
    """FALSE, TRUE, ERROR or ASK for each row."""
    match e:
        case alg.Apply("&&", args):
            result = truth(args[0], columns, rows, terms)
            for arg in args[1:]:
                result = AND[result, truth(arg, columns, rows, terms)]
            return result
        case alg.Apply("||", args):
            result = truth(args[0], columns, rows, terms)
            for arg in args[1:]:
                result = OR[result, truth(arg, columns, rows, terms)]
            return result
        case alg.Apply("!", (inner,)):
            return NOT[truth(inner, columns, rows, terms)]
        case alg.Apply("BOUND", (alg.Var(name),)):
            ids = columns.get(name)
            return np.zeros(rows, np.int8) if ids is None else (ids != 0).astype(np.int8)
        case alg.Apply("IN", (_, _, *_) as args):
            either = [truth(one, columns, rows, terms) for one in alternatives(args)]
            return reduce(lambda some, one: OR[some, one], either)
        case alg.Apply("=" | "!=" as op, (alg.Var(name), alg.Const(term))) if is_plain_string(term):
            ids = columns.get(name, np.zeros(rows, np.int32))
            equal = (ids == terms.id_of(term)) == (op == "=")
            return np.where(terms.are_plain_strings(ids), equal.astype(np.int8), np.int8(ASK))
        case alg.Apply(op, (left, right)) if op in _CODES and is_numeric(left) and is_numeric(right):
            a, b = value(left, columns, rows, terms), value(right, columns, rows, terms)
            result = np.empty(rows, np.int8)
            computing.compare(_CODES[op], a.kinds, a.doubles, a.mantissas, b.kinds, b.doubles, b.mantissas, result)
            return result
    return np.full(rows, ASK, np.int8)


AND = np.array(
    [
        [FALSE, FALSE, FALSE, FALSE],
        [FALSE, TRUE, ERROR, ASK],
        [FALSE, ERROR, ERROR, ASK],
        [FALSE, ASK, ASK, ASK],
    ],
    np.int8,
)
OR = np.array(
    [
        [FALSE, TRUE, ERROR, ASK],
        [TRUE, TRUE, TRUE, TRUE],
        [ERROR, TRUE, ERROR, ASK],
        [ASK, TRUE, ASK, ASK],
    ],
    np.int8,
)
NOT = np.array([TRUE, FALSE, ERROR, ASK], np.int8)
