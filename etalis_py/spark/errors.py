"""What cannot be run on Spark, apart from what loads the engine."""

from __future__ import annotations


class SparkError(ValueError):
    """Something that cannot be run on Spark, or a state that does not belong to what is run."""


class SkewWarning(UserWarning):
    """One key has so many of the events that the other shards wait for its own."""


__all__ = ["SkewWarning", "SparkError"]
