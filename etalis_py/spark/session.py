"""A Spark session with the settings that the pipeline needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def settings(shards: int) -> dict[str, str]:
    """What the pipeline needs: stateful Python operators need RocksDB, and a shard needs no more than one partition."""
    return {
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.shuffle.partitions": str(shards),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
    }


def session(
    master: str | None = None,
    *,
    shards: int | None = None,
    app: str = "etalis",
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session for ``matches``; an existing one is given the settings that can still be changed.

    ``master``: as Spark takes it (default: as configured, else all cores of this machine).
    ``shards``: the number of shuffle partitions (default: twice the cores of this machine).  ``config``: more settings.
    Executors on this machine start the interpreter that runs now, unless PYSPARK_PYTHON is set.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app)
    if master is not None:
        builder = builder.master(master)
    for name, value in {**settings(shards or 2 * (os.cpu_count() or 1)), **(config or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
