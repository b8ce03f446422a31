"""One Spark session for all tests of this folder."""

from __future__ import annotations

import re
import shutil
import subprocess
import warnings
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.kafka.artifacts import jars


def java() -> int:
    """The version of the Java that Spark would start; 0 where there is none."""
    found = shutil.which("java")
    if found is None:
        return 0
    said = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    return int(version[1]) if version else 0


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    from etalis_py.spark import session

    if java() < 17:
        pytest.skip("Spark needs Java 17 or newer, and there is none")
    local = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.sql.streaming.stopTimeout": "60s",
    }
    if request.config.getoption("--kafka") and (connector := jars("connector")):
        local["spark.jars"] = ",".join(map(str, connector))
    # Failed tasks are tried again: local mode does not do so unless told.
    made = session("local[2,4]", shards=2, config=local)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield made
    made.stop()
