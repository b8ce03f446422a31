"""Ctrl-C before there is anything to complete."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_at_once() -> Iterator[None]:
    """Inside the block, while modules are imported and nothing is begun, Ctrl-C ends the process.

    As an exception it would end in a traceback, or be lost where an import forgets what it is told.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, before)


def _end(*_: object) -> None:
    os.write(2, b"etalis: stopped\n")
    os._exit(1)
