"""DataFrames of events from text."""

from __future__ import annotations

import gzip
import re
import socket
import threading
import time
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from etalis_py import Event
from etalis_py.spark import (
    SparkError,
    events_from_columns,
    events_from_files,
    events_from_jsonl,
    events_from_kafka,
    events_from_messages,
    events_from_nquads,
    events_from_rate,
    events_from_socket,
    events_from_source,
    matches,
    term,
)
from etalis_py.spark.input import reading
from etalis_py.spark.input.reading import statement_batches
from etalis_py.streams import read_stream
from tests.processes import comes
from tests.spark.programs import embedded

LINES = [
    '{"time": 1, "triples": "<urn:a> <urn:p> <urn:b> ."}',
    '{"time": [1, 2], "triples": "<urn:a> <urn:q> <urn:c> ."}',
]
EVENTS = [
    Event(1_000_000, 1_000_000, (("<urn:a>", "<urn:p>", "<urn:b>"),)),
    Event(1_000_000, 2_000_000, (("<urn:a>", "<urn:q>", "<urn:c>"),)),
]


def read(frame: DataFrame) -> list[Event]:
    rows = frame.orderBy("end").collect()
    for row in rows:
        assert row["time"].timestamp() * 1_000_000 == row["end"]
    return [
        Event(
            r["start"],
            r["end"],
            tuple((t["s"], t["p"], t["o"]) for t in (r["triples"] if "triples" in frame.columns else [r])),
            r["stream"],
            r["graph"],
        )
        for r in rows
    ]


def test_json_lines(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("\n".join(LINES) + "\n")
    assert read(events_from_jsonl(spark.read.text(str(tmp_path)))) == EVENTS


def test_a_line_that_cannot_be_read_is_named(spark: SparkSession) -> None:
    frame = spark.createDataFrame([('{"time": 1}',)], "value string")
    with pytest.raises(Exception, match=r'the row b\'\{"time": 1\}'):
        events_from_jsonl(frame).collect()


STATEMENTS = [
    ("<urn:a> <urn:p> <urn:b> .", ("<urn:a>", "<urn:p>", "<urn:b>", "")),
    ('<urn:a> <urn:q> "x y\\" ."@en <urn:g> .', ("<urn:a>", "<urn:q>", '"x y\\" ."@en', "<urn:g>")),
    ("_:a\t<urn:p>  _:b.", ("_:a", "<urn:p>", "_:b", "")),
    ("  <urn:a> <urn:p> _:b _:g .  ", ("<urn:a>", "<urn:p>", "_:b", "_:g")),
    ('<urn:a> <urn:p> "" .', ("<urn:a>", "<urn:p>", '""', "")),
    ('<urn:a> <urn:p> "1"^^<urn:t><urn:g> .', ("<urn:a>", "<urn:p>", '"1"^^<urn:t>', "<urn:g>")),
    ('<urn:a> <urn:p> "caf\\u00E9" .', ("<urn:a>", "<urn:p>", '"café"', "")),
    ('<urn:a> <urn:p> "x"^^<http://www.w3.org/2001/XMLSchema#string> .', ("<urn:a>", "<urn:p>", '"x"', "")),
    ('<urn:a> <urn:p> "1"^^<urn:t>.', ("<urn:a>", "<urn:p>", '"1"^^<urn:t>', "")),
    ("<urn:a> <urn:p> <urn:b> <urn:g> <urn:h> .", None),
    ("<urn:a> <urn:p>", None),
    ("<urn:a> <urn:p> .", None),
    ("<urn:a> <urn:p> <urn:b>", None),
    ("<urn:a > <urn:p> <urn:b> .", None),
    ("<urn:a>b> <urn:p> <urn:b> .", None),
    ('"a" <urn:p> <urn:b> .', None),
    ("<urn:a> _:p <urn:b> .", None),
    ('<urn:a> <urn:p> "b .', None),
    ('<urn:a> <urn:p> "b\\" .', None),
    (f'<urn:a> <urn:p> "{"x" * 100_000}" <urn:g> .', ("<urn:a>", "<urn:p>", f'"{"x" * 100_000}"', "<urn:g>")),
]


def test_statements_with_a_column_of_times(spark: SparkSession) -> None:
    right = [(n, line, quad) for n, (line, quad) in enumerate(STATEMENTS) if quad is not None]
    rows = [(97, ""), *((n, line) for n, line, _ in right), (98, " # nothing"), (99, "  "), (100, "")]
    frame = spark.createDataFrame(rows, "t long, value string")
    assert read(events_from_nquads(frame, time=F.col("t") * 1_000_000, stream="<urn:s>")) == [
        Event(n * 1_000_000, n * 1_000_000, (quad[:3],), "<urn:s>", quad[3]) for n, _, quad in right
    ]


def rows_of(*texts: str | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(texts, pa.string()), "time": pa.array([1] * len(texts))})


@pytest.mark.parametrize("line", [line for line, quad in STATEMENTS if quad is None])
def test_a_line_that_is_no_statement_is_named(line: str) -> None:
    with pytest.raises(SparkError, match=rf"this line is not an N-Quads statement .*: {re.escape(line)}"):
        list(statement_batches([rows_of("<urn:a> <urn:p> <urn:b> .", line)]))


