"""Decimal arithmetic that never rounds, except in division.

The operators of expressions refuse results of more digits than ``bounds`` allows; sums that slide are not bounded."""

from __future__ import annotations

from collections.abc import Callable
from decimal import (
    MAX_EMAX,
    MAX_PREC,
    MIN_EMIN,
    Context,
    Decimal,
    DecimalException,
    DivisionByZero,
    InvalidOperation,
    Overflow,
    Rounded,
    Subnormal,
)
from functools import lru_cache

from etalis_py.values.bounds import BOUNDS, too_many_digits
from etalis_py.values.errors import SparqlError

DIVISION_DIGITS = 34
"""A quotient has this many significant digits, and one more for every power of ten in a ÷ b."""

_TRAPS = [InvalidOperation, DivisionByZero, Overflow]
EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=_TRAPS)

exact_add = EXACT.add
exact_sub = EXACT.subtract

_BOUNDED = Context(
    prec=BOUNDS.digits, Emax=BOUNDS.digits, Emin=-BOUNDS.digits, traps=[*_TRAPS, Rounded, Subnormal], clamp=0
)


def _bounded(operator: str, operation: Callable[[Decimal, Decimal], Decimal]) -> Callable[[Decimal, Decimal], Decimal]:
    def calculate(a: Decimal, b: Decimal) -> Decimal:
        try:
            return operation(a, b)
        except DecimalException:
            raise too_many_digits(operator) from None

    return calculate


decimal_add = _bounded("+", _BOUNDED.add)
decimal_sub = _bounded("-", _BOUNDED.subtract)
decimal_mul = _bounded("*", _BOUNDED.multiply)


@lru_cache(maxsize=64)
def _division(precision: int) -> Context:
    return Context(prec=precision, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=_TRAPS)


def quotient(a: Decimal, b: Decimal) -> Decimal:
    """a ÷ b, rounded half to even to ``DIVISION_DIGITS`` significant digits and one more for every power of ten in it.

    So the fraction never has fewer than 33 digits, however large the integer part; a quotient that needs no more
    is exact.

    >>> quotient(Decimal(1), Decimal(8)), quotient(Decimal(10) ** 20 * 2, Decimal(3)).adjusted()
    (Decimal('0.125'), 19)
    """
    if not b:
        raise SparqlError("division by zero")
    power = a.adjusted() - b.adjusted()
    if abs(power) > BOUNDS.digits:
        raise too_many_digits("/")
    return _division(DIVISION_DIGITS + max(0, power)).divide(a, b)
