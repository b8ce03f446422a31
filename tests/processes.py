"""Processes that tests have started, and their ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import psutil

PATIENCE = 300.0
"""Seconds after which a test gives up on what should come at once: on a busy machine that may be seconds later."""


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
