"""Engine processes: each live shard once for all workers, and nothing lost or doubled when one is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from etalis_py.spark import EVENTS, SparkError, matches
from etalis_py.spark.processes import engine_process, starting
from etalis_py.spark.processes.messages import Channel
from etalis_py.spark.processes.starting import connected
from etalis_py.spark.processes.worker_side import EnginesAsked
from etalis_py.spark.session_kinds import ENGINES, engines_of
from tests.spark.programs import SHARDED, embedded, ids_by_program, stream, write_batches
from tests.spark.test_column_streams import THE_END, Run, rows_of
from tests.spark.test_stored import Store
from tests.spark.test_streaming import THE_END as END_OF_EVENTS
from tests.spark.test_streaming import cut

EVENTS_TAKEN = stream(81)
CUTS = (0, 15, 30, 45, 60)


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[Path]:
    """The folder of an executor; its processes end with the test."""
    yield tmp_path
    for process in starting._started:
        process.terminate()
        process.wait()
    starting._started.clear()
    link = tmp_path / starting.LINK
    if link.exists():  # what was killed could not remove its socket
        shutil.rmtree(link.readlink())


class Watched:
    """A state that tells of each call."""

    def __init__(self, state: Any, called: Callable[[str], None]) -> None:
        self._state, self._called = state, called

    def __getattr__(self, name: str) -> Any:
        self._called(name)
        return getattr(self._state, name)


class WatchedStore:
    def __init__(self, store: Store, called: Callable[[str], None]) -> None:
        self._store, self._called = store, called

    def getValueState(self, name: str, schema: str) -> Any:
        return Watched(self._store.getValueState(name, schema), self._called)

    def getListState(self, name: str, schema: str) -> Any:
        return Watched(self._store.getListState(name, schema), self._called)


class RunOfWorker(Run):
    """A shard in an engine process, with the worker's side of it.

    ``deaths``: calls of the state at which the process is killed, each as a method and how often it was called.
    """

    def __init__(self, text: str, executor: Path, deaths: Container[tuple[str, int]] = ()) -> None:
        self.executor, self.deaths, self.calls = executor, deaths, Counter[str]()
        super().__init__(text)

    def made(self) -> Any:
        data, backgrounds = self.work.encoded()
        return EnginesAsked(data, backgrounds, self.executor, 0)

    def open(self, store: Any) -> None:
        super().open(WatchedStore(store, self.called))

    def called(self, name: str) -> None:
        self.calls[name] += 1
        if (name, self.calls[name]) in self.deaths:
            starting._started[-1].kill()
            starting._started[-1].wait()

    def batch(self, rows: Sequence[dict[str, object]]) -> None:
        """Like Spark, from the state before if the task fails."""
        before, watermark = self.store.copied(), self.watermark
        try:
            super().batch(rows)
        except SparkError as error:
            if "died after it had written some of its state" not in str(error):
                raise
            self.store, self.watermark = before, watermark
            self.open(before)
            super().batch(rows)

    def in_batches(self) -> None:
        for first, last in pairwise(CUTS):
            end = [] if last < len(EVENTS_TAKEN) else [THE_END]
            over = EVENTS_TAKEN[last].end if last < len(EVENTS_TAKEN) else sys.maxsize
            some = [e for e in EVENTS_TAKEN if EVENTS_TAKEN[first].end <= e.end < over]
            self.batch([*rows_of(self.part, some), *end])


def test_a_process_that_is_killed_loses_nothing_and_doubles_nothing(executor: Path) -> None:
    """While it reads the head of the second batch, before it writes that one's, and when it has written the third's."""
    wanted = embedded(SHARDED["seq"], EVENTS_TAKEN)
    assert wanted
    for deaths in [[], [("get", 5), ("put", 2), ("update", 5)]]:
        run = RunOfWorker(SHARDED["seq"], executor, deaths)
        run.in_batches()
        assert run.ids == wanted
        assert len(starting._started) == 1 + len(deaths), "all batches go to one process"


def test_a_process_that_always_dies_fails_the_task(executor: Path) -> None:
    run = RunOfWorker(SHARDED["seq"], executor, [("get", 1), ("get", 2)])
    with pytest.raises(SparkError, match=r"died 2 times in turn: .*spark\.executor\.memoryOverhead"):
        run.in_batches()


def test_errors_keep_their_message_and_tell_where_they_were_unless_they_are_for_users(executor: Path) -> None:
    run = RunOfWorker(SHARDED["seq"], executor)
    run.store.states["head"].value = None
    with pytest.raises(SparkError, match="the checkpoint has no state for shard 0") as refused:
        run.in_batches()
    assert not hasattr(refused.value, "__notes__")
    run.store.states["head"].value = ("no",)
    with pytest.raises(RuntimeError, match=r"^\w+Error: ") as raised:
        run.in_batches()
    assert "shard_in_store.py" in raised.value.__notes__[0]


def test_a_state_that_spark_takes_away_is_told_with_what_to_do(executor: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def update(_: object) -> None:
        raise EOFError

    run = RunOfWorker(SHARDED["seq"], executor)
    monkeypatch.setattr(run.store.states["head"], "update", update)
    with pytest.raises(SparkError, match=r"Spark has ended the task, .*; the task can be run again, .*\[2,4\]"):
        run.in_batches()


def test_the_numbers_of_a_state_may_be_those_of_numpy() -> None:
    """As in PySpark 4.0; nothing else that is no plain value is sent."""
    ends = socket.socketpair()
    with Channel(ends[0]) as worker, Channel(ends[1]) as process:
        worker.send((np.int64(3), b"", None))
        assert process.value() == [3, b"", None]
        with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
            worker.send(object())


def test_workers_that_come_at_once_start_one_process(executor: Path) -> None:
    found = []
    workers = [threading.Thread(target=lambda: found.append(connected(executor, 7))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for connection in found:
        connection.close()
    assert (len(found), len(starting._started)) == (4, 1)


def test_the_partitions_of_an_executor_take_turns(tmp_path: Path) -> None:
    """Partitions 1 and 3, 4 and 6 would meet if their numbers decided."""
    numbers = [starting.number_of(tmp_path, partition, 2) for partition in (1, 3, 4, 6, 3)]
    assert numbers == [0, 1, 0, 1, 1]


def test_a_folder_that_others_can_open_is_refused(executor: Path) -> None:
    shared = executor / "shared"
    shared.mkdir(mode=0o755)
    (executor / starting.LINK).symlink_to(shared)
    with pytest.raises(SparkError, match="is not private to this user"):
        connected(executor, 0)


def test_a_process_ends_with_its_daemon_and_leaves_nothing(executor: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the daemon is killed, and cannot tell anybody."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as daemon:
        monkeypatch.setattr(os, "getppid", lambda: daemon.pid)
        connected(executor, 0).close()
        daemon.kill()
    assert starting._started[0].wait(60) == 0
    assert not (executor / starting.LINK).exists(), "the folder of the sockets is gone"


def test_a_process_ends_when_nobody_asks(executor: Path) -> None:
    """The next worker starts another one in the same place."""
    path = executor / "0"
    read, written = os.pipe()
    engine_process.serve(path, os.getpid(), written, idle=0.1)
    assert os.read(read, 2) == b"+"
    os.close(read)
    assert not path.exists()


@pytest.mark.filterwarnings("ignore::etalis_py.spark.pipeline.ShardWarning")
def test_a_stream_holds_each_shard_once(spark: SparkSession, tmp_path: Path) -> None:
    """The second process is killed between two batches; without processes each worker that comes has the shard."""
    events = stream(83)
    write_batches(tmp_path / "in", [*cut(events, 4, 83), END_OF_EVENTS])
    frame = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    rows: list[Any] = []
    metrics: list[dict[str, Any]] = []

    def take(batch: DataFrame, number: int) -> None:
        some = batch.collect()
        rows.extend(row for row in some if row.kind == "match")
        metrics.extend({"shard": r.shard, "batch": number, **json.loads(r.detail)} for r in some if r.kind == "metric")
        if number == 1:
            os.kill(next(metric["worker"] for metric in metrics if metric["shard"] == 1), signal.SIGKILL)

    found = matches({"": SHARDED["seq"]}, frame, shards=2, lateness=0, metrics=True)
    writer = found.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert ids_by_program(rows) == {"": embedded(SHARDED["seq"], events)}
    of = {shard: [metric for metric in metrics if metric["shard"] == shard] for shard in (0, 1)}
    assert len({metric["worker"] for metric in of[0]}) == 1
    assert len({metric["worker"] for metric in of[1]}) == 2
    assert [metric["loaded"] for metric in of[0][1:]] == ["live"] * len(of[0][1:])
    assert [metric["loaded"] for metric in of[1]].count("restored") == 1


def test_the_number_of_processes_is_that_of_the_tasks_of_an_executor(spark: SparkSession) -> None:
    assert engines_of(spark) == 2, "local[2]"
    for asked, number in (("0", 0), ("3", 3)):
        spark.conf.set(ENGINES, asked)
        try:
            assert engines_of(spark) == number
        finally:
            spark.conf.unset(ENGINES)
    spark.conf.set(ENGINES, "many")
    with pytest.raises(SparkError, match=r"spark\.etalis\.engines is 'many': give a number of processes"):
        engines_of(spark)
    spark.conf.unset(ENGINES)
