"""Whole numbers of any length.

Python refuses to convert long texts to int and back (a guard against quadratic time); Decimal is not quadratic.
"""

from __future__ import annotations

from decimal import Decimal

LONG = 4000


def big_int(digits: str) -> int:
    """``int(digits)`` without Python's limit on the number of digits."""
    return int(digits) if len(digits) < LONG else int(Decimal(digits))
