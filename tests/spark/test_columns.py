"""Columns of every type of Spark's as times and terms."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from etalis_rules import terms
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from etalis_py.spark import SparkError, events_from_columns, iri, literal, matches, term
from etalis_py.spark.input import column_terms
from etalis_py.spark.input.catalyst_filters import flat_events
from etalis_py.spark.input.columns import term_of, time_of
from etalis_py.streams.templates import quoted

TYPED = (
    "select timestamp'2026-01-01 00:00:00Z' as ts, timestamp_ntz'2026-03-08 02:30:00.25' as ntz, "
    "date'2026-01-02' as d, "
    "3 as i, 4L as l, 2.50 as dec, true as b, 1.5D as db, cast(0.1 as float) as fl, time'10:11:12' as tm, "
    "interval '1 02:03:04.5' day to second as iv, interval '1-2' year to month as ym, array(1) as arr, "
    "'<urn:x>' as s, cast('x' as binary) as bin, named_struct('room', 'r1') as rec, null as nul"
)
OBJECTS = {
    "ts": '"2026-01-01T00:00:00Z"^^xsd:dateTime',
    "ntz": '"2026-03-08T02:30:00.25"^^xsd:dateTime',
    "d": '"2026-01-02"^^xsd:date',
    "i": '"3"^^xsd:integer',
    "l": '"4"^^xsd:integer',
    "dec": '"2.5"^^xsd:decimal',
    "b": '"true"^^xsd:boolean',
    "db": '"1.5E0"^^xsd:double',
    "fl": '"1.0E-1"^^xsd:float',
    "tm": '"10:11:12"^^xsd:time',
    "iv": '"P1DT2H3M4.5S"^^xsd:dayTimeDuration',
    "s": "<urn:x>",
    "nul": None,
}
TIMES = {
    ("ts", "us"): 1_767_225_600_000_000,
    ("ntz", "us"): 1_772_937_000_250_000,
    ("d", "us"): 1_767_312_000_000_000,
    ("i", "us"): 3,
    ("l", "us"): 4,
    ("i", "ms"): 3_000,
    ("l", "h"): 14_400_000_000,
    ("dec", "s"): 2_500_000,
    ("nul", "us"): None,
}


def test_every_type_of_column(spark: SparkSession) -> None:
    """Timestamps are instants whatever the session's zone, numbers count their unit, values are typed literals."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")  # 02:30 of that day is none there
    try:
        rows = spark.sql(TYPED)
        objects = {name: term_of(rows, name, "o").alias(name) for name in OBJECTS}
        times = {key: time_of(rows, key[0], "time", key[1]).alias("_".join(key)) for key in TIMES}
        found = rows.select(*objects.values(), *times.values()).collect()[0].asDict()
        flat = rows.select("ts", *(F.lit(f"<urn:{c}>").alias(c) for c in "sp"), F.col("l").alias("o"))
        made = flat_events(flat.withColumnRenamed("ts", "end")).collect()[0]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    xsd = "^^<http://www.w3.org/2001/XMLSchema#"
    assert {name: found[name] for name in OBJECTS} == {
        name: f"{text.replace('^^xsd:', xsd)}>" if text and "^^" in text else text for name, text in OBJECTS.items()
    }
    assert {key: found["_".join(key)] for key in TIMES} == TIMES
    assert (made["start"], made["end"], made["o"]) == (TIMES["ts", "us"], TIMES["ts", "us"], f'"4"{xsd}integer>')


@pytest.mark.parametrize(
    ("time", "o", "unit", "expected"),
    [
        ("s", "s", "us", "the time is a column of type string, but times are timestamps, dates, integers or decimals"),
        ("db", "s", "us", "the time is a column of type double, but times are"),
        ("b", "s", "us", "the time is a column of type boolean"),
        ("l", "arr", "us", "o is a column of type array<int>, which is not a literal; make a row of each of its"),
        ("l", "rec", "us", "which is not a literal; choose one of its fields, such as room"),
        ("l", "bin", "us", "o is a column of type binary, which is not a literal; make a string of it, with base64"),
        ("l", "ym", "us", "o is a column of type interval year to month, which is not a literal; make a string of it"),
        ("l", "s", "sec", "'sec' is not a unit of time, but one of ns, us, ms, s"),
    ],
)
def test_a_column_that_cannot_be_a_time_or_a_term(
    spark: SparkSession, time: str, o: str, unit: str, expected: str
) -> None:
    with pytest.raises(SparkError, match=re.escape(expected)):
        events_from_columns(spark.sql(TYPED), s=F.lit("<urn:s>"), p=F.lit("<urn:p>"), o=o, time=time, time_unit=unit)


