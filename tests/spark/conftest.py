"""One Spark session for all tests of this folder."""

from __future__ import annotations

import re
import shutil
import subprocess
import warnings
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from etalis_py.spark.versions import VERSION
from tests.kafka.artifacts import KAFKA
from tests.spark.interpreter import interpreter
from tests.spark.java import SHORT_RUNS

FILES = "spark.sql.streaming.checkpointFileManagerClass"
FILES_BY_FILE_SYSTEM = "FileSystemBasedCheckpointFileManager"
"""Spark's manager for file systems that are no disks.  The one for disks starts four processes for each file that it
writes, hundreds in a short stream; the sessions that tests start in processes of their own keep that one.
"""


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
    from etalis_py.spark import session

    if java() < 17:
        pytest.skip("Spark needs Java 17 or newer, and there is none")
    local = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("tables")),
        "spark.sql.streaming.stopTimeout": "60s",
        "spark.driver.extraJavaOptions": SHORT_RUNS,
    }
    if VERSION >= (4, 3):  # it is called otherwise, or was not tried
        local[FILES] = f"org.apache.spark.sql.execution.streaming.checkpointing.{FILES_BY_FILE_SYSTEM}"
    if request.config.getoption("--kafka") and (connector := KAFKA.jars("connector")):
        local["spark.jars"] = ",".join(map(str, connector))
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("PYSPARK_PYTHON", interpreter(tmp_path_factory.mktemp("interpreter")))
        # Failed tasks are tried again: local mode does not do so unless told.
        made = session("local[2,4]", shards=2, config=local)
        warnings.simplefilter("ignore")
        yield made
        made.stop()
