"""One Spark session for all tests of this folder."""

from __future__ import annotations

import re
import shutil
import subprocess
import warnings
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.kafka.artifacts import KAFKA
from tests.spark.interpreter import interpreter


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
        # The JVM's better compiler, and a collector with threads of its own, cost more than they gain in a short run.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    if request.config.getoption("--kafka") and (connector := KAFKA.jars("connector")):
        local["spark.jars"] = ",".join(map(str, connector))
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("PYSPARK_PYTHON", interpreter(tmp_path_factory.mktemp("interpreter")))
        # Failed tasks are tried again: local mode does not do so unless told.
        made = session("local[2,4]", shards=2, config=local)
        warnings.simplefilter("ignore")
        yield made
        made.stop()
