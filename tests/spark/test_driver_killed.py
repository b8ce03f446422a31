"""The driver is killed in the middle of a run; another one goes on from the checkpoint."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from etalis_py import Event
from etalis_py.spark.schema import END_OF_STREAM
from tests.spark.programs import PROGRAMS, SECOND, expected, ids_by_program, stream, write_batches
from tests.spark.test_streaming import run

NAMES = ("seq", "recent", "absence", "two levels")
ROOT = Path(__file__).parents[2]

DRIVER = """
import sys
from pathlib import Path
from etalis_py.spark import session
from tests.spark.programs import PROGRAMS
from tests.spark.test_streaming import run
local = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
spark = session("local[2]", shards=2, config=local)
run(spark, Path(sys.argv[1]), {name: PROGRAMS[name] for name in sys.argv[2:]})
"""


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")
def test_another_driver_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(81)
    end = [Event(60 * SECOND, 60 * SECOND, ((END_OF_STREAM,) * 3,))]
    write_batches(tmp_path / "in", [*(events[n : n + 10] for n in range(0, 60, 10)), end])
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path), *NAMES],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        committed = tmp_path / "checkpoint" / "commits"
        until = time.monotonic() + 120
        while not (committed.is_dir() and any(p.name.isdigit() for p in committed.iterdir())):
            assert driver.poll() is None, "the driver ended before it was killed"
            assert time.monotonic() < until, "the driver committed nothing within two minutes"
            time.sleep(0.1)
        time.sleep(0.7)  # in the middle of the next batch
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    programs = {name: PROGRAMS[name] for name in NAMES}
    assert ids_by_program(run(spark, tmp_path, programs)) == expected(programs, events)
