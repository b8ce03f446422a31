"""Errors and warnings of the pipeline, importable without loading the engine."""

from __future__ import annotations


class SparkError(ValueError):
    """A program or its options cannot run on Spark, or stored state belongs to another job."""


def check_frame(name: str, given: object, taker: str, also: str = "") -> None:
    """Refuse what is no DataFrame of Spark, such as a frame of pandas, with what to give ``taker`` instead."""
    if hasattr(given, "sparkSession"):
        return
    kind = f"{type(given).__module__.partition('.')[0]}.{type(given).__qualname__}"
    raise SparkError(
        f"{name} is a {kind}, and {taker} needs a DataFrame of Spark: spark.createDataFrame(…) makes one"
        f"{also and f', {also}'}; run(query, …) takes other tables as they are"
    )


class SkewWarning(UserWarning):
    """One key has so many of the events that the other shards wait for its shard."""


__all__ = ["SkewWarning", "SparkError", "check_frame"]
