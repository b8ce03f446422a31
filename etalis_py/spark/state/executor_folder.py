"""The folder that the Python workers of an executor share."""

from __future__ import annotations

from pathlib import Path

from pyspark import SparkFiles


def executor_folder() -> Path | None:
    """A folder that all workers of the executor share and that Spark removes; None outside of a worker."""
    return Path(SparkFiles.getRootDirectory()) if SparkFiles._is_running_on_worker else None


__all__ = ["executor_folder"]
