"""Operators and functions on terms.  What is not exact in pyoxigraph is done here, the rest there on constants."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, copysign, floor, isfinite, isinf
from typing import Any

import pyoxigraph
from etalis_rules.terms import RDF, XSD, iri, is_blank, is_iri, is_literal, literal, parts

from .times import day_time_duration, duration_of, year_month_duration
from .values import (
    ExpressionError,
    Number,
    arithmetic,
    boolean,
    compare_numbers,
    is_ill_typed,
    kind_of,
    number,
    single,
    spell,
    truth,
)

_EMPTY = pyoxigraph.Store()
LONGEST = 10**30
"""Months or microseconds of a duration (docs/resources.md)."""
_PLAIN = ("number", "string", "boolean", "language", "iri", "blank")


@lru_cache(maxsize=4096)
def delegated(expression: str) -> str:
    """The value of an expression over constants, as SPARQL 1.1 (with date arithmetic) defines it."""
    answer = next(iter(_EMPTY.query(f"SELECT ({expression} AS ?r) {{}}")))["r"]  # type: ignore[call-overload]
    if answer is None:
        raise ExpressionError(expression)
    term = str(answer)
    return literal(*parts(term)) if is_literal(term) else term


def delegate_call(name: str, arguments: list[str]) -> str:
    if any(is_blank(a) for a in arguments):
        raise ExpressionError(f"{name} of a blank node")
    return delegated(f"{name}({', '.join(arguments)})")


def equal(a: str, b: str) -> bool:
    """``=``: numbers by value, other known kinds by spelling, RDFterm-equal's error where nothing is known."""
    kinds = kind_of(a), kind_of(b)
    if kinds == ("number", "number"):
        return compare_numbers(number(a), number(b)) == 0  # type: ignore[arg-type]
    if kinds == ("boolean", "boolean"):
        return truth(a) == truth(b)
    if a == b:
        return True
    if "iri" in kinds or "blank" in kinds or "language" in kinds or all(k in _PLAIN for k in kinds):
        return False
    return truth(delegated(f"{a} = {b}")) is True


def less(a: str, b: str) -> bool:
    kinds = kind_of(a), kind_of(b)
    if kinds == ("number", "number"):
        return compare_numbers(number(a), number(b)) == -1  # type: ignore[arg-type]
    if kinds == ("boolean", "boolean"):
        return bool(truth(b)) and not truth(a)
    if kinds == ("string", "string"):
        return parts(a)[0] < parts(b)[0]
    if "blank" in kinds or "iri" in kinds or "language" in kinds:
        raise ExpressionError("SPARQL's operator table orders neither resources nor strings with a language")
    if any(not parts(term)[1].startswith(XSD) for term, kind in zip((a, b), kinds, strict=True) if kind == "other"):
        raise ExpressionError("SPARQL's operator table orders no literals of an unknown datatype")
    if is_ill_typed(a) or is_ill_typed(b):
        raise ExpressionError("an ill-typed number or boolean has no order, not even with itself")
    return truth(delegated(f"{a} < {b}")) is True


def compare(operator: str, a: str, b: str) -> bool:
    match operator:
        case "=":
            return equal(a, b)
        case "!=":
            return not equal(a, b)
        case "<":
            return less(a, b)
        case ">":
            return less(b, a)
        case "<=":
            return less(a, b) or equal(a, b)
        case ">=":
            return less(b, a) or equal(a, b)
    raise ValueError(operator)


def calculate(operator: str, a: str, b: str) -> str:
    x, y = number(a), number(b)
    if x and y:
        return spell(arithmetic(operator, x, y))
    if not (is_literal(a) and is_literal(b)):
        raise ExpressionError("arithmetic on what is not a literal")
    spans = [t for t in (a, b) if duration_of(t)]
    if operator in ("*", "/") and any(parts(span)[1] != XSD + "duration" for span in spans):
        return _scaled(operator, a, b)
    if operator == "+" and len(spans) == 1:  # pyoxigraph puts the operands of a constant sum in another order
        (moment,) = {a, b} - set(spans)
        lexical, datatype, _ = parts(spans[0])
        turned = lexical[1:] if lexical.startswith("-") else f"-{lexical}"
        return delegated(f"{moment} - {literal(turned, datatype)}")
    return delegated(f"{a} {operator} {b}")


