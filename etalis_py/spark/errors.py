"""Errors and warnings of the pipeline, importable without loading the engine."""

from __future__ import annotations


class SparkError(ValueError):
    """Something cannot run on Spark, or stored state belongs to something else."""


class SkewWarning(UserWarning):
    """One key has so many of the events that the other shards wait for its shard."""


__all__ = ["SkewWarning", "SparkError"]
