"""What can be asked of a session of either kind: a classic one, or one of Spark Connect.

A client of Spark Connect has no JVM: no ``sparkContext``, no plan of Java's, no broadcast variables.  Every kind of
session tells its settings, so plans are made from these.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from etalis_py.spark.errors import SparkError

if TYPE_CHECKING:  # engine processes need the name of a setting, not PySpark
    from pyspark.sql import SparkSession

ENGINES = "spark.etalis.engines"
"""The setting for the number of engine processes of each executor."""
_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\d+)?\])?")


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is a client of Spark Connect.  Asks without importing the client, which needs more packages."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def cores_of(spark: SparkSession) -> int | None:
    """The cores that a session may come to have, by its settings; None if they do not say.

    Spark's own ``defaultParallelism`` counts the executors that are there, of which there are none at the beginning.
    """
    local = _LOCAL.fullmatch(_setting(spark, "spark.master") or "")
    if local is not None:
        return int(local[1] or 1) if local[1] != "*" else os.cpu_count() or 1
    each = _number(spark, "spark.executor.cores") or 1
    if _setting(spark, "spark.dynamicAllocation.enabled") == "true":
        executors = _number(spark, "spark.dynamicAllocation.maxExecutors")
    else:
        executors = _number(spark, "spark.executor.instances")
    most = _number(spark, "spark.cores.max")
    if executors is None:
        return most
    return executors * each if most is None else min(most, executors * each)


def engines_of(spark: SparkSession) -> int | None:
    """How many engine processes each executor shall have, by ENGINES; else one for each task that it runs at a time.

    None: the settings do not say how many these are.
    """
    asked = _setting(spark, ENGINES)
    if asked is not None:
        if not asked.isdecimal():
            raise SparkError(f"{ENGINES} is {asked!r}: give a number of processes, or 0 for none")
        return int(asked)
    if _LOCAL.fullmatch(_setting(spark, "spark.master") or "") is not None:
        return cores_of(spark)
    return _number(spark, "spark.executor.cores")


def _setting(spark: SparkSession, name: str) -> str | None:
    found: str | None = spark.conf.get(name, None)
    return found


def _number(spark: SparkSession, name: str) -> int | None:
    """A setting that is a number of cores or executors; None if it is not there, or has no limit."""
    found = _setting(spark, name)
    return int(found) if found is not None and found.isdecimal() and int(found) < 2**31 - 1 else None


__all__ = ["ENGINES", "cores_of", "engines_of", "is_connect"]
