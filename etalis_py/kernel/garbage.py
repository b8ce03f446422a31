"""Have Python look for cyclic garbage less often while many events are taken, or not at all.

An engine makes many tuples and no cycles; each look at the youngest of them is in vain, and they take up to a third of
the time.  The settings are the process's, so the first to come changes them and the last to go sets them back.
"""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

THRESHOLDS = (50_000, 100, 100)

_lock = Lock()
_inside = 0
_before = gc.get_threshold()
_without = 0
_was_on = True


@contextmanager
def few_collections(taken: Iterable[Any] = ()) -> Iterator[None]:
    """The thresholds are raised inside (never lowered, and a collector that is off stays off).

    ``taken``: what the block goes through.  When it is all there already, the block is bounded, and nothing is
    collected in it.
    """
    global _inside, _before
    with _lock:
        if not _inside:
            _before = gc.get_threshold()
            if 0 < _before[0] < THRESHOLDS[0]:
                gc.set_threshold(*THRESHOLDS)
        _inside += 1
    try:
        if isinstance(taken, Collection) and len(taken) >= THRESHOLDS[0]:
            with _no_collections():
                yield
        else:
            yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                gc.set_threshold(*_before)
                if _before[0] > 0 and gc.get_count()[1] > _before[1]:
                    gc.collect(1)  # what was put off is done here, not in the caller's next line


@contextmanager
def _no_collections() -> Iterator[None]:
    """The collector is off inside; what was made there is old when it is on again, and not looked through at once."""
    global _without, _was_on
    with _lock:
        if not _without:
            _was_on = gc.isenabled()
            gc.disable()
        _without += 1
    try:
        yield
    finally:
        with _lock:
            _without -= 1
            if not _without and _was_on:
                if not gc.get_freeze_count():  # who has frozen objects wants them to stay so
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()


__all__ = ["few_collections"]
