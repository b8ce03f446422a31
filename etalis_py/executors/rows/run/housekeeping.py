"""Drops expired goals, and compares those that remain with the limits: between instants, and within large ones.

Definition.  The goals may number ``Limits.goals`` and take ``Limits.bytes``, in which expired ones do not count.
Counting takes time proportional to the number of keys, so goals are counted after as many events, or new solutions, as
fit below the limits, judging by the last count and by how fast goals came before it.

Cost: a constant per event.  A limit is exceeded by at most a sixteenth, or by what a few events bring, before it is
noticed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from etalis_py.executors.rows.run.state import State
from etalis_py.kernel.options import Options
from etalis_py.kernel.position import Counters
from etalis_py.values.errors import LimitExceeded

_FIRST = 256
"""The number of events before goals are first counted: how many an event brings is not known before."""
_LEAST = 100
"""The bytes of a goal at least."""


class Housekeeping:
    """The periodic work on one executor's goals.  ``every`` has the number of events after which to call ``keep``.

    ``describe`` names the queries of a node for people; None: there is only one.
    """

    def __init__(self, state: State, options: Options, counters: Counters) -> None:
        self.limits = options.limits
        self._step = min(_FIRST, options.sweep_every, options.limits.goals + 1)
        self.every = [self._step]
        self.live = 0
        """How many goals there were when they were last counted."""
        self._size = 0  # of these goals, in bytes
        self.describe: Callable[[str], str] | None = None
        self._state = state
        self._counters = counters
        self._most = options.sweep_every
        self._phase = 0  # events since the last multiple of ``sweep_every``, at which goals are swept in any case
        self._near = True  # whether a limit may be reached before the next sweep
        self._events = 0  # since the last count
        self._new = self._new_bytes = 0  # solutions since the last count
        self._room, self._room_bytes = self.limits.goals, self.limits.bytes

    def keep(self, events: int, now: int) -> None:
        """Drop expired goals and check the limits.

        The cost of a sweep grows with the number of buckets.  So each store is swept only after half as many events as
        it has buckets, and the cost per event stays constant.
        """
        waiting = 0
        state, counters = self._state, self._counters
        for store in state.stores.values():
            waiting += len(store.buckets)
            store.waited += events
            if store.longest is not None and 2 * store.waited >= len(store.buckets):
                counters.pruned += store.expire(now)
                store.waited = 0
        for closure in state.closures.values():
            counters.pruned += closure.sweep(now)
        for runs in state.runs.values():
            waiting += len(runs.partitions)
            runs.waited += events
            if 2 * runs.waited >= len(runs.partitions):
                counters.pruned += runs.expire(now)
                runs.waited = 0
        if self.is_due(events, waiting):
            self.count(now)
        self.plan()

    def plan(self) -> None:
        """Set the number of events after which to keep house again."""
        self.every[0] = min(self._step, self._most - self._phase)

    def is_due(self, events: int, waiting: int = 0) -> bool:
        """After so many more events: whether to count goals, of which there are at least ``waiting``."""
        self._events += events
        self._phase = (self._phase + events) % self._most
        return self._near or 2 * self._events >= max(self.live, waiting)

    def count(self, now: int) -> None:
        """Count the goals between two instants, and fail if they are too many or too large."""
        state = self._state
        live, size = state.live(), state.estimated_bytes()
        if live > self.limits.goals or size > self.limits.bytes:
            self._counters.pruned += sum(s.expire(now) for s in state.stores.values() if s.longest is not None)
            self._counters.pruned += sum(runs.expire(now) for runs in state.runs.values())
            live, size = state.live(), state.estimated_bytes()
        self.note(live, size)

    def note(self, live: int, size: int, elsewhere: Callable[[], Mapping[str, int]] = dict) -> None:
        """Compare so many goals of this size with the limits, and see after how many events to count them again.

        ``elsewhere``: as in ``compare``.
        """
        self.compare(live, size, elsewhere)
        since = max(1, self._events)
        rate = max(1, (live - self.live) // since, len(self._state.stores))
        bytes_rate = max(_LEAST * rate, (size - self._size) // since)
        self.live, self._size, self._events = live, size, 0
        self._allow(live, size)
        events = min(self._room // rate, self._room_bytes // bytes_rate) + 1
        self._near = events <= self._most
        self._step = min(events, self._most, 4 * self._step)

    def arise(self, count: int, size: int, now: int) -> None:
        """Solutions of an instant that is not over yet: fail if they and the goals are too large together."""
        self._new += count
        self._new_bytes += size
        if self._new <= self._room and self._new_bytes <= self._room_bytes:
            return
        # Generated code is looking at the buckets, so expired goals stay, but they do not count.
        state = self._state
        live, every = state.live(now), state.live()
        held = state.estimated_bytes() * live // max(1, every)
        self.compare(live, held + size)
        self._allow(live, held)

    def compare(self, live: int, size: int = 0, elsewhere: Callable[[], Mapping[str, int]] = dict) -> None:
        """Fail if so many goals of this size are beyond the limits.

        ``elsewhere``: how many of them each node has that are not in this state.
        """
        limits = self.limits
        if live > limits.goals:
            raise LimitExceeded(
                f"{live} goals are open, the limit is {limits.goals}{self._whose(elsewhere())}; bound the patterns "
                "with WITHIN, use a consuming policy, or raise Limits(goals=…)"
            )
        if size > limits.bytes:
            raise LimitExceeded(
                f"the {live} goals take about {size} bytes, the limit is {limits.bytes}{self._whose(elsewhere())}; "
                "bound the patterns with WITHIN, use a consuming policy, or raise Limits(bytes=…)"
            )

    def _whose(self, elsewhere: Mapping[str, int]) -> str:
        """Which of several queries has more goals than any other; queries that share nodes are named together."""
        goals: Counter[str] = Counter()
        for node, count in (*self._state.live_by_node().items(), *elsewhere.items()):
            if self.describe is not None:
                goals[self.describe(node)] += count
        return f", and {goals.most_common(1)[0][0]} has the most" if +goals else ""

    def _allow(self, live: int, size: int) -> None:
        """Note how much may come before the next count: at least a sixteenth of what there is."""
        self._new = self._new_bytes = 0
        self._room = max(self.limits.goals - live, live >> 4)
        self._room_bytes = max(self.limits.bytes - size, size >> 4)
