"""What the documentation shows works.  (The snippets of sinks and of Kafka run in their own tests.)"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def snippet(name: str = "") -> str:
    """The Python under a file name; without one, the page's first example."""
    [code] = re.findall(rf"```python ?{re.escape(name)}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return code


def test_the_first_example_runs(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    code = snippet()
    opened, closed = 'spark = session("local[2]", shards=2)\n', "spark.stop()\n"
    assert opened in code
    assert code.endswith(closed)
    # The tests share one session, so the page's own is left out.
    exec(code.replace(opened, "").replace(closed, ""), {"spark": spark})
    assert "|q1   |{c -> <urn:c>}|1000000|2000000|" in capsys.readouterr().out
