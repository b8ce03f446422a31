"""Tables with one event a row, as people have them: what cannot be found in them is told when the query is planned."""

from __future__ import annotations

import re
import tomllib
import warnings
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import etalis_py as api
from etalis_py.spark import (
    SparkError,
    events_from_columns,
    events_from_jsonl,
    events_from_rows,
    events_from_source,
    iri,
    matches,
)

CELLS = [(1, "m1", 70.5, "ok"), (2, "m1", 91.0, "hot")]
SLIP = "no column gives the predicate :tmep; did you mean :temp? (spelt a little differently)"


def table(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(CELLS, "at long, machine string, temp double, status string")


def told(query: Any, events: DataFrame, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        matches(query, events, **options)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT ?t { ?m :tmep ?t }", [SLIP]),
        ("SELECT ?t { EVENT { ?m :tmep ?t } }", [SLIP]),
        ("SELECT ?t { ?m :temp ?t OPTIONAL { ?m :tmep ?u } }", [SLIP]),
        ("SELECT ?t { ?m :humidity ?t }", ["no column gives the predicate :humidity"]),
        ("SELECT ?t { ?m :temp ?t OPTIONAL { ?m :humidity ?u } }", []),
        (
            "SELECT ?n { ?row :machine ?n }",
            [
                "no column gives the predicate :machine: the column machine is the subject of its rows, "
                "as in { ?machine :status ?value }"
            ],
        ),
        ("SELECT ?m { ?m :temp ?t } SEQ { ?m :status ?s }", []),
        ("SELECT ?m { ?m ?p ?t }", []),
    ],
)
def test_what_no_column_gives_is_told(spark: SparkSession, query: str, expected: list[str]) -> None:
    assert told(query, events_from_rows(table(spark), time="at", subject="machine"), shards=1) == expected


