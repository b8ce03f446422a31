"""Keeps the times at which goals of ``SEQ NOT … WITHIN d`` are due; these may be times without an event."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from operator import itemgetter
from typing import Any, Protocol

from etalis_rules import algebra as alg

from etalis_py.executors.rows.run.goals import GoalStore, Solution
from etalis_py.kernel.position import NEVER


class Timer(Protocol):
    """Something that may be due at a time without an event."""

    def next(self) -> int | None:
        """The first time at which something is due."""

    def last(self) -> int | None:
        """The latest time at which anything is due; None when nothing waits."""


class Deadlines:
    """The times at which the solutions in the goal store of a deadline are due.

    ``queue`` has a time and a key for every solution that came to wait, in order of time.  A solution that was
    cancelled since is missing from the store, and its entry is skipped.  The queue can be rebuilt from the store.
    ``alarm`` holds a time before which nothing is due, for all deadlines of the rules together.
    """

    __slots__ = ("alarm", "bound", "queue", "stale", "store")

    def __init__(self, store: GoalStore, bound: alg.Bound, alarm: list[int]) -> None:
        self.store = store
        self.bound = bound
        self.alarm = alarm
        self.queue: deque[tuple[int, Any]] = deque()
        store.changed = self.forget
        self.forget()

    def forget(self) -> None:
        """Forget the queue, after something else has filled the store."""
        self.stale = True
        self.alarm[0] = NEVER

    def due(self, x: Solution) -> int:
        """The time at which the absence is certain for a solution."""
        return self.bound.after(x[0])

    def add(self, x: Solution, key: Any) -> None:
        """Queue a solution that has begun to wait."""
        at = self.due(x)
        self.alarm[0] = min(self.alarm[0], at)
        if self.queue and self.queue[-1][0] > at:  # months differ in length: a later one may be due first
            insort(self.queue, (at, key), key=lambda entry: entry[0])
        else:
            self.queue.append((at, key))

    def next(self) -> int | None:
        """The first time at which something is due."""
        queue, buckets, micros = self.queue, self.store.buckets, self.bound.micros
        if self.stale:
            waiting = {(self.due(x), key) for key, bucket in buckets.items() for x in bucket}
            queue.clear()
            queue.extend(sorted(waiting, key=itemgetter(0)))
            self.stale = False
        by_calendar = not self.bound.is_fixed
        while queue:
            at, key = queue[0]
            bucket = buckets.get(key, ())
            # Earlier goals have been taken, so the first of a bucket is the next one due.
            if any(self.due(x) == at for x in bucket) if by_calendar else bucket and bucket[0][0] + micros == at:
                return at
            queue.popleft()
        return None

    def last(self) -> int | None:
        """The latest time at which anything is due; None when nothing waits."""
        return None if self.next() is None else self.queue[-1][0]

    def take(self, t: int) -> list[Solution]:
        """Remove and return the solutions that are due by now."""
        buckets = self.store.buckets
        taken: list[Solution] = []
        while (at := self.next()) is not None and at <= t:
            _, key = self.queue.popleft()
            bucket = buckets[key]
            if not self.bound.is_fixed:
                taken += [x for x in bucket if self.due(x) <= t]
                rest = [x for x in bucket if self.due(x) > t]
            else:  # the goals of a bucket are due in order
                cut = bisect_left(bucket, (t - self.bound.micros + 1,))
                taken += bucket[:cut]
                rest = bucket if isinstance(bucket, list) else []
                del rest[:cut]
            if rest:
                buckets[key] = rest
            else:
                del buckets[key]
                self.store.edges.pop(key, None)
        return taken
