"""One Spark session for all tests of this folder."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from etalis_py.spark.versions import VERSION
from tests.kafka.artifacts import KAFKA
from tests.spark.settings import shared_session

FILES = "spark.sql.streaming.checkpointFileManagerClass"
FILES_BY_FILE_SYSTEM = "FileSystemBasedCheckpointFileManager"
"""Spark's manager for file systems that are no disks.  The one for disks starts four processes for each file that it
writes, hundreds in a short stream; the sessions that tests start in processes of their own keep that one.
"""


STREAMS = {"answer_sets", "answer_sets_by_key", "divided", "revision", "standing", "streaming", "updates", "windows"}
"""Files that show what Spark keeps and orders between batches.  Each batch is a few rows, so Spark interprets the
expressions of its plans: to compile Java for them takes a seventh of the processor time.  What these expressions
compute is shown by the other files, in compiled form, as users have it.
"""

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def java() -> int:
    """The version of the Java that Spark would start; 0 where there is none."""
    found = shutil.which("java")
    if found is None:
        return 0
    said = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    return int(version[1]) if version else 0


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    if java() < 17:
        pytest.skip("Spark needs Java 17 or newer, and there is none")
    more = {"spark.sql.streaming.stopTimeout": "60s"}
    if VERSION >= (4, 3):  # it is called otherwise, or was not tried
        more[FILES] = f"org.apache.spark.sql.execution.streaming.checkpointing.{FILES_BY_FILE_SYSTEM}"
    if request.config.getoption("--kafka") and (connector := KAFKA.jars("connector")):
        more["spark.jars"] = ",".join(map(str, connector))
    with shared_session(tmp_path_factory, "tables", more) as made:
        yield made


@pytest.fixture(scope="module", autouse=True)
def _interpreted(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.path.stem.removeprefix("test_") not in STREAMS:
        yield
        return
    spark: SparkSession = request.getfixturevalue("spark")
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)
    yield
    for name in INTERPRETED:
        spark.conf.unset(name)
