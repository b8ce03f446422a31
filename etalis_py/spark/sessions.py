"""A Spark session with the settings that the pipeline needs."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Mapping
from typing import IO, Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from etalis_py.spark.errors import SparkError
from etalis_py.spark.input.datasource import EventSource
from etalis_py.spark.plan.slots import check_shards
from etalis_py.spark.session_kinds import is_connect

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
SHARDS = "spark.etalis.shards"
"""The number of shards that ``session(shards=…)`` was asked for."""
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
"""Sockets between the JVM and Python.  TCP is slower, and on some versions of Linux a full connection stalls."""

DAEMON = {"spark.python.daemon.module": "etalis_py.spark.shard.daemon"}
"""Where Spark runs on this machine: each Python worker would load the engine anew."""

DEFAULT_PYTHON = "python3"
"""The command that PySpark starts workers with by default."""


def settings(shards: int) -> dict[str, str]:
    """The settings for the pipeline: stateful Python operators need RocksDB, and a shard needs only one partition.

    A change log stores what a batch adds to the state; without it each batch would store RocksDB's files again.
    """
    return {
        PROVIDER: ROCKSDB,
        CHANGELOG: "true",
        PARTITIONS: str(shards),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
    }


def settings_for(shards: int | None) -> dict[str, str]:
    """The settings for a number of shards that was asked for, or for the cores of this machine."""
    return settings(2 * (os.cpu_count() or 1)) if shards is None else settings(shards) | {SHARDS: str(shards)}


def use_this_python(spark: SparkSession) -> None:
    """Make workers on this machine use the current Python interpreter, unless another one was chosen.

    PySpark would start the first ``python3`` of the path, which need not be that of this environment.
    """
    if is_connect(spark):
        return  # the server starts the workers
    context = spark.sparkContext
    chosen = os.environ.get("PYSPARK_PYTHON", sys.executable) != sys.executable
    if str(context.master).startswith("local") and context.pythonExec == DEFAULT_PYTHON and not chosen:
        context.pythonExec = sys.executable


def session(
    master: str | None = None,
    *,
    remote: str | None = None,
    shards: int | None = None,
    app: str = "etalis",
    config: Mapping[str, str] | None = None,
    log: IO[bytes] | None = None,
) -> SparkSession:
    """A session for ``matches`` that knows ``format("etalis")``; an existing one gets what can still be changed.

    ``master``: as Spark takes it (default: as configured, else all cores of this machine).  ``remote``: the address of
    a server of Spark Connect (``sc://host:15002``) instead, or ``local[…]`` to start one.  ``shards``: the number of
    shards and of shuffle partitions (default: twice the cores of this machine).  ``config``: more settings.  ``log``: a
    file for what Spark's JVM, and Python on this machine, write to their standard streams.  Executors on this machine
    use the current Python interpreter, unless PYSPARK_PYTHON is set.
    """
    if shards is not None:
        check_shards(shards)
    if master is not None and not isinstance(master, str):
        raise SparkError(f"master={master!r}: give an address of Spark as a text, such as 'local[2]'")
    if remote is not None:
        return _connected(remote, master, shards, dict(config or {}), log)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    wanted = {"spark.app.name": app, **settings_for(shards), **(config or {})}
    if master is not None:
        wanted["spark.master"] = master
        if master.startswith("local"):
            wanted = DAEMON | wanted
    if hasattr(socket, "AF_UNIX") and SparkContext._active_spark_context is None:
        wanted.setdefault(UNIX_SOCKETS, "true")
    if log is not None and SparkContext._gateway is None:
        conf = SparkConf(loadDefaults=False).setAll(list(wanted.items()))
        handler = signal.getsignal(signal.SIGINT)
        SparkContext(conf=conf, gateway=launch_gateway(conf, popen_kwargs={"stdout": log, "stderr": log}))  # type: ignore[no-untyped-call]
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)  # Spark takes Ctrl-C for itself, and would cut what comes next
    builder = SparkSession.builder
    for name, value in wanted.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.dataSource.register(EventSource)
    use_this_python(spark)
    return spark


def _connected(
    remote: str, master: str | None, shards: int | None, config: dict[str, str], log: IO[bytes] | None
) -> SparkSession:
    """A session of Spark Connect, in which only settings that a server lets its clients change are set."""
    if master is not None:
        raise SparkError(f"master={master!r} and remote={remote!r} are two different sessions: give one of them")
    if log is not None:
        raise SparkError("log is for the JVM that this process starts; a server of Spark Connect has its own log")
    try:
        from pyspark.sql.connect.session import SparkSession as Connected
    except ImportError as error:
        raise SparkError(f"Spark Connect needs more packages ({error}): pip install 'etalis-py[connect]'") from error
    builder: Any = Connected.builder
    started = remote.startswith("local")
    if started:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder
        for name, value in (DAEMON | config).items():  # the server that starts now gets them when it starts
            builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if started else "default")  # the client would set them all once more
        spark: SparkSession = builder.remote(remote).getOrCreate()
    for name, value in (settings_for(shards) | ({} if started else config)).items():
        if name not in config or not started:
            spark.conf.set(name, value)
    spark.dataSource.register(EventSource)
    return spark
