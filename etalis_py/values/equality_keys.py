"""Keys of values such that SPARQL's ``=`` and ``sameTerm`` hold only between values with the same key.

A key is coarser than ``=``: it finds the candidates of an equality in a hash table, and ``=`` itself decides.  Numbers
of all types have that of their nearest single, since an xsd:float makes the other side one; −0 has the key of 0.
Values whose equality depends on a zone, or on what they contain, share one key.

>>> equality_key(1) == equality_key(Decimal("1.00")) == equality_key(1.0), equality_key("1") == equality_key(1)
(True, False)
"""

from __future__ import annotations

import struct
from collections.abc import Hashable
from typing import Any

from etalis_py.values.types import NUMERIC, Date, DateTime, LangString, Opaque, Time, TripleValue, XsdFloat

NO_KEY = -(2**31)
"""Stands for an error, which equals nothing; it is the number of no key, since as a single it is −0."""
_NAN = float("nan")
"""One for all: no other number is found by a hash as it is, and NaN is the same term as itself."""
_SINGLE, _WORD = struct.Struct("<f"), struct.Struct("<i")


def equality_key(value: Any) -> Hashable:
    """The key of a value."""
    kind = value.__class__
    if kind in NUMERIC:
        number = float(XsdFloat(value)) + 0.0  # the sum has no negative zero
        return number if number == number else _NAN
    if kind is DateTime:
        return value.us  # type: ignore[no-any-return]
    if kind is LangString:
        return value.text  # type: ignore[no-any-return]
    if kind is Opaque:
        return value.term  # type: ignore[no-any-return]
    if kind is Date or kind is Time or kind is TripleValue:
        return kind.__name__
    return value  # type: ignore[no-any-return]  # strings, booleans, IRIs, blank nodes and durations


def key_number(value: Any) -> int:
    """The key as a number of 32 bits, as ``kernels.computing.number_keys_of`` computes it for many."""
    key = equality_key(value)
    if value.__class__ in NUMERIC:
        return int(_WORD.unpack(_SINGLE.pack(key))[0])
    if value.__class__ is DateTime:
        return folded(value.us)
    return hash(key) & 0x7FFFFFFF


def folded(number: int) -> int:
    """31 bits of a number."""
    return (number ^ number >> 32) & 0x7FFFFFFF
