"""What withdraws an earlier item, in every input."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from etalis_py import Engine, Event
from etalis_py.engine.driver import Driver
from etalis_py.engine.running import run
from etalis_py.events import Retraction
from etalis_py.streams import StreamError, read_stream
from etalis_py.streams.kafka import Topic, _Reader
from etalis_py.streams.messages import Messages
from etalis_py.streams.options import ReadOptions
from etalis_py.streams.partitions import Partitions
from etalis_py.streams.timing import GENERATED_AT_TIME
from etalis_py.streams.waiting import Waiting

from .conftest import PREFIXES, short

Events = Callable[..., Iterator[Event]]
A10, A90 = "urn:a urn:p 10", "urn:a urn:p 90"
SAID = ["+ [1,1] a p 10", "+ [2,2] a p 90", "- [2,2] a p 90", "+ [2,2] a p 11"]
MAPPING = {"subject": "<urn:a>", "predicate": "<urn:p>", "object": "{x}", "time": "{t}", "retract": "{gone}"}
CSV = "t,x,gone\n1,10,\n2,90,false\n2,90,true\n2,11,0\n"
JSON = """{"time": 1, "triples": "<urn:a> <urn:p> 10 ."}
{"time": 2, "triples": "<urn:a> <urn:p> 90 ."}
{"time": 2, "triples": "<urn:a> <urn:p> 90 .", "retract": true}
{"time": 2, "triples": "<urn:a> <urn:p> 11 .", "retract": false}
"""
TRIG = f"""{PREFIXES}
:g1 {{ :a :p 10 }} :g1 prov:generatedAtTime 1 .
:g2 {{ :a :p 90 }} :g2 prov:generatedAtTime 2 .
:g3 {{ :a :p 90 }} :g3 prov:generatedAtTime 2 ; <urn:etalis:retracts> true .
:g4 {{ :a :p 11 }} :g4 prov:generatedAtTime 2 ; <urn:etalis:retracts> false .
"""
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def in_a_graph(format: str, n: int, t: int, x: int, gone: str) -> str:
    """That ``a p x`` at a time, or that it is withdrawn, as the n-th graph of a document."""
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    statements = [
        f"<urn:g{n}> {GENERATED_AT_TIME} {number.format(t)} .",
        *([f'<urn:g{n}> <urn:etalis:retracts> "true"^^<http://www.w3.org/2001/XMLSchema#boolean> .'] if gone else []),
    ]
    triple = f"<urn:a> <urn:p> {number.format(x)}"
    graph = f"<urn:g{n}> {{ {triple} }}" if format == "trig" else f"{triple} <urn:g{n}> ."
    return "\n".join([graph, *statements])


QUADS = "\n".join(in_a_graph("nq", *line) for line in [(1, 1, 10, ""), (2, 2, 90, ""), (3, 2, 90, "1"), (4, 2, 11, "")])


def brief(items: Any) -> list[str]:
    """Each event with its sign, without its graph."""
    signs = [(type(item) is not Retraction, item) for item in items if isinstance(item, Event)]
    return [
        f"{'+' if states else '-'} [{e.start // 1_000_000},{e.end // 1_000_000}] "
        + "; ".join(" ".join(map(short, triple)) for triple in e.triples)
        for states, e in signs
    ]


def both(data: str, **options: Any) -> list[list[str]]:
    """As the reader of rows gives it, and as the reader of columns does."""
    rows = brief(read_stream(io.BytesIO(data.encode()), **options))
    bulk = []
    for chunk in read_stream(io.BytesIO(data.encode()), **options).chunks():
        if isinstance(chunk, list):
            bulk += brief(chunk)
        else:
            from etalis_py.streams.columns.flat_form import events_of

            bulk += brief(events_of(chunk))
    return [rows, bulk]


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (JSON, {"format": "jsonl"}),
        (JSON.replace('"retract"', '"retracted"'), {"format": "jsonl"}),
        (TRIG, {"format": "trig"}),
        (QUADS, {"format": "nq"}),
        (CSV, {"format": "csv", "mapping": MAPPING}),
        (
            '{"t": 1, "x": 10}\n{"t": 2, "x": 90, "gone": false}\n{"t": 2, "x": 90, "gone": true}\n{"t": 2, "x": 11}\n',
            {"format": "jsonl", "mapping": MAPPING},
        ),
        (
            '{"time": 1, "x": 10}\n{"time": 2, "x": 90}\n{"time": 2, "x": 90, "gone": true}\n{"time": 2, "x": 11}\n',
            {"format": "jsonl", "mapping": {k: v for k, v in MAPPING.items() if k != "time"}},
        ),
    ],
)
def test_text(data: str, options: dict[str, Any]) -> None:
    assert both(data, **options) == [SAID, SAID]


FRAME = {"t": [1, 2, 2, 2], "x": [10, 90, 90, 11], "gone": [None, False, True, False]}
FLAT = {
    "end": [1_000_000, 2_000_000, 2_000_000, 2_000_000],
    "s": ["<urn:a>"] * 4,
    "p": ["<urn:p>"] * 4,
    "o": [f'"{x}"^^<{INTEGER}>' for x in (10, 90, 90, 11)],
}


@pytest.mark.parametrize("gone", [[None, False, True, False], [0, 0, 1, 0], ["", "false", "true", ""]])
def test_frames_by_a_mapping(gone: list[Any]) -> None:
    table = pa.table(FRAME | {"gone": gone})
    assert brief(read_stream(table, mapping=MAPPING)) == SAID
    assert brief(read_stream(table.to_pandas(), mapping=MAPPING)) == SAID


@pytest.mark.parametrize("name", ["retract", "retracted"])
def test_frames_of_triples(name: str) -> None:
    assert brief(read_stream(pa.table(FLAT | {name: [False, None, True, False]}))) == SAID
    assert brief(read_stream(pd.DataFrame(FLAT | {name: [False, False, True, False]}))) == SAID
    with pytest.raises(StreamError, match=rf"the column '{name}' is of type int64"):
        list(read_stream(pa.table(FLAT | {name: [0, 0, 1, 0]})))


def test_a_parquet_file(tmp_path: Any) -> None:
    from pyarrow import parquet

    parquet.write_table(pa.table(FLAT | {"retract": [False, False, True, False]}), tmp_path / "ticks.parquet")
    assert brief(read_stream(tmp_path / "ticks.parquet")) == SAID


def test_matches_that_are_taken_back_are_withdrawn_downstream() -> None:
    rule = "CONSTRUCT { ?c :rise ?y } { { ?c <urn:p> ?x } SEQ { ?c <urn:p> ?y } FILTER (?y > ?x) }"
    first, second = Engine(rule, revise=10**9), Engine("SELECT ?y { ?c :rise ?y }", revise=10**9)
    events = list(read_stream(io.BytesIO(JSON.encode()), format="jsonl"))
    reported = []
    for some in (events[:2], [Event(5, 10**7, events[0].triples)], events[2:]):
        table = first.push_all(some).to_arrow()
        for matches in (second.push_all(list(read_stream(table))), second.advance(3_000_000)):
            reported += [(m.retracted, m["y"]) for m in matches]
    assert reported == [(False, 90), (True, 90), (False, 11)]


def test_a_graph_may_name_what_it_withdraws_from() -> None:
    text = PREFIXES + ":g1 prov:generatedAtTime 2 . :g1 { :a :p 90 } :g2 { :a :p 90 } :g2 <urn:etalis:retracts> :g1 ."
    [said, gone] = read_stream(io.BytesIO(text.encode()), format="trig")
    assert (gone.start, gone.end, gone.triples, gone.graph) == (said.start, said.end, said.triples, "<urn:g1>")
    wrong = text.replace(":g1 .", '"x" .')
    with pytest.raises(StreamError, match='"x" says neither whether nor from which graph'):
        list(read_stream(io.BytesIO(wrong.encode()), format="trig"))


def test_a_row_that_does_not_say_whether_is_refused() -> None:
    for read in (iter, lambda s: s.chunks()):
        with pytest.raises(StreamError, match="'perhaps' does not say whether the row withdraws"):
            list(read(read_stream(io.BytesIO((CSV + "3,1,perhaps\n").encode()), format="csv", mapping=MAPPING)))


def test_messages_of_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a header; in a tombstone the header is what is withdrawn."""

    def message(value: bytes | None, headers: list[tuple[str, bytes | None]] | None = None) -> Any:
        return SimpleNamespace(
            partition=lambda: 0, error=lambda: None, value=lambda: value, headers=lambda: headers,
            timestamp=lambda: (0, 0), offset=lambda: 0,
        )  # fmt: skip

    reader = object.__new__(_Reader)
    reader._topic, reader._messages, reader._ends = (
        Topic("kafka://a/b", "a", "b"),
        Messages(ReadOptions(format="jsonl")),
        {},
    )
    reader._kafka = SimpleNamespace(TIMESTAMP_NOT_AVAILABLE=0)
    reader._read_out, reader._waiting, reader._failure = set(), Waiting([0]), None
    reader._tracker, reader._half_used = Partitions({0: 0}), {}
    first, wrong, _, right = (line.encode() for line in JSON.splitlines())
    for value, headers in [
        (first, None),
        (wrong, [("retract", b"false")]),
        (wrong, [("other", b"x"), ("retract", None)]),
        (None, [("retract", wrong)]),
        (None, None),
        (right, []),
    ]:
        reader._take([message(value, headers)])
    taken = reader._waiting.take({0})
    assert taken is not None
    assert brief(taken[0]) == [*SAID[:2], SAID[2], SAID[2], SAID[3]]
    reader._take([message(wrong, [("retract", b"maybe")])])
    assert "the header 'retract' of a message says 'maybe'" in str(reader._failure)


