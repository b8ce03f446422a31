"""The driver is killed between two batches and in the middle of one; others go on from the checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.processes import batches, driver, in_between, in_the_middle, kill_all, started, until
from tests.spark.programs import PROGRAMS, expected, ids_by_program, stream, write_batches
from tests.spark.settings import LOCAL
from tests.spark.test_streaming import THE_END, run

NAMES = ("seq", "recent", "absence", "two levels")


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")
def test_other_drivers_go_on(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(81)
    write_batches(tmp_path / "in", [*(events[n : n + 10] for n in range(0, 60, 10)), THE_END])
    checkpoint, config, log = tmp_path / "checkpoint", json.dumps(LOCAL), tmp_path / "driver.log"
    with started(driver(tmp_path, NAMES, every="1 hour", config=config), log) as one:
        until(lambda: in_between(checkpoint), "between two batches", one, log)
        kill_all(one)
    committed = batches(checkpoint)[1]
    with started(driver(tmp_path, NAMES, config=config), log) as another:
        until(lambda: in_the_middle(checkpoint, committed + 1), "in the middle of a batch", another, log)
        kill_all(another)
    assert not in_between(checkpoint)
    programs = {name: PROGRAMS[name] for name in NAMES}
    assert ids_by_program(run(spark, tmp_path, programs)) == expected(programs, events)
