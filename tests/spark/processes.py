"""Processes of tests: drivers in interpreters of their own, a standalone cluster, and the moments to kill them at."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pyspark

ROOT = Path(__file__).parents[2]
MINUTES = 5 * 60.0

DRIVER = """
import json, sys
from pathlib import Path
from etalis_py.spark import session
from tests.spark.programs import PROGRAMS
from tests.spark.test_streaming import run
master, folder, every, config, *names = sys.argv[1:]
spark = session(master, shards=2, config=json.loads(config))
run(spark, Path(folder), {name: PROGRAMS[name] for name in names}, every=every)
spark.stop()
"""


@contextmanager
def started(command: Sequence[str], log: Path, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process with its own group, which is ended with all of it."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **env},
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        kill_all(process)


def kill_all(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # it has ended with all its children
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def driver(
    folder: Path, names: Sequence[str], *, master: str = "local[2]", every: str = "", config: str = "{}"
) -> list[str]:
    """The command of a driver that runs over what is in ``folder/in``; ``every``: for ever, with this trigger."""
    return [sys.executable, "-c", DRIVER, master, str(folder), every, config, *names]


Found = TypeVar("Found")


def until(happens: Callable[[], Found], what: str, process: subprocess.Popen[bytes], log: Path) -> Found:
    """Wait for something of a process; fails with its log when it ends before."""
    last = time.monotonic() + MINUTES
    while not (found := happens()):
        assert process.poll() is None, f"it ended before {what}:\n{log.read_text(errors='replace')[-4000:]}"
        assert time.monotonic() < last, f"not {what} in time:\n{log.read_text(errors='replace')[-4000:]}"
        time.sleep(0.02)
    return found


def _numbers(folder: Path) -> set[int]:
    return {int(p.name) for p in folder.iterdir() if p.name.isdigit()} if folder.is_dir() else set()


def batches(checkpoint: Path) -> tuple[int, int]:
    """How many batches have begun, and how many are committed."""
    return len(_numbers(checkpoint / "offsets")), len(_numbers(checkpoint / "commits"))


def in_the_middle(checkpoint: Path, least: int = 1) -> bool:
    """Is a batch running, when at least so many are committed?"""
    begun, committed = batches(checkpoint)
    return begun > committed >= least


def in_between(checkpoint: Path, least: int = 1) -> bool:
    begun, committed = batches(checkpoint)
    return begun == committed >= least


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A standalone master and workers of one core each, from pyspark's own jars: its URL, and the workers."""
    home = Path(pyspark.__file__).parent
    spark_class = str(home / "bin" / "spark-class")
    env = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    here = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    log = folder / "master.log"
    with started([spark_class, "org.apache.spark.deploy.master.Master", *here], log, **env) as master:
        url = until(lambda: re.search(r"Starting Spark master at (spark://\S+)", log.read_text()), "a URL", master, log)
        kind = [spark_class, "org.apache.spark.deploy.worker.Worker", *here, "--cores", "1", "--memory", "1g"]
        with ExitStack() as stack:
            running = [
                stack.enter_context(
                    started([*kind, "--work-dir", str(folder / f"work{n}"), url[1]], folder / f"worker{n}.log", **env)
                )
                for n in range(workers)
            ]
            for n, worker in enumerate(running):
                its_log = folder / f"worker{n}.log"
                until(lambda its=its_log: "Successfully registered" in its.read_text(), "registered", worker, its_log)
            yield url[1], running


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = status.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        if int(text.rpartition(")")[2].split()[1]) == pid:
            found.append(int(status.parent.name))
    return found
