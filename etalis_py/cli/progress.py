"""The progress of a run: on a terminal, a line on standard error that is rewritten; and a last line at the end."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from typing import TextIO

from etalis_rules.messages import how_many

from etalis_py.engine.engine import Engine
from etalis_py.kernel.position import StateSize

EVERY = 0.25  # seconds between two updates of the line
COUNT_EVERY = 2.0  # seconds; counting live goals takes a while if there are many


class StatusLine:
    """A line on standard error that is rewritten, at most every quarter of a second; nothing if it is not shown."""

    def __init__(self, *, shown: bool, to: TextIO | None = None) -> None:
        self.shown = shown
        self._to = sys.stderr if to is None else to
        self._drawn = False
        self._next = time.monotonic() + EVERY

    def due(self) -> bool:
        """Whether it is time to draw the line again."""
        now = time.monotonic()
        if not self.shown or now < self._next:
            return False
        self._next = now + EVERY
        return True

    def show(self, text: str) -> None:
        """Draw the line, whether due or not."""
        if self.shown:
            self._to.write("\r\x1b[2K" + text[: shutil.get_terminal_size().columns - 1])
            self._to.flush()
            self._drawn = True

    def clear(self) -> None:
        if self._drawn:
            self._to.write("\r\x1b[2K")
            self._to.flush()
            self._drawn = False


class Progress:
    """Call ``tick`` after each step, and ``clear`` before anything else writes to the same terminal."""

    def __init__(self, engine: Engine, event_time: Callable[[], str], *, shown: bool, to: TextIO | None = None) -> None:
        self._engine, self._event_time = engine, event_time
        self._line = StatusLine(shown=shown, to=to)
        self.shown = shown
        self._began = time.monotonic()
        self._last = (self._began, 0)
        self._kept, self._kept_at = "", -COUNT_EVERY

    def tick(self) -> None:
        if not self._line.due():
            return
        now = time.monotonic()
        if now - self._kept_at >= COUNT_EVERY:
            self._kept, self._kept_at = self._shown(self._engine.counters.kept(), "live goals"), now
        counters = self._engine.counters
        before, events = self._last
        self._last = (now, counters.events)
        rate = (counters.events - events) / (now - before)
        self._line.show(
            f"{how_many(counters.events, 'event')}  {rate:,.0f}/s  {how_many(counters.matches, 'match', 'matches')}  "
            f"{self._kept}  {self._newest('at')}"
        )

    def clear(self) -> None:
        self._line.clear()

    def summary(self) -> str:
        counters = self._engine.counters
        seconds = time.monotonic() - self._began
        return (
            f"{how_many(counters.events, 'event')}, {how_many(counters.matches, 'match', 'matches')} "
            f"in {seconds:.1f} s ({counters.events / max(seconds, 1e-9):,.0f}/s), "
            f"{self._shown(counters.kept(), 'goals left')}, {self._newest('event time')}"
        )

    def _newest(self, said: str) -> str:
        at = self._event_time()
        return f"{said} {at}" if at else "no event yet"

    def _shown(self, kept: StateSize, goals: str) -> str:
        """The text for what the engine keeps."""
        if not self._engine.has_windows:
            return f"{kept.goals:,} {goals}"
        return f"{kept.items:,} items in windows" + (f", {kept.goals:,} {goals}" if kept.goals else "")


def on_terminal() -> bool:
    """Whether a line on standard error can be rewritten."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
