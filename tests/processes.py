"""Processes that tests have started, and their ends."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

PATIENCE = 300.0
"""Seconds after which a test gives up on what should come at once: on a busy machine that may be seconds later."""


@contextmanager
def started(command: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A command with its output, killed when the test is done with it.

    By itself `Popen` waits for the end of a process, so after a failed assertion for ever.  Who reads the output of a
    command that says nothing waits for ever as well, so it is killed when patience is at its end.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True) as process:
        patience = threading.Timer(PATIENCE, process.kill)
        patience.daemon = True
        patience.start()
        try:
            yield process
        finally:
            patience.cancel()
            process.kill()


def ended(processes: Sequence[psutil.Process]) -> bool:
    """Do all end?  Nobody may have asked for their exit codes yet."""
    return comes(lambda: not any(map(_runs, processes)))


def comes(condition: Callable[[], object]) -> bool:
    """Wait until something is so; says whether it came to that."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
