"""Spark's Python daemon with the engine loaded: its workers are forks of it, and need not load the engine again.

What starts threads (numpy, pyarrow and pandas) must not be loaded before a fork, so a worker still does that itself.
"""

from __future__ import annotations

import gc

from pyspark.daemon import manager

import etalis_py.engine
import etalis_py.spark.spec  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # so that the pages of what is loaded stay shared
    manager()
