"""Python workers that die within the operator, and checkpoints that have lost something."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from etalis_py.spark import MATCHES
from etalis_py.spark.shard import deferred
from etalis_py.spark.shard.deferred import Deferred
from etalis_py.spark.shard.streaming import LevelTask, ShardProcessor
from tests.spark.programs import PROGRAMS, SHARDED, expected, ids_by_program, stream, write_batches
from tests.spark.test_streaming import THE_END, cut, run

pytestmark = pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")

NAMES = ("seq", "recent", "absence", "two levels")


def deadly(folder: Path, deaths: Sequence[tuple[str, int]]) -> type[Deferred]:
    """A processor whose process is killed at the n-th time that it comes to one of these places, once for each."""

    def come_to(place: str) -> None:
        number = 0
        while True:
            number += 1
            try:
                os.close(os.open(folder / f"{place}.{number}", os.O_CREAT | os.O_EXCL))
                break
            except FileExistsError:
                continue
        if (place, number) in deaths:
            os.kill(os.getpid(), signal.SIGKILL)

    class Deadly(ShardProcessor):
        def _load(self, key: Any, size: int = 0) -> Any:
            shard = super()._load(key, size)
            come_to("loaded")
            return shard

        def _closed(self, *given: Any) -> Any:
            come_to("taken")
            rows = super()._closed(*given)
            come_to("stored")
            return rows

        def wake(self, *given: Any) -> Iterator[pd.DataFrame]:
            come_to("woken")
            yield from super().wake(*given)

    class DeadlyDeferred(Deferred):
        def processor(self) -> ShardProcessor:
            return Deadly(LevelTask.decoded(self.work, self.backgrounds))

    return DeadlyDeferred


def test_workers_killed_within_the_operator_lose_nothing_and_double_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the state loaded, with the events of a batch taken, with the state stored but not committed, by a timer."""
    deaths = [("loaded", 3), ("taken", 9), ("stored", 15), ("woken", 2)]
    places = tmp_path / "places"
    places.mkdir()
    monkeypatch.setattr(deferred, "Deferred", deadly(places, deaths))
    events = stream(52)
    programs = {name: PROGRAMS[name] for name in NAMES}
    write_batches(tmp_path / "in", [*cut(events, 4, 52), THE_END])
    rows = run(spark, tmp_path, programs)
    for place, number in deaths:
        assert (places / f"{place}.{number + 1}").exists(), f"nobody came to {place} after a death there"
    assert ids_by_program(rows) == expected(programs, events)


# --- checkpoints -------------------------------------------------------------------------------------------------


def without_a_partition(state: Path) -> None:
    shutil.rmtree(state / "0" / "0")


def with_wrong_bytes(state: Path) -> None:
    for file in (*state.glob("0/*/*.zip"), *state.glob("0/*/*.changelog"), *state.glob("0/*/SSTs/*.sst")):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 0xFF
        file.write_bytes(data)


def test_state_files_that_are_damaged_or_lost_stop_the_run(spark: SparkSession, tmp_path: Path) -> None:
    """Spark sees the loss of whole files, and RocksDB wrong bytes; what both would miss, ``shard_in_store`` tells."""
    events, programs = stream(53), {"": SHARDED["seq"]}
    write_batches(tmp_path / "run" / "in", [events[:40]])
    run(spark, tmp_path / "run", programs)
    for damage in (without_a_partition, with_wrong_bytes):
        copy = tmp_path / damage.__name__
        shutil.copytree(tmp_path / "run", copy)
        damage(copy / "checkpoint" / "state")
        before = len(spark.read.schema(MATCHES).parquet(str(copy / "out")).collect())
        write_batches(copy / "in", [events[40:], THE_END], first=1)
        with pytest.raises(Exception, match=r"CANNOT_LOAD_STATE_STORE"):
            run(spark, copy, programs)
        assert len(spark.read.schema(MATCHES).parquet(str(copy / "out")).collect()) == before
