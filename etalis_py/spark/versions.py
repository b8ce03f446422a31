"""What the versions of PySpark from 4.0 to 4.3 do not all have, and what stands in for it.

Older ones have no stateful operator for Python; ``etalis_py.extras`` says so where their first module is missing.
"""

from __future__ import annotations

from typing import Any

import pyspark
from pyspark.sql import functions as F
from pyspark.sql import types as T

from etalis_py.spark.errors import SparkError

VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

TimeType: Any = getattr(T, "TimeType", ())
"""The type of times of day, since 4.1; a tuple without types, as a class for isinstance, before."""

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

    LIMITED_READS = True
except ImportError:  # before 4.2

    class ReadLimit:  # type: ignore[no-redef]
        """Spark does not say how much a batch may read."""

    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """All that there is."""

    class ReadMaxFiles(ReadLimit):  # type: ignore[no-redef]
        """A number of files, which these versions cannot be told."""

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Spark itself asks only once how far the source goes."""

    LIMITED_READS = False

TOP_KEYS = VERSION >= (4, 1)
"""Whether Spark has the aggregate ``approx_top_k``."""

CONNECT_STREAMS = VERSION >= (4, 1)
"""Whether clients of Spark Connect have the stateful operator of streams."""


def arrow_udf(function: Any, returned: T.DataType) -> Any:
    """A function over Arrow columns as a function over columns of Spark, or what to do in a version without them."""
    if VERSION < (4, 1):
        raise SparkError(
            f"PySpark {pyspark.__version__} cannot write these values as literals; PySpark 4.1 and newer can. Until "
            "then make the column a string of N-Triples spellings, with concat and cast"
        )
    made: Any = F
    return made.arrow_udf(function, returned)


__all__ = [
    "CONNECT_STREAMS",
    "LIMITED_READS",
    "TOP_KEYS",
    "VERSION",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxFiles",
    "SupportsTriggerAvailableNow",
    "TimeType",
    "arrow_udf",
]
