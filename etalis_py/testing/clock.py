"""A clock that stands still until it is moved."""

from __future__ import annotations

from etalis_rules.calendar import SECOND

from etalis_py.events.clock import parse_datetime, parse_duration


class MovableClock:
    """Calling it gives the time in microseconds, as ``read_stream(…, now=clock)`` expects.

    >>> clock = MovableClock(10)
    >>> clock.move("1.5s")
    >>> clock()
    11500000
    """

    def __init__(self, start: int | str = 0) -> None:
        self._now = start * SECOND if isinstance(start, int) else parse_datetime(start)

    def __call__(self) -> int:
        return self._now

    def move(self, by: int | str) -> None:
        """Move on by seconds, or by a duration such as ``250ms`` or ``PT1H``."""
        length = by * SECOND if isinstance(by, int) else parse_duration(by)
        if length < 0:
            raise ValueError(f"a clock moves forward only, found {by!r}")
        self._now += length
