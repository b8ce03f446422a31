"""ORDER BY: one total order over all terms ([SPARQL 1.1 Query] §15.1).

Unbound, then blank nodes, then IRIs, then literals, then triple terms by their parts.  The standard leaves open how
literals of different kinds compare; here the order is: numbers (NaN first), booleans, strings, language-tagged strings,
dateTimes, dates, times, durations, all others.  Numbers are ordered by exact value whatever their datatype, and terms
with equal values by their spelling, so that the order is total and the same everywhere.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from etalis_rules.terms import UNBOUND

from etalis_py.values.codec import decode
from etalis_py.values.types import (
    BlankValue,
    Date,
    DateTime,
    Duration,
    IriValue,
    LangString,
    Time,
    TripleValue,
    XsdFloat,
)

OrderKey = tuple[Any, ...]

_MEAN_MONTH = 2_629_746_000_000
_NAN_RANK, _NUMBER_RANK, _OPAQUE_RANK = -1, 0, 9
_RANKS: dict[type, int] = {bool: 1, str: 2, LangString: 3, DateTime: 4, Date: 5, Time: 6, Duration: 7}
_NUMBERS = frozenset((int, Decimal, float, XsdFloat))


def literal_key(value: Any) -> tuple[int, Any]:
    """``(rank of the kind, what to compare within it)``; keys of one rank have one type of second part."""
    c = value.__class__
    if c in _NUMBERS:
        return (_NUMBER_RANK, value) if value == value else (_NAN_RANK, 0)
    rank = _RANKS.get(c, _OPAQUE_RANK)
    if c is LangString:
        return rank, (value.text, value.language)
    if c is DateTime or c is Date or c is Time:
        return rank, value.us
    if c is Duration:
        return rank, value.months * _MEAN_MONTH + value.micros
    return rank, (value.datatype, value.lexical) if rank == _OPAQUE_RANK else value


def order_key_of(value: Any, term: str) -> OrderKey:
    """``order_key`` for a value that has been decoded already."""
    c = value.__class__
    if c is IriValue:
        return 2, 0, str(value), term
    if c is BlankValue:
        return 1, 0, term, term
    if c is TripleValue:
        return 4, 0, tuple(map(order_key, value)), term
    return 3, *literal_key(value), term


def order_key(term: str) -> OrderKey:
    """A tuple that sorts terms (``UNBOUND`` included) in the order of ORDER BY ASC."""
    if term == UNBOUND:
        return (0,)
    return order_key_of(decode(term), term)


def rank_key(term: str) -> OrderKey:
    """``order_key`` without its last tie-breaker: if values are equal (1, 01), the next key of ORDER BY decides."""
    return order_key(term) if term == UNBOUND else order_key(term)[:-1]
