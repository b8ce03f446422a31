"""The first example of docs/spark.md, over a table of Delta (``make test-lakes``)."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.lakes.artifacts import LAKES
from tests.spark.test_page import make_the_table, run, snippet


def test_the_first_example_reads_a_table_of_delta(lakes: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    make_the_table(lakes)
    assert lakes.sql("DESCRIBE DETAIL readings").select("format").collect() == [("delta",)]
    run(lakes, snippet())
    shown = capsys.readouterr().out
    assert "|http://example.org/m1|70.5|91.0|2026-03-02 08:00:40|" in shown
    assert "|2026-03-02 08:00:00|    1|" in shown


def test_the_page_names_the_library_of_these_tests() -> None:
    named = LAKES.folder.joinpath("lakes.xml").read_text(encoding="utf-8")
    assert "io.delta:delta-spark_4.1_2.13:4.3.1" in snippet("lake.py")
    assert "<spark>4.1</spark>" in named
    assert "<delta>4.3.1</delta>" in named