def test_what_is_no_column_of_an_event(spark: SparkSession) -> None:
    rows = spark.sql(TYPED)
    with pytest.raises(SparkError, match=r"s is a column of type int, but a subject or .*: s=iri\(…, base\)$"):
        events_from_columns(rows, s="i", p="s", o="s", time="l")
    flat = rows.select(F.col("l").alias("end"), F.col("i").alias("s"), F.col("s").alias("p"), F.col("s").alias("o"))
    with pytest.raises(SparkError, match=r"s is a column of type int, but a subject or .*: s=iri\(…, base\)$"):
        flat_events(flat)
    with pytest.raises(SparkError, match=r"o is a column of type struct<.*; choose one of its fields, such as room$"):
        flat_events(flat.select("end", "p", F.col("o").alias("s"), F.struct(F.lit("r1").alias("room")).alias("o")))
    with pytest.raises(SparkError, match=r"the column stream is of type int, not string; convert it, with cast"):
        flat_events(
            rows.select(
                F.col("l").alias("end"),
                "s",
                F.col("s").alias("p"),
                "i",
                F.col("i").alias("stream"),
                F.col("s").alias("o"),
            )
        )
    with pytest.raises(SparkError, match=r"the column triples is of type array<int>.*, and state triples with"):
        flat_events(rows.select(F.col("l").alias("end"), F.col("arr").alias("triples")))
    finer = events_from_columns(rows, s="s", p="s", o="s", time="dec")
    with pytest.raises(Exception, match=r"the time 2\.50 us is not a whole number of microseconds"):
        finer.collect()


@pytest.mark.parametrize(("number", "unit"), [("1.000000000000000001", "us"), ("0.000000000000000001", "s")])
def test_no_part_of_a_microsecond_is_rounded_away(spark: SparkSession, number: str, unit: str) -> None:
    """A decimal of many digits times the unit would have more than Spark keeps."""
    rows = spark.sql(f"select cast('{number}' as decimal(38,18)) as t, '<urn:x>' as s")
    with pytest.raises(Exception, match=f"the time {number} {unit} is not a whole number of microseconds"):
        events_from_columns(rows, s="s", p="s", o="s", time="t", time_unit=unit).collect()


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_time_that_is_too_far_away_stops_the_job(spark: SparkSession, ansi: str) -> None:
    """Without ANSI mode Spark would leave out the digits that do not fit: an event of another time."""
    given = [(14, "s", "decimal(38,0)"), (18, "ms", "bigint"), (30, "us", "decimal(38,0)"), (37, "s", "decimal(38,0)")]
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for zeros, unit, kind in given:
            number = f"-1{'0' * zeros}"
            rows = spark.sql(f"select cast('{number}' as {kind}) as t, '<urn:x>' as s")
            with pytest.raises(Exception, match=f"the time {number} {unit} is more than 146,000 years from 1970; corr"):
                events_from_columns(rows, s="s", p="s", o="s", time="t", time_unit=unit).collect()
        rows = spark.sql("select 4611686018427387904000 as t, '<urn:x>' as s")
        farthest = events_from_columns(rows, s="s", p="s", o="s", time="t", time_unit="ns").select("end")
        assert farthest.collect() == [(2**62,)]
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.parametrize("shards", [1, 8])
def test_terms_are_compared_letter_by_letter_whatever_the_collation(
    spark: SparkSession, tmp_path: Path, shards: int
) -> None:
    rows = [(n, "<urn:s>", p, "<urn:o>") for n, p in enumerate(("<urn:P>", "<urn:p>", "<urn:Q>", "<urn:q>"))]
    spark.createDataFrame(rows, "end long, s string, p string, o string").write.parquet(str(tmp_path / "events"))
    events = spark.read.parquet(str(tmp_path / "events")).withColumn("p", F.collate("p", "UTF8_LCASE"))
    found = matches("SELECT * { ?x <urn:p> ?y } SEQ { ?x <urn:q> ?z }", events, shards=shards).collect()
    assert [(row["start"], row["end"]) for row in found] == [(1, 3)]


def test_names_of_columns_are_those_that_spark_takes_for_the_same(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(1, 5, "<urn:t>", "<urn:s>", "<urn:p>", "<urn:o>")]
    made = spark.createDataFrame(rows, "Start long, END long, Stream string, s string, P string, o string")
    made.write.parquet(str(tmp_path / "events"))
    for events in (made, spark.read.parquet(str(tmp_path / "events"))):
        found = matches("SELECT * { STREAM <urn:t> { ?x <urn:p> ?y } }", events, shards=2).collect()
        assert [(row["start"], row["end"]) for row in found] == [(1, 5)]
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(SparkError, match="the events have no column end, only Start, END"):
            matches("SELECT * { ?x <urn:p> ?y }", made)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


STRINGS = ["m1", "m 1/ä~*+", " padded ", 'say "no"\n\\ \x01\x7f', "", "a+b@c;d=e'(f)!$,:"]


