"""SUM and AVG, exact while they slide.

Integers and decimals are added exactly.  So are floats: each is an integer over a power of two, and so is the sum that
is kept, so that a value added and removed again leaves nothing behind; it is rounded once.  Adding 0.1 ten times gives
1.0, whereas adding doubles one by one gives 0.9999999999999999.  AVG is SUM ÷ COUNT: the rounded sum, divided.

The result has the least type that holds all: integer, decimal, float, double ([SPARQL 1.1 Query] §18.5.1.3 and 4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from math import isfinite
from typing import Any

from etalis_py.values.canonical import decimal_lexical
from etalis_py.values.codec import encode
from etalis_py.values.errors import SparqlError
from etalis_py.values.exact import exact_add, exact_sub, quotient
from etalis_py.values.functions.accumulators import Failing, State, not_added, pack_int, unpack_int
from etalis_py.values.operators import div
from etalis_py.values.types import XsdFloat

_ZERO = Decimal(0)
_SPECIALS = ("NaN", "INF", "-INF")


def _special_name(value: float) -> str:
    return "NaN" if value != value else "INF" if value > 0 else "-INF"


class Sum(Failing):
    """SUM: 0 for no arguments; one argument that is not a number makes it an error."""

    __slots__ = (
        "_decimal",
        "_decimals",
        "_doubles",
        "_floats",
        "_integers",
        "_mantissa",
        "_scale",
        "_specials",
        "_whole",
    )

    name = "SUM"

    def __init__(self) -> None:
        self._integers = self._decimals = self._floats = self._doubles = self._failures = 0
        self._whole = 0
        self._decimal = _ZERO
        self._mantissa = self._scale = 0  # the finite floats: mantissa ÷ 2**scale
        self._specials: Counter[str] = Counter()  # NaN and infinities

    def add(self, value: Any, term: Any) -> None:
        c = value.__class__
        if c is int:
            self._integers += 1
            self._whole += value
        elif c is Decimal:
            self._decimals += 1
            self._decimal = exact_add(self._decimal, value)
        elif c is float:
            self._doubles += 1
            self._shift(value, 1)
        elif c is XsdFloat:
            self._floats += 1
            self._shift(value, 1)
        else:
            self._failures += 1

    def add_all(self, values: Sequence[Any]) -> bool:
        """Add many at once, if all are integers or all are decimals; otherwise do nothing and return False."""
        kinds = set(map(type, values))
        if kinds == {Decimal}:
            self._decimals += len(values)
            self._decimal = reduce(exact_add, values, self._decimal)
        elif kinds == {int}:
            self.add_integers(sum(values), len(values))
        else:
            return False
        return True

    def remove_all(self, values: Sequence[Any]) -> bool:
        """Remove many at once, under the same conditions."""
        kinds, number = set(map(type, values)), len(values)
        if kinds == {Decimal} and self._decimals >= number:
            self._decimals -= number
            self._decimal = reduce(exact_sub, values, self._decimal) if self._decimals else _ZERO
        elif kinds == {int} and self._integers >= number:
            self.add_integers(-sum(values), -number)
        else:
            return False
        return True

    def add_integers(self, total: int, count: int) -> None:
        """Add ``count`` integers at once, given their total; each can be removed alone."""
        self._integers += count
        self._whole += total

    def remove(self, value: Any, term: Any) -> None:
        c = value.__class__
        if c is int:
            self._integers -= 1
            self._whole -= value
        elif c is Decimal:
            self._decimals -= 1
            self._decimal = exact_sub(self._decimal, value) if self._decimals else _ZERO
        elif c is float:
            self._doubles -= 1
            self._shift(value, -1)
        elif c is XsdFloat:
            self._floats -= 1
            self._shift(value, -1)
        else:
            self._failures -= 1
        if self._integers < 0 or self._decimals < 0 or self._floats < 0 or self._doubles < 0 or self._failures < 0:
            raise not_added(term)

    def _shift(self, value: float, sign: int) -> None:
        if not isfinite(value):
            self._specials[_special_name(value)] += sign
            return
        numerator, denominator = value.as_integer_ratio()
        scale = denominator.bit_length() - 1
        if scale > self._scale:
            self._mantissa <<= scale - self._scale
            self._scale = scale
        self._mantissa += sign * (numerator << (self._scale - scale))

    def _count(self) -> int:
        return self._integers + self._decimals + self._floats + self._doubles

    def _floating(self) -> float:
        """The exact total, rounded to the nearest float of the type."""
        make = float if self._doubles else XsdFloat
        if self._specials:
            plus, minus = self._specials["INF"], self._specials["-INF"]
            if self._specials["NaN"] or (plus and minus):
                return make(float("nan"))
            if plus or minus:
                return make(float("inf" if plus else "-inf"))
        top, bottom = self._mantissa + (self._whole << self._scale), 1 << self._scale
        if self._decimals:
            numerator, denominator = self._decimal.as_integer_ratio()
            top, bottom = top * denominator + (numerator << self._scale), bottom * denominator
        try:
            return make(top / bottom)
        except OverflowError:
            return make(float("inf" if top > 0 else "-inf"))

    def _total(self) -> Any:
        if self._floats or self._doubles:
            return self._floating()
        return exact_add(self._decimal, Decimal(self._whole)) if self._decimals else self._whole

    def result(self) -> str:
        if self._failures:
            raise SparqlError(f"{self.name} over {self._failures} argument(s) that are an error or no number")
        return encode(self._total())

    def state(self) -> State:
        counts = [
            pack_int(count) for count in (self._integers, self._decimals, self._floats, self._doubles, self._failures)
        ]
        sums = [pack_int(self._whole), decimal_lexical(self._decimal), pack_int(self._mantissa), self._scale]
        return [self.name, counts, sums, [self._specials[name] for name in _SPECIALS]]

    def load(self, state: State) -> None:
        _, counts, (whole, decimal, mantissa, self._scale), specials = state
        self._integers, self._decimals, self._floats, self._doubles, self._failures = map(unpack_int, counts)
        self._whole, self._decimal, self._mantissa = unpack_int(whole), Decimal(decimal), unpack_int(mantissa)
        self._specials = Counter(dict(zip(_SPECIALS, specials, strict=True)))


class Avg(Sum):
    """AVG: SUM ÷ COUNT; 0 for no arguments, a decimal for integers."""

    __slots__ = ()

    name = "AVG"

    def _total(self) -> Any:
        count = self._count()
        if not count:
            return 0
        if self._floats or self._doubles:
            return div(self._floating(), count)
        total = exact_add(self._decimal, Decimal(self._whole)) if self._whole else self._decimal
        return quotient(total, Decimal(count))


@dataclass(frozen=True, slots=True)
class PlainSum:
    """What SUM or AVG keeps of numbers of one kind: ``int``, ``Decimal`` or ``float``.

    Their sum is ``total``; that of decimals is ``total`` · 10**-scale, that of doubles ``total`` · 2**-scale.
    """

    kind: type
    count: int
    total: int
    scale: int
    failures: int

    @classmethod
    def of(cls, state: State) -> PlainSum | None:
        """The same sum; None for numbers of several kinds, of xsd:float, or without a finite sum."""
        _, counts, (whole, decimal, mantissa, scale), specials = state
        integers, decimals, floats, doubles, failures = map(unpack_int, counts)
        if floats or any(specials) or bool(integers) + bool(decimals) + bool(doubles) > 1:
            return None
        if decimals:
            sign, digits, exponent = Decimal(decimal).as_tuple()
            assert isinstance(exponent, int)
            total = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
            return cls(Decimal, decimals, -total if sign else total, max(-exponent, 0), failures)
        if doubles:
            return cls(float, doubles, unpack_int(mantissa), scale, failures)
        return cls(int, integers, unpack_int(whole), 0, failures)

    def state(self, name: str) -> State:
        """The state of an accumulator with this sum."""
        counts = [self.count if self.kind is kind else 0 for kind in (int, Decimal, XsdFloat, float)]
        whole, mantissa = (self.total if self.kind is kind else 0 for kind in (int, float))
        decimal, scale = _ZERO, self.scale if self.kind is float else 0
        if self.kind is Decimal:
            sign, digits, _ = Decimal(self.total).as_tuple()
            decimal = Decimal((sign, digits, -self.scale))
        sums = [pack_int(whole), decimal_lexical(decimal), pack_int(mantissa), scale]
        return [name, list(map(pack_int, (*counts, self.failures))), sums, [0] * len(_SPECIALS)]