def _scaled(operator: str, a: str, b: str) -> str:
    """XPath F&O 8.4: a dayTimeDuration or yearMonthDuration times or divided by a number, to the microsecond or the
    month, halves upward; the quotient of two of a kind is a decimal."""
    if operator == "*" and number(a):
        a, b = b, a
    span, other, factor = duration_of(a), duration_of(b), number(b)
    datatype = parts(a)[1]
    of_months = datatype == XSD + "yearMonthDuration"
    if span and other and operator == "/" and datatype == parts(b)[1]:
        lengths = [int(months if of_months else micros) for months, micros in (span, other)]
        return spell(arithmetic("/", *(Number("decimal", Decimal(length)) for length in lengths)))
    if not (span and factor):
        raise ExpressionError(f"a duration {operator} what is no number")
    spelled = year_month_duration if of_months else day_time_duration
    if operator == "/" and isinstance(factor.value, float) and isinf(factor.value):
        return spelled(0)
    if (operator == "/" and not factor.value) or not isfinite(factor.value):
        raise ExpressionError(f"a duration {operator} {factor.value}")
    length = Fraction(span[0]) if of_months else span[1]
    exact = length * Fraction(factor.value) if operator == "*" else length / Fraction(factor.value)
    if abs(exact) > LONGEST:
        raise ExpressionError("a duration beyond the bound of the value space")
    return spelled(floor(exact + Fraction(1, 2)))


def negate(a: str) -> str:
    n = number(a)
    if n:
        return spell(Number(n.kind, -n.value))
    return calculate("*", a, literal("-1", XSD + "integer"))


def string_of(term: str) -> str:
    """STR(): of literals and IRIs."""
    if is_blank(term) or term.startswith("<<"):
        raise ExpressionError("STR of a blank node or a triple term")
    return literal(parts(term)[0]) if is_literal(term) else literal(term[1:-1])


def call(name: str, arguments: list[str]) -> str:
    """A built-in on evaluated arguments; ``name`` in upper case."""
    first = arguments[0] if arguments else ""
    match name:
        case "ISIRI" | "ISURI":
            return boolean(is_iri(first))
        case "ISBLANK":
            return boolean(is_blank(first))
        case "ISLITERAL":
            return boolean(is_literal(first))
        case "ISNUMERIC":
            return boolean(number(first) is not None)
        case "SAMETERM":
            return boolean(first == arguments[1])
        case "STR":
            return string_of(first)
        case "IRI" | "URI" if is_iri(first):
            return first
        case "LANG" | "DATATYPE":
            return _literal_part(name, first)
        case "ABS" | "CEIL" | "FLOOR" | "ROUND":
            return _rounded(name, first)
        case "RAND" | "UUID" | "STRUUID" | "BNODE":
            raise NotImplementedError(f"the oracle does not define {name}: its value is free")
    return delegate_call(name, arguments)


def _literal_part(name: str, term: str) -> str:
    if not is_literal(term):
        raise ExpressionError(f"{name} of what is not a literal")
    _, datatype, language = parts(term)
    if name == "LANG":
        return literal(language)
    return iri(datatype or (RDF + "langString" if language else XSD + "string"))


def _rounded(name: str, term: str) -> str:
    n = number(term)
    if not n:
        raise ExpressionError(f"{name} of what is not a number")
    value = n.value
    if name == "ABS":
        return spell(Number(n.kind, abs(value)))
    if isinstance(value, int) or (isinstance(value, float) and not isfinite(value)):
        return spell(n)
    if isinstance(value, Decimal):
        half = Decimal("0.5") if name == "ROUND" else Decimal(0)
        mode = ROUND_CEILING if name == "CEIL" else ROUND_FLOOR
        return spell(Number(n.kind, (value + half).to_integral_value(rounding=mode)))
    whole = ceil(value) if name == "CEIL" else floor(value + (0.5 if name == "ROUND" else 0))
    return spell(Number(n.kind, copysign(float(whole), value)))


def cast(datatype: str, term: str) -> str:
    """A constructor function ``xsd:…(term)``; ``datatype`` without angle brackets."""
    target = datatype.removeprefix(XSD)
    if target == "string":
        return string_of(term)
    source = number(term)
    flag = truth(term)
    if flag is not None and target in ("integer", "decimal", "float", "double"):
        source = Number("integer", int(flag))
    if target in ("integer", "decimal", "float", "double"):
        return _to_number(target, term, source)
    if target == "boolean":
        if source:
            return boolean(not (source.value == 0 or source.value != source.value))
        if kind_of(term) == "string":
            return boolean(_valid(truth(literal(parts(term)[0], datatype))))
    if not is_literal(term):
        raise ExpressionError("cast of what is not a literal")
    return delegated(f"<{datatype}>({term})")


def _valid(value: Any) -> Any:
    if value is None:
        raise ExpressionError("not in the lexical space")
    return value


def _to_number(target: str, term: str, source: Number | None) -> str:
    if source is None:
        if kind_of(term) != "string":
            raise ExpressionError("cast of what is not a number")
        return spell(_valid(number(literal(parts(term)[0].strip(), XSD + target))))
    if target in ("integer", "decimal"):
        if isinstance(source.value, float) and not isfinite(source.value):
            raise ExpressionError("no finite number")
        exact = Decimal(source.value)
        return spell(Number("integer", int(exact)) if target == "integer" else Number("decimal", exact))
    value = float(source.value)
    return spell(Number("float", single(value)) if target == "float" else Number("double", value))
