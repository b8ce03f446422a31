"""Readers on mutated documents: an error of ours, or events that could stand in the document; nothing else.

A document that every reader takes is damaged in a few places: bits flipped, pieces cut out, doubled, moved, replaced by
marks of its syntax.  Few are drawn by default, thousands with ``--nightly``.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from etalis_rules.terms import XSD

from etalis_py import Event, read_stream
from etalis_py.knowledge import KnowledgeError, load
from etalis_py.streams import StreamError
from etalis_py.streams.messages import Messages
from etalis_py.streams.options import ReadOptions
from etalis_py.values.oxigraph_terms import spell

TIME = f'"2026-01-01T00:00:0%d.5Z"^^<{XSD}dateTime>'
GENERATED = "<http://www.w3.org/ns/prov#generatedAtTime>"
STATEMENTS = [
    '<urn:a> <urn:p> "text \\"quoted\\" \\u00e9"@en-gb',
    f'_:x <urn:q> "01"^^<{XSD}integer>',
    '_:x <http://example.org/p%20q#r> <<( <urn:b> <urn:q> "x"@ar--rtl )>>',
    "<urn:é> <urn:r> _:x",
]


def n_quads() -> bytes:
    lines = [
        f"{statement} <urn:g{i}> .\n<urn:g{i}> {GENERATED} {TIME % i} .\n" for i, statement in enumerate(STATEMENTS)
    ]
    return "".join(lines).encode()


def trig() -> bytes:
    graphs = [
        f"<urn:g{i}> {GENERATED} {TIME % i} .\n<urn:g{i}> {{ {s} ; <urn:n> [ <urn:m> ( 1 2.5 ) ] }}\n"
        for i, s in enumerate(STATEMENTS)
    ]
    return ("@prefix : <urn:> . # a comment\n" + "".join(graphs)).encode()


def json_lines() -> bytes:
    lines = [
        json.dumps({"time": [i, i + 1], "triples": f"{s} .", "graph": f"urn:g{i}"}) for i, s in enumerate(STATEMENTS)
    ]
    return "\n".join(
        [*lines, json.dumps({"time": 9, "triples": "<urn:a> <urn:b> <urn:c> .", "retract": True})]
    ).encode()


def csv_rows() -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerows([("at", "id", "price", "note"), *((i, f"acme {i}", f"{i}.50", f'said "{i}"\n') for i in range(6))])
    return text.getvalue().encode()


def jelly() -> bytes:
    from pyjelly.integrations.generic import generic_sink as sink
    from pyjelly.integrations.generic import serialize

    a, p = sink.IRI("urn:a"), sink.IRI("http://example.org/p")
    graphs = []
    for i in range(4):
        graph = sink.GenericStatementSink()
        graph.add(sink.Triple(a, p, sink.Literal(str(i), datatype=f"{XSD}integer")))
        graph.add(sink.Triple(sink.BlankNode("b"), p, sink.Literal("x", langtag="en")))
        graphs.append(graph)
    out: Any = io.BytesIO()
    serialize.grouped_stream_to_file(iter(graphs), out)
    return bytes(out.getvalue())


MAPPING = {
    "time": "{at}",
    "subject": "<http://example.org/{id}>",
    "predicate": "<http://example.org/price>",
    "object": "{price}",
}
DOCUMENTS: dict[str, tuple[Callable[[], bytes], dict[str, Any]]] = {
    "stream.nq": (n_quads, {}),
    "stream.trig": (trig, {}),
    "stream.jsonl": (json_lines, {}),
    "stream.csv": (csv_rows, {"mapping": MAPPING}),
    "stream.jelly": (jelly, {}),
    "stream.nq.gz": (lambda: gzip.compress(n_quads(), mtime=0), {}),
    "stream.jsonl.gz": (lambda: gzip.compress(json_lines(), mtime=0), {}),
}
MARKS = [
    b"<",
    b">",
    b'"',
    b"\\",
    b".",
    b"{",
    b"}",
    b"[",
    b"]",
    b"<<(",
    b")>>",
    b"_:",
    b"@",
    b"^^",
    b"\n",
    b"\r",
    b"\x00",
]
MARKS += [b"\xff", b"\xc3", b"\\u", b"\\uD800", b"#", b",", b":", b"1e999", b"null", b"9" * 400, b"-", b"~", b"{|"]


def mutated(data: bytes, source: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(source.randint(1, 3)):
        start = source.randrange(len(damaged) + 1)
        stop = min(len(damaged), start + source.choice((0, 1, 2, 8, 40)))
        piece = bytes(damaged[start:stop])
        match source.randrange(6):
            case 0 if damaged:
                damaged[start % len(damaged)] ^= 1 << source.randrange(8)
            case 1:
                damaged[start:stop] = b""
            case 2:
                damaged[start:stop] = piece + piece
            case 3:
                damaged[start:start] = source.choice(MARKS)
            case 4:
                other = source.randrange(len(damaged) + 1)
                damaged[other:other] = piece
            case _:
                del damaged[start:]
    return bytes(damaged)


def check_events(items: Iterable[Any]) -> None:
    """Each event is one that a reader may give: an interval, and triples of canonical terms."""
    for item in items:
        if not isinstance(item, Event):
            continue
        item = item.withdrawn() if hasattr(item, "withdrawn") else item
        assert -(2**63) <= item.start <= item.end < 2**63
        for triple in item.triples:
            (quad,) = ox.parse(f"{' '.join(triple)} .".encode(), ox.RdfFormat.N_TRIPLES)
            assert spell(quad)[:3] == triple


def rounds(request: pytest.FixtureRequest, few: int) -> range:
    return range(few if not request.config.getoption("--nightly") else 100 * few)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_mutated_documents(tmp_path: Path, name: str, request: pytest.FixtureRequest) -> None:
    make, options = DOCUMENTS[name]
    data = make()
    path = tmp_path / name
    path.write_bytes(data)
    whole = list(read_stream(str(path), **options))
    assert whole, "the document as it is can be read"
    check_events(whole)
    errors: list[str] = []
    for seed in rounds(request, 60):
        source = random.Random(f"{name} {seed}")
        path.write_bytes(mutated(data, source))
        lenient = source.random() < 0.3
        try:
            check_events(read_stream(str(path), **options, on_error="skip" if lenient else "stop"))
        except StreamError as error:
            errors.append(str(error))
    assert errors
    assert all(name in error for error in errors), "an error says where it is"


@pytest.mark.parametrize("suffix", [".nt", ".nq", ".ttl", ".trig", ".nq.gz"])
def test_mutated_background(tmp_path: Path, suffix: str, request: pytest.FixtureRequest) -> None:
    text = " .\n".join([*STATEMENTS, ""]).encode()
    data = gzip.compress(text, mtime=0) if suffix.endswith("gz") else text
    path = tmp_path / f"facts{suffix}"
    errors: list[str] = []
    for seed in rounds(request, 40):
        path.write_bytes(mutated(data, random.Random(f"{suffix} {seed}")))
        try:
            knowledge = load([str(path)], cache=False, entailment="rdf")
        except KnowledgeError as error:
            errors.append(str(error))
            continue
        triples = list(knowledge.default.match(None, None, None))
        check_events([Event(0, 0, tuple(triples))])
    assert all(f"facts{suffix}" in error for error in errors)


@pytest.mark.parametrize("format", ["jsonl", "nq", "trig", "csv"])
def test_mutated_kafka_payloads(format: str, request: pytest.FixtureRequest) -> None:
    """One payload is one message; a bad one is an error that says where it came from."""
    lines = json_lines().splitlines()
    payloads = {
        "jsonl": lines[0],
        "nq": n_quads(),
        "trig": trig(),
        "csv": b"3,acme,4.50,note",
    }
    options = ReadOptions(format="jsonl" if format == "csv" else format)
    if format == "csv":
        options = replace(options, mapping=MAPPING)
        payloads["csv"] = json.dumps({"at": 3, "id": "acme", "price": 4.5}).encode()
    errors: list[str] = []
    for seed in rounds(request, 60):
        messages = Messages(options)
        payload = mutated(payloads[format], random.Random(f"{format} {seed}"))
        try:
            check_events(messages.events(payload, place="topic, partition 0, offset 7", arrival=5_000_000))
        except StreamError as error:
            errors.append(str(error))
    assert all("topic, partition 0, offset 7" in error for error in errors)