def test_columns_whose_names_are_no_names_are_told(spark: SparkSession) -> None:
    rows = table(spark).toDF("at", "machine", "", "a{b}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        events_from_rows(rows, time="at", subject="machine")
        events_from_rows(rows, mapping={"time": "{at}", "subject": ":{machine}", "predicate": ":b", "object": "1"})
    assert [str(one.message) for one in caught] == [
        "column 3 has no name and is left out: give it one, with toDF",
        "the column 'a{b}' is left out: rename it, because { and } stand around columns in mappings",
    ]
    assert caught[0].filename == __file__


def test_a_stream_of_another_name_is_told(spark: SparkSession) -> None:
    events = events_from_rows(table(spark), time="at", subject="machine", stream="urn:tick")
    query = "SELECT ?t FROM NAMED WINDOW :w ON <urn:ticks> [RANGE 5 s] { WINDOW :w { ?m :temp ?t } }"
    slip = "did you mean {}? (spelt a little differently)"
    assert told(query, events, shards=1) == [
        "no query reads the stream <urn:tick>; the queries read <urn:ticks>; "
        f'{slip.format("<urn:ticks>")}: name their stream, as stream="…"',
        f"no event came of the stream <urn:ticks>; {slip.format('<urn:tick>')}",
    ]
    assert told(query, events_from_rows(table(spark), time="at", subject="machine"), shards=1) == []


def test_each_of_several_programs_is_looked_at(spark: SparkSession) -> None:
    events = events_from_rows(table(spark), time="at", subject="machine")
    programs = {"right": "SELECT ?t { ?m :temp ?t }", "wrong": "SELECT ?t { ?m :tmep ?t }"}
    assert told(programs, events) == [SLIP]


def test_a_stream_is_told_of_too(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.readStream.schema(table(spark).schema).parquet(str(tmp_path))
    events = events_from_rows(rows, time="at", subject="machine").where("end > 0")
    assert told("SELECT ?t { ?m :tmep ?t }", events, lateness="5 seconds") == [SLIP]


def test_the_columns_of_a_mapping_have_its_predicates(spark: SparkSession) -> None:
    mapping = {
        "time": "{at}",
        "stream": "<urn:{status}>",
        "subject": ":{machine}",
        "predicate": ":heat",
        "object": "{temp}",
    }
    events = events_from_rows(table(spark), mapping=mapping)
    assert told("SELECT ?t FROM NAMED WINDOW :w ON <urn:ok> [RANGE 5 s] { WINDOW :w { ?m :heat ?t } }", events) == []
    assert told("SELECT ?t { ?m :temp ?t }", events) == ["no column gives the predicate :temp"]
    by_row = events_from_rows(table(spark), mapping={**mapping, "predicate": ":{status}"})
    assert told("SELECT ?t { ?m :temp ?t }", by_row) == []


def test_nothing_is_told_of_what_may_come_from_elsewhere(spark: SparkSession) -> None:
    events = events_from_rows(table(spark), time="at", subject="machine")
    others = events_from_rows(table(spark).withColumnRenamed("temp", "tmep"), time="at", subject="machine")
    query = "SELECT ?t { ?m :tmep ?t }"
    assert told(query, events.union(others)) == []
    assert told(query, events, background=":tmep a :Property .") == []
    derived = "CONSTRUCT { ?m :tmep ?t } { ?m :temp ?t } SELECT ?t { ?m :tmep ?t }"
    assert told(derived, events) == []
    both = events_from_rows(table(spark).union(table(spark)), time="at", subject="machine")
    assert told(query, both) == [SLIP]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT ?s { ?m :status ?s FILTER (?s > 90) }",
            [":status is a column of texts: ?s > 90 lets none of them through; xsd:decimal(…) makes a number of one"],
        ),
        (
            'SELECT ?t { ?m :temp ?t FILTER (?t > "90") }',
            [':temp is a column of numbers: ?t > "90" lets none of them through; write 90 without quotes'],
        ),
        (
            "SELECT ?t { ?m :status ?s . ?s :temp ?t }",
            [
                ":status is a column of texts: ?s is the subject of another pattern, which no literal is, so they join "
                "nothing"
            ],
        ),
        ('SELECT ?s { ?m :status ?s ; :temp ?t FILTER (?s > "a" && ?t > 90 && xsd:decimal(?s) > 1) }', []),
    ],
)
def test_a_column_of_another_type_than_the_query_needs_is_told(
    spark: SparkSession, query: str, expected: list[str]
) -> None:
    assert told(query, events_from_rows(table(spark), time="at", subject="machine"), shards=1) == expected


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "struct<a: int, b: string>",
            "x is a column of type struct<a:int,b:string>, which is not a literal; choose one",
        ),
        (
            "array<int>",
            "not a literal; make a row of each of its values, with explode; or leave the column out, with drop",
        ),
        ("map<string, int>", "not a literal; make a row of each of its values, with explode"),
        ("binary", "not a literal; make a string of it, with base64 or hex"),
    ],
)
def test_a_column_whose_values_are_no_literals_is_refused_when_planned(
    spark: SparkSession, kind: str, message: str
) -> None:
    rows = spark.createDataFrame([], f"at long, machine string, x {kind}")
    with pytest.raises(SparkError, match=re.escape(message)):
        events_from_rows(rows, time="at", subject="machine")
    mapping = {"time": "{at}", "subject": ":{machine}", "predicate": "a", "object": ":Machine"}
    assert matches("SELECT ?m { ?m a :Machine }", events_from_rows(rows, mapping=mapping)).count() == 0


def test_a_column_of_the_mapping_that_is_missing_is_told_with_those_that_are_there(spark: SparkSession) -> None:
    mapping = {"time": "{at}", "subject": ":{machine}", "predicate": ":x", "object": "{tmep}"}
    with pytest.raises(SparkError, match="no column 'tmep' among at, machine, temp, status; correct the mapping"):
        events_from_rows(table(spark), mapping=mapping)


def test_a_time_of_a_type_without_times_is_refused_when_planned(spark: SparkSession) -> None:
    with pytest.raises(SparkError, match="the time at is a column of type boolean, but times are timestamps, dates"):
        events_from_rows(spark.createDataFrame([], "at boolean, x int"), time="at", subject=None)


@pytest.mark.parametrize("name", ["a.b", "a`b", "a b", "Wärme", "1", "km/h"])
def test_a_column_may_have_any_name(spark: SparkSession, name: str) -> None:
    rows = spark.createDataFrame([(1, "m1", 3)], ["at", "machine", name])
    found = matches("SELECT ?x { ?m ?p ?x }", events_from_rows(rows, time="at", subject="machine"), typed=True)
    frame = pa.table({"at": [1], "machine": ["m1"], name: [3]})
    [wanted] = api.run("SELECT ?x { ?m ?p ?x }", frame, time="at", subject="machine")
    assert [(row.id, row.x) for row in found.collect()] == [(wanted.id, "3")]


