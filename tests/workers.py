"""What the workers of a parallel run share out: whole files, and the tests of Spark's session as one.

A file's tests share servers and other dear things, so they stay in one worker.  Spark's session takes half a minute to
start and is shared by many files: one worker runs these, from the beginning, while the others take file after file.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[1]
SPARK = "the session of Spark"


@cache
def group_of(file: str) -> str:
    """What runs in one worker together with this file, which is named as tests are: ``tests/spark/test_batch.py``."""
    of_spark = file.startswith("tests/spark/") and "spark: SparkSession" in (ROOT / file).read_text(encoding="utf-8")
    return SPARK if of_spark else file


def longest_first(items: list[pytest.Item]) -> None:
    """Order tests as groups are shared out: Spark first, then the files that stand above all folders, then the rest."""
    items.sort(key=lambda item: (group_of(_file(item.nodeid)) != SPARK, _file(item.nodeid).count("/") > 1))


def _file(test: str) -> str:
    return test.split("::", 1)[0]


class Groups(LoadScopeScheduling):
    """Gives each worker a group at a time."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(_file(nodeid))
