"""Terms to values and back.

``decode``, ``decode_or_none`` and ``decode_number`` are bounded dictionaries that compute what is missing: a term seen
before costs one look-up in C, a fresh number literal some tenths of a microsecond.  When a cache is full it is
emptied; terms longer than ``LONGEST_CACHED`` are never kept, so that a cache holds at most a few megabytes whatever the
stream brings.
Doubles with many digits come from measurements or computations: they do not recur, and are not kept either.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
from etalis_rules.terms import FALSE, TRUE, XSD, iri, iri_value, literal, triple, triple_parts, unescape

from etalis_py.values.canonical import (
    date_lexical,
    date_time_lexical,
    decimal_lexical,
    double_lexical,
    duration_lexical,
    integer_lexical,
    time_lexical,
)
from etalis_py.values.errors import SparqlError, Unbound
from etalis_py.values.lexical import NUMBER_PARSERS, PARSERS, parse_decimal, parse_double, parse_integer
from etalis_py.values.types import (
    BlankValue,
    Date,
    DateTime,
    Duration,
    IriValue,
    LangString,
    Opaque,
    Time,
    TripleValue,
    Value,
    XsdFloat,
)

CACHED_TERMS = 1 << 14
LONGEST_CACHED = 256
MANY_DIGITS = 8

_INTEGER_TAIL, _DECIMAL_TAIL = f'"^^<{XSD}integer>', f'"^^<{XSD}decimal>'
_INTEGER_END, _DECIMAL_END = -len(_INTEGER_TAIL), -len(_DECIMAL_TAIL)
_DOUBLE_TAIL = f'"^^<{XSD}double>'
_DOUBLE_END = -len(_DOUBLE_TAIL)
_LONGEST_KEPT = 1 + MANY_DIGITS - _DOUBLE_END
_read_double = msgspec.json.Decoder(float, strict=False).decode
"""Reads a string of JSON as a number, which takes a fifth of the time of ``float`` if it has many digits."""

_NUMBER_TAILS: dict[str, Callable[[str], Any]] = {f"^^<{name}>": parse for name, parse in NUMBER_PARSERS.items()}
_TAILS: dict[str, Callable[[str], Any]] = {f"^^<{name}>": parse for name, parse in PARSERS.items()}


def _decode_literal(term: str) -> Value:
    close = term.rindex('"')
    text, tail = term[1:close], term[close + 1 :]
    if "\\" in text:
        text = unescape(text)
    if not tail:
        return text
    parse = _TAILS.get(tail)
    if parse is not None:
        value: Value | None = parse(text)
        return Opaque(term) if value is None else value
    return LangString(text, tail[1:].lower()) if tail[0] == "@" else Opaque(term)


class _Numbers(dict[str, Any]):
    """Term → number, or ``None`` for every term that is not a well-formed number."""

    def __missing__(self, term: str) -> int | Decimal | float | None:
        value: int | Decimal | float | None
        if term.endswith(_INTEGER_TAIL):  # the two commonest first: a dictionary would hash the tail each time
            value = parse_integer(term[1:_INTEGER_END])
        elif term.endswith(_DECIMAL_TAIL):
            value = parse_decimal(term[1:_DECIMAL_END])
        else:
            close = term.rfind('"')
            parse = _NUMBER_TAILS.get(term[close + 1 :])
            value = None if parse is None else parse(term[1:close])
        if len(term) <= LONGEST_CACHED:
            if len(self) >= CACHED_TERMS:
                self.clear()
            self[term] = value
        return value


class _Values(dict[str, Any]):
    """Term → value; the empty term is ``Unbound``."""

    def __missing__(self, term: str) -> Value:
        value: Value
        number: Value | None
        if term.endswith(_DOUBLE_TAIL):  # the commonest first
            # Numbers of JSON are numbers of XML Schema.  Whatever else may be read as one is left to ``parse_double``:
            # names of infinity and NaN, escaped digits, and -0, which is an integer without a sign in JSON.
            try:
                number = _read_double(term[: _DOUBLE_END + 1])
                plain = number and number - number == 0.0 and "\\" not in term
            except (msgspec.DecodeError, UnicodeError):
                plain = False
            if not plain:
                number = parse_double(term[1:_DOUBLE_END])
            value = Opaque(term) if number is None else number
            if len(term) > _LONGEST_KEPT:
                return value
        elif term.endswith(_INTEGER_TAIL):
            text = term[1:_INTEGER_END]
            number = parse_integer(text)
            value = Opaque(term) if number is None else number
        elif term.endswith(_DECIMAL_TAIL):
            number = parse_decimal(term[1:_DECIMAL_END])
            value = Opaque(term) if number is None else number
        elif (first := term[:1]) == '"':
            value = _decode_literal(term)
        elif first == "<":
            value = IriValue(iri_value(term)) if term[:2] != "<<" else TripleValue(triple_parts(term))
        elif first == "_":
            value = BlankValue(term)
        elif not term:
            raise Unbound("an unbound variable has no value; test it with BOUND or COALESCE")
        else:
            raise ValueError(f"{term!r} is not an RDF term in N-Triples spelling")
        if len(term) <= LONGEST_CACHED:
            if len(self) >= CACHED_TERMS:
                self.clear()
            self[term] = value
        return value


class _ValuesOrNone(_Values):
    """The same; the empty term, and one whose value is an error, are None."""

    def __missing__(self, term: str) -> Any:
        if not term:
            return None
        try:
            return super().__missing__(term)
        except SparqlError:
            return None


decode: Callable[[str], Any] = _Values().__getitem__
"""The value of a term; raises ``Unbound`` for the empty one.

