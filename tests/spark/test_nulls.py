"""An event with a null, or with a predicate that is no IRI, is a dead letter; it is never just left out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Observation, Row, SparkSession

from etalis_py import run
from etalis_py.spark import SparkError, matches
from etalis_py.spark.input.rows import check_times, events_out, sorted_out, whole_events_out
from etalis_py.spark.input.schema import END, EVENT, ITEM, RETRACT
from etalis_py.streams import StreamError
from tests.spark.programs import SECOND, SHARDED, embedded, stream

pytestmark = pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")

FLAT = "start long, end long, stream string, s string, p string, o string"
NESTED = "start long, end long, stream string, triples array<struct<s: string, p: string, o: string>>"
TWO_LEVELS = SHARDED["two levels"]  # asks for <urn:p>, <urn:q> and <urn:r>
AT = 40 * SECOND

BAD: list[tuple[Any, ...]] = [
    (AT, AT, "", None, "<urn:p>", "<urn:b>"),
    (AT, AT, "", "<urn:a>", None, "<urn:b>"),
    (AT, AT, "", "<urn:a>", "<urn:q>", None),
    (None, AT, "", "<urn:a>", "<urn:p>", "<urn:b>"),
    (AT, None, "", "<urn:a>", "<urn:r>", "<urn:b>"),
    (None, None, None, None, None, None),
]
UNWANTED = [(AT, AT, "", None, "<urn:nobody>", "<urn:b>")]
SAYS = ["s", "p", "o", "start", "end", "s, p, o, start, end"]


def told(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    return sorted(
        (
            r["detail"].removeprefix("an event must have all of s, p, o, start and end, and here is null: "),
            r["start"],
            r["end"],
            *r["triples"][0],
        )
        for r in rows
        if r["kind"] == "dead_letter"
    )


WANTED = sorted((says, start, end, s, p, o) for says, (start, end, _, s, p, o) in zip(SAYS, BAD, strict=True))


def key(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(map(str, row))


@pytest.mark.parametrize("shards", [1, 3])
def test_flat_events(spark: SparkSession, shards: int) -> None:
    events = stream(111, 20)
    good = [(e.start, e.end, None, *t) for e in events for t in e.triples]  # no stream is the empty one
    frame = spark.createDataFrame([*BAD, *UNWANTED, *good], FLAT)
    counted = Observation("nulls")
    rows = matches(TWO_LEVELS, frame, shards=shards, observe=counted).collect()
    assert sorted(told(rows), key=key) == sorted(WANTED, key=key)
    assert counted.get["late"] == len(BAD)
    assert sorted(r["id"] for r in rows if r["kind"] == "match") == embedded(TWO_LEVELS, events)


def test_whole_events(spark: SparkSession) -> None:
    bad = [(start, end, stream, [(s, p, o)]) for start, end, stream, s, p, o in BAD]
    good = [(1, 1, "", [("<urn:a>", "<urn:p>", "<urn:b>")]), (2, 2, "", [("<urn:a>", "<urn:q>", "<urn:b>")])]
    nothing = [(AT, AT, "", None), (AT, AT, "", [None]), (AT, AT, "", [])]  # the last one says nothing, and loses none
    rows = matches(SHARDED["seq"], spark.createDataFrame([*bad, *nothing, *good], NESTED), shards=2).collect()
    of_r = [w for w in WANTED if w[4] != "<urn:r>"]  # which nobody asks for here
    lists = [("s, p, o", AT, AT, None, None, None)] * 2
    assert sorted(told(rows), key=key) == sorted([*of_r, *lists], key=key)
    assert len([r for r in rows if r["kind"] == "match"]) == 1


def test_in_a_stream_time_moves_on_without_them(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([*BAD, (SECOND, SECOND, "", "<urn:a>", "<urn:p>", "<urn:b>")], FLAT)
    frame.coalesce(1).write.parquet(str(tmp_path / "in"))
    events = spark.readStream.schema(FLAT).parquet(str(tmp_path / "in"))
    query = (
        matches(TWO_LEVELS, events, shards=2)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .option("path", str(tmp_path / "out"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(told(rows), key=key) == sorted(WANTED, key=key)


PLAIN = [
    (1 * SECOND, 1 * SECOND, "", "m1", "temp", "90"),
    (2 * SECOND, 2 * SECOND, "", "<urn:m1>", "urn:q", "<urn:b>"),
    (3 * SECOND, 3 * SECOND, "", "<urn:m1>", "~", '"1"'),
]
GOOD = [(n * SECOND, n * SECOND, "", "<urn:a>", p, "<urn:b>") for n, p in ((4, "<urn:p>"), (5, "<urn:q>"))]
HINT = "p is no N-Triples spelling of an IRI, such as <http://…>; events_from_columns makes terms of values: "
REFUSED = sorted((HINT + p, start, end, s, p, o) for start, end, _, s, p, o in PLAIN)


@pytest.mark.parametrize("source", ["rows", "file", "files read by Spark", "whole events", "EVENT"])
def test_a_table_of_plain_strings_is_refused(spark: SparkSession, tmp_path: Path, source: str) -> None:
    frame = spark.createDataFrame([*PLAIN, *GOOD], FLAT)
    if source.startswith("file"):
        frame.coalesce(1).write.parquet(str(tmp_path / "in"))
        frame = spark.read.parquet(str(tmp_path / "in"))
        frame = frame if source == "file" else frame.where("length(p) > 0")
    if source == "whole events":
        nested = [(start, end, stream, [(s, p, o)]) for start, end, stream, s, p, o in [*PLAIN, *GOOD]]
        frame = spark.createDataFrame(nested, NESTED)
    text = "SELECT * { EVENT { ?x <urn:p> ?y } SEQ EVENT { ?x <urn:q> ?z } }" if source == "EVENT" else SHARDED["seq"]
    rows = matches(text, frame, shards=2).collect()
    assert told(rows) == REFUSED
    assert len([row for row in rows if row["kind"] == "match"]) == 1


def test_a_stream_of_plain_strings_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame([*PLAIN, *GOOD], FLAT).coalesce(1).write.parquet(str(tmp_path / "in"))
    events = spark.readStream.schema(FLAT).parquet(str(tmp_path / "in"))
    writer = matches(SHARDED["seq"], events, shards=2, lateness=0).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    writer.start(str(tmp_path / "out")).awaitTermination()
    assert told(spark.read.parquet(str(tmp_path / "out")).collect()) == REFUSED


# --- s and o that are no terms ---

ASKS = {
    "any": "SELECT * { ?x <urn:p> ?y }",
    "of a": "SELECT * { <urn:a> <urn:q> ?y }",
    "ok": 'SELECT * { ?x <urn:r> "ok" }',
}
NO_TERMS = [
    (1 * SECOND, "m1", "<urn:p>", "<urn:b>", "s"),
    (2 * SECOND, '"m1"', "<urn:p>", "<urn:b>", "s"),
    (3 * SECOND, "<urn:a>", "<urn:p>", "90", "o"),
    (4 * SECOND, "~", "<urn:p>", "=", "s"),
    (5 * SECOND, "<urn:a>", "<urn:p>", "", "o"),
    (6 * SECOND, "urn:a", "<urn:q>", "<urn:b>", "s"),
    (7 * SECOND, "<urn:a>", "<urn:q>", "ok", "o"),
    (8 * SECOND, "<urn:a>", "<urn:r>", "ok", "o"),
    (9 * SECOND, "Z", "<urn:r>", '"ok"', "s"),
]
"""The last column says which is no term."""
OTHERS = [
    (10 * SECOND, "m1", "<urn:nobody>", "90"),
    (11 * SECOND, "<urn:other>", "<urn:q>", "90"),
    (12 * SECOND, "m1", "<urn:r>", '"no"'),
]
"""Nobody would want these, whatever the term was meant to be."""
RIGHT = [
    (13 * SECOND, "_:x", "<urn:p>", '"1"'),
    (14 * SECOND, "<urn:x>", "<urn:p>", "_:y"),
    (15 * SECOND, "<urn:x>", "<urn:p>", "<<( <urn:a> <urn:b> <urn:c> )>>"),
    (16 * SECOND, "<urn:a>", "<urn:q>", '"1"'),
    (17 * SECOND, "<urn:x>", "<urn:r>", '"ok"'),
]
MAKES = "; events_from_columns makes terms of values: "
SPELLED = {
    "s": f"s is no N-Triples spelling of an IRI or a blank node, such as <http://…>{MAKES}",
    "o": f'o is no N-Triples spelling of a term, such as <http://…> or "90"{MAKES}',
}
NOT_TERMS = sorted((SPELLED[name] + (s if name == "s" else o), at, at, s, p, o) for at, s, p, o, name in NO_TERMS)


def of_terms() -> list[tuple[Any, ...]]:
    return [(at, at, "", s, p, o) for at, s, p, o, *_ in [*NO_TERMS, *OTHERS, *RIGHT]]


@pytest.mark.parametrize("options", [{"shards": 1}, {"shards": 3}, {"shards": 2, "slices": 3}], ids=str)
@pytest.mark.parametrize("source", ["rows", "file", "files read by Spark", "whole events"])
def test_plain_strings_in_the_place_of_terms(spark: SparkSession, tmp_path: Path, source: str, options: Any) -> None:
    frame = spark.createDataFrame(of_terms(), FLAT)
    if source.startswith("file"):
        frame.coalesce(1).sortWithinPartitions("end").write.parquet(str(tmp_path / "in"))
        frame = spark.read.parquet(str(tmp_path / "in"))
        frame = frame if source == "file" else frame.where("length(p) > 0")
    if source == "whole events":
        frame = spark.createDataFrame([(a, b, n, [terms]) for a, b, n, *terms in of_terms()], NESTED)
    rows = matches(ASKS, frame, **options).collect()
    assert told(rows) == NOT_TERMS
    assert len([row for row in rows if row["kind"] == "match"]) == len(RIGHT)


@pytest.mark.parametrize("query", ["SELECT * { EVENT { ?x <urn:p> ?y } }", "SELECT * { ?x ?p ?y }"])
def test_patterns_of_whole_events_and_of_any_predicate(spark: SparkSession, query: str) -> None:
    rows = matches(query, spark.createDataFrame(of_terms(), FLAT), shards=2).collect()
    wanted = [one for one in NOT_TERMS if "?p" in query or one[4] == "<urn:p>"]
    found = told(rows)
    assert set(wanted) <= set(found)
    assert len(found) == len(set(found))


def test_a_stream_with_plain_strings_in_the_place_of_terms(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame(of_terms(), FLAT).coalesce(1).write.parquet(str(tmp_path / "in"))
    events = spark.readStream.schema(FLAT).parquet(str(tmp_path / "in"))
    writer = matches(ASKS, events, shards=2, lateness=0).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    writer.start(str(tmp_path / "out")).awaitTermination()
    assert told(spark.read.parquet(str(tmp_path / "out")).collect()) == NOT_TERMS


def test_a_time_that_no_event_has_is_refused_as_by_run(spark: SparkSession) -> None:
    far = 2**63 - 1
    why = f"the time 'end' is {far}, which is not a whole number of microseconds in range"
    columns = {"end": [far], "s": ["<urn:a>"], "p": ["<urn:p>"], "o": ["<urn:b>"]}
    query = "SELECT ?x { ?x <urn:p> ?y }"
    with pytest.raises(StreamError, match=why):
        list(run(query, pa.table(columns)))
    with pytest.raises(Exception, match=why):
        matches(query, spark.createDataFrame(pa.table(columns)), shards=1).collect()


@pytest.mark.parametrize("mark", [EVENT, ITEM, RETRACT])
@pytest.mark.parametrize(("start", "end"), [(0, 2**63 - 1), (-(2**63), 5), (0, 2**62 + 1), (-(2**62) - 1, 0)])
def test_such_a_time_is_refused_in_rows_of_all_kinds(mark: int, start: int, end: int) -> None:
    """In a batch and in a stream, in rows and in columns; rows that nobody gave a time may have any."""
    of = {"start": [start], "end": [end], "mark": [mark], "stream": [""], "passed": ["\x1e".join("gspo")]}
    rows = pa.RecordBatch.from_pydict(of | {"s": ["<urn:a>"], "p": ["<urn:p>"], "o": ["<urn:b>"]})
    readers: list[Any] = [partial(sorted_out, apart=True), check_times]
    readers += {EVENT: [events_out], ITEM: [whole_events_out]}.get(mark, [])
    for reader in readers:
        with pytest.raises(SparkError, match="which is not a whole number of microseconds in range; correct it, or"):
            reader(rows)
    assert sorted_out(rows.set_column(2, "mark", pa.array([END])), apart=True).ended


def test_the_farthest_times_are_taken() -> None:
    check_times(pa.record_batch({"start": [-(2**62)], "end": [2**62]}))


def test_triples_may_have_their_fields_in_any_order(spark: SparkSession) -> None:
    events = stream(111, 20)
    cells = [(e.start, e.end, e.stream, [(o, 1, p, s) for s, p, o in e.triples]) for e in events]
    mixed = "start long, end long, stream string, triples array<struct<o: string, line: int, p: string, s: string>>"
    null = (AT, AT, "", [None])
    rows = matches(TWO_LEVELS, spark.createDataFrame([*cells, null], mixed), shards=2).collect()
    assert sorted(r["id"] for r in rows if r["kind"] == "match") == embedded(TWO_LEVELS, events)
    assert [r[0] for r in told(rows)] == ["s, p, o"]


def test_what_is_no_number_does_not_number_events(spark: SparkSession) -> None:
    for kind in ("timestamp", "string"):
        rows = spark.createDataFrame([], f"end long, s string, p string, o string, retract boolean, arrived {kind}")
        with pytest.raises(SparkError, match=f"the column arrived is of type {kind}, but numbers events in order"):
            matches(TWO_LEVELS, rows)
