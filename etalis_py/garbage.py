"""Makes Python look for cyclic garbage less often, or not at all, while many events are taken in.

An engine creates many tuples and no cycles, so each collection of the youngest generation is in vain; together they
take up to a third of the time.  The settings belong to the process: the first block to begin changes them, and the last
to end sets them back.
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
    """Raise the collector's thresholds inside the block; they are never lowered, and a collector that is off stays off.

    ``taken`` are the events that the block goes through.  If they are a list or the like, the block ends after them, so
    the collector can be off altogether; an iterator may never end.
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
            with no_collections(age=True):
                yield
        else:
            yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                gc.set_threshold(*_before)
                if _before[0] > 0 and gc.get_count()[1] > _before[1]:
                    gc.collect(1)  # the deferred collection is done here, not in the caller's next line


@contextmanager
def no_collections(*, age: bool = False) -> Iterator[None]:
    """Turn the collector off inside the block.

    ``age``: objects created there then count as old and are not searched soon, which takes a look at all frozen ones.
    """
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
                if age and not gc.get_freeze_count():  # a caller who has frozen objects wants them to stay frozen
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()


__all__ = ["few_collections", "no_collections"]
