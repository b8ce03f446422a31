"""Constructor functions ``xsd:…(value)`` ([SPARQL 1.1 Query] §17.5, XPath Functions §17).

A string is read by the lexical space of the target (white space around it is ignored, as XPath does); other values are
converted, or are an error.  A cast to a type that shares its Python class with another (``xsd:byte``, ``xsd:duration``)
gives a term, which carries the datatype.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from math import isfinite, trunc
from typing import Any

from etalis_rules.calendar import DAY, MINUTE
from etalis_rules.terms import XSD, literal

from etalis_py.values.canonical import (
    date_lexical,
    date_time_lexical,
    decimal_lexical,
    double_as_string,
    duration_lexical,
    integer_lexical,
    time_lexical,
)
from etalis_py.values.errors import SparqlError, type_error
from etalis_py.values.functions.spec import FunctionSpec
from etalis_py.values.lexical import INTEGER_RANGES, PARSERS
from etalis_py.values.types import (
    Date,
    DateTime,
    Duration,
    IriValue,
    LangString,
    Time,
    XsdFloat,
    to_double,
)

_WHITE = "\t\n\r "

_TEXTS: dict[type, Callable[[Any], str]] = {
    str: str,
    IriValue: str,
    LangString: lambda value: value.text,
    bool: lambda value: "true" if value else "false",
    int: integer_lexical,
    Decimal: decimal_lexical,
    float: double_as_string,
    XsdFloat: double_as_string,
    DateTime: date_time_lexical,
    Date: date_lexical,
    Time: time_lexical,
    Duration: duration_lexical,
}


def to_string(value: Any) -> str:
    """xsd:string: the canonical text of a value; the IRI of an IRI."""
    text = _TEXTS.get(value.__class__)
    if text is None:
        raise type_error("xsd:string", value)
    return text(value)


def _read(name: str, value: str) -> Any:
    """The value of a text in a datatype."""
    result = PARSERS[XSD + name](value.strip(_WHITE))
    if result is None:
        raise SparqlError(f"{value!r} is not a lexical form of xsd:{name}")
    return result


def _finite(name: str, value: float) -> float:
    if not isfinite(value):
        raise SparqlError(f"xsd:{name} has no value for {double_as_string(value)}")
    return value


def to_boolean(value: Any) -> bool:
    c = value.__class__
    if c is str:
        return bool(_read("boolean", value))
    if c in (bool, int, Decimal, float, XsdFloat):
        return bool(value == value and value != 0)
    raise type_error("xsd:boolean", value)


def to_integer(value: Any) -> int:
    """xsd:integer: fractions are cut off."""
    c = value.__class__
    if c is str:
        return int(_read("integer", value))
    if c is bool or c is int or c is Decimal:
        return int(value)
    if c is float or c is XsdFloat:
        return trunc(_finite("integer", value))
    raise type_error("xsd:integer", value)


def to_decimal(value: Any) -> Decimal:
    """xsd:decimal: for a float, exactly the number it holds."""
    c = value.__class__
    if c is str:
        return Decimal(_read("decimal", value))
    if c is bool or c is int or c is Decimal:
        return Decimal(value)
    if c is float or c is XsdFloat:
        return Decimal(float(_finite("decimal", value)))
    raise type_error("xsd:decimal", value)


def _to_floating(name: str, make: Callable[[Any], float], value: Any) -> float:
    c = value.__class__
    if c is str:
        return make(_read(name, value))
    if c in (bool, int, Decimal, float, XsdFloat):
        return make(value)
    raise type_error(f"xsd:{name}", value)


to_xsd_double = partial(_to_floating, "double", to_double)
to_xsd_float = partial(_to_floating, "float", XsdFloat)


def to_date_time(value: Any) -> DateTime:
    """xsd:dateTime: for a date, its midnight."""
    c = value.__class__
    if c is str:
        return _read("dateTime", value)  # type: ignore[no-any-return]
    if c is DateTime:
        return value  # type: ignore[no-any-return]
    if c is Date:
        return DateTime(value.us, value.offset)
    raise type_error("xsd:dateTime", value)


def to_date(value: Any) -> Date:
    c = value.__class__
    if c is str:
        return _read("date", value)  # type: ignore[no-any-return]
    if c is Date:
        return value  # type: ignore[no-any-return]
    if c is DateTime:
        return Date(value.us - (value.us + (value.offset or 0) * MINUTE) % DAY, value.offset)
    raise type_error("xsd:date", value)


def to_time(value: Any) -> Time:
    c = value.__class__
    if c is str:
        return _read("time", value)  # type: ignore[no-any-return]
    if c is Time:
        return value  # type: ignore[no-any-return]
    if c is DateTime:
        zone = (value.offset or 0) * MINUTE
        return Time((value.us + zone) % DAY - zone, value.offset)
    raise type_error("xsd:time", value)


def _to_duration(name: str, value: Any) -> str:
    """The term of a duration in the datatype; the parts that it does not have are left out."""
    if value.__class__ is str:
        value = _read(name, value)
    if value.__class__ is not Duration:
        raise type_error(f"xsd:{name}", value)
    months = 0 if name == "dayTimeDuration" else value.months
    micros = 0 if name == "yearMonthDuration" else value.micros
    by_months = name == "yearMonthDuration"
    return literal(duration_lexical(Duration(months, micros, by_months)), XSD + name)


def _to_derived(name: str, value: Any) -> str:
    """The term of an integer in a derived type; beyond its range it is an error."""
    low, high = INTEGER_RANGES[name]
    number = to_integer(value)
    if (low is not None and number < low) or (high is not None and number > high):
        raise SparqlError(f"{integer_lexical(number)} is outside xsd:{name}")
    return literal(integer_lexical(number), XSD + name)


def _cast(name: str, call: Callable[[Any], Any], *, term: bool = False) -> FunctionSpec:
    return FunctionSpec(f"xsd:{name}", call, 1, 1, gives="term" if term else "value")


_TO_VALUE: dict[str, Callable[[Any], Any]] = {
    "string": to_string,
    "boolean": to_boolean,
    "integer": to_integer,
    "decimal": to_decimal,
    "double": to_xsd_double,
    "float": to_xsd_float,
    "dateTime": to_date_time,
    "date": to_date,
    "time": to_time,
}

CASTS: dict[str, FunctionSpec] = {
    **{XSD + name: _cast(name, call) for name, call in _TO_VALUE.items()},
    **{
        XSD + name: _cast(name, partial(_to_duration, name), term=True)
        for name in ("duration", "dayTimeDuration", "yearMonthDuration")
    },
    **{XSD + name: _cast(name, partial(_to_derived, name), term=True) for name in INTEGER_RANGES},
}
"""Datatype IRI → its constructor function."""
