"""The settings of the sessions that tests start, and the session that a folder's tests share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from tests.spark.interpreter import interpreter
from tests.spark.java import SHORT_RUNS

LOCAL = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""Nothing outside this machine reaches the session."""

SHORT = LOCAL | {"spark.driver.extraJavaOptions": SHORT_RUNS}
"""The same, with a JVM that is quick to start."""


@contextmanager
def shared_session(folders: pytest.TempPathFactory, warehouse: str, more: Mapping[str, str]) -> Iterator[SparkSession]:
    """A quiet session whose tables are in a folder ``warehouse``."""
    from etalis_py.spark import session

    config = SHORT | {"spark.log.level": "OFF", "spark.sql.warehouse.dir": str(folders.mktemp(warehouse)), **more}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("PYSPARK_PYTHON", interpreter(folders.mktemp("interpreter")))
        # Failed tasks are tried again: local mode does not do so unless told.
        made = session("local[2,4]", shards=2, config=config)
        warnings.simplefilter("ignore")
        yield made
        made.stop()
