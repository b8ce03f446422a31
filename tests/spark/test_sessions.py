"""A session of our own: how the JVM and Python talk, and workers that Spark no longer wants."""

from __future__ import annotations

import re
import socket
from typing import Any

import pytest
from pyspark.sql import SparkSession

from etalis_py.spark import SparkError, session
from etalis_py.spark.sessions import UNIX_SOCKETS
from etalis_py.spark.shard import daemon


@pytest.mark.parametrize("where", [{"master": "local[2]"}, {"remote": "sc://localhost"}])
@pytest.mark.parametrize("shards", [0, -1, 1025, 2.5, "4", True])
def test_what_is_no_number_of_shards_is_refused_before_anything_starts(where: dict[str, str], shards: Any) -> None:
    with pytest.raises(
        SparkError, match=re.escape(f"shards is {shards!r}: choose 1 to 1024, about one or two for each")
    ):
        session(**where, shards=shards)  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="this system has no Unix sockets")
def test_workers_are_reached_by_unix_sockets(spark: SparkSession) -> None:
    assert spark.sparkContext.getConf().get(UNIX_SOCKETS) == "true"

    def family(_: Any) -> list[str]:
        import gc
        import socket as sockets

        found = [one for one in gc.get_objects() if isinstance(one, sockets.socket) and one.fileno() >= 0]
        return sorted({one.family.name for one in found})

    assert spark.sparkContext.parallelize([0], 1).mapPartitions(family).collect() == ["AF_UNIX"]


@pytest.mark.parametrize("error", [None, BrokenPipeError(), ConnectionResetError(), ValueError("wrong")])
def test_a_worker_that_spark_has_dropped_ends_without_a_word(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worker(sock: Any, authenticated: bool) -> int:
        if error is not None:
            raise error
        return 7

    monkeypatch.setattr(daemon, "_work", worker)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        if error is None:
            assert daemon.work(ours, False) == 7
        elif isinstance(error, BrokenPipeError):
            assert daemon.work(ours, False) != 0  # with 0 it would be given the closed connection again
        else:
            with pytest.raises(type(error)):
                daemon.work(ours, False)
