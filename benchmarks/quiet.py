"""A Spark session for measurements: the output of the JVM and the workers is shown only on failure."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import IO

from pyspark.sql import SparkSession

from etalis_py.spark import session

SHOWN = 1 << 14  # bytes of it, at most
_CONFIG = {"spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.ui.showConsoleProgress": "false"}


@contextmanager
def quiet_session(master: str, shards: int, config: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session for ``matches`` that stops at the end."""
    log = _log()
    written = log.seek(0, 2)
    try:
        spark = session(master, shards=shards, config={**_CONFIG, **(config or {})}, log=log)
        try:
            yield spark
        finally:
            spark.stop()
    except Exception:
        log.seek(max(written, log.seek(0, 2) - SHOWN))
        sys.stderr.write(log.read().decode(errors="replace"))
        raise


@cache
def _log() -> IO[bytes]:
    """One file for the JVM, which outlives its sessions."""
    return tempfile.TemporaryFile()


__all__ = ["quiet_session"]
