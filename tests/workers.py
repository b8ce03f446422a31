"""What the workers of a parallel run share out: whole files, and what runs on Spark as two groups of files.

A file's tests share servers and other dear things, so they stay in one worker.  Spark's session takes half a minute to
start and is shared by many files: one worker runs these, from the beginning, while the others take file after file.
Files that start sessions of their own are a group, too: there is memory for two sessions at a time, not for more.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SESSION = "the session of Spark"
OTHER_SESSIONS = "other sessions of Spark"
STARTS_SPARK = ("tests/cli/test_spark.py", "tests/spark/test_connect.py", "tests/test_packaging.py")
STYLE = "tests/test_style.py"


@cache
def group_of(file: str) -> str:
    """What runs in one worker together with this file, which is named as tests are: ``tests/spark/test_batch.py``."""
    if file in STARTS_SPARK:
        return OTHER_SESSIONS
    of_spark = file.startswith("tests/spark/") and "spark: SparkSession" in (ROOT / file).read_text(encoding="utf-8")
    return SESSION if of_spark else file


def longest_first(items: list[pytest.Item]) -> None:
    """Order tests as groups are shared out: what takes minutes, the files that stand above all folders, the rest."""
    minutes = [SESSION, OTHER_SESSIONS, STYLE]

    def place(item: pytest.Item) -> tuple[int, bool]:
        file = file_of(item)
        group = group_of(file)
        return minutes.index(group) if group in minutes else len(minutes), file.count("/") > 1

    items.sort(key=place)


def strays(items: Iterable[pytest.Item]) -> list[str]:
    """The files that take Spark's session although they are not in its group: there would be several sessions."""
    taking = {file_of(item) for item in items if "spark" in getattr(item, "fixturenames", ())}
    return sorted(file for file in taking if group_of(file) != SESSION)


def file_of(item: pytest.Item) -> str:
    return item.nodeid.split("::", 1)[0]


def scheduler(config: pytest.Config, log: Any) -> Any:
    """What gives each worker a group at a time."""
    from xdist.scheduler import LoadScopeScheduling  # a run without workers does without it

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid.split("::", 1)[0])

    return Groups(config, log)
