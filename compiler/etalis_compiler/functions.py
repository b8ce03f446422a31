"""The functions that a query may call by an IRI, and the errors for calls of others.

The grammar accepts any IRI before parentheses; this module knows which of them can be evaluated, so that a misspelt
cast is an error that points into the query.
"""

from __future__ import annotations

from etalis_rules.messages import closest
from etalis_rules.terms import XSD, iri_value

from . import ast
from .unsupported import Fault

CASTS = frozenset(
    XSD + name
    for name in (
        *("string", "boolean", "decimal", "double", "float", "dateTime", "date", "time"),
        *("duration", "dayTimeDuration", "yearMonthDuration", "integer", "long", "int", "short", "byte"),
        *("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
        *("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
"""The constructor functions of XML Schema ([SPARQL 1.1 Query] §17.5), all of one argument."""

_ADVICE = "the functions with an IRI are the casts of XML Schema, such as xsd:integer(?x)"


def check_function(call: ast.FunctionCall) -> None:
    """Raise a ``Fault`` unless the function exists and takes this number of arguments."""
    name = iri_value(call.iri)
    if name not in CASTS:
        near = closest(_local(name), map(_local, CASTS))
        raise Fault(
            "unknown-function",
            f"there is no function <{name}>",
            f"did you mean xsd:{near}?" if near else _ADVICE,
            call.span,
        )
    if call.distinct or len(call.arguments) != 1:
        given = "DISTINCT" if call.distinct else f"{len(call.arguments)} arguments"
        shown = f"xsd:{_local(name)}"
        raise Fault("arguments", f"{shown} takes one argument, not {given}", f"write {shown}(?x)", call.span)


def _local(name: str) -> str:
    """The part of an IRI after its namespace."""
    return name.rpartition("#")[2].rpartition("/")[2]
