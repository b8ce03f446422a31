"""What the documentation shows works.  (The snippets of sinks and of Kafka run in their own tests.)"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "spark.md"


def snippet(name: str = "", page: Path = PAGE) -> str:
    """The Python under a file name; without one, the page's first example."""
    [code] = re.findall(rf"```python ?{re.escape(name)}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return code


def run(spark: SparkSession, code: str) -> None:
    """The tests share one session, so the page's own is left out."""
    opened, closed = 'spark = session("local[2]", shards=2)\n', "spark.stop()\n"
    assert opened in code
    assert code.endswith(closed)
    exec(code.replace(opened, "").replace(closed, ""), {"spark": spark})


def make_the_table(spark: SparkSession, format: str = 'format("delta")') -> None:
    """The table of the first example, as the page makes it but in the session of the tests."""
    _, opened, made = snippet("lake.py").partition('spark = session("local[2]", shards=2, config=DELTA)\n')
    assert opened
    exec(made.replace('format("delta")', format), {"spark": spark})


def test_the_first_example_runs(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """From a table with string columns to typed matches, counted by the minute; ``tests.lakes`` has one of Delta."""
    make_the_table(spark, 'format("parquet")')
    try:
        run(spark, snippet())
    finally:
        spark.sql("DROP TABLE readings")
    shown = capsys.readouterr().out
    assert "|http://example.org/m1|70.5|91.0|2026-03-02 08:00:40|" in shown
    assert "|2026-03-02 08:00:00|    1|" in shown


def test_the_task_of_a_session_runs(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    run(spark, snippet("own_session.py", DOCS / "ten-tasks.md"))
    assert "|{c -> <urn:acme>}|2000000|" in capsys.readouterr().out


def test_the_example_of_files_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run(spark, snippet("files.py"))
    assert "1 event; the second line is not whole" in capsys.readouterr().out


def test_the_example_of_updates_runs(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    run(spark, snippet("updates.py", DOCS / "spark-streams.md"))
    assert capsys.readouterr().out == "[3]\n"
