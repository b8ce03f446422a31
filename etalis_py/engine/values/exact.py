"""Decimal arithmetic that never rounds and never overflows, but for division."""

from __future__ import annotations

from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from functools import lru_cache

from etalis_py.engine.values.errors import SparqlError

DIVISION_DIGITS = 34
"""A quotient has this many significant digits, and one more for every power of ten in a ÷ b."""

_TRAPS = [InvalidOperation, DivisionByZero, Overflow]
EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=_TRAPS)

exact_add = EXACT.add
exact_sub = EXACT.subtract
exact_mul = EXACT.multiply


@lru_cache(maxsize=64)
def _division(precision: int) -> Context:
    return Context(prec=precision, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=_TRAPS)


def quotient(a: Decimal, b: Decimal) -> Decimal:
    """a ÷ b, rounded half to even to ``DIVISION_DIGITS`` significant digits and one more for every power of ten in it.

    So the fraction never has less than 33 digits, however large the integer part; a quotient that needs no more
    is exact.

    >>> quotient(Decimal(1), Decimal(8)), quotient(Decimal(10) ** 20 * 2, Decimal(3)).adjusted()
    (Decimal('0.125'), 19)
    """
    if not b:
        raise SparqlError("division by zero")
    return _division(DIVISION_DIGITS + max(0, a.adjusted() - b.adjusted())).divide(a, b)
