"""Typed matches, and what comes behind them in a stream."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from etalis_rules import terms
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from etalis_py import Engine, Event
from etalis_py.spark import EVENTS, SparkError, events_from_events, events_from_jsonl, matches
from etalis_py.spark.input.watermarks import lateness_of
from etalis_py.spark.output.exact_casts import exact
from tests.spark.programs import SECOND, SHARDED, embedded, write_batches

pytestmark = pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")

ODD = 'say "no"\n\\n \\ \x01\x7f é'
XSD = terms.XSD


def of(*values: str) -> list[Event]:
    return [Event(n * SECOND, n * SECOND, (("<urn:s>", "<urn:p>", value),)) for n, value in enumerate(values, 1)]


def test_there_is_a_column_for_each_variable(spark: SparkSession) -> None:
    text = "SELECT ?s ?x (COUNT(*) AS ?n) (isIRI(?x) AS ?is) { ?s <urn:p> ?x } GROUP BY ?s ?x"
    events = of("<urn:o>", terms.literal(ODD), terms.literal("a", language="en"), terms.literal("1.5", XSD + "decimal"))
    found = matches(text, events_from_events(spark, events), shards=2, typed=True)
    assert found.dtypes == [
        ("kind", "string"),
        ("query", "string"),
        ("id", "string"),
        ("s", "string"),
        ("x", "string"),
        ("n", "bigint"),
        ("is", "boolean"),
        ("start", "timestamp"),
        ("end", "timestamp"),
        ("retracted", "boolean"),
        ("detail", "string"),
    ]
    rows = found.orderBy("end").collect()
    assert [(row.s, row.x, row.n, row["is"]) for row in rows] == [
        ("urn:s", "urn:o", 1, True),
        ("urn:s", ODD, 1, False),
        ("urn:s", "a", 1, False),
        ("urn:s", "1.5", 1, False),
    ]
    assert sorted(row.id for row in rows) == embedded(text, events)
    first = found.select(F.unix_micros("end").alias("end")).orderBy("end").first()
    assert first is not None
    assert first.end == SECOND


def test_types_that_are_asked_for(spark: SparkSession) -> None:
    number, at = terms.literal("1.5", XSD + "decimal"), terms.literal("2026-01-02T00:00:00Z", XSD + "dateTime")
    text, frame = "SELECT ?x { ?s <urn:p> ?x }", events_from_events(spark, of(number))
    for kind, value in {"double": 1.5, "decimal(10,2)": 1.5, "string": "1.5"}.items():
        [row] = matches(text, frame, shards=1, typed={"x": kind}).collect()
        assert row.x == value
    [row] = matches(text, events_from_events(spark, of(at)), shards=1, typed={"x": "timestamp"}).collect()
    assert row.x.astimezone(UTC) == datetime(2026, 1, 2, tzinfo=UTC)
    with pytest.raises(Exception, match=r"\?x is \"1.5\".*which is not of type int: choose another in typed="):
        matches(text, frame, shards=1, typed={"x": "int"}).collect()
    noon = events_from_events(spark, of(terms.literal("12:00:00", XSD + "time")))
    with pytest.raises(Exception, match=r"\?x is \"12:00:00\".*which is not of type timestamp: choose another"):
        matches(text, noon, shards=1, typed={"x": "timestamp"}).collect()
    with pytest.raises(SparkError, match=r"no query selects \?y, for which typed= has a type; selected are \?x"):
        matches(text, frame, shards=1, typed={"y": "int"})
    for kind in ("nosuch", "array<int>", 5):
        asked: Any = {"x": kind}
        with pytest.raises(SparkError, match=re.escape(f"typed= says that ?x is {kind!r}, which is no SQL type of a")):
            matches(text, frame, shards=1, typed=asked)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_time_without_a_zone_is_in_utc_as_everywhere(spark: SparkSession, zone: str) -> None:
    """Whatever the zone of the session is, in which there is no half past two on this day."""
    times = {
        "2026-03-08T02:30:00": "dateTime",
        "2026-03-08T02:30:00.5": "dateTime",
        "2026-03-08T02:30:00+01:00": "dateTime",
        "2026-03-08": "date",
    }
    events = events_from_events(spark, of(*(terms.literal(text, XSD + kind) for text, kind in times.items())))
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        found = matches("SELECT ?x { ?s <urn:p> ?x }", events, shards=1, typed={"x": "timestamp"}).orderBy("end")
        read = [row.at for row in found.select(F.unix_micros("x").alias("at")).collect()]
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    day = datetime(2026, 3, 8, tzinfo=UTC)
    hours = [timedelta(hours=2.5), timedelta(hours=2.5, seconds=0.5), timedelta(hours=1.5), timedelta()]
    assert read == [round((day + after).timestamp() * SECOND) for after in hours]


EXACT: dict[str, dict[str, object]] = {
    "decimal(5,1)": {
        "1.5": Decimal("1.5"),
        "-1.500": Decimal("-1.5"),
        "1e2": Decimal(100),
        "15e-1": Decimal("1.5"),
        "150e-2": Decimal("1.5"),
        "0.000": Decimal(0),
        "1.75": None,
        "175e-2": None,
        "0.30000000000000004": None,
        "12345.5": None,
        "1e-99999999999": None,
    },
    "double": {"0.1": 0.1, "1e2": 100.0, "INF": float("inf"), "-INF": float("-inf"), "1e400": None, "1.5f": None},
    "float": {"1.75": 1.75, "INF": float("inf"), "3.5e38": None, "infinity": None},
    "int": {"12": 12, " 12 ": 12, "12.0": None, "2147483648": None},
    "date": {
        "2026-01-02": date(2026, 1, 2),
        "2026-01-02Z": None,
        "2026-01-02+02:00": None,
        "2026-01-02T23:30:00-05:00": None,
        "2026-01-02T00:00:00": None,
        "2026-01": None,
        "2026": None,
    },
    "timestamp": {
        "2026-01-02T03:04:05.250000000Z": 1767323045_250000,
        " 2026-01-02 ": 1767312000_000000,
        "2026-1-2 3:04:05Z": 1767323045_000000,
        "2026-01-02 03:04:05+01": 1767319445_000000,
        "-0044-03-15T00:00:00": -63549360000_000000,
        "2026-01-02T03:04:05.1234567Z": None,
        "2026-01-02T03:04:05.1234567": None,
        "2026": None,
        "2026-01": None,
        "12:00:00": None,
    },
    "timestamp_ntz": {
        "2026-01-02T03:04:05": datetime(2026, 1, 2, 3, 4, 5),
        "2026-01-02T03:04:05Z": datetime(2026, 1, 2, 3, 4, 5),
        "2026-01-02": datetime(2026, 1, 2),
        "2026-01-02T03:04:05-05:00": None,
        "2026-01-02T03:04:05.1234567": None,
    },
}


@pytest.mark.parametrize("kind", EXACT)
def test_a_text_is_a_value_of_a_type_or_none_and_is_not_changed(spark: SparkSession, kind: str) -> None:
    """Spark's cast makes 1.8 of 1.75, and takes the zone of the session for a time without one."""
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        texts = spark.createDataFrame([(text,) for text in EXACT[kind]], "text string")
        value = exact(F.col("text"), spark.range(0).select(F.lit("").try_cast(kind)).schema[0].dataType)
        shown = F.unix_micros(value) if kind == "timestamp" else value
        read = {row.text: row.value for row in texts.select("text", shown.alias("value")).collect()}
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    assert read == EXACT[kind]


