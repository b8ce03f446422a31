"""Signals as requests: Ctrl-C to stop, SIGHUP to read again.  They take effect between two events, never within one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupt:
    """``asked``: the user wants to stop.  A second Ctrl-C does not wait for anything; it is asked ``again``.

    Unless it ``raises``, nothing is interrupted by the first: who waits must look at ``asked``; ``heard`` is
    called, so that it can be woken.

    >>> with Interrupt() as interrupt:
    ...     with interrupt.deferred():
    ...         signal.raise_signal(signal.SIGINT)
    ...     interrupt.asked
    True
    """

    def __init__(self, *, raises: bool = True) -> None:
        self.asked = self.again = False
        self.heard: Callable[[], object] = bool
        self.raises = raises
        self._deferred = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._heard)
        return self

    def listen(self) -> None:
        """Listen again after something else has taken over the signals."""
        for number in self._before:
            signal.signal(number, self._heard)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self.again, self.asked = self.asked, True
        self.heard()
        if self.again or (self.raises and not self._deferred):
            raise KeyboardInterrupt

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Defer Ctrl-C inside a block that must not be interrupted: a step of the engine, a write."""
        before, self._deferred = self._deferred, True
        try:
            yield
        finally:
            self._deferred = before


class Hangup:
    """SIGHUP, where the system has it, as a request to read something again.

    >>> with Hangup() as hangup:
    ...     signal.raise_signal(signal.SIGHUP)
    ...     hangup.taken(), hangup.taken()
    (True, False)
    """

    def __init__(self) -> None:
        self._asked = False
        self._before: Any = None

    def taken(self) -> bool:
        """Whether there was a request since the last call."""
        asked, self._asked = self._asked, False
        return asked

    def __enter__(self) -> Hangup:
        if hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGHUP, self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGHUP, self._before)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
