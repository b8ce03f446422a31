"""The value space: the Python objects that RDF terms stand for.

=============================================  =====================
xsd:integer and every type derived from it     ``int``
xsd:decimal                                    ``decimal.Decimal``
xsd:double                                     ``float``
xsd:float                                      ``XsdFloat``
xsd:boolean                                    ``bool``
xsd:string                                     ``str``
language-tagged string                         ``LangString``
xsd:dateTime, xsd:date, xsd:time               ``DateTime``, ``Date``, ``Time``
xsd:duration and its two subtypes              ``Duration``
IRI, blank node                                ``IriValue``, ``BlankValue``
triple term                                    ``TripleValue``
any other literal, and ill-formed ones         ``Opaque``
=============================================  =====================

The operators look at the exact class of a value (``value.__class__ is int``), so that ``True`` is not a number and an
``IriValue`` is not a string.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from decimal import Decimal
from math import inf, isfinite, nextafter

from etalis_rules.terms import parts

_SINGLE = struct.Struct("<f")
_DOUBLE = struct.Struct("<d")
_BITS = struct.Struct("<Q")
_SMALLEST_NORMAL = 2.0**-126
"""The smallest single with all its digits: below it, the singles lie further apart than their size says."""


def to_double(value: int | float | Decimal) -> float:
    """The nearest xsd:double; beyond the largest one it is an infinity."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


class XsdFloat(float):
    """An xsd:float: a double that holds a single-precision number.

    >>> XsdFloat(0.1) == 0.1
    False
    """

    __slots__ = ()

    def __new__(cls, value: int | float | Decimal) -> XsdFloat:
        """The nearest one.  The double that is nearest to a decimal may lie half-way between two singles, in which case
        the decimal itself says which of them is nearer."""
        double = to_double(value)
        if value.__class__ is not float and may_be_halfway(double) and value != double and isfinite(double):
            double = nextafter(double, inf if value > double else -inf)
        try:
            return float.__new__(cls, _SINGLE.unpack(_SINGLE.pack(double))[0])
        except OverflowError:
            return float.__new__(cls, "inf" if double > 0 else "-inf")


def may_be_halfway(double: float) -> bool:
    """Whether a double may lie half-way between two neighbouring singles: the next double never does then."""
    (bits,) = _BITS.unpack(_DOUBLE.pack(double))
    if abs(double) < _SMALLEST_NORMAL:
        return not bits & 1 and double != 0.0
    return bool(bits & 0x1FFF_FFFF == 0x1000_0000)


class IriValue(str):
    """An IRI, without angle brackets."""

    __slots__ = ()


class BlankValue(str):
    """A blank node, as its term ``_:label``."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class LangString:
    """A language-tagged string; the tag is in lower case, with the base direction if it has one: ``ar--rtl``."""

    text: str
    language: str


class TripleValue(tuple[str, str, str]):
    """A triple term: the terms of its subject, predicate and object."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Opaque:
    """A literal whose value is not known: another datatype, or a lexical form that its datatype does not allow."""

    term: str

    @property
    def lexical(self) -> str:
        return parts(self.term)[0]

    @property
    def datatype(self) -> str:
        return parts(self.term)[1]


class _Instant:
    """The base of ``DateTime``: the order by instant."""

    __slots__ = ()
    us: int

    def __eq__(self, other: object) -> bool:
        return self.us == other.us if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self) -> int:
        return hash(self.us)

    def __lt__(self, other: _Instant) -> bool:
        return self.us < other.us

    def __le__(self, other: _Instant) -> bool:
        return self.us <= other.us

    def __gt__(self, other: _Instant) -> bool:
        return self.us > other.us

    def __ge__(self, other: _Instant) -> bool:
        return self.us >= other.us


@dataclass(frozen=True, slots=True, eq=False)
class DateTime(_Instant):
    """An xsd:dateTime: microseconds since the epoch in UTC, and the zone it was written in (minutes east of UTC).

    ``offset`` is ``None`` when there is no zone; the implicit zone (XPath's term) is UTC, so that all dateTimes are
    ordered.  Digits beyond the microsecond are cut off.
    """

    us: int
    offset: int | None = 0


@dataclass(frozen=True, slots=True)
class Date:
    """An xsd:date: the microsecond since the epoch at which it starts (in UTC when it has no zone), and its zone.

    Two dates of which only one has a zone are ordered as XML Schema says: only when every zone gives the same answer.
    """

    us: int
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Time:
    """An xsd:time: microseconds since midnight in UTC (as written when it has no zone), and its zone."""

    us: int
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Duration:
    """An xsd:duration: months and microseconds, never of opposite signs.

    The order is XML Schema's partial order: one month and 30 days are neither equal nor ordered.  ``by_months`` tells
    which one of no length is an xsd:yearMonthDuration, P0M; it is equal to PT0S.
    """

    months: int
    micros: int
    by_months: bool = field(default=False, compare=False, repr=False)

    @property
    def is_year_month(self) -> bool:
        """Whether this is one of months alone."""
        return not self.micros and (self.months != 0 or self.by_months)


Value = (
    int
    | Decimal
    | float
    | XsdFloat
    | bool
    | str
    | LangString
    | DateTime
    | Date
    | Time
    | Duration
    | IriValue
    | BlankValue
    | TripleValue
    | Opaque
)

NUMERIC: frozenset[type] = frozenset((int, Decimal, float, XsdFloat))
"""The classes of numbers (not ``bool``)."""

EXACT: frozenset[type] = frozenset((int, Decimal))
"""The classes of numbers that Python compares with one another as SPARQL does: by their exact values."""

ORDERED: frozenset[type] = frozenset((int, Decimal, float, XsdFloat, str, bool, DateTime))
"""Between two values of one of these classes Python's ``<  <=  >  >=  ==  !=`` are SPARQL's."""

EQUATED: frozenset[type] = ORDERED | {LangString, Duration, IriValue, BlankValue}
"""Between two values of one of these classes Python's ``==`` and ``!=`` are SPARQL's."""
