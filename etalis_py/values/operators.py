"""The operators of SPARQL expressions on values ([SPARQL 1.1 Query] §17.3 and §17.4.1).

Numbers: integers and decimals are exact, integer ÷ integer is a decimal; with an xsd:float or xsd:double on one side
the other is promoted (decimal → float → double) and IEEE 754 holds.

Equality: values of different known kinds are different ("a" and 1, an IRI and a literal).  A literal whose value is not
known (``Opaque``) is equal to the same term, and comparing it with any other literal is an error; only a string with a
language is certainly different, since no datatype has such values.

Generated code takes a shortcut (``a < b`` if both have the same class and it is in ``ORDERED``); these functions are
the full definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from math import copysign, isnan
from typing import Any

from etalis_rules.terms import XSD

from etalis_py.values.bounds import BITS, too_many_digits
from etalis_py.values.codec import decode
from etalis_py.values.errors import SparqlError, Unbound, type_error
from etalis_py.values.exact import decimal_add, decimal_mul, decimal_sub, quotient
from etalis_py.values.lexical import NUMBER_PARSERS
from etalis_py.values.temporal import (
    add_temporal,
    compare_durations,
    compare_zoned,
    div_temporal,
    mul_temporal,
    negated,
    sub_temporal,
)
from etalis_py.values.types import (
    EQUATED,
    NUMERIC,
    ORDERED,
    BlankValue,
    Date,
    Duration,
    IriValue,
    LangString,
    Opaque,
    Time,
    TripleValue,
    XsdFloat,
    to_double,
)

Thunk = Callable[[], Any]

_NAN = float("nan")
_INF = float("inf")


# ---- arithmetic ------------------------------------------------------------------------------------------------


def _promoted(a: Any, b: Any) -> tuple[Any, Any]:
    """Two numbers in the least type that holds both."""
    ca, cb = a.__class__, b.__class__
    if ca is cb:
        return a, b
    if ca is float or cb is float:
        return to_double(a), to_double(b)
    if ca is XsdFloat or cb is XsdFloat:
        return XsdFloat(a), XsdFloat(b)
    return Decimal(a), Decimal(b)


def add(a: Any, b: Any) -> Any:
    """A + B: numbers; a dateTime, date or time and a duration; two durations."""
    ca, cb = a.__class__, b.__class__
    if ca is cb and (ca is int or ca is float):
        return a + b
    if ca not in NUMERIC or cb not in NUMERIC:
        return add_temporal(a, b)
    a, b = _promoted(a, b)
    if a.__class__ is Decimal:
        return decimal_add(a, b)
    return XsdFloat(a + b) if a.__class__ is XsdFloat else a + b


def sub(a: Any, b: Any) -> Any:
    """A - B: numbers; moments and durations."""
    ca, cb = a.__class__, b.__class__
    if ca is cb and (ca is int or ca is float):
        return a - b
    if ca not in NUMERIC or cb not in NUMERIC:
        return sub_temporal(a, b)
    a, b = _promoted(a, b)
    if a.__class__ is Decimal:
        return decimal_sub(a, b)
    return XsdFloat(a - b) if a.__class__ is XsdFloat else a - b


def mul(a: Any, b: Any) -> Any:
    """A * B: numbers; a duration and a number."""
    ca, cb = a.__class__, b.__class__
    if ca is cb and ca is int:
        if a.bit_length() + b.bit_length() > BITS:
            raise too_many_digits("*")
        return a * b
    if ca is cb and ca is float:
        return a * b
    if ca not in NUMERIC or cb not in NUMERIC:
        return mul_temporal(a, b)
    a, b = _promoted(a, b)
    if a.__class__ is Decimal:
        return decimal_mul(a, b)
    return XsdFloat(a * b) if a.__class__ is XsdFloat else a * b


def _ieee_quotient(a: float, b: float) -> float:
    if b:
        return a / b
    if a == 0 or isnan(a) or isnan(b):
        return _NAN
    return copysign(_INF, copysign(1.0, a) * copysign(1.0, b))


def div(a: Any, b: Any) -> Any:
    """A / B: numbers; a duration and a number; two durations.

    Integers and decimals give a decimal (``values.exact.quotient``) and an error for zero; floats follow IEEE 754.
    """
    ca, cb = a.__class__, b.__class__
    if ca not in NUMERIC or cb not in NUMERIC:
        return div_temporal(a, b)
    a, b = _promoted(a, b)
    if a.__class__ is int or a.__class__ is Decimal:
        return quotient(Decimal(a), Decimal(b))
    return XsdFloat(_ieee_quotient(a, b)) if a.__class__ is XsdFloat else _ieee_quotient(a, b)


def neg(a: Any) -> Any:
    """-A: a number or a duration."""
    c = a.__class__
    if c is int or c is float:
        return -a
    if c is Decimal:
        return a.copy_negate() if a else Decimal(0)
    if c is XsdFloat:
        return XsdFloat(-a)
    if c is Duration:
        return negated(a)
    raise type_error("-", a)


def pos(a: Any) -> Any:
    """+A: a number or a duration, unchanged."""
    if a.__class__ in NUMERIC or a.__class__ is Duration:
        return a
    raise type_error("+", a)


# ---- comparison ------------------------------------------------------------------------------------------------


def eq(a: Any, b: Any) -> bool:
    """A = B."""
    ca, cb = a.__class__, b.__class__
    if ca is cb:
        if ca in EQUATED:
            return bool(a == b)
        if ca is Date or ca is Time:
            return compare_zoned(a, b) == 0
        if ca is Opaque and a.term == b.term:
            return True
        if ca is TripleValue:
            return a == b or all(eq(decode(x), decode(y)) for x, y in zip(a, b, strict=True))
        raise type_error("=", a, b)
    if ca in NUMERIC and cb in NUMERIC:
        a, b = _promoted(a, b)
        return bool(a == b)
    if ca is Opaque or cb is Opaque:
        other = cb if ca is Opaque else ca
        if other is not IriValue and other is not BlankValue and other not in (LangString, TripleValue):
            raise type_error("=", a, b)
    return False


def ne(a: Any, b: Any) -> bool:
    """A != B."""
    return not eq(a, b)


def _compare(a: Any, b: Any, operator: str) -> int:
    if a.__class__ is b.__class__:
        if a.__class__ is Duration:
            return compare_durations(a, b)
        if a.__class__ is Date or a.__class__ is Time:
            return compare_zoned(a, b)
    raise type_error(operator, a, b)


def lt(a: Any, b: Any) -> bool:
    """A < B."""
    ca, cb = a.__class__, b.__class__
    if ca is cb and ca in ORDERED:
        return bool(a < b)
    if ca in NUMERIC and cb in NUMERIC:
        a, b = _promoted(a, b)
        return bool(a < b)
    return _compare(a, b, "<") < 0


def le(a: Any, b: Any) -> bool:
    """A <= B."""
    ca, cb = a.__class__, b.__class__
    if ca is cb and ca in ORDERED:
        return bool(a <= b)
    if ca in NUMERIC and cb in NUMERIC:
        a, b = _promoted(a, b)
        return bool(a <= b)
    return _compare(a, b, "<=") <= 0


def gt(a: Any, b: Any) -> bool:
    """A > B."""
    return lt(b, a)


def ge(a: Any, b: Any) -> bool:
    """A >= B."""
    return le(b, a)


def same_term(a: str, b: str) -> bool:
    """sameTerm on two terms (not values); an unbound one is an error."""
    if not a or not b:
        raise Unbound("sameTerm of an unbound variable; test it with BOUND")
    return a == b


def in_(value: Any, candidates: Iterable[Thunk]) -> bool:
    """A IN (…): whether some candidate is equal; if none is, the error of a candidate, if any has one."""
    failure: SparqlError | None = None
    for candidate in candidates:
        try:
            if eq(value, candidate()):
                return True
        except SparqlError as error:
            failure = error
    if failure is not None:
        raise failure
    return False


def not_in(value: Any, candidates: Iterable[Thunk]) -> bool:
    """A NOT IN (…)."""
    return not in_(value, candidates)


# ---- logic -----------------------------------------------------------------------------------------------------

_FALSE_WHEN_ILL_FORMED = frozenset((*NUMBER_PARSERS, f"{XSD}boolean"))


def ebv(value: Any) -> bool:
    """The effective boolean value ([SPARQL 1.1 Query] §17.2.2).

    Empty strings, zero, NaN and ill-formed booleans and numbers are false; anything that is not a boolean, number or
    string is an error.
    """
    c = value.__class__
    if c is bool:
        return bool(value)
    if c is int or c is Decimal or c is str:
        return bool(value)
    if c is float or c is XsdFloat:
        return bool(value == value and value != 0)
    if c is LangString:
        return bool(value.text)
    if c is Opaque and value.datatype in _FALSE_WHEN_ILL_FORMED:
        return False
    raise type_error("the effective boolean value", value)


def not_(value: Any) -> bool:
    """!A."""
    return not ebv(value)


def and_(left: Thunk, right: Thunk) -> bool:
    """A && B in three-valued logic: false wins over an error, an error over true."""
    try:
        if not ebv(left()):
            return False
    except SparqlError:
        if ebv(right()):
            raise
        return False
    return ebv(right())


def or_(left: Thunk, right: Thunk) -> bool:
    """A || B in three-valued logic: true wins over an error, an error over false."""
    try:
        if ebv(left()):
            return True
    except SparqlError:
        if not ebv(right()):
            raise
        return True
    return ebv(right())
