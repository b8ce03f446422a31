"""What the command line adds to a run: it can be stopped between two steps, and it can be slowed down."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from etalis_py.cli.interrupt import Interrupt
from etalis_py.engine.driver import Driver, Step
from etalis_py.events import Event
from etalis_py.streams import Burst, Punctuation

LONGEST_SLEEP = 3600.0  # longer sleeps overflow on some systems


def drive(driver: Driver, take: Callable[[Step], None], interrupt: Interrupt | None = None) -> None:
    """Run to the end of the stream or to a Ctrl-C; then the engine is closed and its last matches are taken.

    The driver defers Ctrl-C (its ``interrupt``) from the beginning of a step until it has been taken.  A second one
    ends the run where it is, perhaps within a step.
    """
    try:
        for step in driver.steps():
            take(step)
    except KeyboardInterrupt:
        if driver.lasts or driver.engine.broken is not None or (interrupt is not None and interrupt.again):
            raise
        for step in driver.end():
            take(step)


def paced(items: Iterator[Any], factor: float, *, closing: bool = True) -> Iterator[Any]:
    """The items at the pace of their own times, ``factor`` times as fast.

    Before a wait, with ``closing``, a punctuation says that the instants before the next event are over, so their
    matches are seen at once.  (If late events are allowed, the instants are not over.)  What was available at once
    comes apart, so its marks are left out.
    """
    began = 0.0
    first: int | None = None
    for item in items:
        if isinstance(item, Burst):
            continue
        if isinstance(item, Event):
            if first is None:
                began, first = time.monotonic(), item.end
            due = began + (item.end - first) / 1e6 / factor
            if closing and due > time.monotonic():
                yield Punctuation(item.end - 1)
            while (wait := due - time.monotonic()) > 0:
                time.sleep(min(wait, LONGEST_SLEEP))
        yield item
