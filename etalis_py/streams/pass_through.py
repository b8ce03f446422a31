"""Time that passes without events, and the end of a replay: pure arithmetic between event time and the wall clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from etalis_py.events import Event
from etalis_py.events.clock import MAX_TIME, MIN_TIME, Clock, TimeError, clock_of, moment_in_micros
from etalis_py.streams.timing import Punctuation

SECOND = 1_000_000


class PassingTime:
    """The event time of a live stream while it is silent.

    The newest event ends at t and arrived at w.  Once nothing has come for ``idle`` seconds, event time at w′ is t +
    (w′ − w) − lateness.  So a stream is assumed to lag behind the clock by as much as its newest event did, whether its
    times are current or those of a recording.  An event in order is late only if it lags by more than the lateness
    beyond that, and arrives after a report that it would have been in time for.

    ``until``: event time goes no further.  ``clock`` counts seconds; only differences matter.  State: five numbers.

    >>> clock = iter([100.0, 100.5, 103.0]).__next__
    >>> passing = PassingTime(idle=1, lateness=2 * SECOND, clock=clock)
    >>> passing.arrived(7 * SECOND)
    >>> passing.reached(), passing.reached()
    (None, 8000000)
    """

    __slots__ = ("_clock", "_heard", "_idle", "_lateness", "_newest", "_since", "_waits", "until")

    def __init__(
        self,
        *,
        idle: float,
        lateness: int = 0,
        until: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._idle, self._lateness, self.until, self._clock = idle, lateness, until, clock
        self._newest: int | None = None
        self._since = self._heard = 0.0
        self._waits: float | None = None

    def waits(self) -> None:
        """From now on events are waited for."""
        self._waits = self._clock()

    def start(self, first: int) -> int:
        """The event time at which the wait began, now that the first event has arrived, which ends at ``first``."""
        return first if self._waits is None else first - int((self._clock() - self._waits) * SECOND)

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
        return t if self.until is None else min(t, self.until)

    def state(self, wall: float) -> list[float] | None:
        """The newest event, and when it arrived by a clock that other processes have, too, which shows ``wall`` now."""
        return None if self._newest is None else [self._newest, wall - (self._clock() - self._since)]

    def go_to(self, state: list[float] | None, wall: float) -> None:
        """Go on where another process was.  Silence begins now: what came in between has not been read yet."""
        if state is not None:
            self._heard = self._clock()
            self._newest, self._since = int(state[0]), self._heard - max(0.0, wall - state[1])

    def wake_at(self, due: int | None) -> float | None:
        """The clock time when ``reached`` gives ``due`` (or ``until``, if that is earlier); None: not by time alone."""
        times = [t for t in (due, self.until) if t is not None]
        if self._newest is None or not times:
            return None
        # A microsecond more, so that rounding does not wake too early.
        at = self._since + (min(times) - self._newest + self._lateness + 1) / SECOND
        return max(at, self._heard + self._idle)


class EndingError(ValueError):
    """A run cannot end at the given time, because the stream does not spell its times so."""

    def __init__(self, given: int | str | datetime, reason: str) -> None:
        self.reason = reason
        super().__init__(f"until={given!r}: {reason}")


@dataclass(frozen=True, slots=True)
class Ending:
    """The time at which a run ends, as it was given.

    An integer is in microseconds since the epoch, like all times of the engine.  A datetime without a zone is in UTC.
    A text is a time as the stream spells it: a dateTime, or a number in the unit of the stream.

    >>> Ending("8").time([Clock("integer", "ms")]), Ending(datetime(1970, 1, 1, 0, 0, 8)).time()
    (8000, 8000000)
    """

    given: int | str | datetime

    def __post_init__(self) -> None:
        if isinstance(self.given, bool) or not isinstance(self.given, int | str | datetime):
            raise TypeError(
                f"a run ends at a number of microseconds, at a datetime, or at a time as the stream spells it, such as "
                f"'2026-01-31T10:00:00Z'; not at {self.given!r}"
            )
        if not MIN_TIME <= self.time() <= MAX_TIME:
            raise TimeError("the time is more than 146,000 years from 1970; give an earlier one", str(self.given))

    def time(self, clocks: Iterable[Clock] = (), first: int = MIN_TIME, slack: int = 0) -> int:
        """The time in microseconds; EndingError if it does not fit the clocks of the stream.

        ``first`` is the first time of the stream, ``slack`` how much earlier others may be.  An integer before that is
        no time of a stream of dates, but was meant in another unit.
        """
        given, known = self.given, sorted(clocks, key=attrgetter("kind", "unit"))
        if isinstance(given, int):
            if given < first - slack and {clock.kind for clock in known} == {"datetime"}:
                raise EndingError(
                    given,
                    f"an integer is in microseconds since 1970, and this one is before the first time of the stream, "
                    f"{known[0].render(first)}: give a datetime, or a dateTime in quotes",
                )
            return given
        kind = clock_of(given).kind if isinstance(given, str) else "datetime"
        fitting = [clock for clock in known if clock.kind == kind]
        if known and not fitting:
            times = "dateTimes" if kind == "integer" else "numbers"
            raise EndingError(given, f"the times of the stream are {times}, such as {known[0].render(first)}")
        if isinstance(given, str):
            return (fitting[0] if fitting else clock_of(given)).parse(given)
        return moment_in_micros(given)


def up_to(items: Iterable[Any], until: int, slack: int = 0) -> Iterator[Any]:
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
        elif hasattr(item, "column"):
            from etalis_py.streams.columns.flat_form import rows_up_to  # takes a while to import

            item, is_over = rows_up_to(item, until, slack)
            yield item
            if is_over:
                return
            continue
        yield item
