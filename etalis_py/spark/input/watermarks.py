"""How late the events of a stream may be: as the caller says, or as the watermark says that a DataFrame brings."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from etalis_py.events.clock import Length, micros_of
from etalis_py.spark.errors import SparkError
from etalis_py.spark.input.schema import DELAY
from etalis_py.spark.input.shards_that_scan import nodes_of
from etalis_py.spark.session_kinds import is_connect

WATERMARK = "EventTimeWatermark"
"""The name of the node that ``withWatermark`` adds to a plan."""


def lateness_of(events: DataFrame, given: Length | None) -> int | None:
    """The lateness in microseconds; None: the watermark that the events bring holds."""
    asked = None if given is None else micros("lateness", given)
    if not events.isStreaming:
        return asked or 0
    if WATERMARK not in _nodes(events):
        return asked or 0
    if asked is not None:
        raise SparkError(
            f"the events have a watermark already, and lateness={given!r} would be another: leave out lateness=, which "
            "uses theirs, or withWatermark"
        )
    return None


def with_watermark(flat: DataFrame, lateness: int | None, levels: int) -> DataFrame:
    """The events with a watermark; ``levels``: of operators that follow one another."""
    if lateness is not None:
        return flat.withColumn("time", F.timestamp_micros("end")).withWatermark("time", f"{lateness} microseconds")
    if levels > 1 and ("time" not in flat.columns or DELAY not in flat.schema["time"].metadata):
        raise SparkError(
            "these rules take several operators, which need the watermark on the column time of the events: give "
            'lateness= instead of withWatermark, or call withWatermark("time", …) on what events_from_… made'
        )
    return flat


def micros(option: str, given: Length) -> int:
    """A length of time in microseconds."""
    try:
        return micros_of(option, given)
    except (TypeError, ValueError) as error:
        raise SparkError(str(error)) from None


def operators_before(events: DataFrame) -> int:
    """How many operators of other ``matches`` a stream of events comes through."""
    return sum(node.startswith("TransformWithState") for node in _nodes(events)) if events.isStreaming else 0


def nodes_above(events: DataFrame, name: str) -> list[str]:
    """The names of the nodes of the plan that work on what a node of this name gives."""
    return list(takewhile(lambda node: node != name, _nodes(events)))


def _nodes(events: DataFrame) -> list[str]:
    """The names of the nodes of the plan."""
    frame: Any = events
    if not is_connect(events.sparkSession):
        return list(nodes_of(frame._jdf.queryExecution().analyzed()))
    text: str = frame._explain_string(extended=True)
    analyzed = text.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized Logical Plan ==")[0]
    return re.findall(r"^[ :+-]*~?(\w+)", analyzed, re.MULTILINE)


__all__ = ["lateness_of", "micros", "nodes_above", "operators_before", "with_watermark"]
