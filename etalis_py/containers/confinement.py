"""What a process of the server may use, set by the process itself and enforced by the kernel."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
from pathlib import Path


def allow(seconds: float) -> None:
    """Allow the process this much processor time from now on; 0 means no limit."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def limit_memory(memory: int) -> None:
    """Allow the process this much memory beyond what it has now; allocating more fails."""
    statistics = Path("/proc/self/statm")
    if statistics.exists():
        # Data and stack pages: writable, and not a library's file.
        used = int(statistics.read_text().split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (used + memory, resource.getrlimit(resource.RLIMIT_DATA)[1]))
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("500")
    else:
        resource.setrlimit(resource.RLIMIT_AS, (memory, resource.getrlimit(resource.RLIMIT_AS)[1]))


def confine_copy(seconds: float, clock: float, memory: int) -> None:
    """Confine a process that has just been forked off a program, to answer one question about it."""
    gc.freeze()  # the collector must not touch what it shares with the program, which would copy the pages
    os.nice(19)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, clock)
    allow(seconds)
    limit_memory(memory)
