"""What the workers of a parallel run share out: whole files, and what runs on Spark as two groups of files.

A file's tests share servers and other dear things, so they stay in one worker.  Spark's session takes half a minute to
start and is shared by many files: two workers run these, from the beginning, while the others take file after file.
The second of them begins with the files that start sessions of their own, one after the other, as there is memory for
two sessions at a time, not for many more.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SESSIONS = ("the first session of Spark", "the second session of Spark")
STARTS_SPARK = ("tests/cli/test_spark.py", "tests/spark/test_connect.py", "tests/test_packaging.py")
STYLE = "tests/test_style.py"


@cache
def group_of(file: str) -> str:
    """What runs in one worker together with this file, which is named as tests are: ``tests/spark/test_batch.py``."""
    return sessions().get(file, file)


@cache
def sessions() -> dict[str, str]:
    """The group of each file that runs on Spark: the longest first, each goes where less is."""
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests/spark").glob("test_*.py")]
    lengths = {file: len(text) for file in files if "spark: SparkSession" in (text := (ROOT / file).read_text("utf-8"))}
    group = dict.fromkeys(STARTS_SPARK, SESSIONS[1])
    sums = {SESSIONS[0]: 0, SESSIONS[1]: sum((ROOT / file).stat().st_size for file in STARTS_SPARK)}
    for file in sorted(lengths, key=lambda file: (-lengths[file], file)):
        group[file] = min(SESSIONS, key=sums.__getitem__)
        sums[group[file]] += lengths[file]
    return group


def longest_first(items: list[pytest.Item]) -> None:
    """Order tests as groups are shared out: what takes minutes, the files that stand above all folders, the rest.

    The files that start sessions of their own come before those of the second session.
    """
    minutes = [*SESSIONS, STYLE]

    def place(item: pytest.Item) -> tuple[int, bool, bool]:
        file = file_of(item)
        group = group_of(file)
        rank = minutes.index(group) if group in minutes else len(minutes)
        return rank, group in SESSIONS and file not in STARTS_SPARK, file.count("/") > 1

    items.sort(key=place)


def strays(items: Iterable[pytest.Item]) -> list[str]:
    """The files that take Spark's session although they are in no group of it: there would be several sessions."""
    taking = {file_of(item) for item in items if "spark" in getattr(item, "fixturenames", ())}
    return sorted(file for file in taking if file in STARTS_SPARK or file not in sessions())


def file_of(item: pytest.Item) -> str:
    return item.nodeid.split("::", 1)[0]


def scheduler(config: pytest.Config, log: Any) -> Any:
    """What gives each worker a group at a time."""
    from xdist.scheduler import LoadScopeScheduling  # a run without workers does without it

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid.split("::", 1)[0])

    return Groups(config, log)
