"""The matches of a query have the same ids, whether it is given as a text or as a file, here and on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from etalis_py import compile, event, run
from etalis_py.spark import events_from_events, matches

NAMED = "REGISTER QUERY rises AS SELECT ?x ?y { { ?c :p ?x } SEQ { ?c :p ?y } FILTER (?y > ?x) }"
UNNAMED = NAMED.partition(" AS ")[2]
WINDOWED = "SELECT ?c (COUNT(?x) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT2S] { WINDOW :w { ?c :p ?x } } GROUP BY ?c"
FACT = "CONSTRUCT FACT Was { ?c :was ?x } (UNION (SINCE ?c :p ?x) (TILL ?c :q ?x))"
FAMILY = [f"SELECT ?x {{ :c :p ?x FILTER (?x > {n}) }}" for n in range(5)]
EVENTS = [event(":c :p 1", 1), event(":c :p 2", 2), event(":c :p 3", 3), event(":c :q 1", 4)]


@pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")
@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([NAMED], id="a name in the text"),
        pytest.param([UNNAMED], id="no name"),
        pytest.param([f"{UNNAMED} ;\n{NAMED}"], id="one of two in a text"),
        pytest.param(FAMILY, id="a family"),
        pytest.param([*FAMILY, FAMILY[0], UNNAMED], id="the same text twice"),
        pytest.param([WINDOWED], id="windows"),
        pytest.param([FACT, WINDOWED], id="facts"),
        pytest.param([WINDOWED, UNNAMED], id="windows and rules"),
    ],
)
def test_a_text_and_a_file_have_the_same_ids(spark: SparkSession, tmp_path: Path, texts: list[str]) -> None:
    files = [tmp_path / f"query{n}.rq" for n in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(f"\n{text}\n", encoding="utf-8")
    expected = sorted(match.id for match in run(texts, EVENTS))
    assert len(set(expected)) == len(expected) > 0
    assert sorted(match.id for match in run(files, EVENTS)) == expected
    frame = events_from_events(spark, EVENTS)
    for given in (texts, files):
        assert ids_on_spark(given, frame) == expected


def test_so_have_those_of_a_family_that_a_background_divides(spark: SparkSession, tmp_path: Path) -> None:
    """On Spark each of its queries then runs by itself, from a text that is written anew."""
    files = [tmp_path / f"query{n}.rq" for n in range(len(FAMILY))]
    for file, text in zip(files, FAMILY, strict=True):
        file.write_text(text, encoding="utf-8")
    (tmp_path / "known.nt").write_text("<urn:a> <urn:b> <urn:c> .")
    background = str(tmp_path / "known.nt")
    expected = sorted((match.query, match.id) for match in run(files, EVENTS, background=background))
    assert {query for query, _ in expected} == {"query0", "query1", "query2"}
    assert sorted(match.id for match in run(FAMILY, EVENTS)) == sorted(identity for _, identity in expected)
    rows = matches(compile(files), events_from_events(spark, EVENTS), shards=2, background=background).collect()
    assert sorted((row["query"], row["id"]) for row in rows if row["kind"] == "match") == expected


def ids_on_spark(given: Any, frame: Any) -> list[str]:
    rows = matches(compile(given), frame, shards=2).collect()
    return sorted(row["id"] for row in rows if row["kind"] == "match")
