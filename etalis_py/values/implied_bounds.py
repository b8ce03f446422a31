"""Bounds that a condition on a difference or a sum of both sides implies: ``ABS(?y - ?x) < 3``, ``?y - ?x = 3``.

Such a condition has no side that one solution decides, so it is tested on each pair.  But it bounds the goals that can
pass: of ``?y - ?x < 3``, ``?x >= ?y - 3.000003``.  The constant is widened, and the bound includes its end, because a
difference of doubles is rounded, and so is a constant that is compared with one.

Why no pair is lost: if x and y are both doubles (or both singles), their difference is rounded by at most one part in
2²³, so what the condition says of it holds of the exact y − x, with a constant that is wider by 10⁻⁶ of itself.
Rounding never exchanges two numbers, so x ≥ y − c implies x ≥ y − c as rounded.  Integers and decimals are not rounded
at all, nor are dateTimes and what lies between them.  Who compares numbers of different types has to allow for what
is lost when one becomes the type of the other.

>>> x, y, c = alg.Var("x"), alg.Var("y"), alg.Const('"3"^^<http://www.w3.org/2001/XMLSchema#integer>')
>>> for bound in implied_bounds(alg.Apply("<", (alg.Apply("-", (y, x)), c))):
...     print(bound.op, bound.alone.name, bound.other.name, bound.limit)
<= y x 3.000003
>= x y -3.000003
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite

from etalis_rules import algebra as alg

from etalis_py.values.codec import decode, encode
from etalis_py.values.temporal import negated
from etalis_py.values.types import Duration

_LEAST, _MOST = Decimal("1e-30"), Decimal("1e30")
"""Constants nearer to 0 (but 0 itself) or farther from it imply no bounds: singles have fewer digits there."""
_WIDER, _ABOVE_ZERO = Decimal("1e-6"), Decimal("1e-40")
_UPPER, _LOWER = ("<", "<=", "="), (">", ">=", "=")


@dataclass(frozen=True, slots=True)
class ImpliedBound:
    """``alone op other + limit``, or ``alone op limit - other`` if ``negative``; ``op`` is ``<=`` or ``>=``."""

    op: str
    alone: alg.Expr
    other: alg.Expr
    limit: Decimal | Duration
    negative: bool = False

    def comparison(self) -> alg.Apply:
        """The bound as an expression."""
        limit = alg.Const(encode(self.limit))
        rest = alg.Apply("-", (limit, self.other)) if self.negative else alg.Apply("+", (self.other, limit))
        return alg.Apply(self.op, (self.alone, rest))


def implied_bounds(condition: alg.Expr) -> Iterator[ImpliedBound]:
    """Bounds of each part of a difference or sum by the rest, which hold wherever the condition does."""
    for e in alg.conjuncts(condition):
        found = alg.comparison(e)
        if found is None:
            continue
        op, calculated, constant = found
        if isinstance(calculated, alg.Const):
            op, calculated, constant = alg.MIRRORED[op], constant, calculated
        limits = _limits(constant) if isinstance(constant, alg.Const) else None
        if limits is None or not isinstance(calculated, alg.Apply):
            continue
        least, most = limits
        if calculated.op != "ABS":
            yield from _rearranged(calculated, "<=", most) if op in _UPPER else ()
            yield from _rearranged(calculated, ">=", least) if op in _LOWER else ()
        elif op in _UPPER and isinstance(calculated.args[0], alg.Apply):
            yield from _rearranged(calculated.args[0], "<=", most)
            yield from _rearranged(calculated.args[0], ">=", _negated(most))


def _limits(constant: alg.Const) -> tuple[Decimal | Duration, Decimal | Duration] | None:
    """A little less than the constant and a little more; None where no bounds are implied."""
    value = decode(constant.term)
    if isinstance(value, Duration):
        return (value, value) if not value.months else None
    number = _number(value)
    if number is None or not (number == 0 or _LEAST < abs(number) < _MOST):
        return None
    by = abs(number) * _WIDER or _ABOVE_ZERO
    return number - by, number + by


def _number(value: object) -> Decimal | None:
    """A finite number as a decimal."""
    match value:
        case bool():
            return None
        case int() | Decimal():
            return Decimal(value)
        case float() if isfinite(value):
            return Decimal(repr(float(value)))
    return None


def _negated(limit: Decimal | Duration) -> Decimal | Duration:
    return negated(limit) if isinstance(limit, Duration) else -limit


def _rearranged(e: alg.Apply, op: str, limit: Decimal | Duration) -> Iterator[ImpliedBound]:
    """``a - b <= c`` and ``a + b <= c`` with one of a and b alone on the left."""
    if e.op == "-":
        one, other = e.args
        yield ImpliedBound(op, one, other, limit)
        yield ImpliedBound(alg.MIRRORED[op], other, one, _negated(limit))
    elif e.op == "+" and not isinstance(limit, Duration):
        for one, other in (e.args, e.args[::-1]):
            yield ImpliedBound(op, one, other, limit, negative=True)