def test_columns_of_one_name(spark: SparkSession) -> None:
    twice = spark.sql("SELECT 1 AS at, 'm1' AS machine, 2 AS x, 3 AS x")
    with pytest.raises(SparkError, match="two columns are called 'x': rename one of them, or leave it out"):
        events_from_rows(twice, time="at", subject="machine")
    capital = spark.sql("SELECT 1 AS at, 'm1' AS machine, 2 AS x, 3 AS X")
    events = events_from_rows(capital, time="at", subject="machine")
    [row] = matches("SELECT ?m ?a ?b { ?m :x ?a ; :X ?b }", events, typed=True).collect()
    assert (row.a, row.b) == ("2", "3")


MAPPED = {"time": "{at}", "rest": True, "subject": ":{machine}"}


@pytest.mark.parametrize("by", [{"time": "at", "subject": "machine"}, {"mapping": MAPPED}])
@pytest.mark.parametrize(
    ("kind", "times"),
    [
        ("timestamp", [datetime(2026, 3, 2), None]),
        ("string", ["2026-03-02T00:00:00Z", ""]),
        ("long", [1772409600, None]),
    ],
)
def test_a_row_without_a_time_or_a_subject_is_a_dead_letter(
    spark: SparkSession, by: dict[str, Any], kind: str, times: list[Any]
) -> None:
    right, nothing = times
    cells = [(right, "m1", 1), (nothing, "m2", 2), (right, None, 3), (nothing, "", 4), (nothing, None, None)]
    events = events_from_rows(spark.createDataFrame(cells, f"at {kind}, machine string, x int"), **by)
    found = matches("SELECT ?m ?x { ?m :x ?x }", events).orderBy("end", "detail").collect()
    why = "an event must have all of s, p, o, start and end, and here is null: "
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'.format
    assert [(row.kind, row.end, row.detail) for row in found] == [
        ("dead_letter", None, f"{why}s (column machine), start (column at), end (column at)"),
        ("dead_letter", None, f"{why}start (column at), end (column at)"),
        ("match", 1772409600_000000, None),
        ("dead_letter", 1772409600_000000, f"{why}s (column machine)"),
    ]
    letters = [row.triples[0] for row in found if row.kind == "dead_letter"]
    assert [(t.s, t.p, t.o) for t in letters] == [
        (None, "<http://example.org/x>", number(4)),
        ("<http://example.org/m2>", "<http://example.org/x>", number(2)),
        (None, "<http://example.org/x>", number(3)),
    ]


@pytest.mark.parametrize("nothing", [" ", "\t\u2003", "n/a"])
def test_a_cell_that_says_nothing_is_no_subject_and_a_blank_one_no_time(spark: SparkSession, nothing: str) -> None:
    """As ``run`` counts such records; no row is gone without a word."""
    cells = [("1", "m1", 1), ("2", nothing, 2), (nothing if nothing.isspace() else "", "m3", 3)]
    events = events_from_rows(
        spark.createDataFrame(cells, "at string, machine string, x int"), mapping=MAPPED | {"missing": ["n/a"]}
    )
    found = matches("SELECT ?m ?x { ?m :x ?x }", events).orderBy("end").collect()
    why = "an event must have all of s, p, o, start and end, and here is null: "
    assert [(row.kind, row.end, row.detail) for row in found] == [
        ("dead_letter", None, f"{why}start (column at), end (column at)"),
        ("match", 1_000000, None),
        ("dead_letter", 2_000000, f"{why}s (column machine)"),
    ]


@pytest.mark.parametrize(
    ("unit", "shown"), [("s", "in ms it would be 2026-03-02"), ("us", "in ns it would be 2026-03")]
)
def test_times_in_another_unit_than_said_are_refused(spark: SparkSession, unit: str, shown: str) -> None:
    """Their events would be thousands of years from each other, and a pattern within an hour would be silent."""
    number = {"s": 1772409600_000, "us": 1772409600_000_000_000}[unit]
    rows = spark.createDataFrame([(number, "m1", 1)], "at long, machine string, x int")
    events = events_from_rows(rows, time="at", subject="machine", time_unit=unit)
    with pytest.raises(Exception, match=rf"in the year \d+; {shown}.*name the unit of its times with time_unit="):
        matches("SELECT ?m ?x { ?m :x ?x } WITHIN 1 HOUR", events).collect()


