"""The bindings of a match as plain JSON values, for consumers that know no RDF."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from etalis_py.values.lexical import PARSERS

_EXACT = 2**53
"""Integers up to here are the same for consumers whose only numbers are doubles, as JavaScript's."""


def plain_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """A match (``Match.to_dict``) with plain bindings.

    >>> plain_record({"query": "q", "id": "1", "bindings": {"c": {"type": "uri", "value": "urn:a"}}, "start": 1})
    {'query': 'q', 'id': '1', 'bindings': {'c': 'urn:a'}, 'start': 1}
    """
    if "bindings" not in record:
        return dict(record)
    return {name: plain_bindings(record) if name == "bindings" else value for name, value in record.items()}


def plain_bindings(record: Mapping[str, Any]) -> dict[str, Any]:
    """
    >>> integer = "http://www.w3.org/2001/XMLSchema#integer"
    >>> plain_bindings({"bindings": {"x": {"type": "literal", "value": "12", "datatype": integer}}})
    {'x': 12}
    """
    return {name: plain_value(term) for name, term in (record.get("bindings") or {}).items()}


def plain_value(term: Mapping[str, Any]) -> Any:
    """A boolean or a number, otherwise the text of the term, as for NaN and an integer that a double does not hold.

    Decimals are the nearest double, as consumers of JSON read them.
    """
    text, datatype = term["value"], term.get("datatype", "")
    if isinstance(text, Mapping):
        return {name: plain_value(part) for name, part in text.items()}  # a triple term
    value = PARSERS.get(datatype, str)(text)
    match value:
        case bool():
            return value
        case int() if abs(value) < _EXACT:
            return value
        case float() | Decimal() if math.isfinite(number := float(text)):
            return number
        case _:
            return text
