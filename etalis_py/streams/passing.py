"""Time that passes without events, and the end of a replay: pure arithmetic between event time and the wall clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from etalis_py.events import Event
from etalis_py.streams.timing import Punctuation

T = TypeVar("T")
SECOND = 1_000_000


class PassingTime:
    """The event time of a live stream while it is silent.

    The newest event ends at t and arrived at w.  Once nothing has come for ``idle`` seconds, event time at w′ is t +
    (w′ − w) − lateness.  So a stream is assumed to lag behind the clock by as much as its newest event did, whether its
    times are current or those of a recording.  An event in order is late only if it lags by more than the lateness
    beyond that, and arrives after a report that it would have been in time for.

    ``until``: event time goes no further.  ``clock`` counts seconds; only differences matter.  State: three numbers.

    >>> clock = iter([100.0, 100.5, 103.0]).__next__
    >>> passing = PassingTime(idle=1, lateness=2 * SECOND, clock=clock)
    >>> passing.arrived(7 * SECOND)
    >>> passing.reached(), passing.reached()
    (None, 8000000)
    """

    __slots__ = ("_clock", "_heard", "_idle", "_lateness", "_newest", "_since", "_until")

    def __init__(
        self,
        *,
        idle: float,
        lateness: int = 0,
        until: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._idle, self._lateness, self._until, self._clock = idle, lateness, until, clock
        self._newest: int | None = None
        self._since = self._heard = 0.0

    def arrived(self, end: int) -> None:
        """An event (or a punctuation) with this end has just arrived."""
        self._heard = self._clock()
        if self._newest is None or end >= self._newest:
            self._newest, self._since = end, self._heard

    def reached(self) -> int | None:
        """The event time reached now; None before the first event and while the stream is not silent."""
        now = self._clock()
        if self._newest is None or now < self._heard + self._idle:
            return None
        t = self._newest + int((now - self._since) * SECOND) - self._lateness
        return t if self._until is None else min(t, self._until)

    def wake_at(self, due: int | None) -> float | None:
        """The clock time when ``reached`` gives ``due`` (or ``until``, if that is earlier); None: not by time alone."""
        times = [t for t in (due, self._until) if t is not None]
        if self._newest is None or not times:
            return None
        # A microsecond more, so that rounding does not wake too early.
        at = self._since + (min(times) - self._newest + self._lateness + 1) / SECOND
        return max(at, self._heard + self._idle)


def up_to(items: Iterable[T], until: int, slack: int = 0) -> Iterator[T]:
    """The items without the events that end after ``until``.

    Reading stops at the first event that ends more than ``slack`` (the lateness, or the horizon of corrections) after
    it: no later item could still be taken.  A punctuation that says so also stops it.
    """
    for item in items:
        if isinstance(item, Event):
            if item.end > until + slack:
                return
            if item.end > until:
                continue
        elif isinstance(item, Punctuation) and item.time >= until:
            return
        yield item
