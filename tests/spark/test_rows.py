"""Tables with one event a row, as people have them: what cannot be found in them is told when the query is planned."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from etalis_py.spark import events_from_rows, matches

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
