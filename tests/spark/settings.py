"""The settings of the sessions that tests start, and the session that a folder's tests share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from tests.spark.interpreter import interpreter
from tests.spark.java import SHORT_RUNS

LOCAL = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""Nothing outside this machine reaches the session."""

SHORT = LOCAL | {"spark.driver.extraJavaOptions": SHORT_RUNS}
"""The same, with a JVM that is quick to start."""


SHARED = SHORT | {
    "spark.log.level": "OFF",
    "spark.ui.showConsoleProgress": "false",  # a thread that looks at all stages five times a second
    # The place in this code of each column of a plan, for errors: PySpark asks the JVM four times for each of them.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""The settings of a session for many tests, whose plans have thousands of columns."""


@contextmanager
def shared_session(folders: pytest.TempPathFactory, warehouse: str, more: Mapping[str, str]) -> Iterator[SparkSession]:
    """A quiet session whose tables are in a folder ``warehouse``."""
    from etalis_py.spark import session

    config = SHARED | {"spark.sql.warehouse.dir": str(folders.mktemp(warehouse)), **more}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("PYSPARK_PYTHON", interpreter(folders.mktemp("interpreter")))
        # Failed tasks are tried again: local mode does not do so unless told.
        made = session("local[2,4]", shards=2, config=config)
        warnings.simplefilter("ignore")
        keep_class_of_comparisons(made)
        yield made
        made.stop()


def keep_class_of_comparisons(spark: SparkSession) -> None:
    """Look up once the class that py4j compares types with.

    PySpark turns the progress of each batch of a stream into Python.  The end of each of its Java collections comes as
    an exception, which is compared with fourteen classes, and each time py4j would look for classes named ``py4j`` and
    ``py4j.reflection`` in all of Spark's archives: a tenth of the JVM's time in short streams.
    """
    view = spark._jvm
    assert view is not None
    view.py4j = SimpleNamespace(reflection=SimpleNamespace(TypeUtil=view.py4j.reflection.TypeUtil))
