"""A query has a name, whether it is given as a text or as a file, so its matches have the same ids."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from etalis_py import event, run
from etalis_py.spark import events_from_events, matches

NAMED = "REGISTER QUERY rises AS SELECT ?x ?y { { ?c :p ?x } SEQ { ?c :p ?y FILTER (?y > ?x) } }"
UNNAMED = NAMED.partition(" AS ")[2]
EVENTS = [event(":c :p 1", 1), event(":c :p 2", 2), event(":c :p 3", 3)]


def test_a_text_and_a_file_have_the_same_ids(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "other.rq").write_text(NAMED)
    (tmp_path / "q1.rq").write_text(UNNAMED)
    frame = events_from_events(spark, EVENTS)
    for text, file in ((NAMED, "other.rq"), (UNNAMED, "q1.rq")):
        expected = sorted(match.id for match in run(text, EVENTS))
        assert sorted(match.id for match in run(tmp_path / file, EVENTS)) == expected
        for given in (text, tmp_path / file):
            rows = matches(given, frame, shards=2).collect()
            assert sorted(row["id"] for row in rows if row["kind"] == "match") == expected
