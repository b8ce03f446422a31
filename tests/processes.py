"""Processes that tests have started, and their ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

import psutil


def ended(processes: Sequence[psutil.Process], within: float = 2) -> bool:
    """Do all end within so many seconds?  Nobody may have asked for their exit codes yet."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if not any(map(_runs, processes)):
            return True
        time.sleep(0.05)
    return False


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