def test_a_document_as_a_message() -> None:
    events = Messages(ReadOptions(format="trig")).events(TRIG.encode(), place="here")
    assert brief(events) == SAID
    log = 'VERSION "1.2-messages"\n' + QUADS + "\nMESSAGE\n"
    assert brief(read_stream(io.BytesIO(log.encode()), format="nq", messages=True)) == SAID


RISE = "SELECT ?x ?y { { ?c <urn:p> ?x } SEQ { ?c <urn:p> ?y } FILTER (?y > ?x) }"


@pytest.mark.parametrize(("data", "format"), [(JSON, "jsonl"), (TRIG, "trig"), (QUADS, "nq")])
def test_a_run_gives_the_net_answer(data: str, format: str) -> None:
    matches = run(RISE, read_stream(io.BytesIO(data.encode()), format=format), revise=10**9)
    assert [(m.retracted, m["x"], m["y"]) for m in matches] == [(False, 10, 11)]


def test_a_frame_gives_the_net_answer() -> None:
    matches = run(RISE, pa.table(FLAT | {"retract": [False, False, True, False]}), revise=10**9)
    assert [(m.retracted, m["x"], m["y"]) for m in matches] == [(False, 10, 11)]


LINES = [
    *((n, 10 * n % 70, "") for n in range(1, 60)),
    *((n, 10 * n % 70, "true") for n in range(5, 25)),
    *((n, 3 * n, "") for n in range(5, 25)),
]


