"""Counts of events in each of the last seconds."""

from __future__ import annotations

import time
from collections import deque

HISTORY = 120


class Rate:
    """Counts by second.  State: the last two minutes; safe to read from any thread."""

    def __init__(self) -> None:
        self._counts: deque[tuple[int, int]] = deque(maxlen=HISTORY)

    def add(self, count: int) -> None:
        second = int(time.monotonic())
        counts = self._counts
        if counts and counts[-1][0] == second:
            counts[-1] = (second, counts[-1][1] + count)
        else:
            counts.append((second, count))

    def per_second(self, seconds: int = 10) -> float:
        """The mean over the last whole seconds."""
        now = int(time.monotonic())
        return sum(n for s, n in tuple(self._counts) if now - seconds <= s < now) / seconds

    def history(self) -> list[int]:
        """The counts of the last two minutes, the newest last, without the current second."""
        now = int(time.monotonic())
        counts = dict(tuple(self._counts))
        return [counts.get(second, 0) for second in range(now - HISTORY, now)]