def test_types_are_given_by_variable(spark: SparkSession) -> None:
    events = events_from_rows(table(spark), time="at", subject="machine")
    with pytest.raises(SparkError, match=r"typed='double' says of no variable what it is: give True, or \{'price'"):
        matches("SELECT ?t { ?m :temp ?t }", events, typed="double")  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [pd.DataFrame({"at": [1], "m": ["m1"], "x": [2]}), [{"at": 1}], "rows.parquet"])
def test_what_is_no_frame_of_spark_is_refused_with_what_to_do(given: Any) -> None:
    takers = {
        "events_from_rows": lambda: events_from_rows(given, time="at", subject="m"),
        "events_from_columns": lambda: events_from_columns(given, s="s", p="p", o="o", time="at"),
        "matches": lambda: matches("SELECT ?x { ?m :x ?x }", given),
    }
    kind = {"DataFrame": "pandas.DataFrame"}.get(type(given).__name__, f"builtins.{type(given).__name__}")
    for taker, call in takers.items():
        told = rf"is a {kind}, and {taker} needs a DataFrame of Spark: spark\.createDataFrame\(…\) makes one"
        with pytest.raises(SparkError, match=told):
            call()


def test_a_stream_whose_rows_are_read_by_another_subject_does_not_go_on(spark: SparkSession, tmp_path: Path) -> None:
    """Goals of machines would meet events of sites."""

    def go_on(**reading: str) -> None:
        rows = spark.readStream.schema("at long, machine string, site string, v int").parquet(str(tmp_path / "in"))
        found = matches("SELECT ?x { ?m :v ?x }", events_from_rows(rows, time="at", **reading), shards=1, lateness=0)
        writer = found.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "state"))
        writer.trigger(availableNow=True).start().awaitTermination()

    for number, subject in enumerate(("machine", "site")):
        rows = spark.createDataFrame([(number, "m1", "s1", 1)], "at long, machine string, site string, v int")
        rows.write.parquet(str(tmp_path / "in"), mode="append")
        if not number:
            go_on(subject=subject)
    with pytest.raises(Exception, match="its rows were read with subject='machine', and are read with subject='site'"):
        go_on(subject="site")


def test_events_say_how_they_were_read(spark: SparkSession, tmp_path: Path) -> None:
    rows, file = table(spark), tmp_path / "m.toml"
    file.write_text('time = "{at}"\nsubject = ":{machine}"\npredicate = ":temp"\nobject = "{temp}"\n')
    lines = spark.createDataFrame([("",)], "value string")
    by_file = events_from_rows(rows, mapping=file)

    def said(events: DataFrame) -> dict[str, str]:
        return dict(events.schema["stream"].metadata["etalis.reading"])

    assert said(events_from_rows(rows, time="at", subject="machine")) == {
        "time": "at",
        "subject": "machine",
        "time_unit": "s",
    }
    assert said(events_from_rows(rows.withColumn("new", F.lit(1)), time="at", subject=None))["subject"] == "None"
    assert said(by_file) == said(events_from_rows(rows, mapping=tomllib.loads(file.read_text()), time_unit="s"))
    assert said(by_file).keys() == {"mapping", "time_unit"}
    assert said(events_from_jsonl(lines, time_unit="ms", stream="urn:s")) == {"stream": "<urn:s>", "time_unit": "ms"}
    by_columns = events_from_columns(rows, s=iri("machine", "urn:m:"), p=F.lit("<urn:p>"), o="temp", time="at")
    assert said(by_columns) == {"time_unit": "us", "s": "machine iri urn:m:", "o": "temp", "time": "at"}
    by_source = events_from_source(spark, str(file), format="trig", time_predicate="urn:t", mapping=str(file))
    assert said(by_source).keys() == {"mapping", "time_predicate", "time_unit"}
    assert said(by_columns.where("s > ''").union(by_columns)) == said(by_columns)
