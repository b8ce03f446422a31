"""Errors and warnings of the pipeline, importable without loading the engine."""

from __future__ import annotations


class SparkError(ValueError):
    """A program or its options cannot run on Spark, or stored state belongs to another job."""


class SkewWarning(UserWarning):
    """One key has so many of the events that the other shards wait for its shard."""


__all__ = ["SkewWarning", "SparkError"]