@pytest.mark.parametrize("format", ["jsonl", "csv", "nq", "trig"])
def test_corrections_that_come_together_on_a_live_stream_are_one_replay(format: str) -> None:
    """Only what came at once: the matches of what came before are out."""
    rows = [f"{t},{x},{gone}" for t, x, gone in LINES]
    if format == "jsonl":
        rows = [json.dumps({"time": t, "triples": f"<urn:a> <urn:p> {x} .", "retract": bool(g)}) for t, x, g in LINES]
    elif format in ("nq", "trig"):
        rows = [in_a_graph(format, n, *line) for n, line in enumerate(LINES)]
    first, rest = "\n".join(rows[:59]), "\n".join(rows[59:])
    reading, writing = os.pipe()
    engine = Engine("SELECT ?x { ?c <urn:p> ?x FILTER (?x > 50) }", revise=3_600_000_000)
    net: dict[str, int] = {}

    def take(matches: Any) -> None:
        for match in matches:
            net[match.id] = net.get(match.id, 0) + (-1 if match.retracted else 1)
        if engine.counters.events == 59 and rest not in written:
            written.append(rest)
            os.write(writing, f"{rest}\n".encode())
            os.close(writing)

    written = [first]
    options = {"mapping": MAPPING} if format == "csv" else {}
    os.write(writing, f"{'t,x,gone' if format == 'csv' else ''}\n{first}\n".encode())
    with os.fdopen(reading, "rb") as source, read_stream(source, format=format, idle=0.1, **options) as stream:
        for step in Driver(engine, stream).steps():
            take(step.matches)
    # Graph by graph, the last element of a burst ends with the next one, or with the stream.
    assert engine.counters.corrections == (1 if format in ("jsonl", "csv") else 2)
    assert engine.counters.late == 0
    corrected = [x for t, x, _ in (*LINES[:4], *LINES[24:59], *LINES[79:])]
    assert sum(net.values()) == sum(x > 50 for x in corrected)
    assert set(net.values()) <= {0, 1}
