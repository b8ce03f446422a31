"""DataFrames of events from text."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from etalis_py import Event
from etalis_py.spark import events_from_files, events_from_jsonl, events_from_messages, events_from_nquads, matches
from tests.spark.programs import embedded

LINES = [
    '{"time": 1, "triples": "<urn:a> <urn:p> <urn:b> ."}',
    '{"time": [1, 2], "triples": "<urn:a> <urn:q> <urn:c> ."}',
]
EVENTS = [
    Event(1_000_000, 1_000_000, (("<urn:a>", "<urn:p>", "<urn:b>"),)),
    Event(1_000_000, 2_000_000, (("<urn:a>", "<urn:q>", "<urn:c>"),)),
]


def read(frame: object) -> list[Event]:
    rows = frame.orderBy("end").collect()  # type: ignore[attr-defined]
    for row in rows:
        assert row["time"].timestamp() * 1_000_000 == row["end"]
    return [
        Event(r["start"], r["end"], tuple((t["s"], t["p"], t["o"]) for t in r["triples"]), r["stream"], r["graph"])
        for r in rows
    ]


def test_json_lines(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("\n".join(LINES) + "\n")
    assert read(events_from_jsonl(spark.read.text(str(tmp_path)))) == EVENTS


def test_a_line_that_cannot_be_read_is_named(spark: SparkSession) -> None:
    frame = spark.createDataFrame([('{"time": 1}',)], "value string")
    with pytest.raises(Exception, match=r'in the row b\'\{"time": 1\}'):
        events_from_jsonl(frame).collect()


def test_statements_with_a_column_of_times(spark: SparkSession) -> None:
    rows = [(1, "<urn:a> <urn:p> <urn:b> ."), (2, '<urn:a> <urn:q> "x y\\" ."@en <urn:g> .'), (3, "# nothing"), (4, "")]
    frame = spark.createDataFrame(rows, "t long, value string")
    assert read(events_from_nquads(frame, time=F.col("t") * 1_000_000, stream="<urn:s>")) == [
        Event(1_000_000, 1_000_000, (("<urn:a>", "<urn:p>", "<urn:b>"),), "<urn:s>"),
        Event(2_000_000, 2_000_000, (("<urn:a>", "<urn:q>", '"x y\\" ."@en'),), "<urn:s>", "<urn:g>"),
    ]
    bad = spark.createDataFrame([(1, "<urn:a> <urn:p>")], "t long, value string")
    with pytest.raises(Exception, match=r"this line is no N-Quads statement, .*: <urn:a> <urn:p>"):
        events_from_nquads(bad, time="t").collect()


TRIG = """@prefix prov: <http://www.w3.org/ns/prov#> .
<urn:g1> prov:generatedAtTime "1970-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<urn:g1> { <urn:a> <urn:p> <urn:b> . }
"""


def test_documents_and_files(spark: SparkSession, tmp_path: Path) -> None:
    expected = [EVENTS[0]._replace(graph="<urn:g1>")]
    frame = spark.createDataFrame([(TRIG,)], "value string")
    assert read(events_from_messages(frame, format="trig")) == expected
    (tmp_path / "one.trig").write_text(TRIG)
    assert read(events_from_files(spark, str(tmp_path), format="trig")) == expected


def test_what_is_read_can_be_matched(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(line,) for line in LINES], "value string")
    found = matches("SELECT * { ?x <urn:p> ?y . ?x <urn:q> ?z }", events_from_jsonl(frame), shards=2).collect()
    assert [r["id"] for r in found] == embedded("SELECT * { ?x <urn:p> ?y . ?x <urn:q> ?z }", EVENTS)