def test_columns_are_values(spark: SparkSession) -> None:
    """A string is a literal; said to be an IRI, it is spelled as a mapping spells it."""
    rows = spark.createDataFrame([(value,) for value in STRINGS], "v string")
    made: dict[str, tuple[tuple[Column, Column], Callable[[str], str]]] = {
        "plain": (column_terms.spelled(rows, "v", "o"), terms.literal),
        "iri": (column_terms.spelled(rows, iri("v", "http://e.org/"), "s"), lambda v: f"<http://e.org/{quoted(v)}>"),
        "lang": (
            column_terms.spelled(rows, literal("v", lang="de-AT"), "o"),
            lambda v: terms.literal(v, language="de-at"),
        ),
        "typed": (column_terms.spelled(rows, literal("v", datatype="urn:t"), "o"), lambda v: terms.literal(v, "urn:t")),
    }
    found = rows.select("v", *(column.alias(name) for name, ((column, _), _) in made.items())).collect()
    for name, (_, spell) in made.items():
        assert [row[name] for row in found] == [spell(row["v"]) for row in found], name


def test_a_value_that_is_no_term_is_a_dead_letter(spark: SparkSession) -> None:
    """It is never silently nothing; rows that no pattern reads are not looked at."""
    rows = spark.createDataFrame(
        [(1, "m1", "<urn:up>"), (2, "<urn:m2>", "up"), (3, "<urn:m3>", "<urn:up>")], "t long, m string, o string"
    )
    events = events_from_columns(rows, s="m", p=iri(F.lit("urn:is")), o=term("o"), time="t")
    for shards in (1, 5):
        found = matches("SELECT ?m { ?m <urn:is> <urn:up> }", events, shards=shards).collect()
        assert [(row["bindings"], row["end"]) for row in found if row["kind"] == "match"] == [({"m": "<urn:m3>"}, 3)]
        assert sorted(row["detail"] for row in found if row["kind"] == "dead_letter") == [
            "o is no N-Triples spelling of a term; literal(…) makes one of a value: up",
            "s is no N-Triples spelling of an IRI or a blank node; iri(…, base) makes one of a value: m1",
        ]
    wrong = events_from_columns(rows, s=iri("m"), p=iri(F.lit("urn:is")), o="o", time="t")
    [first, *_] = matches("SELECT ?m { ?m <urn:is> ?x }", wrong, shards=1).collect()
    assert first["detail"] == "s is no IRI; iri(…, base) makes one of it: m1"


def test_what_a_column_cannot_be(spark: SparkSession) -> None:
    rows = spark.sql(TYPED)
    with pytest.raises(SparkError, match="s is a literal, but a subject or a predicate is an IRI"):
        events_from_columns(rows, s=literal("s"), p="s", o="s", time="l")
    with pytest.raises(SparkError, match="'machine' is not the beginning of an IRI"):
        iri("s", "machine")
    with pytest.raises(SparkError, match="'e n' is not the language of a literal"):
        literal("s", lang="e n")
    with pytest.raises(SparkError, match="'decimal' is not the IRI of a datatype"):
        literal("s", datatype="decimal")
    with pytest.raises(
        SparkError, match=r"time= is None, and must be the name of a column, or a Column such as F\.lit"
    ):
        events_from_columns(rows, s="s", p="s", o="s", time=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            {"p": "<urn:p>"},
            "'<urn:p>' among ts, ntz, .*, which p= names; what is the same in all rows is given as F.lit",
        ),
        ({"s": iri("http://e.org/m1")}, "'http://e.org/m1' among ts, .*, which s= names"),
        ({"time": "at"}, "'at' among ts, .*, which time= names"),
    ],
)
def test_a_constant_is_not_the_name_of_a_column(spark: SparkSession, wrong: dict[str, Any], told: str) -> None:
    columns: dict[str, Any] = {"s": iri("s"), "p": F.lit("<urn:p>"), "o": "i", "time": "l", **wrong}
    with pytest.raises(SparkError, match=f"^there is no column {told}"):
        events_from_columns(spark.sql(TYPED), **columns)


def test_a_stream_may_be_named_without_angle_brackets(spark: SparkSession, tmp_path: Path) -> None:
    """As ``stream=`` may be; such rows were of a stream that no query can name."""
    names = ["urn:t", "<urn:t>", "urn:u"]
    rows = [(n, name, f"<urn:s{n}>", "<urn:p>", "<urn:o>") for n, name in enumerate(names, 1)]
    made = spark.createDataFrame(rows, "end long, stream string, s string, p string, o string")
    made.write.parquet(str(tmp_path / "events"))
    stored = spark.read.parquet(str(tmp_path / "events"))
    by_pattern = "SELECT ?x { STREAM <urn:t> { ?x <urn:p> ?y } }"
    by_window = "SELECT ?x FROM NAMED WINDOW :w ON <urn:t> [NOW] { WINDOW :w { ?x <urn:p> ?y } }"
    for text in (by_pattern, by_window):
        for events in (made, stored, stored.where("end > 0")):
            for shards in (1, 2):
                found = matches(text, events, shards=shards).where("kind = 'match'").collect()
                assert sorted(row["bindings"]["x"] for row in found) == ["<urn:s1>", "<urn:s2>"]
