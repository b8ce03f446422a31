"""What consumers that know no RDF are sent for a term: Kafka, PostgreSQL, webhooks and the other connectors."""

from __future__ import annotations

from typing import Any

import pytest

from etalis_py.connectors.plain import plain_value
from etalis_py.streams.json_terms import json_term

XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("12", "integer", 12),
        ("12", "unsignedLong", 12),
        ("12", "unsignedByte", 12),
        ("-12", "negativeInteger", -12),
        ("9007199254740991", "long", 2**53 - 1),
        ("9007199254740992", "long", "9007199254740992"),  # JavaScript has no 9007199254740993
        ("1.10", "decimal", 1.1),
        ("1.1", "float", 1.1),
        ("1e400", "double", "1e400"),
        ("NaN", "double", "NaN"),
        ("1", "boolean", True),
        ("false", "boolean", False),
        ("2026-01-31", "date", "2026-01-31"),
        # What is no value of its datatype is a text, whatever Python makes of it.
        ("1_000", "integer", "1_000"),
        ("300", "byte", "300"),
        ("1_0.5", "decimal", "1_0.5"),
        ("yes", "boolean", "yes"),
    ],
)
def test_values_are_plain_if_json_has_them(text: str, kind: str, value: Any) -> None:
    found = plain_value(json_term(f'"{text}"^^<{XSD}{kind}>'))
    assert (found, type(found)) == (value, type(value))
