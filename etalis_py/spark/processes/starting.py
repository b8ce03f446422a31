"""Where the sockets of an executor's engine processes are, and how a worker starts a process that is not there.

The sockets are in a private folder for temporary files, because the path of a socket must be short.  A link in the
executor's own folder tells all its workers where.
"""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2s
from pathlib import Path

import etalis_py
from etalis_py.spark.errors import SparkError
from etalis_py.spark.session_kinds import ENGINES

LINK = "etalis-engines"
PARTITIONS = "etalis-partitions"
_ELSE = f"its standard error is in the executor's log; {ENGINES}=0 does without such processes"
LONGEST = 60
"""The longest path of a folder for temporary files within which a socket can have its own."""

_started: list[subprocess.Popen[bytes]] = []
"""The processes that this worker has started; they outlive it."""


def number_of(executor: Path, partition: int, engines: int) -> int:
    """The number of the engine process for a partition, out of so many.

    The partitions of an executor take turns in the order in which they come to it: it has only some of all partitions,
    and those that run at the same time should not meet in one process.
    """
    file = executor / PARTITIONS
    with locked(executor):
        come = file.read_text(encoding="ascii").split() if file.exists() else []
        if str(partition) not in come:
            come.append(str(partition))
            file.write_text(" ".join(come), encoding="ascii")
    return come.index(str(partition)) % engines


def connected(executor: Path, number: int) -> socket.socket:
    """A connection to the engine process of an executor with this number, which is started if need be."""
    folder = _sockets_of(executor)
    # Workers of another environment have processes of their own.
    environment = blake2s(f"{sys.executable} {etalis_py.__file__}".encode(), digest_size=4).hexdigest()
    path = folder / f"{environment}-{number}"
    if (found := _connection(path)) is not None:
        return found
    with locked(folder):
        if (found := _connection(path)) is None:
            _start(path)
            found = _connection(path)
    if found is None:
        raise SparkError(f"the engine process {number} of this executor ended as soon as it had begun: {_ELSE}")
    return found


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Only one process of the executor is inside at a time."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sockets_of(executor: Path) -> Path:
    link = executor / LINK
    if not link.is_symlink():
        short = len(tempfile.gettempdir()) <= LONGEST
        own = tempfile.mkdtemp(prefix="etalis-", dir=None if short else "/tmp")
        try:
            link.symlink_to(own)
        except FileExistsError:  # another worker was quicker
            os.rmdir(own)
    folder = link.readlink()
    folder.mkdir(mode=0o700, exist_ok=True)  # the last process to end removes it
    status = folder.lstat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise SparkError(f"{folder}, for the sockets of engine processes, is not private to this user: remove it")
    return folder


def _connection(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    return connection


def _start(path: Path) -> None:
    """Start the process, in an interpreter of its own: a fork would copy the locks of this process's threads."""
    ready, theirs = os.pipe()
    command = [sys.executable, "-P", "-m", "etalis_py.spark.processes.engine_process"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        # Spark's daemon is the parent of the workers, and listens to what comes from their standard output.
        process = subprocess.Popen(
            [*command, str(path), str(os.getppid()), str(theirs)],
            stdin=subprocess.DEVNULL,
            stdout=2,
            env=environment,
            pass_fds=[theirs],
        )
    finally:
        os.close(theirs)
    _started.append(process)
    with os.fdopen(ready, "rb") as begun:
        if not begun.read(1):
            raise SparkError(
                f"an engine process of this executor could not start (exit code {process.wait()}): {_ELSE}"
            )


__all__ = ["connected", "locked", "number_of"]
