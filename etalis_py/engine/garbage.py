"""Have Python look for cyclic garbage less often while many events are taken.

An engine makes many tuples and no cycles; each look at the youngest of them is in vain, and they take up to a third of
the time.  The thresholds are the process's, so the first to come sets them and the last to go sets them back.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

THRESHOLDS = (50_000, 100, 100)

_lock = Lock()
_inside = 0
_before = gc.get_threshold()


@contextmanager
def few_collections() -> Iterator[None]:
    """The thresholds are raised inside (never lowered, and a collector that is off stays off)."""
    global _inside, _before
    with _lock:
        if not _inside:
            _before = gc.get_threshold()
            if 0 < _before[0] < THRESHOLDS[0]:
                gc.set_threshold(*THRESHOLDS)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                gc.set_threshold(*_before)
                if _before[0] > 0 and gc.get_count()[1] > _before[1]:
                    gc.collect(1)  # what was put off is done here, not in the caller's next line


__all__ = ["few_collections"]
