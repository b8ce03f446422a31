"""Errors and warnings of the pipeline, importable without loading the engine."""

from __future__ import annotations


class SparkError(ValueError):
    """A program or its options cannot run on Spark, or stored state belongs to another job."""


def check_frame(name: str, given: object, taker: str, also: str = "", *, table: bool = True) -> None:
    """Refuse what is no DataFrame of Spark, such as a frame of pandas, with what to give ``taker`` instead.

    ``table``: it holds events, so ``run`` would take such a table without Spark.
    """
    if hasattr(given, "sparkSession"):
        return
    needs = f"and {taker} needs a DataFrame of Spark:"
    if hasattr(given, "to_spark"):
        raise SparkError(f"{name} is a {type(given).__name__} of pandas on Spark, {needs} its to_spark() makes one")
    kind = f"{type(given).__module__.partition('.')[0]}.{type(given).__qualname__}"
    raise SparkError(
        f"{name} is a {kind}, {needs} spark.createDataFrame(…) makes one{also and f', {also}'}"
        f"{'; run(query, …) takes other tables as they are' if table else ''}"
    )


class SkewWarning(UserWarning):
    """One key has so many of the events that the other shards wait for its shard."""


__all__ = ["SkewWarning", "SparkError", "check_frame"]