def test_a_decimal_that_does_not_fit_stops_the_job(spark: SparkSession) -> None:
    frame = events_from_events(spark, of(terms.literal("1.75", XSD + "decimal")))
    with pytest.raises(
        Exception, match=r"\?x is \"1.75\".*which is not of type decimal\(5,1\): choose another in typed="
    ):
        matches("SELECT ?x { ?s <urn:p> ?x }", frame, shards=1, typed={"x": "decimal(5,1)"}).collect()


def test_programs_of_all_forms(spark: SparkSession) -> None:
    programs = {"a": "ASK { ?s <urn:p> ?x }", "b": "CONSTRUCT { ?s <urn:q> ?x } { ?s <urn:p> ?x }", "c": SHARDED["seq"]}
    found = matches(programs, events_from_events(spark, of("<urn:o>")), shards=2, typed=True)
    assert set(found.columns) >= {"program", "boolean", "triples", "x", "y", "z"}
    assert sorted((row.program, row.boolean, row.triples is None) for row in found.collect()) == [
        ("a", True, True),
        ("b", None, False),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT ?id { ?id <urn:p> ?y }", r"typed matches have a column id of their own: rename the variable"),
        ("SELECT ?x ?X { ?x <urn:p> ?X }", r"Spark takes \?x and \?X for one column"),
    ],
)
def test_names_that_cannot_be_columns(spark: SparkSession, text: str, message: str) -> None:
    with pytest.raises(SparkError, match=message):
        matches(text, events_from_events(spark, []), shards=1, typed=True)


def test_a_dead_letter_stays(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, None, "<urn:p>", "<urn:o>")], "end long, s string, p string, o string")
    [row] = matches("SELECT ?s { ?s <urn:p> ?x }", rows, shards=1, typed=True).collect()
    assert (row.kind, row.s) == ("dead_letter", None)
    assert "here is null: s" in row.detail


# --- streams ---


def minutes() -> list[Event]:
    """In each of six minutes five pairs, of three keys in turn."""
    found = []
    for time in (60 * minute + 10 * n + 1 for minute in range(6) for n in range(5)):
        for later, predicate in enumerate(("<urn:p>", "<urn:q>")):
            at = (time + later) * SECOND
            found.append(Event(at, at, ((f"<urn:x{time // 10 % 3}>", predicate, "<urn:y>"),)))
    return found


