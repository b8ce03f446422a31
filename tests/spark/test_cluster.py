"""On a real cluster: a standalone master and two workers; an executor is killed in the middle of a batch."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.processes import MINUTES, children, cluster, driver, in_the_middle, started, until
from tests.spark.programs import PROGRAMS, expected, ids_by_program, stream, write_batches
from tests.spark.settings import LOCAL
from tests.spark.test_streaming import THE_END

NAMES = ("seq", "recent", "absence", "counts")
BOTH = {  # no batch begins before both executors are there, however busy the machine is
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
}
CONFIG = LOCAL | BOTH | {"spark.executor.memory": "600m", "spark.executor.cores": "1"}


@pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")
@pytest.mark.nightly
def test_an_executor_killed_on_a_cluster_loses_nothing_and_doubles_nothing(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(82)
    write_batches(tmp_path / "in", [*(events[n : n + 20] for n in range(0, 60, 20)), THE_END])
    log = tmp_path / "driver.log"
    with cluster(tmp_path) as (url, workers):
        command = driver(tmp_path, NAMES, master=url, config=json.dumps(CONFIG))
        with started(command, log) as running:
            until(lambda: in_the_middle(tmp_path / "checkpoint"), "in the middle of a batch", running, log)
            executors = [children(worker.pid) for worker in workers]
            assert all(executors), executors
            for executor in executors[0]:
                os.kill(executor, signal.SIGKILL)
            assert running.wait(MINUTES) == 0, log.read_text()[-4000:]
        # The worker has started another one.
        assert len(list((tmp_path / "work0").glob("app-*/*"))) > 1
    programs = {name: PROGRAMS[name] for name in NAMES}
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert ids_by_program(found) == expected(programs, events)
