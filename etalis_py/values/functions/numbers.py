"""Functions on numbers ([SPARQL 1.1 Query] §17.4.4); the result has the type of the argument."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import ceil, copysign, floor, isfinite
from typing import Any

from etalis_py.values.errors import type_error
from etalis_py.values.exact import EXACT, exact_add
from etalis_py.values.types import XsdFloat

_HALF = Decimal("0.5")


def _as(original: float, value: float) -> float:
    """The double in the type of the original, a zero with its sign (IEEE 754)."""
    signed = copysign(value, original) if value == 0 else value
    return XsdFloat(signed) if original.__class__ is XsdFloat else float(signed)


def abs_(value: Any) -> Any:
    c = value.__class__
    if c is int:
        return abs(value)
    if c is Decimal:
        return value.copy_abs()
    if c is float or c is XsdFloat:
        return c(abs(value))
    raise type_error("ABS", value)


def ceil_(value: Any) -> Any:
    c = value.__class__
    if c is int:
        return value
    if c is Decimal:
        return value.to_integral_value(ROUND_CEILING, EXACT)
    if c is float or c is XsdFloat:
        return _as(value, float(ceil(value))) if isfinite(value) else value
    raise type_error("CEIL", value)


def floor_(value: Any) -> Any:
    c = value.__class__
    if c is int:
        return value
    if c is Decimal:
        return value.to_integral_value(ROUND_FLOOR, EXACT)
    if c is float or c is XsdFloat:
        return _as(value, float(floor(value))) if isfinite(value) else value
    raise type_error("FLOOR", value)


def round_(value: Any) -> Any:
    """ROUND: to the nearest whole number, halves upward.

    >>> round_(Decimal("-2.5")), round_(2.5), round_(0.49999999999999994)
    (Decimal('-2'), 3.0, 0.0)
    """
    c = value.__class__
    if c is int:
        return value
    if c is Decimal:
        return exact_add(value, _HALF).to_integral_value(ROUND_FLOOR, EXACT)
    if c is float or c is XsdFloat:
        if not isfinite(value):
            return value
        below = floor(value)
        return _as(value, float(below + (value - below >= 0.5)))
    raise type_error("ROUND", value)
