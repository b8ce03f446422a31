"""Plain JSON objects: by a mapping, by a JSON-LD context; and Turtle with prefixes that nobody declared."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from etalis_rules.terms import RDF, XSD, literal

from etalis_py.streams import StreamError, read_stream
from etalis_py.streams.timing import Punctuation

EX = "http://example.org/"
PRICE = {"subject": ":{symbol}", "predicate": ":price", "object": "{price}"}


def read(*lines: Any, **options: Any) -> list[Any]:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return list(read_stream(io.BytesIO(text.encode()), format="jsonl", now=lambda: 1000, **options))


def objects(*lines: Any, **options: Any) -> list[str]:
    return [event.triples[0][2] for event in read(*lines, **options)]


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "[1, NaN]"])
def test_it_is_told_that_json_has_no_nan(value: str) -> None:
    with pytest.raises(StreamError, match="JSON has no NaN and no Infinity: write null"):
        read(f'{{"time": 1, "symbol": "ACME", "price": {value}}}', mapping=PRICE)
    with pytest.raises(StreamError, match="write one JSON object a line"):
        read('{"symbol": "NaN"', mapping=PRICE)


def test_a_plain_object_is_read_by_a_mapping() -> None:
    (event,) = read({"time": 1, "symbol": "ACME", "price": 10}, mapping=PRICE)
    assert event.triples == ((f"<{EX}ACME>", f"<{EX}price>", literal("10", XSD + "integer")),)
    assert event.end == 1_000_000
    typed = PRICE | {"predicate": "a", "object": ":Firm"}
    assert read({"time": 1, "symbol": "ACME"}, mapping=typed)[0].triples[0][1] == f"<{RDF}type>"


@pytest.mark.parametrize(
    ("value", "term"),
    [
        ("10", literal("10", XSD + "integer")),
        ("10.50", literal("10.50", XSD + "decimal")),
        ("1e5", literal("1e5", XSD + "double")),
        ("true", literal("true", XSD + "boolean")),
        ('"10"', '"10"'),
        ('"a \\"b\\""', '"a \\"b\\""'),
        ("123456789012345678901234567890", literal("123456789012345678901234567890", XSD + "integer")),
    ],
)
def test_a_value_keeps_its_type_and_its_spelling(value: str, term: str) -> None:
    assert objects(f'{{"time": 1, "symbol": "a", "price": {value}}}', mapping=PRICE) == [term]


def test_the_time_of_a_plain_object() -> None:
    one = {"symbol": "a", "price": 1}
    assert [
        e[:2] for e in read(one | {"start": 1, "end": 2}, one | {"time": [3, 4]}, mapping=PRICE, time_unit="us")
    ] == [(1, 2), (3, 4)]
    assert [e.end for e in read(one | {"at": 0.5}, mapping=PRICE | {"time": "{at}"})] == [500_000]
    assert [e.end for e in read(one, mapping=PRICE)] == [1000]
    assert read({"punctuate": 1}, mapping=PRICE) == [Punctuation(1_000_000)]


def test_a_key_inside_an_object() -> None:
    mapping = PRICE | {"subject": ":{sensor.id}", "object": "{sensor.at.x}"}
    assert objects({"time": 1, "sensor": {"id": "s", "at": {"x": 7}}}, mapping=mapping) == [
        literal("7", XSD + "integer")
    ]


@pytest.mark.parametrize(
    ("record", "options", "reason"),
    [
        (
            {"time": 1, "sym": "a"},
            {"mapping": PRICE},
            "none of the keys that the mapping uses is here: it uses price, symbol",
        ),
        ({"time": 1, "symbol": "a", "price": [1]}, {"mapping": PRICE}, "'price' is a list"),
        ({"time": 1, "symbol": {"x": 1}, "price": 1}, {"mapping": PRICE}, "{symbol.key}"),
        ({"time": 1, "symbol": "a", "price": 10}, {}, 'subject = ":{symbol}"'),
        ({"time": 1}, {"mapping": PRICE, "context": {}}, "a mapping and a context at once"),
    ],
)
def test_what_cannot_be_read_is_said(record: Any, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(StreamError) as caught:
        read(record, **options)
    assert reason in str(caught.value)


def test_a_plain_object_is_read_by_a_context(tmp_path) -> None:
    context = {"@vocab": EX, "symbol": "@id", "seen": {"@type": "xsd:date"}, "xsd": XSD}
    path = tmp_path / "context.jsonld"
    path.write_text(json.dumps({"@context": context}))
    record = {"time": 1, "symbol": "ACME", "price": 10, "seen": "2026-01-31"}
    for given in (context, path):
        (event,) = read(record, context=given)
        assert event.end == 1_000_000
        assert set(event.triples) == {
            (f"<{EX}ACME>", f"<{EX}price>", literal("10", XSD + "integer")),
            (f"<{EX}ACME>", f"<{EX}seen>", literal("2026-01-31", XSD + "date")),
        }


def test_a_context_may_say_what_the_time_is() -> None:
    context = {"@vocab": EX, "time": "http://www.w3.org/ns/prov#generatedAtTime"}
    assert [event.end for event in read({"@id": "urn:a", "time": "1970-01-01T00:00:01Z", "x": 1}, context=context)] == [
        1_000_000
    ]


def test_prefixes_are_known_in_the_triples_of_json() -> None:
    assert objects({"time": 1, "triples": ":a :p :b" + " ."}) == [f"<{EX}b>"]
    assert objects({"time": 1, "triples": [":a :p q:b"]}, prefixes={"q": "urn:q:"}) == ["<urn:q:b>"]
    assert objects({"time": 1, "triples": "@prefix : <urn:> . :a :p :b ."}) == ["<urn:b>"]
