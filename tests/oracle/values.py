"""Literals and their values: numbers exactly, strings, booleans; everything else is left to pyoxigraph.

Integers are ``int``, decimals ``Decimal`` (sums and products exact, quotients rounded), doubles and
floats ``float``.  Results are spelled in XSD 1.1's canonical form: integers ``5``, decimals ``1.5`` and ``2``, doubles
``1.5E0``.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Literal

from etalis_rules.terms import FALSE, TRUE, XSD, is_literal, literal, parts

EXACT = Context(prec=2000, rounding=ROUND_HALF_EVEN)

Kind = Literal["integer", "decimal", "float", "double"]
RANK: dict[str, int] = {"integer": 0, "decimal": 1, "float": 2, "double": 3}
_LEXICAL = {
    "integer": re.compile(r"[+-]?\d+\Z", re.ASCII),
    "decimal": re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)\Z", re.ASCII),
    "float": re.compile(r"([+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?INF|NaN)\Z", re.ASCII),
}
_BOUNDS: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    **{
        name: (-(2 ** (b - 1)), 2 ** (b - 1) - 1) for name, b in (("long", 64), ("int", 32), ("short", 16), ("byte", 8))
    },
    **{"unsigned" + n: (0, 2**b - 1) for n, b in (("Long", 64), ("Int", 32), ("Short", 16), ("Byte", 8))},
}


class ExpressionError(Exception):
    """The error value of SPARQL §17.2: an expression that has no value."""


@dataclass(frozen=True, slots=True)
class Number:
    kind: Kind
    value: int | Decimal | float


def single(value: float) -> float:
    """The nearest 32-bit float."""
    if math.isnan(value) or math.isinf(value):
        return value
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def number(term: str) -> Number | None:
    """The number a literal denotes, or None."""
    if not is_literal(term):
        return None
    lexical, datatype, _ = parts(term)
    if not datatype.startswith(XSD):
        return None
    name = datatype[len(XSD) :]
    if name in _BOUNDS:
        if not _LEXICAL["integer"].match(lexical):
            return None
        low, high = _BOUNDS[name]
        value = int(lexical)
        inside = (low is None or value >= low) and (high is None or value <= high)
        return Number("integer", value) if inside else None
    if name == "decimal" and _LEXICAL["decimal"].match(lexical):
        return Number("decimal", Decimal(lexical))
    if name in ("double", "float") and _LEXICAL["float"].match(lexical):
        value = float(lexical.replace("INF", "inf"))
        return Number("double", value) if name == "double" else Number("float", single(value))
    return None


def spell(n: Number) -> str:
    """The canonical literal of a number."""
    return literal(lexical_form(n), XSD + n.kind)


def lexical_form(n: Number) -> str:
    if isinstance(n.value, int):
        return str(n.value)
    if isinstance(n.value, Decimal):
        text = f"{n.value:f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text in ("-0", "") else text
    return _floating(n.value, n.kind)


def _floating(value: float, kind: str) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    text = repr(value)
    if kind == "float":
        text = next(s for p in range(9) if single(float(s := f"{value:.{p}e}")) == value)
    sign, digits, exponent = Decimal(text).as_tuple()
    shown = "".join(map(str, digits))
    power = int(exponent) + len(shown) - 1 if any(digits) else 0
    fraction = shown[1:].rstrip("0") or "0"
    return f"{'-' if sign else ''}{shown[0]}.{fraction}E{power}"


def _quotient(a: Decimal, b: Decimal) -> Decimal:
    """34 significant digits, and one more for every power of ten by which the dividend is the greater."""
    digits = 34 + max(0, a.adjusted() - b.adjusted())
    return Context(prec=digits, rounding=ROUND_HALF_EVEN).divide(a, b)


def arithmetic(operator: str, a: Number, b: Number) -> Number:
    """``+ - * /`` after numeric type promotion; ``/`` of two integers is a decimal."""
    kind: Kind = a.kind if RANK[a.kind] >= RANK[b.kind] else b.kind
    if kind in ("float", "double"):
        rounded = single if kind == "float" else float
        return Number(kind, rounded(_float_arithmetic(operator, rounded(float(a.value)), rounded(float(b.value)))))
    if operator == "/":
        if b.value == 0:
            raise ExpressionError("division by zero")
        return Number("decimal", _quotient(Decimal(a.value), Decimal(b.value)))
    if kind == "integer":
        x, y = int(a.value), int(b.value)
        return Number(kind, x + y if operator == "+" else x - y if operator == "-" else x * y)
    operation = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}[operator]
    return Number(kind, operation(Decimal(a.value), Decimal(b.value)))


def _float_arithmetic(operator: str, x: float, y: float) -> float:
    if operator == "+":
        return x + y
    if operator == "-":
        return x - y
    if operator == "*":
        return x * y
    if y == 0:
        return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1.0, y)
    return x / y


def compare_numbers(a: Number, b: Number) -> int | None:
    """-1, 0, 1 or None (a NaN); exact unless a float takes part, then both are promoted to it."""
    x, y = a.value, b.value
    if isinstance(x, float) or isinstance(y, float):
        x, y = float(x), float(y)
        if "double" not in (a.kind, b.kind):
            x, y = single(x), single(y)
        if math.isnan(x) or math.isnan(y):
            return None
    return (x > y) - (x < y)  # type: ignore[operator]


def boolean(value: bool) -> str:
    return TRUE if value else FALSE


def truth(term: str) -> bool | None:
    """The boolean a literal denotes, or None."""
    if not is_literal(term):
        return None
    lexical, datatype, _ = parts(term)
    return {"true": True, "1": True, "false": False, "0": False}.get(lexical) if datatype == XSD + "boolean" else None


def is_ill_typed(term: str) -> bool:
    """Whether a literal is a number or a boolean by its datatype, and by its lexical form none."""
    if not is_literal(term):
        return False
    _, datatype, _ = parts(term)
    named = datatype in {XSD + name for name in (*_BOUNDS, "decimal", "float", "double", "boolean")}
    return named and number(term) is None and truth(term) is None


def effective_boolean_value(term: str) -> bool:
    """SPARQL §17.2.2."""
    if is_literal(term):
        lexical, datatype, language = parts(term)
        if language or not datatype:
            return lexical != ""
        if datatype == XSD + "boolean":
            return truth(term) is True
        n = number(term)
        if n:
            return not (n.value == 0 or (isinstance(n.value, float) and math.isnan(n.value)))
        if datatype.startswith(XSD) and datatype[len(XSD) :] in (*_BOUNDS, "decimal", "float", "double"):
            return False
    raise ExpressionError("no effective boolean value")


def kind_of(term: str) -> str:
    """``iri``, ``blank``, ``number``, ``string``, ``language``, ``boolean`` or ``other``."""
    if not is_literal(term):
        return "iri" if term[:1] == "<" else "blank"
    _, datatype, language = parts(term)
    if language:
        return "language"
    if not datatype:
        return "string"
    if truth(term) is not None:
        return "boolean"
    return "number" if number(term) else "other"
