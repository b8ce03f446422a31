"""Shows the progress of Spark from a separate thread while the command waits for it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from etalis_py.cli.progress import EVERY, StatusLine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_WORKERS = b"has not accepted any resources"


@contextmanager
def watching(line: StatusLine, log: Path, began: float, spark: SparkSession | None) -> Iterator[None]:
    """Show the tasks of Spark on the line; without a session yet, show that it is starting.

    If Spark waits for workers, this is reported once, on a terminal or not, because it could wait for ever.
    """
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(line, log, began, spark, over), name="etalis-spark", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        line.clear()


def _watch(line: StatusLine, log: Path, began: float, spark: SparkSession | None, over: threading.Event) -> None:
    from py4j.protocol import Py4JError

    waits = False
    with log.open("rb") as read:
        while not over.wait(EVERY):
            if not waits and NO_WORKERS in read.read():
                waits = True
                line.clear()
                print(
                    "etalis: Spark waits for workers: has the master any, with free cores and memory? (Ctrl-C stops)",
                    file=sys.stderr,
                )
            if not line.shown:
                continue
            try:
                doing = "starting Spark" if spark is None else _tasks(spark)
            except (Py4JError, OSError):  # Spark is gone: the waiting thread gets the reason
                return
            line.show(f"{doing}  {time.monotonic() - began:.0f} s")


def _tasks(spark: SparkSession) -> str:
    tracker = spark.sparkContext.statusTracker()
    stages = [info for info in map(tracker.getStageInfo, tracker.getActiveStageIds()) if info is not None]
    done, wanted = sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)
    return f"Spark: {done} of {wanted} tasks" if stages else "Spark"
