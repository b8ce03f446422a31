"""The bindings of a match as plain JSON values, for consumers that know no RDF."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_XSD = "http://www.w3.org/2001/XMLSchema#"
_INTEGERS = {"integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "unsignedInt"}
_NUMBERS = {"decimal", "double", "float"}


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
    """A number or a boolean if JSON has it exactly so, otherwise the text of the term."""
    text, kind = term["value"], str(term.get("datatype", "")).removeprefix(_XSD)
    if isinstance(text, Mapping):
        return {name: plain_value(part) for name, part in text.items()}  # a triple term
    try:
        if kind in _INTEGERS and abs(int(text)) < 2**53:
            return int(text)
        if kind in _NUMBERS and math.isfinite(float(text)):
            return float(text)
    except ValueError:
        return text
    return text in ("true", "1") if kind == "boolean" else text