>>> decode('"042"^^<http://www.w3.org/2001/XMLSchema#integer>')
42
"""

decode_or_none: Callable[[str], Any] = _ValuesOrNone().__getitem__
"""The value of a term, or None when it is unbound; reading None as a value is an error."""

decode_number: Callable[[str], Any] = _Numbers().__getitem__
"""The number a term stands for, or ``None`` (also for an ill-formed one, and for the unbound term)."""


def _typed(name: str, lexical: Callable[[Any], str]) -> Callable[[Any], str]:
    tail = f'"^^<{XSD}{name}>'
    return lambda value: f'"{lexical(value)}{tail}'


_DAY_TIME = _typed("dayTimeDuration", duration_lexical)
_YEAR_MONTH = _typed("yearMonthDuration", duration_lexical)
_DURATION = _typed("duration", duration_lexical)


def _encode_duration(value: Duration) -> str:
    if value.is_year_month:
        return _YEAR_MONTH(value)
    return _DURATION(value) if value.months else _DAY_TIME(value)


_ENCODERS: dict[type, Callable[[Any], str]] = {
    int: _typed("integer", integer_lexical),
    Decimal: _typed("decimal", decimal_lexical),
    float: _typed("double", double_lexical),
    XsdFloat: _typed("float", double_lexical),
    bool: lambda value: TRUE if value else FALSE,
    str: literal,
    LangString: lambda value: literal(value.text, language=value.language),
    DateTime: _typed("dateTime", date_time_lexical),
    Date: _typed("date", date_lexical),
    Time: _typed("time", time_lexical),
    Duration: _encode_duration,
    IriValue: iri,
    BlankValue: str,
    TripleValue: lambda value: triple(*value),
    Opaque: lambda value: value.term,
}


def encode(value: Any) -> str:
    """The term of a computed value, in canonical lexical form.

    A duration without months is an xsd:dayTimeDuration, one of months alone, or of none as the result of arithmetic
    with such, an xsd:yearMonthDuration.

    >>> encode(True and 3)
    '"3"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """
    encoder = _ENCODERS.get(value.__class__)
    if encoder is None:
        raise TypeError(f"{value!r} of class {type(value).__name__} is not a value of an RDF term")
    return encoder(value)