def test_a_wrong_statement_stops_the_job(spark: SparkSession) -> None:
    bad = spark.createDataFrame([(1, "<urn:a> <urn:p>")], "t long, value string")
    with pytest.raises(Exception, match=r"this line is not an N-Quads statement .*: <urn:a> <urn:p>"):
        events_from_nquads(bad, time="t").collect()


@pytest.mark.parametrize(
    ("text", "says"), [(None, "a row has no text"), ("<urn:a> <urn:p> 1 .\n\n", "a row holds several lines")]
)
def test_a_row_of_no_or_several_lines_is_refused(text: str | None, says: str) -> None:
    with pytest.raises(SparkError, match=says):
        list(statement_batches([rows_of(text)]))


@pytest.mark.parametrize("bulk", [True, False])
def test_statements_are_the_same_in_bulk_and_one_by_one(bulk: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that the loops take, those that they leave, and rows without a statement, in a batch that is a part."""
    monkeypatch.setattr(reading, "ready", lambda: bulk)
    quads = [*((line, quad) for line, quad in STATEMENTS if quad is not None), ("", None), ("  # nothing", None)] * 3
    whole = rows_of("<urn:left> <urn:out> <urn:a> .", *(line for line, _ in quads))
    (batch,) = statement_batches([whole.slice(1)])
    found = [tuple(r[name] for name in ("s", "p", "o", "graph")) for r in batch.to_pylist()]
    assert found == [quad for _, quad in quads if quad is not None]


def test_rows_without_statements_give_no_events() -> None:
    assert [batch.num_rows for batch in statement_batches([rows_of(), rows_of("", "# x", "")])] == [0, 0]


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


def test_what_has_no_time_has_that_of_its_arrival(spark: SparkSession) -> None:
    """The given one, to the microsecond, also where two come at once: a repeated batch must read the same."""
    line = '{"triples": "<urn:a> <urn:p> <urn:b> ."}'
    frame = spark.createDataFrame([(line, 5_000_000), (line, 5_000_000), (LINES[0], 7)], "value string, us long")
    events = events_from_jsonl(frame.withColumn("at", F.timestamp_micros("us")), arrival="at")
    assert [e.end for e in read(events)] == [1_000_000, 5_000_000, 5_000_000]


BLANK = '_:x <urn:p> "1" <urn:g1> .\n<urn:g1> <http://www.w3.org/ns/prov#generatedAtTime> "1" .\n'


def test_blank_nodes_belong_to_their_document(spark: SparkSession, tmp_path: Path) -> None:
    """The same label in two files is two nodes, named as by the local reader."""
    for name in ("a.nq", "b c.nq"):
        (tmp_path / name).write_text(BLANK)
    subjects = {t[0] for e in read(events_from_files(spark, str(tmp_path))) for t in e.triples}
    assert len(subjects) == 2
    assert subjects == {t[0] for e in read_stream(f"{tmp_path}/*.nq") for t in e.triples}
    rows = spark.createDataFrame([(BLANK,), (BLANK.replace('"1"', '"2"'),)], "value string")
    assert len({t[0] for e in read(events_from_messages(rows, format="nq")) for t in e.triples}) == 2


PRICES = {
    "subject": "<urn:{Company}>",
    "predicate": "<urn:price>",
    "object": "{Close}",
    "time": "{Time}",
}
ROWS = "Company,Close,Time\nacme,10,1\nacme,12,2\n"


def test_files_of_any_format_also_packed(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "prices.csv.gz").write_bytes(gzip.compress(ROWS.encode()))
    found = read(events_from_files(spark, str(tmp_path), mapping=PRICES))
    assert [(e.end, e.triples[0][0]) for e in found] == [(1_000_000, "<urn:acme>"), (2_000_000, "<urn:acme>")]
    with pytest.raises(SparkError, match="CSV needs mapping"):
        events_from_files(spark, str(tmp_path), format="csv")
    with pytest.raises(SparkError, match="there is no option 'mappings'"):
        events_from_files(spark, str(tmp_path), mappings=PRICES)
    with pytest.raises(SparkError, match="format 'xml' cannot be read"):
        events_from_files(spark, str(tmp_path), format="xml")


def written(frame: DataFrame, folder: Path) -> list[Event]:
    """What a streaming DataFrame has given so far: a file sink, to the end of what is there."""
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    query.awaitTermination()
    return read(frame.sparkSession.read.schema(frame.schema).parquet(str(folder / "out")))


def test_new_files_are_read_once_each(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "1.jsonl").write_text(LINES[0])
    frame = events_from_files(spark, str(source), streaming=True, max_files=1)
    assert written(frame, tmp_path) == EVENTS[:1]
    (source / "2.jsonl").write_text(LINES[1])
    assert written(frame, tmp_path) == EVENTS


def test_columns_that_hold_terms(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(7, "acme", 10)], "us long, company string, price long")
    subject = F.concat(F.lit("<urn:"), "company", F.lit(">"))
    events = events_from_columns(
        frame,
        s=subject,
        p=F.lit("<urn:price>"),
        o=term(F.concat(F.lit('"'), "price", F.lit('"'))),
        time="us",
        start=F.lit(3),
    )
    assert read(events) == [Event(3, 7, (("<urn:acme>", "<urn:price>", '"10"'),))]


@pytest.mark.parametrize("stream", ["urn:s", "<urn:s>"])
def test_a_stream_is_named_with_or_without_brackets(spark: SparkSession, stream: str) -> None:
    columns = spark.sql("SELECT '<urn:a>' AS s, '<urn:p>' AS p, '<urn:b>' AS o, 1000000L AS t")
    sources = [
        events_from_columns(columns, s="s", p="p", o=term("o"), time="t", stream=stream),
        events_from_nquads(spark.sql("SELECT '<urn:a> <urn:p> <urn:b> .' AS value"), time=F.lit(10**6), stream=stream),
        events_from_jsonl(spark.createDataFrame([(LINES[0],)], "value string"), stream=stream),
    ]
    for events in sources:
        assert [row["stream"] for row in events.collect()] == ["<urn:s>"]


def test_events_made_up_at_a_rate(spark: SparkSession, tmp_path: Path) -> None:
    """Every key has p, q, p, q, … in turn, a second of event time has as many events as the rate says."""
    frame = events_from_rate(spark, 100, batch=50, keys=5, predicates=("<urn:p>", "<urn:q>"))
    found = written(frame, tmp_path)
    numbers = [int(e.triples[0][2].split('"')[1]) for e in sorted(found, key=lambda e: e.triples[0][2])]
    assert sorted(numbers) == list(range(50))
    by_number = {int(e.triples[0][2].split('"')[1]): e for e in found}
    assert [by_number[n].triples[0][1] for n in range(3, 50, 5)] == ["<urn:p>", "<urn:q>"] * 5
    assert {by_number[n].triples[0][0] for n in range(3, 50, 5)} == {"<urn:etalis:key:3>"}
    assert by_number[7].triples[0][2] == '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'
    more = {e.end for e in written(frame, tmp_path)} - {e.end for e in found}
    assert {end - max(e.end for e in found) for end in more} == {500_000}
    one = written(events_from_rate(spark, 100, batch=5, predicates="<urn:p>"), tmp_path / "one")
    assert {event.triples[0][1] for event in one} == {"<urn:p>"}
    with pytest.raises(SparkError, match="1 or more"):
        events_from_rate(spark, 0)


def test_a_connector_that_spark_lacks_is_named(spark: SparkSession) -> None:
    """Python itself reads no object store."""
    lacks = r"^Spark has no connector for this source: add {} to spark\.jars\.packages"
    for read, package in (
        (
            lambda: events_from_kafka(spark, "localhost:1", "t"),
            rf"\S+:spark-sql-kafka-0-10_2\.13:{pyspark.__version__}",
        ),
        (lambda: events_from_files(spark, "s3a://bucket/x.nq"), r"org\.apache\.hadoop:hadoop-aws:… .*"),
        (lambda: events_from_files(spark, "s3a://bucket/x.nq", streaming=True), r"org\.apache\.hadoop:hadoop-aws:… .*"),
    ):
        with pytest.raises(SparkError, match=lacks.format(package)):
            read()
    with pytest.raises(AnalysisException, match="PATH_NOT_FOUND"):
        events_from_files(spark, "/nowhere/x.nq")
    with pytest.raises(SparkError, match=r"^s3://bucket/x\.nq is on a file system that Python does not read"):
        events_from_source(spark, "s3://bucket/x.nq")


def test_lines_from_a_socket(spark: SparkSession) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall("\n".join([*LINES, '{"triples": "<urn:a> <urn:p> <urn:c> ."}', ""]).encode())
                done.wait()

        done = threading.Event()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            before = time.time_ns() // 1000
            frame = events_from_socket(spark, "127.0.0.1", port)
            query = frame.writeStream.format("memory").queryName("from_socket").start()
            assert comes(lambda: query.exception() or spark.table("from_socket").count() == 3)
            query.stop()
        finally:
            done.set()
            thread.join()
    found = read(spark.table("from_socket"))
    assert found[:2] == EVENTS
    assert before <= found[2].end <= time.time_ns() // 1000


def test_what_holds_no_lines_is_refused_with_what_to_do(spark: SparkSession) -> None:
    readers = {
        "events_from_jsonl": events_from_jsonl,
        "events_from_messages": events_from_messages,
        "events_from_nquads": partial(events_from_nquads, time="at"),
    }
    rows = spark.createDataFrame([(1, 2)], "at long, value long")
    for name, read in readers.items():
        told = rf"is a builtins\.str, and {name} needs a DataFrame of Spark: .*(read\.text\(path\)|events_from_files)"
        with pytest.raises(SparkError, match=told):
            read("ticks.jsonl")  # type: ignore[arg-type]
        with pytest.raises(SparkError, match="the column value is of type bigint, and lines and documents are strings"):
            read(rows)
        with pytest.raises(SparkError, match="there is no column 'value' among at, which column= names"):
            read(rows.drop("value"))