def written(frame: DataFrame, folder: Path) -> list[Any]:
    """All rows of an append sink, after a run that stops in the middle and goes on."""
    query = (
        frame.writeStream.format("parquet")
        .outputMode("append")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    query.awaitTermination()
    return frame.sparkSession.read.schema(frame.schema).parquet(str(folder / "out")).collect()


def test_matches_are_counted_by_the_minute(spark: SparkSession, tmp_path: Path) -> None:
    """The watermark of the events is that of the matches: whole minutes are counted, each once."""
    events = minutes()
    last = [Event(at * SECOND, at * SECOND, (("<urn:x0>", "<urn:q>", "<urn:y>"),)) for at in (1_000, 1_001)]
    write_batches(tmp_path / "in", [events[:17], events[17:35], events[35:50]])

    def counts() -> DataFrame:
        rows = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
        text = "SELECT ?x ?z { { ?x <urn:p> ?y } NEXT { ?x <urn:q> ?z } }"
        found = matches(text, rows, shards=2, lateness="5 seconds", typed=True)
        return found.where("kind = 'match'").groupBy(F.window("end", "1 minute")).count()

    written(counts(), tmp_path)
    write_batches(tmp_path / "in", [events[50:], last[:1], last[1:]], first=3)
    rows = written(counts(), tmp_path)
    assert sorted((row.window.start.minute, row["count"]) for row in rows) == [(minute, 5) for minute in range(6)]


def test_a_second_pattern_reads_the_matches_of_a_first(spark: SparkSession, tmp_path: Path) -> None:
    """A watermark that is there is used."""
    events = minutes()
    last = [Event(at * SECOND, at * SECOND, (("<urn:x9>", "<urn:q>", "<urn:y>"),)) for at in (1_000, 1_001, 1_002)]
    write_batches(tmp_path / "in", [events[:17], events[17:35], events[35:], last[:1], last[1:2], last[2:]])
    rows = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    rule = "CONSTRUCT { ?x <urn:pair> ?z } { { ?x <urn:p> ?y } NEXT { ?x <urn:q> ?z } }"
    above = "SELECT ?x ?a ?b { { ?x <urn:pair> ?a } NEXT { ?x <urn:pair> ?b } }"
    first = matches(rule, rows.withWatermark("time", "5 seconds"), shards=2).where("kind = 'match'")
    derived = first.selectExpr("start", "end", "'' AS stream", "'' AS graph", "triples")
    found = matches(above, derived, shards=2, typed=True)
    engine = Engine(rule)
    pairs = [*engine.push_all(events), *engine.close()]
    wanted = embedded(above, [Event(m.start_us, m.end_us, m.triples) for m in pairs])
    assert sorted(row.id for row in written(found, tmp_path)) == wanted
    assert len(wanted) == 27


def test_matches_are_joined_with_another_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Within their intervals: here with the event that each of them began with."""
    last = [[Event(at * SECOND, at * SECOND, (("<urn:x9>", "<urn:q>", "<urn:y>"),))] for at in (1_000, 1_001, 1_002)]
    write_batches(tmp_path / "in", [minutes()[:30], minutes()[30:], *last])
    rows = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    text = "SELECT ?x ?z { { ?x <urn:p> ?y } NEXT { ?x <urn:q> ?z } }"
    found = matches(text, rows, shards=2, typed=True).where("kind = 'match'").dropDuplicatesWithinWatermark(["id"])
    first = rows.withWatermark("time", "5 seconds").selectExpr("time", "triples[0].s AS s", "triples[0].p AS p")
    joined = found.join(first.where("p = '<urn:p>'"), F.expr("s = concat('<', x, '>') AND time BETWEEN start AND end"))
    assert sorted((row.start == row.time) for row in written(joined.drop("p"), tmp_path)) == [True] * 30


def test_the_lateness_in_words(spark: SparkSession) -> None:
    batch = spark.range(1)
    assert [lateness_of(batch, given) for given in (None, 7, "5 seconds", "PT1M", timedelta(seconds=2))] == [
        0,
        7,
        5 * SECOND,
        60 * SECOND,
        2 * SECOND,
    ]
    with pytest.raises(SparkError, match="lateness='soon'"):
        lateness_of(batch, "soon")
    with pytest.raises(SparkError, match="it must be 0 or more"):
        lateness_of(batch, -1)


def test_two_watermarks_are_refused_when_the_job_is_planned(spark: SparkSession, tmp_path: Path) -> None:
    lines = spark.readStream.text(str(tmp_path)).withColumn("at", F.current_timestamp())
    late = events_from_jsonl(lines.withWatermark("at", "5 seconds"), arrival="at")
    assert lateness_of(late, None) is None
    with pytest.raises(SparkError, match="the events have a watermark already, and lateness='5 s' would be another"):
        matches(SHARDED["seq"], late, shards=2, lateness="5 s")
    with pytest.raises(
        SparkError, match="these rules take several operators, which need the watermark on the column time"
    ):
        matches(SHARDED["two levels"], late, shards=2)
